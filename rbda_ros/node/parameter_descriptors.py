"""Meaning and range of each parameter of the node, as ROS tools show them."""

from __future__ import annotations

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

from rbda_ros.algorithms.feedforward import TERMS
from rbda_ros.control.parameter_maps import GAIN_FORM
from rbda_ros.control.parameter_maps import POINT_FORM as FORM
from rbda_ros.control.settings import (
    ACCELERATION_SOURCES,
    COMMAND_RELIABILITY,
    COMMAND_SOURCES,
    LARGEST_GRAVITY,
    ON_REFUSAL,
    ON_STALE,
    PUBLISH,
    VELOCITY_SOURCES,
)

CUTOFF_RANGE = [FloatingPointRange(from_value=0.01, to_value=10000.0)]

DESCRIPTORS = {
    "robot_description": ParameterDescriptor(
        description="URDF or URDF+ text of the robot. Empty: the topic robot_description is used.",
        additional_constraints="XML text, not a path. Changes only while unconfigured.",
    ),
    "loop_constraints": ParameterDescriptor(
        description="Loop-constraint file: a path, or YAML text. Empty: only the loops of the "
        "description.",
        additional_constraints="Changes only while unconfigured, and only to files in "
        "model_folders.",
    ),
    "model_folders": ParameterDescriptor(
        description="Folders (with their subfolders) that may contain a loop file if "
        "loop_constraints changes while the node runs. The folder of the first loop file is always "
        "allowed.",
        read_only=True,
    ),
    "floating_base": ParameterDescriptor(
        description="Whether the root link floats (legged and flying robots) or is fixed to "
        "the world.",
        additional_constraints="Changes only while unconfigured.",
    ),
    "gravity": ParameterDescriptor(
        description="Acceleration of gravity in the world frame [m/s^2]: x, y, z.",
        additional_constraints="Three finite numbers, together no longer than "
        f"{LARGEST_GRAVITY:g}. Changes only while unconfigured.",
    ),
    "joint_prefix": ParameterDescriptor(
        description="Prefix of joint names in messages, which the names of the model lack. It is "
        "removed from received names and added to published names. Names in the loop file may "
        "have it or not.",
    ),
    "joint_offsets": ParameterDescriptor(
        description="Offsets that are added to measured positions, for encoders whose zero differs "
        "from that of the model [rad, m]: set joint_offsets.<joint>. `rbda_ros identify --what "
        "offset` estimates them. They are subtracted from position commands to motors. "
        f"Old form: YAML text, {GAIN_FORM}.",
    ),
    "velocity_source": ParameterDescriptor(
        description="Joint velocities: 'message' (from joint_states; messages without them are "
        "rejected), or 'differentiate' (filtered differences of the positions).",
        additional_constraints=f"One of: {', '.join(VELOCITY_SOURCES)}.",
    ),
    "velocity_cutoff": ParameterDescriptor(
        description="Corner frequency of the filter of 'differentiate' [Hz].",
        floating_point_range=CUTOFF_RANGE,
    ),
    "acceleration_source": ParameterDescriptor(
        description="Acceleration for which efforts are computed: 'zero' (keeps the present "
        "velocity), 'reference' (first point of the topic ~/reference), or 'estimate' (filtered "
        "differences of the velocities).",
        additional_constraints=f"One of: {', '.join(ACCELERATION_SOURCES)}.",
    ),
    "acceleration_cutoff": ParameterDescriptor(
        description="Corner frequency of the filter of 'estimate' [Hz].",
        floating_point_range=CUTOFF_RANGE,
    ),
    "external_wrench": ParameterDescriptor(
        description="Whether efforts compensate the wrenches on the topic ~/external_wrench. If "
        "so, there is no effort without a recent wrench.",
    ),
    "terms": ParameterDescriptor(
        description="Parts of the efforts.",
        additional_constraints=f"Some of: {', '.join(TERMS)}; at least one.",
    ),
    "saturate": ParameterDescriptor(
        description="Whether efforts are clipped at the effort limits of the URDF.",
    ),
    "effort_limits": ParameterDescriptor(
        description="Largest efforts of actuated joints, in addition to the limits of the URDF "
        "[N m, N]: set effort_limits.<joint>. Efforts are clipped at these limits; inf: no limit. "
        f"Old form: YAML text, {GAIN_FORM}.",
    ),
    "effort_rate_limit": ParameterDescriptor(
        description="Largest rate of change of an effort [N m/s, N/s]. 0: no limit.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=1e9)],
    ),
    "ramp_in": ParameterDescriptor(
        description="Time in which efforts grow from zero to their full size after the node was "
        "activated, or another description came into use [s]. 0: no ramp.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=60.0)],
    ),
    "on_refusal": ParameterDescriptor(
        description="After joint states were rejected: 'silence' (nothing is published), or 'zero' "
        "(one message of zero efforts, then nothing until a valid state arrives).",
        additional_constraints=f"One of: {', '.join(ON_REFUSAL)}.",
    ),
    "on_stale": ParameterDescriptor(
        description="Last message on each topic of efforts when its inputs stop for longer than "
        "joint_state_timeout: 'nothing'; 'zero'; 'gravity' (efforts that hold the last pose) or "
        "'damping' (efforts against the last velocity, with the gains of damping). 'gravity' and "
        "'damping' are followed by zeros after stale_hold_time. When the node is deactivated or "
        "ends, it publishes zeros, unless this is 'nothing'.",
        additional_constraints=f"One of: {', '.join(ON_STALE)}.",
    ),
    "stale_hold_time": ParameterDescriptor(
        description="Time after which zeros follow the efforts of on_stale [s].",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=10.0)],
    ),
    "measurement_tolerance": ParameterDescriptor(
        description="Largest difference between a measured position and the one that follows from "
        "the other measured joints [rad, m]; on the fast side of a gear it is multiplied by the "
        "ratio. States that differ by more are rejected. 0: no check.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=100.0)],
    ),
    "self_check_period": ParameterDescriptor(
        description="Period of the comparison of machine code with the virtual machine [s]. If "
        "they differ, the virtual machine takes over. 0: no comparison.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=3600.0)],
    ),
    "command_joints": ParameterDescriptor(
        description="Actuated joints, with the names of the model, whose efforts are also "
        "published on ~/effort_commands, in this order, for forward_command_controller. []: the "
        "topic is not published.",
        additional_constraints="Each actuated, and named once.",
    ),
    "command_controller": ParameterDescriptor(
        description="The controller that subscribes to ~/effort_commands, e.g. /feedforward. At "
        "activation, its parameter 'joints' is compared with command_joints; diagnostics report a "
        "difference. Empty: no comparison.",
    ),
    "command_source": ParameterDescriptor(
        description="Content of ~/effort_commands: 'feedforward', or 'joint_commands' (the "
        "converted ~/joint_commands; the node then also publishes ~/position_commands and "
        "~/velocity_commands).",
        additional_constraints=f"One of: {', '.join(COMMAND_SOURCES)}.",
    ),
    "command_reliability": ParameterDescriptor(
        description="Reliability that the node asks for on ~/reference and ~/joint_commands: "
        "'best_effort' (a lost message is not sent again), or 'reliable' (publishers must be "
        "reliable too). Takes effect when the node is activated.",
        additional_constraints=f"One of: {', '.join(COMMAND_RELIABILITY)}.",
    ),
    "publish_joint_states": ParameterDescriptor(
        description="Whether ~/joint_states, with all joints computed from the measured ones, is "
        "published: 'always', 'never', or 'auto' (if the robot has loops).",
        additional_constraints=f"One of: {', '.join(PUBLISH)}.",
    ),
    "add_feedforward": ParameterDescriptor(
        description="Whether the efforts of ~/motor_commands include the feedforward.",
    ),
    "stiffness": ParameterDescriptor(
        description="Springs between commanded and measured positions of joints, in the efforts of "
        "~/motor_commands [N m/rad, N/m]: set gains.<joint>.stiffness. Old form: YAML text, "
        f"{GAIN_FORM}.",
    ),
    "damping": ParameterDescriptor(
        description="Dampers between commanded and measured velocities of joints, in the efforts "
        "of ~/motor_commands [N m s/rad, N s/m]: set gains.<joint>.damping. "
        f"Old form: YAML text, {GAIN_FORM}.",
    ),
    "publish_external_effort": ParameterDescriptor(
        description="Whether ~/external_effort is published. It is estimated from measured efforts "
        "in joint_states.",
    ),
    "observer_gain": ParameterDescriptor(
        description="Gain of the estimate of ~/external_effort [1/s]: the inverse of its time "
        "constant.",
        floating_point_range=[FloatingPointRange(from_value=0.01, to_value=10000.0)],
    ),
    "contact_threshold": ParameterDescriptor(
        description="External effort on an independent joint above which diagnostics report a "
        "contact [N m, N]. 0: never.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=1e6)],
    ),
    "contact_end_effector": ParameterDescriptor(
        description="One of end_effectors, or a link, whose wrench is published on "
        "~/estimated_wrench. Empty: none.",
    ),
    "payload_window": ParameterDescriptor(
        description="Duration of the joint states that the node keeps for ~/identify_payload [s]. "
        "0: none, and the service is not available.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=60.0)],
    ),
    "joint_state_timeout": ParameterDescriptor(
        description="Largest age of inputs [s]. 0: any age, with or without a stamp.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=10.0)],
    ),
    "max_condition_number": ParameterDescriptor(
        description="Largest condition number of a loop. Above it, the loop is close to a dead "
        "point and there is no effort.",
        floating_point_range=[FloatingPointRange(from_value=1.0, to_value=1e8)],
    ),
    "realtime_priority": ParameterDescriptor(
        description="Real-time priority (SCHED_FIFO of Linux) of the threads that receive and "
        "answer joint_states, if the system permits it. 0: none; -1: 40 if the node has the "
        "process to itself, else 0.",
        integer_range=[IntegerRange(from_value=-1, to_value=99)],
    ),
    "end_effectors": ParameterDescriptor(
        description="Points on links that services know by name: set end_effectors.<name>.link "
        "and end_effectors.<name>.xyz [m, in the frame of the link; the origin unless given]. "
        f"Old form: YAML text, {FORM}.",
    ),
    "autostart": ParameterDescriptor(
        description="Whether the node configures and activates itself once it has a "
        "description. Without it, use the lifecycle services.",
        read_only=True,
    ),
}

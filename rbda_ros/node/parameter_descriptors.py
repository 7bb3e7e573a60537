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
        description="URDF or URDF+ text of the robot. Empty: taken from the topic "
        "robot_description.",
        additional_constraints="XML text, not a path. Changes only while unconfigured.",
    ),
    "loop_constraints": ParameterDescriptor(
        description="Loop-constraint file: a path, or its YAML text. Empty: no loops beyond "
        "those in the description.",
        additional_constraints="Changes only while unconfigured; to files in model_folders alone.",
    ),
    "model_folders": ParameterDescriptor(
        description="Folders that a loop file may be in, and below, when loop_constraints changes "
        "while the node runs. The folder of the file that the node is started with is one of them "
        "always.",
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
        description="What joint names in messages begin with and the model's do not: taken off "
        "names that come in, and put before those that go out. Names in the loop file may have it, "
        "too.",
    ),
    "joint_offsets": ParameterDescriptor(
        description="What is added to measured positions of joints, whose zeros are not the "
        "model's [rad, m]: set joint_offsets.<joint>; `rbda_ros identify --what offset` finds "
        f"them. Position commands to motors have it taken off. Old form: YAML text, {GAIN_FORM}.",
    ),
    "velocity_source": ParameterDescriptor(
        description="Joint velocities: 'message' (of joint_states; refused without), or "
        "'differentiate' (filtered differences of the positions).",
        additional_constraints=f"One of: {', '.join(VELOCITY_SOURCES)}.",
    ),
    "velocity_cutoff": ParameterDescriptor(
        description="Corner frequency of the filter of 'differentiate' [Hz].",
        floating_point_range=CUTOFF_RANGE,
    ),
    "acceleration_source": ParameterDescriptor(
        description="Acceleration that the feedforward effort is for: 'zero' (holds the "
        "present velocity), 'reference' (first point of the topic ~/reference), or 'estimate' "
        "(filtered differences of the velocities).",
        additional_constraints=f"One of: {', '.join(ACCELERATION_SOURCES)}.",
    ),
    "acceleration_cutoff": ParameterDescriptor(
        description="Corner frequency of the filter of 'estimate' [Hz].",
        floating_point_range=CUTOFF_RANGE,
    ),
    "external_wrench": ParameterDescriptor(
        description="Whether efforts hold against the wrenches on the topic ~/external_wrench; "
        "then there is no effort without a fresh one.",
    ),
    "terms": ParameterDescriptor(
        description="What efforts are made of.",
        additional_constraints=f"Some of: {', '.join(TERMS)}; at least one.",
    ),
    "saturate": ParameterDescriptor(
        description="Whether efforts are clipped at the URDF's effort limits.",
    ),
    "effort_limits": ParameterDescriptor(
        description="Largest efforts of actuated joints, beside the URDF's [N m, N]: set "
        "effort_limits.<joint>; efforts are clipped there, and inf is none. Old form: YAML text, "
        f"{GAIN_FORM}.",
    ),
    "effort_rate_limit": ParameterDescriptor(
        description="Fastest change of an effort from one message to the next [N m/s, N/s]. 0: "
        "any.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=1e9)],
    ),
    "ramp_in": ParameterDescriptor(
        description="How long efforts take to grow from zero to their full size after the node "
        "was activated, or another description came into use [s]. 0: at once.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=60.0)],
    ),
    "on_refusal": ParameterDescriptor(
        description="What follows joint_states that are refused: 'silence', or 'zero' (one message "
        "of zero efforts, then silence until a good state comes).",
        additional_constraints=f"One of: {', '.join(ON_REFUSAL)}.",
    ),
    "on_stale": ParameterDescriptor(
        description="What is published once on each topic of efforts when its inputs stop for "
        "longer than joint_state_timeout: 'nothing', 'zero', or for stale_hold_time 'gravity' "
        "(what holds the last pose) or 'damping' (against the last velocity, by the gains of "
        "damping) and zeros then. When the node is deactivated or ends, it is zeros, unless this "
        "is 'nothing'.",
        additional_constraints=f"One of: {', '.join(ON_STALE)}.",
    ),
    "stale_hold_time": ParameterDescriptor(
        description="How long efforts of on_stale may stand before zeros follow [s].",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=10.0)],
    ),
    "measurement_tolerance": ParameterDescriptor(
        description="How far a measured position may be from the one that the other measured "
        "joints lead to [rad, m]; on the fast side of a gear, times its ratio. More is rejected. "
        "0: any.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=100.0)],
    ),
    "self_check_period": ParameterDescriptor(
        description="How often the machine code in use is compared with the virtual machine [s]. "
        "Where they differ, the virtual machine takes over. 0: never.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=3600.0)],
    ),
    "command_joints": ParameterDescriptor(
        description="Joints, by the model's names, whose efforts go to ~/effort_commands too, in "
        "this order, for forward_command_controller. [] for none.",
        additional_constraints="Each actuated, and named once.",
    ),
    "command_controller": ParameterDescriptor(
        description="Name of the controller that listens to ~/effort_commands, e.g. "
        "/feedforward: at activation its parameter 'joints' is compared with command_joints, and "
        "diagnostics tell of a difference. Empty: no comparison.",
    ),
    "command_source": ParameterDescriptor(
        description="What ~/effort_commands has: the 'feedforward', or what ~/joint_commands come "
        "to ('joint_commands'; then there are ~/position_commands and ~/velocity_commands too).",
        additional_constraints=f"One of: {', '.join(COMMAND_SOURCES)}.",
    ),
    "command_reliability": ParameterDescriptor(
        description="Reliability that the node asks for on ~/reference and ~/joint_commands: "
        "'best_effort' (a lost message is not sent again), or 'reliable' (publishers must be "
        "reliable too). Takes effect when the node is activated.",
        additional_constraints=f"One of: {', '.join(COMMAND_RELIABILITY)}.",
    ),
    "publish_joint_states": ParameterDescriptor(
        description="Whether ~/joint_states has every joint, completed from those measured: "
        "'always', 'never', or 'auto' (where the robot has loops).",
        additional_constraints=f"One of: {', '.join(PUBLISH)}.",
    ),
    "add_feedforward": ParameterDescriptor(
        description="Whether the efforts of ~/motor_commands have the feedforward in them.",
    ),
    "stiffness": ParameterDescriptor(
        description="Springs between commanded and measured positions of joints, in the efforts of "
        "~/motor_commands [N m/rad, N/m]: set gains.<joint>.stiffness. Old form: YAML text, "
        f"{GAIN_FORM}.",
    ),
    "damping": ParameterDescriptor(
        description="Dampers between commanded and measured velocities of joints, likewise "
        f"[N m s/rad, N s/m]: set gains.<joint>.damping. Old form: YAML text, {GAIN_FORM}.",
    ),
    "publish_external_effort": ParameterDescriptor(
        description="Whether ~/external_effort has what acts on the robot beyond its motors, "
        "estimated from measured efforts; then joint_states must have these.",
    ),
    "observer_gain": ParameterDescriptor(
        description="Gain of that estimate [1/s]: the inverse of the time it takes.",
        floating_point_range=[FloatingPointRange(from_value=0.01, to_value=10000.0)],
    ),
    "contact_threshold": ParameterDescriptor(
        description="External effort on an independent joint past which diagnostics tell of a "
        "contact [N m, N]. 0: never.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=1e6)],
    ),
    "contact_end_effector": ParameterDescriptor(
        description="One of end_effectors, or a link, whose wrench ~/estimated_wrench has. Empty: "
        "none.",
    ),
    "payload_window": ParameterDescriptor(
        description="How much of the past ~/identify_payload can go by: joint states that the node "
        "remembers [s]. 0: none.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=60.0)],
    ),
    "joint_state_timeout": ParameterDescriptor(
        description="Oldest input that is answered [s], by its stamp. 0: any age, stamped or not.",
        floating_point_range=[FloatingPointRange(from_value=0.0, to_value=10.0)],
    ),
    "max_condition_number": ParameterDescriptor(
        description="Condition number of a loop from which on it is too near to a dead point "
        "for an effort.",
        floating_point_range=[FloatingPointRange(from_value=1.0, to_value=1e8)],
    ),
    "realtime_priority": ParameterDescriptor(
        description="Priority of the threads that receive and answer joint_states (SCHED_FIFO of "
        "Linux), where the system permits it. 0: that of all others; -1: 40 in a process of the "
        "node's own, else 0.",
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

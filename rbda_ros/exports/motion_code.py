"""Functions for every cycle of a controller, as C: feedforward, conversion, commands, the observer.

Each is the same sequence of kernels and decisions as the class or method it is named after:
`FeedforwardCall`, `Robot.convert`, `MotorCommandCall`, `MomentumObserver`.
"""

from __future__ import annotations

from collections.abc import Collection

from rbda_ros.algorithms.commanded_motors import EFFORTS
from rbda_ros.cluster_tree.closing.tolerances import KERNEL_PARTS, STREAM_PARTS, STREAM_REPEATS
from rbda_ros.errors import InputError
from rbda_ros.exports.c_builder import PAYLOAD, Builder, JointSpace, KernelCode, Memory, Parameter
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.program import Program
from rbda_ros.robot.feedforward_call import feedforward, feedforward_choice
from rbda_ros.robot.motor_command import motor_command
from rbda_ros.robot.robot import Robot

STREAM_EVALUATIONS = (1 + STREAM_REPEATS) * (1 + 2 * sum(STREAM_PARTS))
"""Most evaluations of a kernel of the stream in one call; see `engine/closing.c`."""
CLOSURE_EVALUATIONS = sum(KERNEL_PARTS) + 1
"""The same of the closure kernel, and one to refine; see `engine/loop_rules.h`."""


def add_feedforward(builder: Builder, terms: Collection[str], wrenches: bool) -> None:
    """Efforts of the motors for the measured motion: `FeedforwardCall`."""
    robot, space = builder.robot, _measured(builder)
    call = feedforward(robot, space.names, terms=terms, wrenches=wrenches)
    order = [space.names.index(name) for name in call.joints]
    label = "_with_wrenches" if wrenches else ""
    _, _, choice = feedforward_choice(robot, space.names, None, terms)
    program = builder.program(f"feedforward{label}", choice)
    evaluate = _stream_kernel(builder, program, f"feedforward{label}", len(order))
    builder.uses.add("feedforward")
    builder.indices("feedforward_order", order)
    builder.indices("feedforward_entries", call.positions or ())
    builder.counts["FEEDFORWARD_KNOWN"] = len(call.positions or ())
    base = [
        Parameter("base_position", 7, "x, y, z [m] and quaternion x, y, z, w of the base"),
        Parameter("base_twist", 6, "of the base, linear then angular, in its frame [m/s, rad/s]"),
        Parameter("base_acceleration", 6, "of the base, likewise [m/s^2, rad/s^2]"),
    ]
    if not robot.coordinates.base_nq:
        base = []
    measured = f"{builder.upper}_MEASURED"
    accelerated = robot.ny - robot.coordinates.base_nv
    on_bodies = "on the bodies, from add_wrench [N m, N]"
    parameters = [
        *base,
        Parameter("position", measured, "of the measured joints [rad, m]"),
        Parameter("velocity", measured, "of the measured joints [rad/s, m/s]"),
        Parameter(
            "acceleration", accelerated, "of the independent joints, wanted [rad/s^2, m/s^2]"
        ),
        *([Parameter("wrenches", f"6 * {builder.upper}_BODIES", on_bodies)] if wrenches else ()),
        _limit(builder),
        Parameter("efforts", f"{builder.upper}_MOTORS", "of the motors [N m, N]", output=True),
    ]
    given = [
        "base_position, base_twist, base_acceleration" if base else "NULL, NULL, NULL",
        "position, velocity, acceleration",
        "wrenches" if wrenches else "NULL",
    ]
    body = [
        f"return {builder.name}_run_feedforward(w, {evaluate}, {', '.join(given)}, limit, efforts);"
    ]
    about = [
        f"feedforward{label}: efforts of the motors from the measured motion, loops closed from"
        f" w->q, which moves along. Terms: {', '.join(sorted(terms))}."
    ]
    builder.function(f"feedforward{label}", about, parameters, body)
    builder.evaluations = max(builder.evaluations, STREAM_EVALUATIONS)


def add_conversion(builder: Builder) -> None:
    """Motion and efforts from motors to joints and back: `Robot.convert`."""
    robot = builder.robot
    motors = JointSpace(
        robot.actuated_joint_names,
        tuple(robot.coordinates.scalar_positions.get(n, -1) for n in robot.actuated_joint_names),
        tuple(robot.coordinates.velocities[n].start for n in robot.actuated_joint_names),
    )
    joints = _joints(builder)
    if robot._inputs.choices.positions(joints.names) is None:
        raise InputError(
            f"convert: {', '.join(joints.names)} do not close the loops of {robot.name};"
            " name other joints"
        )
    if robot._inputs.choices.positions(motors.names) is not None:
        _add_conversion(builder, "motors_to_joints", "MOTORS", motors, "JOINTS", joints, "q")
    _add_conversion(builder, "joints_to_motors", "JOINTS", joints, "MOTORS", motors, "command_q")


def _add_conversion(
    builder: Builder,
    name: str,
    from_size: str,
    given: JointSpace,
    to_size: str,
    targets: JointSpace,
    start: str,
) -> None:
    robot, upper, lib = builder.robot, builder.upper, builder.name
    nq, nv, ny = robot.nq, robot.nv, robot.ny
    chosen = robot._inputs.choices.positions(given.names)
    assert chosen is not None
    names, entries = chosen
    coordinates = robot._inputs.choices.coordinates("velocity", given.names, robot.neutral())
    assert len(coordinates) == ny
    builder.uses.add("conversion")
    builder.kernel("spanning_motion")
    builder.kernel("generalized_force")
    label = f"_{name}"
    velocity = builder.kernel("independent_velocity", coordinates, label=label)
    acceleration = builder.kernel("independent_acceleration", coordinates, label=label)
    acting = tuple(sorted(targets.coordinates))
    efforts = builder.kernel("converted_efforts", acting, label=label)
    loops = [kernel.program.outputs[1].size for kernel in (velocity, acceleration)]
    functions = [kernel.function for kernel in (velocity, acceleration, efforts)]
    rows = 0
    if robot.has_loops:
        closure = builder.kernel("closure", entries, label=label)
        rows = closure.program.outputs[1].size
        functions += [closure.function, _closure_ports(builder, closure)]
    else:
        functions += ["NULL", "NULL"]
    owners = [robot.coordinates.owners[j] for j in coordinates[robot.coordinates.base_nv :]]
    tables = {
        "known": [given.names.index(each) for each in names],
        "entries": entries,
        "rates": [given.names.index(each) for each in owners],
        "given": given.coordinates,
        "positions": targets.entries,
        "coordinates": targets.coordinates,
        "efforts": [acting.index(each) for each in targets.coordinates],
    }
    counts = [len(given.names), len(entries), len(owners), len(targets.names), len(acting)]
    described = [*functions, *map(str, [*counts, *loops, rows])]
    described += [builder.indices(f"{name}_{kind}", table) for kind, table in tables.items()]
    builder.source += [
        f"static const {lib}_conversion {lib}_{name}_of = {{",
        *(f"    {each}," for each in described),
        "};",
        "",
    ]
    size = 2 * nq + 5 * ny + 3 * nv + len(acting) + 2 * len(entries) + sum(loops) + rows
    builder.memory = max(builder.memory, size)  # of `sources/conversion.c`
    units = {"position": "rad, m", "velocity": "rad/s, m/s"}
    units |= {"acceleration": "rad/s^2, m/s^2", "effort": "N m, N"}
    source, target = name.split("_to_")
    parameters = [
        Parameter(each, f"{upper}_{from_size}", f"of the {source} [{unit}]", optional=k > 0)
        for k, (each, unit) in enumerate(units.items())
    ] + [
        Parameter(f"to_{each}", f"{upper}_{to_size}", f"of the {target} [{unit}]", True, True)
        for each, unit in units.items()
    ]
    about = [
        f"{name}: motion and efforts of the {target} from those of the {source}; power is the same."
        f" Loops are closed from w->{start}, which moves along. NULL is zero, or not wanted."
    ]
    arrays = ", ".join(each.name for each in parameters)
    body = [f"return {lib}_convert(w, w->{start}, &{lib}_{name}_of, {arrays});"]
    builder.function(name, about, parameters, body)
    builder.evaluations = max(builder.evaluations, CLOSURE_EVALUATIONS)


def _closure_ports(builder: Builder, closure: KernelCode) -> str:
    """The function that evaluates a closure kernel as `ClosureRules` takes it; its name."""
    builder.uses.add("closure")
    wrapper = f"{closure.function}_ports"
    text = (
        f"static int {wrapper}(const void *count, double *const *ports)\n{{\n"
        f"  {closure.function}(ports[0], ports[1], ports[2], ports[3]);\n"
        f"  ++*(int *)(uintptr_t)count;\n  return 1;\n}}\n"
    )
    if text not in builder.source:
        builder.source.append(text)
    return wrapper


def closes(robot: Robot) -> bool:
    """Whether Newton steps close the loops from y."""
    return robot.has_loops and robot._inputs.choices.newton_positions is not None


def add_close(builder: Builder) -> None:
    """Positions that satisfy the loops, from those of y: `Robot.close` by Newton steps."""
    robot, lib, upper = builder.robot, builder.name, builder.upper
    entries = robot._inputs.choices.newton_positions
    if not closes(robot) or entries is None:
        return
    closure = builder.kernel("closure", entries)
    memory = Memory(builder)
    memory.take("next", robot.nq)
    memory.take("known", len(entries))
    memory.take("phi", closure.program.outputs[1].size)
    memory.take("closed", robot.nq)
    where = builder.indices("close_entries", entries)
    body = [
        *memory.lines,
        f"Status status = {lib}_begin(w);",
        f"status = {lib}_check_position(w, y, {len(entries)});",
        f"if (status == GOOD && guess != NULL)"
        f" status = {lib}_check_position(w, guess, {robot.nq});",
        f"if (status != GOOD) return ({lib}_status)status;",
        f"status = {lib}_close_from(w, {_closure_ports(builder, closure)}, {where},"
        f" {len(entries)}, {closure.program.outputs[1].size}, y,",
        f"    guess == NULL ? {lib}_assembly : guess, known, next, phi, closed);",
        f"if (status != GOOD) return ({lib}_status)status;",
        f"memcpy(q, closed, {robot.nq} * sizeof(double));",
        f"return {upper}_OK;",
    ]
    parameters = [
        Parameter("y", len(entries), "position of the independent joints [rad, m]"),
        Parameter("guess", f"{upper}_NQ", "where to start; NULL: the assembly", optional=True),
        Parameter("q", f"{upper}_NQ", "spanning position, on the branch of the start", True),
    ]
    about = ["close: the spanning position that satisfies the loops."]
    builder.function("close", about, parameters, body)
    builder.evaluations = max(builder.evaluations, CLOSURE_EVALUATIONS)


def add_motor_command(builder: Builder) -> None:
    """Commands of joints as commands of motors: `MotorCommandCall`."""
    robot, lib, upper = builder.robot, builder.name, builder.upper
    joints, measured = _joints(builder), _measured(builder)
    call = motor_command(robot, joints.names, efforts=EFFORTS, measured=measured.names)
    choice = robot._inputs.choices.measured("velocity", measured.names)
    evaluate = _stream_kernel(builder, call.kernel.program, "motor_command", len(call.joints))
    builder.uses.add("motor_command")
    builder.indices("command_order", [joints.names.index(each) for each in call.joints])
    builder.indices("command_coordinates", joints.coordinates)
    builder.indices("command_rates", [measured.names.index(each) for each in choice.joints])
    builder.indices("command_entries", call.positions or ())
    builder.counts["COMMAND_RATES"] = len(choice.joints)
    builder.counts["COMMAND_KNOWN"] = len(call.positions or ())
    size, motors = f"{upper}_JOINTS", f"{upper}_MOTORS"
    parameters = [
        Parameter("position", size, "commanded, of the joints [rad, m]"),
        Parameter("velocity", size, "commanded [rad/s, m/s]", optional=True),
        Parameter("effort", size, "commanded [N m, N]", optional=True),
        Parameter("stiffness", size, "of the joints [N m/rad, N/m]", optional=True),
        Parameter("damping", size, "of the joints [N m s/rad, N s/m]", optional=True),
        Parameter(
            "measured_velocity",
            f"{upper}_MEASURED",
            "of the measured joints [rad/s, m/s]",
            False,
            True,
        ),
        Parameter("feedforward", motors, "added to the motors' efforts [N m, N]", optional=True),
        _limit(builder),
        Parameter("motor_position", motors, "[rad, m]", True, True),
        Parameter("motor_velocity", motors, "[rad/s, m/s]", True, True),
        Parameter("motor_effort", motors, "[N m, N]", True, True),
    ]
    about = [
        "motor_command: what a command of the joints means for the motors:"
        " effort + stiffness (q - w->q) + damping (qd - measured), turned into efforts of the"
        " motors at the measured position w->q, which feedforward and motors_to_joints set."
        " What is NULL is zero, or not wanted. Loops are closed from w->command_q."
    ]
    arrays = ", ".join(each.name for each in parameters)
    body = [f"return {lib}_run_motor_command(w, {evaluate}, {arrays});"]
    builder.function("motor_command", about, parameters, body)
    builder.evaluations = max(builder.evaluations, STREAM_EVALUATIONS)


def add_observer(builder: Builder) -> None:
    """The force on y that comes from outside: `MomentumObserver`."""
    robot, lib, upper, ny = builder.robot, builder.name, builder.upper, builder.robot.ny
    builder.uses.add("observer")
    builder.kernel("friction_force")
    builder.kernel("momentum")
    builder.memory = max(builder.memory, robot.nq + 9 * ny)  # of `sources/observer.c`
    builder.header += [
        "/* The momentum observer; the caller owns it. external: the estimate, force on y. */",
        "typedef struct {",
        f"  {lib}_real external[{upper}_NY], integral[{upper}_NY], drive[{upper}_NY];",
        "  TIME time; /* [s] */",
        "  int started;",
        f"}} {lib}_observer;",
        f"void {lib}_observer_init({lib}_observer *observer);",
        "",
    ]
    parameters = [
        Parameter("q", f"{upper}_NQ", "spanning position [rad, m]"),
        Parameter("yd", f"{upper}_NY", "independent velocity [rad/s, m/s]"),
        Parameter("tau", f"{upper}_NY", "force of the motors on y [N m, N]"),
    ]
    about = [
        "observer_update: take what was measured at a time [s], later than the last;"
        " observer->external is the outside force on y through a low-pass of gain [1/s]."
    ]
    scalars = [f"{lib}_observer *observer", "TIME gain", "TIME time"]
    builder.declare("observer_update", about, parameters, scalars)


def add_payload(builder: Builder) -> None:
    """Set what a link carries, for all functions that follow: `Robot.with_payloads`."""
    about = [
        "set_payload: what the link carries, for all later calls with this workspace; at first"
        f" nothing. {builder.upper}_BAD_ARGUMENT, and nothing is changed, where no body has these.",
        "mass: [kg]; 0 takes the payload off.",
    ]
    inertia = (
        "ixx, ixy, ixz, iyy, iyz, izz about the centre of mass, in the link's axes [kg m^2]; NULL"
        " for a point mass."
    )
    parameters = [
        Parameter("com", 3, "centre of mass in the link's frame [m]."),
        Parameter("inertia", 6, inertia, optional=True),
    ]
    body = [
        f"return payload_parameters(mass, com, inertia, w->{PAYLOAD}, &w->place)"
        f" ? {builder.upper}_OK : {builder.upper}_BAD_ARGUMENT;"
    ]
    builder.function("set_payload", about, parameters, body, [f"{builder.name}_real mass"])


def _measured(builder: Builder) -> JointSpace:
    assert builder.measured is not None
    return builder.measured


def _joints(builder: Builder) -> JointSpace:
    assert builder.joints is not None
    return builder.joints


def _stream_kernel(builder: Builder, program: Program, name: str, known: int) -> str:
    """The function that evaluates a kernel of the stream with bound arrays; its name.

    Args:
        builder: of the library.
        program: of the kernel.
        name: of the kernel in C.
        known: how many joints it closes loops from.
    """
    builder.uses.add("stream")
    function = f"{builder.name}_kernel_{name}"
    builder.plans[function] = make_plan(program)
    ports = (*program.inputs, *program.outputs)
    arrays = ", ".join(f"bound->ports[{i}]" for i in range(len(ports)))
    builder.source += [
        f"static void {function}_bound(void *memory)",
        "{",
        f"  const {builder.name}_bound *bound = (const {builder.name}_bound *)memory;",
        f"  {function}({arrays});",
        "  ++*bound->count;",
        "}",
        "",
    ]
    size = sum(port.size for port in ports) + 2 * builder.robot.nq + 2 * known
    builder.memory = max(builder.memory, size)  # of `sources/feedforward.c`, `motor_command.c`
    return f"{function}_bound"


def _limit(builder: Builder) -> Parameter:
    size = f"{builder.upper}_MOTORS"
    return Parameter("limit", size, "largest efforts; NULL: none [N m, N]", optional=True)

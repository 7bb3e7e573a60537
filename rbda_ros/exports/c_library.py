"""The C library of a robot: header, source, example and build file."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rbda_ros.algorithms.feedforward import TERMS
from rbda_ros.cluster_tree.closing import tolerances
from rbda_ros.cluster_tree.spanning_tree import parameter_map
from rbda_ros.errors import InputError
from rbda_ros.exports.c_builder import (
    Builder,
    as_float,
    closing_source,
    cmake_text,
    commanded_space,
    example_text,
    gate_source,
    measured_space,
    named_source,
    shared_source,
)
from rbda_ros.exports.motion_code import (
    add_close,
    add_conversion,
    add_feedforward,
    add_motor_command,
    add_observer,
    add_payload,
    closes,
)
from rbda_ros.exports.operation_code import add_operation, c_identifier, operation_names
from rbda_ros.kernels.export import (
    RESTRICT,
    comment,
    function_source,
    literal,
    port_names,
)
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.registry import KERNELS
from rbda_ros.kernels.sincos import sincos_in_c
from rbda_ros.kernels.trace import Load
from rbda_ros.robot.calls import link_numbers
from rbda_ros.robot.closer import CANNOT_GIVE
from rbda_ros.robot.inputs import LARGEST, LARGEST_POSITION, QUATERNION_TOLERANCE, UNIT
from rbda_ros.robot.operations import OPERATIONS
from rbda_ros.robot.robot import Robot

MOTION = ("feedforward", "feedforward_with_wrenches", "convert", "motor_command", "observer")
"""Functions beside operations and kernels; and ``gate``. ``close`` comes with every loop."""
DEFAULT_TERMS = ("gravity", "coriolis", "inertial")
SHARED = "continuation.h", "geometry.h", "loop_rules.h"
"""Sources of the engine that every library has; others are for some functions."""
OF_FUNCTIONS = "closure", "stream", "conversion", "feedforward", "motor_command", "observer"
"""Sources of `exports/sources` for some functions, each after those that it needs."""
MAX_CONDITION = 1e8
STATUS = {
    "OK": "no error",
    "BAD_ARGUMENT": "a number is not finite or too large, or a quaternion is not of unit length",
    "NOT_CLOSED": "Newton steps do not close the loops from here; command a pose within reach",
    "OFF_LOOPS": "the spanning position does not satisfy the loops; close it first",
    "DEAD_POINT": "a loop is at a dead point, or too near to one; move away from it",
    "NOT_FINITE": "a result is not finite: the mass matrix is singular here",
    "LOOPS_MISSED": "loops that are closed by their forces stay open",
    "SINGULAR": "the mass matrix is singular here",
    "CANNOT_GIVE": "these joints cannot give the effort",
    "NOT_LATER": "the time is not later than the last",
}
"""Texts of the status codes; the first eight are those of the engine, in its order."""
SINGLE = {"PRECISE": 1e-6, "CLOSED": 1e-5, "ON_LOOPS": 1e-4, "SINGULAR_LOOP": 1e-4} | {
    "LARGEST_POSITION": 1e6,
    "LARGEST": 1e12,
    "LEFT_OVER": 1e-3,
    "MAX_CONDITION": 1e4,
}
"""Tolerances in single precision, which has seven digits: those that double has would never be
met."""


@dataclass(frozen=True)
class ExportReport:
    """Files that were written.

    Attributes:
        header, source, example, cmake: the files.
        functions: names of the C functions, without the library's.
        measured, joints, motors: joints of the arrays, in their order.
        workspace: bytes of a workspace.
        stack: bytes of the work arrays of the kernel that has most, which are on the stack.
        evaluations: most evaluations of a closing kernel in one call.
    """

    header: Path
    source: Path
    example: Path
    cmake: Path
    functions: tuple[str, ...]
    measured: tuple[str, ...]
    joints: tuple[str, ...]
    motors: tuple[str, ...]
    workspace: int
    stack: int
    evaluations: int

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file."""
        return self.header, self.source, self.example, self.cmake


def function_names() -> list[str]:
    """Everything that can be exported."""
    kernels = [name for name in KERNELS if name not in operation_names()]
    return ["close", *MOTION, "gate", *operation_names(), *kernels]


def export_robot(
    robot: Robot,
    directory: str | Path,
    *,
    name: str | None = None,
    functions: Collection[str] = ("inverse_dynamics", "forward_dynamics"),
    measured: Sequence[str] | None = None,
    joints: Sequence[str] | None = None,
    terms: Collection[str] = DEFAULT_TERMS,
    frames: Sequence[str] = (),
    payload: str | None = None,
    float32: bool = False,
) -> ExportReport:
    """Write a robot as a C99 library that closes loops, checks and computes as Python does.

    Args:
        robot: the model.
        directory: where the files go; it is made.
        name: what every C name begins with; by default the directory's.
        functions: some of `function_names`.
        measured: joints that feedforward takes; the motors if they determine the robot, else
            the independent joints.
        joints: of conversion and commands; joints without motors that determine the robot.
        terms: what feedforward is made of.
        frames: links, for operations that are about frames.
        payload: a link; what it carries is set while the program runs, by ``set_payload``.
        float32: whether numbers are ``float``; for processors without double precision.

    Raises:
        InputError: unknown names, or joints that do not determine the others.
        UnsupportedOperationError: a kernel has an operation that C has not.
    """
    folder = Path(directory)
    name = c_identifier(folder.resolve().name) if name is None else name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InputError(f"{name!r} is no C identifier; use letters, digits and _")
    functions, frames = list(dict.fromkeys(functions)), list(dict.fromkeys(frames))
    known = function_names()
    unknown = [each for each in functions if each not in known]
    if unknown or not functions:
        wrong = f"there is no function {', '.join(unknown)}" if unknown else "name a function"
        raise InputError(f"{wrong}; there are {', '.join(known)}")
    about_frames = [each for each in functions if _is_about_frames(each)]
    if about_frames and not frames:
        raise InputError(f"{', '.join(about_frames)} is about frames: name links with --frames")
    if about_frames:
        _check_frame_names(frames)
    _check_robot(robot, functions)
    if unknown_terms := sorted(set(terms) - set(TERMS)):
        raise InputError(f"terms: {', '.join(unknown_terms)}; there are {', '.join(TERMS)}")
    load = None if payload is None else _load(robot, payload)
    real = "float" if float32 else "double"
    builder = Builder(robot, name, real, load, memory=robot.nq + 1)  # for `start_from`
    _add_functions(builder, functions, measured, joints, terms, frames)
    header, source = _header(builder), _source(builder)
    if float32:
        header, source = as_float(header), as_float(source)
    header, source = (each.replace("TIME ", "double ") for each in (header, source))
    folder.mkdir(parents=True, exist_ok=True)
    size = 4 if float32 else 8
    report = ExportReport(
        folder / f"{name}.h",
        folder / f"{name}.c",
        folder / "example.c",
        folder / "CMakeLists.txt",
        tuple(builder.functions),
        builder.measured.names if builder.measured else (),
        builder.joints.names if builder.joints else (),
        robot.actuated_joint_names,
        _workspace_size(builder),
        size * _largest_work(builder),
        builder.evaluations,
    )
    example = example_text(builder)
    for path, text in zip(report.files, (header, source, example, cmake_text(name)), strict=True):
        path.write_text(text, encoding="utf-8")
    return report


def _check_frame_names(frames: Sequence[str]) -> None:
    """Reject frames whose functions would have one name."""
    called: dict[str, list[str]] = {}
    for frame in frames:
        called.setdefault(c_identifier(frame), []).append(frame)
    for identifier, alike in called.items():
        if len(alike) > 1:
            raise InputError(
                f"frames {', '.join(alike)} are all called {identifier} in C; export them in"
                " libraries of their own"
            )


def _check_robot(robot: Robot, functions: Collection[str]) -> None:
    """Reject functions about motors, or joints, that the robot does not have."""
    of_motors = [each for each in functions if each in MOTION and each != "observer"]
    if of_motors and not robot.actuated_joint_names:
        raise InputError(
            f"{', '.join(of_motors)}: {robot.name} has no motors; name them in the loop file, as"
            " actuated_joints"
        )
    if "close" in functions and not closes(robot):
        raise InputError(f"close: {robot.name} has no loops that Newton steps close; leave it out")
    if "observer" in functions and not robot.ny:
        raise InputError(f"observer: {robot.name} has no joint that moves; leave it out")


def _is_about_frames(name: str) -> bool:
    if name in OPERATIONS:
        return OPERATIONS[name].of_frame
    return name in KERNELS and KERNELS[name].needs_frames


def _add_functions(
    builder: Builder,
    functions: Collection[str],
    measured: Sequence[str] | None,
    joints: Sequence[str] | None,
    terms: Collection[str],
    frames: Sequence[str],
) -> None:
    robot, chosen = builder.robot, set(functions)
    if chosen & {"feedforward", "feedforward_with_wrenches", "motor_command"}:
        builder.measured = measured_space(robot, measured)
    if chosen & {"convert", "motor_command"}:
        builder.joints = commanded_space(robot, joints)
    if robot.has_loops:
        builder.kernel("loop_state")
    add_close(builder)
    if builder.load is not None:
        add_payload(builder)
    for name in functions:
        if name == "close":
            continue  # it is there
        if name.startswith("feedforward"):
            add_feedforward(builder, terms, name.endswith("wrenches"))
        elif name == "convert":
            add_conversion(builder)
        elif name == "motor_command":
            add_motor_command(builder)
        elif name == "observer":
            add_observer(builder)
        elif name == "gate":
            _add_gate(builder)
        elif name in operation_names():
            add_operation(builder, name, frames)
        else:
            _add_kernel(builder, name, frames)


def _add_gate(builder: Builder) -> None:
    builder.header += [gate_source(builder.name, "gate.h")]
    builder.source += [gate_source(builder.name, "gate.c")]
    builder.functions += ["gate_pass", "gate_hold", "gate_end", "gate_restart"]


def _add_kernel(builder: Builder, name: str, frames: Sequence[str]) -> None:
    """A kernel that is no operation: a function without checks."""
    options = tuple(builder.robot._inputs.frame(frame) for frame in frames)
    if not KERNELS[name].needs_frames:
        options = ()
    plan = make_plan(builder.program(name, *options))
    builder.public[f"{builder.name}_{name}"] = plan
    builder.functions.append(name)
    count = len(plan.program.inputs)
    ports = port_names(plan.program)
    arrays = ", ".join(
        f"{'const ' if i < count else ''}{builder.name}_real *{port.name}"
        for i, port in enumerate(ports)
    )
    sizes = [
        f"{port.name} ({port.size}, {'in' if i < count else 'out'})" for i, port in enumerate(ports)
    ]
    builder.header += [
        *comment([f"{name}, without checks: {'; '.join(sizes)}"]),
        f"void {builder.name}_{name}({arrays});",
        "",
    ]


def _load(robot: Robot, link: str) -> Load:
    """The body that carries a link, and the map of a payload's parameters onto the body's."""
    body, _ = robot._payload_columns(link)  # refuses links that no payload can be on
    return Load(body + 1, parameter_map(robot.spanning_tree.links[link].frame))


def _workspace_size(builder: Builder) -> int:
    """Bytes."""
    payload = 10 if builder.load else 0
    size = 4 if builder.real == "float" else 8
    return size * (2 * builder.robot.nq + 5 + payload + builder.memory) + 16


def _closing_bound(builder: Builder) -> str:
    if not builder.robot.has_loops:
        return "There are no loops to close."
    return f"Loops are closed by {builder.evaluations} evaluations of a kernel at most."


def _largest_work(builder: Builder) -> int:
    plans = (*builder.plans.values(), *builder.public.values())
    return max((plan.work for plan in plans), default=0)


def _header(builder: Builder) -> str:
    robot, name, upper = builder.robot, builder.name, builder.upper
    guard = f"{upper}_H"
    real = builder.real
    bits = 4 if real == "float" else 8
    sizes = {"NQ": robot.nq, "NV": robot.nv, "NY": robot.ny}
    sizes |= {"MOTORS": len(robot.actuated_joint_names)}
    if builder.measured:
        sizes["MEASURED"] = len(builder.measured.names)
    if builder.joints:
        sizes["JOINTS"] = len(builder.joints.names)
    sizes |= {"BODIES": len(robot.spanning_tree.bodies), "LINKS": len(robot.spanning_tree.links)}
    sizes |= {"MAX_EVALUATIONS": builder.evaluations}
    top = [
        f"{robot.name}: written by rbda_ros export-c.",
        "",
        "Functions allocate nothing, lock nothing and keep no state but in the workspace, which the"
        " caller owns: one for each thread. They return a status, and write outputs only where it"
        f" is {upper}_OK. Arrays of one call must not overlap; matrices are stored row by row.",
        f"A workspace has {_workspace_size(builder)} bytes; work arrays on"
        f" the stack have {bits * _largest_work(builder)} bytes at most, beside locals of the"
        f" compiler's. {_closing_bound(builder)}",
        "Compile with -ffp-contract=off for the same bits as Python's (see docs/real_time.md).",
        "",
        f"Positions q: {_entries(_position_names(robot))}.",
        f"Coordinates of velocities: {_entries(robot.coordinate_names)}.",
        "Independent coordinates y: "
        + _entries([robot.coordinate_names[i] for i in robot.independent_coordinates])
        + ".",
        f"Motors: {_entries(robot.actuated_joint_names)}.",
    ]
    for title, space in (("Measured joints", builder.measured), ("Joints", builder.joints)):
        top += [f"{title}: {_entries(space.names)}."] if space else []
    lines = [*comment(top), f"#ifndef {guard}", f"#define {guard}", ""]
    lines += ["#include <stdbool.h>", "#include <stddef.h>", "#include <stdint.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [f"typedef {real} {name}_real;", ""]
    lines += [f"#define {upper}_{key} {value}" for key, value in sizes.items()]
    codes = [f"  {upper}_{code}," for code in STATUS]
    lines += ["", "typedef enum {", *codes, f"  {upper}_STATUS_COUNT", f"}} {name}_status;"]
    lines += [f"extern const char *const {name}_status_texts[{upper}_STATUS_COUNT];"]
    for kind, size in _name_tables(builder):
        lines.append(f"extern const char *const {name}_{kind}_names[{max(size, 1)}];")
    lines += [
        "/* A closed position to start from. */",
        f"extern const {name}_real {name}_assembly[{upper}_NQ + 1];",
        "/* Of the description; INFINITY where there is none. */",
        f"extern const {name}_real {name}_effort_limits[{upper}_MOTORS + 1];",
        "",
        "typedef struct {",
        f"  {name}_real q[{upper}_NQ + 1];         /* measured position that was closed last */",
        f"  {name}_real command_q[{upper}_NQ + 1]; /* commanded position that was closed last */",
        f"  {name}_real max_condition_number; /* from which on a loop is at a dead point */",
        f"  {name}_real residual, conditioning; /* of the loops, in the last call */",
        "  int limited;     /* efforts that the last call cut off at their limits */",
        "  int evaluations; /* of a kernel that closes loops, in the last call */",
        "  int place;       /* entry of the argument, or of y, that is at fault; or -1 */",
        *([f"  {name}_real payload[10]; /* from set_payload */"] if builder.load else []),
        f"  {name}_real memory[{builder.memory}];",
        f"}} {name}_workspace;",
        "",
        "/* Both positions at the assembly. */",
        f"void {name}_init({name}_workspace *w);",
        "/* Both positions at q (NQ), which is checked. */",
        f"{name}_status {name}_start_from({name}_workspace *w, const {name}_real *q);",
        "/* Add a wrench on a link (6: force, then moment, in its frame at its origin [N, N m]) to",
        f"   those on the bodies (6 {upper}_BODIES), which are zero at first. */",
        f"void {name}_add_wrench(int link, const {name}_real *wrench, {name}_real *wrenches);",
        "",
        *builder.header,
    ]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""])


def _name_tables(builder: Builder) -> list[tuple[str, int]]:
    robot = builder.robot
    tables = [("coordinate", robot.nv), ("motor", len(robot.actuated_joint_names))]
    tables += [("measured", len(builder.measured.names))] if builder.measured else []
    tables += [("joint", len(builder.joints.names))] if builder.joints else []
    return [*tables, ("link", len(robot.spanning_tree.links))]


def _source(builder: Builder) -> str:
    robot, name, upper = builder.robot, builder.name, builder.upper
    lines = [f'#include "{name}.h"', "", "#include <float.h>", "#include <math.h>"]
    lines += ["#include <string.h>", "", *RESTRICT, ""]
    lines += ["#if defined(__clang__)", '#pragma clang diagnostic ignored "-Wunused-function"']
    lines += ["#endif", ""]
    lines += [f"#define {upper}_{key} {literal(value)}" for key, value in _tolerances(builder)]
    curved = np.flatnonzero(robot.tree.curved).tolist()
    counts = {"CURVES": len(curved), "QUATERNIONS": len(robot._inputs.quaternions)}
    if robot.has_loops:
        rows, loops = builder.kernel("loop_state").program.outputs
        counts |= {"LOOP_ROWS": rows.size, "LOOPS": loops.size}
    counts |= builder.counts
    if "closure" in builder.uses:
        counts["PARTS"] = len(tolerances.KERNEL_PARTS)
    if "stream" in builder.uses:
        counts["STREAM_PARTS"] = len(tolerances.STREAM_PARTS)
        counts["STREAM_REPEATS"] = tolerances.STREAM_REPEATS
        counts |= {"BASE_NQ": robot.coordinates.base_nq, "BASE_NV": robot.coordinates.base_nv}
    if builder.load is not None:
        counts["PAYLOAD"] = 1
    lines += [*(f"#define {upper}_{key} {value}" for key, value in counts.items()), ""]
    lines += [*map(shared_source, SHARED)]
    if "stream" in builder.uses:
        lines += [closing_source()]
    if "observer" in builder.uses:
        lines += [shared_source("observer_step.h")]
    if "branches" in builder.uses:
        lines += [shared_source("branch_solver.h")]
    if builder.load is not None:
        lines += [shared_source("payload.h")]
    lines += _tables(builder, curved)
    if builder.real == "float":
        lines += [
            f"static inline void {name}_sincos(double x, double *sine, double *cosine)",
            "{",
            "  *sine = sin(x);",
            "  *cosine = cos(x);",
            "}",
            "",
        ]
    else:
        lines += sincos_in_c(f"{name}_sincos")
    for key, plan in builder.plans.items():
        lines += function_source(plan, key, f"{name}_sincos", static=True)
    for key, plan in builder.public.items():
        lines += function_source(plan, key, f"{name}_sincos")
    lines += [*builder.tables.values(), ""]
    files = [f"{use}.c" for use in OF_FUNCTIONS if use in builder.uses]
    lines += [named_source(name, file) for file in ("runtime.c", *files)]
    return "\n".join([*lines, *builder.source, ""])


def _tolerances(builder: Builder) -> list[tuple[str, float]]:
    double = {
        "PRECISE": tolerances.PRECISE,
        "CLOSED": tolerances.CLOSED,
        "NEARBY": tolerances.NEARBY,
        "ON_LOOPS": builder.robot.tree.on_loops,
        "SINGULAR_LOOP": tolerances.SINGULAR,
        "LARGEST_POSITION": LARGEST_POSITION,
        "LARGEST": LARGEST,
        "LEFT_OVER": CANNOT_GIVE,
        "MAX_CONDITION": MAX_CONDITION,
        "QUATERNION_TOLERANCE": QUATERNION_TOLERANCE,
        "UNIT": UNIT,
    }
    return list((double | SINGLE if builder.real == "float" else double).items())


def _tables(builder: Builder, curved: Sequence[int]) -> list[str]:
    robot, name, upper = builder.robot, builder.name, builder.upper
    names = {
        "coordinate": robot.coordinate_names,
        "motor": robot.actuated_joint_names,
        "measured": builder.measured.names if builder.measured else (),
        "joint": builder.joints.names if builder.joints else (),
        "link": tuple(robot.spanning_tree.links),
    }
    lines = [
        f"const char *const {name}_status_texts[{upper}_STATUS_COUNT] = {{",
        *(f"    {_string(text)}," for text in STATUS.values()),
        "};",
    ]
    for kind, size in _name_tables(builder):
        lines.append(f"const char *const {name}_{kind}_names[{max(size, 1)}] = {{")
        lines += [*(f"    {_string(each)}," for each in names[kind] or ("",)), "};"]
    efforts = robot.limits.effort[list(robot.actuated_coordinates)]
    numbers = {"assembly": robot.neutral().tolist(), "effort_limits": efforts.tolist()}
    for kind, values in numbers.items():
        lines.append(f"const double {name}_{kind}[] = {{")
        lines += [*(f"    {literal(float(value))}," for value in (*values, 0.0)), "};"]
    lines += [f"static const double {name}_links[][LINK_NUMBERS] = {{"]
    for row in link_numbers(robot.spanning_tree).tolist():
        lines.append(f"    {{{', '.join(map(literal, row))}}},")
    lines += ["};"]
    indices: dict[str, Sequence[int]] = {"quaternions": robot._inputs.quaternions}
    if "closure" in builder.uses:
        indices |= {"curved": curved, "parts": tolerances.KERNEL_PARTS}
    if "stream" in builder.uses:
        indices["stream_parts"] = tolerances.STREAM_PARTS
    for kind, numbers_of in indices.items():
        text = ", ".join(map(str, numbers_of)) or "0"
        lines.append(f"static const ptrdiff_t {name}_{kind}[] = {{{text}}};")
    return [*lines, ""]


def _position_names(robot: Robot) -> list[str]:
    names: list[str] = []
    for body in robot.spanning_tree.bodies:
        size, joint = body.model.nq, body.joint.name
        if body.joint.type == "floating":
            names += [f"{joint} {part}" for part in ("x", "y", "z", "qx", "qy", "qz", "qw")]
        else:
            names += [joint] if size == 1 else [f"{joint} {i}" for i in range(size)]
    return names


def _entries(names: Sequence[str]) -> str:
    return ", ".join(f"[{i}] {name}" for i, name in enumerate(names)) or "none"


def _string(text: str) -> str:
    """A C string: every byte that is not plain is written as an octal number."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{plain}"'

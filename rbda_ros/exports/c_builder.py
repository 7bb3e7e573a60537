"""Parts of exported C: kernels, memory, declarations, definitions, and shared sources.

Beside them, which joints the arrays of functions are for, the build file and the example.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rbda_ros.errors import InputError
from rbda_ros.kernels.export import comment
from rbda_ros.kernels.plan import Plan, make_plan
from rbda_ros.kernels.program import LIBRARY, Program, read_program
from rbda_ros.kernels.registry import REGISTRY
from rbda_ros.kernels.trace import Load
from rbda_ros.robot.joint_choices import Measured
from rbda_ros.robot.robot import Robot


@dataclass(frozen=True)
class JointSpace:
    """Joints of one coordinate each that determine the robot, apart from a floating base.

    Attributes:
        names: in the order of arrays.
        entries: of q.
        coordinates: of qd.
    """

    names: tuple[str, ...]
    entries: tuple[int, ...]
    coordinates: tuple[int, ...]


def joint_space(robot: Robot, what: str, names: Sequence[str]) -> JointSpace:
    """The joints of these names, in their order.

    Raises:
        InputError: unknown names, joints that do not determine the others just so, or loops that
            no Newton steps close from them.
    """
    places = robot.coordinates
    parts = [name for name in names if name.rpartition(".")[0] in places.velocities]
    if several := [name for name in parts if name not in places.scalar_positions]:
        raise InputError(
            f"{what}: {', '.join(several)} is part of a joint with several coordinates; name joints"
            " of one coordinate each that determine the others"
        )
    found = _determining(robot, names)
    if len(set(names)) < len(names) or len(found.joints) < len(names):
        raise InputError(
            f"{what}: {', '.join(names)} are more than determine {robot.name}; name"
            f" {', '.join(found.joints)}"
        )
    return JointSpace(
        tuple(names),
        tuple(places.scalar_positions[name] for name in names),
        tuple(places.velocities[name].start for name in names),
    )


def measured_space(robot: Robot, names: Sequence[str] | None) -> JointSpace:
    """The measured joints; the motors unless they are named, or where motors do not determine y."""
    if names is not None:
        return joint_space(robot, "measured", names)
    return _first(robot, "measured", robot.actuated_joint_names, robot.independent_joint_names)


def commanded_space(robot: Robot, names: Sequence[str] | None) -> JointSpace:
    """The joints of commands: those that are no motors, if they determine the robot."""
    if names is not None:
        return joint_space(robot, "joints", names)
    motors = set(robot.actuated_joint_names)
    passive = [name for name in robot.independent_joint_names if name not in motors]
    return _first(robot, "joints", passive, _driven(robot), robot.independent_joint_names)


def _driven(robot: Robot) -> list[str]:
    """Joints that a user would command: in every loop the last that determine it."""
    motors = set(robot.actuated_joint_names)
    names: list[str] = []
    for node in robot.cluster_nodes:
        joints = [
            body.joint.name
            for body in node.bodies
            if body.joint.name in robot.coordinates.scalar_positions
        ]
        passive = [joint for joint in joints if joint not in motors]
        names += passive[: node.ny] if node.loop is not None else joints
    return names


def _first(robot: Robot, what: str, *candidates: Sequence[str]) -> JointSpace:
    for names in candidates[:-1]:
        try:
            return joint_space(robot, what, names)
        except InputError:
            continue
    return joint_space(robot, what, candidates[-1])


def _determining(robot: Robot, names: Sequence[str]) -> Measured:
    found = robot._inputs.choices.measured("position", names)
    if found.positions is None:
        raise InputError(
            f"no Newton steps close the loops of {robot.name} from {', '.join(found.joints)}; name"
            " joints of one coordinate each"
        )
    return found


PAYLOAD = "payload"
"""The input of kernels, and the array of the workspace, that has a payload's ten parameters."""
_CMAKE = """\
# Written by rbda_ros export-c. Add it with add_subdirectory, and link to {name}.
cmake_minimum_required(VERSION 3.10)
project({name} LANGUAGES C)
include(CheckCCompilerFlag)
add_library({name} STATIC {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES C_STANDARD 99 POSITION_INDEPENDENT_CODE ON)
target_compile_options({name} PRIVATE -O2 -ffp-contract=off)
# Every x86 processor since 2013 fuses where the source says fma(); without it that is a call.
option({upper}_FMA "Use the processor's fused multiply-add" ON)
check_c_compiler_flag(-mfma {upper}_HAS_FMA)
if({upper}_FMA AND {upper}_HAS_FMA)
  target_compile_options({name} PRIVATE -mfma)
endif()
target_link_libraries({name} PUBLIC m)

add_executable({name}_example EXCLUDE_FROM_ALL example.c)
target_link_libraries({name}_example PRIVATE {name})
"""


class Parameter(NamedTuple):
    """An array that a function takes or gives.

    Attributes:
        name: in C.
        size: how many numbers, or an expression of macros that is.
        meaning: for the header.
        output: whether the function writes it.
        optional: whether it may be NULL.
    """

    name: str
    size: int | str
    meaning: str
    output: bool = False
    optional: bool = False


class KernelCode(NamedTuple):
    """A kernel as a static C function.

    Attributes:
        function: its name in C.
        program: what it computes.
    """

    function: str
    program: Program

    @property
    def takes_payload(self) -> bool:
        """Whether its last input is a payload."""
        return self.program.inputs[-1].name == PAYLOAD


@dataclass
class Builder:
    """Collects the parts of a C library.

    Attributes:
        robot: whose library it is.
        name: what every public name begins with.
        real: "double", or "float".
        load: the link whose payload functions take from the workspace; None for none.
        measured, joints: whose arrays are called so in the header.
        plans: of the static kernels, by their C names.
        public: of the kernels that are functions themselves.
        tables: definitions of constant arrays, by name.
        header: declarations, in their order.
        source: definitions, in their order.
        memory: how many numbers a workspace needs.
        uses: parts of the shared sources that some function needs.
        counts: macros of these sources, without the library's name.
        evaluations: most evaluations of a closing kernel in one call.
    """

    robot: Robot
    name: str
    real: str
    load: Load | None = None
    measured: JointSpace | None = None
    joints: JointSpace | None = None
    plans: dict[str, Plan] = field(default_factory=dict)
    public: dict[str, Plan] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    header: list[str] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    memory: int = 1
    uses: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    evaluations: int = 1

    @property
    def upper(self) -> str:
        """Prefix of every macro."""
        return self.name.upper()

    def kernel(self, name: str, *options: Hashable, label: str = "") -> KernelCode:
        """A kernel of the robot, which becomes a static function.

        Args:
            name: one of `REGISTRY`.
            options: of the kernel.
            label: what its C name ends with, where there are several of this name.
        """
        function = f"{self.name}_kernel_{name}{label}"
        if function not in self.plans:
            self.plans[function] = make_plan(self.program(name, *options))
        return KernelCode(function, self.plans[function].program)

    def program(self, name: str, *options: Hashable) -> Program:
        """The program of a kernel; where inertia matters, with the payload as its last input."""
        load = self.load if REGISTRY[name].sees_inertia else None
        return read_program(self.robot._kernels.function(name, *options, load=load))

    def function(
        self,
        name: str,
        about: Sequence[str],
        parameters: Sequence[Parameter],
        body: Sequence[str],
        scalars: Sequence[str] = (),
    ) -> None:
        """Add a public function that returns a status.

        Args:
            name: without the library's.
            about: lines of its comment.
            parameters: arrays, after the workspace and the scalars.
            body: statements.
            scalars: other parameters, as C.
        """
        signature = self.declare(name, about, parameters, scalars)
        self.source += [signature, "{", *(f"  {line}" if line else "" for line in body), "}", ""]

    def declare(
        self,
        name: str,
        about: Sequence[str],
        parameters: Sequence[Parameter],
        scalars: Sequence[str] = (),
    ) -> str:
        """Add the declaration of a public function, described as for `function`; its signature."""
        first = [f"{self.name}_workspace *w", *scalars]
        arrays = [
            f"{'' if each.output else 'const '}{self.name}_real *{each.name}" for each in parameters
        ]
        signature = f"{self.name}_status {self.name}_{name}({', '.join([*first, *arrays])})"
        sizes = [
            f"{each.name} ({each.size}, {'out' if each.output else 'in'}"
            f"{', or NULL' if each.optional else ''}): {each.meaning}"
            for each in parameters
        ]
        self.header += [*comment([*about, *sizes]), f"{signature};", ""]
        self.functions.append(name)
        return signature

    def indices(self, name: str, values: Sequence[int]) -> str:
        """A constant array of indices, before all functions that use it; its name."""
        full = f"{self.name}_{name}"
        lines = ", ".join(str(value) for value in values) or "0"
        self.tables[full] = f"static const ptrdiff_t {full}[] = {{{lines}}};"
        return full


class Memory:
    """Places in the workspace of one function: names of C pointers into it."""

    def __init__(self, builder: Builder) -> None:
        self._builder, self._used = builder, 0
        self.lines: list[str] = []

    def take(self, name: str, size: int) -> str:
        """A pointer to some numbers; its name."""
        self.lines.append(f"double *{name} = w->memory + {self._used};")
        self._used += size
        self._builder.memory = max(self._builder.memory, self._used)
        return name


_FUNCTIONS = "|".join(
    ("sqrt", "fabs", "floor", "ceil", "copysign", "fmin", "fmax", "fma", *LIBRARY)
)
_TYPE = re.compile(r"\bdouble\b")
_FUNCTION = re.compile(rf"\b({_FUNCTIONS})\(")
_LITERAL = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.])")
_STRING = re.compile(r'("(?:[^"\\]|\\.)*"|/\*.*?\*/)', re.DOTALL)
_TINY, _HUGE = 1.2e-38, 3.4e38


def as_float(text: str) -> str:
    """The same C with single precision; texts in quotes and comments stay."""
    parts = _STRING.split(text)
    return "".join(part if k % 2 else _converted(part) for k, part in enumerate(parts))


def _converted(text: str) -> str:
    text = text.replace("DBL_MAX", "FLT_MAX")
    text = _FUNCTION.sub(r"\1f(", _TYPE.sub("float", text))
    return _LITERAL.sub(lambda match: _literal(match[1]), text)


def _literal(text: str) -> str:
    value = float(text)
    if value > _HUGE:
        return "INFINITY"
    return "0.0f" if 0.0 < value < _TINY else f"{text}f"


_ENGINE = "continuation", "geometry", "loop_rules", "closing", "observer_step"
_PACKAGES = {**dict.fromkeys(_ENGINE, "engine"), "gate": "control"}
_INSTALLED = Path(__file__).parent / "sources"
_GUARD = re.compile(r"^#(ifndef|define|endif).*\n", re.MULTILINE)
_PARAMETERS = re.compile(r"/\* Parameters of the node.*?\n\n", re.DOTALL)
_INCLUDE = re.compile(r"^#include.*\n", re.MULTILINE)
_EXPORTED = re.compile(
    r"^(void|closing_result_t) (run_kernel|close_loops|judge_\w+)\(", re.MULTILINE
)
_PUBLIC = re.compile(r"\bgate_(t|rules_t|pass|hold|end|restart)\b")


def shared_source(file: str) -> str:
    """A source without its includes and its guard.

    Args:
        file: its name, such as ``closing.c``.
    """
    path = _INSTALLED / file
    if not path.exists():  # the package is imported from its sources
        path = Path(__file__).parents[1] / _PACKAGES[file.split(".")[0]] / file
    text = path.read_text(encoding="utf-8")
    if file.endswith(".h"):
        text = _GUARD.sub("", _PARAMETERS.sub("", text))
    return _INCLUDE.sub("", text).strip() + "\n"


def closing_source() -> str:
    """How loops are closed over and over: `closing.h` and `closing.c`, for one file alone."""
    text = shared_source("closing.h") + "\n" + shared_source("closing.c")
    return _EXPORTED.sub(r"static inline \1 \2(", text)


def named_source(name: str, file: str) -> str:
    """A source of `exports/sources` whose names begin with that of the library."""
    text = shared_source(file)
    return re.sub(r"\brobot_", f"{name}_", re.sub(r"\bROBOT_", f"{name.upper()}_", text))


def gate_source(name: str, file: str) -> str:
    """The gate's header or source, with names that begin with that of the library."""

    def renamed(match: re.Match[str]) -> str:
        return f"{name}_gate" + {"t": "", "rules_t": "_rules"}.get(match[1], f"_{match[1]}")

    return _PUBLIC.sub(renamed, shared_source(file))


def cmake_text(name: str) -> str:
    """A CMakeLists.txt of the library and its example."""
    return _CMAKE.format(name=name, upper=name.upper())


def example_text(builder: Builder) -> str:
    """A main program that calls the library as a controller would."""
    name, upper, robot = builder.name, builder.upper, builder.robot
    lines = [
        "/* How to call the library: one workspace, and a status that is looked at. */",
        f'#include "{name}.h"',
        "",
        "#include <stdio.h>",
        "",
        "int main(void)",
        "{",
        f"  static {name}_workspace w;",
        f"  {name}_init(&w);",
    ]
    if "feedforward" in builder.functions:
        assert builder.measured is not None
        base = [
            f"  const {name}_real base[7] = {{0, 0, 0, 0, 0, 0, 1}};",
            f"  const {name}_real still[6] = {{0}};",
        ]
        has_base = robot.coordinates.base_nq > 0
        lines += [
            *(base if has_base else []),
            f"  {name}_real position[{upper}_MEASURED + 1];",
            f"  {name}_real velocity[{upper}_MEASURED + 1] = {{0}};",
            f"  {name}_real acceleration[{upper}_NY + 1] = {{0}}, efforts[{upper}_MOTORS + 1];",
            *(
                f"  position[{k}] = {name}_assembly[{entry}]; /* {_plain(joint)} */"
                for k, (joint, entry) in enumerate(
                    zip(builder.measured.names, builder.measured.entries, strict=True)
                )
            ),
            f"  const {name}_status status = {name}_feedforward("
            f"&w, {'base, still, still, ' if has_base else ''}position, velocity, acceleration,",
            f"      {name}_effort_limits, efforts);",
            f"  if (status != {upper}_OK) {{",
            f'    fprintf(stderr, "%s\\n", {name}_status_texts[status]);',
            "    return 1;",
            "  }",
            f"  for (int k = 0; k < {upper}_MOTORS; k++)",
            f'    printf("%s: %g\\n", {name}_motor_names[k], (double)efforts[k]);',
        ]
    else:
        lines += [
            f"  const {name}_status status = {name}_start_from(&w, {name}_assembly);",
            f'  printf("%s\\n", {name}_status_texts[status]);',
        ]
    return "\n".join([*lines, "  return 0;", "}", ""])


def _plain(text: str) -> str:
    return "".join(each if each.isalnum() or each in "_-. " else "_" for each in text)

"""Targets of the fuzzer: each takes bytes, and raises only where our code is wrong."""

from __future__ import annotations

import math
import random
import struct
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
ROBOTS = ROOT / "config" / "robots"
MECHANISMS = ROOT / "test" / "mechanisms"
NUMBERS = (0.0, -0.0, 1.0, -1.5, 0.3, 1e-320, 1e12, 1e15, 1e200, 1e308, math.nan, math.inf)
WORDS = ("", "knee", "hip_flexion", "foot", "knee_rotor", "no such", "x" * 5000, "a\nb", "é\0")
MJCF = """<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0"/>
<geom type="capsule" size="0.02 0.1" mass="1"/><body name="b" pos="0 0 0.2">
<joint name="k" armature="0.01" range="-1 1"/><geom size="0.05" mass="0.5"/></body></body>
</worldbody><equality><joint joint1="j" joint2="k" polycoef="0 2 0 0 0"/></equality></mujoco>"""

_BODY = """prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{
 float physics:mass = {mass}
 point3f physics:centerOfMass = (0.1, 0, 0.02)
 float3 physics:diagonalInertia = (0.1, 0.2, 0.2)
 quatf physics:principalAxes = (1, 0, 0, 0)
 double3 xformOp:translate = ({x}, 0, 0)
 uniform token[] xformOpOrder = ["xformOp:translate"]
}}"""
_BETWEEN = """
 rel physics:body0 = </r/{0}>
 rel physics:body1 = </r/{1}>
 point3f physics:localPos0 = ({2}, 0, 0)
 point3f physics:localPos1 = ({3}, 0, 0)
 quatf physics:localRot0 = (1, 0, 0, 0)
 quatf physics:localRot1 = (1, 0, 0, 0)
"""
USD = f"""#usda 1.0
(
    defaultPrim = "r"
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "r" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {{
def Xform "a" ({_BODY.format(mass=1.5, x=0)}
def Xform "b" ({_BODY.format(mass=0.5, x=1)}
def Xform "c" ({_BODY.format(mass=0.7, x=1.5)}
def PhysicsFixedJoint "base" {{
 rel physics:body1 = </r/a>
}}
def PhysicsRevoluteJoint "hip" (prepend apiSchemas = ["PhysicsDriveAPI:angular"]) {{
 uniform token physics:axis = "Y"
 float physics:lowerLimit = -90
 float physics:upperLimit = 90
 float drive:angular:physics:maxForce = 7{_BETWEEN.format("a", "b", 1, 0)}}}
def PhysicsPrismaticJoint "slide" {{
 uniform token physics:axis = "X"{_BETWEEN.format("b", "c", 0.5, 0)}}}
def PhysicsSphericalJoint "ball" {{
 bool physics:excludeFromArticulation = 1{_BETWEEN.format("a", "c", 1.5, 0)}}}
}}
"""

GEPETTO = """closed_loop: [[foot, shank], [thigh, foot]]
type: [6d, 3d]
name_mot: [knee, ankle]
joint_name: [knee]
joint_type: [SPHERICAL]
"""
_ENDS = (
    "<link1 link='coupler_link' xyz='0.28 0 0.01'/><link2 link='rocker_link' xyz='0.22 0 0.03'/>"
)
_BODIES = (
    "<parent link='coupler_link'/><parent_origin xyz='0.28 0 0.01'/><parent_axis xyz='0 0 1'/>"
    "<child link='rocker_link'/><child_origin xyz='0.22 0 0.03'/><child_axis xyz='0 0 1'/>"
)
LOOP_ELEMENTS = (
    f"<loop_joint name='pin' type='spherical'>{_ENDS}</loop_joint>",
    f"<constraint name='pin' type='revolute'>{_BODIES}</constraint>",
    "<gazebo><joint name='pin' type='ball'><parent>coupler_link</parent><child>rocker_link</child>"
    "<pose>0.22 0 0.03 0 0 0</pose></joint></gazebo>",
    "<drake:ball_constraint><drake:ball_constraint_body_A name='coupler_link'/>"
    "<drake:ball_constraint_p_AP value='0.28 0 0.01'/>"
    "<drake:ball_constraint_body_B name='rocker_link'/>"
    "<drake:ball_constraint_p_BQ value='0.22 0 0.03'/></drake:ball_constraint>",
    "<ros2_control name='s' type='system'><joint name='crank'><command_interface name='effort'/>"
    "</joint></ros2_control>",
)

XACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="mass" default="1.5"/><xacro:property name="half" value="${0.2 / 2}"/>
<xacro:macro name="bar" params="name parent:=base length *axis">
<link name="${name}_link"><inertial><origin xyz="${length / 2} 0 0"/><mass value="$(arg mass)"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="${0.1 + length**2}" iyz="0" izz="0.2"/></inertial></link>
<joint name="${name}" type="revolute"><parent link="${parent}_link"/><child link="${name}_link"/>
<origin xyz="0 ${half} 0"/><xacro:insert_block name="axis"/>
<limit lower="${-pi / 2}" upper="${radians(90)}" effort="5" velocity="3"/></joint></xacro:macro>
<link name="base_link"/><xacro:bar name="hip" length="0.3"><axis xyz="0 1 0"/></xacro:bar>
<xacro:if value="${half &gt; 0}"><xacro:bar name="knee" parent="hip" length="${half}">
<axis xyz="0 0 1"/></xacro:bar></xacro:if>
<xacro:unless value="true"><link name="no"/></xacro:unless></robot>"""

ASSEMBLED = ("four_bar", "gear", "universal_cut", "ball_rod")
"""Mechanisms whose loop files are changed before they are assembled."""
UNLIMITED = ("DescribeModel", "DescribeActuation")
"""Services whose responses may say infinity, where there is no limit; never NaN."""


class WrongError(AssertionError):
    """An answer that must not be."""


def description(data: bytes) -> None:
    """A URDF, MJCF or SDF: read, or refused with every problem named."""
    _read(data.decode("utf-8", "surrogateescape"), None)


def loops(data: bytes) -> None:
    """A loop file for the demo leg."""
    _read(_leg_text(), data.decode("utf-8", "surrogateescape") + "\n")


def assembly(data: bytes) -> None:
    """A loop file for the mechanism that its first byte chooses: assembled, or refused."""
    from rbda_ros import load_robot
    from rbda_ros.errors import DescriptionError

    mechanism = ASSEMBLED[data[0] % len(ASSEMBLED)] if data else ASSEMBLED[0]
    text = data[1:].decode("utf-8", "surrogateescape") + "\n"
    try:
        robot = load_robot(MECHANISMS / f"{mechanism}.urdf", text)
    except DescriptionError as error:
        _check_readable(error)
        return
    # A position that is off the loops, or singular, is an error here.
    force = robot.inverse_dynamics(robot.neutral(), np.zeros(robot.ny), np.zeros(robot.ny))
    if not np.isfinite(force).all():
        raise WrongError(f"forces {force}")


def xacro(data: bytes) -> None:
    """A file that uses xacro: expanded and read, or refused with every problem named."""
    with tempfile.NamedTemporaryFile(suffix=".urdf.xacro") as file:
        file.write(data)
        file.flush()
        _read(Path(file.name), None)


def expression(data: bytes) -> None:
    """The equation of a constraint."""
    equation = data.decode("utf-8", "surrogateescape")
    constraint = {"name": "c", "type": "expression", "equation": equation}
    _read(_leg_text(), {"constraints": [constraint]})


def usd(data: bytes) -> None:
    """A USD file, as text: read, or refused with every problem named."""
    with tempfile.NamedTemporaryFile(suffix=".usda") as file:
        file.write(data)
        file.flush()
        _read(Path(file.name), None)


def _read(text: str | Path, loops: Any) -> None:
    from rbda_ros.description import read_description
    from rbda_ros.errors import DescriptionError

    try:
        read_description(text, loops)
    except DescriptionError as error:
        _check_readable(error)


def _check_readable(error: Any) -> None:
    if not error.problems or not all(str(problem).isprintable() for problem in error.problems):
        raise WrongError("a refusal that cannot be read") from error


@cache
def _leg_text() -> str:
    return (ROBOTS / "demo_leg.urdf").read_text()


@cache
def _leg() -> Any:
    from rbda_ros import load_robot

    return load_robot(ROBOTS / "demo_leg.urdf", ROBOTS / "demo_leg_loops.yaml")


def joint_states(data: bytes) -> None:
    """Bytes on any topic of the state machine: finite efforts, or none. The first byte chooses."""
    from rbda_ros.control import native
    from rbda_ros.control.topics import Input, Output

    machine = _machine()
    topic, message = (data[0] % len(Input), data[1:]) if data else (0, data)
    for sent, answer in machine.feed(Input(topic), message, 0):
        if sent in (Output.FEEDFORWARD, Output.MOTOR_COMMANDS):
            *_, efforts = native.read_joint_state(answer)
            if not all(map(math.isfinite, struct.unpack(f"<{len(efforts) // 8}d", efforts))):
                raise WrongError(f"efforts of {sent.name}")
    machine.collect()  # as diagnostics do
    _ = machine.rejections.last_message


_kept: dict[str, Any] = {}


def _machine() -> Any:
    from rbda_ros.control.settings import Settings
    from rbda_ros.control.stream import Stream

    if "machine" not in _kept:
        _kept["machine"] = Stream()
        _kept["machine"].use(_leg(), Settings(joint_state_timeout=0.0, stiffness="{knee: 1.0}"))
    return _kept["machine"]


def stream(data: bytes) -> None:
    """Bytes on any topic of a running node."""
    from tools.hardening.fuzz_stream import StreamFuzz

    if "stream" not in _kept:
        _kept["stream"] = StreamFuzz()
    _kept["stream"].say(data)


def close() -> None:
    """End what targets have started."""
    if "stream" in _kept:
        _kept.pop("stream").close()


def requests(data: bytes) -> None:
    """A request of any service: a response that says no, or has finite numbers."""
    rng = random.Random(data)
    kind, answer = rng.choice(_services())
    check_response(kind, answer(random_message(kind.Request, rng), kind.Response()))


def check_response(kind: Any, response: Any) -> None:
    """Raise WrongError unless it says no, or has finite numbers."""
    if response.message.startswith("internal error"):
        raise WrongError(f"{kind.__name__}: {response.message}")
    allowed = math.inf if kind.__name__ in UNLIMITED else sys.float_info.max
    if response.success and not within(response, allowed):
        raise WrongError(f"{kind.__name__}: numbers that are not finite")


@cache
def _services() -> list[tuple[Any, Any]]:
    from rbda_ros import srv
    from rbda_ros.node.parameters import Settings
    from rbda_ros.node.services import advertise as a

    quiet = SimpleNamespace(error=lambda *_, **__: None)
    node = SimpleNamespace(
        robot=_leg(),
        active=True,
        settings=Settings(),
        stream=SimpleNamespace(latest_state=_latest),
        get_logger=lambda: quiet,
    )
    needs_a_node = {srv.SetPayload, srv.IdentifyPayload}
    return [(s.kind, a.answering(node, s)) for s in a.SERVICES if s.kind not in needs_a_node]


def _latest(robot: Any) -> Any:
    """The latest state, for requests with an empty one: the robot at rest."""
    from rbda_ros.control.stream import LastState

    names = robot.independent_joint_names
    return LastState(0, robot.neutral(), np.zeros(robot.ny), np.zeros(0), names)


def random_message(kind: Any, rng: random.Random) -> Any:
    """A message with fields of all sorts, mostly of sizes that fit the leg."""
    message = kind()
    for field, form in kind.get_fields_and_field_types().items():
        if rng.random() < 0.3:
            continue
        value = getattr(message, field)
        if form.startswith("sequence<"):
            inner = form[9:-1].split(",")[0]
            count = rng.choice((0, 1, 2, 4, 4, 4, 5))
            setattr(message, field, [_value(inner, rng) for _ in range(count)])
        elif "/" in form:
            setattr(message, field, random_message(type(value), rng))
        else:
            setattr(message, field, _value(form, rng))
    return message


def _value(form: str, rng: random.Random) -> Any:
    if form in ("double", "float"):
        return rng.choice(NUMBERS) if rng.random() < 0.2 else rng.gauss(0.0, 0.5)
    if form == "boolean":
        return rng.random() < 0.5
    if form == "string":
        names = (*_leg().joint_names, *_leg().tree.spanning.links)
        return rng.choice(WORDS) if rng.random() < 0.2 else rng.choice(names)
    if "/" not in form:
        return rng.randrange(0, 100)  # integers
    package, name = form.split("/")
    module = __import__(f"{package}.msg", fromlist=[name])
    return random_message(getattr(module, name), rng)


def within(message: Any, largest: float) -> bool:
    """Whether no number of a message is larger than that, nor NaN."""
    if isinstance(message, float):
        return abs(message) <= largest
    if hasattr(message, "get_fields_and_field_types"):
        fields = message.get_fields_and_field_types()
        return all(within(getattr(message, field), largest) for field in fields)
    if isinstance(message, str | bytes | int):
        return True
    return all(within(each, largest) for each in message)


def seeds(name: str) -> list[bytes]:
    """Good inputs of a target, to begin from."""
    if name == "urdf":
        files = (*ROBOTS.glob("*.urdf"), *MECHANISMS.glob("*.urdf"))
        open_bars = (MECHANISMS / "four_bar.urdf").read_text()
        closed = [open_bars.replace("</robot>", f"{each}</robot>") for each in LOOP_ELEMENTS]
        return [*(path.read_bytes() for path in files), *map(str.encode, closed)]
    if name == "loops":
        files = (*ROBOTS.glob("*.yaml"), *MECHANISMS.glob("*.yaml"))
        return [*(path.read_bytes() for path in files), GEPETTO.encode()]
    if name == "assembly":
        files = [MECHANISMS / f"{mechanism}.yaml" for mechanism in ASSEMBLED]
        return [bytes([k]) + path.read_bytes() for k, path in enumerate(files)]
    if name == "xacro":
        return [XACRO.encode()]
    if name == "mjcf":
        return [MJCF.encode()]
    if name == "sdf":
        return _written_as_sdf("four_bar", "gear", "universal_cut")
    if name == "usd":
        return [USD.encode()]
    if name == "expression":
        texts = ("knee - 2*ankle", "sin(knee)^2 + `hip_flexion`/3 - 1e-3", "sqrt(abs(knee))-exp(1)")
        return [text.encode() for text in texts]
    if name == "joint_states":
        return _good_states()
    if name == "stream":
        from tools.hardening.fuzz_stream import good_messages

        return [*_good_states(), *good_messages()]
    return [bytes([k]) for k in range(32)]


def _written_as_sdf(*mechanisms: str) -> list[bytes]:
    from sdf_writer import SdfWriter

    from rbda_ros import load_robot

    files = [MECHANISMS / name for name in mechanisms]
    robots = [load_robot(file.with_suffix(".urdf"), file.with_suffix(".yaml")) for file in files]
    return [SdfWriter(robot).text.encode() for robot in robots]


def _good_states() -> list[bytes]:
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState

    robot = _leg()
    found = []
    for names in (robot.independent_joint_names, robot.joint_names, robot.actuated_joint_names):
        zeros = [0.1] * len(names)
        found.append(JointState(name=list(names), position=zeros, velocity=zeros, effort=zeros))
    return [serialize_message(message) for message in found]


TARGETS: dict[str, Callable[[bytes], None]] = {
    "urdf": description,
    "mjcf": description,
    "sdf": description,
    "usd": usd,
    "xacro": xacro,
    "loops": loops,
    "assembly": assembly,
    "expression": expression,
    "joint_states": joint_states,
    "stream": stream,
    "requests": requests,
}

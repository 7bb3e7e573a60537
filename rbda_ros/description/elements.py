"""Every element and attribute of each XML format, and how it is treated.

Nothing is dropped silently.

Each line has the path of an element, or of several elements with the same parent, then their
attributes. The first attributes are read. For those after ``warned`` the reader gives a warning if
they have an effect; those after ``ignored`` do not concern dynamics. ``ELEMENT: ignored`` means the
element and all inside it, ``ELEMENT: left out`` that it is left out with a warning. An element or
attribute that no line has causes a warning. The documentation prints these tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from lxml import etree

from rbda_ros.description.report import Report
from rbda_ros.description.xml_text import line, local_name

URDF = """
robot: name; ignored version type
robot/link: name; ignored type
robot/link/inertial:
robot/link/inertial/origin: xyz rpy
robot/link/inertial/mass: value
robot/link/inertial/inertia: ixx ixy ixz iyy iyz izz
robot/link/visual collision collision_checking self_collision_checking contact verbose
  drake:visual: ignored
robot/link/drake:surface_velocity_axis: left out
robot/joint: name type independent; ignored filename
robot/joint/parent child: link
robot/joint/origin: xyz rpy
robot/joint/axis: xyz
robot/joint/limit: lower upper effort velocity; ignored acceleration deceleration jerk
  drake:acceleration
robot/joint/dynamics: damping friction; ignored coulomb_window D K mu_coulomb mu_viscous
robot/joint/mimic: joint multiplier offset
robot/joint/safety_controller calibration hardwareInterface: ignored
robot/joint/actuator: left out
robot/transmission: name type
robot/transmission/type plugin:
robot/transmission/joint: name; ignored role reduction
robot/transmission/joint/*: value name
robot/transmission/actuator: name; ignored role type
robot/transmission/actuator/*: value name
robot/transmission/*: value name
robot/ros2_control: ignored name type rw_rate is_async thread_priority
robot/ros2_control/hardware sensor gpio: ignored
robot/ros2_control/joint: name; ignored mimic
robot/ros2_control/joint/command_interface: ignored name data_type size
robot/ros2_control/joint/command_interface/*: ignored
robot/ros2_control/joint/state_interface param limits properties: ignored
robot/ros2_control/transmission: name
robot/ros2_control/transmission/plugin:
robot/ros2_control/transmission/joint: name; ignored role
robot/ros2_control/transmission/joint/*: value name
robot/ros2_control/transmission/actuator: name; ignored role
robot/ros2_control/transmission/actuator/*: value name
robot/gazebo: reference
robot/gazebo/joint: name type
robot/gazebo/gravity turnGravityOff:
robot/gazebo/springStiffness springReference dampingFactor velocity_decay static link model
  include frame inertial dynamics axis gripper: left out
robot/gazebo/plugin sensor material visual collision light mu mu1 mu2 kp kd fdir1 maxVel minDepth
  maxContacts selfCollide self_collide laserRetro dynamicFriction staticFriction surface
  provideFeedback implicitSpringDamper cfmDamping fudgeFactor stopCfm stopErp stopKp stopKd
  disableFixedJointLumping preserveFixedJoint disable_fixed_joint_lumping enable_wind
  allow_auto_disable physics: ignored
robot/material sensor group sensors: ignored
robot/frame: name link xyz rpy
robot/self_collide mujoco isaac_sim: ignored
robot/loop: name type
robot/loop/predecessor: link
robot/loop/predecessor/origin: xyz rpy
robot/loop/successor: link
robot/loop/successor/origin: xyz rpy
robot/loop/axis: xyz
robot/coupling: name
robot/coupling/predecessor successor: link
robot/coupling/ratio: value
robot/constraint: name type
robot/constraint/parent: link
robot/constraint/parent_origin: xyz rpy
robot/constraint/parent_axis: xyz
robot/constraint/child: link
robot/constraint/child_origin: xyz rpy
robot/constraint/child_axis axis: xyz
robot/constraint/limit dynamics: left out
robot/loop_joint: name type
robot/loop_joint/link1 link2: link xyz rpy
robot/loop_joint/parent: link
robot/loop_joint/parent_origin: xyz rpy
robot/loop_joint/parent_axis: xyz
robot/loop_joint/child: link
robot/loop_joint/child_origin: xyz rpy
robot/loop_joint/child_axis axis: xyz
robot/drake:joint: name type
robot/drake:joint/parent child: link
robot/drake:joint/origin: xyz rpy
robot/drake:joint/axis: xyz
robot/drake:joint/limit: lower upper effort velocity
robot/drake:joint/dynamics: damping friction
robot/drake:joint/drake:screw_thread_pitch: value
robot/drake:ball_constraint:
robot/drake:ball_constraint/*: name value
robot/drake:distance_constraint:
robot/drake:distance_constraint/*: name value
robot/drake:tendon_constraint:
robot/drake:tendon_constraint/*: name value a
robot/drake:linear_bushing_rpy:
robot/drake:linear_bushing_rpy/*: name value
robot/drake:linear_spring_damper: left out
robot/drake:collision_filter_group: ignored
"""

SDF = """
sdf: version
sdf/model: name canonical_link placement_frame; ignored namespace
sdf/world: name
sdf/world/model: name canonical_link placement_frame; ignored namespace
sdf/world/gravity: warned
sdf/world/joint include frame: left out
sdf/world/wind physics scene light gui audio plugin road spherical_coordinates atmosphere
  magnetic_field: ignored
sdf/world/actor state population: left out
sdf/light actor: ignored
model/static:
model/pose: relative_to rotation_format degrees; warned frame
model/self_collide allow_auto_disable enable_wind: ignored
model/gripper: left out
model/plugin: ignored
model/model_state: left out
model/frame: name attached_to
model/frame/pose: relative_to rotation_format degrees; warned frame
model/include: merge
model/include/*: ignored
model/drake:ball_constraint:
model/drake:ball_constraint/*:
model/drake:distance_constraint:
model/drake:distance_constraint/*:
model/drake:tendon_constraint:
model/drake:tendon_constraint/*: name a
model/drake:linear_bushing_rpy:
model/drake:linear_bushing_rpy/*:
model/drake:linear_spring_damper drake:joint: left out
model/drake:collision_filter_group: ignored
model/link: name
model/link/pose: relative_to rotation_format degrees; warned frame
model/link/gravity:
model/link/kinematic: warned
model/link/must_be_base_link self_collide enable_wind: ignored
model/link/velocity_decay: left out
model/link/inertial: auto
model/link/inertial/pose: rotation_format degrees; warned relative_to frame
model/link/inertial/mass:
model/link/inertial/density:
model/link/inertial/auto_inertia_params: ignored
model/link/inertial/fluid_added_mass: left out
model/link/inertial/inertia:
model/link/inertial/inertia/ixx ixy ixz iyy iyz izz:
model/link/collision visual sensor projector audio_sink audio_source battery light
  particle_emitter drake:visual: ignored
model/link/drake:deformable_properties drake:surface_velocity_axis: left out
model/joint: name type
model/joint/parent child:
model/joint/pose: relative_to rotation_format degrees; warned frame
model/joint/gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch:
model/joint/sensor physics: ignored
model/joint/drake:mimic: joint multiplier offset
model/joint/drake:gear_ratio drake:rotor_inertia:
model/joint/drake:controller_gains: ignored
model/joint/axis:
model/joint/axis/xyz: expressed_in
model/joint/axis/use_parent_model_frame:
model/joint/axis/initial_position: left out
model/joint/axis/limit:
model/joint/axis/limit/lower upper effort velocity:
model/joint/axis/limit/stiffness dissipation drake:acceleration: ignored
model/joint/axis/dynamics:
model/joint/axis/dynamics/damping friction spring_stiffness spring_reference:
model/joint/axis/mimic: joint axis
model/joint/axis/mimic/multiplier offset reference:
"""

_ACTUATOR = (
    "joint jointinparent tendon gear armature forcelimited forcerange ctrllimited ctrlrange name"
    " class; warned site refsite body cranksite slidersite damping; ignored group user cranklength"
    " lengthrange delay nsample interp actlimited actrange actdim actearly inheritrange dyntype"
    " gaintype biastype dynprm gainprm biasprm kp kv ki dampratio timeconst imax slewmax input"
    " ffrange velrange posrange area diameter bias force fpmax fvmax lmax lmin vmax range scale"
    " tausmooth gain motorconst resistance inductance cogging controller lugre nominal saturation"
    " thermal plugin instance"
)
_TENDON = (
    "name class limited range actuatorfrclimited actuatorfrcrange armature stiffness"
    " springlength; warned damping frictionloss springyield; ignored group margin material rgba"
    " width user solimpfriction solimplimit solreffriction solreflimit"
)
_SPATIAL = _TENDON.replace(" limited range", "").replace("warned", "warned limited range", 1)
_EQUALITY = "name class active; ignored solimp solref"

MJCF = f"""
mujoco: model
mujoco/compiler: angle assetdir autolimits balanceinertia boundinertia boundmass eulerseq
  coordinate alignfree fusestatic inertiafromgeom inertiagrouprange meshdir settotalmass
  strippath texturedir; ignored conflict discardvisual fitaabb passthrough savecanonical
  savecompiled saveinertial usethread
mujoco/compiler/lengthrange: ignored
mujoco/option: warned gravity density viscosity wind magnetic; ignored actuatorgroupdisable
  ccd_iterations ccd_tolerance cone impratio integrator iterations jacobian ls_iterations
  ls_tolerance noslip_iterations noslip_tolerance o_friction o_margin o_solimp o_solref
  sdf_initpoints sdf_iterations sleep_tolerance solver timestep tolerance apirate
mujoco/option/flag: warned gravity equality constraint spring damper passive frictionloss; ignored
  actuation autoreset clampctrl contact diagexact energy eulerdamp filterparent fwdinv invdiscrete
  ipc island limit midphase multiccd nativeccd override refsafe sensor sleep speculative warmstart
mujoco/size statistic visual asset contact sensor custom: ignored
mujoco/extension deformable: left out
mujoco/include: file prefix
mujoco/default: class
mujoco/worldbody keyframe:
mujoco/keyframe/key: qpos; ignored name time qvel act ctrl mpos mquat plastic
mujoco/tendon:
mujoco/tendon/fixed: {_TENDON}
mujoco/tendon/fixed/joint: joint coef
mujoco/tendon/spatial: {_SPATIAL}
mujoco/tendon/spatial/site: site
mujoco/tendon/spatial/geom: geom sidesite
mujoco/tendon/spatial/pulley: divisor
mujoco/equality:
mujoco/equality/connect: body1 body2 anchor site1 site2 {_EQUALITY}
mujoco/equality/weld: body1 body2 anchor relpose torquescale site1 site2 {_EQUALITY}
mujoco/equality/joint: joint1 joint2 polycoef {_EQUALITY}
mujoco/equality/tendon: tendon1 tendon2 polycoef {_EQUALITY}
mujoco/equality/flex: warned flex {_EQUALITY}
mujoco/equality/flexvert: warned flex {_EQUALITY}
mujoco/equality/flexstrain: warned flex cell {_EQUALITY}
mujoco/actuator:
mujoco/actuator/*: {_ACTUATOR}
mujoco/actuator/plugin/config: ignored
body: name pos quat axisangle euler xyaxes zaxis childclass gravcomp; warned mocap; ignored fuse
  simple sleep user
body/inertial: pos quat axisangle euler xyaxes zaxis mass diaginertia fullinertia
body/joint: name class type axis pos ref range limited armature damping frictionloss
  actuatorfrclimited actuatorfrcrange stiffness springref springdamper; warned springyield;
  ignored actuatorgravcomp group margin user solimpfriction solimplimit solreffriction
  solreflimit
body/freejoint: name align; ignored group
body/geom: name class type pos quat axisangle euler xyaxes zaxis size fromto mesh hfield mass
  density shellinertia fitscale group; ignored adhesion castshadow conaffinity condim contype
  fluidcoef fluidshape friction gap margin material priority rgba solimp solmix solref
  surfacevel user
body/geom/plugin: ignored
body/site: name class pos quat axisangle euler xyaxes zaxis fromto size type; ignored group
  material mesh rgba user
body/camera light: ignored
body/plugin composite flexcomp: left out
body/attach: model body prefix frame
body/frame: name pos quat axisangle euler xyaxes zaxis childclass
body/replicate: count offset euler sep
body/include: file prefix
"""

_TABLES = {"robot": URDF, "sdf": SDF, "mujoco": MJCF}


@dataclass(frozen=True)
class Known:
    """How an element is treated: all inside it is ignored, or it is left out, or it is read."""

    attributes: frozenset[str]
    is_ignored: bool = False
    is_left_out: bool = False


def entries(root: str) -> Iterator[tuple[str, str]]:
    """Path of each element of the format with this root element, and how it is treated."""
    for text in _TABLES[root].replace("\n  ", " ").strip().splitlines():
        path, _, rest = f"{text} ".partition(": ")
        parent, slash, names = path.rpartition("/")
        for name in names.split():
            yield parent + slash + name.rstrip(":"), rest.strip()


@cache
def table(root: str) -> Mapping[str, Known]:
    """The elements of the format whose root element is given, by path."""
    found = {}
    for path, rest in entries(root):
        words = rest.replace(";", " ").replace("warned", " ").replace("ignored", " ").split()
        found[path] = Known(
            frozenset(() if rest == "left out" else words),
            is_ignored=rest == "ignored",
            is_left_out=rest == "left out",
        )
    return found


_ONCE = """inertial origin mass inertia ixx ixy ixz iyy iyz izz axis axis2 xyz limit lower upper
effort velocity gravity dynamics damping friction spring_stiffness spring_reference pose mimic
multiplier offset reference parent child predecessor successor ratio parent_origin parent_axis
child_origin child_axis gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch"""
_SINGLE = frozenset(_ONCE.split())
"""Elements of URDF and SDF that stand once in another one; of several the first is read."""


def warn_of_unknown_elements(root: etree._Element, report: Report) -> None:
    """Warn once of each kind of element, or attribute, that no line of the format's table has.

    Args:
        root: the <robot>, <sdf> or <mujoco>.
        report: takes the warnings.
    """
    known = table(str(root.tag))
    if root.tag == "robot":  # joints inside <gazebo> are SDF's
        known = {**table("sdf"), **known}
    path_of = {"robot": _urdf_path, "sdf": _sdf_path, "mujoco": _mjcf_path}[str(root.tag)]
    warned: set[str] = set()
    pending = [(root, str(root.tag))]
    while pending:
        element, path = pending.pop()
        found = known.get(path) or known.get(f"{path.rpartition('/')[0]}/*")
        where = f"<{_tag(element)}> ({line(element)})"
        if found is None or found.is_left_out:
            if path not in warned:
                warned.add(path)
                known_as = "is unknown, and ignored" if found is None else "is left out"
                report.warn(where, known_as)
            continue
        if found.is_ignored:
            continue
        for name in _attributes(element):
            key = f"{path}@{name}"
            if name not in found.attributes and key not in warned:
                warned.add(key)
                report.warn(where, f"attribute {name!r} is unknown, and ignored")
        seen: set[str] = set()
        for inside in element.iterchildren():
            if not isinstance(inside.tag, str):
                continue
            tag = _tag(inside)
            if tag in seen and tag in _SINGLE and root.tag != "mujoco":
                where = f"<{tag}> ({line(inside)})"
                report.warn(where, f"is not the first of its <{_tag(element)}>, and ignored")
            seen.add(tag)
            pending.append((inside, path_of(path, tag)))


def _attributes(element: etree._Element) -> list[str]:
    """Names of attributes, with Drake's prefix where they have one; without those of XML itself."""
    names = []
    for name in map(str, element.attrib):
        namespace, _, local = name.rpartition("}")
        if "www.w3.org" not in namespace:
            names.append(f"drake:{local}" if "drake" in namespace else name)
    return names


def _tag(element: etree._Element) -> str:
    """The tag, with Drake's prefix where it has one, and with no other."""
    tag, name = str(element.tag), local_name(element)
    return f"drake:{name}" if tag != name and "drake" in tag else name


def _urdf_path(parent: str, tag: str) -> str:
    if parent == "robot/gazebo/joint" or parent.startswith("model/joint"):
        return _sdf_path(parent.replace("robot/gazebo", "model", 1), tag)
    return f"{parent}/{tag}"


def _sdf_path(parent: str, tag: str) -> str:
    if parent in ("sdf/model", "sdf/world/model"):
        return "sdf/model" if tag == "model" else f"model/{tag}"
    return f"{parent}/{'axis' if tag == 'axis2' else tag}"


_IN_BODIES = ("mujoco/worldbody", "body", "body/frame", "body/replicate")
_DEFAULTS = {
    **dict.fromkeys(("joint", "geom", "site", "camera", "light"), "body/{}"),
    **dict.fromkeys(("mesh", "texture", "material", "pair"), "mujoco/asset"),
    "tendon": "mujoco/tendon/spatial",
    "equality": "mujoco/equality/connect",
    "default": "mujoco/default",
}


def _mjcf_path(parent: str, tag: str) -> str:
    """Bodies in bodies are bodies; defaults are what they are defaults of."""
    if parent in _IN_BODIES:
        return "body" if tag == "body" else f"body/{tag}"
    if parent == "mujoco/default":
        return _DEFAULTS.get(tag, "mujoco/actuator/{}").format(tag)
    return f"{parent}/{tag}"

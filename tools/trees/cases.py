"""Calls of methods, requests of services and recorded streams, as plain data for both trees."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros import InputError, ModelError, Robot, load_robot
from rbda_ros.recordings.bags import typestore

MS = 1_000_000
BEGIN = 1_700_000_000_000_000_000
FLOATING = ("rotors", "four_bar", "tello_leg", "chained_loops")
"""Mechanisms that are tried with a floating base too."""
STREAMED = ("gear", "differential", "four_bar", "tello_leg", "mimic_chain", "rotors")
SETTINGS: dict[str, tuple[Any, ...]] = {
    "velocity_source": ("differentiate",),
    "acceleration_source": ("reference", "estimate"),
    "external_wrench": (True,),
    "terms": (["gravity"], ["inertial", "coriolis"]),
    "saturate": (True,),
    "effort_limits": ("{FIRST: 1.0}",),
    "effort_rate_limit": (50.0,),
    "ramp_in": (0.05,),
    "on_refusal": ("zero",),
    "command_joints": (["FIRST"],),
    "command_source": ("joint_commands",),
    "add_feedforward": (True,),
    "stiffness": ("{FIRST: 20.0}",),
    "damping": ("{FIRST: 2.0}",),
    "publish_external_effort": (True,),
    "publish_joint_states": ("always", "never"),
    "joint_offsets": ("{FIRST: 0.1}",),
    "joint_state_timeout": (0.0, 0.03),
    "joint_prefix": ("left/",),
}
"""Values beside the default; FIRST is the first actuated joint."""
PLAIN = 6
"""One scenario in so many has default settings."""


def models(folder: Path) -> list[dict[str, Any]]:
    """Robots as arguments of `load_robot`: mechanisms in a folder of both trees."""
    found = []
    for urdf in sorted(folder.glob("*.urdf")):
        loops = urdf.with_suffix(".yaml")
        text = loops.read_text() if loops.exists() else None
        for floating in (False, True) if urdf.stem in FLOATING else (False,):
            model = {"urdf": urdf.read_text(), "loops": text, "floating_base": floating}
            try:
                load_robot(**model)
            except ModelError:
                continue
            found.append(model | {"name": urdf.stem + "_floating" * floating})
    return found


# Methods.


def calls(
    robot: Robot, rng: np.random.Generator
) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Calls of every method that both trees have, most of them valid, for one state and a batch."""
    found: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    q = robot.random_state(int(rng.integers(1 << 30))).q
    many = np.stack([robot.random_state(int(rng.integers(1 << 30))).q for _ in range(3)])
    yd, x, tau = rng.normal(size=(3, robot.ny))
    qd = robot.spanning_velocity(q, yd)
    spanning = rng.normal(size=robot.nv)
    frame = robot.description.links[-1].name
    other = robot.description.links[len(robot.description.links) // 2].name
    wrench = {frame: rng.normal(size=6)}
    signatures: dict[str, tuple[Any, ...]] = {
        "inverse_dynamics": ("q", "v", "x"),
        "inverse_dynamics_efforts": ("q", "v", "x"),
        "forward_dynamics": ("q", "v", "x"),
        "actuator_efforts": ("q", "x"),
        "generalized_force": ("q", "s"),
        "mass_matrix": ("q",),
        "mass_matrix_factor": ("q",),
        "bias_force": ("q", "v"),
        "gravity_force": ("q",),
        "friction_force": ("q", "v"),
        "inverse_dynamics_derivatives": ("q", "v", "x"),
        "forward_dynamics_derivatives": ("q", "v", "x"),
        "frame_pose": ("q", frame),
        "jacobian": ("q", frame),
        "frame_bias_acceleration": ("q", "v", frame),
        "operational_space_inertia": ("q", (frame, other)),
        "spanning_velocity": ("q", "x"),
        "spanning_acceleration": ("q", "v", "x"),
        "regressor": ("q", "v", "x"),
        "state": ("q", "v"),
        "independent_position": ("q",),
    }
    one = {"q": q, "v": yd, "x": x, "s": spanning}
    rows = {
        "q": many,
        "v": rng.normal(size=(3, robot.ny)),
        "x": rng.normal(size=(3, robot.ny)),
        "s": rng.normal(size=(3, robot.nv)),
    }
    try:
        position = robot.independent_position(q)
    except (InputError, ModelError):
        position = None
    for name, kinds in signatures.items():

        def given(values: dict[str, Any], kinds: tuple[Any, ...] = kinds) -> tuple[Any, ...]:
            return tuple(values.get(k, k) if isinstance(k, str) else k for k in kinds)

        found.append((name, given(one), {}))
        found.append((name, given(one | {"v": qd}), {}))
        found.append((name, given(rows), {}))
        found.append((name, given(one | {"v": rows["v"], "x": rows["x"]}), {}))
        if position is not None:
            found.append((name, given(one | {"q": position}), {}))
            found.append((name, given(rows | {"q": many[:0]}), {}))
        for k, kind in enumerate(kinds):
            for bad in _wrong(one.get(kind) if isinstance(kind, str) else None, kind, rng):
                found.append((name, (*given(one)[:k], bad, *given(one)[k + 1 :]), {}))
        off = q.copy()
        off[-1] += 0.4
        found.append((name, given(one | {"q": off}), {}))
        mixed = many.copy()
        mixed[1, -1] += 0.4
        found.append((name, given(rows | {"q": mixed}), {}))
    for name in ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_efforts"):
        for extra in ({"external_wrenches": wrench}, {"friction": True}):
            found.append((name, (q, yd, x), extra))
            found.append((name, (many, rows["v"], rows["x"]), extra))
        found.append((name, (q, yd, x), {"external_wrenches": {"nothing": np.zeros(6)}}))
        found.append((name, (q, yd, x), {"external_wrenches": {frame: np.zeros(5)}}))
        found.append((name, (q, yd, x), {"external_wrenches": {frame: np.full(6, np.nan)}}))
    for extra in ({"damping": 1e-3}, {"linear_only": True}, {"damping": -1.0}):
        found.append(("operational_space_inertia", (q, frame), extra))
    found += _of_names(robot, q, yd, x, tau)
    found += _of_contacts(q, yd, x, frame, other)
    return found


def _wrong(value: Any, kind: Any, rng: np.random.Generator) -> list[Any]:
    if not isinstance(value, np.ndarray):
        return ["nothing"] if isinstance(kind, str) else [(), ("nothing",)]
    spoilt = value.copy()
    spoilt[rng.integers(len(spoilt))] = np.nan
    endless = value.copy()
    endless[-1] = np.inf
    return [
        value[:-1],
        np.zeros(len(value) + 5),
        spoilt,
        endless,
        np.stack([value, spoilt, value]),
        np.zeros((2, 2, len(value))),
        np.array(1.0),
        "text",
        None,
        [None] * len(value),
        np.stack([value] * 2)[:, :-1],
    ]


def _of_names(robot: Robot, q: Any, yd: Any, x: Any, tau: Any) -> list[Any]:
    found: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    at = robot.coordinates.scalar_positions
    where = robot.coordinates.velocities
    qd = robot.spanning_velocity(q, yd)
    of = {
        joints: {name: float(q[at[name]]) for name in joints if name in at}
        for joints in (
            robot.independent_joint_names,
            robot.actuated_joint_names,
            robot.joint_names,
            robot.joint_names[:1],
        )
    }
    base = {} if not robot.floating_base else None
    for joints, given in of.items():
        found.append(("close", (given,), {}))
        found.append(("close", (given,), {"guess": q}))
        found.append(("determining_joints", (joints,), {}))
        if base is None:
            continue
        speed = {name: float(qd[where[name].start]) for name in given}
        ones = dict.fromkeys(given, 1.0)
        found.append(("convert", (given,), {"guess": q}))
        found.append(("convert", (given, speed), {"guess": q}))
        found.append(("convert", (given, speed, ones, ones), {"guess": q}))
        found.append(("convert", (given | {"nothing": 0.0},), {"guess": q}))
        found.append(("convert", (given, {"nothing": 0.0}), {"guess": q}))
        found.append(("convert", (dict.fromkeys(given, float("nan")),), {}))
        found.append(("independent_velocity", (q, speed), {}))
        found.append(("independent_acceleration", (q, yd, ones), {}))
    found += [
        ("close", (q,), {}),
        ("close", (q[:-1],), {}),
        ("close", ({"nothing": 1.0},), {}),
        ("close", ({},), {}),
        ("close", (np.full_like(q, np.nan),), {}),
        ("close", (dict.fromkeys(of[robot.independent_joint_names], 50.0),), {}),
        ("actuation", (q,), {}),
        ("actuation", (q,), {"joints": robot.independent_joint_names}),
        ("actuation", (q,), {"joints": ("nothing",)}),
        ("determining_joints", (("nothing",),), {}),
        ("determining_joints", ((),), {}),
        ("parameters", (), {}),
        ("inverse_kinematics", (robot.description.links[-1].name, np.eye(4)), {}),
        ("inverse_kinematics", (robot.description.links[-1].name, np.zeros(3)), {}),
    ]
    return found


def _of_contacts(q: Any, yd: Any, x: Any, frame: str, other: str) -> list[Any]:
    found = []
    kinds: tuple[dict[str, Any], ...] = (
        {"link": frame},
        {"link": frame, "xyz": (0.1, 0.0, 0.05), "normal": (0.0, 1.0, 1.0)},
        {"link": frame, "kind": "weld"},
        {"link": frame, "kind": "surface"},
        {"link": frame, "rows": ("z",)},
        {"link": frame, "stiffness": 10.0, "damping": 2.0, "target": (0.1, 0.0, 0.3)},
        {"link": "nothing"},
        {"link": frame, "kind": "nothing"},
        {"link": frame, "normal": (0.0, 0.0, 0.0)},
    )
    sets = [[kind] for kind in kinds] + [[], [{"link": frame}, {"link": other}]]
    for each in sets:
        contacts = ("contacts", each)
        found += [
            ("constrained_forward_dynamics", (q, yd, x, contacts), {}),
            ("contact_forces", (q, yd, x, contacts), {}),
            ("contact_inverse_dynamics", (q, yd, x, contacts), {}),
            ("impact", (q, yd, contacts), {}),
            ("damped_delassus_inverse", (q, contacts, 1e-3), {}),
        ]
    return found


# Services.


def requests(robot: Robot, rng: np.random.Generator) -> list[tuple[str, dict[str, Any]]]:
    """Requests of every service that both trees have, most of them valid."""
    q = robot.random_state(int(rng.integers(1 << 30))).q
    yd = rng.normal(size=robot.ny)
    qd = robot.spanning_velocity(q, yd)
    at, where = robot.coordinates.scalar_positions, robot.coordinates.velocities
    link = robot.description.links[-1].name
    base: dict[str, Any] = {}
    if robot.floating_base:
        place, turn = dict(zip("xyz", q[:3].tolist(), strict=True)), q[3:7].tolist()
        base["base_pose"] = {
            "position": place,
            "orientation": dict(zip("xyzw", turn, strict=True)),
        }
        base["base_twist"] = {"linear": {"x": 0.1, "y": 0.2, "z": -0.3}, "angular": {"z": 0.4}}

    def joints(names: tuple[str, ...]) -> dict[str, Any]:
        known = [name for name in names if name in at]
        return {
            "joint_names": known,
            "position": [float(q[at[name]]) for name in known],
            "velocity": [float(qd[where[name].start]) for name in known],
        }

    usual = joints(robot.independent_joint_names)
    n = len(usual["joint_names"])
    states: list[dict[str, Any]] = [
        usual,
        joints(robot.joint_names),
        joints(robot.actuated_joint_names),
        usual | {"velocity": []},
        usual | {"joint_names": [*usual["joint_names"][:-1], "nothing"]},
        usual | {"position": usual["position"][:-1]},
        usual | {"position": [float("nan")] * n},
        usual | {"velocity": [float("inf")] * n},
        usual | {"velocity": usual["velocity"] + [1.0]},
        joints(robot.independent_joint_names[:1]),
        joints(tuple(reversed(robot.joint_names))),
    ]
    states += [
        states[1] | {"position": [x + 0.3 * (k % 2) for k, x in enumerate(states[1]["position"])]}
    ]
    wrench = {
        "header": {"frame_id": link},
        "wrench": {"force": {"x": 1.0, "z": -2.0}, "torque": {"y": 0.5}},
    }
    elsewhere = wrench | {"header": {"frame_id": "nothing"}}
    effort = rng.normal(size=len(robot.actuated_joint_names)).tolist()
    found: list[tuple[str, dict[str, Any]]] = [("describe_model", {})]
    for each in states:
        state = {"state": each | base}
        m = len(each["joint_names"])
        wrenches = [("geometry_msgs/WrenchStamped", [given]) for given in (wrench, elsewhere)]
        found += [
            ("mass_matrix", state),
            ("describe_actuation", state),
            ("forward_dynamics", state),
            ("forward_dynamics", state | {"effort": effort}),
            ("forward_dynamics", state | {"effort": effort, "external_wrenches": wrenches[0]}),
            ("forward_dynamics", state | {"effort": effort[:-1]}),
            ("forward_dynamics", state | {"effort_joint_names": ["nothing"], "effort": [1.0]}),
            ("inverse_dynamics", state),
            ("inverse_dynamics", state | {"acceleration": [0.5] * m}),
            ("inverse_dynamics", state | {"acceleration": [0.5] * (m + 1)}),
            ("inverse_dynamics", state | {"external_wrenches": wrenches[0]}),
            ("inverse_dynamics", state | {"external_wrenches": wrenches[1]}),
            ("operational_space_inertia", state | {"frames": [link]}),
            ("operational_space_inertia", state | {"frames": [link], "linear_only": True}),
            ("operational_space_inertia", state | {"frames": ["nothing"], "damping": 1e-3}),
            ("convert_state", each),
            ("convert_state", each | {"acceleration": [1.0] * m, "effort": [1.0] * m}),
            ("convert_state", each | {"target_joint_names": ["nothing"]}),
            ("set_payload", {"name": "load", "link": "nothing"}),
            ("set_payload", {"name": "load", "link": link, "inertia": {"m": -1.0}}),
        ]
        for contact in ({"link": link}, {"link": "nothing"}):
            given = {"contacts": ("rbda_ros/Contact", [contact]), "effort": effort}
            found.append(("constrained_forward_dynamics", state | given))
        points = [
            {"positions": each["position"], "velocities": each["velocity"]},
            {"positions": each["position"], "accelerations": [0.1] * m},
        ]
        trajectory = {
            "trajectory": {
                "joint_names": each["joint_names"],
                "points": ("trajectory_msgs/JointTrajectoryPoint", points),
            }
        }
        found.append(("convert_trajectory", trajectory))
        found.append(("trajectory_inverse_dynamics", trajectory))
    return found


# Streams.


class Recording:
    """One random stream: settings, messages with their times, changes on the way.

    Args:
        k: which robot.
        robot: the robot.
        seed: of everything random.
        defects: whether messages have defects, and settings change on the way.
    """

    def __init__(self, k: int, robot: Robot, seed: int, *, defects: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.k, self.robot, self.defects = k, robot, defects
        self.now = self.steady = BEGIN
        self.values: dict[str, Any] = {}
        self.events: list[tuple[Any, ...]] = []
        self.place = robot.random_state(seed).q
        self.settings = self.random_settings(0.0 if seed % PLAIN == 0 else 0.25)

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def bad(self, probability: float) -> bool:
        return self.defects and self.chance(probability)

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def random_settings(self, probability: float) -> dict[str, Any]:
        first = self.robot.actuated_joint_names[0]
        for name, values in SETTINGS.items():
            if self.chance(probability):
                value = self.pick(*values)
                if isinstance(value, str):
                    value = value.replace("FIRST", first)
                elif value == ["FIRST"]:
                    value = [first]
                self.values[name] = value
        if first not in self.robot.coordinates.scalar_positions:
            for name in ("stiffness", "damping", "joint_offsets"):
                self.values.pop(name, None)
        return dict(self.values)

    def record(self, steps: int) -> dict[str, Any]:
        kinds = (self.state,) * 10 + (self.command,) * 3 + (self.reference,) * 2 + (self.wrench,)
        if self.robot.floating_base:
            kinds += (self.base,) * 8
        for _ in range(steps):
            self.wait(150 if self.bad(0.04) else int(self.rng.integers(1, 9)))
            if self.bad(0.03):
                self.events.append(("settings", self.random_settings(0.1)))
            elif self.bad(0.02):
                self.events.append(("stop",))
            elif self.bad(0.02):
                self.now += int(self.pick(-1000, 500)) * MS  # the clock of stamps is set
            else:
                self.pick(*kinds)()
        return {"robot": self.k, "settings": self.settings, "events": self.events}

    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds * MS
        self.steady += milliseconds * MS

    def message(self, topic: str, data: bytes) -> None:
        self.events.append(("message", topic, data, self.now, self.steady))

    def motion(self, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities of joints, that belong together."""
        robot, yd = self.robot, self.rng.normal(size=self.robot.ny)
        try:
            y = robot.independent_position(self.place)
            y[robot.coordinates.base_nq :] += 0.002 * yd[robot.coordinates.base_nv :]
            self.place = robot.close(y, self.place)
            qd = robot.spanning_velocity(self.place, yd)
        except (InputError, ModelError, ValueError):
            qd = np.zeros(robot.nv)
        at, where = robot.coordinates.scalar_positions, robot.coordinates.velocities
        known = [n for n in names if n in at]
        q = {n: self.place[at[n]] for n in known}
        v = {n: qd[where[n].start] for n in known}
        return (
            np.array([q.get(n, 0.3) for n in names]),
            np.array([v.get(n, 0.0) for n in names]),
        )

    def names(self) -> list[str]:
        joints = self.robot.joint_names
        usual = [self.robot.independent_joint_names, self.robot.actuated_joint_names, joints]
        found = list(usual[0]) if not self.defects else list(self.pick(*usual))
        if self.bad(0.05):
            found = [name for name in joints if self.chance(0.5)] or found
        if self.bad(0.05):
            found.append("gripper")
        if self.bad(0.02):
            found = ["gripper", "wheel"]
        return [str(name) for name in (self.rng.permutation(found) if self.bad(0.1) else found)]

    def prefixed(self, names: list[str]) -> list[str]:
        return [self.values.get("joint_prefix", "") + name for name in names]

    def stamp(self) -> int:
        return (
            self.now - int(self.pick(0, 1, 2, 40, 120, -30, -120)) * MS
            if self.bad(0.1)
            else self.now
        )

    def state(self) -> None:
        names = self.names()
        q, v = self.motion(names)
        effort = self.rng.normal(size=len(names))
        if "joint_offsets" in self.values and self.robot.actuated_joint_names[0] in names:
            q[names.index(self.robot.actuated_joint_names[0])] -= 0.1
        for field in (q, v, effort):
            if self.bad(0.03):
                field[self.rng.integers(len(field))] = self.pick(np.nan, np.inf)
        if self.bad(0.03):
            v = v[:-1]
        if self.bad(0.05):
            v = v[:0]
        if self.bad(0.2):
            effort = effort[:0]
        data = joint_state(self.prefixed(names), self.stamp(), q, v, effort)
        self.message("joint_states", data[: len(data) - 9] if self.bad(0.01) else data)

    def command(self) -> None:
        names = self.names()
        q, v = self.motion(names)
        fields = [q, v, self.rng.normal(size=len(names))]
        fields = [x if self.chance(0.7) else x[:0] for x in fields]
        if self.bad(0.03):
            fields = [np.full(len(x), np.nan) for x in fields]
        self.message("joint_commands", joint_state(self.prefixed(names), self.stamp(), *fields))

    def reference(self) -> None:
        store, names = typestore(), self.names()
        types, n = store.types, len(names)
        values = self.rng.normal(size=n)
        if self.bad(0.05):
            values[0] = np.nan
        empty, duration = np.zeros(0), types["builtin_interfaces/msg/Duration"](0, 0)
        point = types["trajectory_msgs/msg/JointTrajectoryPoint"](
            empty, empty, values, empty, duration
        )
        points = [] if self.bad(0.03) else [point]
        message = types["trajectory_msgs/msg/JointTrajectory"](
            self.header(0, ""), self.prefixed(names), points
        )
        self.message("reference", bytes(store.serialize_cdr(message, message.__msgtype__)))

    def wrench(self) -> None:
        store = typestore()
        types, values = store.types, self.rng.normal(size=6)
        if self.bad(0.1):
            values[2] = np.nan
        link = "nothing" if self.bad(0.1) else self.robot.description.links[-1].name
        vector = types["geometry_msgs/msg/Vector3"]
        acting = types["geometry_msgs/msg/Wrench"](vector(*values[:3]), vector(*values[3:]))
        message = types["geometry_msgs/msg/WrenchStamped"](self.header(0, link), acting)
        self.message("external_wrench", bytes(store.serialize_cdr(message, message.__msgtype__)))

    def base(self) -> None:
        store = typestore()
        types = store.types
        pose, twist = self.place[:7].copy(), self.rng.normal(size=6)
        if self.bad(0.05):
            pose[3:] *= 1.05
        if self.bad(0.05):
            twist[1] = np.nan
        point, turn = types["geometry_msgs/msg/Point"], types["geometry_msgs/msg/Quaternion"]
        vector = types["geometry_msgs/msg/Vector3"]
        placed = types["geometry_msgs/msg/Pose"](point(*pose[:3]), turn(*pose[3:]))
        moving = types["geometry_msgs/msg/Twist"](vector(*twist[:3]), vector(*twist[3:]))
        message = types["nav_msgs/msg/Odometry"](
            self.header(self.stamp(), "world"),
            "base",
            types["geometry_msgs/msg/PoseWithCovariance"](placed, np.zeros(36)),
            types["geometry_msgs/msg/TwistWithCovariance"](moving, np.zeros(36)),
        )
        self.message("base_state", bytes(store.serialize_cdr(message, message.__msgtype__)))

    def header(self, stamp: int, frame: str) -> Any:
        types = typestore().types
        time = types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
        return types["std_msgs/msg/Header"](time, frame)


def joint_state(names: list[str], stamp: int, *fields: np.ndarray) -> bytes:
    """A serialized JointState; fields may have any size."""
    data = bytearray(b"\0\1\0\0" + struct.pack("<iI", *divmod(stamp, 10**9)))

    def add(form: str, size: int, *values: Any) -> None:
        if values:
            data.extend(
                bytes((4 - len(data)) % size) + struct.pack(f"<{len(values)}{form}", *values)
            )

    def text(value: str) -> None:
        add("I", 4, len(value) + 1)
        data.extend(value.encode() + b"\0")

    text("")
    add("I", 4, len(names))
    for name in names:
        text(name)
    for field in fields:
        add("I", 4, len(field))
        add("d", 8, *field)
    return bytes(data)


def make(folder: Path, recordings: int, steps: int = 60) -> dict[str, Any]:
    """All cases."""
    given = models(folder)
    robots = [load_robot(**{k: v for k, v in m.items() if k != "name"}) for m in given]
    rng = np.random.default_rng(26)
    streamed = [k for k, m in enumerate(given) if m["name"].removesuffix("_floating") in STREAMED]
    streams = []
    for seed in range(recordings):
        k = streamed[seed % len(streamed)]
        streams.append(Recording(k, robots[k], seed, defects=seed % 2 == 1).record(steps))
    return {
        "models": given,
        "calls": [(k, *call) for k, robot in enumerate(robots) for call in calls(robot, rng)],
        "streams": streams,
        "services": [(k, *each) for k in streamed for each in requests(robots[k], rng)],
    }

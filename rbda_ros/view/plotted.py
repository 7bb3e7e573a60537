"""Numbers that the page draws and plots: inertia ellipsoids, conditioning, efforts over time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rbda_ros.errors import ClosureError, InputError
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view.posing import Poser

IMMOVABLE = 1e-9
"""Share of the largest mobility below which a direction counts as one that cannot move."""


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """The generalized inertia ellipsoid ``v' Lambda v = 1`` of a frame (Asada 1983).

    Long where the frame is light, flat where it is heavy or cannot move.

    Attributes:
        pose: (4, 4) of the frame in the world.
        axes: (3, 3) principal directions in the world, as columns; a rotation.
        lengths: (3,) of the semi-axes, the longest 1.
        masses: (3,) felt along them [kg]; infinite where it cannot move.
    """

    pose: Array
    axes: Array
    lengths: Array
    masses: Array


def inertia_ellipsoid(robot: Robot, q: Array, link: str) -> Ellipsoid | None:
    """The ellipsoid of a link's origin at a closed position (nq,); None where there is none."""
    try:
        state = robot.state(q)
        pose = robot.frame_pose(state, link)
        inverse = robot.operational_space_inertia(state, link, linear_only=True).inverse_inertia
    except InputError:
        return None
    mobility, axes = np.linalg.eigh(inverse)
    mobility = np.maximum(mobility, 0.0)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    largest = float(mobility.max(initial=0.0))
    moves = mobility > IMMOVABLE * largest
    masses = np.divide(1.0, mobility, where=moves, out=np.full(3, np.inf))
    lengths = np.sqrt(mobility / largest) if largest else np.zeros(3)
    return Ellipsoid(pose, axes, lengths, masses)


POINTS = 60
"""Positions along a range: a plot of some 250 pixels shows no more."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Conditioning along a slider, the others where they are.

    Attributes:
        position: (N,) of the slider [rad, m], ascending; only where the loops close.
        conditioning: (N,) of the worst loop, 0 to 1.
        lower, upper: why the sweep ends below and above; empty at the end of the range.
    """

    position: Array
    conditioning: Array
    lower: str
    upper: str


def sweep(poser: Poser, drive: str, name: str, q: Array) -> Sweep:
    """Go from a closed position (nq,) to either end of a slider's range, as far as loops close.

    Args:
        poser: of the robot; where it is stays as it is.
        drive: the sliders, as in `Poser.drives`.
        name: of the slider that moves.
        q: (nq,) where to start.
    """
    slider = next(each for each in poser.drives[drive].sliders if each.name == name)
    start = poser.values(drive, q)
    step = (slider.upper - slider.lower) / POINTS
    found = {start[name]: _worst(poser, drive, q)}
    ends = []
    for way in (-step, step):
        end, last = "", q
        for k in range(1, 2 * POINTS):
            value = start[name] + k * way
            if not slider.lower <= value <= slider.upper:
                break
            try:
                last = poser.robot.close(poser.given(drive, start | {name: value}), last)
            except (ClosureError, InputError) as error:
                end = str(error)
                break
            found[value] = _worst(poser, drive, last)
        ends.append(end)
    positions = sorted(found)
    return Sweep(np.array(positions), np.array([found[at] for at in positions]), ends[0], ends[1])


def _worst(poser: Poser, drive: str, q: Array) -> float:
    return min((loop.conditioning for loop in poser.health(q, drive)), default=1.0)


SECONDS, MAX_SAMPLES = 10.0, 2000
"""How much of the past is kept [s], and in how many samples at most."""
PARTS = ("published", "gravity", "Coriolis", "inertial and other")


class EffortHistory:
    """Motor efforts of a followed node over the last seconds, and their parts.

    The rest is what the acceleration takes, and whatever else the node adds, such as friction.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._samples: deque[tuple[float, Array]] = deque(maxlen=MAX_SAMPLES)

    def add(self, time: float, q: Array, velocities: Mapping[str, float], efforts: Array) -> None:
        """Add a sample; one at which the model has no numbers is left out.

        Args:
            time: of the sample [s].
            q: (nq,) closed position.
            velocities: of joints by name [rad/s, m/s]; zero where they are not known.
            efforts: (actuated,) as published [N m, N].
        """
        robot = self._robot
        qd = np.zeros(robot.nv)
        for joint, place in robot.coordinates.velocities.items():
            if len(place) == 1:
                qd[place.start] = velocities.get(joint, 0.0)
        try:
            state = robot.state(q, qd)
            gravity = robot.actuator_efforts(state, robot.gravity_force(state))
            bias = robot.actuator_efforts(state, robot.bias_force(state, qd))
        except InputError:  # off the loops, or at a dead point
            return
        parts = np.stack([efforts, gravity, bias - gravity, efforts - bias])
        self._samples.append((time, parts))
        while self._samples and time - self._samples[0][0] > SECONDS:
            self._samples.popleft()

    def of(self, motor: str) -> tuple[Array, ...]:
        """Time before the newest sample [s], then each of `PARTS` of one motor [N m, N]."""
        column = self._robot.actuated_joint_names.index(motor)
        times = np.array([time for time, _ in self._samples])
        values = np.array([parts[:, column] for _, parts in self._samples]).reshape(-1, len(PARTS))
        return (times - times[-1] if len(times) else times, *values.T)

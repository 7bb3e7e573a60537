"""Loop constraints written a second time, over Pinocchio's frames, and a dense solve with them.

Nothing here comes from rbda_ros but the description: K is made of relative velocities of the two
frames of a cut joint, or of differentiated equations; k is K differentiated along the motion.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from mechanism_table import MECHANISMS, closed_states
from pinocchio_oracle import PinocchioOracle, se3, spanning_model

from rbda_ros import Robot
from rbda_ros.description.model import Coupling, CutJoint, Expression

STENCIL = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
"""First derivative by central differences of sixth order."""
STEP = 4e-3
"""How far the fastest joint moves [rad, m]."""
RANK_TOLERANCE = 1e-9
ALLOWED = {  # linear directions, then angular ones, that a cut along z leaves free
    "revolute": ("", "z"),
    "prismatic": ("z", ""),
    "cylindrical": ("z", "z"),
    "planar": ("xy", "z"),
    "spherical": ("", "xyz"),
    "fixed": ("", ""),
}


class LoopOracle(PinocchioOracle):
    """The spanning tree by Pinocchio, the loops by the functions here; vectors in our order."""

    def __init__(self, robot: Robot) -> None:
        floating_base_is_described = any(j.type == "floating" for j in robot.description.joints)
        floating = robot.floating_base and not floating_base_is_described
        super().__init__(spanning_model(robot.description, floating), robot)
        for joint in robot.description.joints:
            if joint.armature:
                theirs = self.model.joints[self.model.getJointId(joint.name)]
                self.model.armature[theirs.idx_v : theirs.idx_v + theirs.nv] = joint.armature
        self.constraints = robot.description.constraints
        self.independent = list(robot.tree.independent)
        self.places = {  # of one-DoF joints, in qd
            name: self.model.joints[self.model.getJointId(name)].idx_v for name in robot.joint_names
        }

    def K(self, q: np.ndarray) -> np.ndarray:
        """(rows, nv) with K qd = 0; rows may be redundant."""
        return self._K(self.position(q))[:, self.velocity_index]

    def k(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """(rows,) with K qdd = k: minus the rate of K, times qd."""
        theirs, velocity = self.position(q), self.velocity(qd)

        def along(t: float) -> np.ndarray:
            return self._K(pin.integrate(self.model, theirs, t * velocity)) @ velocity

        h = STEP / np.abs(qd).max(initial=1.0)
        rate = sum(c * (along(i * h) - along(-i * h)) for i, c in STENCIL.items()) / h
        return -np.asarray(rate)

    def explicit(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """G (nv, ny) and g (nv,), with qdd = G ydd + g, from null space and pseudo-inverse."""
        null, particular = self._solutions(q, qd)
        G = null @ np.linalg.inv(null[self.independent])
        return G, particular - G @ particular[self.independent]

    def forward_dynamics(
        self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, chosen: Any = slice(None)
    ) -> np.ndarray:
        """Spanning acceleration (nv,) under forces tau (nv,) on every joint.

        Solves H qdd + C = tau + K' lambda, K qdd = k, in the null space of K: rows may be
        redundant, so the KKT matrix itself need not be regular. With ``chosen``, only these rows
        hold.
        """
        null, particular = self._solutions(q, qd, chosen)
        H = self.mass_matrix(q)
        force = tau - self.bias(q, qd) - H @ particular
        return particular + null @ np.linalg.solve(null.T @ H @ null, null.T @ force)

    def _solutions(
        self, q: np.ndarray, qd: np.ndarray, chosen: Any = slice(None)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Null space (nv, ny) of K, and one solution (nv,) of K qdd = k."""
        K = self.K(q)[chosen]
        particular = np.linalg.pinv(K, rcond=RANK_TOLERANCE) @ self.k(q, qd)[chosen]
        _, sizes, rows = np.linalg.svd(K)
        rank = int(np.sum(sizes > RANK_TOLERANCE * sizes.max(initial=0.0)))
        return rows[rank:].T, particular

    def _K(self, theirs: np.ndarray) -> np.ndarray:
        """K in Pinocchio's order, at Pinocchio's position."""
        pin.computeJointJacobians(self.model, self.data, theirs)
        pin.updateFramePlacements(self.model, self.data)
        rows = [np.zeros((0, self.model.nv))]
        for constraint in self.constraints:
            if isinstance(constraint, CutJoint):
                rows.append(self._cut_rows(constraint))
            else:
                rows.append(self._equation_row(constraint, theirs))
        return np.vstack(rows)

    def _cut_rows(self, cut: CutJoint) -> np.ndarray:
        """Relative velocities, in the predecessor's cut frame with z on the axis, that are zero."""
        sides = (cut.predecessor, cut.successor)
        (pose_p, J_p), (pose_s, J_s) = (self._cut_frame(s.link, se3(s.origin)) for s in sides)
        apart = pose_s.translation - pose_p.translation
        angular = J_s[3:] - J_p[3:]
        linear = J_s[:3] - J_p[:3] + pin.skew(apart) @ J_p[3:]  # seen from the predecessor
        if cut.type == "distance":
            return apart[None] @ linear
        axis = pose_p.rotation @ cut.axis
        if cut.type in ("universal", "perpendicular"):
            second = pose_s.rotation @ cut.second_axis
            right_angle = np.cross(axis, second)[None] @ angular
            return np.vstack([linear, right_angle] if cut.type == "universal" else [right_angle])
        x = np.linalg.svd(np.array(cut.axis)[None])[2][1]  # fixed in the cut frame
        y = np.cross(cut.axis, x)
        rotation = pose_p.rotation @ np.column_stack([x, y, cut.axis])
        axes = dict(zip("xyz", rotation.T, strict=True))
        free_linear, free_angular = ALLOWED[cut.type]
        return np.array(
            [axes[i] @ linear for i in "xyz" if i not in free_linear]
            + [axes[i] @ angular for i in "xyz" if i not in free_angular]
        )

    def _cut_frame(self, link: str, offset: pin.SE3) -> tuple[pin.SE3, np.ndarray]:
        """Pose and Jacobian (6, nv) of a cut frame, world-aligned, at its origin."""
        number = self.model.getFrameId(link, pin.BODY)
        J = pin.getFrameJacobian(
            self.model, self.data, number, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        lever = self.data.oMf[number].rotation @ offset.translation
        linear = J[:3] - pin.skew(lever) @ J[3:]
        return self.data.oMf[number] * offset, np.vstack([linear, J[3:]])

    def _equation_row(self, constraint: Coupling | Expression, theirs: np.ndarray) -> np.ndarray:
        row = np.zeros((1, self.model.nv))
        if isinstance(constraint, Coupling):
            for joint, coefficient in constraint.terms.items():
                row[0, self.places[joint]] = coefficient
            return row
        value = {name: theirs[self._place_in_q(name)] for name in self.places}
        for joint in self.places:
            turned = value | {joint: value[joint] + 1e-30j}
            row[0, self.places[joint]] = _value(constraint.equation, turned).imag / 1e-30
        return row

    def _place_in_q(self, joint: str) -> int:
        return self.model.joints[self.model.getJointId(joint)].idx_q


@dataclass(frozen=True, eq=False)
class State:
    """A closed position, a velocity, and the oracle's G and g there."""

    q: np.ndarray
    yd: np.ndarray
    qd: np.ndarray
    G: np.ndarray
    g: np.ndarray


@functools.cache
def mechanism_states(name: str) -> tuple[Robot, LoopOracle, list[State]]:
    """A mechanism of the table, its oracle and 20 states; made once for all tests."""
    robot = MECHANISMS[name].load()
    oracle = LoopOracle(robot)
    rng = np.random.default_rng(1)
    states = []
    for q in closed_states(MECHANISMS[name], 20):
        yd = rng.normal(size=robot.ny)
        qd = robot.spanning_velocity(q, yd)
        states.append(State(q, yd, qd, *oracle.explicit(q, qd)))
    return robot, oracle, states


def _value(equation: str, positions: dict[str, complex]) -> complex:
    """An equation of the loop file read by Python; the tests' own files are trusted."""
    names = {f"joint_{i}": name for i, name in enumerate(positions)}
    for identifier, name in names.items():
        equation = equation.replace(f"`{name}`", identifier)
        equation = re.sub(rf"\b{re.escape(name)}\b(?!\()", identifier, equation)
    scope = {identifier: positions[name] for identifier, name in names.items()}
    functions = {"sin": np.sin, "cos": np.cos}
    return complex(eval(equation.replace("^", "**"), functions | scope))

"""Robots in contact by a dense solve over Pinocchio's spanning tree, loops and contacts alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from loop_oracle import LoopOracle
from pinocchio_oracle import example_robots
from reference_data import shared_robot

from benchmark.cassie import cassie
from rbda_ros import Contact, Robot, load_robot
from rbda_ros.robot.contacts import ROWS

RANK_TOLERANCE = 1e-9
FEET = {
    "solo12": ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
    "talos_full_v2": ("left_sole_link", "right_sole_link"),
    "cassie": ("left-foot", "right-foot"),
    "mini_cheetah": ("FR_knee_link", "FL_knee_link", "HR_knee_link", "HL_knee_link"),
}
HANDS = ("gripper_left_base_link", "gripper_right_base_link")
CORNERS = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.06, 0.06)]


def load(name: str) -> Robot:
    """A robot of the table below, on a floating base but for the arm."""
    if name == "cassie":
        return load_robot(*cassie(), floating_base=True)
    if name == "mini_cheetah":
        return load_robot(shared_robot(name))
    return load_robot(example_robots()[name], floating_base=name != "xarm7")


CONTACTS: dict[str, tuple[str, list[Contact]]] = {
    "arm welded": ("xarm7", [Contact("link7", (0.0, 0.1, 0.2), "weld")]),
    "solo on two feet": ("solo12", [Contact(f, (0.0, 0.0, 0.01)) for f in FEET["solo12"][:2]]),
    "solo on three": ("solo12", [Contact(foot) for foot in FEET["solo12"][:3]]),
    "solo on four": ("solo12", [Contact(foot) for foot in FEET["solo12"]]),
    "solo on a slope": (
        "solo12",
        [Contact(foot, rows=("z",), normal=(0.3, 0.1, 1.0)) for foot in FEET["solo12"]],
    ),
    "talos": ("talos_full_v2", [Contact(f, kind="weld") for f in FEET["talos_full_v2"]]),
    "talos with hands": (
        "talos_full_v2",
        [Contact(f, kind="weld") for f in (*FEET["talos_full_v2"], *HANDS)],
    ),
    "talos sliding": (
        "talos_full_v2",
        [Contact(f, kind="surface", normal=(0, 0.2, 1)) for f in FEET["talos_full_v2"]],
    ),
    "cassie": ("cassie", [Contact(foot) for foot in FEET["cassie"]]),
    "mini_cheetah": ("mini_cheetah", [Contact(f, (0, 0, -0.2)) for f in FEET["mini_cheetah"]]),
}


@dataclass(frozen=True, eq=False)
class State:
    """A state of a robot in contact, drawn at random."""

    q: np.ndarray
    yd: np.ndarray
    tau: np.ndarray


def states(robot: Robot, count: int, seed: int = 0) -> list[State]:
    """Where loops are not linear, near the assembly: rods reach no farther."""
    rng = np.random.default_rng(seed)
    home = robot.tree.home
    spread = 2.0 if all(n.loop is None or n.loop.constant for n in robot.tree.clusters) else 0.1
    found = []
    for _ in range(count):
        step = robot.spanning_velocity(home, rng.uniform(-spread, spread, robot.ny))
        q = robot.tree.integrate(home, step)
        q = q if spread > 1.0 else robot.close(robot.independent_position(q), guess=q)
        found.append(State(q, rng.normal(size=robot.ny), rng.normal(size=robot.ny)))
    return found


class ContactOracle(LoopOracle):
    """Adds the contacts' rows to those of the loops."""

    def jacobian_of(self, q: np.ndarray, contact: Contact) -> np.ndarray:
        """Rows (m, nv) along the contact's axes."""
        J = self.jacobian(q, (contact.link, contact.xyz))
        return self._along(contact) @ J

    def wanted(self, q: np.ndarray, qd: np.ndarray, contact: Contact) -> np.ndarray:
        """Wanted product of those rows and qdd (m,)."""
        bias = self.frame_acceleration(q, qd, np.zeros_like(qd), (contact.link, contact.xyz))
        return self._along(contact) @ (np.array(contact.acceleration) - bias)

    def _along(self, contact: Contact) -> np.ndarray:
        z = np.array(contact.normal, dtype=float) / np.linalg.norm(contact.normal)
        # The rows of one contact may be turned about the normal; here any two axes will do.
        x = np.linalg.svd(z[None])[2][1]
        axes = np.array([x, np.cross(z, x), z])
        rows = np.zeros((6, 6))
        rows[:3, :3] = rows[3:, 3:] = axes
        held = contact.rows or ROWS[contact.kind]
        return rows[[ROWS["weld"].index(row) for row in held]]

    def motion(
        self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, contacts: list[Contact]
    ) -> tuple[np.ndarray, np.ndarray]:
        """qdd (nv,) under spanning forces tau (nv,), and the force of the contacts on it (nv,).

        Gauss' principle in the null space of all rows: those that contradict each other are
        satisfied in the least squares.
        """
        J = np.vstack([self.jacobian_of(q, contact) for contact in contacts])
        G, g = self.explicit(q, qd)
        wanted = np.concatenate([self.wanted(q, qd, contact) for contact in contacts])
        H = G.T @ self.mass_matrix(q) @ G
        force = G.T @ (tau - self.bias(q, qd) - self.mass_matrix(q) @ g)
        A, b = J @ G, wanted - J @ g
        particular = np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ b
        _, sizes, rows = np.linalg.svd(A)
        null = rows[int(np.sum(sizes > RANK_TOLERANCE * sizes.max())) :].T
        ydd = particular + null @ np.linalg.solve(
            null.T @ H @ null, null.T @ (force - H @ particular)
        )
        return G @ ydd + g, H @ ydd - force

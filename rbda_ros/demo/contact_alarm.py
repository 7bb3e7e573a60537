"""Outside forces on the leg in MuJoCo: found by the exact model, imagined by the open chain."""

from __future__ import annotations

import numpy as np

from rbda_ros import MomentumObserver
from rbda_ros.demo.closed_loop import MIDDLE, PERIOD, exact, wanted
from rbda_ros.demo.mujoco_leg import MujocoLeg
from rbda_ros.demo.open_chain import OpenChain
from rbda_ros.spatial import Array

FORCE = np.array([10.0, -5.0, 30.0])  # [N] on the foot, in world axes
GAIN = 50.0  # [1/s] of the observers


def found_force(seconds: float = 2.0) -> Array:
    """The force (3,) on the foot that is found once a leg that is pushed stands still [N]."""
    leg = MujocoLeg(MIDDLE)
    robot, observer = leg.robot, MomentumObserver(leg.robot, GAIN)
    joints, none = robot.independent_joint_names, np.zeros(4)
    tau = np.zeros(robot.nv)
    for _ in range(round(seconds / PERIOD)):
        leg.push("foot", FORCE)  # where the foot is by now
        efforts = tau[list(robot.actuated_coordinates)] = exact(leg, MIDDLE, none, none)
        leg.step(efforts, PERIOD)
        observer.update(leg.time, leg.positions(joints), leg.velocities(joints), tau)
    return observer.wrench("foot", linear_only=True)[:3]


def false_alarms(seconds: float = 1.5) -> tuple[float, float]:
    """Largest outside torque that is imagined while nothing touches the leg, which moves fast.

    Returns:
        By the exact model, and by the open chain from the same efforts [N m].
    """
    leg, chain = MujocoLeg(MIDDLE), OpenChain()
    robot = leg.robot
    observers = MomentumObserver(robot, GAIN), MomentumObserver(chain.robot, GAIN)
    joints, motors = robot.independent_joint_names, robot.actuated_joint_names
    per_torque = chain.on_motors(np.ones(4))
    ratio = 1.0 / np.array([per_torque[name] for name in motors])
    tau, largest = np.zeros(robot.nv), np.zeros(2)
    for k in range(round(seconds / PERIOD)):
        efforts = tau[list(robot.actuated_coordinates)] = exact(leg, *wanted(k * PERIOD))
        leg.step(efforts, PERIOD)
        state = leg.time, leg.positions(joints), leg.velocities(joints)
        for i, force in enumerate((tau, efforts * ratio)):
            largest[i] = max(largest[i], np.abs(observers[i].update(*state, force)).max())
    return float(largest[0]), float(largest[1])


def report() -> str:
    """Both, in words."""
    found = found_force()
    share = np.linalg.norm(found - FORCE) / np.linalg.norm(FORCE)
    with_loops, without = false_alarms()
    return (
        f"A force of {np.linalg.norm(FORCE):.1f} N on the foot is found to {100 * share:.2f} %.\n"
        f"Largest outside torque imagined while nothing touches: {with_loops:.2f} N m by the exact "
        f"model, {without:.2f} N m by the open chain."
    )

"""Robots to identify, motions that excite them, and what would have been measured."""

from __future__ import annotations

import functools

import numpy as np
from bag_maker import demo_leg
from lxml import etree
from mechanism_table import MECHANISMS
from reference_data import shared_robot

from rbda_ros import load_robot
from rbda_ros.recordings.identification import SPREAD
from rbda_ros.robot.effort_evidence import Evidence, Motion, gather
from rbda_ros.robot.inertia_chart import InertiaChart

NOISE = 0.02  # of the largest effort of each actuator


def mini_cheetah_leg():
    """Its front right leg, on a torso that is held."""
    root = etree.fromstring(shared_robot("mini_cheetah").read_bytes())
    others = ("FL_", "HR_", "HL_")
    for element in list(root):
        name = element.get("name", "")
        if any(part in name for part in others):
            root.remove(element)
        elif element.get("type") == "floating":
            element.set("type", "fixed")
    return load_robot(etree.tostring(root, encoding="unicode"))


def tello_leg():
    mechanism = MECHANISMS["tello_leg"]
    return load_robot(mechanism.urdf, mechanism.loops)


ROBOTS = {"demo_leg": demo_leg, "mini_cheetah_leg": mini_cheetah_leg, "tello_leg": tello_leg}


def waving(robot, count=4000, rate=100.0, size=0.3, seed=0):
    """Sums of sines: positions, velocities and accelerations of every independent joint."""
    rng = np.random.default_rng(seed)
    t = np.arange(count) / rate
    y = np.tile(robot.independent_position(robot.tree.home), (count, 1))
    yd, ydd = np.zeros((2, count, robot.ny))
    for j in range(robot.ny):
        for k in range(1, 6):
            w, phase = 2 * np.pi * 0.1 * k * (1 + 0.1 * j), rng.uniform(0, 6.28)
            a = rng.uniform(0.3, 1.0) * size / k
            y[:, j] += a * (np.sin(w * t + phase) - np.sin(phase))
            yd[:, j] += a * w * np.cos(w * t + phase)
            ydd[:, j] -= a * w**2 * np.sin(w * t + phase)
    return Motion(t, robot.close(y), yd, ydd, np.zeros((count, robot.ny)))


@functools.cache
def case(name):
    """A robot, the evidence of a motion without its efforts, and how noisy these are."""
    robot = ROBOTS[name]()
    evidence = gather(robot, [waving(robot)])
    noise = NOISE * np.abs(evidence.A @ robot.parameters().values).max(axis=0)
    return robot, evidence, noise


def drawn(robot, rng):
    """Parameters of a robot of the kind: inertias somewhat off, and friction."""
    parameters = robot.parameters()
    values = parameters.values.copy()
    for k in range(len(parameters.bodies)):
        chart = InertiaChart.around(values[10 * k : 10 * k + 10])
        values[10 * k : 10 * k + 10] = chart.parameters(rng.normal(0.0, SPREAD, chart.size))
    for name in robot.independent_joint_names:
        for kind in ("damping", "friction"):
            values[parameters.names.index(f"{name}.{kind}")] = rng.uniform(0.0, 1.0)
    return values


def measured(evidence, values, offsets, noise, rng, correlation=0.0):
    """The evidence with the efforts of a robot with these parameters, and noise."""
    efforts = evidence.A @ values + offsets
    fresh = rng.normal(size=efforts.shape)
    fresh[1:] *= np.sqrt(1 - correlation**2)
    for k in range(1, len(fresh)):
        fresh[k] += correlation * fresh[k - 1]
    efforts = efforts + noise * fresh
    return Evidence(evidence.times, evidence.A, efforts, evidence.velocities)

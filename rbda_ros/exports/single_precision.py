"""How far exported single precision is from double."""

from __future__ import annotations

import numpy as np

from rbda_ros.exports.c_library import ExportReport
from rbda_ros.exports.compiled import CompiledLibrary, compiler
from rbda_ros.robot.feedforward_call import feedforward
from rbda_ros.robot.robot import Robot

STATES = 100


def feedforward_error(robot: Robot, report: ExportReport) -> float | None:
    """Largest error of efforts beside the largest effort, at random states near the assembly.

    None without a compiler, without feedforward, or with a floating base.
    """
    if compiler() is None or "feedforward" not in report.functions or robot.coordinates.base_nq:
        return None
    call = feedforward(robot, report.measured)
    entries = [robot.coordinates.scalar_positions[name] for name in report.measured]
    library = CompiledLibrary(report, float32=True)
    library.path.unlink()
    rng, errors = np.random.default_rng(0), []
    for _ in range(STATES):
        call.forget()
        library.init()
        position = robot.tree.home[entries] + rng.uniform(-0.1, 0.1, len(entries))
        velocity, acceleration = rng.normal(size=(2, len(entries)))
        call.position[:] = [position[report.measured.index(name)] for name in call.joints]
        call.velocity[:] = [velocity[report.measured.index(name)] for name in call.joints]
        call.acceleration[:] = acceleration
        call()
        efforts = np.zeros(len(report.motors), np.float32)
        given = [each.astype(np.float32) for each in (position, velocity, acceleration)]
        if library.call("feedforward", *given, None, efforts) == 0:
            scale = np.abs(call.efforts).max(initial=1e-9)
            errors.append(np.abs(efforts - call.efforts).max(initial=0.0) / scale)
    return float(max(errors)) if errors else None

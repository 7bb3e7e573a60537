"""How well a robot's loops are conditioned along the range of one slider."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbda_ros.errors import ClosureError, InputError
from rbda_ros.spatial import Array
from rbda_ros.view.posing import Poser

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

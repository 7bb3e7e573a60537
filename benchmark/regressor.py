"""The regressor of inverse dynamics beside Pinocchio's, on trees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from benchmark.robots import example_pairs
from benchmark.timing import interleaved

BATCH = 1000


def rows() -> Iterator[tuple[str, int, float, float, float, float]]:
    """Robot, columns; and [us] of Pinocchio, of the kernel, the method, and a state of a batch."""
    for both in example_pairs():
        robot, model, data = both.robot, both.model, both.model.createData()
        kernel = robot.kernel("regressor")
        kernel.compile(batch=True)
        many = [np.tile(x, (BATCH, 1)) for x in both.ours]
        times = interleaved(
            {
                "pinocchio": lambda model=model, data=data, at=both.theirs: (
                    pin.computeJointTorqueRegressor(model, data, *at)
                ),
                "kernel": lambda kernel=kernel, at=both.ours: kernel.call(*at),
                "method": lambda robot=robot, at=both.ours: robot.regressor(*at),
                "batch": lambda robot=robot, at=many: robot.regressor(*at),
            }
        )
        times["batch"] /= BATCH
        yield both.name, len(robot.parameters().names), *times.values()


if __name__ == "__main__":
    for name, columns, peer, *ours in rows():
        ratios = ", ".join(
            f"{what} {time:.2f} us ({peer / time:.2f}x)"
            for what, time in zip(("kernel", "method", "in a batch"), ours, strict=True)
        )
        print(f"{name}, {columns} columns: pinocchio {peer:.2f} us; {ratios}")

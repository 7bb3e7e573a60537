"""Every kernel on real robots: machine code and batches against CasADi's virtual machine."""

from pathlib import Path

import numpy as np
import pytest
from pinocchio_oracle import example_robots

from rbda_ros import Contact, load_robot
from rbda_ros.errors import ModelError
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.registry import KERNELS

EXAMPLES = example_robots()
LOOPS = Path(__file__).parents[3] / "shared" / "robots"
# Instructions: longer kernels take long to compile, and are short on other robots.
LONGEST = 2_500
LONGEST_DYNAMICS = 10_000
BY_DAY = ["mini_cheetah", "solo12"]
SAY_LITTLE_MORE = [
    pytest.param(name, marks=pytest.mark.nightly)
    for name in (
        "four_bar",
        "four_bar_branch_2_2",
        "mit_humanoid_leg",
        "panda",
        "parallel_explicit_depth5_loop_size10",
        "parallel_implicit_depth5_loop_size5",
        "revolute_rotor_pair_branch_2_4",
        "talos_reduced",
    )
]


def load(name):
    if name in EXAMPLES:
        return load_robot(EXAMPLES[name], floating_base=name in ("solo12", "talos_reduced"))
    path = LOOPS / f"{name}.urdf"
    if not path.exists():
        pytest.skip(f"the shared robot {name} is not here")
    return load_robot(path, floating_base=name == "mini_cheetah")


def position(robot, rng):
    """A closed position."""
    size = robot.nq - (robot.nv - robot.ny)
    for _ in range(20):
        y = rng.uniform(-0.5, 0.5, size)
        if robot.floating_base:
            y[3:7] /= np.linalg.norm(y[3:7])
        try:
            return robot.close(y)
        except ModelError:  # that far the linkage does not reach
            continue
    return robot.tree.home


def kernels(robot):
    """Every kernel of a robot, those about frames for its last link; on loops, the dynamics."""
    frame = list(robot.tree.spanning.links)[-1]
    for name, traceable in KERNELS.items():
        if robot.nv != robot.ny and traceable.needs_frames:
            continue
        yield robot.kernel(name, *([frame] if traceable.needs_frames else []))
    if robot.floating_base:
        yield robot.contact_kernel([Contact(frame)])


def assert_close(result, expected, share=1e-12):
    """Equal to a share of the largest entry, or of one: loop residuals are sums of lengths."""
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(result, expected, rtol=0, atol=share * scale)


@pytest.mark.parametrize("name", BY_DAY + SAY_LITTLE_MORE)
def test_machine_code_equals_virtual_machine(name):
    robot = load(name)
    rng = np.random.default_rng(6)
    states = [position(robot, rng) for _ in range(6)]
    for kernel in kernels(robot):
        dynamics = kernel.name.endswith(("inverse_dynamics", "forward_dynamics"))
        if kernel.instructions > (LONGEST_DYNAMICS if dynamics else LONGEST):
            continue
        assert kernel.compile(batch=True), kernel.error
        # Contacts weigh a thousand robots, beside which inertias lose digits.
        share = 1e-9 if kernel.name == "constrained_forward_dynamics" else 1e-12
        interpreted = Kernel(kernel.function, compiled=False)
        inputs = [
            np.array(states) if port.name == "q" else rng.normal(size=(6, port.size))
            for port in kernel.program.inputs
        ]
        expected = interpreted.batch(*inputs)
        together = kernel.batch(*inputs)
        for k in range(6):
            alone = kernel.call(*(array[k] for array in inputs))
            for result, batch, reference in zip(alone, together, expected, strict=True):
                assert_close(result, reference[k], share)
                assert_close(batch[k], reference[k], share)

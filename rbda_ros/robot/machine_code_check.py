"""Machine code against the virtual machine, while a robot is in use.

Both run the same program, one after LLVM and in memory that a faulty board may have changed. What
they may differ in is rounding. Programs, machine code and assemblies that were read from disk are
compared with those that this process makes from the description.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rbda_ros.cluster_tree.tree import ClusterTree, build_cluster_tree
from rbda_ros.errors import ModelError
from rbda_ros.kernels.assembly_store import FEWEST, FUNCTIONS
from rbda_ros.kernels.fingerprint import fingerprint
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.robot import Robot
from rbda_ros.spatial import Array

ROUNDING = 1e-6
"""Difference that counts, relative to the largest number of an output."""
POSITIONS = frozenset({"q", "guess"})
RATES_AND_FORCES = frozenset({"yd", "ydd", "tau", "spanning_tau", "efforts", "wrenches"})


class MachineCodeError(ModelError):
    """Machine code gives other numbers than the program that it was made from."""


def check_machine_code(robot: Robot, seed: int) -> list[str]:
    """Compare all machine code of a robot, at its home position, with the virtual machine.

    Programs that were read from disk are compared with fresh traces, compiled or not. Kernels that
    differ are answered by the virtual machine from then on.

    Args:
        robot: any.
        seed: of the rates and forces to try.

    Returns:
        A sentence for each kernel that differs.
    """
    rng = np.random.default_rng(seed)
    said = []
    for kernel in robot.traced_kernels():
        if kernel.stored or (kernel.compiled and kernel.address is not None):
            inputs = _inputs(robot, kernel, rng)
            if inputs is not None and (wrong := check_kernel(kernel, inputs)):
                said.append(wrong)
    return said


def check_kernel(kernel: Kernel, inputs: Sequence[Array]) -> str | None:
    """Compare what a kernel answers to some inputs with its trace; what is wrong, if anything is.

    If so, the virtual machine answers from then on. A program that was read from disk is traced
    again first.
    """
    answers = kernel.call(*inputs)
    if not kernel.retrace():
        return _disable(kernel, f"{kernel.name}: the program on disk is not what tracing gives")
    expected = kernel.interpret(*inputs)
    for k, (found, wanted) in enumerate(zip(answers, expected, strict=True)):
        finite = np.isfinite(wanted)
        difference = np.abs(found[finite] - wanted[finite])
        scale = max(1.0, float(np.abs(wanted[finite]).max(initial=0.0)))
        if not difference.max(initial=0.0) <= ROUNDING * scale:  # nor where it is NaN
            off = f"output {k} of the machine code is off by {difference.max():.3g}"
            return _disable(kernel, f"{kernel.name}: {off}")
    return None


def _disable(kernel: Kernel, wrong: str) -> str:
    kernel.disable_machine_code(MachineCodeError(wrong))
    return wrong


def reassembled(robot: Robot) -> Robot | None:
    """The robot assembled again from its description, if its loops are not the described ones.

    Assemblies that were read from disk are compared with what assembling gives: the functions of
    every loop, to the last bit.
    """
    tree = robot.tree
    if sum(node.loop is not None for node in tree.clusters) < FEWEST:
        return None  # none of these is stored
    fresh = build_cluster_tree(tree.as_described, tree.spanning.floating_base, tree.gravity)
    same = _loops(tree) == _loops(fresh)
    return None if same else Robot(fresh).with_payloads(robot.payloads)


def _loops(tree: ClusterTree) -> str:
    """Fingerprint of the functions of all loops."""
    loops = [node.loop for node in tree.clusters if node.loop is not None]
    return fingerprint([[getattr(loop, name) for name in FUNCTIONS] for loop in loops])


def _inputs(robot: Robot, kernel: Kernel, rng: np.random.Generator) -> list[Array] | None:
    """Inputs to try; None where they cannot be guessed by their names."""
    inputs = []
    for name, size in kernel.input_sizes.items():
        if name in POSITIONS:
            inputs.append(robot.neutral())
        elif name in RATES_AND_FORCES:
            inputs.append(rng.normal(size=size))
        else:
            return None
    return inputs

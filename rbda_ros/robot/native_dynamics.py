"""Inverse dynamics of a robot as one C function: its kernels one after the other, and a check."""

from __future__ import annotations

from rbda_ros.cluster_tree.closing.tolerances import CLOSED, NEARBY, SINGULAR
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.compile import Code
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.llvm_text import at_address, literal
from rbda_ros.robot.inputs import LARGEST_POSITION


class NativeInverseDynamics:
    """`Robot.close` and `Robot.inverse_dynamics_efforts` for y. Threads may share it.

    The same kernels run as there, so the efforts are the same to the last bit. What is checked
    there at every step is checked here at the end, at once.

    Args:
        tree: the cluster tree.
        positions: how many y has.
        closure: the kernel that closes the loops for y; None without loops.
        inverse_dynamics, actuator_efforts, answer_health: the kernels of these names, all
            compiled.

    Attributes:
        positions: how many y has; with joints that are spherical, more than velocities.
        address: of ``bool (const double *position, const double *velocity, const double
            *acceleration, double *tau, double *efforts)``: the motion of y in, a floating base's
            first, with a unit quaternion; the force on y and the efforts of the actuated joints
            out. If it returns false, ask the robot: it knows why, or another way.
    """

    def __init__(
        self,
        tree: ClusterTree,
        positions: int,
        closure: Kernel | None,
        inverse_dynamics: Kernel,
        actuator_efforts: Kernel,
        answer_health: Kernel,
    ) -> None:
        self.positions = positions
        self._home = tree.home.copy()
        home = at_address(self._home.ctypes.data)
        motion = "%velocity", "%acceleration"
        ir = [
            "define zeroext i1 @solve("
            "ptr %position, ptr %velocity, ptr %acceleration, ptr %tau, ptr %efforts) nounwind {",
            _array("health", 4),
        ]
        if closure is None:
            ir.append("  %q = getelementptr i8, ptr %position, i64 0")
        else:
            ir += [_array("q", tree.nq), _array("phi", closure.program.outputs[1].size)]
            ir.append(_call(closure, "%position", home, "%q", "%phi"))
        ir += [
            _call(inverse_dynamics, "%q", *motion, "%tau"),
            _call(actuator_efforts, "%q", "%tau", "%efforts"),
            _call(answer_health, "%q", home, *motion, "%tau", "%efforts", "%health"),
        ]
        # As the robot does, in one comparison each; none holds of a NaN. What is larger than any
        # position may be is left to the robot, which knows what is too large.
        wanted = [("ole", NEARBY), ("ole", CLOSED), ("oge", SINGULAR), ("ole", LARGEST_POSITION**2)]
        for k, (comparison, bound) in enumerate(wanted):
            ir += [
                f"  %at{k} = getelementptr double, ptr %health, i64 {k}",
                f"  %value{k} = load double, ptr %at{k}",
                f"  %good{k} = fcmp {comparison} double %value{k}, {literal(bound)}",
            ]
        ir += ["  %one = and i1 %good0, %good1", "  %other = and i1 %good2, %good3"]
        ir += ["  %good = and i1 %one, %other", "  ret i1 %good", "}"]
        self._code = Code()
        self._in_use = closure, inverse_dynamics, actuator_efforts, answer_health
        (self.address,) = self._code.add({"solve": "\n".join(ir)})


def _array(name: str, size: int) -> str:
    return f"  %{name} = alloca [{max(size, 1)} x double], align 64"


def _call(kernel: Kernel, *pointers: str) -> str:
    assert kernel.address is not None
    return f"  call void {at_address(kernel.address)}({', '.join(f'ptr {p}' for p in pointers)})"

"""Dynamics of robots whose actuation has kinematic loops.

    from rbda_ros import load_robot
    robot = load_robot("robot.urdf", "loops.yaml")
    tau = robot.inverse_dynamics(q, qd, ydd)

This package imports no ROS; the node is in ``rbda_ros.node``. What is listed here is imported when
it is first asked for: a program can take care of Ctrl-C before that takes its second.
"""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

# The generated msg and srv lie in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rbda_ros.errors import (
        ClosureError,
        DescriptionError,
        InputError,
        ModelError,
        Problem,
        SingularityError,
    )
    from rbda_ros.robot.actuation import Actuation
    from rbda_ros.robot.contacts import ConstrainedMotion, Contact, ContactEfforts, Impact, Wheel
    from rbda_ros.robot.conversion import JointMotion
    from rbda_ros.robot.friction_contacts import FrictionalEfforts, FrictionalStep, FrictionContact
    from rbda_ros.robot.kinematic_tasks import (
        CenterOfMassTask,
        OrientationTask,
        PoseTask,
        PositionTask,
        PostureTask,
    )
    from rbda_ros.robot.momentum_observer import MomentumObserver
    from rbda_ros.robot.payloads import Payload
    from rbda_ros.robot.results import (
        Cluster,
        Derivatives,
        ForwardDynamicsDerivatives,
        InverseDynamicsDerivatives,
        OperationalSpace,
    )
    from rbda_ros.robot.robot import Robot, load_robot
    from rbda_ros.robot.state import State
    from rbda_ros.simulation.simulator import Simulator

__all__ = [
    "Actuation",
    "CenterOfMassTask",
    "ClosureError",
    "Cluster",
    "ConstrainedMotion",
    "Contact",
    "ContactEfforts",
    "Derivatives",
    "DescriptionError",
    "ForwardDynamicsDerivatives",
    "FrictionContact",
    "FrictionalEfforts",
    "FrictionalStep",
    "Impact",
    "InputError",
    "InverseDynamicsDerivatives",
    "JointMotion",
    "ModelError",
    "MomentumObserver",
    "OperationalSpace",
    "OrientationTask",
    "Payload",
    "PoseTask",
    "PositionTask",
    "PostureTask",
    "Problem",
    "Robot",
    "Simulator",
    "SingularityError",
    "State",
    "Wheel",
    "load_robot",
]

_HOMES = {
    "errors": (
        "ClosureError",
        "DescriptionError",
        "InputError",
        "ModelError",
        "Problem",
        "SingularityError",
    ),
    "robot.actuation": ("Actuation",),
    "robot.contacts": (
        "ConstrainedMotion",
        "Contact",
        "ContactEfforts",
        "Impact",
        "Wheel",
    ),
    "robot.conversion": ("JointMotion",),
    "robot.friction_contacts": ("FrictionContact", "FrictionalEfforts", "FrictionalStep"),
    "robot.kinematic_tasks": (
        "CenterOfMassTask",
        "OrientationTask",
        "PoseTask",
        "PositionTask",
        "PostureTask",
    ),
    "robot.momentum_observer": ("MomentumObserver",),
    "robot.payloads": ("Payload",),
    "robot.results": (
        "Cluster",
        "Derivatives",
        "ForwardDynamicsDerivatives",
        "InverseDynamicsDerivatives",
        "OperationalSpace",
    ),
    "robot.robot": (
        "Robot",
        "load_robot",
    ),
    "robot.state": ("State",),
    "simulation.simulator": ("Simulator",),
}
"""Where each of them is defined."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"rbda_ros.{module}"), name)
    raise AttributeError(f"module 'rbda_ros' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

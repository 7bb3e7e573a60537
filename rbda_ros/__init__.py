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
    from rbda_ros.errors import ClosureError as ClosureError
    from rbda_ros.errors import DescriptionError as DescriptionError
    from rbda_ros.errors import InputError as InputError
    from rbda_ros.errors import ModelError as ModelError
    from rbda_ros.errors import Problem as Problem
    from rbda_ros.errors import SingularityError as SingularityError
    from rbda_ros.robot.actuation import Actuation as Actuation
    from rbda_ros.robot.contacts import ConstrainedMotion as ConstrainedMotion
    from rbda_ros.robot.contacts import Contact as Contact
    from rbda_ros.robot.contacts import ContactEfforts as ContactEfforts
    from rbda_ros.robot.contacts import Impact as Impact
    from rbda_ros.robot.contacts import Wheel as Wheel
    from rbda_ros.robot.conversion import JointMotion as JointMotion
    from rbda_ros.robot.friction_contacts import FrictionalEfforts as FrictionalEfforts
    from rbda_ros.robot.friction_contacts import FrictionalStep as FrictionalStep
    from rbda_ros.robot.friction_contacts import FrictionContact as FrictionContact
    from rbda_ros.robot.kinematic_tasks import CenterOfMassTask as CenterOfMassTask
    from rbda_ros.robot.kinematic_tasks import OrientationTask as OrientationTask
    from rbda_ros.robot.kinematic_tasks import PoseTask as PoseTask
    from rbda_ros.robot.kinematic_tasks import PositionTask as PositionTask
    from rbda_ros.robot.kinematic_tasks import PostureTask as PostureTask
    from rbda_ros.robot.momentum_observer import MomentumObserver as MomentumObserver
    from rbda_ros.robot.payloads import Payload as Payload
    from rbda_ros.robot.results import Cluster as Cluster
    from rbda_ros.robot.results import Derivatives as Derivatives
    from rbda_ros.robot.results import ForwardDynamicsDerivatives as ForwardDynamicsDerivatives
    from rbda_ros.robot.results import InverseDynamicsDerivatives as InverseDynamicsDerivatives
    from rbda_ros.robot.results import OperationalSpace as OperationalSpace
    from rbda_ros.robot.robot import Robot as Robot
    from rbda_ros.robot.robot import load_robot as load_robot
    from rbda_ros.robot.state import State as State
    from rbda_ros.simulation.simulator import Simulator as Simulator

_HOMES = {
    "Actuation": "robot.actuation",
    "CenterOfMassTask": "robot.kinematic_tasks",
    "ClosureError": "errors",
    "Cluster": "robot.results",
    "ConstrainedMotion": "robot.contacts",
    "Contact": "robot.contacts",
    "ContactEfforts": "robot.contacts",
    "Derivatives": "robot.results",
    "DescriptionError": "errors",
    "ForwardDynamicsDerivatives": "robot.results",
    "FrictionContact": "robot.friction_contacts",
    "FrictionalEfforts": "robot.friction_contacts",
    "FrictionalStep": "robot.friction_contacts",
    "Impact": "robot.contacts",
    "InputError": "errors",
    "InverseDynamicsDerivatives": "robot.results",
    "JointMotion": "robot.conversion",
    "ModelError": "errors",
    "MomentumObserver": "robot.momentum_observer",
    "OperationalSpace": "robot.results",
    "OrientationTask": "robot.kinematic_tasks",
    "Payload": "robot.payloads",
    "PoseTask": "robot.kinematic_tasks",
    "PositionTask": "robot.kinematic_tasks",
    "PostureTask": "robot.kinematic_tasks",
    "Problem": "errors",
    "Robot": "robot.robot",
    "Simulator": "simulation.simulator",
    "SingularityError": "errors",
    "State": "robot.state",
    "Wheel": "robot.contacts",
    "load_robot": "robot.robot",
}
"""The public names, and the module of each."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"rbda_ros.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'rbda_ros' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

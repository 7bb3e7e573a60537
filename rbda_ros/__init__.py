"""Dynamics of robots whose actuation has kinematic loops.

    from rbda_ros import load_robot
    robot = load_robot("robot.urdf", "loops.yaml")
    tau = robot.inverse_dynamics(q, qd, ydd)

This package imports no ROS; the node is in ``rbda_ros.node``.
"""

from pkgutil import extend_path

# The generated msg and srv lie in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

from rbda_ros.errors import (
    ClosureError,
    DescriptionError,
    InputError,
    ModelError,
    Problem,
    SingularityError,
)
from rbda_ros.robot.actuation import Actuation
from rbda_ros.robot.contacts import ConstrainedMotion, Contact, ContactEfforts, Impact
from rbda_ros.robot.conversion import JointMotion
from rbda_ros.robot.momentum_observer import MomentumObserver
from rbda_ros.robot.payloads import Payload
from rbda_ros.robot.results import Cluster, Derivatives, OperationalSpace
from rbda_ros.robot.robot import Robot, load_robot
from rbda_ros.robot.state import State

__all__ = [
    "Actuation",
    "ClosureError",
    "Cluster",
    "ConstrainedMotion",
    "Contact",
    "ContactEfforts",
    "Derivatives",
    "DescriptionError",
    "Impact",
    "InputError",
    "JointMotion",
    "ModelError",
    "MomentumObserver",
    "OperationalSpace",
    "Payload",
    "Problem",
    "Robot",
    "SingularityError",
    "State",
    "load_robot",
]

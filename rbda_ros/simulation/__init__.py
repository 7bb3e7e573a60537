"""Simulation: robots that move with their loops closed, one or many at a time.

Lives here: `Simulator`, `ground_contacts`, `collision_shapes`, and `stepper`, the C module for the
steps.
Comes in: the robot and its kernels.
Used from outside: `simulator`, `ground_contacts`, `collision_shapes`.
"""

from importlib import import_module
from pkgutil import extend_path
from typing import Any

# The compiled module lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

stepper: Any = import_module(f"{__name__}.stepper")

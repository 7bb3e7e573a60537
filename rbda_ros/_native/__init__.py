"""C, where the interpreter must be left; compiled by the build (CMakeLists.txt).

Lives here: `calls`, kernels and the methods around them with their checks; `cones`, which finds the
impulses of contacts with friction, for `robot/friction_dynamics.py`; `c_messages`, which converts
messages of services for `node/services`. Their sources and headers.
Comes in: nothing of ours; Python and numpy, rosidl for messages.
Used from outside: `calls` and `cones`, which are None where they were not built. Everything but
contacts with friction works without them, and answers the same, but takes longer.
"""

from __future__ import annotations

import logging
from importlib import import_module
from pkgutil import extend_path
from typing import Any

# What is compiled lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)


def _find(module: str, what_is_slow: str) -> Any:
    """A module of this folder; None, said once, where it was not built."""
    try:
        return import_module(f"{__name__}.{module}")
    except ImportError as error:
        logging.getLogger(__name__).warning(
            "%s, because %s; install rbda_ros where there is a C compiler", what_is_slow, error
        )
        return None


calls: Any = _find("calls", "methods of robots take up to ten times as long as they could")
cones: Any = _find("cones", "contacts with friction are not there")

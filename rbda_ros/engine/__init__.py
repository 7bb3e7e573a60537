"""The engine: C that validates arguments, closes loops, evaluates kernels and checks results.

Lives here: `core`, the extension module, and its sources. For one state or many, it returns a
result, or a `core.Rejection` with a status and the row that is wrong, which Python explains.
Comes in: nothing of ours; Python and numpy. The build compiles it (cmake/engine.cmake).
Used from outside: `core`. It is required; there is no second implementation.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import extend_path
from typing import Any

# The compiled module lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

try:
    core: Any = import_module(f"{__name__}.core")
except ImportError as error:
    raise ImportError(
        f"rbda_ros.engine.core is not built ({error}); install rbda_ros with a wheel, or from its"
        " sources where there are CMake and a C compiler"
    ) from error

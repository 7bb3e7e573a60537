"""C beside the engine; compiled by the build (CMakeLists.txt).

Lives here: `cones`, which finds the impulses of contacts with friction, for
`robot/friction_dynamics.py`; `xla_call`, which compiled JAX code calls, for
`robot/doors/jax_calls.py`; `c_messages`, which converts messages of services for `node/services`.
Their sources and headers.
Comes in: nothing of ours; Python and numpy, rosidl for messages.
Used from outside: `cones`, `xla_call`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import extend_path
from typing import Any

# What is compiled lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

cones: Any = import_module(f"{__name__}.cones")

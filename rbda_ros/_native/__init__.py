"""C beside the engine; compiled by the build (CMakeLists.txt).

Lives here: `c_messages`, which converts messages of services for `node/services`.
Comes in: nothing of ours; Python and rosidl.
Used from outside: `c_messages`, where ROS is.
"""

from __future__ import annotations

from pkgutil import extend_path

# What is compiled lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

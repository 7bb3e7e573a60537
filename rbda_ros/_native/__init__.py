"""C of the node; compiled by the build (CMakeLists.txt).

Lives here: `stream`, threads that answer joint states and commands, which `node/stream` imports;
`c_messages`, which converts messages of services for `node/services`. Their sources and headers.
Comes in: nothing of ours; Python and numpy, rcl for the stream, rosidl for messages.
"""

from pkgutil import extend_path

# What is compiled lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

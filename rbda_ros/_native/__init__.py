"""C where the interpreter must be left.

Lives here: `stream`, the thread that answers joint states.
Comes in: Python and rcl, nothing of ours.
Used from outside: `stream.Stream`, by `node/stream`. Where it was not built, Python does its work.
"""

from pkgutil import extend_path

# What was compiled lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

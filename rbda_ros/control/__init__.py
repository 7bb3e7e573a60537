"""The stream as a machine without ROS: bytes and times in, bytes and rejections out.

``stream.Stream`` is what a node or a recording uses. The C files are the machine itself: they read
messages, close loops, run kernels and pass every effort through the gate; begin with ``machine.h``.
Python prepares configurations (``configuration``) and explains rejections (``rejections``); the
lists that both sides use are in ``configuration.h``. From outside come a robot, settings, messages
and times.
"""

from pkgutil import extend_path

# The compiled module lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

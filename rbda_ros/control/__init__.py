"""The stream as a machine without ROS: bytes and times in, bytes and rejections out.

``stream.Stream`` is what a node or a recording uses. The C files are the machine itself
(``machine.h`` is the place to begin): they read messages, close loops, run kernels and pass every
effort through the gate. Python prepares configurations (``configuration``) and explains rejections
(``rejections``). From outside come a robot, settings, messages and times.
"""

from pkgutil import extend_path

# The compiled module lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

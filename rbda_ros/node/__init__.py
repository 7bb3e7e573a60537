"""Everything that imports rclpy: the lifecycle node ``dynamics``.

Lives here: the node, its parameters and diagnostics, how models are built beside it, and what
messages mean; `stream_topics` connects the stream of `rbda_ros.control` to publishers and
subscriptions, `services` has requests and responses.
Comes in: `robot`, `control`.
Used from outside: `main.main`, and `dynamics_node.DynamicsNode` for a process of one's own.
"""

from pkgutil import extend_path

# The compiled module lies in the installed package, also when this is the source tree.
__path__ = extend_path(__path__, __name__)

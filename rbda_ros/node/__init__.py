"""Everything that imports rclpy: the lifecycle node ``dynamics``.

Lives here: the node, its parameters and diagnostics, how models are built beside it, and what
messages mean; in `stream` joint states and efforts, in `services` requests and responses.
Comes in: `robot`.
Used from outside: `main.main`, and `dynamics_node.DynamicsNode` for a process of one's own.
"""

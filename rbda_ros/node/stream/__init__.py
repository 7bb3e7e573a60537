"""Joint states in, efforts out: the hot path of the node.

Lives here: the topics, reading and writing of serialized messages, what was measured and how it
is completed, refusals' inputs and the meter.
Comes in: `robot`, and the modules of `node` itself.
Used from outside: `topics.Stream`, by the node.
"""

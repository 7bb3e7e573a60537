"""Short programs, one idea each: ``python -m rbda_ros.examples.NAME``.

Lives here: controllers and tools as users write them.
Comes in: the public API, and messages.
Used from outside: nothing; copy from them.
"""

from rbda_ros.node.stop_signals import end_at_signals, runs_module_of

if runs_module_of(__name__):
    end_at_signals()  # while it imports, or computes; examples that use ROS then do so themselves

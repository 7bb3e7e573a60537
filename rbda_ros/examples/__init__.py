"""Short programs, one idea each: ``python -m rbda_ros.examples.NAME``.

Lives here: controllers and tools as users write them.
Comes in: the public API, and messages.
Used from outside: nothing; copy from them.
"""

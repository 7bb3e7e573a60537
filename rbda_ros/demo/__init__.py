"""The bundled robot that moves: ``rbda_ros demo``.

Lives here: a source of joint states, the terminal view, the leg modelled without its loops, and
where bundled files are.
Comes in: `robot` and `node`.
Used from outside: `run.run`, and `resources.share_file` for files in ``config/``
and ``launch/``.
"""

from rbda_ros.node.stop_signals import end_at_signals, runs_module_of

if runs_module_of(__name__):
    end_at_signals(0)  # while it imports; then the program does so itself

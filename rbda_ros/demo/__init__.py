"""The bundled robot that moves: ``rbda_ros demo``.

Lives here: a source of joint states, the terminal view, the leg modelled without its loops, and
where bundled files are.
Comes in: `robot` and `node`.
Used from outside: `run.run`, and `resources.share_file` for files in ``config/``
and ``launch/``.
"""

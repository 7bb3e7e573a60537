"""The papers' figures and tables, reproduced: ``python -m benchmark.papers``.

One module a figure or table. Each has a ``TITLE``, its ``PAPER``'s short name (docs/notation.md),
``run(scope)`` that gives rows, ``claims(rows)`` that judges them, a ``TEXT`` for the page or
``text(rows)`` that makes it, and mostly ``plot(rows, path)``. ``KEYS`` are the columns that tell a
row, ``COUNTS`` those that are the same on every machine, and ``TIMES`` is true where times are
measured. Models are generated in `models`, come from example-robot-data, or belong to the reference
data; the dynamics are those of the public API, and what it does not offer is in `internals`.
"""

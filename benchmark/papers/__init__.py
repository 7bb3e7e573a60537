"""The papers' figures and tables, reproduced: ``python -m benchmark.papers``.

One module a figure or table. Each has a ``TITLE``, its ``PAPER``'s short name (docs/notation.md),
``run(quick)`` that gives a `Result`, and ``plot(result, path)``. Models are generated in `models`,
or read from ``../shared/robots`` where that is; the dynamics are those of the public API, and what
it does not offer is in `internals`.
"""

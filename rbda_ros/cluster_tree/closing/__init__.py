"""Closing loops: positions with ``phi(q) = 0``.

Lives here: everything that decides how loops are closed, below the kernels.
"""

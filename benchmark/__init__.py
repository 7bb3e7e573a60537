"""Our kernels beside their peers, in one run: ``python -m benchmark``."""

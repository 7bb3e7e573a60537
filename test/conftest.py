"""What all tests share."""

import os

# Before numpy comes: tests run side by side, and threads of small matrices wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

os.environ["RBDA_ROS_CACHE"] = "0"  # what tests before left on disk must not decide about these


@pytest.fixture(autouse=True)
def virtual_machine(request, monkeypatch):
    """Leave kernels uncompiled, but where compiling is the matter: it takes more than the calls.

    `test/kernels` holds machine code to the virtual machine; the node runs as users run it.
    """
    if not {"kernels", "node", "demo", "examples"} & set(request.path.parts):
        monkeypatch.setenv("RBDA_ROS_COMPILE", "0")

"""What all tests share."""

import os

import pytest

os.environ["RBDA_ROS_CACHE"] = "0"  # what tests before left on disk must not decide about these


@pytest.fixture(autouse=True)
def virtual_machine(request, monkeypatch):
    """Leave kernels uncompiled, but where compiling is the matter: it takes more than the calls.

    `test/kernels` holds machine code to the virtual machine; the node runs as users run it.
    """
    if not {"kernels", "node", "demo", "examples"} & set(request.path.parts):
        monkeypatch.setenv("RBDA_ROS_COMPILE", "0")

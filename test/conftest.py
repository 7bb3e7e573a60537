"""What all tests share."""

import pytest


@pytest.fixture(autouse=True)
def virtual_machine(request, monkeypatch):
    """Leave kernels uncompiled, but where compiling is the matter: it takes more than the calls.

    `test/kernels` holds machine code to the virtual machine; the node runs as users run it.
    """
    if not {"kernels", "node", "demo", "examples"} & set(request.path.parts):
        monkeypatch.setenv("RBDA_ROS_COMPILE", "0")

"""Fixtures of all tests."""

import os

# Before numpy comes: tests run side by side, and threads of small matrices wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

os.environ["RBDA_ROS_CACHE"] = "0"  # what tests before left on disk must not decide about these
RUN_THE_NODE = {"node", "demo", "examples"}


@pytest.fixture(scope="module", autouse=True)
def kernels_on_disk(request, tmp_path_factory):
    """Have nodes find their kernels on disk, as users' do, in a folder of this run of the tests."""
    if not RUN_THE_NODE & set(request.path.parts):
        yield
        return
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RBDA_ROS_CACHE", str(shared / "kernels_on_disk"))
        yield


@pytest.fixture(autouse=True)
def virtual_machine(request, monkeypatch):
    """Leave kernels uncompiled where compiling takes longer than the calls.

    `test/kernels` compares machine code with the virtual machine. The node runs as users run it,
    and so does the code on the pages, which simulates for some seconds.
    """
    if not (RUN_THE_NODE | {"kernels", "docs"}) & set(request.path.parts):
        monkeypatch.setenv("RBDA_ROS_COMPILE", "0")

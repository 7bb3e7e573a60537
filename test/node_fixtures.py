"""Fixtures that run the real node in processes of its own."""

from importlib.metadata import files
from pathlib import Path

import pytest
from ros_graph import Graph, own_domain

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file


@pytest.fixture
def graph(tmp_path):
    """An empty ROS graph for one test."""
    with own_domain() as domain:
        graph = Graph(domain, tmp_path)
        yield graph
        graph.close()


@pytest.fixture(scope="session")
def arm(tmp_path_factory):
    """The node on a UR5: a client, the description's path, and the same robot in Python."""
    yield from _serve(tmp_path_factory, example_robot("ur5_robot"))


@pytest.fixture(scope="session")
def solo(tmp_path_factory):
    """The node on a quadruped."""
    yield from _serve(tmp_path_factory, example_robot("solo12"), floating_base=True)


@pytest.fixture(scope="session")
def leg(tmp_path_factory):
    """The node on the demo leg, with its loops and rotors."""
    urdf = share_file("config/robots/demo_leg.urdf")
    loops = share_file("config/robots/demo_leg_loops.yaml")
    yield from _serve(tmp_path_factory, urdf, loop_constraints=str(loops))


def example_robot(name):
    """Path of a URDF of example-robot-data."""
    (file,) = (f for f in files("example-robot-data") or () if f.name == f"{name}.urdf")
    return Path(str(file.locate()))


def _serve(tmp_path_factory, urdf, loop_constraints="", floating_base=False):
    with own_domain() as domain:
        graph = Graph(domain, tmp_path_factory.mktemp("graph"))
        graph.serve(
            robot_description=urdf.read_text(),
            loop_constraints=loop_constraints,
            floating_base=floating_base,
        )
        client = graph.client()
        client.until_active()
        yield client, urdf, load_robot(urdf, loop_constraints or None, floating_base=floating_base)
        graph.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Show what the processes said where a test fails."""
    report = yield
    if report.failed:
        for graph in Graph.alive:
            report.sections.append((f"programs in {graph.folder}", graph.logs()[-8000:]))
    return report

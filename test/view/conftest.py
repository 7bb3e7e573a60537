"""The real node, in processes of its own."""

from node_fixtures import arm, graph, leg, pytest_runtest_makereport, solo

__all__ = ["arm", "graph", "leg", "pytest_runtest_makereport", "solo"]

"""Algorithms traced once per robot, and called with numpy arrays."""

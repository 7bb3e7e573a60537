"""Walking the links and joints as a tree, at zero configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rbda_ros.description.model import Joint, Vector3, vector3
from rbda_ros.spatial import rpy_matrix

T = TypeVar("T")
ONE_DOF = ("revolute", "continuous", "prismatic", "helical")


class Tree:
    """Which joint moves each link; where a broken file gives two, the first."""

    def __init__(self, joints: Iterable[Joint]) -> None:
        self.moved_by: dict[str, Joint] = {}
        self._rotations: dict[str, NDArray[np.float64]] = {}
        for joint in joints:
            self.moved_by.setdefault(joint.child, joint)

    def path(self, link: str) -> list[Joint]:
        """Return the joints from the root to a link; cut short where they run in a circle."""
        joints: list[Joint] = []
        visited = {link}
        while link in self.moved_by:
            joint = self.moved_by[link]
            joints.append(joint)
            link = joint.parent
            if link in visited:
                break
            visited.add(link)
        return joints[::-1]

    def paths_from_common_ancestor(
        self, first: str, second: str
    ) -> tuple[list[Joint], list[Joint]]:
        """Return the joints from two links' nearest common ancestor to each of them."""
        to_first, to_second = self.path(first), self.path(second)
        shared = 0
        for a, b in zip(to_first, to_second, strict=False):
            if a is not b:
                break
            shared += 1
        return to_first[shared:], to_second[shared:]

    def body_of(self, links: Iterable[str]) -> dict[str, str]:
        """Return for each link the one nearest the root that fixed joints join it to."""
        body: dict[str, str] = {}
        for link in links:
            chain: dict[str, None] = {}
            while link not in body and link not in chain:
                chain[link] = None
                joint = self.moved_by.get(link)
                if joint is None or joint.type != "fixed":
                    break
                link = joint.parent
            body.update(dict.fromkeys(chain, body.get(link, link)))
        return body

    def rotation(self, link: str) -> NDArray[np.float64]:
        """Return the rotation from a link's axes to the root's, at zero configuration."""
        chain: list[Joint] = []
        while link not in self._rotations:
            self._rotations[link] = np.eye(3)  # the root's; also ends a circle
            if link not in self.moved_by:
                break
            chain.append(self.moved_by[link])
            link = chain[-1].parent
        rotation = self._rotations[link]
        for joint in reversed(chain):
            rotation = rotation @ rpy_matrix(joint.origin.rpy)
            self._rotations[joint.child] = rotation
        return rotation

    def axis_in(self, joint: Joint, link: str) -> Vector3:
        """Return a joint's axis in the axes of any link, at zero configuration."""
        if link == joint.parent:
            axis = rpy_matrix(joint.origin.rpy) @ joint.axis
        else:
            to_root = self.rotation(joint.parent) @ rpy_matrix(joint.origin.rpy)
            axis = self.rotation(link).T @ to_root @ joint.axis
        axis = np.where(np.abs(axis) < 1e-15, 0.0, axis)  # what rounding left of a zero
        return vector3(axis / np.linalg.norm(axis))


def joints_by_name(joints: Iterable[Joint]) -> Mapping[str, Joint]:
    """Put the joints under their names; of two with one name, the first."""
    named: dict[str, Joint] = {}
    for joint in joints:
        named.setdefault(joint.name, joint)
    return named


def circles(next_of: Mapping[T, T]) -> Iterator[list[T]]:
    """The circles of a graph whose nodes have one successor at most; each node is visited once."""
    done: set[T] = set()
    for node in next_of:
        path: dict[T, int] = {}
        while node in next_of and node not in done and node not in path:
            path[node] = len(path)
            node = next_of[node]
        if node in path:
            yield list(path)[path[node] :]
        done.update(path)

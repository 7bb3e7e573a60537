"""What the tables of elements call read has an effect; ignored has none; warned is named.

Samples show every element and attribute of a format. Each value in them is changed, one at a time:
what a sample gives is then another description, a warning or an error where the table says that it
is read, and the very same description where the table says that it does not concern dynamics.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from element_samples import SDF, URDF
from lxml import etree

from rbda_ros.description import elements, read_description
from rbda_ros.errors import DescriptionError

SAMPLES = {"robot": URDF, "sdf": SDF}
PATH_OF: dict[str, Callable[[str, str], str]] = {
    "robot": elements._urdf_path,
    "sdf": elements._sdf_path,
}
Key = tuple[str, str]
"""A path in the table, and an attribute; "" for the element itself, or its text."""

VECTORS = ("xyz", "rpy", "pose")


def outcome(root: etree._Element) -> str:
    """What reading gives: the description with its warnings, or the error."""
    try:
        found = repr(read_description(etree.tostring(root, encoding="unicode")))
    except DescriptionError as error:
        found = f"error: {error}"
    return re.sub(r"line \d+|digits=\d+", "", found)


def places(root: etree._Element) -> Iterator[tuple[str, etree._Element]]:
    """Every element with its path in the table."""
    path_of = PATH_OF[str(root.tag)]
    pending = [(root, str(root.tag))]
    while pending:
        element, path = pending.pop()
        yield path, element
        for inside in element.iterchildren():
            pending.append((inside, path_of(path, elements._tag(inside))))


def others(value: str) -> list[str | None]:
    """Other values: for numbers each one changed, for words the opposite or none that is known."""
    parts = value.split()
    try:
        numbers = [float(part) for part in parts or ["none"]]
    except ValueError:
        return [{"true": "false", "false": "true"}.get(value.strip().lower(), "frob"), None]
    found: list[str | None] = [None]
    for i, number in enumerate(numbers):
        found.insert(i, " ".join([*parts[:i], repr(number * 1.25 + 0.0625), *parts[i + 1 :]]))
    return found


def variants(root: etree._Element, element: etree._Element, name: str) -> Iterator[etree._Element]:
    """The file with another value of an attribute, or of the element's text, or without it."""
    index = list(root.iter()).index(element)
    for other in others(element.get(name, "") if name else element.text or ""):
        made = copy.deepcopy(root)
        target = list(made.iter())[index]
        parent = target.getparent()
        if name and other is None:
            del target.attrib[name]
        elif name:
            target.set(name, other or "")
        elif other is not None:
            target.text = other
        elif parent is not None:
            parent.remove(target)
        yield made


@cache
def effects(root: str) -> dict[Key, bool]:
    """Whether a change is noticed in some sample; of a vector, that of every component."""
    found: dict[Key, bool] = {}
    for sample in SAMPLES[root]:
        tree = etree.fromstring(sample)
        base = outcome(tree)
        assert not base.startswith("error"), base
        for path, element in list(places(tree)):
            path = path if path in elements.table(root) else f"{path.rpartition('/')[0]}/*"
            for name in ("", *map(str, element.attrib)):
                key = path, name.replace("{http://drake.mit.edu}", "drake:")
                if not found.get(key):
                    changed = [outcome(made) != base for made in variants(tree, element, name)]
                    of_each = name in VECTORS or (not name and element.tag in VECTORS)
                    found[key] = all(changed[:-1]) if of_each else any(changed)
    return found


@cache
def stated(root: str) -> dict[str, set[Key]]:
    """What the table says is read or warned about, is ignored, or is left out with a warning."""
    found: dict[str, set[Key]] = {"noticed": set(), "ignored": set(), "left out": set()}
    for path, rest in elements.entries(root):
        if rest in ("ignored", "left out"):
            found[rest].add((path, ""))
            continue
        read, _, ignored = rest.partition("ignored")
        found["noticed"].add((path, ""))
        for name in read.replace(";", " ").replace("warned", " ").split():
            found["noticed"].add((path, name))
        found["ignored"].update((path, name) for name in ignored.split())
    return found


LABELS = {
    "robot": {
        ("robot", ""),
        ("robot/transmission", "name"),
        ("robot/ros2_control/transmission", "name"),
    },
    "sdf": {("sdf", ""), ("sdf/world", "name"), ("model/include", ""), ("model/include", "merge")},
}
"""Roots, names that only messages use, and what is rejected."""


@pytest.mark.parametrize("root", SAMPLES)
def test_what_is_read_has_an_effect(root):
    found, expected = effects(root), stated(root)["noticed"] - LABELS[root]
    assert not [key for key in sorted(expected) if key not in found], "in no sample"
    assert not [key for key in sorted(expected) if not found[key]], "no effect"


@pytest.mark.parametrize("root", SAMPLES)
def test_what_is_ignored_has_none(root):
    found = effects(root)
    expected = {key for key in stated(root)["ignored"] if key[1]}
    assert not [key for key in sorted(expected) if key not in found], "in no sample"
    assert not [key for key in sorted(expected) if found[key]], "has an effect"


@pytest.mark.parametrize("root", SAMPLES)
def test_elements_that_are_ignored_change_nothing_and_those_left_out_are_named(root):
    """Each is put where a sample has its parent; the description must be the same but for it."""
    said = stated(root)
    parents: dict[str, tuple[etree._Element, int, str]] = {}
    for sample in SAMPLES[root]:
        tree = etree.fromstring(sample)
        base, order = outcome(tree), list(tree.iter())
        for path, element in places(tree):
            parents.setdefault(path, (tree, order.index(element), base))
    wrong = []
    for kind in ("ignored", "left out"):
        for path in sorted(key[0] for key in said[kind] if not key[1]):
            parent, _, tag = path.rpartition("/")
            places_of = {"model": "sdf/model"}.get(parent, parent)
            if tag == "*" or places_of not in parents:
                wrong += [path] if tag != "*" else []
                continue
            tree, index, base = parents[places_of]
            made = copy.deepcopy(tree)
            prefix, _, name = tag.rpartition(":")
            full = f"{{http://drake.mit.edu}}{name}" if prefix else name
            etree.SubElement(list(made.iter())[index], full, frob="1").text = "1"
            found = outcome(made)
            named = f"<{tag}> (): is left out" in found
            if (found == base) != (kind == "ignored") or named != (kind == "left out"):
                wrong.append(path)
    assert not wrong

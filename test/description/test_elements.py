"""Nothing of a file is dropped without a word: every element and attribute stands in a table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from description_texts import LEG, leg, robot

from rbda_ros.description import elements, read_description
from rbda_ros.description.report import Report
from rbda_ros.description.xml_text import parse_xml

ROOT = Path(__file__).resolve().parents[2]


def warnings_of(text: str) -> tuple[str, ...]:
    report = Report()
    root = parse_xml(text, report)
    assert root is not None
    elements.warn_of_unknown_elements(root, report)
    return report.warnings


def schema(text: str) -> dict[str, set[str]]:
    """Elements of MuJoCo's own schema by path, with their attributes."""
    found: dict[str, set[str]] = {}
    path: list[str] = []
    for row in text.splitlines():
        match = re.match(r"( *)(\S+) \(.\)(.*)", row)
        if match:
            depth = len(match[1]) // 3
            path = [*path[:depth], match[2]]
            found["/".join(path)] = set(match[3].split())
        elif row.strip():
            found["/".join(path)].update(row.split())
    return found


def test_every_element_and_attribute_that_mujoco_knows_is_listed():
    mujoco = pytest.importorskip("mujoco")
    known = elements.table("mujoco")
    unlisted = []
    for full, attributes in schema(mujoco.mj_printSchema(False, False)).items():
        path, *rest = full.replace("(world)body", "worldbody").split("/")
        ignored = False
        for tag in rest:
            path = elements._mjcf_path(path, tag)
            entry = known.get(path) or known.get(f"{path.rpartition('/')[0]}/*")
            if entry is None or entry.is_ignored or entry.is_left_out:
                ignored = entry is not None
                break
        if ignored:
            continue
        entry = known.get(path) or known.get(f"{path.rpartition('/')[0]}/*")
        if path == "mujoco/worldbody":  # the schema has them as one
            entry = known["body"]
        if entry is None:
            unlisted.append(path)
        elif not entry.is_ignored and not entry.is_left_out:
            unlisted += [f"{path}@{name}" for name in attributes - entry.attributes]
    assert not unlisted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<frob a='1'/>", "<frob> (line 1): is unknown, and ignored"),
        ("<link name='x' frob='1'/>", "<link> (line 1): attribute 'frob' is unknown, and ignored"),
        ("<joint name='x'><frob/></joint>", "<frob> (line 1): is unknown"),
        ("<drake:linear_spring_damper/>", "<drake:linear_spring_damper> (line 1): is left out"),
        ("<frob:thing/>", "<thing> (line 1): is unknown"),
    ],
)
def test_what_a_urdf_has_beside_the_table_is_named(text, expected):
    assert any(expected in warning for warning in warnings_of(f"<robot name='r'>{text}</robot>"))


def test_what_is_ignored_changes_nothing_and_says_nothing():
    more = (
        "<material name='m'><color rgba='1 1 1 1'/></material>"
        "<gazebo reference='base'><mu1>1</mu1></gazebo>"
    )
    assert leg(more) == leg()
    assert leg(more).warnings == ()


def test_each_kind_is_named_once():
    text = robot(*LEG, *("<frob/>" for _ in range(50)))
    assert len(read_description(text).warnings) == 1


def test_unknown_elements_of_sdf_and_mjcf_are_named():
    text = "<sdf version='1.9'><model name='m'><link name='a'><frob/></link></model></sdf>"
    assert any("<frob>" in warning for warning in warnings_of(text))
    inside = "<body frob='1'><body><joint axle='1'/></body></body>"
    assert len(warnings_of(f"<mujoco><worldbody>{inside}</worldbody></mujoco>")) == 2
    inside = "<default class='c'><joint axle='1' armature='1'/></default>"
    assert len(warnings_of(f"<mujoco><default>{inside}</default></mujoco>")) == 1


def test_all_of_usd_physics_is_listed():
    """Every property of UsdPhysics is in the documentation's table."""
    pytest.importorskip("pxr")
    from pxr import Tf, Usd, UsdPhysics

    listed = (ROOT / "docs" / "formats.md").read_text()
    registry, missing = Usd.SchemaRegistry(), []
    for kind in Tf.Type.Find(Usd.SchemaBase).GetAllDerivedTypes():
        if "UsdPhysics" not in kind.typeName:
            continue
        schema_name = registry.GetSchemaTypeName(kind)
        found = registry.FindConcretePrimDefinition(
            schema_name
        ) or registry.FindAppliedAPIPrimDefinition(schema_name)
        for name in found.GetPropertyNames() if found else ():
            last = name.rpartition(":")[2]
            if name.startswith(("physics:", "drive:", "limit:")) and f"`{last}`" not in listed:
                missing.append(f"{schema_name} {name}")
    assert UsdPhysics and not missing


@pytest.mark.parametrize("name", ["URDF", "SDF", "MJCF"])
def test_the_documentation_prints_the_tables(name):
    """`python tools/format_tables.py` writes them."""
    from format_tables import rendered

    assert rendered(name) in (ROOT / "docs" / "formats.md").read_text()

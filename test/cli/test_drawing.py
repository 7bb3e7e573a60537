"""The drawing: everything is there, in the cluster where it belongs, and nothing is cut off."""

import itertools
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from mechanism_table import MECHANISMS
from pinocchio_oracle import example_robots

from rbda_ros import load_robot
from rbda_ros.cli.inspection import (
    DrawingError,
    draw,
    graph,
    is_current,
    joined_bodies,
    shorten,
    write_drawing,
)

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
DEMO = (ROOT / "config/robots/demo_leg.urdf", ROOT / "config/robots/demo_leg_loops.yaml")
BIG = ("talos", "g1_29dof", "icub", "pr2")


def big_robot(start):
    path = next(path for stem, path in example_robots().items() if stem.startswith(start))
    return load_robot(path, floating_base=True)


def many_gears(count):
    """Many bodies in one cluster, with almost as many lanes."""
    inertia = (
        "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
        "</inertial>"
    )
    parts = ["<link name='l0'/>"]
    for i in range(1, count + 1):
        parts.append(f"<link name='l{i}'>{inertia}</link>")
        parts.append(
            f"<joint name='a_joint_with_a_long_name_{i}' type='continuous'>"
            f"<parent link='l{(i - 1) // 2}'/><child link='l{i}'/></joint>"
        )
    terms = [(i, i + 3) for i in range(1, count - 2)]
    constraints = [
        {
            "name": f"a_coupling_with_a_long_name_{i}",
            "type": "coupling",
            "terms": {f"a_joint_with_a_long_name_{k}": 1.0 + 0.1 * k for k in pair},
        }
        for i, pair in enumerate(terms)
    ]
    return load_robot(f"<robot name='r'>{''.join(parts)}</robot>", {"constraints": constraints})


ROBOTS = (
    {f"mechanism {name}": mechanism.load for name, mechanism in MECHANISMS.items()}
    | {name: lambda name=name: big_robot(name) for name in BIG}
    | {
        "demo": lambda: load_robot(*DEMO),
        "demo, open chain": lambda: load_robot(DEMO[0]),
        "demo, floating": lambda: load_robot(*DEMO, floating_base=True),
        "forty bodies tied": lambda: many_gears(40),
        "no joint": lambda: load_robot("<robot name='stone'><link name='stone'/></robot>"),
    }
)


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    return ROBOTS[request.param]()


@pytest.fixture(scope="module")
def drawing(robot):
    pytest.importorskip("pygraphviz")
    return ElementTree.fromstring(draw(robot))


def groups(drawing, kind):
    """The groups of nodes, edges or clusters of a drawing, by the name in the graph."""
    found = [g for g in drawing.iter(f"{SVG}g") if g.get("class") == kind]
    return {g.find(f"{SVG}title").text: g for g in found}


def box(group):
    """Left, top, right and bottom of the outline of a node or cluster."""
    outline = next(e for e in group.iter() if e.tag in (f"{SVG}path", f"{SVG}polygon"))
    numbers = re.findall(r"-?[\d.]+", outline.get("d") or outline.get("points"))
    x, y = [float(n) for n in numbers[::2]], [float(n) for n in numbers[1::2]]
    return min(x), min(y), max(x), max(y)


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def inside(a, b):
    return b[0] <= a[0] and a[2] <= b[2] and b[1] <= a[1] and a[3] <= b[3]


def test_nothing_overlaps(drawing):
    boxes = {name: box(group) for name, group in groups(drawing, "node").items()}
    for (a, first), (b, second) in itertools.combinations(boxes.items(), 2):
        assert not overlap(first, second), (a, b)


def test_every_body_is_in_the_box_of_its_cluster_and_in_no_other(robot, drawing):
    nodes, clusters = groups(drawing, "node"), groups(drawing, "cluster")
    bodies = {int(name[1:]): box(g) for name, g in nodes.items() if name.startswith("b")}
    assert sorted(bodies) == list(range(len(robot.tree.spanning.bodies) + 1))
    for k, node in enumerate(robot.tree.clusters):
        boxed = len(node.bodies) > 1 or node.loop is not None
        assert (f"cluster_{k}" in clusters) == boxed
        if boxed:
            around = box(clusters[f"cluster_{k}"])
            within = {number for number, each in bodies.items() if overlap(each, around)}
            assert within == set(node.numbers)
            assert all(inside(bodies[number], around) for number in node.numbers)


def test_lines_go_where_the_model_says(robot, drawing):
    edges = set(groups(drawing, "edge"))
    wanted = {
        f"b{body.parent}->b{number}"
        for number, body in enumerate(robot.tree.spanning.bodies, start=1)
    }
    for k, node in enumerate(robot.tree.clusters):
        for place, constraint in enumerate(node.loop.constraints if node.loop else ()):
            bodies = joined_bodies(robot.tree.spanning, constraint)
            wanted |= {f"b{number}->c{k}_{place}" for number in bodies}
    assert edges == wanted


def test_everything_is_on_the_page_and_named(robot, drawing):
    _, _, width, height = map(float, drawing.get("viewBox").split())
    move = drawing.find(f"{SVG}g").get("transform")
    x, y = map(float, re.search(r"translate\((\S+) (\S+)\)", move).groups())
    for group in groups(drawing, "node").values():
        left, top, right, bottom = box(group)
        assert inside((left + x, top + y, right + x, bottom + y), (0.0, 0.0, width, height))
    texts = {element.text for element in drawing.iter(f"{SVG}text")}
    for cluster in robot.clusters:
        assert {shorten(joint) for joint in cluster.joints} <= texts
    link = "{http://www.w3.org/1999/xlink}title"
    tooltips = "\n".join(element.get(link, "") for element in drawing.iter(f"{SVG}a"))
    assert all(name in tooltips for cluster in robot.clusters for name in cluster.links)


def test_marks_of_the_demo_leg():
    edges = re.findall(r"b\d+ -> b\d+ \[label=<(.*?)>, tooltip", graph(load_robot(*DEMO)))
    names = {re.sub("<.*?>", " ", edge).split()[0]: edge for edge in edges}
    independent = {name for name, edge in names.items() if "<B>" in edge}
    actuated = {name for name, edge in names.items() if "motor</FONT>" in edge}
    assert independent == {"hip_abduction", "hip_flexion", "knee", "ankle"}
    assert actuated == {
        "hip_abduction_rotor", "hip_flexion_rotor", "knee_rotor", "ankle_pulley_rotor"
    }  # fmt: skip


def test_odd_names_stay_well_formed():
    pytest.importorskip("pygraphviz")
    robot = load_robot(
        "<robot name='&lt;b&gt; &amp; co'><link name='base'/><link name='a&quot;b\\N'><inertial>"
        "<mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
        f"</link><joint name='{'x' * 300}' type='continuous'><parent link='base'/>"
        "<child link='a&quot;b\\N'/></joint></robot>"
    )
    svg = draw(robot)
    texts = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "<b> & co" in texts and '1  a"b\\N' in [t.replace("\xa0", " ") for t in texts]
    assert not any("x" * 41 in text for text in texts)
    assert "x" * 300 in svg  # in the tooltip


def test_the_committed_picture_is_of_the_demo_leg():
    leg = load_robot(*DEMO)
    picture = (ROOT / "docs/pictures/demo_leg.svg").read_text()
    assert is_current(picture, leg), "make screenshots draws it anew"
    assert not is_current(picture, load_robot(DEMO[0]))


def test_files_of_three_types(tmp_path):
    leg = load_robot(*DEMO)
    write_drawing(leg, tmp_path / "leg.dot")
    assert (tmp_path / "leg.dot").read_text() == graph(leg)
    with pytest.raises(DrawingError, match=r"\.svg, \.png or \.dot"):
        write_drawing(leg, tmp_path / "leg.pdf")
    pytest.importorskip("pygraphviz")
    write_drawing(leg, tmp_path / "leg.png")
    assert (tmp_path / "leg.png").read_bytes().startswith(b"\x89PNG")


def test_without_graphviz_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(DrawingError, match="pip install pygraphviz"):
        write_drawing(load_robot(*DEMO), tmp_path / "leg.svg")

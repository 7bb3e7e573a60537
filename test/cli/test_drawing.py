"""The drawing, by its geometry: nothing overlaps, nothing is cut off, everything is there."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from mechanism_table import MECHANISMS
from PIL import ImageFont
from pinocchio_oracle import example_robots

from rbda_ros import load_robot
from rbda_ros.cli import drawing
from rbda_ros.cli.drawing import DrawingError, draw, write_drawing
from rbda_ros.cli.drawing_layout import joined_bodies, lay_out
from rbda_ros.cli.drawing_shapes import PAD, SMALL, Box, shorten, text_width

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


def overlap(a, b):
    return a.x < b.right and b.x < a.right and a.y < b.bottom and b.y < a.bottom


def inside(a, b):
    grown = Box(b.x - 1e-6, b.y - 1e-6, b.width + 2e-6, b.height + 2e-6)
    return grown.x <= a.x and a.right <= grown.right and grown.y <= a.y and a.bottom <= grown.bottom


def written(scene):
    """Rectangles of all that can be read."""
    boxes = [card.box for card in scene.cards]
    boxes += [card.joint_label for card in scene.cards if card.joint]
    boxes += [pill.box for pill in scene.pills]
    for box in scene.boxes:
        if box.label:
            boxes.append(Box(box.x + PAD, box.y + PAD - 3.0, text_width(box.label, SMALL), SMALL))
    return boxes


def test_boxes_do_not_intersect(robot):
    scene = lay_out(robot.tree)
    assert len(scene.boxes) == len(robot.clusters)
    assert not any(overlap(a, b) for a, b in itertools.combinations(scene.boxes, 2))


def test_every_body_is_in_the_box_of_its_cluster_and_in_no_other(robot):
    scene = lay_out(robot.tree)
    card = {card.number: card for card in scene.cards}
    assert sorted(card) == list(range(len(robot.tree.spanning.bodies) + 1))
    for node, box in zip(robot.tree.clusters, scene.boxes, strict=True):
        within = {number for number, c in card.items() if overlap(c.box, box)}
        assert within == set(node.numbers)
        assert all(inside(card[number].box, box) for number in node.numbers)
        assert bool(box.label) == (len(node.bodies) > 1 or node.loop is not None)


def test_nothing_written_overlaps(robot):
    for a, b in itertools.combinations(written(lay_out(robot.tree)), 2):
        assert not overlap(a, b), (a, b)


def test_no_line_runs_through_anything_written(robot):
    scene = lay_out(robot.tree)
    boxes = written(scene)
    for line in scene.lines:
        for (x1, y1), (x2, y2) in itertools.pairwise(line.points):
            assert x1 == x2 or y1 == y2 or abs(x1 - x2) + abs(y1 - y2) < 0.1
            stroke = Box(min(x1, x2) + 0.1, min(y1, y2) + 0.1, abs(x2 - x1), abs(y2 - y1))
            stroke = replace(
                stroke, width=max(stroke.width - 0.2, 0.1), height=max(stroke.height - 0.2, 0.1)
            )
            assert not any(overlap(stroke, box) for box in boxes), (line, stroke)


def test_lines_go_where_the_model_says(robot):
    scene = lay_out(robot.tree)
    card = {card.number: card.box for card in scene.cards}
    tree_lines = [line.points for line in scene.lines if not line.loop]
    for number, body in enumerate(robot.tree.spanning.bodies, start=1):
        assert _connected(tree_lines, card[body.parent], card[number])
    assert len(scene.pills) == sum(len(cluster.constraints) for cluster in robot.clusters)
    for pill in scene.pills:
        loops = [line.points for line in scene.lines if line.loop]
        for number in joined_bodies(robot.tree.spanning, pill.constraint):
            assert _connected(loops, pill.box, card[number])


def _connected(lines, a, b):
    """Whether lines lead from one rectangle's edge to another's."""
    reached = [line for line in lines if _touches(line, a)]
    pending = list(reached)
    while pending:
        line = pending.pop()
        if _touches(line, b):
            return True
        more = [other for other in lines if other not in reached and _meet(line, other)]
        reached += more
        pending += more
    return False


def _touches(line, box):
    edge = Box(box.x - 0.1, box.y - 0.1, box.width + 0.2, box.height + 0.2)
    return any(
        edge.x <= x <= edge.right and edge.y <= y <= edge.bottom for x, y in (line[0], line[-1])
    )


def _meet(a, b):
    """Whether an end of one line lies on the other."""
    return _on(a[0], b) or _on(a[-1], b) or _on(b[0], a) or _on(b[-1], a)


def _on(point, line):
    return any(
        min(x1, x2) - 0.1 <= point[0] <= max(x1, x2) + 0.1
        and min(y1, y2) - 0.1 <= point[1] <= max(y1, y2) + 0.1
        for (x1, y1), (x2, y2) in itertools.pairwise(line)
    )


def shapes(element, x=0.0, y=0.0):
    """Every shape and text of an SVG, with the box that it takes on the page."""
    moved = re.match(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2])
    get = {k: float(v) for k, v in element.attrib.items() if re.fullmatch(r"-?[\d.]+", v)}
    tag = element.tag.removeprefix(SVG)
    if tag == "rect":
        yield element, Box(get["x"] + x, get["y"] + y, get["width"], get["height"])
    elif tag == "circle":
        r = get["r"]
        yield element, Box(get["cx"] - r + x, get["cy"] - r + y, 2 * r, 2 * r)
    elif tag == "text":
        size = get["font-size"]
        width = text_width(element.text, size, element.get("font-weight") == "bold")
        left = get["x"] - (width / 2 if element.get("text-anchor") == "middle" else 0.0)
        yield element, Box(left + x, get["y"] - size + y, width, 1.2 * size)
    elif tag == "path":
        for px, py in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", element.get("d")):
            yield element, Box(float(px) + x, float(py) + y, 0.0, 0.0)
    for child in element:
        yield from shapes(child, x, y)


def test_everything_is_on_the_page_and_well_formed(robot):
    root = ElementTree.fromstring(draw(robot))
    assert root.tag == f"{SVG}svg"
    page = Box(*map(float, root.get("viewBox").split()))
    outside = [(e.tag, e.text) for e, box in shapes(root) if not inside(box, page)]
    assert outside == []
    texts = {element.text for element in root.iter(f"{SVG}text")}
    for cluster in robot.clusters:
        assert {shorten(joint) for joint in cluster.joints} <= texts
    assert {str(i) for i in range(len(robot.tree.spanning.bodies) + 1)} <= texts
    titles = "\n".join(element.text for element in root.iter(f"{SVG}title"))
    assert all(link in titles for cluster in robot.clusters for link in cluster.links)


def test_text_is_no_wider_than_thought():
    fonts = Path(matplotlib.get_data_path()) / "fonts/ttf"
    for file, bold in (("DejaVuSans.ttf", False), ("DejaVuSans-Bold.ttf", True)):
        font = ImageFont.truetype(str(fonts / file), 1000)
        names = {n for r in (load_robot(*DEMO), *map(big_robot, BIG)) for n in r.joint_names}
        for name in (*names, "WWWMMM@", "iljIJ", "größe_関節"):
            assert font.getlength(name) <= 1000 * text_width(name, 1.0, bold) + 1, name


def test_marks_of_the_demo_leg():
    cards = {card.joint: card for card in lay_out(load_robot(*DEMO).tree).cards if card.joint}
    independent = {name for name, card in cards.items() if card.independent}
    actuated = {name for name, card in cards.items() if card.actuated}
    assert independent == {"hip_abduction", "hip_flexion", "knee", "ankle"}
    assert actuated == {
        "hip_abduction_rotor", "hip_flexion_rotor", "knee_rotor", "ankle_pulley_rotor"
    }  # fmt: skip


def test_odd_names_stay_well_formed():
    robot = load_robot(
        "<robot name='&lt;b&gt; &amp; co'><link name='base'/><link name='a&quot;b'><inertial>"
        "<mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
        f"</link><joint name='{'x' * 300}' type='continuous'><parent link='base'/>"
        "<child link='a&quot;b'/></joint></robot>"
    )
    svg = draw(robot)
    texts = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "<b> & co" in texts and 'a"b' in texts
    assert not any("x" * 41 in text for text in texts)
    assert "x" * 300 in svg  # in the tooltip
    ElementTree.fromstring(f"<a>{drawing._writable(chr(7) + chr(0xFFFF) + 'a')}</a>")


def test_the_committed_picture_is_what_the_command_draws():
    assert (ROOT / "docs/pictures/demo_leg.svg").read_text() == draw(load_robot(*DEMO))


def test_png_needs_a_converter(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cairosvg", None)
    monkeypatch.setattr(drawing.shutil, "which", lambda name: None)
    with pytest.raises(DrawingError, match="rsvg-convert"):
        write_drawing("<svg/>", tmp_path / "leg.png")

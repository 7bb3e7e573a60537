"""Where everything in the drawing of a robot goes; lengths in pixels, y down.

The tree grows to the right. Every cluster is a box that lists its bodies, one to a row, children
indented under their parents; beside the list, each loop constraint has a lane of its own. As no
two things share a row, the lines along rows and lanes cross other lines only, never text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.constraints import bodies_tied
from rbda_ros.cluster_tree.spanning_tree import Body, SpanningTree
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.description.model import Constraint, Coupling, CutJoint

NAME, SMALL = 12.0, 10.5  # font sizes: links; joints, constraints and clusters
LONGEST = 40  # characters of a name; longer ones lose their middle

CARD = 26.0  # height of a body's card
BADGE = 26.0  # width of its number
LABEL = 15.0  # above a card, for the joint's name
PILL = 20.0  # height of a constraint's name
ROW_GAP = 9.0
STUB = 24.0  # line that enters a card; the joint is on it
JOINT = 11.0  # from the joint to its card
INDENT = 34.0
ELBOW = 11.0  # from a card's left edge to the line that goes down from it
PAD = 12.0  # inside a box
HEAD = 20.0  # of a box, for its name
LANE = 10.0
BOX_GAP = 18.0  # between boxes, one above the other
COLUMN_GAP = 34.0
GROUND = 16.0  # width of the hatching
GROUND_HEIGHT = 64.0

_WIDTHS = {
    0.30: "'ijl",
    0.35: " ,./:;IJ\\|",
    0.40: "()-[]f",
    0.45: "!rt",
    0.50: '"*_`',
    0.55: "?csz",
    0.60: "FLkvxy",
    0.65: "$0123456789EPSTYabdeghnopqu{}",
    0.70: "ABCKRVXZ",
    0.75: "NU",
    0.80: "&DGHOQ",
    0.85: "#+<=>^w~",
    0.90: "M",
    1.00: "%@Wm",
}  # of DejaVu Sans, among the widest of all sans-serif fonts, in font sizes, rounded up
_WIDTH = {character: width for width, characters in _WIDTHS.items() for character in characters}
_BOLD = 1.15


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width that a text needs, on the safe side whatever font the viewer has."""
    width = sum(_WIDTH.get(character, 1.1) for character in text) * size
    return width * _BOLD if bold else width


def shorten(text: str) -> str:
    """The text, without its middle where it is too long to draw."""
    if len(text) <= LONGEST:
        return text
    kept = (LONGEST - 1) // 2
    return f"{text[:kept]}…{text[-kept:]}"


@dataclass(frozen=True)
class Box:
    """A rectangle; that of a cluster, unless it says otherwise. ``label`` is empty for one body."""

    x: float
    y: float
    width: float
    height: float
    label: str = ""

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height

    @property
    def middle(self) -> float:
        """Half its height."""
        return self.y + self.height / 2


@dataclass(frozen=True)
class Card:
    """A body: its number and link on a card, its joint on the line that enters the card."""

    number: int
    name: str
    joint: str
    independent: bool
    actuated: bool
    box: Box
    body: Body | None = None

    @property
    def joint_label(self) -> Box:
        """Where the joint's name stands."""
        width = text_width(self.joint, SMALL, self.independent)
        return Box(self.box.x - JOINT - 5.0, self.box.y - LABEL, width, LABEL - 2.0)


@dataclass(frozen=True)
class Pill:
    """The name of a loop constraint."""

    constraint: Constraint
    text: str
    box: Box


@dataclass(frozen=True)
class Line:
    """A line with right-angled corners, and dots where others join it."""

    points: tuple[tuple[float, float], ...]
    loop: bool = False
    dots: tuple[tuple[float, float], ...] = ()


@dataclass
class Scene:
    """All there is to draw, from (0, 0) to (width, height)."""

    boxes: list[Box] = field(default_factory=list)
    cards: list[Card] = field(default_factory=list)
    pills: list[Pill] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def lay_out(tree: ClusterTree) -> Scene:
    """Lay out the spanning tree, its loops and its clusters."""
    return _Layout(tree).scene()


def constraint_type(constraint: Constraint) -> str:
    """What the loop file calls the type of a constraint."""
    if isinstance(constraint, CutJoint):
        return constraint.type
    return "coupling" if isinstance(constraint, Coupling) else "expression"


def joined_bodies(spanning: SpanningTree, constraint: Constraint) -> list[int]:
    """Bodies at the ends of a loop: of a cut joint's links, or that the coupled joints move."""
    if isinstance(constraint, CutJoint):
        ends = (constraint.predecessor.link, constraint.successor.link)
        return sorted({spanning.links[link].body for link in ends})
    return sorted(bodies_tied(spanning, constraint))


class _Block:
    """A cluster at its own origin, with room for its lanes; None is the fixed base."""

    def __init__(self, tree: ClusterTree, node: ClusterNode | None) -> None:
        self.spanning = tree.spanning
        self.node = node
        self.cards: dict[int, Card] = {}
        self.pills: list[Pill] = []
        self.boxed = node is not None and (len(node.bodies) > 1 or node.loop is not None)
        self.y = PAD + HEAD if self.boxed else 0.0
        self.x = (PAD if self.boxed else 0.0) + STUB
        label = ""
        if node is None:
            self._add_ground(tree)
        else:
            label = self._add_rows(node)
        contents = [card.box.right for card in self.cards.values()]
        contents += [card.joint_label.right for card in self.cards.values() if card.joint]
        contents += [self._clear_of_tree() + pill.box.width for pill in self.pills]
        contents.append(PAD + text_width(label, SMALL) if label else 0.0)
        self.inner = max(contents)
        self.pills = [
            Pill(p.constraint, p.text, Box(self.inner - p.box.width, p.box.y, p.box.width, PILL))
            for p in self.pills
        ]
        self.lanes = self._assign_lanes()
        count = 1 + max(self.lanes, default=-1)
        width = self.inner + (PAD + LANE * count if self.boxed else 0.0)
        bottom = self.y - ROW_GAP + (PAD if self.boxed else 0.0)
        if node is None:
            bottom = GROUND_HEIGHT
        self.box = Box(0.0, 0.0, width, bottom, label)

    def _add_ground(self, tree: ClusterTree) -> None:
        links = [link for link, place in tree.spanning.links.items() if place.body == 0]
        name = shorten(links[0] if links else "world")
        width = BADGE + text_width(name, NAME) + 10.0
        box = Box(GROUND, (GROUND_HEIGHT - CARD) / 2, width, CARD)
        self.cards[0] = Card(0, name, "", False, False, box)

    def _add_rows(self, node: ClusterNode) -> str:
        """The bodies, and each constraint below the last body that it joins; the box's label."""
        waiting = list(node.loop.constraints) if node.loop else []
        depth: list[int] = []
        for k, (number, body) in enumerate(zip(node.numbers, node.bodies, strict=True)):
            inside = node.inside[k]
            depth.append(0 if inside is None else depth[inside] + 1)
            self._add_card(node, k, number, body, depth[k])
            ready = [c for c in waiting if max(self.joined(c)) <= number]
            waiting = [c for c in waiting if c not in ready]
            for constraint in ready:
                self._add_pill(constraint)
        if not self.boxed:
            return ""
        bodies = "1 body" if len(node.bodies) == 1 else f"{len(node.bodies)} bodies"
        freedom = "1 freedom" if node.ny == 1 else f"{node.ny} freedoms"
        return f"cluster {shorten(node.name)}: {bodies}, {freedom}"

    def _add_card(self, node: ClusterNode, k: int, number: int, body: Body, depth: int) -> None:
        coordinates = node.velocity_ranges[k]
        name = shorten(body.name)
        width = BADGE + text_width(name, NAME) + 10.0
        self.cards[number] = Card(
            number,
            name,
            shorten(body.joint.name),
            any(j in node.independent for j in coordinates),
            any(j in node.actuated for j in coordinates),
            Box(self.x + depth * INDENT, self.y + LABEL, width, CARD),
            body,
        )
        self.y += LABEL + CARD + ROW_GAP

    def _add_pill(self, constraint: Constraint) -> None:
        text = f"{shorten(constraint.name)}: {constraint_type(constraint)}"
        width = text_width(text, SMALL) + 16.0
        self.pills.append(Pill(constraint, text, Box(0.0, self.y, width, PILL)))
        self.y += PILL + ROW_GAP

    def _clear_of_tree(self) -> float:
        """From where on no line goes down from a card to a child in the same box."""
        above = {card.body.parent for card in self.cards.values() if card.body is not None}
        lines = [card.box.x + ELBOW + LANE for i, card in self.cards.items() if i in above]
        return max([PAD, *lines])

    def joined(self, constraint: Constraint) -> list[int]:
        """Bodies at the ends of a constraint, those outside the cluster too."""
        return joined_bodies(self.spanning, constraint)

    def joined_inside(self, pill: Pill) -> list[Card]:
        """Cards of the cluster at the ends of a constraint."""
        return [self.cards[i] for i in self.joined(pill.constraint) if i in self.cards]

    def _assign_lanes(self) -> list[int]:
        """A lane for each constraint, short ones inside."""
        lanes = [0] * len(self.pills)
        taken: list[list[tuple[float, float]]] = []
        spans = [
            (min(card.box.y for card in self.joined_inside(pill)), pill.box.bottom)
            for pill in self.pills
        ]
        for k in sorted(range(len(spans)), key=lambda k: spans[k][1] - spans[k][0]):
            top, bottom = spans[k]
            free = [
                lane
                for lane, others in enumerate(taken)
                if all(bottom < t or b < top for t, b in others)
            ]
            if not free:
                taken.append([])
                free = [len(taken) - 1]
            taken[free[0]].append(spans[k])
            lanes[k] = free[0]
        return lanes

    def taps(self) -> dict[tuple[int, int], float]:
        """Height at which each constraint leaves each card, by constraint and body.

        Below the middle, where the tree's lines leave; outer lanes first, as that crosses least.
        """
        heights = {}
        for number, card in self.cards.items():
            here = [k for k, pill in enumerate(self.pills) if card in self.joined_inside(pill)]
            here.sort(key=lambda k: -self.lanes[k])
            for place, k in enumerate(here, start=1):
                heights[k, number] = card.box.middle + CARD / 2 * place / (len(here) + 1)
        return heights


class _Layout:
    """Places the blocks as a tidy tree."""

    def __init__(self, tree: ClusterTree) -> None:
        self.tree = tree
        self.blocks = {k: _Block(tree, node) for k, node in enumerate(tree.clusters)}
        self.blocks[-1] = _Block(tree, None)
        self.children: dict[int, list[int]] = {k: [] for k in self.blocks}
        self.depth = {-1: 0}
        for k, node in enumerate(tree.clusters):
            parent = -1 if node.parent is None else node.parent
            self.children[parent].append(k)
            self.depth[k] = self.depth[parent] + 1
        for k in self.children:
            self.children[k].sort(key=lambda child: self._outputs(child)[0])
        self.top: dict[int, float] = {}
        self.left: list[float] = []

    def scene(self) -> Scene:
        """Everything in its place."""
        self._place_rows()
        buses = {k: self._buses(k) for k in self.blocks}
        columns: list[list[int]] = [[] for _ in range(1 + max(self.depth.values()))]
        for k, depth in self.depth.items():
            columns[depth].append(k)
        x = 0.0
        self.bus_start = []
        for column in columns:
            self.left.append(x)
            x += max(self.blocks[k].box.width for k in column)
            self.bus_start.append(x + COLUMN_GAP / 2)
            x += COLUMN_GAP + LANE * max(0, max(len(buses[k]) for k in column) - 1)
        scene = Scene(width=x - COLUMN_GAP)
        scene.height = max(self.top[k] + block.box.height for k, block in self.blocks.items())
        for k in self.blocks:
            self._add(scene, k, buses)
        return scene

    def _outputs(self, k: int) -> list[int]:
        """Bodies of the parent cluster that cluster k hangs from."""
        node = self.tree.clusters[k]
        return sorted(
            {b.parent for b, i in zip(node.bodies, node.inside, strict=True) if i is None}
        )

    def _place_rows(self) -> None:
        """Stack subtrees, each in a band of its own, with parents level with their children."""
        relative: dict[int, list[tuple[int, float]]] = {}  # subtree -> tops of its blocks
        height: dict[int, float] = {}
        entry: dict[int, float] = {}  # of a subtree's first row
        for k in [*reversed(range(len(self.tree.clusters))), -1]:
            block = self.blocks[k]
            placed: list[tuple[int, float]] = []
            y, levels, outputs = 0.0, [], []
            boxed = [self.blocks[child].boxed for child in self.children[k]]
            for place, child in enumerate(self.children[k]):
                if place:
                    y += BOX_GAP if any(boxed[place - 1 : place + 1]) else ROW_GAP
                placed += [(j, top + y) for j, top in relative[child]]
                levels.append(entry[child] + y)
                outputs.append(block.cards[self._outputs(child)[0]].box.middle)
                y += height[child]
            own = (sum(levels) - sum(outputs)) / len(levels) if levels else 0.0
            shift = -min(0.0, own)
            relative[k] = [(j, top + shift) for j, top in placed] + [(k, own + shift)]
            height[k] = max(y + shift, own + shift + block.box.height)
            entry[k] = own + shift + next(iter(block.cards.values())).box.middle
        self.top = dict(relative[-1])

    def _buses(self, k: int) -> list[tuple[str, int]]:
        """Vertical lines on the right of block k: one for each output body and outer loop."""
        loops, outputs = [], set()
        for child in self.children[k]:
            outputs.update(self._outputs(child))
            for pill in self.blocks[child].pills:
                loops += [
                    (pill.constraint.name, number)
                    for number in self.blocks[child].joined(pill.constraint)
                    if number not in self.blocks[child].cards
                ]
        return loops + [("", number) for number in sorted(outputs)]

    def _add(self, scene: Scene, k: int, buses: dict[int, list[tuple[str, int]]]) -> None:
        block, (x, y) = self.blocks[k], self._origin(k)
        if block.node is not None:
            scene.boxes.append(_moved(block.box, x, y))
        for card in block.cards.values():
            scene.cards.append(_moved_card(card, x, y))
        scene.pills += [Pill(p.constraint, p.text, _moved(p.box, x, y)) for p in block.pills]
        if block.node is not None:
            self._add_tree_lines(scene, k, buses)
            self._add_loop_lines(scene, k, buses)

    def _add_tree_lines(
        self, scene: Scene, k: int, buses: dict[int, list[tuple[str, int]]]
    ) -> None:
        block, (x, y) = self.blocks[k], self._origin(k)
        assert block.node is not None
        parent = -1 if block.node.parent is None else block.node.parent
        for card in block.cards.values():
            assert card.body is not None  # only the fixed base's card has none
            end = (card.box.x + x, card.box.middle + y)
            above = block.cards.get(card.body.parent)
            if above is not None:
                start = (above.box.x + x + ELBOW, above.box.bottom + y)
                scene.lines.append(Line((start, (start[0], end[1]), end)))
                continue
            output = self._card(parent, card.body.parent)
            bus = self._bus_x(parent, ("", card.body.parent), buses)
            corner = (bus, output.box.middle)
            trunk = ((output.box.right, output.box.middle), corner)
            branch = (corner, (bus, end[1]), end)
            # Drawn once, however many branches leave it.
            scene.lines += [Line(trunk)] if Line(trunk) not in scene.lines else []
            scene.lines.append(Line(branch))

    def _add_loop_lines(
        self, scene: Scene, k: int, buses: dict[int, list[tuple[str, int]]]
    ) -> None:
        block, (x, y) = self.blocks[k], self._origin(k)
        assert block.node is not None
        parent = -1 if block.node.parent is None else block.node.parent
        taps = block.taps()
        for place, (pill, lane) in enumerate(zip(block.pills, block.lanes, strict=True)):
            lane_x = x + block.inner + LANE * (lane + 1)
            cards = block.joined_inside(pill)
            heights = [taps[place, card.number] + y for card in cards]
            first = (cards[0].box.right + x, heights[0])
            end = (pill.box.right + x, pill.box.middle + y)
            dots = tuple((lane_x, height) for height in heights[1:])
            corners = ((lane_x, first[1]), (lane_x, end[1]))
            scene.lines.append(Line((first, *corners, end), True, dots))
            for card, height in zip(cards[1:], heights[1:], strict=True):
                scene.lines.append(Line(((card.box.right + x, height), (lane_x, height)), True))
            for number in block.joined(pill.constraint):
                if number not in block.cards:
                    output = self._card(parent, number)
                    bus = self._bus_x(parent, (pill.constraint.name, number), buses)
                    height = output.box.middle + CARD / 4
                    points = ((output.box.right, height), (bus, height), (bus, end[1]))
                    scene.lines.append(Line((*points, (pill.box.x + x, end[1])), True))

    def _origin(self, k: int) -> tuple[float, float]:
        return self.left[self.depth[k]], self.top[k]

    def _card(self, k: int, number: int) -> Card:
        return _moved_card(self.blocks[k].cards[number], *self._origin(k))

    def _bus_x(
        self, k: int, bus: tuple[str, int], buses: dict[int, list[tuple[str, int]]]
    ) -> float:
        return self.bus_start[self.depth[k]] + LANE * buses[k].index(bus)


def _moved(box: Box, x: float, y: float) -> Box:
    return Box(box.x + x, box.y + y, box.width, box.height, box.label)


def _moved_card(card: Card, x: float, y: float) -> Card:
    return Card(
        card.number,
        card.name,
        card.joint,
        card.independent,
        card.actuated,
        _moved(card.box, x, y),
        card.body,
    )


def flow(widths: Sequence[float], limit: float, gap: float) -> list[tuple[float, int]]:
    """Offset and line of each of some things set side by side, broken into lines at ``limit``."""
    places, x, line = [], 0.0, 0
    for width in widths:
        if x and x + width > limit:
            x, line = 0.0, line + 1
        places.append((x, line))
        x += width + gap
    return places

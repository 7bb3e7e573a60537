"""Where everything in the drawing of a robot goes; lengths in pixels, y down.

The tree grows to the right. Every cluster is a box that lists its bodies, one to a row, children
indented under their parents; beside the list, each loop constraint has a lane of its own. As no
two things share a row, the lines along rows and lanes cross other lines only, never text.
"""

from __future__ import annotations

from rbda_ros.cli.drawing_shapes import (
    BADGE,
    BOX_GAP,
    CARD,
    COLUMN_GAP,
    ELBOW,
    GROUND,
    GROUND_HEIGHT,
    HEAD,
    INDENT,
    LABEL,
    LANE,
    NAME,
    PAD,
    PILL,
    ROW_GAP,
    SMALL,
    STUB,
    Box,
    Card,
    Line,
    Pill,
    Scene,
    moved,
    moved_card,
    shorten,
    text_width,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.constraints import bodies_tied
from rbda_ros.cluster_tree.spanning_tree import Body, SpanningTree
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.description.model import Constraint, CutJoint, constraint_type


def lay_out(tree: ClusterTree) -> Scene:
    """Lay out the spanning tree, its loops and its clusters."""
    return _Layout(tree).scene()


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
            scene.boxes.append(moved(block.box, x, y))
        for card in block.cards.values():
            scene.cards.append(moved_card(card, x, y))
        scene.pills += [Pill(p.constraint, p.text, moved(p.box, x, y)) for p in block.pills]
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
        return moved_card(self.blocks[k].cards[number], *self._origin(k))

    def _bus_x(
        self, k: int, bus: tuple[str, int], buses: dict[int, list[tuple[str, int]]]
    ) -> float:
        return self.bus_start[self.depth[k]] + LANE * buses[k].index(bus)

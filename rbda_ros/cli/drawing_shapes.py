"""What a drawing of a robot is made of: sizes, texts, boxes, cards and lines, in pixels, y down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rbda_ros.cluster_tree.spanning_tree import Body
from rbda_ros.description.model import Constraint

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
    half = (LONGEST - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


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


def moved(box: Box, x: float, y: float) -> Box:
    """The box, elsewhere."""
    return Box(box.x + x, box.y + y, box.width, box.height, box.label)


def moved_card(card: Card, x: float, y: float) -> Card:
    """The card, elsewhere."""
    return replace(card, box=moved(card.box, x, y))


def flow(widths: Sequence[float], limit: float, gap: float) -> list[tuple[float, int]]:
    """Offset and line of each of some things set side by side, broken into lines at ``limit``."""
    places, x, line = [], 0.0, 0
    for width in widths:
        if x and x + width > limit:
            x, line = 0.0, line + 1
        places.append((x, line))
        x += width + gap
    return places

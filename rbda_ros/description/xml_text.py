"""Safe XML: no entities, no network, bounded size; attributes read with their line number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from lxml import etree

from rbda_ros.description.report import Report
from rbda_ros.description.values import converted

LARGEST_TEXT = 16 * 1024 * 1024
MAX_ELEMENTS = 200_000
"""Elements of a description; parsed, each takes some 300 bytes. Large robots have 5,000."""
T = TypeVar("T")


def parse_xml(text: str, report: Report) -> etree._Element | None:
    """Return the root element, or None after noting why the text cannot be read."""
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("<?xml"):
        text = stripped  # XML allows nothing before it
    text = text.removeprefix("\ufeff")
    if len(text) > LARGEST_TEXT:
        report.problem(
            "URDF", f"has more than {LARGEST_TEXT} characters", "give the description of one robot"
        )
        return None
    if text.count("<") > 2 * MAX_ELEMENTS:  # each begins and may end
        report.problem(
            "URDF", f"has more than {MAX_ELEMENTS} elements", "give the description of one robot"
        )
        return None
    if "<!DOCTYPE" in text:
        # Entities can grow without bound or read files; a robot description needs none.
        report.problem("URDF", "has a DOCTYPE", "remove it and write out any entities")
        return None
    try:
        root = _parse(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        report.problem("URDF", f"is not valid Unicode ({error.reason})", "save it as UTF-8")
        return None
    except ValueError as error:
        report.problem("URDF", f"is not XML: {error}", "correct the XML there")
        return None
    if root is None:
        report.problem("URDF", "has no element", "start it with <robot name='...'>")
        return None
    _drop_default_namespace(root)
    return root


def _parse(data: bytes) -> etree._Element | None:
    """Parse strictly, but let undeclared prefixes pass: old Gazebo files are full of them.

    ValueError says what else is wrong, and where.
    """
    parser = _parser(recover=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        # The parser's own log: the one of the exception also holds errors of earlier files.
        entries: Any = parser.error_log
        for entry in entries:
            if entry.domain != etree.ErrorDomains.NAMESPACE:
                place = f"line {entry.line}, column {entry.column}"
                raise ValueError(f"{entry.message.strip()} ({place})") from None
        return etree.fromstring(data, _parser(recover=True))


def _parser(recover: bool) -> etree.XMLParser:
    return etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        recover=recover,
    )


def _drop_default_namespace(root: etree._Element) -> None:
    """Let ``<robot xmlns="...">`` read like ``<robot>``."""
    namespace, brace, _ = str(root.tag).rpartition("}")  # a QName rejects undeclared prefixes
    if not brace:
        return
    prefix = namespace + brace
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.removeprefix(prefix)


def children(element: etree._Element, tag: str) -> Iterator[etree._Element]:
    """Return the direct children of that tag, in the order of the file."""
    return element.iterchildren(tag)


def child(element: etree._Element, tag: str) -> etree._Element | None:
    """Return the first direct child of that tag."""
    return next(element.iterchildren(tag), None)


def local_name(element: etree._Element) -> str:
    """The tag without its namespace, or without a prefix that nothing declares; '' of a comment."""
    tag = element.tag
    return tag.rpartition("}")[2].rpartition(":")[2] if isinstance(tag, str) else ""


def text_of(element: etree._Element | None) -> str | None:
    """Return the text inside an element, without surrounding space; None if there is none."""
    text = None if element is None else element.text
    return text.strip() or None if text else None


def flag(text: str | None, default: bool = False) -> bool:
    """Whether a text is true or 1; the default where it is neither that nor false or 0."""
    word = (text or "").strip().lower()
    return word in ("true", "1") or (default and word not in ("false", "0"))


def attribute(
    element: etree._Element | None,
    name: str,
    convert: Callable[[str], T],
    default: T,
    where: str,
    report: Report,
) -> T:
    """As `converted`, for an attribute; the default also where the element lacks it, or is None."""
    text = None if element is None else element.get(name)
    if element is None or text is None:
        return default
    place = f"{name} of <{element.tag}> ({line(element)})"
    return converted(text, convert, default, where, place, report)


def inner(
    element: etree._Element | None,
    tag: str,
    convert: Callable[[str], T],
    default: T,
    where: str,
    report: Report,
) -> T:
    """As `converted`, for the text inside the first child of that tag; the default without any."""
    found = None if element is None else child(element, tag)
    text = text_of(found)
    if found is None or text is None:
        return default
    return converted(text, convert, default, where, f"<{tag}> ({line(found)})", report)


def required(element: etree._Element, name: str, where: str, report: Report) -> str:
    """Return an attribute that must be there and not be empty; '' after noting that it is not."""
    value = element.get(name, "")
    if not value.strip():
        report.problem(
            where,
            f"<{element.tag}> has no {name} ({line(element)})",
            f"write <{element.tag} {name}='...'>",
        )
        return ""
    return value


def line(element: etree._Element) -> str:
    """Where an element stands in the file, for messages."""
    return f"line {element.sourceline}"

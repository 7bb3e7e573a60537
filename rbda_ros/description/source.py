"""A path or the text itself: finds out which, reads files within bounds, and expands xacro.

Only files are expanded, not texts: xacro evaluates expressions and reads other files, which must
not happen with a description that came over a topic.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING

from lxml import etree

from rbda_ros.description import xml_text, yaml_text
from rbda_ros.description.report import Report

if TYPE_CHECKING:
    import argparse

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED_ENCODING = re.compile(rb"""\A\s*<\?xml[^>]*?encoding=["']([A-Za-z0-9._-]+)["']""")
_FRAMES = re.compile(
    r"\b(?:xyz|rpy|pos|quat|euler|axis|axisangle|anchor|relpose)\s*=\s*[\"']([^\"']*)[\"']"
    r"|<(?:pose|xyz)\b[^>]*>([^<]*)<"
)
_NUMBER = re.compile(r"[-+]?(\d*\.?\d+)(?:[eE][-+]?\d+)?")
FEWEST_DIGITS = 5
"""Numbers with fewer digits were written by hand, and are exact."""
LARGEST_LOOK = 2_000_000
"""Characters of a file that are looked at."""


def read_xml(
    source: str | os.PathLike[str],
    report: Report,
    xacro_arguments: Mapping[str, str] | None = None,
) -> tuple[str, etree._Element | None]:
    """XML text and its root element; "" or None after noting why it cannot be read.

    Args:
        source: a path, or the text.
        report: takes the problem.
        xacro_arguments: for the <xacro:arg> elements of a file, which is expanded.
    """
    text = _xml_text(source, report, xacro_arguments)
    return text or "", None if text is None else xml_text.parse_xml(text, report)


def _xml_text(
    source: str | os.PathLike[str], report: Report, xacro_arguments: Mapping[str, str] | None
) -> str | None:
    if is_text(source):
        text = str(source)
        if _is_xacro(text):
            report.problem(
                "URDF",
                "is text that xacro has not expanded",
                "give the path of the file, or the output of the command 'xacro FILE'",
            )
            return None
        return text
    if isinstance(source, str) and "\n" in source.strip():
        report.problem("URDF", "is neither XML text nor a path", "give a path or text in <robot>")
        return None
    read = read_text(source, "URDF", xml_text.LARGEST_TEXT, report)
    if read is None or not _is_xacro(read):
        return read
    return _expanded(source, xacro_arguments, report)


def is_text(source: str | os.PathLike[str]) -> bool:
    """Whether a source is XML itself, rather than a path."""
    return isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<")


_XACRO = re.compile(r"<xacro:|[\"'][^\"'<>]*\$[({][^\"'<>]*[)}]")
"""An element of xacro, or an expression in an attribute."""


_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
"""Output of xacro keeps the comments of its sources, with what they have of it."""


def _is_xacro(text: str) -> bool:
    return "<robot" in text and _XACRO.search(_COMMENT.sub("", text)) is not None


MAX_NEIGHBOURS = 300
"""Folders beside a package that are looked at."""
_NAME_OF_PACKAGE = re.compile(r"<name>\s*([A-Za-z]\w*)\s*</name>")


def _expanded(
    path: str | os.PathLike[str], arguments: Mapping[str, str] | None, report: Report
) -> str | None:
    where = f"xacro {os.fspath(path)!r}"
    try:
        import xacro
    except ImportError:
        report.problem(
            where,
            "is expanded by xacro, which is not installed",
            "pip install xacro, or give the output of 'xacro FILE'",
        )
        return None
    try:
        with _packages_beside(Path(path)):
            document = xacro.process_file(os.fspath(path), mappings=dict(arguments or {}))
        return str(document.documentElement.toxml())
    except Exception as error:  # expressions of the file may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        remedy = "correct it, or give its arguments: --xacro NAME:=VALUE on the command line"
        if re.search(r"[Pp]ackage.*not found|AMENT_PREFIX_PATH", reason):
            remedy = "source a workspace that has the package, or put it beside that of the file"
        report.problem(where, f"xacro does not expand it: {type(error).__name__}: {reason}", remedy)
        return None


@contextlib.contextmanager
def _packages_beside(path: Path) -> Iterator[None]:
    """Let ``$(find PACKAGE)`` find the package that a file is in, and those in the same folder.

    They come after the packages of the environment, and need not have been built.
    """
    packages: dict[str, Path] = {}
    own = next((up for up in path.absolute().parents if (up / "package.xml").is_file()), None)
    for folder in () if own is None else (own, *sorted(own.parent.iterdir())[:MAX_NEIGHBOURS]):
        manifest = folder / "package.xml"
        if manifest.is_file() and (
            match := _NAME_OF_PACKAGE.search(manifest.read_text("utf-8", "replace"))
        ):
            packages.setdefault(match[1], folder)
    if not packages:
        yield
        return
    before = os.environ.get("AMENT_PREFIX_PATH")
    with tempfile.TemporaryDirectory() as prefix:
        index = Path(prefix, "share", "ament_index", "resource_index", "packages")
        index.mkdir(parents=True)
        for name, folder in packages.items():
            (index / name).touch()
            Path(prefix, "share", name).symlink_to(folder)
        try:
            os.environ["AMENT_PREFIX_PATH"] = os.pathsep.join(filter(None, (before, prefix)))
            yield
        finally:
            if before is None:
                del os.environ["AMENT_PREFIX_PATH"]
            else:
                os.environ["AMENT_PREFIX_PATH"] = before


def loop_text(source: str | os.PathLike[str], report: Report) -> str | None:
    """Return the YAML text that ``source`` is or names; None after noting why it cannot be read."""
    if isinstance(source, str) and is_yaml_text(source):
        return source
    return read_text(source, "loop file", yaml_text.LARGEST_TEXT, report)


def is_yaml_text(source: str) -> bool:
    """Whether this is YAML text, not a path: it has lines, or a colon with content around it.

    What names an existing file is a path.
    """
    if "\n" in source:
        return True
    looks_like_yaml = re.search(r":\s+\S|^\s*[{#]|:\s*$", source) is not None
    return looks_like_yaml and not _exists(source)


def _exists(path: str) -> bool:
    try:
        return os.path.exists(path)
    except ValueError:  # a null byte
        return False


def read_text(path: str | os.PathLike[str], what: str, largest: int, report: Report) -> str | None:
    """Return a file's text; None after noting why it cannot be read."""
    try:
        file = Path(path)
        if not file.is_file():
            reason = "is not a file" if file.exists() else "does not exist"
            report.problem(f"{what} {str(path)!r}", reason, "check the path")
            return None
        with file.open("rb") as stream:
            data = stream.read(largest + 1)
    except (OSError, ValueError, TypeError) as error:
        report.problem(f"{what} {str(path)[:200]!r}", f"cannot be read: {error}", "check the path")
        return None
    if len(data) > largest:
        report.problem(
            f"{what} {str(path)!r}", f"has more than {largest} bytes", "give one robot's file"
        )
        return None
    return _decode(data, f"{what} {str(path)!r}", report)


def _decode(data: bytes, what: str, report: Report) -> str | None:
    declared = _DECLARED_ENCODING.match(data[:200])
    encoding = declared.group(1).decode("ascii") if declared else "utf-8"
    for mark, marked_encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            encoding = marked_encoding
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError) as error:
        # Not the error itself: it quotes bytes of the file.
        place = f" (at byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        report.problem(what, f"is not readable text{place}", "save it as UTF-8")
        return None


_NAME = r"[\w./-]+"


def loops_without_prefix(loops: str, description: str, prefix: str) -> str:
    """The text of a loop file whose names have a prefix that those of the description lack.

    Names of the description stay as they are, also those that begin with the prefix.

    Args:
        loops: a path, or YAML text.
        description: XML text of the robot.
        prefix: what joint names in messages begin with, e.g. "left_"; empty for nothing.

    Returns:
        Text without the prefix; ``loops`` where there is nothing to take off or to read.
    """
    if not prefix or not loops.strip():
        return loops
    text = loop_text(loops, Report())
    if text is None:
        return loops  # the reader of the loop file gives the reason
    known = set(re.findall(r"""\bname\s*=\s*["']([^"']*)["']""", description))

    def taken_off(match: re.Match[str]) -> str:
        return match[0] if match[0] in known else match[1]

    changed = re.sub(rf"(?<![\w./-]){re.escape(prefix)}({_NAME})", taken_off, text)
    return loops if changed == text else changed


def significant_digits(text: str) -> int | None:
    """Median of the digits of numbers in frames and axes; None if all numbers are short.

    For an exporter that keeps six digits it is six: only numbers that end in zeros have fewer.
    """
    digits = []
    for attribute, element in _FRAMES.findall(text[:LARGEST_LOOK]):
        for number in _NUMBER.findall(attribute or element):
            count = len(number.replace(".", "").lstrip("0"))
            if count >= FEWEST_DIGITS:
                digits.append(count)
    return median_low(digits) if digits else None


def add_xacro_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option; the parsed value is a list of pairs (name, value), or None."""
    parser.add_argument(
        "--xacro",
        type=_xacro_argument,
        action="append",
        metavar="NAME:=VALUE",
        help="an argument of a xacro file; may be given several times",
    )


def _xacro_argument(text: str) -> tuple[str, str]:
    name, found, value = text.partition(":=")
    if not found or not name:
        from argparse import ArgumentTypeError  # the node does without argparse

        raise ArgumentTypeError(f"{text!r} is no argument of xacro; write NAME:=VALUE")
    return name, value

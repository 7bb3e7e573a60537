"""Text in, plain frozen dataclasses out: URDF, URDF+, mimic, transmissions, the loop file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rbda_ros.description.model import RobotDescription
from rbda_ros.description.report import Report
from rbda_ros.description.source import urdf_text
from rbda_ros.description.urdf import read_joints, read_links, read_name
from rbda_ros.description.xml import LARGEST_TEXT, parse_xml

__all__ = ["read_description"]


def read_description(
    urdf: str | os.PathLike[str],
    loops: str | os.PathLike[str] | Mapping[str, Any] | None = None,
) -> RobotDescription:
    """Read and check a robot's URDF and loop file.

    Args:
        urdf: a path or XML text; URDF or URDF+.
        loops: a path, YAML text or a mapping; None or "" for none.

    Raises:
        DescriptionError: with every problem found, each naming element, reason and remedy.
    """
    report = Report()
    text = urdf_text(urdf, LARGEST_TEXT, report)
    root = None if text is None else parse_xml(text, report)
    report.raise_problems()
    assert root is not None
    description = RobotDescription(
        name=read_name(root, report),
        links=read_links(root, report),
        joints=read_joints(root, report),
        warnings=tuple(report.warnings),
    )
    report.raise_problems()
    return description

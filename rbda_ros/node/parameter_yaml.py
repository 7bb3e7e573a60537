"""Mappings in parameters, which ROS has no type for: YAML text."""

from __future__ import annotations

from typing import Any

import yaml


def read_mapping(parameter: str, text: str, form: str) -> dict[Any, Any]:
    """The mapping that a parameter holds as YAML text; empty text is an empty one.

    Args:
        parameter: its name.
        text: its value.
        form: what to write, for whoever wrote something else.

    Raises:
        ValueError: it is no mapping.
    """
    try:
        given = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"{parameter}: not YAML ({error}); write {form}") from error
    if not isinstance(given, dict):
        raise ValueError(f"{parameter}: '{text}' is no mapping; write {form}")
    return given

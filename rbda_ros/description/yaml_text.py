"""YAML that is plain data: every scalar stays text, no tags, no aliases, no duplicate keys."""

from __future__ import annotations

from typing import Any

import yaml

from rbda_ros.description.report import Report

# Some 1000 constraints; PyYAML takes seconds for it.
LARGEST_TEXT = 256 * 1024
_DEEPEST = 20
_PLAIN_TAGS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
_NULLS = ("", "~", "null", "Null", "NULL")


class _Loader(yaml.BaseLoader):
    """Builds nodes only; refuses what could grow without bound while doing so."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases (*) are refused", problem_mark=mark)
        if self._depth == _DEEPEST:
            raise yaml.MarkedYAMLError(problem="is nested too deeply", problem_mark=mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def parse_yaml(text: str, report: Report) -> Any:
    """Return nested dicts, lists and strings; None for an empty text, or after noting why not."""
    if len(text) > LARGEST_TEXT:
        report.problem(
            "loop file", f"has more than {LARGEST_TEXT} characters", "give one robot's loops"
        )
        return None
    try:
        node = _Loader(text).get_single_node()
        return None if node is None else _plain(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        report.problem("loop file", f"{place}{error.problem}", "correct the YAML there")
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML lets the errors of chr() through for escapes beyond Unicode.
        first_line = str(error).partition("\n")[0]
        report.problem("loop file", f"is not YAML: {first_line}", "correct it")
    return None


def _plain(node: yaml.Node) -> Any:
    if node.tag not in _PLAIN_TAGS:
        raise yaml.MarkedYAMLError(
            problem=f"tag {node.tag} is refused", problem_mark=node.start_mark
        )
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return _plain_mapping(node)
    is_null = isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NULLS
    return None if is_null else node.value


def _plain_mapping(node: yaml.MappingNode) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _plain(key_node)
        if not isinstance(key, str):
            raise yaml.MarkedYAMLError(
                problem="a key is not a name", problem_mark=key_node.start_mark
            )
        if key in mapping:
            raise yaml.MarkedYAMLError(
                problem=f"{key!r} appears twice", problem_mark=key_node.start_mark
            )
        mapping[key] = _plain(value_node)
    return mapping

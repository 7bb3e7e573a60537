"""Tells where two recordings of one set of cases differ."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

TOLERANCE = 1e-7
"""Numbers that differ by less, relative to the largest of their array or to 1, count as equal."""
FAR = 1e30
"""Stands for a difference that no number tells, such as of shapes."""


def distance(old: Any, new: Any) -> float:
    """Largest difference, relative to the size of its array; fields that are new do not count."""
    if isinstance(old, dict) and isinstance(new, dict):
        known = old.keys() <= new.keys()  # else fields have other names now
        pairs = (
            [(x, new[key]) for key, x in old.items()]
            if known
            else zip(old.values(), new.values(), strict=False)
        )
        return max((distance(x, y) for x, y in pairs), default=0.0)
    if isinstance(old, np.ndarray) or isinstance(new, np.ndarray):
        return _of_arrays(np.asarray(old), np.asarray(new))
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return FAR
        return max((distance(a, b) for a, b in zip(old, new, strict=True)), default=0.0)
    if isinstance(old, float) and isinstance(new, (float, int)):
        return _of_arrays(np.array(old), np.array(float(new)))
    return 0.0 if old == new else FAR


def _of_arrays(old: np.ndarray, new: np.ndarray) -> float:
    if old.shape != new.shape or old.dtype.kind not in "fiub" or new.dtype.kind not in "fiub":
        return 0.0 if old.shape == new.shape and (old == new).all() else FAR
    if old.tobytes() == new.tobytes() or not old.size:
        return 0.0
    odd, also = ~np.isfinite(old.astype(float)), ~np.isfinite(new.astype(float))
    if (odd != also).any():
        return FAR
    rest = ~odd
    if not rest.any():
        return 0.0
    size = max(1.0, float(np.abs(old[rest]).max()))
    return float(np.abs(old[rest].astype(float) - new[rest]).max()) / size


def kind(old: Any, new: Any) -> tuple[str, float]:
    """In which way two outcomes of `record.attempt` belong together, and how far they differ."""
    if old[0] != new[0]:
        return f"{old[0]}, now {new[0]}", FAR
    if old[0] == "error":
        if old[2] == new[2]:
            return "same error", 0.0
        return "other words", FAR
    far = distance(old[1], new[1])
    if far == 0.0:
        return "identical", far
    return ("equal", far) if far < TOLERANCE else ("different", far)


class Report:
    """Counts of how outcomes belong together, and what differs."""

    def __init__(self, show: int) -> None:
        self.counts: Counter[str] = Counter()
        self.groups: dict[str, list[str]] = defaultdict(list)
        self.largest = 0.0
        self._show = show

    def add(self, group: str, old: Any, new: Any, words: str) -> None:
        way, far = kind(old, new)
        self.counts[way] += 1
        if way == "equal":
            self.largest = max(self.largest, far)
        if way not in ("identical", "same error", "equal"):
            self.groups[f"{group}: {way}"].append(
                f"{words}\n      {_short(old)}\n      {_short(new)}"
            )

    def lines(self, title: str) -> Iterator[str]:
        total = sum(self.counts.values())
        counted = ", ".join(f"{n} {way}" for way, n in self.counts.most_common())
        yield f"{title}: {total}; {counted}; equal ones differ by {self.largest:.1e} at most"
        for group, found in sorted(self.groups.items(), key=lambda item: -len(item[1])):
            yield f"  {len(found)} x {group}"
            yield from (f"    {each}" for each in found[: self._show])


def _short(outcome: Any) -> str:
    text = ": ".join(outcome[1:]) if outcome[0] == "error" else repr(outcome[1])
    return " ".join(text.split())[:230]


def of_calls(cases: Any, old: list[Any], new: list[Any], show: int = 2) -> Iterator[str]:
    """Differences of methods."""
    report = Report(show)
    for (k, name, args, kwargs), a, b in zip(cases["calls"], old, new, strict=True):
        shapes = [_brief(x) for x in args]
        words = f"{cases['models'][k]['name']}.{name}({', '.join(shapes)}) {list(kwargs)}"
        report.add(name, a, b, words)
    yield from report.lines("calls of methods")


def of_services(cases: Any, old: list[Any], new: list[Any], show: int = 2) -> Iterator[str]:
    """Differences of responses."""
    report = Report(show)
    for (k, name, request), a, b in zip(cases["services"], old, new, strict=True):
        words = f"{cases['models'][k]['name']}.{name}({str(request)[:200]})"
        way = " ".join(str(x[1].get("success") if x[0] == "result" else x[1]) for x in (a, b))
        report.add(f"{name} {way}", a, b, words)
    yield from report.lines("requests of services")


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        spoilt = "" if np.isfinite(value).all() else "!"
        return f"{value.shape}{spoilt}"
    return repr(value)[:60]


def of_streams(cases: Any, old: list[Any], new: list[Any], show: int = 2) -> Iterator[str]:
    """Differences of messages and rejections of recorded streams, message by message.

    After the first difference in a recording the state may differ: what follows is counted apart.
    """
    first, later = Report(show), Counter[str]()
    clean = 0
    for n, (stream, a, b) in enumerate(zip(cases["streams"], old, new, strict=True)):
        settings = {k: v for k, v in stream["settings"].items()}
        name = cases["models"][stream["robot"]]["name"]
        if len(a) != len(b):  # one of them rejects the settings
            first.add("settings", a[0], b[0], f"{n} {name} {settings}")
            continue
        parted = False
        for k, (event, x, y) in enumerate(zip(stream["events"], a, b, strict=True)):
            if event[0] != "message":
                continue
            x, y = _decoded(x), _decoded(y)
            way, _ = kind(x, y)
            if parted:
                later[way] += 1
                continue
            first.add(f"{event[1]} {_reasons(x, y)}", x, y, f"{n}.{k} {name} {settings}")
            parted = way not in ("identical", "same error", "equal")
        clean += not parted
    yield f"streams: {clean} of {len(cases['streams'])} recordings without a difference"
    yield from first.lines("  messages up to the first difference")
    yield f"  messages after one: {dict(later)}"


def _reasons(old: Any, new: Any) -> str:
    said = []
    for outcome in (old, new):
        if outcome[0] == "error":
            said.append(outcome[1])
        else:
            topics = "+".join(sorted(outcome[1]["messages"])) or "nothing"
            said.append(" ".join([topics, *outcome[1]["reasons"]]))
    return said[0] if said[0] == said[1] else f"{said[0]} -> {said[1]}"


def _decoded(outcome: Any) -> Any:
    if outcome[0] == "error" or outcome[1] is None:
        return outcome
    messages, reasons, text = outcome[1]
    read = {topic: _numbers(topic, data) for topic, data in messages.items()}
    return "result", {"messages": read, "reasons": sorted(reasons), "text": text}


def _numbers(topic: str, data: bytes) -> Any:
    if topic.endswith("_commands") and topic != "motor_commands":
        begin = 20 if len(data) % 8 else 0  # with the head of a Float64MultiArray, or without
        return np.frombuffer(data[begin:])
    return joint_state(data)


def joint_state(data: bytes) -> dict[str, Any]:
    """What a serialized JointState says, in plain words: an oracle for both trees."""
    at = 4

    def number(form: str, size: int) -> Any:
        nonlocal at
        at += (4 - at) % size
        (value,) = struct.unpack_from(form, data, at)
        at += size
        return value

    def text() -> str:
        nonlocal at
        size = number("<I", 4)
        found = data[at : at + size - 1].decode()
        at += size
        return found

    stamp = (number("<i", 4), number("<I", 4))
    text()
    names = [text() for _ in range(number("<I", 4))]
    fields = {
        field: np.array([number("<d", 8) for _ in range(number("<I", 4))])
        for field in ("position", "velocity", "effort")
    }
    return {"stamp": list(stamp), "names": names, **fields}

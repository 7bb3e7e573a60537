"""Each clause of the gate removed or inverted: random scenarios must find every one of them.

    python -m tools.hardening.gate_mutants

A mutant is a copy of ``rbda_ros/control/gate.c`` with one change, compiled into a library of its
own. It is found if some scenario of `test/control/gate_scenarios.py` breaks a promise, or gives
other efforts than the reference model. Not among the changes are those that no promise is about
(the count of limited efforts, ``standing``, which the state machine's tests check) and those for a
steady clock that goes back, which none does.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gate_model import Gate, GateSettings, Sent, broken_promises
from gate_scenarios import play, scenarios
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from tools.hardening.verdicts import Verdict, conclude, counted

ROOT = Path(__file__).resolve().parents[2]
CONTROL = ROOT / "rbda_ros" / "control"
LIMIT = "efforts[k] = clamped(effort, -limit, limit);"
RATE = "if (rules->rate > 0.0) effort = clamped(effort, last - step, last + step);"
TRACK = "gate->last[k] = efforts == NULL ? 0.0 : efforts[k];"
BEGIN = "!gate->started || (rules->gap != 0 && pause > rules->gap)"
SHARE = "double effort = share * efforts[k];"
SHARE_OF_TIME = "elapsed < rules->ramp ? (double)elapsed / (double)rules->ramp : 1.0"
STEP = "(pause < LONGEST_STEP ? pause : LONGEST_STEP)"
CLAMP = "fmax(low, fmin(value, high))"

RESTART = "gate->started = false;"
PASS_SHAPES = "const size_t limited = shape(gate, rules, steady, efforts);"
PASS_TRACKS = "track(gate, steady, efforts);\n  gate->started = true;"
HOLD_TRACKS = "if (changed) track(gate, steady, efforts);\n  gate->started = false;"
END_TRACKS = "track(gate, steady, NULL);\n  gate->started = false;"

MUTANTS: dict[str, tuple[str, str]] = {
    "no limit": (LIMIT, "efforts[k] = effort;"),
    "no limit below zero": (LIMIT, "efforts[k] = clamped(effort, -INFINITY, limit);"),
    "no limit above zero": (LIMIT, "efforts[k] = clamped(effort, -limit, INFINITY);"),
    "the limit inverted": (LIMIT, "efforts[k] = clamped(effort, limit, -limit);"),
    "the limit yields to the rate limit": (
        f"{RATE}\n    {LIMIT}",
        f"effort = clamped(effort, -limit, limit);\n    {RATE}\n    efforts[k] = effort;",
    ),
    "limits of the first motor for all": ("rules->limit[k]", "rules->limit[0]"),
    "no rate limit": (RATE, ""),
    "no rate limit downwards": ("last - step", "-INFINITY"),
    "no rate limit upwards": ("last + step", "INFINITY"),
    "the rate limit inverted": ("rules->rate > 0.0", "rules->rate <= 0.0"),
    "a rate limit counted from zero": (RATE, RATE.replace("last", "0.0 * last")),
    "long steps after a pause": (STEP, "pause"),
    "steps only after a pause": (STEP, STEP.replace("<", ">")),
    "a step before the first message": (
        "gate->sent ? since(gate->time, steady) : 0;\n  if (steady <",
        "since(gate->time, steady);\n  if (steady <",
    ),
    "no ramp": (SHARE, "double effort = efforts[k];"),
    "the ramp falls": (SHARE, "double effort = (1.0 - share) * efforts[k];"),
    "the ramp never ends": (SHARE_OF_TIME, "(double)elapsed / (double)(rules->ramp + 1)"),
    "the ramp inverted": (SHARE_OF_TIME, SHARE_OF_TIME.replace("<", ">=")),
    "no ramp after a start": (BEGIN, BEGIN.replace("!gate->started ||", "")),
    "ramps but after a start": (BEGIN, BEGIN.replace("!gate", "gate")),
    "no ramp after a gap": (BEGIN, "!gate->started"),
    "a ramp without a gap": (BEGIN, BEGIN.replace("pause >", "pause <=")),
    "a ramp where gaps do not count": (BEGIN, BEGIN.replace("!=", "==")),
    "what was sent is not known": (TRACK, ""),
    "zeros are not known": (TRACK, "if (efforts != NULL) gate->last[k] = efforts[k];"),
    "what was sent is known with a rate limit alone": (
        PASS_TRACKS,
        PASS_TRACKS.replace("track", "if (rules->rate > 0.0) track"),
    ),
    "what was asked for counts as sent": (
        f"{PASS_SHAPES}\n  track(gate, steady, efforts);",
        f"track(gate, steady, efforts);\n  {PASS_SHAPES}",
    ),
    "the time of what was sent is not known": (
        "gate->time = steady;\n  gate->sent = true;",
        "gate->sent = true;",
    ),
    "nothing was ever sent": ("gate->time = steady;\n  gate->sent = true;", "gate->time = steady;"),
    "every effort is a start": (PASS_TRACKS, PASS_TRACKS.replace("true", "false")),
    "an end is no end": (END_TRACKS, END_TRACKS.removesuffix(RESTART)),
    "an end is not known": (END_TRACKS, "(void)steady;\n  gate->started = false;"),
    "efforts that stand are not shaped": ("(void)shape(gate, rules, steady, efforts);", ""),
    "efforts that stand are not known": (HOLD_TRACKS, "gate->started = false;"),
    "efforts that stand are no end": (HOLD_TRACKS, HOLD_TRACKS.removesuffix(RESTART)),
    "efforts that stand are sent where they differ alone": (
        "bool changed = gate->started;", "bool changed = false;"
    ),
    "efforts that stand are sent again and again": (
        "changed |= efforts[k] != gate->last[k]", "changed = true"
    ),
    "efforts that stand are sent once": ("changed |= efforts[k] != gate->last[k]", "(void)k"),
    "a restart is none": (
        "void gate_restart(gate_t *gate)\n{\n  gate->started = false;",
        "void gate_restart(gate_t *gate)\n{\n  (void)gate;",
    ),
    "clamping inverted": (CLAMP, "fmin(low, fmax(value, high))"),
    "clamping from above alone": (CLAMP, "fmin(value, high)"),
    "clamping from below alone": (CLAMP, "fmax(low, value)"),
}  # fmt: skip


class Library:
    """A compiled gate."""

    def __init__(self, source: str, folder: Path, compiler: str) -> None:
        shutil.copy(CONTROL / "gate.h", folder)
        (folder / "gate.c").write_text(source)
        path = folder / "gate.so"
        shim = str(Path(__file__).with_name("gate_shim.c"))
        options = ["-shared", "-fPIC", "-O1", "-I", str(folder), "-o", str(path), shim, "-lm"]
        subprocess.run([compiler, *options], check=True, capture_output=True)
        self.functions: Any = ctypes.CDLL(str(path))
        self.functions.shim_make.restype = ctypes.c_void_p
        self.functions.shim_hold.restype = ctypes.c_bool

    def gate(self) -> Gate:
        """One gate of it."""
        return CompiledGate(self.functions)


class CompiledGate:
    """A gate of a library, with the interface of `gate_model.Gate`."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions
        self._gate = ctypes.c_void_p(functions.shim_make())
        self._joints: tuple[str, ...] = ()
        self._last: dict[str, float] = {}

    def __del__(self) -> None:
        self._functions.shim_free(self._gate)

    def restart(self) -> None:
        self._functions.shim_restart(self._gate)

    def send(
        self, joints: Sequence[str], asked: np.ndarray, settings: GateSettings, time: int
    ) -> np.ndarray:
        self._use(joints)
        efforts, limit = np.array(asked, float), settings.limit(joints)
        self._functions.shim_send(*self._arguments(efforts, limit, settings, time))
        self._last = dict(zip(joints, efforts.tolist(), strict=True))
        return efforts

    def hold(
        self, joints: Sequence[str], asked: np.ndarray, settings: GateSettings, time: int
    ) -> np.ndarray | None:
        self._use(joints)
        efforts, limit = np.array(asked, float), settings.limit(joints)
        if not self._functions.shim_hold(*self._arguments(efforts, limit, settings, time)):
            return None
        self._last = dict(zip(joints, efforts.tolist(), strict=True))
        return efforts

    def _arguments(
        self, efforts: np.ndarray, limit: np.ndarray, settings: GateSettings, time: int
    ) -> tuple[Any, ...]:
        return (
            self._gate,
            _pointer(limit),
            ctypes.c_double(settings.rate),
            ctypes.c_int64(settings.ramp),
            ctypes.c_int64(settings.timeout),
            ctypes.c_int64(time),
            _pointer(efforts),
        )

    def end(self, joints: Sequence[str], time: int) -> None:
        self._use(joints)
        self._functions.shim_end(self._gate, ctypes.c_int64(time))
        self._last = dict.fromkeys(joints, 0.0)

    def _use(self, joints: Sequence[str]) -> None:
        """Where motors change, tell the gate what was last sent to each by name."""
        if tuple(joints) != self._joints:
            self._joints = tuple(joints)
            last = np.array([self._last.get(name, 0.0) for name in joints])
            self._functions.shim_use(self._gate, ctypes.c_size_t(len(last)), _pointer(last))


def _pointer(array: np.ndarray) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


def wrong(scenario: Any, make: Callable[[], Gate]) -> str:
    """Errors of a gate in a scenario; empty where there are none."""
    history = play(scenario, make)
    for broken in broken_promises(history):
        return broken
    expected = play(scenario)
    if len(history) != len(expected):
        return f"{len(history)} messages and events where the model has {len(expected)}"
    for found, right in zip(history, expected, strict=True):
        both = isinstance(found, Sent) and isinstance(right, Sent)
        if both and not np.allclose(found.efforts, right.efforts, 1e-12, 1e-12):
            return f"{found.efforts} where the model has {right.efforts}"
    return ""


def search(make: Callable[[], Gate], most: int) -> str:
    """Errors in the first scenario that has any; empty where none of so many has."""
    options = settings(
        max_examples=most,
        deadline=None,
        phases=[Phase.generate],
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    try:
        return wrong(find(scenarios, lambda each: bool(wrong(each, make)), settings=options), make)
    except NoSuchExample:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=20_000, help="scenarios a mutant")
    parser.add_argument("--only", default="", help="part of a mutant's name")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/hardening.md")
    asked = parser.parse_args()
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler is not None, "there is no C compiler"
    source = (CONTROL / "gate.c").read_text()
    verdicts = []
    with tempfile.TemporaryDirectory() as temporary:
        names = {"gate.c as it is": ("", "")} | MUTANTS
        for number, (name, (clause, instead)) in enumerate(names.items()):
            if asked.only not in name:
                continue
            assert not clause or source.count(clause) == 1, f"{name}: the gate has changed"
            folder = Path(temporary) / str(number)
            folder.mkdir()
            changed = source.replace(clause, instead) if clause else source
            library = Library(changed, folder, compiler)
            found = search(library.gate, asked.most if clause else asked.most // 10)
            ok = bool(found) == bool(clause)
            verdicts.append(Verdict(name, ok, found.split(";")[0][:120] or "nothing found"))
            print(f"{verdicts[-1].word:<9} {name}: {verdicts[-1].found}", flush=True)
    kept = [
        counted("control/gate.c", [each for each in verdicts if each.what != "gate.c as it is"])
    ]
    conclude("gate mutants", "Each clause removed or inverted.", verdicts, asked.write, kept)


if __name__ == "__main__":
    main()

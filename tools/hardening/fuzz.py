"""`make fuzz`: a hundred thousand inputs for each target, and no unexpected exception.

Each target runs in a process of its own, so that a crash is a verdict and not the end. Where
atheris installs, it guides the inputs by what they reach; else good inputs are mutated. Inputs that
went wrong are kept in test/fuzz_corpus, and tried first from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

from tools.hardening.fuzz_targets import TARGETS, seeds
from tools.hardening.verdicts import Verdict, conclude

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "test" / "fuzz_corpus"
PARTS = (b"nan", b"1e999", b"-1", b"'", b'"', b"<", b"/>", b"\0", b"\xff\xff\xff\xff", b"{", b"[")
LONGEST = 10  # [s] of processor time for one input
LARGEST_GROWTH = 50.0  # [MB] from the first thousand inputs on
LARGEST_INPUT = 100_000


def mutate(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Change, drop, double, insert and splice a few bytes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 8, 60))
        action = rng.randrange(6)
        if action == 0 and data:
            data[min(at, len(data) - 1)] = rng.randrange(256)
        elif action == 1:
            del data[at : at + size]
        elif action == 2:
            data[at:at] = data[at : at + size]
        elif action == 3:
            data[at:at] = rng.choice(PARTS)
        elif action == 4:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            data[at : at + size] = other[start : start + size]
        elif data:
            data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
    return bytes(data[:LARGEST_INPUT])


def known(name: str) -> list[bytes]:
    """Inputs that once went wrong."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*.bin"))]


def memory() -> float:
    """Peak memory of this process [MB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_mutated(name: str, runs: int) -> dict[str, object]:
    """Feed a target, here; what was found."""
    target, good = TARGETS[name], seeds(name)
    rng = random.Random(time.time_ns())
    first, wrong = 0.0, []

    def too_long(*_: object) -> None:
        raise TimeoutError(f"took more than {LONGEST} s")

    signal.signal(signal.SIGPROF, too_long)
    target(good[0])  # what is made once is made now
    began = time.monotonic()
    replay = known(name)
    for k in range(runs):
        data = replay[k] if k < len(replay) else mutate(rng.choice(good), good, rng)
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        try:
            target(data)
        except BaseException as error:
            wrong.append(f"{type(error).__name__}: {error}"[:200])
            keep(name, data)
            traceback.print_exc()
            if len(wrong) >= 5 or isinstance(error, KeyboardInterrupt):
                break
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        if k == min(1000, runs // 2):
            first = memory()
    return {
        "inputs": k + 1,
        "wrong": wrong,
        "growth": memory() - first,
        "seconds": time.monotonic() - began,
    }


def keep(name: str, data: bytes) -> None:
    """Keep an input that went wrong."""
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{hashlib.sha256(data).hexdigest()[:16]}.bin").write_bytes(data)


def run_guided(name: str, runs: int) -> None:
    """Have atheris feed a target, here; it ends the process, with 77 where something was wrong."""
    import atheris

    with atheris.instrument_imports(include=["rbda_ros.description"]):
        importlib.import_module("rbda_ros.description")
    folder = ROOT / "build" / "fuzz" / name
    folder.mkdir(parents=True, exist_ok=True)
    for data in (*seeds(name), *known(name)):
        (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    options = [f"-runs={runs}", f"-max_len={LARGEST_INPUT}", f"-timeout={LONGEST}"]
    options += [f"-artifact_prefix={folder}/wrong-", "-rss_limit_mb=4000"]
    atheris.Setup([sys.argv[0], *options, str(folder)], TARGETS[name])
    atheris.Fuzz()


GUIDED = ("urdf", "loops", "expression")
"""Targets whose code is Python, which coverage can guide."""


def run_target(name: str, runs: int, guided: bool) -> Verdict:
    """Run a target in a process of its own."""
    command = [sys.executable, "-m", "tools.hardening.fuzz", "--one", name, "--runs", str(runs)]
    log = ROOT / "build" / "logs" / f"fuzz_{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with log.open("w") as errors:
        done = subprocess.run(
            [*command, *(["--guided"] if guided else [])],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=os.environ | {"RBDA_ROS_COMPILE": "0"},
        )
    seconds = time.monotonic() - began
    if guided:
        found = f"{runs} inputs guided by coverage in {seconds:.0f} s"
        return Verdict(f"{name}, atheris", done.returncode == 0, found)
    if done.returncode != 0:
        return Verdict(name, False, f"ended with {done.returncode}: see {log.relative_to(ROOT)}")
    found = json.loads(done.stdout.splitlines()[-1])
    ok = not found["wrong"] and found["growth"] < LARGEST_GROWTH
    text = f"{found['inputs']} inputs in {found['seconds']:.0f} s, {found['growth']:.0f} MB more"
    return Verdict(name, ok, "; ".join([text, *found["wrong"]]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000, help="inputs a target")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--write", action="store_true", help="keep the table in docs/hardening.md")
    parser.add_argument("--one", choices=TARGETS, help=argparse.SUPPRESS)
    parser.add_argument("--guided", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        if asked.guided:
            run_guided(asked.one, asked.runs)
        else:
            print(json.dumps(run_mutated(asked.one, asked.runs)))
        return
    verdicts = []
    has_atheris = importlib.util.find_spec("atheris") is not None
    for name in asked.targets.split(","):
        verdicts.append(run_target(name, asked.runs, guided=False))
        print(f"{verdicts[-1].word:<9} {name}: {verdicts[-1].found}", flush=True)
        if name in GUIDED:
            if has_atheris:
                verdicts.append(run_target(name, asked.runs, guided=True))
            else:
                verdicts.append(Verdict(f"{name}, atheris", None, "atheris is not installed"))
            print(f"{verdicts[-1].word:<9} {name}, atheris: {verdicts[-1].found}", flush=True)
    conclude("fuzz", f"{asked.runs} inputs a target", verdicts, asked.write)


if __name__ == "__main__":
    main()

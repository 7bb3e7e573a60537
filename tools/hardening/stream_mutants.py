"""Clauses of the stream's state machine removed or inverted: its tests must notice every one.

    python -m tools.hardening.stream_mutants

A mutant is a copy of ``rbda_ros/control`` with one change, compiled into an extension module of its
own. The tests of `test/control` run on it, in a process of their own, and should fail. The clauses
are those that promise freshness, agreement, ends and whole messages; those of the gate itself are
in `gate_mutants.py`.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NamedTuple

import casadi  # noqa: F401  for all processes at once
import pytest

import rbda_ros  # noqa: F401
from tools.hardening.verdicts import Verdict, conclude, counted

ROOT = Path(__file__).resolve().parents[2]
CONTROL = ROOT / "rbda_ros" / "control"
TESTS = ("test/control/test_attacks.py", "test/control/test_faults.py")  # the quick ones first


class Mutant(NamedTuple):
    """A clause of a file, which stands there once, and what stands there instead."""

    file: str
    clause: str
    instead: str = ""


MUTANTS: dict[str, Mutant] = {
    # Freshness.
    "old stamps are fresh": Mutant("machine.c", "now - time > timeout || "),
    "stamps of the future are fresh": Mutant("machine.c", " || time - now > timeout"),
    "stale joint states and commands": Mutant(
        "state.c",
        "is_stale(state->stamp, moment.now, m->config->settings.joint_state_timeout)",
        "false",
    ),
    "other frames have other stamps": Mutant("state.c", "layout->group = other->group;"),
    "a new frame forgets the last stamp": Mutant("state.c", "layout->time = other->time;"),
    "other orders have other stamps": Mutant(
        "state.c", "qsort(layout->own, (size_t)layout->known, sizeof *layout->own, by_number);"
    ),
    "names of others replace ours": Mutant(
        "state.c", "while (gone > 0 && layouts->layouts[gone]->known > 0) gone--;"
    ),
    "joint states out of order": Mutant(
        "joint_states.c",
        "if (settings->joint_state_timeout != 0 && time < layout->time) return OUT_OF_ORDER;",
    ),
    "commands out of order": Mutant("joint_commands.c", "return OUT_OF_ORDER;", ";"),
    "commands without a fresh state": Mutant(
        "joint_commands.c", "if (route->needs_state && !fresh) return NO_STATE;"
    ),
    "a state that was answered once is fresh": Mutant(
        "joint_commands.c",
        "s->answered && !is_stale(s->state_time, now, m->config->settings.joint_state_timeout)",
        "s->answered",
    ),
    "stale references": Mutant(
        "auxiliary_inputs.c", "if (is_stale(*time, moment.now, timeout)) return STALE;"
    ),
    "base states out of order": Mutant(
        "auxiliary_inputs.c", "? OUT_OF_ORDER : ACCEPTED", "? ACCEPTED : ACCEPTED"
    ),
    "references by their arrival": Mutant(
        "auxiliary_inputs.c",
        "*time = stamp != 0 || (needed && timeout != 0) ? stamp : moment.now;",
        "*time = needed ? stamp : moment.now;",
    ),
    "a reference lasts for ever": Mutant(
        "joint_states.c",
        "is_stale(s->reference_time, now, settings->joint_state_timeout)",
        "false",
    ),
    "commands begin at the last command": Mutant(
        "joint_commands.c", "if (fresh) return s->state + s->ny;"
    ),
    "a rejected command is the newest": Mutant(
        "joint_commands.c",
        "code = check_command(layout, &command);",
        "s->last_command_stamp = command.stamp;\n  code = check_command(layout, &command);",
    ),
    "time that jumps back forgets nothing": Mutant(
        "machine.c",
        "if (moment.now < s->latest - JUMP)",
        "if (0)",
    ),
    "steady time goes back": Mutant(
        "machine.c", "if (moment.steady + s->steady_shift < s->latest_steady)", "if (0)"
    ),
    # Agreement.
    "contradictions are accepted": Mutant(
        "joint_states.c", "if (apart > tolerance) code = CONTRADICTION;"
    ),
    "agreement is rejected": Mutant(
        "joint_states.c", "if (apart > tolerance) code", "if (apart <= tolerance) code"
    ),
    "measurements choose no branch": Mutant(
        "joint_states.c", "give_guess(m, route, start != AT_LAST);", "give_guess(m, route, false);"
    ),
    "no settling": Mutant("joint_states.c", "if (start == AT_SETTLED) settle(m, route);"),
    "the first branch within the tolerance": Mutant(
        "joint_states.c",
        "static const double CERTAIN = 1e-3;",
        "static const double CERTAIN = 1.0;",
    ),
    "the contradiction is not told": Mutant(
        "joint_states.c", "m->contradicting = m->detail.joint;", ""
    ),
    # Whole.
    "names twice": Mutant("joint_states.c", "if (layout->repeated) return MISNAMED;"),
    "names of others": Mutant("state.c", "if (m->foreign) return MISNAMED;"),
    "numbers that are not finite": Mutant(
        "joint_states.c", "if (!isfinite(position)) {", "if (0) {"
    ),
    "velocities that are not finite": Mutant(
        "joint_states.c", "s->moving[joint] = isfinite(velocity) != 0;", "s->moving[joint] = true;"
    ),
    "commands name any joint": Mutant("joint_commands.c", "|| layout->known < layout->count"),
    "commands are as long as they like": Mutant(
        "joint_commands.c", "fields[k].count != 0 && fields[k].count != (size_t)layout->count", "0"
    ),
    # Ends.
    "no watchdog": Mutant("machine.c", "if (!of->standing) return INT64_MAX;", "return INT64_MAX;"),
    "zeros although inputs come": Mutant(
        "machine.c",
        "if (moment.steady - of->time <= settings->joint_state_timeout)",
        "if (0)",
    ),
    "on_stale nothing sends zeros": Mutant(
        "machine.c",
        "if (settings->joint_state_timeout == 0 || settings->on_stale == STALE_NOTHING)",
        "if (settings->joint_state_timeout == 0)",
    ),
    "efforts stand for ever": Mutant(
        "machine.c",
        "if (*began != NEVER && moment.steady - *began > settings->stale_hold_time) return false;",
    ),
    "efforts that stand pass no gate": Mutant(
        "machine.c", "if (gate_hold(&m->state->gates[gate], &settings->gate, moment.steady, out))"
    ),
    "efforts stand without a state": Mutant("machine.c", "if (!s->answered) return NULL;"),
    "damping by any velocity": Mutant(
        "machine.c", "== STALE_DAMPING && s->completed", "== STALE_DAMPING"
    ),
    "damping pushes": Mutant(
        "machine.c",
        "-config->settings.damping[k] * s->qd[at]",
        "config->settings.damping[k] * s->qd[at]",
    ),
    "no zeros at the stop": Mutant(
        "machine.c", "if (m->config->settings.on_stale != STALE_NOTHING)", "if (0)"
    ),
    "no zeros after a rejection": Mutant(
        "machine.c",
        "if (drives && !m->foreign && m->config->settings.zero_on_rejection)",
        "if (0)",
    ),
    "zeros after another's state": Mutant(
        "machine.c",
        "if (drives && !m->foreign &&",
        "if (drives &&",
    ),
    "no zeros after names twice": Mutant(
        "machine.c",
        "if (drives && !m->foreign &&",
        "if (drives && code != MISNAMED &&",
    ),
    "the array is not ended after a rejection": Mutant(
        "machine.c", "if (drives_array) end_fields", "if (0) end_fields"
    ),
    "motors that are gone keep their effort": Mutant(
        "machine.c", "if (before != NULL && config != NULL) end_replaced(machine, config);"
    ),
    "an array of another order has its old effort": Mutant(
        "machine.c", "motors && same_array(&before->settings, &config->settings)", "motors"
    ),
    "all end where one array changes": Mutant(
        "machine.c", "g == ARRAY_GATE ? array : motors", "array"
    ),
    "velocities never end": Mutant("machine.c", "velocities == OVER ? VELOCITY_FIELD : 0", "0"),
    "velocities end although commands come": Mutant(
        "machine.c",
        "return moment.steady - of->time > settings->joint_state_timeout\n",
        "return true\n",
    ),
    "velocities end with on_stale nothing": Mutant(
        "machine.c",
        "of->standing || settings->joint_state_timeout == 0 || settings->on_stale == STALE_NOTHING",
        "of->standing || settings->joint_state_timeout == 0",
    ),
    "velocities stay at the stop": Mutant(
        "machine.c", "(m->state->velocities[gate].standing ? VELOCITY_FIELD : 0)", "0"
    ),
    "velocities end again and again": Mutant(
        "machine.c", "if (fields & VELOCITY_FIELD) m->state->velocities[gate].standing = false;"
    ),
    "velocities stay where another source drives the array": Mutant(
        "machine.c", "fields |= standing_fields(m, g) & VELOCITY_FIELD;", ";"
    ),
    "velocities of the array are not known": Mutant(
        "joint_commands.c", "note_velocities(m, ARRAY_GATE, motors[1], moment);"
    ),
    "velocities of motors are not known": Mutant(
        "joint_commands.c", "note_velocities(m, MOTOR_GATE, motors[1], moment);"
    ),
    "no ramp after another description": Mutant(
        "machine.c", "for (int g = 0; g < GATES; g++) gate_restart(&old->gates[g]);"
    ),
    "another description with the old states": Mutant("machine.c", "forget_inputs(old);"),
    "another assembly on the old branch": Mutant(
        "machine.c", "start_at(old, config->model.home);", ";"
    ),
    "both sources drive the array": Mutant(
        "machine.c",
        "settings->command_count == 0 || settings->commands_from_joints != from_joints",
        "settings->command_count == 0",
    ),
    "commands pass no gate": Mutant(
        "joint_commands.c",
        "limited = pass_gate(m, MOTOR_GATE, motors[2], moment, passed);",
        "memcpy(passed, motors[2], sizeof(double) * actuated);",
    ),
    # Differences.
    "the first difference counts": Mutant("state.c", "elapsed >= 1.0 ?", "elapsed >= 0.0 ?"),
    "differences over gaps": Mutant("state.c", "gap > 0 && gap <= longest", "gap > 0"),
}


def compile_object(source: Path, into: Path, compiler: str) -> Path:
    """One file of the module, as an object."""
    include = ["-I", sysconfig.get_paths()["include"], "-I", str(CONTROL)]
    options = ["-c", "-fPIC", "-O1", "-w", "-ffp-contract=off", "-fvisibility=hidden"]
    subprocess.run([compiler, *options, *include, "-o", str(into), str(source)], check=True)
    return into


def notices(library: Path) -> str:
    """The first test that fails with a module; empty where all pass. In a process of its own."""
    report = library.with_suffix(".txt")
    child = os.fork()
    if child == 0:
        with report.open("w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os._exit(_test(library))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 0:
        return ""
    lines = report.read_text().splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split("::")[-1].split(" ")[0] if failed else f"exit code {code}"


def _test(library: Path) -> int:
    spec = importlib.util.spec_from_file_location("rbda_ros.control.native", library)
    assert spec is not None and spec.loader is not None
    native = importlib.util.module_from_spec(spec)
    sys.modules["rbda_ros.control.native"] = native
    spec.loader.exec_module(native)
    return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *TESTS]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of a mutant's name")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/hardening.md")
    asked = parser.parse_args()
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler is not None, "there is no C compiler"
    verdicts = []
    os.chdir(ROOT)
    sources = [*sorted(CONTROL.glob("*.c")), ROOT / "rbda_ros" / "engine" / "closing.c"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "rbda_ros" / "control"
        folder.mkdir(parents=True)
        (folder.parent / "engine").symlink_to(CONTROL.parent / "engine")
        objects = {
            source.name: compile_object(source, folder / f"{source.stem}.o", compiler)
            for source in sources
        }
        names = {"as it is": Mutant("machine.c", "")} | MUTANTS
        for number, (name, (file, clause, instead)) in enumerate(names.items()):
            if asked.only not in name:
                continue
            source = (CONTROL / file).read_text()
            assert not clause or source.count(clause) == 1, f"{name}: {file} has changed"
            changed = folder / file
            changed.write_text(source.replace(clause, instead) if clause else source)
            other = compile_object(changed, folder / f"mutant_{number}.o", compiler)
            library = folder / f"native_{number}.so"
            linked = [str(other if key == file else each) for key, each in objects.items()]
            subprocess.run(
                [compiler, "-shared", "-o", str(library), *linked, "-lm", "-lpthread"], check=True
            )
            found = notices(library)
            ok = bool(found) == bool(clause)
            verdicts.append(Verdict(name, ok, found or "nothing found"))
            print(f"{verdicts[-1].word:<9} {name}: {verdicts[-1].found}", flush=True)
    kept = [
        counted("control, without the gate", [each for each in verdicts if each.what != "as it is"])
    ]
    conclude("stream mutants", "Each clause removed or inverted.", verdicts, asked.write, kept)


if __name__ == "__main__":
    main()

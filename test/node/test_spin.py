"""Ctrl-C and SIGTERM end a process, whatever hangs in it."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from ros_graph import own_domain

from rbda_ros.node.stop_signals import GRACE

PROGRAM = """
import ctypes, sys, time
from rclpy.node import Node
from rclpy.task import Future
from rbda_ros.node import spin
hang = {"sleep": lambda: time.sleep(1000), "c": lambda: ctypes.PyDLL(None).sleep(1000)}[sys.argv[1]]

class Hanging(Node):
    def destroy_node(self):
        hang()

signals = spin.init([])
print("ready", flush=True)
if sys.argv[2] == "start":
    hang()
node = Hanging("hanging")
spin.spin(node, Future(), signals)
"""


@pytest.mark.parametrize(
    ("how", "where"),
    [
        ("sleep", "end"),
        pytest.param("c", "end", marks=pytest.mark.nightly),
        pytest.param("sleep", "start", marks=pytest.mark.nightly),
    ],
)
def test_what_hangs_is_cut_off(how, where):
    """In DDS or anywhere else, even where C code holds the interpreter; launch signals twice."""
    with own_domain() as domain:
        command = [sys.executable, "-c", PROGRAM, how, where]
        environment = os.environ | {"ROS_DOMAIN_ID": str(domain)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            # Not its own doing where this waits for longer; the margin is for a loaded machine.
            code = process.wait(GRACE + 30.0)
            assert code == (-signal.SIGALRM if how == "c" else 0)


LEG = ("config/robots/demo_leg.urdf", "--loops", "config/robots/demo_leg_loops.yaml")
COMMANDS = {
    "serve": ("serve", *LEG),
    "simulate": ("simulate", *LEG),
    "demo": ("demo",),
    "view": ("view", *LEG),
    "view --node": ("view", "--node", "/nobody"),
}
"""Commands that run until they are stopped."""
EXAMPLES = {
    "joint_state_source": ("rbda_ros.demo.joint_state_source",),
    "stand_in_robot": ("rbda_ros.examples.stand_in_robot", *LEG),
    "track_trajectory": ("rbda_ros.examples.track_trajectory", *LEG),
    "watch_efforts": ("rbda_ros.examples.watch_efforts",),
    "computed_torque": ("rbda_ros.examples.computed_torque",),
    "plot_efforts": ("rbda_ros.examples.plot_efforts",),
}
"""Programs that run until they are stopped, or for long."""
COMPUTATIONS = {
    "demo --mujoco": ("rbda_ros.cli", "demo", "--mujoco"),
    "check": ("rbda_ros.cli", "check", *LEG),
    "learn_to_balance": ("rbda_ros.examples.learn_to_balance",),
    "optimal_motion": ("rbda_ros.examples.optimal_motion", "jump"),
}
"""Programs that end by themselves."""
PROGRAMS = {name: ("rbda_ros.cli", *words) for name, words in COMMANDS.items()}
PROGRAMS |= EXAMPLES | COMPUTATIONS
MARK = "RBDA_ROS_TEST_MARK"


def two_signals(name, how, first, second):
    """Signal a program twice, as Ctrl-C in a terminal, which all of its processes receive.

    Returns the time from the second signal to the end of the program [s].

    Args:
        name: of the program.
        how: number of the signal.
        first: when it comes, from when the program first handles signals on [s].
        second: when it comes again, from the first on [s].
    """
    mark = f"{os.getpid()}_{name}_{first}"
    with own_domain() as domain:
        process = subprocess.Popen(
            [sys.executable, "-m", *PROGRAMS[name]],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | {"ROS_DOMAIN_ID": str(domain), MARK: mark},
            start_new_session=True,
            text=True,
        )
        with process:
            while process.poll() is None and not handles_signals(process.pid):
                time.sleep(0.01)
            for wait in (first, second):
                time.sleep(wait)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, how)
            begin = time.monotonic()
            _, said = process.communicate(timeout=GRACE + 30.0)  # it may be a loaded machine
            took = time.monotonic() - begin
        assert "Traceback" not in said
        assert "did not stop in time" not in said
        exit_codes = {0} if name in COMMANDS else {0, 128 + how}
        if name in COMPUTATIONS:
            exit_codes.add(-how)  # at its end, when Python has taken its handlers away
        assert process.returncode in exit_codes, said
        end = time.monotonic() + 30.0
        while left := left_over(mark):
            assert time.monotonic() < end, left
            time.sleep(0.1)
    return took


def handles_signals(pid):
    """Whether a process has a handler of SIGTERM, or has ended."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        (caught,) = (line.split()[1] for line in status.splitlines() if line[:7] == "SigCgt:")
        return bool(int(caught, 16) & 1 << signal.SIGTERM - 1)
    return True


def left_over(mark):
    """Process ids of programs that outlived the one that started them."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("name", ("serve", "computed_torque"))
def test_two_signals_end_a_program_that_begins(name):
    """While it imports: Python would print a traceback."""
    two_signals(name, signal.SIGINT, 0.2, 0.05)


@pytest.mark.nightly
@pytest.mark.parametrize("trial", range(5))
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_signals_end_every_program(name, how, trial, record_property):
    """At any time: while it imports, compiles, waits for others or runs."""
    random = np.random.default_rng([trial, how])
    first, second = random.uniform(0.0, 8.0), random.choice([0.0, 0.05, 0.3, 1.0])
    record_property("seconds", two_signals(name, how, first, second))

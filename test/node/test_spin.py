"""Ctrl-C and SIGTERM end a process, whatever hangs in it."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

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
PROGRAMS = {
    "serve": ("rbda_ros.cli", "serve", *LEG),
    "simulate": ("rbda_ros.cli", "simulate", *LEG),
    "demo": ("rbda_ros.cli", "demo"),
    "view": ("rbda_ros.cli", "view", *LEG),
    "view --node": ("rbda_ros.cli", "view", "--node", "/nobody"),
    "stand_in_robot": ("rbda_ros.examples.stand_in_robot", *LEG),
    "watch_efforts": ("rbda_ros.examples.watch_efforts",),
    "computed_torque": ("rbda_ros.examples.computed_torque",),
    "plot_efforts": ("rbda_ros.examples.plot_efforts",),
    "joint_state_source": ("rbda_ros.demo.joint_state_source",),
}


@pytest.mark.nightly
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_signals_end_every_program(name, how):
    """As Ctrl-C twice in a terminal, which all processes of the program hear."""
    with own_domain() as domain:
        command = [sys.executable, "-m", *PROGRAMS[name]]
        environment = os.environ | {"ROS_DOMAIN_ID": str(domain)}
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, env=environment, start_new_session=True
        ) as process:
            time.sleep(6.0)
            for _ in range(2):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, how)
                time.sleep(0.3)
            process.wait(GRACE + 30.0)  # the margin is for a loaded machine

"""Ctrl-C and SIGTERM end a process, whatever hangs in it."""

import os
import signal
import subprocess
import sys
import time

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

"""Faults 11 to 14 of `known_faults.py`: of files, bags, requests and web pages."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bag_maker import Motion, messages_of, write_bag
from chain import chain
from known_faults import ARM, Finding
from lifecycle_msgs.msg import Transition
from rbda_ros.srv import IdentifyPayload
from ros_graph import Graph
from sensor_msgs.msg import JointState

from rbda_ros.demo.resources import share_file

SECRET = "hunter2"
COMPUTE = """
import sys
from rbda_ros import load_robot
robot = load_robot(sys.stdin.read())
kernel = robot.kernel("inverse_dynamics")
kernel.compile()
print(abs(kernel.call([0.0], [0.0], [0.0])[0][0]))
"""


def run(*command: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A program of Python, and what came of it."""
    return subprocess.run(
        [sys.executable, *command],
        input=given,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def planted_code(graph: Graph) -> Finding:
    """11: files of another robot under the names of ours, in a folder of ours."""

    def torque(mass: float, cache: Path) -> float:
        text = ARM.replace('mass value="1"', f'mass value="{mass}"')
        done = run("-c", COMPUTE, given=text, RBDA_ROS_CACHE=str(cache))
        assert done.returncode == 0, done.stderr
        return float(done.stdout)

    ours, others = graph.folder / "ours", graph.folder / "others"
    right, wrong = torque(1.0, ours), torque(2.0, others)
    files = [
        sorted(each.glob("*.kernel"), key=lambda p: p.stat().st_size) for each in (ours, others)
    ]
    assert len(files[0]) == len(files[1]) > 0 and wrong > 1.9 * right
    for one, other in zip(*files, strict=True):
        one.write_bytes(other.read_bytes())
    found = torque(1.0, ours)
    text = f"{found:.4g} N m with planted files, where {right:.4g} N m is right"
    return Finding(abs(found - right), 1e-9, text)


def quoted_secret(graph: Graph) -> Finding:
    """12: `loop_constraints`, set remotely, names a file that is not for everybody."""
    secret = graph.folder / "shadow"
    secret.write_text(f"root:$6${SECRET}:19000:0\n{SECRET}3:{SECRET}:1\n")
    node = graph.serve(autostart=False, robot_description=chain(2))
    client = graph.client()
    answer = client.set_parameter("loop_constraints", str(secret))
    client.change_state(Transition.TRANSITION_CONFIGURE)
    client.spin(0.5)
    count = (node.log + answer.reason).count(SECRET)
    return Finding(count, 0, f"the log quotes the file {count} times")


def label_of_nothing(graph: Graph) -> Finding:
    """13: a recording of another robot is labelled."""
    times = 10**18 + 10_000_000 * np.arange(100)
    still = np.zeros((len(times), 1))
    other = Motion(times, ["other"], still, still, still)
    bag = write_bag(graph.folder / "bag", messages_of(other))
    model = graph.folder / "arm.urdf"
    model.write_text(ARM)
    output = str(graph.folder / "labels")
    given = ["label", str(bag), "-o", output, "--robot", str(model), "--workers", "1"]
    done = run("-m", "rbda_ros.cli", *given)
    last = " ".join((done.stdout.strip() or done.stderr.strip()).splitlines()[-1:])
    return Finding(float(done.returncode == 0), 0, f"exit code {done.returncode}: {last}")


def unexpected_inputs(graph: Graph) -> Finding:
    """14: a load is identified next to another robot; an endless number; a page of another site."""
    found = {
        "identify_payload": _identify_beside_another(graph),
        "expression": _endless_number(graph.folder),
        "page of another site": _foreign_page(graph),
    }
    wrong = [name for name, (bad, _) in found.items() if bad]
    return Finding(len(wrong), 0, "; ".join(f"{name}: {said}" for name, (_, said) in found.items()))


def _identify_beside_another(graph: Graph) -> tuple[bool, str]:
    graph.serve(robot_description=ARM, payload_window=1.0)
    client = graph.client()
    client.until_active()
    publisher = client.publisher(JointState, "joint_states")
    for _ in range(100):
        publisher.publish(client.joint_states(["other"], [0.0], [0.0]))
        client.spin(0.01)
    answer = client.call(IdentifyPayload, "~/identify_payload", IdentifyPayload.Request(link="rod"))
    bad = answer.success or "internal error" in answer.message
    return bad, f"'{' '.join(answer.message.split())[:120]}'"


def _endless_number(folder: Path) -> tuple[bool, str]:
    model, loops = folder / "two.urdf", folder / "two.yaml"
    model.write_text(chain(2))
    equation = "joint1 - 1e308*1e308*joint2"
    loops.write_text(
        f"constraints:\n  - {{name: gear, type: expression, equation: '{equation}'}}\n"
    )
    done = run("-m", "rbda_ros.cli", "check", str(model), "--loops", str(loops))
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return "Traceback" in done.stderr, f"'{said[-1][:120] if said else ''}'"


def _foreign_page(graph: Graph) -> tuple[bool, str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    urdf = str(share_file("config/robots/demo_leg.urdf"))
    viewer = graph.run("view", urdf, "--port", str(port))
    request = (
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    answer, end = "", time.monotonic() + 60.0
    while not answer and time.monotonic() < end and viewer.running:
        try:
            with socket.create_connection(("127.0.0.1", port), 5.0) as page:
                page.sendall(request.encode())
                answer = page.recv(4096).decode(errors="replace").splitlines()[0]
        except OSError:
            time.sleep(0.2)
    viewer.stop(signal.SIGTERM)
    return " 101 " in answer or not answer, answer or "no answer"


INPUT_FAULTS: dict[int, Callable[[Graph], Finding]] = {
    11: planted_code,
    12: quoted_secret,
    13: label_of_nothing,
    14: unexpected_inputs,
}

"""`make faults`: what breaks around a node in the field, tried with real processes."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from builtin_interfaces.msg import Time
from chain import chain
from lifecycle_msgs.msg import Transition
from ros_graph import Graph, Program, own_domain
from rosgraph_msgs.msg import Clock

from rbda_ros import srv
from tools.hardening.leg_node import LEG, NAMES, Y, answers, serve, start
from tools.hardening.loopback import set_loopback
from tools.hardening.restart import node_killed
from tools.hardening.robot_faults import ROBOT_FAULTS
from tools.hardening.system_faults import SYSTEM_FAULTS, full_folder
from tools.hardening.verdicts import LoadedError, Verdict, conclude, loaded

ROOT = Path(__file__).resolve().parents[2]
GONE = 2.0  # [s] in which a node must end


def drive(graph: Graph, *options: str) -> tuple[Program, Path]:
    report = graph.folder / f"driver_{len(graph.programs)}.json"
    program = graph.run(
        "--report", str(report), "--rate", "200", *options, module="tools.hardening.driver"
    )
    return program, report


def driver_killed(graph: Graph) -> str:
    """The driver dies: efforts end with it, and begin again with the next."""
    _, client, talk = start(graph)
    driver, _ = drive(graph)
    client.until(lambda: len(talk.received) > 50)
    driver.process.kill()
    driver.process.wait()
    client.spin(0.5)
    talk.received.clear()
    client.spin(0.5)
    assert not talk.received, "efforts without states"
    drive(graph)
    client.until(lambda: len(talk.received) > 50)
    return "no effort after it, efforts again with the next"


def other_order(graph: Graph) -> str:
    """The driver comes back with its joints in another order: efforts are still right."""
    start(graph)
    total = 0
    for options in ([], ["--reverse"]):
        driver, report = drive(graph, "--seconds", "3", *options)
        driver.process.wait(60)
        counts = json.loads(report.read_text())
        assert counts["answered"] > 100, counts
        assert not counts["wrong"], counts
        total += counts["answered"]
    return f"{total} efforts, all right"


def clock_jumps(graph: Graph) -> str:
    """Simulated time jumps, forward and back: the node goes on with the new time."""
    _, client, talk = start(graph, use_sim_time=True)
    clock = client.publisher(Clock, "/clock")

    def answered_at(seconds: int) -> bool:
        talk.received.clear()
        for k in range(200):
            now = Time(sec=seconds + k // 100, nanosec=(k % 100) * 10_000_000)
            clock.publish(Clock(clock=now))
            client.spin(0.02)
            message = client.joint_states(NAMES, Y, [0.0] * 4)
            message.header.stamp = now
            talk.publisher.publish(message)
            client.spin(0.02)
            if talk.answered(message):
                return True
        return False

    for seconds in (1000, 100_000, 10):
        assert answered_at(seconds), f"no effort at {seconds} s"
    return "efforts at 1,000 s, then 100,000 s, then 10 s"


def read_only_home(graph: Graph) -> str:
    """No home folder to write to."""
    nowhere = {"HOME": "/proc/nowhere", "ROS_LOG_DIR": None}
    node = serve(graph, environment=nowhere)
    client = graph.client()
    client.until_active()
    assert node.stop() == 0
    return "starts, logs elsewhere and says so"


def full_disk(graph: Graph) -> str | None:
    """The disk of the log is full."""
    with full_folder(graph) as folder:
        if folder is None:
            return None
        node = graph.serve(robot_description=LEG, environment={"ROS_LOG_DIR": str(folder)})
        client = graph.client()
        client.until_active()
        code = node.stop()
        assert code == 0, code
    return "starts, answers and ends"


def clients_die(graph: Graph) -> str:
    """Clients are killed while they wait for an answer."""
    _, _, talk = start(graph)
    code = (
        "import sys, rclpy; from rbda_ros.srv import DescribeModel\n"
        "rclpy.init(); node = rclpy.create_node('dying')\n"
        "client = node.create_client(DescribeModel, 'dynamics/describe_model')\n"
        "client.wait_for_service(20.0); print('ready', flush=True)\n"
        "while True: client.call_async(DescribeModel.Request())\n"
    )
    for _ in range(4):
        dying = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            env=os.environ | graph._environment,
        )
        assert dying.stdout is not None
        dying.stdout.readline()
        time.sleep(0.2)
        dying.kill()
        dying.wait()
    assert answers(talk)
    return "4 killed in the middle of a flood; efforts go on"


def thousand_requests(graph: Graph) -> str:
    """A thousand requests a second for five seconds, beside joint states."""
    _, client, talk = start(graph)
    kind, name = srv.InverseDynamics, "~/inverse_dynamics"
    request = kind.Request()
    request.state.position = list(Y)
    client.call(kind, name, request, deep=True)
    futures, began = [], time.monotonic()
    while (passed := time.monotonic() - began) < 5.0:
        while len(futures) < 1000 * passed:
            futures.append(client.begin_call(kind, name, request))
        client.spin(0.005)
        talk.publisher.publish(client.joint_states(NAMES, Y, [0.0] * 4))
    client.spin(2.0)
    done = [future.result() for future in futures if future.done()]
    assert all(answer.success for answer in done)
    assert len(done) > 0.5 * len(futures), f"{len(done)} of {len(futures)}"
    beside = len(talk.received)
    assert answers(talk)
    return f"{len(done)} of {len(futures)} answered, {beside} efforts beside"


def ended(node: Program, how: int = signal.SIGTERM) -> float:
    began = time.monotonic()
    code = node.stop(how)
    assert code == 0, f"exit code {code}: {node.log[-500:]}"
    assert "Traceback" not in node.log
    return time.monotonic() - began


def told_to_end(graph: Graph) -> str:
    """SIGTERM in every state of the lifecycle, and during every transition."""
    configure, activate = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
    deactivate, clean_up = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP
    ways = [[], [configure], [configure, activate], [configure, activate, deactivate]]
    ways.append([configure, activate, deactivate, clean_up])
    longest = 0.0
    for way in ways:
        node, client = serve(graph, autostart=False), graph.client()
        assert client.state == "unconfigured"
        for transition in way:
            assert client.change_state(transition)
        longest = max(longest, ended(node))
    for way in ways[1:]:
        node, client = graph.serve(robot_description=chain(40), autostart=False), graph.client()
        for transition in way[:-1]:
            assert client.change_state(transition)
        client.begin_change_state(way[-1])
        client.spin(0.05)
        longest = max(longest, ended(node))
    assert longest < GONE or loaded(), f"{longest:.1f} s"
    return f"5 states, 4 transitions: exit code 0, {longest:.1f} s at most"


def two_of_one_name(graph: Graph) -> str:
    """Two nodes of one name: neither breaks, and both go on when the other ends."""
    first, client, talk = start(graph)
    second = serve(graph)
    client.until(lambda: second.log.count("active: efforts") == 1)
    assert answers(talk)
    assert ended(first) >= 0.0
    assert answers(talk)
    assert ended(second) >= 0.0
    return "both answer; one goes on without the other"


def interface_down(graph: Graph) -> str | None:
    """The network goes down and up again."""
    code = "import sys; from tools.hardening.faults import in_own_network as f; f(sys.argv[1])"
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", code, str(graph.folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )
    if "unshare failed" in done.stderr:
        return None
    assert done.returncode == 0, (done.stdout + done.stderr)[-500:]
    return done.stdout.splitlines()[-1]


def in_own_network(folder: str) -> None:
    """The body of `interface_down`, in a network of its own."""
    set_loopback(up=True)
    graph = Graph(1, Path(folder))
    _, client, talk = start(graph)
    assert answers(talk)
    set_loopback(up=False)
    client.spin(2.0)
    set_loopback(up=True)
    assert answers(talk)
    graph.close()
    print("efforts after it as before")


FAULTS: dict[str, Callable[[Graph], str | None]] = {
    "driver killed": driver_killed,
    "node killed with -9": node_killed,
    "other joint order after a restart": other_order,
    "interface down and up": interface_down,
    "clock jumps": clock_jumps,
    "read-only home": read_only_home,
    "full disk": full_disk,
    "clients that die": clients_die,
    "1,000 requests a second": thousand_requests,
    "SIGTERM in every state": told_to_end,
    "two nodes of one name": two_of_one_name,
    **SYSTEM_FAULTS,
    **ROBOT_FAULTS,
}


def try_fault(name: str, fault: Callable[[Graph], str | None]) -> Verdict:
    """Run one fault on a graph of its own."""
    with own_domain() as domain, tempfile.TemporaryDirectory() as folder:
        graph = Graph(domain, Path(folder))
        try:
            found = fault(graph)
        except LoadedError as error:
            return Verdict(name, None, str(error))
        except Exception as error:
            text = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
            return Verdict(name, False, text)
        finally:
            for program in graph.programs:
                if program.running:
                    program.process.kill()
                    program.process.wait()
            graph.close()
    if found is None:
        return Verdict(name, None, "this system does not allow it")
    return Verdict(name, True, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a fault's name")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/hardening.md")
    asked = parser.parse_args()
    verdicts = []
    for name, fault in FAULTS.items():
        if asked.only in name:
            verdicts.append(try_fault(name, fault))
            print(f"{verdicts[-1].word:<9} {name}: {verdicts[-1].found}", flush=True)
    conclude("faults", "the demo leg, real processes", verdicts, asked.write)


if __name__ == "__main__":
    main()

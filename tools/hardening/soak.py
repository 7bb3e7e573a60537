"""`make soak`: a node at work for ten minutes, everything at once, every answer checked.

1 kHz joint states of a leg with loops; every service at mixed rates; loads, descriptions and
parameters swapped; references and wrenches. Memory, descriptors and threads are sampled once a
second; from the warm-up on they must stay where they are.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import Inertia, Point, Vector3, WrenchStamped
from rbda_ros.msg import Contact, State
from ros_graph import Graph, own_domain
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbda_ros import load_robot, srv
from rbda_ros.demo.resources import share_file
from tools.hardening.driver import LOAD, LOOPS, URDF
from tools.hardening.verdicts import Verdict, conclude

ROOT = Path(__file__).resolve().parents[2]
WARM_UP = 0.2  # share of the time
LARGEST_GROWTH = 2.0  # [MB] after it
MAX_UNANSWERED = 0.001  # share of the states
PICTURE = ROOT / "docs" / "pictures" / "soak.svg"
Y = [0.1, 0.3, 0.9, -0.2]


class Soak:
    """One node, one driver, and a client that asks for everything."""

    def __init__(self, graph: Graph) -> None:
        self.text = share_file(URDF).read_text()
        self.robot = load_robot(share_file(URDF), share_file(LOOPS))
        self.loaded = self.robot.with_payloads({"load": LOAD})
        self.node = graph.serve(
            robot_description=self.text, loop_constraints=str(share_file(LOOPS))
        )
        self.client = graph.client()
        self.client.until_active()
        self.report = graph.folder / "driver.json"
        self.driver = graph.run(*("--report", str(self.report)), module="tools.hardening.driver")
        self.descriptions = self.client.describe(self.text)
        self.references = self.client.publisher(JointTrajectory, "~/reference")
        self.wrenches = self.client.publisher(WrenchStamped, "~/external_wrench")
        self.asked = self.wrong = self.refused = self.swaps = 0
        self.samples: list[tuple[float, float, int, int]] = []
        self.rng = np.random.default_rng(1)

    def run(self, seconds: float) -> None:
        begin = time.monotonic()
        sampled, k = begin, 0
        while (now := time.monotonic()) < begin + seconds:
            self.one(k)
            k += 1
            if now > sampled + 1.0:
                sampled = now
                self.sample(now - begin)

    def one(self, k: int) -> None:
        """One request, of all kinds in turn, and swaps now and then."""
        ask = (
            *(self.inverse_dynamics, self.forward_dynamics, self.mass_matrix, self.inertia),
            *(self.contact, self.trajectory, self.convert, self.describe, self.actuation),
        )
        ask[k % len(ask)]()
        self.references.publish(JointTrajectory(points=[JointTrajectoryPoint()]))
        self.wrenches.publish(WrenchStamped())
        if k % 50 == 25:
            self.load(k % 100 == 25)
        if k % 200 == 100:
            name = f"leg_{k}"
            text = self.text.replace('name="demo_leg"', f'name="{name}"', 1)
            self.descriptions.publish(String(data=text))
            self.swaps += 1
        if k % 20 == 10:
            cutoff = float(self.rng.uniform(10, 100))
            self.count(self.client.set_parameter("velocity_cutoff", cutoff).successful)

    def call(self, kind: Any, name: str, request: Any) -> Any:
        answer = self.client.call(kind, f"~/{name}", request)
        self.asked += 1
        if not answer.success:
            self.refused += 1
            print(f"refused: {name}: {answer.message[:200]}", flush=True)
            return None
        return answer

    def count(self, right: bool) -> None:
        self.wrong += not right

    def agrees(self, found: Any, of: Any) -> None:
        """Count an answer wrong that is neither of the loaded nor of the unloaded leg."""
        found = np.array(found)
        self.count(any(np.allclose(found, of(r), 1e-6, 1e-6) for r in (self.robot, self.loaded)))

    def state(self) -> State:
        return State(position=Y, velocity=[0.1, -0.2, 0.3, 0.1])

    def inverse_dynamics(self) -> None:
        request = srv.InverseDynamics.Request(state=self.state(), acceleration=[1.0, 2.0, 3.0, 4.0])
        if answer := self.call(srv.InverseDynamics, "inverse_dynamics", request):
            yd, ydd = request.state.velocity, request.acceleration
            self.agrees(answer.effort, lambda r: r.inverse_dynamics_efforts(Y, yd, ydd)[0])

    def forward_dynamics(self) -> None:
        efforts = [0.1, 0.2, 0.3, 0.4]
        request = srv.ForwardDynamics.Request(state=self.state(), effort=efforts)
        if answer := self.call(srv.ForwardDynamics, "forward_dynamics", request):

            def expected(robot: Any) -> Any:
                tau = np.zeros(robot.nv)
                tau[list(robot.tree.actuated)] = efforts
                state = robot.state(np.array(Y), request.state.velocity)
                ydd = robot.forward_dynamics(state, state.yd, tau)
                return robot.spanning_acceleration(state, state.yd, ydd)

            self.agrees(answer.acceleration, expected)

    def mass_matrix(self) -> None:
        request = srv.MassMatrix.Request(state=self.state())
        if answer := self.call(srv.MassMatrix, "mass_matrix", request):
            self.agrees(answer.mass_matrix.data, lambda r: r.mass_matrix(np.array(Y)).ravel())

    def inertia(self) -> None:
        point = self.rng.normal(0.0, 0.1, 3)
        request = srv.OperationalSpaceInertia.Request(
            state=self.state(), frames=["foot"], linear_only=True
        )
        if self.rng.random() < 0.1:
            request.offsets = [Point(**dict(zip("xyz", point.tolist(), strict=True)))]
        if answer := self.call(srv.OperationalSpaceInertia, "operational_space_inertia", request):
            self.count(bool(np.isfinite(answer.inertia.data).all()))

    def contact(self) -> None:
        x, y, z = self.rng.normal(0.0, 0.1, 3)
        contact = Contact(link="foot", offset=Point(x=x, y=y, z=z))
        request = srv.ConstrainedForwardDynamics.Request(state=self.state(), contacts=[contact])
        if answer := self.call(
            srv.ConstrainedForwardDynamics, "constrained_forward_dynamics", request
        ):
            self.count(bool(np.isfinite(answer.acceleration).all()))

    def trajectory(self) -> None:
        point = JointTrajectoryPoint(positions=Y, velocities=[0.0] * 4)
        request = srv.TrajectoryInverseDynamics.Request()
        request.trajectory.points = [point] * int(self.rng.integers(1, 200))
        if answer := self.call(
            srv.TrajectoryInverseDynamics, "trajectory_inverse_dynamics", request
        ):
            still = np.zeros(4)
            last = answer.trajectory.points[-1].effort
            self.agrees(last, lambda r: r.inverse_dynamics_efforts(Y, still, still)[0])

    def convert(self) -> None:
        request = srv.ConvertState.Request(position=Y)
        if answer := self.call(srv.ConvertState, "convert_state", request):
            self.agrees(answer.position, lambda r: r.close(Y))

    def describe(self) -> None:
        self.call(srv.DescribeModel, "describe_model", srv.DescribeModel.Request())

    def actuation(self) -> None:
        request = srv.DescribeActuation.Request(state=State(position=Y))
        self.call(srv.DescribeActuation, "describe_actuation", request)

    def load(self, on: bool) -> None:
        com = Vector3(x=LOAD.com[0], y=LOAD.com[1], z=LOAD.com[2])
        inertia = Inertia(m=LOAD.mass if on else 0.0, com=com)
        request = srv.SetPayload.Request(name="load", link=LOAD.link, inertia=inertia)
        self.call(srv.SetPayload, "set_payload", request)
        self.swaps += 1

    def sample(self, time_now: float) -> None:
        process = Path(f"/proc/{self.node.process.pid}")
        status = process.joinpath("status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        resident = int(fields["VmRSS"].split()[0]) / 1024
        descriptors = len(list(process.joinpath("fd").iterdir()))
        self.samples.append((time_now, resident, descriptors, int(fields["Threads"])))


def judge(soak: Soak, counts: dict[str, Any], code: int) -> list[Verdict]:
    """The verdict of the soak."""
    times, resident, descriptors, threads = (np.array(x) for x in zip(*soak.samples, strict=True))
    warm = times > WARM_UP * times[-1]
    tail = max(int(0.1 * warm.sum()), 1)

    def growth(values: np.ndarray) -> float:
        after = values[warm]
        return float(np.median(after[-tail:]) - np.median(after[:tail]))

    p50, p99, p999, worst = counts["latency_ms"]
    share = counts["unanswered"] / max(counts["sent"], 1)
    said = soak.node.log
    return [
        Verdict(
            "memory after warm-up",
            growth(resident) <= LARGEST_GROWTH,
            f"{growth(resident):+.1f} MB, {resident[-1]:.0f} MB in all",
        ),
        Verdict("descriptors", growth(descriptors) <= 0, f"{growth(descriptors):+.0f}"),
        Verdict("threads", growth(threads) <= 0, f"{growth(threads):+.0f}, {threads[-1]} in all"),
        Verdict(
            "efforts right", not counts["wrong"], f"{counts['answered']} answered, all checked"
        ),
        Verdict(
            "states answered",
            share <= MAX_UNANSWERED,
            f"{100 * (1 - share):.3f} % of {counts['sent']}",
        ),
        Verdict(
            "latency, sender to sender",
            True,
            f"median {p50} ms, 99 % {p99} ms, 99.9 % {p999} ms, largest {worst} ms",
        ),
        Verdict("answers right", not soak.wrong, f"{soak.wrong} wrong of {soak.asked}"),
        Verdict("requests refused", not soak.refused, f"{soak.refused}, beside {soak.swaps} swaps"),
        Verdict("no error in the log", "[ERROR]" not in said, f"{said.count('[ERROR]')}"),
        Verdict("end", code == 0, f"exit code {code}"),
    ]


def draw(soak: Soak) -> None:
    """Memory over time."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    times, resident, descriptors, threads = zip(*soak.samples, strict=True)
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    axes.plot(times, resident, color="tab:blue")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("resident memory [MB]", color="tab:blue")
    axes.set_ylim(bottom=0)
    counts = axes.twinx()
    counts.plot(times, descriptors, color="tab:orange", label="descriptors")
    counts.plot(times, threads, color="tab:green", label="threads")
    counts.set_ylim(bottom=0)
    counts.legend(loc="lower right")
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--write", action="store_true", help="keep table and picture in docs")
    asked = parser.parse_args()
    with own_domain() as domain, tempfile.TemporaryDirectory() as folder:
        graph = Graph(domain, Path(folder))
        soak = Soak(graph)
        soak.run(60.0 * asked.minutes)
        soak.driver.stop()
        counts = json.loads(soak.report.read_text())
        code = soak.node.stop()
        verdicts = judge(soak, counts, code)
        graph.close()
    if asked.write:
        draw(soak)
    conclude("soak", f"{asked.minutes:g} minutes, 1 kHz", verdicts, asked.write)


if __name__ == "__main__":
    main()

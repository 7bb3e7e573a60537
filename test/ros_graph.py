"""A ROS graph of real processes, on a domain that nothing else uses, and a client to talk to it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import rclpy
import yaml
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_services_default
from sensor_msgs.msg import JointState
from std_msgs.msg import String

import rbda_ros
from rbda_ros.node.slow_services import SERVICE_QOS

# [s]; nothing waits this long when all is well, and a loaded machine is slow.
PATIENCE = 60.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
PR_SET_PDEATHSIG = 1  # of linux/prctl.h
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@contextmanager
def own_domain() -> Iterator[int]:
    """A ROS_DOMAIN_ID that no other test on this machine uses, in whatever process."""
    domains = list(range(1, 102))  # above, ports collide with those of other programs
    random.shuffle(domains)
    for domain in domains:
        path = Path(tempfile.gettempdir()) / f"rbda_ros_test_domain_{domain}.lock"
        with suppress(OSError):  # another process has it, or another user
            file = path.open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                continue
            break
    else:
        raise RuntimeError("every ROS domain is in use")
    with file:
        yield domain


def _end_with_the_test() -> None:
    """Have the kernel end this process with the one that started it, however that ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A process of ours, and what it says.

    In a terminal of its own, what it has started is told of Ctrl-C too.
    """

    def __init__(
        self, command: Sequence[str], log: Path, environment: dict[str, str], terminal: bool
    ) -> None:
        self.log_file = log
        self._terminal = terminal
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=log.parent,
                start_new_session=terminal,
                preexec_fn=_end_with_the_test,
            )

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def resident(self, field: str = "VmRSS") -> float:
        """Memory that it takes, or has taken at most (VmHWM) [MB]."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith(f"{field}:"))
        return int(line.split()[1]) / 1024

    def wait(self) -> int:
        """The exit code."""
        return self.process.wait(PATIENCE)

    def stop(self, how: int = signal.SIGINT) -> int:
        """Ask it to end; the exit code."""
        if self._terminal:
            os.killpg(self.process.pid, how)
        else:
            self.process.send_signal(how)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


class Graph:
    """Programs and clients on one domain; ends them all."""

    alive: ClassVar[list[Graph]] = []  # for the logs of failed tests

    def __init__(self, domain: int, folder: Path) -> None:
        self.folder = folder
        self.programs: list[Program] = []
        self.clients: list[Client] = []
        self._domain = domain
        self._environment = {
            "ROS_DOMAIN_ID": str(domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(folder / "ros_log"),
            # The package that the test imports, be it installed or the source tree.
            "PYTHONPATH": str(Path(rbda_ros.__file__).parents[1]),
        }
        Graph.alive.append(self)

    def run(
        self,
        *arguments: str,
        module: str = "rbda_ros.cli",
        environment: Mapping[str, str | None] | None = None,
    ) -> Program:
        """Start `rbda_ros ...`, or another module; variables that are None are not there."""
        return self._start("-m", module, *arguments, environment=environment)

    def launch(self, file: Path, **arguments: str) -> Program:
        """Start a launch file, as `ros2 launch` does."""
        script = Path(__file__).with_name("launch_file.py")
        given = [f"{name}:={value}" for name, value in arguments.items()]
        return self._start(str(script), str(file), *given, terminal=True)

    def _start(
        self,
        *command: str,
        terminal: bool = False,
        environment: Mapping[str, str | None] | None = None,
    ) -> Program:
        log = self.folder / f"program_{len(self.programs)}.log"
        given = {**os.environ, **self._environment, **(environment or {})}
        merged = {name: value for name, value in given.items() if value is not None}
        self.programs.append(Program(command, log, merged, terminal))
        return self.programs[-1]

    def serve(
        self,
        *ros_args: str,
        environment: Mapping[str, str | None] | None = None,
        **parameters: Any,
    ) -> Program:
        """Start the node with parameters."""
        file = self.folder / f"parameters_{len(self.programs)}.yaml"
        if parameters:
            file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
            ros_args = ("--params-file", str(file), *ros_args)
        return self.run("serve", "--ros-args", *ros_args, environment=environment)

    def client(self, namespace: str = "") -> Client:
        """Someone who talks to the node of a namespace."""
        client = Client(self._domain, namespace)
        self.clients.append(client)
        return client

    def logs(self) -> str:
        return "\n".join(f"{p.process.args}\n{p.log}" for p in self.programs)

    def close(self) -> None:
        Graph.alive.remove(self)
        for client in self.clients:
            client.close()
        for program in self.programs:
            if program.running:
                program.stop()


class Client:
    """Calls services of `dynamics`, publishes to it and listens."""

    def __init__(self, domain: int, namespace: str = "") -> None:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self.domain = domain
        self._context = rclpy.Context()
        self._context.init(domain_id=domain)
        name = f"client_{time.monotonic_ns()}"  # logs of nodes with one name would get mixed up
        self.node = rclpy.create_node(name, namespace=namespace, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._services: dict[str, Any] = {}

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(min(left, 0.1))

    def until(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            self._executor.spin_once(0.05)

    def call(
        self,
        kind: Any,
        name: str,
        request: Any = None,
        deep: bool = False,
        again: float = PATIENCE / 2,
    ) -> Any:
        """Call a service of the node, e.g. `~/inverse_dynamics`, and wait for its answer.

        With ``deep`` at the first call, more answers may come than are taken at once. The
        middleware loses an answer now and then, so it is asked ``again`` after some seconds, as
        controllers should.
        """
        futures: list[Any] = []
        last = time.monotonic() + 1.5 * PATIENCE
        while time.monotonic() < last:
            futures.append(self.begin_call(kind, name, request, deep))
            end = time.monotonic() + again
            while time.monotonic() < end:
                self._executor.spin_once(0.05)
                for future in futures:
                    if future.done():
                        return future.result()
        raise AssertionError(f"{name} does not answer")

    def begin_call(self, kind: Any, name: str, request: Any = None, deep: bool = False) -> Any:
        """Call a service of the node; the answer is a future."""
        if name not in self._services:
            qos = SERVICE_QOS if deep else qos_profile_services_default
            address = name.replace("~", "dynamics")
            service = self.node.create_client(kind, address, qos_profile=qos)
            self.until(service.service_is_ready)
            # Ready says that we know the server, not that it knows where to send its answer;
            # it gives up on that after 0.1 s.
            self.spin(0.2)
            self._services[name] = service
        return self._services[name].call_async(request or kind.Request())

    def publisher(self, kind: Any, topic: str, qos: Any = 10) -> Any:
        """A publisher that the node knows of."""
        publisher = self.node.create_publisher(kind, topic.replace("~", "dynamics"), qos)
        self.until(lambda: publisher.get_subscription_count() > 0)
        return publisher

    def listen(self, kind: Any, topic: str) -> list[Any]:
        """A list that messages come into."""
        received: list[Any] = []
        self.node.create_subscription(kind, topic.replace("~", "dynamics"), received.append, 10)
        self.until(lambda: self.node.count_publishers(topic.replace("~", "dynamics")) > 0)
        return received

    def describe(self, urdf: str) -> Any:
        """Publish a description as robot_state_publisher does; keep the publisher alive."""
        publisher = self.node.create_publisher(String, "robot_description", LATCHED)
        publisher.publish(String(data=urdf))
        return publisher

    def joint_states(self, names: Any, position: Any, velocity: Any, age: float = 0.0) -> Any:
        """A JointState of now, or somewhat older [s]."""
        message = JointState(name=list(names))
        message.position, message.velocity = [*map(float, position)], [*map(float, velocity)]
        now = self.node.get_clock().now().nanoseconds - int(age * 1e9)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(now, 1_000_000_000)
        return message

    @property
    def state(self) -> str:
        # The first of all calls, which is lost most often; and it takes no time to answer.
        return self.call(GetState, "~/get_state", again=1.0).current_state.label

    def until_active(self) -> None:
        self.until(lambda: self.state == "active")

    def change_state(self, transition: int) -> bool:
        changing = self.begin_change_state(transition)
        self.until(changing.done)
        return changing.result().success

    def begin_change_state(self, transition: int) -> Any:
        request = ChangeState.Request(transition=Transition(id=transition))
        return self.begin_call(ChangeState, "~/change_state", request)

    def set_parameter(self, name: str, value: Any) -> Any:
        request = SetParameters.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg()]
        )
        return self.call(SetParameters, "~/set_parameters", request).results[0]

    def set_parameters(self, **values: Any) -> Any:
        """Set several, all or none."""
        request = SetParametersAtomically.Request(
            parameters=[Parameter(n, value=v).to_parameter_msg() for n, v in values.items()]
        )
        return self.call(SetParametersAtomically, "~/set_parameters_atomically", request).result

    def parameter(self, name: str) -> Any:
        """Its value, as a message."""
        request = GetParameters.Request(names=[name])
        return self.call(GetParameters, "~/get_parameters", request).values[0]

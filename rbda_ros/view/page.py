"""One page on one robot: what the panel asks for is computed here, in one thread, and drawn.

A browser lets any page open a WebSocket to any address, this machine's too, and says in the header
``Origin`` which page it was. viser looks at none, and offers no setting for it, so `own_pages_only`
puts a check before its own handler of requests while its server starts.
"""

from __future__ import annotations

import http
import inspect
import io
import ipaddress
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from rbda_ros.errors import ModelError
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view import hover, readouts
from rbda_ros.view.panel import Panel, Request
from rbda_ros.view.plotted import EffortHistory, inertia_ellipsoid, sweep
from rbda_ros.view.posing import Posed, Poser, assembly_yaml, branches
from rbda_ros.view.scene import Scene
from rbda_ros.view.shapes import shapes_of

if TYPE_CHECKING:
    from rbda_ros.view.following import Received

FRAME = 1.0 / 60.0
"""Least time between two pictures [s]: screens show no more, and browsers that get more lag."""
READABLE = 1.0 / 5.0
"""Least time between two sets of numbers [s], but where a loop turns red: nobody reads faster, and
any text or slider that changes is laid out and painted anew."""
RECORDED, RECORDED_FRAME = 8.0, 1.0 / 30.0
"""Length of an animation, and of one picture of it [s]."""
FARTHEST = 0.8
"""How far an animation moves a joint to either side [rad, m]."""
PATIENCE = 0.2
"""How long to wait for a request before looking whether to stop, and plotting [s]."""


class ViewError(ModelError):
    """The page cannot be shown; the message has the reason."""


class Page:
    """The robot in the browser. Made, run and closed by one thread.

    Args:
        source: path or text of its description, for visuals; None draws it from its inertias.
        poser: takes it where sliders want it; None for one that closes its loops.
        host: address to listen on; this machine alone unless told otherwise.
        port: to listen on, or the next that is free.
        moves: whether sliders move it; else it is shown where `follow` puts it.
        lines: notes for the panel, beside warnings of the model.
    """

    def __init__(
        self,
        robot: Robot,
        source: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
        moves: bool = True,
        poser: Poser | None = None,
        lines: Sequence[str] = (),
    ) -> None:
        try:
            import viser
        except ImportError as error:
            raise ViewError(
                "rbda_ros view: viser is not installed; pip install 'viser>=1.1,<2'"
            ) from error
        self._robot, self._poser = robot, poser or Poser(robot)
        shapes, collision, notes = shapes_of(robot, source)
        try:
            # Its banner has addresses that may not be ours.
            with redirect_stdout(io.StringIO()), own_pages_only(hover.add_script):
                self._server: Any = viser.ViserServer(host, port, robot.name, verbose=False)
        except OSError as error:
            raise ViewError(
                f"rbda_ros view: {host}:{port}: {error}; give another --port"
            ) from error
        self._server.gui.configure_theme(control_width="large", dark_mode=False)
        poser = self._poser
        self.panel = Panel(
            self._server,
            robot,
            poser.drives,
            {name: poser.values(name, poser.start) for name in poser.drives},
            moves,
            [*lines, *robot.warnings, *notes],
            materials=any(shape.colour is not None for shape in shapes),
        )
        poses = poser.body_poses(poser.start)
        self._scene = Scene(self._server, robot, shapes, collision, poses, poser.unclosed)
        self._scene.paint(self.panel.by_clusters)
        self._ray: hover.Ray | None = None
        self._name_until = 0.0
        self._scene.on_pointer(self._on_pointer)
        self._posed = poser.home
        self._plot_is_old = False
        self._next_frame = self._next_numbers = 0.0
        self._numbers_are_old = False
        self._red: frozenset[str] = frozenset()
        self._node: tuple[int, str, Mapping[str, str]] | None = None
        self._history = EffortHistory(robot)
        self._draw(poser.home)
        self.panel.show_branch(assembly_yaml(robot, poser.start))

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{self._server.get_host()}:{self._server.get_port()}"

    @property
    def posed(self) -> Posed:
        """The robot as it is shown."""
        return self._posed

    def run(self, stop: threading.Event) -> None:
        """Handle requests of the panel until a stop is requested."""
        while not stop.is_set():
            self.step(PATIENCE)

    def step(self, seconds: float) -> None:
        """Answer what is asked for within some time; where nothing is, draw the plot anew."""
        if self._numbers_are_old:
            seconds = min(seconds, max(self._next_numbers - time.monotonic(), 0.0))
        asked = self.panel.requests(seconds)
        if asked:
            time.sleep(max(self._next_frame - time.monotonic(), 0.0))
            asked += [each for each in self.panel.requests(0.0) if each not in asked]
            self._next_frame = max(self._next_frame + FRAME, time.monotonic())
        for request in asked:
            self._answer(request)
        if self._name_until and time.monotonic() > self._name_until:
            self._name_until = 0.0
            name = self._scene.show_name(None, self._poser.body_poses(self._posed.q))
            self.panel.show_name(name)
        if self._numbers_are_old and time.monotonic() >= self._next_numbers:
            self._show_numbers()
        elif not asked and self._plot_is_old:
            self._plot()

    def record(self) -> str:
        """A short animation as an HTML page of its own: each joint moves through its range.

        Positions at which a loop does not close are left out.
        """
        recorded = self._server.get_scene_serializer()
        poser = self._poser
        home = poser.values("joints", poser.start)
        sliders = poser.drives["joints"].sliders
        per_joint = max(round(RECORDED / RECORDED_FRAME / max(len(sliders), 1)), 8)
        allowed = len(poser.home.troubles)
        for slider in sliders:
            at = home[slider.name]
            reach = min(slider.upper - at, FARTHEST), min(at - slider.lower, FARTHEST)
            for swing in np.sin(2.0 * np.pi * np.arange(per_joint) / per_joint):
                step = swing * (reach[0] if swing > 0.0 else reach[1])
                posed = poser.move("joints", home | {slider.name: at + float(step)})
                if len(posed.troubles) <= allowed:
                    self._draw(posed)
                    recorded.insert_sleep(RECORDED_FRAME)
        self._jump(poser.start)
        return str(recorded.as_html())

    def close(self) -> None:
        """Free the port."""
        with redirect_stdout(io.StringIO()):
            self._server.stop()

    def _answer(self, request: Request) -> None:
        poser, panel = self._poser, self.panel
        if request == "pose":
            self._draw(poser.move(panel.drive, panel.values))
        elif request == "drive":
            panel.set_values(panel.drive, poser.values(panel.drive, poser.q))
            panel.show_drive()
            self._draw(poser.at(poser.q, panel.drive))
        elif request == "home":
            self._jump(self._poser.start)
        elif request == "branch":
            found = branches(self._robot, panel.linkage, poser.q)
            self._jump(found[1 % len(found)])
        elif request == "plot":
            self._plot()
        elif request == "colours":
            self._scene.paint(panel.by_clusters)
        elif request == "layers":
            self._scene.show_layers(panel.layers, poser.body_poses(self._posed.q))
        elif request == "search":
            panel.show_found()
        elif request == "name":
            self._name_until = time.monotonic() + hover.SHOWN
            panel.show_name(self._scene.show_name(self._ray, poser.body_poses(self._posed.q)))
        else:
            self._frames()

    def _on_pointer(self, ray: hover.Ray) -> None:
        """Remember where a pointer is; in a thread of viser."""
        self._ray = ray
        self.panel.ask("name")

    def _jump(self, q: Array) -> None:
        """Show another closed position (nq,), and put the sliders there."""
        self._poser.jump(q)
        self.panel.set_values(self.panel.drive, self._poser.values(self.panel.drive, q))
        self._draw(self._poser.at(q, self.panel.drive))
        self.panel.show_branch(assembly_yaml(self._robot, q))

    def _draw(self, posed: Posed) -> None:
        self._posed = posed
        poses = self._poser.body_poses(posed.q)
        red = frozenset(loop.cluster for loop in posed.troubles)
        turned, self._red = red != self._red, red
        self.panel.updates += 1
        with self._server.atomic():
            self._scene.draw(posed, poses)
            if self.panel.frames:
                self._frames()
            if turned or time.monotonic() >= self._next_numbers:
                self._show_numbers()
            else:
                self._numbers_are_old = True
        self._plot_is_old = True

    def _show_numbers(self) -> None:
        """Status, tables, and of a followed node the sliders and what it says of itself."""
        self._numbers_are_old = False
        self._next_numbers = time.monotonic() + READABLE
        with self._server.atomic():
            self.panel.show_numbers(self._posed)
            if self._node is not None:
                self.panel.set_values("joints", self._poser.values("joints", self._posed.q))
                self.panel.show_node(readouts.node(*self._node))
                if (motor := self.panel.watched) is not None:
                    self.panel.show_history(self._history.of(motor))

    def _frames(self) -> None:
        found = {
            link: inertia_ellipsoid(self._robot, self._posed.q, link) for link in self.panel.frames
        }
        self._scene.show_frames(found)
        self.panel.show_masses(found)

    def _plot(self) -> None:
        self._plot_is_old = False
        panel, poser = self.panel, self._poser
        name = panel.plotted
        if name is None:
            panel.show_sweep(None, 0.0)
            return
        found = sweep(poser, "joints", name, poser.q)
        panel.show_sweep(found, poser.values("joints", poser.q)[name])

    def follow(self, received: Received) -> None:
        """Show the robot at the position of a node, with its efforts and diagnostics."""
        poser = self._poser
        posed = poser.measured(received.positions, received.complete, received.base)
        names = self._robot.actuated_joint_names
        efforts = None
        if all(name in received.efforts for name in names):
            efforts = np.array([received.efforts[name] for name in names])
            self._history.add(time.monotonic(), posed.q, received.velocities, efforts)
        posed = replace(posed, efforts=efforts)
        self._node = received.level, received.message, received.values
        self._draw(posed)


_starting = threading.Lock()  # `serve` is replaced for all threads


class UncheckedServerError(ModelError):
    """The server does not start where it did: nothing would check who connects."""


def is_own_page(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from the page itself, or from no browser at all.

    The host that was asked for must be an address or a name of this machine: a name of somebody
    else's that was made to lead here (DNS rebinding) is not. An ``Origin``, where the request has
    one, must be the same host and port.
    """
    host = headers.get("Host", "")
    if not _is_this_machine(_name(f"http://{host}")):
        return False
    origin = headers.get("Origin")
    if origin is None:
        return True
    return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_this_machine(name: str) -> bool:
    """Whether a name is one of this machine's, or an address."""
    own = socket.gethostname().lower()
    if name in ("localhost", own, f"{own}.local", socket.getfqdn().lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@contextmanager
def own_pages_only(edit: Callable[[Any], Any] = lambda response: response) -> Iterator[None]:
    """Have the WebSocket server that is started meanwhile reject everything else.

    Args:
        edit: changes each response before it is sent, such as the page itself.

    Raises:
        UncheckedServerError: none was started by ``websockets.asyncio.server.serve``.
    """
    from websockets.asyncio import server

    with _starting:
        serve, started = server.serve, []

        def checked(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
            started.append(True)
            check = _checked(process_request, edit)
            return serve(*arguments, process_request=check, **options)

        server.serve = checked  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            server.serve = serve  # type: ignore[misc]
        if not started:
            raise UncheckedServerError(
                "rbda_ros view: this viser does not start its server by websockets, so that other"
                " web sites could connect; install the viser of requirements.lock"
            )


def _checked(
    handle: Callable[[Any, Any], Any] | None, edit: Callable[[Any], Any]
) -> Callable[[Any, Any], Any]:
    async def process_request(connection: Any, request: Any) -> Any:
        if not is_own_page(request.headers):
            return connection.respond(http.HTTPStatus.FORBIDDEN, "open the page itself\n")
        answer: Any = None if handle is None else handle(connection, request)
        answer = (await answer) if inspect.isawaitable(answer) else answer
        return None if answer is None else edit(answer)

    return process_request

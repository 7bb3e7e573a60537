"""`rbda_ros view`: the robot in the browser, moved by sliders or by the joint states of a node."""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path
from typing import Any

from rbda_ros.cli.robot_arguments import add_robot_arguments, load
from rbda_ros.errors import ModelError
from rbda_ros.node.stop_signals import StopSignals
from rbda_ros.view.page import Page, ViewError

NODE_PERIOD = 1.0 / 60.0
"""Least time between two pictures of a running node [s]."""


def add_parser(subparsers: Any) -> None:
    """Add the command ``view`` to a parser of commands."""
    parser = subparsers.add_parser(
        "view",
        help="show the robot in the browser, with its loops",
        description="Show a robot in the browser. Sliders move it while its loops close live; the "
        "page explains loops that do not close. Nothing is loaded from the internet.",
    )
    add_robot_arguments(parser, optional=True)
    parser.add_argument("--node", metavar="NAME", help="follow a running node, e.g. /dynamics")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: this machine only)"
    )
    parser.add_argument(
        "--port", type=int, default=8080, help="port, or the next free one (default: %(default)s)"
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write an HTML page with a short animation of all joints, and end",
    )


def run(args: argparse.Namespace) -> int:
    """Show the page until Ctrl-C; returns the exit code."""
    stop = threading.Event()
    # They end it at once: there is nothing to save, and a server takes seconds to stop.
    StopSignals()
    try:
        if args.node is not None:
            return _follow(args, stop)
        if args.robot is None:
            raise ViewError("rbda_ros view: which robot? give its file, or --node /dynamics")
        page = _page(args)
    except ModelError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        if args.record is not None:
            args.record.write_text(page.record(), encoding="utf-8")
            print(f"{args.record}: open it in a browser", flush=True)
        else:
            _tell(page)
            page.run(stop)
    except OSError as error:
        print(f"rbda_ros view: {args.record}: {error.strerror}", file=sys.stderr)
        return 1
    finally:
        page.close()
    return 0


def _page(args: argparse.Namespace) -> Page:
    """The page of a robot; one whose loops do not close is shown where the gaps are smallest."""
    try:
        return Page(load(args), args.robot, args.host, args.port)
    except ViewError:
        raise
    except ModelError as error:
        from rbda_ros.view.posing import open_robot

        try:
            poser = open_robot(args.robot, args.loops, args.floating_base)
        except ModelError:
            raise error from None
        print(f"{error}\nThe page shows the best pose that was found.", file=sys.stderr)
        lines = str(error).splitlines()
        return Page(poser.robot, args.robot, args.host, args.port, poser=poser, lines=lines)


def _follow(args: argparse.Namespace, stop: threading.Event) -> int:
    from rbda_ros.view.following import Follower

    with Follower(args.node) as follower:
        described = follower.description(stop, args.robot, args.loops, args.floating_base)
        if described is None:
            return 0
        page = Page(described.robot, described.source, args.host, args.port, moves=False)
        try:
            _tell(page)
            while not stop.is_set():
                received = follower.next(NODE_PERIOD)
                if received is not None:
                    page.follow(received)
                page.step(0.0)
        finally:
            page.close()
    return 0


def _tell(page: Page) -> None:
    print(f"{page.url} (Ctrl-C ends it)", flush=True)

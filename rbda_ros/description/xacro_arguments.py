"""The option ``--xacro NAME:=VALUE`` of every program that takes a robot's file."""

from __future__ import annotations

import argparse


def add_xacro_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option; the parsed value is a list of pairs (name, value), or None."""
    parser.add_argument(
        "--xacro",
        type=_xacro_argument,
        action="append",
        metavar="NAME:=VALUE",
        help="an argument of a xacro file; may be given several times",
    )


def _xacro_argument(text: str) -> tuple[str, str]:
    name, found, value = text.partition(":=")
    if not found or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is no argument of xacro; write NAME:=VALUE")
    return name, value

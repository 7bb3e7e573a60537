"""docs/recordings.md has every option of the commands that it is about."""

import argparse
import re
from pathlib import Path

import pytest

from rbda_ros.cli import excite, identify, label

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recordings.md"
TITLES = {label: "Labels", excite: "A motion for identification", identify: "Identification"}


@pytest.mark.parametrize("command", TITLES, ids=lambda command: command.__name__.rpartition(".")[2])
def test_every_option_is_told_of(command):
    subparsers = argparse.ArgumentParser().add_subparsers()
    command.add_parser(subparsers)
    (parser,) = subparsers.choices.values()
    section = re.search(rf"## {TITLES[command]}\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)[1]
    rows = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    for action in parser._actions:
        for option in action.option_strings:
            assert option in ("-h", "--help") or f"`{option}`" in rows, option

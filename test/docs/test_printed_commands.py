"""Every printed command runs: blocks marked `sh`, and what the `text` block after one shows.

Blocks marked `sh` run as they stand, page by page, in a folder that looks like the top of a clone
with a `robot.urdf` and a `loops.yaml`. Blocks marked `console` need an installed ROS, unmarked ones
something of the reader's own. In these, our commands and their options must exist.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from printed_commands import blocks, script
from ros_graph import own_domain

from rbda_ros.cli import commands
from rbda_ros.node.robot_file import _parser as serve_parser
from rbda_ros.node.simulated_robot import _parser as simulate_parser

PAGES = [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]
QUICK = ("README.md", "docs/clusters.md")  # the others wait for processes, or compute for long


def with_commands():
    for page in PAGES:
        if any(language == "sh" for language, _ in blocks(page)):
            marks = [pytest.mark.nightly] if page.as_posix() not in QUICK else []
            yield pytest.param(page, marks=marks, id=page.as_posix())


@pytest.mark.parametrize("page", [*with_commands()])
def test_commands_run_as_printed(page, tmp_path):
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for name in ("docs", "config", "tools", "benchmark"):
        (tmp_path / name).symlink_to(Path(name).resolve())
    shutil.copy("docs/cookbook/parallel_ankle.urdf", tmp_path / "robot.urdf")
    shutil.copy("docs/cookbook/parallel_ankle.yaml", tmp_path / "loops.yaml")
    with own_domain() as domain:
        done = subprocess.run(
            ["bash", "-c", script(page)],
            cwd=tmp_path,
            env=os.environ
            | {
                "ROS_DOMAIN_ID": str(domain),
                "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
                "PYTHONPATH": os.getcwd(),
            },
            capture_output=True,
            text=True,
            timeout=400,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = _without_padding(done.stdout)
    for (language, _), (after, text) in zip(blocks(page), blocks(page)[1:], strict=False):
        if (language, after) == ("sh", "text"):
            for line in text.splitlines():
                assert line == "..." or _without_padding(line) in shown, done.stdout + done.stderr


def _without_padding(text):
    return re.sub(r" +", " ", text)


def our_parsers():
    (subparsers,) = commands._parser()._subparsers._group_actions
    return {**subparsers.choices, "serve": serve_parser(), "simulate": simulate_parser()}


def our_commands():
    """Page and words of every command of ours, in blocks of any mark and in the text."""
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        for line in re.findall(r"(?<![\w/.])(?:\.venv/bin/)?rbda_ros ([a-z][^\n`]*)", text):
            words = re.split(r" (?:#|&|>|--ros-args)", line)[0].split()
            if words[0] in our_parsers():
                yield pytest.param(page, words, id=f"{page.name}: {' '.join(words)[:50]}")


@pytest.mark.parametrize(("page", "words"), sorted(our_commands(), key=lambda case: case.id))
def test_our_commands_have_these_options(page, words):
    parser = our_parsers()[words[0]]
    options = {option for action in parser._actions for option in action.option_strings}
    for word in words[1:]:
        if re.match(r"--?[a-z]", word):
            assert word.partition("=")[0].rstrip(",.;:)") in options, f"{page}: {words}"

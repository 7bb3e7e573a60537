"""The tutorial, typed as it stands: every command but those that need a person or a network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ros_graph import own_domain

PAGE = Path("docs/fifteen_minutes.md").read_text()
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = ("make install", "rbda_ros view")  # done, and tested in a browser


def script():
    """The commands as one script; `set -m`, as in a terminal, so that jobs have numbers."""
    commands = ["set -m"]
    for language, text in BLOCK.findall(PAGE):
        if language == "sh" and not any(part in text for part in LEFT_OUT):
            commands.append(text)
    return "\n".join(commands)


@pytest.mark.nightly
def test_the_tutorial_ends_with_torques_on_the_screen(tmp_path):
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "docs").symlink_to(Path("docs").resolve())
    with own_domain() as domain:
        environment = os.environ | {
            "ROS_DOMAIN_ID": str(domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        }
        done = subprocess.run(
            ["bash", "-c", script()],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
        )
    shown = done.stdout
    assert done.returncode == 0, shown + done.stderr
    for language, text in BLOCK.findall(PAGE):
        if language == "text":
            for line in text.splitlines():
                assert line in shown, shown + done.stderr
    efforts = re.findall(r"left_motor ([+-][\d.]+) N m, right_motor ([+-][\d.]+) N m", shown)
    assert len(efforts) == 3
    assert all(0.0 < abs(float(value)) < 1.0 for line in efforts for value in line)

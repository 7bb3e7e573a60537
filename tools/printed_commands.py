"""The commands that a page prints, as a script: for the tests, and for trying wheels."""

import re
from pathlib import Path

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DONE_ALREADY = ("make ", "git clone")  # by whoever runs these commands
UNTIL_CTRL_C = re.compile(
    r"^\.venv/bin/(?:rbda_ros (?:view|serve)|python -m \S+\.computed_torque)\b[^&\n]*$",
    re.MULTILINE,
)


def blocks(page: Path):
    """Language and text of each block of a page, in order."""
    return BLOCK.findall(page.read_text())


def script(page: Path, without=()):
    """The `sh` blocks of a page; as in a terminal jobs have numbers, and somebody presses Ctrl-C.

    Args:
        page: the page.
        without: words; blocks that have one of them are left out.
    """
    lines = ["set -em"]
    for language, text in blocks(page):
        if language == "sh" and not any(word in text for word in without):
            kept = [line for line in text.splitlines() if not line.startswith(DONE_ALREADY)]
            commands = "\n".join(kept)
            lines.append(UNTIL_CTRL_C.sub(r"timeout --preserve-status -s INT 10 \g<0>", commands))
    return "\n".join(lines)

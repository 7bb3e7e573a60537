"""The mathematics page: every step of it that is Python is run, in the order of the page."""

import re
from pathlib import Path

PAGE = Path("docs/mathematics.md").read_text()
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_step_holds():
    steps = BLOCK.findall(PAGE)
    assert len(steps) >= 8 and all("assert" in step for step in steps)
    names = {}
    for number, step in enumerate(steps, start=1):
        exec(compile(step, f"mathematics.md, step {number}", "exec"), names)

"""Python on the pages runs, block after block of a page, from the top of the repository."""

import re
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Fragments of a larger program of the reader's; the cookbook's run in their own folder and test.
FRAGMENTS = ("contacts.md", "examples.md", "fleet.md", "mathematics.md")
PAGES = [
    page
    for page in sorted(Path("docs").glob("*.md"))
    if BLOCK.search(page.read_text()) and page.name not in FRAGMENTS
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs(page):
    names = {}
    for number, block in enumerate(BLOCK.findall(page.read_text()), start=1):
        exec(compile(block, f"{page}, block {number}", "exec"), names)

"""Every snippet of the cookbook is run: loop files, Python, and what goes wrong."""

import itertools
import re
from pathlib import Path

import pytest
import yaml

from rbda_ros import ModelError, load_robot
from rbda_ros.cli.inspection import is_current

BOOK = Path("docs/cookbook")
PAGES = sorted(path.stem for path in BOOK.glob("*.urdf"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(name):
    """Language and text of each block of a page, in order."""
    return BLOCK.findall((BOOK / f"{name}.md").read_text())


def test_the_index_has_every_page():
    index = (BOOK / "index.md").read_text().splitlines()
    assert {page for page in PAGES if page in index} == set(PAGES)
    assert len(PAGES) == 9


@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_its_files_and_they_load_without_a_warning(name):
    robot = load_robot(BOOK / f"{name}.urdf", BOOK / f"{name}.yaml")
    assert not robot.warnings
    language, text = blocks(name)[0]
    assert language == "yaml" and text == (BOOK / f"{name}.yaml").read_text()
    drawing = (BOOK / f"{name}.svg").read_text()
    assert is_current(drawing, robot), "make screenshots draws it anew"
    assert (BOOK / f"{name}.webp").stat().st_size < 60_000


@pytest.mark.parametrize("name", PAGES)
def test_what_comes_out_comes_out(name, monkeypatch):
    monkeypatch.chdir(BOOK)
    found = BLOCK.findall(Path(f"{name}.md").read_text())
    (text,) = (text for language, text in found if language == "python")
    assert "assert" in text
    exec(compile(text, f"{name}.md", "exec"), {})


def wrongs():
    for name in PAGES:
        found = blocks(name)[1:]
        for (language, text), (after, message) in itertools.pairwise(found):
            if (language, after) == ("yaml", "text"):
                yield pytest.param(name, text, message, id=f"{name}-{message[:30]}")


@pytest.mark.parametrize(("name", "text", "message"), [*wrongs()])
def test_what_goes_wrong_is_said_in_these_words(name, text, message):
    loops = yaml.safe_load((BOOK / f"{name}.yaml").read_text()) | yaml.safe_load(text)
    with pytest.raises(ModelError) as error:
        load_robot(BOOK / f"{name}.urdf", loops)
    assert message.strip() in str(error.value)

"""README and pages: links lead somewhere, snippets run, every service is named."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import site_links
import site_parts

from rbda_ros import load_robot

PAGES = [Path("README.md"), Path("CONTRIBUTING.md"), *sorted(Path("docs").rglob("*.md"))]
LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
GENERATED = ("api", "errors", "interfaces", "parameters")


def anchors(path):
    """Anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page):
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, place = link.partition("#")
        target = (page.parent / path).resolve() if path else page.resolve()
        generated = target.parent.name == "reference" and target.stem in GENERATED
        assert target.exists() or generated, link
        if place and target.suffix == ".md" and target.exists():
            assert place in anchors(target), link


def test_every_page_is_in_the_contents():
    listed = Path("docs/index.md").read_text() + Path("docs/cookbook/index.md").read_text()
    for page in Path("docs").rglob("*.md"):
        name = page.relative_to("docs").with_suffix("").as_posix()
        assert name in ("index", *listed.split()) or page.stem in listed.split(), name


@pytest.mark.parametrize("page", ["README.md", "docs/node.md"])
def test_every_service_is_named(page):
    text = Path(page).read_text()
    for path in Path("srv").glob("*.srv"):
        if path.stem == "SetSpeed":  # of the simulated robot
            continue
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", path.stem).lower()
        assert f"`~/{name}`" in text, name


def test_dead_links_of_a_site_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html">no</a><a href="#here">yes</a><a href="#there">no</a>'
        '<img src="https://example.com/x.png"><a href="https://example.com">elsewhere</a>'
    )
    assert len(site_links.dead_links(tmp_path)) == 3


def test_the_site_builds_without_a_warning_and_without_a_dead_link(tmp_path):
    pytest.importorskip("sphinx", reason="the extra 'docs' is not installed")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    assert not site_links.dead_links(tmp_path)
    reference = (tmp_path / "reference" / "api.html").read_text()
    assert "ArrayLike" in reference
    for word in ("TypeAliasForwardRef", "_SupportsArray", "_NestedSequence"):
        assert word not in reference


def test_the_index_of_a_dotted_symbol_stands_beside_it():
    text = site_parts._mathml(r"S_i \dot q_i + \sum_k \ddot y_k", display=True)
    assert text.count("<msub>") == 3 and text.count("<mover") == 2
    assert text.count("munder") == 2  # of the sum


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_no_page_is_about_folders_that_readers_do_not_have(page):
    assert "../shared" not in page.read_text()


def test_the_page_for_pinocchio_users_names_what_there_is():
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed: pip install pin")
    page = Path("docs/from_pinocchio.md").read_text()
    ours, theirs = (
        set(re.findall(rf"\b{name}\.([a-zA-Z_0-9]+)", page)) for name in ("robot", "pin")
    )
    assert len(ours) > 40 and len(theirs) > 30
    robot = load_robot("config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml")
    assert [name for name in sorted(ours) if not hasattr(robot, name)] == []
    missing = {name for name in theirs if not hasattr(pin, name)}
    assert missing <= {"buildModelFromSdf"}  # which its wheel lacks


def test_the_page_for_pinocchio_users_names_all_functions():
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed: pip install pin")
    if not pin.__version__.startswith("4.1."):
        pytest.skip(f"the page is about Pinocchio 4.1, this is {pin.__version__}")
    page = Path("docs/from_pinocchio.md").read_text()
    functions = [name for name in dir(pin) if inspect.isroutine(getattr(pin, name))]
    assert len(functions) > 150
    assert [name for name in functions if not re.search(rf"\bpin\.{name}\b", page)] == []

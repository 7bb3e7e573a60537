"""docs/papers.md is what its numbers say, and its numbers are those of this code."""

import pytest

from benchmark.papers.data import PAGE, read_rows
from benchmark.papers.report import MODULES, claims_of, module_of, page
from benchmark.papers.results import differences

AGAIN = "run `python -m benchmark.papers --counts`, and read the page again before it is committed"


def test_page_is_made_from_its_numbers():
    assert PAGE.read_text() == page(), "run `python -m benchmark.papers --page`"


@pytest.mark.parametrize("figure", MODULES)
def test_no_claim_flips(figure):
    assert [f"{c.says}: {c.verdict}" for c in claims_of(figure) if c.flipped] == []


@pytest.mark.parametrize("figure", MODULES)
def test_some_counts_are_those_of_the_page(figure):
    module = module_of(figure)
    rows = module.run("day")
    assert differences(module, read_rows(figure), rows) == [], AGAIN
    if rows and all(claim.checked == "day" for claim in claims_of(figure)):
        assert [c.says for c in module.claims(rows) if c.flipped] == []


@pytest.mark.nightly
@pytest.mark.timeout(1800)  # a busy machine takes long
@pytest.mark.parametrize("figure", MODULES)
def test_all_counts_are_those_of_the_page(figure):
    module = module_of(figure)
    rows = module.run("night")
    if module.COUNTS:
        assert differences(module, read_rows(figure), rows) == [], AGAIN
    assert [c.says for c in (module.claims(rows) if rows else []) if c.flipped] == []

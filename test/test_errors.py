"""Messages stay readable whatever names a client sends."""

from rbda_ros.errors import LONGEST_NAME, MAX_LISTED, listed


def test_names_are_listed_as_they_are():
    assert listed(["hip", "knee"]) == "hip, knee"
    assert listed([]) == ""


def test_many_and_long_names_are_cut():
    said = listed([f"joint_{k}" for k in range(MAX_LISTED + 7)])
    assert said.endswith("and 7 more")
    assert len(listed(["x" * 1_000_000])) <= LONGEST_NAME + 3


def test_no_name_makes_a_line_of_its_own():
    assert len(listed(["knee\n[ERROR] forged"]).splitlines()) == 1

"""``rbda_ros excite``: a motion in a file."""

import csv

from bag_maker import LEG, LOOPS

from rbda_ros.cli.commands import main

MODEL = ["--robot", str(LEG), "--loops", str(LOOPS)]


def test_writes_a_motion_and_says_what_it_tells(tmp_path, capsys):
    file = tmp_path / "motion.csv"
    given = ["--seconds", "4", "--rate", "40", "--tries", "2", "-o", str(file)]
    assert main(["excite", *MODEL, *given]) == 0
    assert "knee.damping" in capsys.readouterr().out
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 161 and float(rows[-1]["time"]) == 4.0
    assert float(rows[0]["velocity.knee"]) == 0.0


def test_says_what_is_wrong(tmp_path, capsys):
    assert main(["excite", *MODEL, "--seconds", "0", "-o", str(tmp_path / "x")]) == 1
    assert "give at least" in capsys.readouterr().err

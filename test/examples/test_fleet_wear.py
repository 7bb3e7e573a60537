"""A small fleet, simulated, labelled, and judged by its residuals."""

import numpy as np

from rbda_ros.examples import fleet_wear


def test_finds_the_worn_legs_and_how_worn_they_are(tmp_path, capsys):
    findings = fleet_wear.main(tmp_path, legs=6, months=2, seconds=2.0, workers=1)
    causes = {finding.leg: (finding.motor, finding.cause) for finding in findings}
    assert causes == {
        "leg_1": ("knee_rotor", "Coulomb friction"),
        "leg_2": ("ankle_pulley_rotor", "viscous friction"),
        "leg_3": ("hip_flexion_rotor", "load"),
    }
    bearing, belt, _ = (finding.months[1] - finding.months[0] for finding in findings)
    np.testing.assert_allclose(bearing, 0.7 / 12, rtol=0.2)  # behind a gear of 12
    table = fleet_wear.read_table(tmp_path / "labelled" / "leg_2" / "month_01.parquet")
    speed = np.sqrt((table["velocity.ankle_pulley_rotor"] ** 2).mean())
    np.testing.assert_allclose(belt, 0.4 * speed / 8**2, rtol=0.2)
    printed = capsys.readouterr().out
    assert "nothing in 3 of 6 legs" in printed
    assert (tmp_path / "fleet_wear.svg").read_text().count("<svg") == 1

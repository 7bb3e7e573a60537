"""Wear in a fleet of robots, found in the residuals of recorded efforts.

    python -m rbda_ros.examples.fleet_wear --output build/fleet

The idea: nobody looks at months of recordings, but `rbda_ros label` does. A fleet of demo legs is
simulated, month after month: in one the knee's bearing wears, in one the belt of the ankle, one
carries a load that nobody told of. Labels of the recordings, by the nominal model, have residuals;
what grows in them, and with what it goes, says which motor of which leg, and why.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros import Payload, Robot, load_robot
from rbda_ros.control.settings import Settings
from rbda_ros.demo.resources import share_file
from rbda_ros.recordings.bags import JOINT_STATE, require, typestore
from rbda_ros.recordings.fleet import label_all
from rbda_ros.recordings.label_file import Model, Options
from rbda_ros.spatial import Array

RATE = 200  # recorded joint states a second
STEP = 5e-4  # of the simulation [s]
START = 1_750_000_000_000_000_000  # [ns]
MONTH = 30 * 86400 * 10**9  # [ns]
NOISE = 0.01  # of measured efforts [N m]
GROWN = 5.0  # times the spread of the fleet, that a change counts from
SETTINGS = Settings(acceleration_source="estimate", acceleration_cutoff=50.0)


@dataclass(frozen=True)
class Leg:
    """True values of one leg in one month, beyond the model.

    Attributes:
        bearing: Coulomb friction of the knee [N m].
        belt: damping of the ankle's pulley [N m s/rad].
        load: carried by the foot [kg].
    """

    bearing: float = 0.05
    belt: float = 0.01
    load: float = 0.0


@dataclass(frozen=True)
class Finding:
    """Growth of a leg's values since the first month.

    Attributes:
        leg, motor: where.
        cause: "Coulomb friction", "viscous friction" or "load".
        months: of each month, the size of it: an effort of the motor [N m].
    """

    leg: str
    motor: str
    cause: str
    months: tuple[float, ...]


@lru_cache
def robot_of(leg: Leg) -> Robot:
    """The robot of a leg with its true values, for simulation."""
    urdf, loops = _model_texts()
    wear = {
        "knee": f'damping="0.02" friction="{leg.bearing}"',
        "ankle_pulley": f'damping="{leg.belt}" friction="0.0"',
    }
    for joint, numbers in wear.items():
        opening = f'<joint name="{joint}" type="revolute">'
        urdf = urdf.replace(opening, f"{opening}<dynamics {numbers}/>")
    robot = load_robot(urdf, loops)
    if leg.load:
        robot = robot.with_payloads({"load": Payload("foot", leg.load, (0.0, 0.0, -0.05))})
    for name in ("forward_dynamics", "friction_force", "inverse_dynamics", "actuator_efforts"):
        robot.kernel(name).compile()
    return robot


def fleet(legs: int, months: int) -> dict[str, list[Leg]]:
    """The legs of a fleet in each month; three of them change."""
    fates = {f"leg_{k + 1}": [Leg()] * months for k in range(legs)}
    for month in range(months):
        share = month / (months - 1)
        fates["leg_1"] = [*fates["leg_1"][:month], Leg(bearing=0.05 + 0.7 * share**2)]
        fates["leg_2"] = [*fates["leg_2"][:month], Leg(belt=0.01 + 0.4 * share)]
        fates["leg_3"] = [*fates["leg_3"][:month], Leg(load=0.6 if share > 0.5 else 0.0)]
    return fates


def simulate(leg: Leg, seconds: float, rng: np.random.Generator) -> Iterator[tuple[Array, ...]]:
    """Follow a reference: q, qd and the efforts of the motors, as often as they are recorded."""
    robot, nominal = robot_of(leg), robot_of(Leg())
    middle, swing = np.array([0.0, 0.3, 0.9, 0.0]), np.array([0.2, 0.4, 0.4, 0.25])
    pace = 2 * np.pi * (0.5 + 0.2 * rng.permutation(4))
    y, yd = middle.copy(), swing * pace
    q = robot.close(y)
    for k in range(round(seconds / STEP)):
        angle = pace * k * STEP
        wanted, rate = middle + swing * np.sin(angle), swing * pace * np.cos(angle)
        acceleration = -swing * pace**2 * np.sin(angle)
        acceleration += 400.0 * (wanted - y) + 40.0 * (rate - yd)
        tau = nominal.inverse_dynamics(q, yd, acceleration)
        if not k % round(1 / RATE / STEP):
            efforts = robot.actuator_efforts(q, tau)
            yield q, robot.spanning_velocity(q, yd), efforts + NOISE * rng.normal(size=4)
        yd = yd + STEP * robot.forward_dynamics(q, yd, tau, friction=True)
        y = y + STEP * yd
        q = robot.close(y, q)


def record(folder: Path, fates: dict[str, list[Leg]], seconds: float) -> None:
    """A bag of each leg and month: joint states with efforts of the motors."""
    require("rosbags", "recordings")
    from rosbags.rosbag2 import StoragePlugin, Writer

    store, nominal = typestore(), robot_of(Leg())
    motors = [nominal.joint_names.index(name) for name in nominal.actuated_joint_names]
    stamp_of = store.types["builtin_interfaces/msg/Time"]
    header_of, states_of = (store.types[k] for k in ("std_msgs/msg/Header", JOINT_STATE))
    for number, (name, months) in enumerate(fates.items()):
        for month, leg in enumerate(months):
            rng = np.random.default_rng([number, month])
            path = folder / name / f"month_{month:02d}"
            path.parent.mkdir(parents=True, exist_ok=True)
            with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
                topic = writer.add_connection("/joint_states", JOINT_STATE, typestore=store)
                for k, (q, qd, efforts) in enumerate(simulate(leg, seconds, rng)):
                    time = START + month * MONTH + k * 10**9 // RATE
                    spanning = np.zeros(len(q))
                    spanning[motors] = efforts
                    header = header_of(stamp_of(*divmod(time, 10**9)), "")
                    names = list(nominal.joint_names)
                    message = states_of(header, names, np.array(q), np.array(qd), spanning)
                    writer.write(topic, time, store.serialize_cdr(message, JOINT_STATE))


def label(bags: Path, labelled: Path, workers: int) -> None:
    """The same as `rbda_ros label bags -o labelled --robot ... --cutoff 10 --parquet`."""
    options = Options(cutoff=10.0, parquet=True)
    reports = label_all(
        [str(bags)], str(labelled), Model(*_model_texts()), SETTINGS, options, workers=workers
    )
    failed = [report for report in reports if report.status == "failed"]
    assert not failed, failed


def causes(table: dict[str, Array], motor: str) -> dict[str, float]:
    """Parts of a motor's residual by cause: root-mean-square efforts [N m]."""
    residual, velocity = table[f"residual.{motor}"], table[f"velocity.{motor}"]
    columns = {
        "Coulomb friction": np.sign(velocity) * (np.abs(velocity) > 0.2),
        "viscous friction": velocity,
    }
    A = np.column_stack([*columns.values(), np.ones_like(velocity)])
    solved = np.linalg.lstsq(A, residual, rcond=None)[0]
    sizes = {
        name: float(solved[k] * np.sqrt((column**2).mean()))
        for k, (name, column) in enumerate(columns.items())
    }
    rest = residual - A[:, :2] @ solved[:2]
    return sizes | {"load": float(np.sqrt((rest**2).mean()))}


def find(labelled: Path, fates: dict[str, list[Leg]]) -> list[Finding]:
    """Values that have grown by more than the usual variation within the fleet."""
    motors = robot_of(Leg()).actuated_joint_names
    trends: dict[tuple[str, str], dict[str, Array]] = {}
    for leg, months in fates.items():
        tables = [read_table(labelled / leg / f"month_{k:02d}.parquet") for k in range(len(months))]
        for motor in motors:
            sizes = [causes(table, motor) for table in tables]
            trends[leg, motor] = {c: np.array([size[c] for size in sizes]) for c in sizes[0]}
    findings = []
    for motor in motors:
        for cause in ("Coulomb friction", "viscous friction", "load"):
            growth = {leg: trends[leg, motor][cause] for leg in fates}
            changes = np.array([trend[-1] - trend[0] for trend in growth.values()])
            usual = np.median(np.abs(changes - np.median(changes))) + 0.2 * NOISE
            for leg, trend in growth.items():
                if trend[-1] - trend[0] > np.median(changes) + GROWN * usual:
                    findings.append(Finding(leg, motor, cause, tuple(trend.tolist())))
    return _worst(findings)


def _worst(findings: list[Finding]) -> list[Finding]:
    """Of each leg the one that has grown the most: a load, or wear, shows in other motors too."""
    worst: dict[str, Finding] = {}
    for finding in findings:
        known = worst.get(finding.leg)
        if known is None or _growth(finding) > _growth(known):
            worst[finding.leg] = finding
    return sorted(worst.values(), key=lambda finding: finding.leg)


def _growth(finding: Finding) -> float:
    return finding.months[-1] - finding.months[0]


def read_table(path: Path) -> dict[str, Array]:
    """The columns of a Parquet file of labels, without the samples that lack a number."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    known = np.all([np.isfinite(c) for n, c in columns.items() if "external" not in n], axis=0)
    return {name: column[known] for name, column in columns.items()}


def draw(labelled: Path, fates: dict[str, list[Leg]], findings: list[Finding], file: Path) -> None:
    """Draw the residuals over the months, and those of the worn legs by their cause."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    axes: Any = figure.subplots(1, 1 + len(findings))
    motors = robot_of(Leg()).actuated_joint_names
    found = {finding.leg: f"C{k}" for k, finding in enumerate(findings)}
    for leg, months in fates.items():
        tables = [read_table(labelled / leg / f"month_{k:02d}.parquet") for k in range(len(months))]
        sizes = [
            max(np.sqrt((table[f"residual.{motor}"] ** 2).mean()) for motor in motors)
            for table in tables
        ]
        label = leg if leg in found else None
        axes[0].plot(sizes, "o-", color=found.get(leg, "0.8"), label=label)
        for k, finding in enumerate(findings):
            if finding.leg == leg:
                for name, table in (("last month", tables[-1]), ("first month", tables[0])):
                    v, r = (table[f"{x}.{finding.motor}"][::4] for x in ("velocity", "residual"))
                    color = found[leg] if name == "last month" else "0.6"
                    axes[1 + k].plot(v, r, ".", color=color, markersize=2, label=name)
                axes[1 + k].set_title(f"{leg}, {finding.motor}:\n{finding.cause}", fontsize=10)
                axes[1 + k].set_xlabel("velocity of the motor [rad/s]")
                axes[1 + k].legend(fontsize=8, markerscale=4)
    axes[0].set_title(
        "residual of the worst motor [N m]\n(others of the fleet in grey)", fontsize=10
    )
    axes[0].set_xlabel("month")
    axes[0].legend(fontsize=8)
    figure.savefig(file, metadata={"Date": None})


def _model_texts() -> tuple[str, str]:
    folder = "config/robots/demo_leg"
    return share_file(f"{folder}.urdf").read_text(), share_file(f"{folder}_loops.yaml").read_text()


def main(
    output: Path, legs: int = 8, months: int = 6, seconds: float = 6.0, workers: int = 0
) -> list[Finding]:
    """Simulate, label, find; prints and draws what was found."""
    fates = fleet(legs, months)
    record(output / "bags", fates, seconds)
    label(output / "bags", output / "labelled", workers)
    findings = find(output / "labelled", fates)
    for finding in findings:
        sizes = ", ".join(f"{1000 * size:.0f}" for size in finding.months)
        print(f"{finding.leg}: {finding.motor}: {finding.cause}, by month [mN m]: {sizes}")
    print(f"nothing in {legs - len(findings)} of {legs} legs")
    picture = output / "fleet_wear.svg"
    draw(output / "labelled", fates, findings, picture)
    print(f"{picture} shows it")
    return findings


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Wear in a simulated fleet, found by residuals.")
    parser.add_argument("--output", type=Path, default=Path("build/fleet"), help="an empty folder")
    parser.add_argument("--legs", type=int, default=8, help="six or more")
    parser.add_argument("--months", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each recording")
    parser.add_argument("--workers", type=int, default=0, help="0 for one a core")
    given = parser.parse_args()
    for folder in (given.output / "bags", given.output / "labelled"):
        if folder.exists():
            parser.error(f"{folder} exists already; remove it, or give another --output")
    main(**vars(given))

"""`rbda_ros inspect`: what the table says, against what is counted by hand."""

import argparse
import io
import re
from pathlib import Path

import pytest
from mechanism_table import MECHANISMS
from pinocchio_oracle import example_robots
from rich.console import Console

from benchmark.parallel_chains import parallel_chains
from rbda_ros import load_robot
from rbda_ros.cli import inspection
from rbda_ros.cli.inspection import add_parser, constraint_facts, output_bodies, run, table
from rbda_ros.description.loop_file import CONSTRAINT_TYPES, read_loop_file
from rbda_ros.description.report import Report
from rbda_ros.description.yaml_text import parse_yaml

DEMO = ("config/robots/demo_leg.urdf", "--loops", "config/robots/demo_leg_loops.yaml")


def inspect(*arguments):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return run(parser.parse_args(["inspect", *map(str, arguments)]))


def shown(robot, width=80, encoding="utf-8", terminal=False):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=stream, width=width, force_terminal=terminal, highlight=False)
    console.print(table(robot, console))
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


@pytest.fixture
def at_root(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


def test_demo_leg_in_full(at_root, capsys):
    assert inspect(*DEMO) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.splitlines()[:26] == [
        "demo_leg",
        "moving mass 5.22 kg · fixed base · 10 bodies in 3 clusters",
        "nq 10 · nv 10 · ny 4 · 4 actuated",
        "",
        "body  link                      joint                type        y  effort",
        "   0  stand                     fixed base",
        "cluster hip on the fixed base",
        "   1  hip                       hip_abduction        revolute    ●",
        "   2  hip_abduction_rotor_link  hip_abduction_rotor  continuous       ●",
        "      hip_abduction_rotor_gear: coupling, 1 row, constant",
        "        hip_abduction_rotor - 9 hip_abduction = 0",
        "cluster thigh on body 1 of cluster hip",
        "   3  thigh                     hip_flexion          revolute    ●",
        "   4  hip_flexion_rotor_link    hip_flexion_rotor    continuous       ●",
        "      hip_flexion_rotor_gear: coupling, 1 row, constant",
        "        hip_flexion_rotor - 9 hip_flexion = 0",
        "cluster shank on body 3 of cluster thigh",
        "   5  shank                     knee                 revolute    ●",
        "   6  foot                      ankle                revolute    ●",
        "   7  ankle_pulley_link         ankle_pulley         revolute",
        "   8  ankle_rod_link            ankle_rod            revolute",
        "   9  knee_rotor_link           knee_rotor           continuous       ●",
        "  10  ankle_pulley_rotor_link   ankle_pulley_rotor   continuous       ●",
        "      knee_rotor_gear: coupling, 1 row, constant",
        "        knee_rotor - 12 knee = 0",
        "      ankle_pulley_rotor_gear: coupling, 1 row, constant",
    ]
    assert "ankle_linkage: revolute, 2 of 5 rows kept, varying" in printed.out
    assert "ankle_rod_link to foot" in printed.out


@pytest.mark.parametrize("name", MECHANISMS)
def test_rows_and_names_of_mechanisms(name):
    mechanism = MECHANISMS[name]
    robot = mechanism.load()
    facts = [constraint_facts(node) for node in robot.tree.clusters]
    assert tuple(sum(f.rows_kept for f in of) for of in facts if of) == mechanism.rows
    assert all(f.rows_kept <= f.rows for of in facts for f in of)
    assert all(f.constant for of in facts for f in of) == mechanism.constant
    words = re.split(r"[\s,:]+", shown(robot, width=200))
    named = {*robot.joint_names, *(name for c in robot.clusters for name in (*c.links, c.name))}
    assert named | {f.name for of in facts for f in of} <= set(words)


def test_output_bodies():
    tree = MECHANISMS["two_parents"].tree()
    numbers = [output_bodies(tree.clusters, node) for node in tree.clusters]
    assert numbers == [(0,), (1, 2), (3,), (4,)]
    text = shown(MECHANISMS["two_parents"].load())
    assert "cluster left_forearm on bodies 1 and 2 of cluster left_arm" in text


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", ["demo", "talos", "g1_29dof"])
def test_no_line_is_wider_than_the_console(name, width, at_root):
    files = example_robots()
    if name == "demo":
        robot = load_robot(DEMO[0], DEMO[2])
    else:
        found = next(path for stem, path in files.items() if stem.startswith(name))
        robot = load_robot(found, floating_base=True)
    widest = max(map(len, shown(robot, width).splitlines()))
    assert widest <= max(width, 62)  # no narrower: the columns could not be told apart
    whole = re.sub(r"\s", "", shown(robot, 500))
    assert all(joint in whole for joint in robot.joint_names)


def test_joints_that_are_partly_independent_say_which_coordinates():
    robot = MECHANISMS["planar_joint_loop"].load()
    assert re.search(r"plate +planar +●", shown(robot))
    robot = MECHANISMS["ball_joint_loop"].load()
    node = next(n for n in robot.tree.clusters if any(b.joint.name == "ball" for b in n.bodies))
    ball = next(b for b in node.bodies if b.joint.name == "ball")
    chosen = [
        name.rpartition(".")[2]
        for name in ball.velocity_names
        if name in robot.independent_joint_names
    ]
    assert len(chosen) < 3
    assert re.search(rf"ball +spherical +{' '.join(chosen)}", shown(robot, 120))


def test_brackets_in_names_are_no_markup_and_fixed_links_are_listed():
    urdf = """<robot name="[bold]odd[/bold]"><link name="base"/><link name="[red]arm"/>
    <link name="camera"/>
    <joint name="[/]" type="continuous"><parent link="base"/><child link="[red]arm"/></joint>
    <joint name="mount" type="fixed"><parent link="[red]arm"/><child link="camera"/></joint>
    </robot>""".replace(
        'name="camera"/>',
        'name="camera"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"'
        ' ixz="0" iyz="0"/></inertial></link>',
    )
    text = shown(load_robot(urdf))
    for name in ("[bold]odd[/bold]", "[red]arm", "[/]", "+ camera"):
        assert name in text


def test_a_terminal_that_knows_ascii_only():
    assert "*" in shown(MECHANISMS["gear"].load(), encoding="ascii")


def test_colours_only_on_a_terminal():
    robot = MECHANISMS["gear"].load()
    assert "\x1b[" in shown(robot, terminal=True)
    assert "\x1b[" not in shown(robot)


def test_warnings_are_shown(tmp_path, capsys):
    urdf = tmp_path / "thin.urdf"
    urdf.write_text(
        """<robot name="thin"><link name="base"/><link name="arm"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="9" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint>
        </robot>"""
    )
    assert inspect(urdf) == 0
    robot = load_robot(urdf)
    assert robot.warnings
    printed = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert all(f"warning: {warning}" in printed for warning in robot.warnings)


def test_every_problem_is_a_line_of_its_own(at_root, tmp_path, capsys):
    loops = tmp_path / "loops.yaml"
    loops.write_text("independent_joints: [knie]\nrotors: {hipp: {ratio: 3, inertia: 1e-5}}\n")
    assert inspect(DEMO[0], "--loops", loops) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 2
    assert "knie" in printed.err and "hipp" in printed.err
    assert inspect("missing.urdf") == 1
    assert "does not exist" in capsys.readouterr().err


def test_floating_base(at_root, capsys):
    assert inspect(*DEMO, "--floating-base") == 0
    text = capsys.readouterr().out
    assert "floating base" in text and "nq 17 · nv 16 · ny 10 · 4 actuated" in text
    assert re.search(r"0 +world +fixed base", text)
    assert re.search(r"1 +stand +floating_base +floating +●", text)


def test_the_page_on_clusters_is_true(at_root, capsys):
    page = Path("docs/clusters.md").read_text()
    blocks = re.findall(r"```text\n(.*?)```", page, re.S)
    example = next(block for block in blocks if "nq 10" in block)
    assert inspect(*DEMO) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in example.splitlines() if line != "..." and line not in printed] == []

    report, stated = Report(), {}
    for block in re.findall(r"```yaml\n(.*?)```", page, re.S):
        loop_file = read_loop_file(parse_yaml(block, report), report)
        stated |= dict(map(inspection._stated, loop_file.constraints))
    report.raise_problems()
    assert set(stated) == set(CONSTRAINT_TYPES)
    for kind, rows in re.findall(r"^\| `(\w+)` \|.*\| (\d) \|$", page, re.M):
        assert stated.pop(kind) == int(rows)
    assert stated == {"coupling": 1, "expression": 1}


def test_draws(at_root, tmp_path, capsys):
    path = tmp_path / "leg.svg"
    assert inspect(*DEMO, "--draw", path) == 0
    assert "<svg" in path.read_text()
    assert str(path) in capsys.readouterr().out
    for bad in (tmp_path / "leg.pdf", tmp_path / "no" / "folder.svg"):
        assert inspect(*DEMO, "--draw", bad) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_tells_how_forward_dynamics_closes_loops():
    urdf = parallel_chains(5, 5, "transmission")
    by_forces = "forward dynamics: by its forces"
    assert by_forces not in shown(load_robot(urdf))
    assert by_forces in shown(load_robot(urdf, {"method": "proximal"}))
    automatic = load_robot(urdf, {"method": "auto"})
    trial = automatic.loop_methods.trials["loop"]
    told = f"(auto; instructions embedded {trial.embedded:,}, by its forces {trial.by_forces:,})"
    assert f"{by_forces} {told}" in shown(automatic, width=120)

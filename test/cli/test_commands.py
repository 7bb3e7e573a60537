"""The command line without ROS."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rbda_ros import cli
from rbda_ros.cli import commands


def test_unknown_command_gives_a_usage_line(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["fly"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: rbda_ros")
    assert "fly" in said


def test_no_command_prints_the_help(capsys):
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    assert all(command in said for command in ("serve", "demo", "inspect", "--version"))


def help_of(command):
    """The help of a command, as its own process prints it."""
    done = subprocess.run(
        [sys.executable, "-m", "rbda_ros.cli", command, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_of_serve_is_complete():
    said = help_of("serve")
    for part in ("ROBOT", "--loops", "--floating-base", "--ros-args", "--params-file", "exit code"):
        assert part in said


def test_loops_is_the_loop_file_that_is_read_in_every_command():
    parser = commands._parser()
    (subparsers,) = parser._subparsers._group_actions
    meanings = {
        name: action.help
        for name, command in subparsers.choices.items()
        for action in command._actions
        if "--loops" in action.option_strings
    }
    assert len(meanings) >= 8
    assert all("write" not in meaning for meaning in meanings.values()), meanings
    for name, command in subparsers.choices.items():
        assert "%%" not in command.format_help(), name


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_refuses_impossible_times(capsys, seconds):
    with pytest.raises(SystemExit) as ended:
        cli.main(["demo", "--seconds", seconds])
    assert ended.value.code == 2
    assert "--seconds" in capsys.readouterr().err


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert all(command in said for command in ("serve", "demo", "inspect"))


def test_inspects_a_robot(capsys):
    robots = Path(__file__).resolve().parents[2] / "config" / "robots"
    loops = str(robots / "demo_leg_loops.yaml")
    assert cli.main(["inspect", str(robots / "demo_leg.urdf"), "--loops", loops]) == 0
    assert "ankle_linkage" in capsys.readouterr().out


def test_says_in_one_line_that_there_is_no_robot(capsys):
    assert cli.main(["inspect", "/no/such.urdf"]) == 1
    said = capsys.readouterr().err
    assert "/no/such.urdf" in said
    assert len(said.splitlines()) == 1


def test_imports_no_ros():
    code = (
        "import sys, rbda_ros.cli.commands\n"
        "from rbda_ros import load_robot\n"
        "sys.exit('rclpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_node_starts_without_what_only_other_commands_need():
    code = (
        "import sys; from rbda_ros.cli import main\n"
        "main(['serve', '--ros-args', '--params-file', '/no/such.yaml'])\n"
        "from std_msgs.msg import String; type(String).__import_type_support__()\n"
        "sys.exit(any(name in sys.modules for name in ('scipy', 'lark', 'rich', 'argparse')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_says_so_where_ros_is_missing():
    code = (
        "import sys; sys.modules['rclpy'] = None\n"
        "from rbda_ros.cli import main; sys.exit(main(['serve']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "rclpy is missing" in done.stderr
    assert "Traceback" not in done.stderr


def test_tells_its_version(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert capsys.readouterr().out == f"rbda_ros {project['version']}\n"
    assert f"<version>{project['version']}</version>" in (root / "package.xml").read_text()


def test_help_of_export_c_names_every_function(capsys):
    from rbda_ros.exports.c_library import function_names

    with pytest.raises(SystemExit) as ended:
        cli.main(["export-c", "--help"])
    assert ended.value.code == 0
    said = "".join(capsys.readouterr().out.split())
    assert all(name in said for name in function_names())

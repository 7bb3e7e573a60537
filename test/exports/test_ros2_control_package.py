"""The package of ros2_control plugins: its C, its C++ where headers are, its README."""

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml
from mechanism_table import MECHANISMS

from rbda_ros.cli.commands import main
from rbda_ros.errors import InputError
from rbda_ros.exports import export_ros2_control
from rbda_ros.exports.compiled import compiler

ROBOTS = ["parallel_ankle", "slider_crank", "gear"]
FOLDER = Path(__file__).parents[1] / "mechanisms"


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Packages of several robots."""
    folder = tmp_path_factory.mktemp("packages")
    return {
        name: export_ros2_control(MECHANISMS[name].load(), folder / f"{name}_control")
        for name in ROBOTS
    }


def readme_block(report, kind):
    text = (report.folder / "README.md").read_text()
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("name", ROBOTS)
def test_nothing_of_the_template_is_left(packages, name):
    for path in packages[name].files:
        text = path.read_text()
        assert "myrobot" not in text.lower()
        assert not re.search(r"\b(MOTOR|JOINT)_(NAMES|COUNT|ZEROS|LIST)\b", text)
        assert not re.search(r"\b\w+_(YAML|XML|PLACES|TITLE)\b", text)


@pytest.mark.parametrize("name", ROBOTS)
def test_yaml_of_the_readme_names_what_is_exported(packages, name):
    report = packages[name]
    (text,) = readme_block(report, "yaml")
    assert text == (report.folder / "config/controllers.yaml").read_text()
    parameters = yaml.safe_load(text)
    manager = parameters["controller_manager"]["ros__parameters"]
    own = parameters[f"{name}_controller"]["ros__parameters"]
    plugin = ElementTree.parse(report.folder / "controller_plugin.xml").getroot()
    assert manager[f"{name}_controller"]["type"] == plugin[0].get("name")
    assert tuple(own["motors"]) == report.library.motors
    above = parameters["joint_trajectory_controller"]["ros__parameters"]
    assert above["joints"] == [f"{name}_controller/{each}" for each in report.library.joints]
    described = yaml.safe_load((report.folder / "src/controller_parameters.yaml").read_text())
    described = described[f"{name}_controller"]
    assert set(own) <= set(described)
    for key in ("motors", "effort_limits"):
        assert len(described[key]["default_value"]) == len(report.library.motors)
    for key in ("stiffness", "damping"):
        assert len(own[key]) == len(described[key]["default_value"]) == len(report.library.joints)


@pytest.mark.parametrize("name", ROBOTS)
def test_xml_of_the_readme_names_what_is_exported(packages, name):
    report = packages[name]
    hardware, transmission = map(ElementTree.fromstring, readme_block(report, "xml"))
    assert tuple(each.get("name") for each in hardware[1:]) == report.library.motors
    assert tuple(each.get("role") for each in transmission.iter("actuator")) == (
        report.library.motors
    )
    assert tuple(each.get("role") for each in transmission.iter("joint")) == report.library.joints
    plugin = ElementTree.parse(report.folder / "transmission_plugin.xml").getroot()
    assert transmission.findtext("plugin") == plugin[0].get("name")
    package = ElementTree.parse(report.folder / "package.xml")
    assert package.findtext("name") == f"{name}_control"


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_c_compiles(packages, tmp_path):
    source = packages["parallel_ankle"].library.source
    command = [compiler(), "-std=c99", "-Wall", "-Wextra", "-Werror", "-O0", "-c", str(source)]
    subprocess.run([*command, "-o", str(tmp_path / "x.o")], check=True)


def test_plugins_compile(packages, tmp_path):
    """With the C++ headers of ros2_control, which a sourced installation names."""
    roots = [Path(each) / "include" for each in os.environ.get("AMENT_PREFIX_PATH", "").split(":")]
    folders = [folder for root in roots if root.is_dir() for folder in root.iterdir()]
    if not any((each / "transmission_interface/transmission.hpp").exists() for each in folders):
        pytest.skip("there are no headers of ros2_control in AMENT_PREFIX_PATH")
    report = packages["parallel_ankle"]
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra"]
    command += [f"-I{report.folder / 'c'}", *(f"-isystem{folder}" for folder in folders)]
    subprocess.run([*command, str(report.folder / "src/transmission.cpp")], check=True)


RECOVERY = """\
#include <cstdio>
extern "C" {
#include "parallel_ankle.h"
}
#include "linkage.hpp"

int main()
{
  static parallel_ankle_workspace w;
  double joints[2], at[2];
  parallel_ankle_init(&w);
  for (int k = 1; k <= 2000; k++) { // slowly to where the rods are stretched
    const double rest = 1.0 - k / 2000.0;
    at[0] = 0.920998 * (1.0 - rest * rest);
    at[1] = -at[0];
    parallel_ankle_motors_to_joints(&w, at, nullptr, nullptr, nullptr, joints, nullptr, nullptr,
                                    nullptr);
  }
  at[0] = at[1] = 0.1;
  static parallel_ankle_workspace other = w;
  other = w;
  const int plain = parallel_ankle_motors_to_joints(&other, at, nullptr, nullptr, nullptr, joints,
                                                    nullptr, nullptr, nullptr);
  const int again = parallel_ankle_control::joints_from_motors(&w, at, nullptr, nullptr, joints,
                                                               nullptr, nullptr);
  static parallel_ankle_workspace fresh;
  double right[2];
  parallel_ankle_init(&fresh);
  const int first = parallel_ankle_motors_to_joints(&fresh, at, nullptr, nullptr, nullptr, right,
                                                    nullptr, nullptr, nullptr);
  const double nowhere[2] = {3.0, -3.0};
  const double q = w.q[0];
  const int off = parallel_ankle_control::joints_from_motors(&w, nowhere, nullptr, nullptr, joints,
                                                             nullptr, nullptr);
  std::printf("%d %d %d %d %d %d\\n", plain, again, first, off, q == w.q[0],
              joints[0] == right[0] && joints[1] == right[1]);
}
"""


DEAD_POINT = """\
#include <cstdio>
#include <initializer_list>
#include "parallel_ankle.h"

// Stretch the rods by halved steps, with a largest condition number: the status in the end, and the
// last condition number before.
int main()
{
  for (const double most : {5.0, 1e4}) {
    static parallel_ankle_workspace w, next;
    parallel_ankle_init(&w);
    w.max_condition_number = most;
    double angle = 0.0, efforts[2];
    const double none[2] = {0.0, 0.0};
    int last = 0;
    for (double step = 0.01; step > 1e-12;) {
      const double at[2] = {angle + step, -angle - step};
      next = w;
      const int status = parallel_ankle_feedforward(&next, at, none, none, nullptr, efforts);
      if (status == 0) {
        w = next;
        angle += step;
      } else {
        last = status;
        step *= 0.5;
      }
    }
    std::printf("%d %g\\n", last, 1.0 / w.conditioning);
  }
}
"""


def built(main, folder, tmp_path):
    """What a program prints that is linked with the C of a package, in words."""
    (tmp_path / "main.cpp").write_text(main)
    library = [compiler(), "-O0", "-c", str(folder / "c/parallel_ankle.c")]
    subprocess.run([*library, "-o", str(tmp_path / "c.o")], check=True)
    build = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", str(tmp_path / "main.cpp")]
    build += [f"-I{folder / 'c'}", f"-I{folder / 'src'}", str(tmp_path / "c.o"), "-lm"]
    subprocess.run([*build, "-o", str(tmp_path / "main")], check=True)
    done = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_loops_are_found_again_after_a_dead_point(packages, tmp_path):
    """From the assembly, where the last position is of no use; what fails changes nothing."""
    printed = built(RECOVERY, packages["parallel_ankle"].folder, tmp_path)
    assert printed == ["2", "0", "0", "2", "1", "1"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_feedforward_ends_where_a_dead_point_begins(packages, tmp_path):
    """With code 4, at the condition number that was set."""
    printed = built(DEAD_POINT, packages["parallel_ankle"].folder, tmp_path)
    assert printed[::2] == ["4", "4"]
    assert 4.99 < float(printed[1]) <= 5.0
    assert 5e3 < float(printed[3]) <= 1e4


def test_update_calls_nothing_that_waits_or_allocates(packages):
    text = (packages["parallel_ankle"].folder / "src/controller.cpp").read_text()
    update = text[text.index("return_type update_and_write_commands") : text.index("private:")]
    steps = text[text.index("void take_references") : text.index("listener_;")]
    for word in ("new ", "push_back", "resize", "std::string(", "RCLCPP", "throw", "get_params"):
        assert word not in update + steps


def test_command(tmp_path, capsys):
    robot, loops = FOLDER / "parallel_ankle.urdf", FOLDER / "parallel_ankle.yaml"
    output = tmp_path / "my_ankle_control"
    assert main(["export-ros2-control", str(robot), "--loops", str(loops), "-o", str(output)]) == 0
    assert "my_ankle_control" in capsys.readouterr().out
    assert (output / "c/my_ankle.h").exists()
    assert main(["export-ros2-control", str(robot), "-o", str(output), "--name", "Bad__"]) == 2
    assert "no name of a ROS package" in capsys.readouterr().err


def test_robots_that_cannot_be_controlled_so(tmp_path):
    with pytest.raises(InputError, match="floating base"):
        export_ros2_control(MECHANISMS["tello_leg"].load(), tmp_path / "leg_control")
    with pytest.raises(InputError, match="neither a motor nor commanded"):
        export_ros2_control(MECHANISMS["planar_joint_loop"].load(), tmp_path / "loop_control")

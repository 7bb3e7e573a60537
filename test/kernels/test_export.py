"""The exported C, compiled by the system's compiler, against the robot and the virtual machine."""

import argparse
import ctypes
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest
from mechanism_table import MECHANISMS
from pinocchio_oracle import example_robots

from rbda_ros.cli import export_c as export_command
from rbda_ros.kernels.export import comment
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.program import read_program
from tools.hardening.sanitize_export import write_kernels

COMPILER = shutil.which("cc")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-fPIC", "-shared"]

BY_DAY = ("four_bar", "ball_joint_loop", "rotors", "tello_leg", "cam")
"""Mechanisms whose code is compiled in every run; the others by night."""

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler `cc`")


def build(source):
    library = source.with_suffix(".so")
    subprocess.run([COMPILER, *STRICT, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def evaluate(function, inputs, sizes):
    outputs = [np.full(size, np.nan) for size in sizes]
    function(*(ctypes.c_void_p(array.ctypes.data) for array in (*inputs, *outputs)))
    return outputs


def command(*arguments):
    parser = argparse.ArgumentParser()
    export_command.add_parser(parser.add_subparsers(dest="command"))
    return export_command.run(parser.parse_args(["export-c", *map(str, arguments)]))


@needs_compiler
def test_every_operation_and_odd_names(tmp_path):
    x = ca.SX.sym("x", 2)
    a, b = x[0], x[1]
    every = [-a, a**2, 2 * a, 1 / a, ca.sqrt(b), ca.fabs(a), ca.sign(a), ca.floor(a), ca.ceil(a)]
    every += [ca.logic_not(a), ca.sin(a), ca.cos(a), ca.tan(a), ca.sin(a * b), ca.cos(ca.exp(a))]
    every += [f(a / 10) for f in (ca.asin, ca.acos, ca.atan, ca.sinh, ca.cosh, ca.tanh, ca.asinh)]
    every += [ca.acosh(b), ca.atanh(a / 10), ca.exp(a), ca.expm1(a), ca.log(b), ca.log1p(b)]
    every += [ca.erf(a), a + b, a - b, a * b, a / b, b**a, ca.fmin(a, b), ca.fmax(a, b), a < b]
    every += [a <= b, a == b, a != b, ca.logic_and(a, b), ca.logic_or(a, b), ca.if_else(a, b, 0)]
    every += [ca.copysign(b, a), ca.atan2(a, b), ca.hypot(a, b), ca.fmod(b, a), ca.remainder(b, a)]
    every += [a, ca.SX(-2.5) * a, ca.SX(np.inf), -ca.SX(np.inf) + a, ca.SX(0.1)]
    function = ca.Function("f", [x], [ca.vertcat(*every), ca.SX(0, 1)], ["double"], ["w", "sin"])
    library = build(write_kernels({"all": read_program(function)}, "odd", tmp_path))
    for given in ([-1.3, 2.7], [2.5, 1.25], [0.5, 3.0]):
        (expected, _) = Kernel(function, compiled=False).call(given)
        result, _ = evaluate(library.odd_all, [np.array(given)], [len(every), 0])
        np.testing.assert_allclose(result, expected, rtol=1e-15)


def test_nothing_ends_a_comment_early():
    text = "\n".join(comment(["joint */ evil /* name"]))
    assert text.count("*/") == 1
    assert text.count("/*") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--functions", "inverse_dynamics,levitate"],
            "no function levitate; there are close, feedforward",
        ),
        (["--functions", ""], "name a function; there are close, feedforward"),
        (["--functions", "jacobian"], "jacobian is about frames: name links with --frames"),
        (["--functions", "jacobian", "--frames", "nowhere"], "nowhere"),
        (["--loops", "no_such_file.yaml"], "no_such_file.yaml"),
    ],
)
def test_refusals_are_one_line(tmp_path, capsys, arguments, message):
    urdf = example_robots()["panda"]
    assert command(urdf, *arguments, "-o", tmp_path / "panda") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@needs_compiler
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly)
        for name in sorted(MECHANISMS)
    ],
)
@pytest.mark.parametrize("language", [["-x", "c", "-std=c99"], ["-x", "c++", "-std=c++11"]])
def test_every_robot_compiles_without_a_warning(tmp_path, name, language):
    mechanism = MECHANISMS[name]
    options = [] if mechanism.loops is None else ["--loops", mechanism.loops]
    assert command(mechanism.urdf, *options, "-o", tmp_path / "robot") == 0
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-fsyntax-only"]
    flags = [flag for flag in flags if language[1] == "c" or flag != "-pedantic"]
    subprocess.run([COMPILER, *language, *flags, str(tmp_path / "robot" / "robot.c")], check=True)

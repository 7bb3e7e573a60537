"""CasADi functions of operations, beside the methods: values, derivatives, files, failures."""

from __future__ import annotations

import subprocess
import sys

import casadi as ca
import numpy as np
import pytest
from door_samples import arguments_of, dead_point, frame_of, method_results, results_of
from mechanism_table import MECHANISMS, closed_states

from rbda_ros import InputError, Robot
from rbda_ros.cluster_tree.closing.newton import solve
from rbda_ros.robot.operations import OPERATIONS, Operation

BY_DAY = ("four_bar", "ball_joint_loop", "slider_crank")
"""Mechanisms on which every operation is compared by day; the first with a floating base."""
ON_ALL = ("forward_dynamics", "frame_pose")
PAIRS = [
    pytest.param(
        mechanism,
        operation,
        marks=() if mechanism in BY_DAY or operation in ON_ALL else pytest.mark.nightly,
    )
    for mechanism in MECHANISMS
    for operation in OPERATIONS
]


def as_coordinates(
    robot: Robot, record: Operation, given: list[np.ndarray], coordinates: str
) -> list[np.ndarray]:
    """Arguments as a function of these coordinates takes them."""
    if coordinates == "independent":
        return [robot.independent_position(given[0]), *given[1:]]
    q = given[0]
    return [
        robot.spanning_velocity(q, x) if argument.kind == "Velocity" else x
        for argument, x in zip(record.arguments, given, strict=True)
    ]


def has_position(robot: Robot) -> bool:
    """Whether y has a position: not where it has part of a ball joint."""
    return robot._inputs.choices.independent_positions is not None


def position_rates(robot: Robot, q: np.ndarray) -> np.ndarray:
    """``dq/dt = rates yd`` (nq, ny), by the tree's own kinematics."""
    columns = [robot.spanning_velocity(q, direction) for direction in np.eye(robot.ny)]
    rates = [robot.tree.position_rate(ca.DM(q), ca.DM(column)) for column in columns]
    return np.hstack([np.array(rate) for rate in rates])


@pytest.mark.parametrize(("mechanism", "operation"), PAIRS)
def test_values_are_those_of_the_method(mechanism: str, operation: str) -> None:
    robot, record = MECHANISMS[mechanism].load(), OPERATIONS[operation]
    frame = frame_of(robot, operation)
    kinds = ["spanning", *(["independent"] if has_position(robot) else [])]
    for coordinates in kinds:
        function = robot.casadi(operation, coordinates, frame=frame)
        assert function.name_in() == [argument.name for argument in record.arguments]
        assert function.name_out() == list(record.results)
        for given in zip(*arguments_of(mechanism, operation, 2), strict=True):
            answers = method_results(robot, operation, given)
            results = function.call(as_coordinates(robot, record, given, coordinates))
            for result, answer in zip(results, answers, strict=True):
                scale = max(1.0, np.abs(answer).max(initial=0.0))
                np.testing.assert_allclose(
                    np.array(result).reshape(answer.shape), answer, rtol=0, atol=1e-12 * scale
                )


@pytest.mark.parametrize(("mechanism", "operation"), PAIRS)
def test_derivatives_follow_the_loops(mechanism: str, operation: str) -> None:
    """They are those of the spanning function along G, which knows no root finder."""
    robot, record = MECHANISMS[mechanism].load(), OPERATIONS[operation]
    if not has_position(robot):
        pytest.skip("y has only part of a ball joint")
    if robot.floating_base:
        return  # a quaternion has four entries; see the next test
    frame = frame_of(robot, operation)
    spanning = robot.casadi(operation, "spanning", frame=frame)
    independent = robot.casadi(operation, frame=frame)
    given = [each[0] for each in arguments_of(mechanism, operation, 1)]
    result = record.results[0]
    along = position_rates(robot, given[0])
    expected = jacobian(spanning, result, as_coordinates(robot, record, given, "spanning")) @ along
    found = jacobian(independent, result, as_coordinates(robot, record, given, "independent"))
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * scale)


def jacobian(function: ca.Function, result: str, given: list[np.ndarray]) -> np.ndarray:
    """The derivative of a result, entries column by column, with respect to ``q``."""
    whole = function.jacobian()
    zeros = [ca.DM(*function.size_out(i)) for i in range(function.n_out())]
    return np.array(whole(*given, *zeros)[0] if whole.n_out() > 1 else whole(*given, *zeros))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_jacobians_are_the_derivatives_of_the_methods(mechanism: str) -> None:
    robot = MECHANISMS[mechanism].load()
    if not has_position(robot):
        pytest.skip("y has only part of a ball joint")
    (q,) = closed_states(MECHANISMS[mechanism], 1)
    rng = np.random.default_rng(3)
    yd, x = rng.normal(size=(2, robot.ny))
    state = robot.state(q)
    y = robot.independent_position(state.q)
    in_y = list(robot._inputs.choices.independent_positions)
    moves = position_rates(robot, state.q)[in_y]  # velocities of y as rates of its position
    for operation in ("inverse_dynamics", "forward_dynamics"):
        method = getattr(robot, f"{operation}_derivatives")(state, yd, x)
        expected = results_of(OPERATIONS[f"{operation}_derivatives"], method)
        whole = robot.casadi(operation).jacobian()
        found = [np.array(each) for each in whole.call([y, yd, x, ca.DM(robot.ny, 1)])]
        found[0] = found[0] @ moves
        for one, other in zip(found, expected, strict=True):
            scale = max(1.0, np.abs(other).max())
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * scale)


def test_hessian_through_a_loop_is_the_difference_of_gradients() -> None:
    robot = MECHANISMS["slider_crank"].load()
    y, yd, tau = (ca.MX.sym(name, 1) for name in ("y", "yd", "tau"))
    ydd = robot.casadi("forward_dynamics")(y, yd, tau)
    hessian, gradient = ca.hessian(ydd**2, ca.vertcat(y, yd, tau))
    function = ca.Function("second", [y, yd, tau], [hessian, gradient])
    at, step = np.array([0.4, 0.7, 0.2]), 1e-5
    columns = [
        (function(*(at + d))[1] - function(*(at - d))[1]) / (2 * step) for d in step * np.eye(3)
    ]
    np.testing.assert_allclose(function(*at)[0], ca.horzcat(*columns), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("friction", [False, True])
def test_wrenches_and_friction_act(friction: bool) -> None:
    robot = MECHANISMS["four_bar"].load()
    links = (robot.links[-1], robot.links[2])
    rng = np.random.default_rng(0)
    (q,) = closed_states(MECHANISMS["four_bar"], 1)
    yd, tau = rng.normal(size=(2, robot.ny))
    wrenches = rng.normal(size=(2, 6))
    function = robot.casadi("forward_dynamics", external_wrenches=links, friction=friction)
    assert function.name_in() == ["q", "qd", "tau", "external_wrenches"]
    found = np.array(function(robot.independent_position(q), yd, tau, wrenches)).ravel()
    by_link = dict(zip(links, wrenches, strict=True))
    expected = robot.forward_dynamics(q, yd, tau, by_link, friction=friction)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("mechanism", ["gear", "four_bar", "ball_rod"])
def test_files_are_read_without_the_package(mechanism: str, tmp_path) -> None:
    robot = MECHANISMS[mechanism].load()
    function = robot.casadi("forward_dynamics")
    path = tmp_path / "forward_dynamics.casadi"
    function.save(str(path))
    given = [robot.independent_position(robot.neutral()), *np.full((2, robot.ny), 0.3)]
    program = (
        "import sys, casadi\n"
        "sys.modules['rbda_ros'] = None\n"  # to import it is an error
        f"f = casadi.Function.load({str(path)!r})\n"
        f"print(f(*{[x.tolist() for x in given]!r}).elements())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert eval(ran.stdout) == pytest.approx(function(*given).elements(), rel=1e-12)


def test_functions_and_their_derivatives_can_be_written_in_c(tmp_path) -> None:
    function = MECHANISMS["four_bar"].load().casadi("forward_dynamics")
    code = ca.CodeGenerator("dynamics")
    code.add(function)
    code.add(function.jacobian())
    code.generate(f"{tmp_path}/")
    assert "forward_dynamics" in (tmp_path / "dynamics.c").read_text()


def test_a_loop_that_does_not_close_is_named() -> None:
    robot = MECHANISMS["slider_crank"].load().with_independent_joints(["wrist_pin"])
    function = robot.casadi("forward_dynamics")
    with pytest.raises(RuntimeError, match="do not close at this independent position"):
        function(3.0, 0.0, 0.0)


def test_positions_off_the_loops_and_dead_points_have_a_status() -> None:
    robot = MECHANISMS["four_bar"].load()
    function = robot.casadi("mass_matrix", "spanning", status=True)
    q = robot.neutral()
    assert function.name_out() == ["mass_matrix", "status"]
    assert function(q)[1] == 1
    q[-2] += 0.1
    assert function(q)[1] == 0
    assert function(np.full(robot.nq, np.nan))[1] == 0
    moving = robot.casadi("bias_force", "spanning", status=True)
    for speed in (np.nan, np.inf):
        assert moving(robot.neutral(), np.full(robot.nv, speed))[1] == 0
    assert moving(robot.neutral(), np.ones(robot.nv))[1] == 1
    with pytest.raises(RuntimeError, match="mass_matrix"):
        function(q[:-1])  # CasADi checks shapes
    by_pin, dead = dead_point()
    assert by_pin.casadi("mass_matrix", "spanning", status=True)(dead)[1] == 0
    closing = robot.casadi("mass_matrix", status=True)
    assert closing(robot.independent_position(robot.neutral()))[1] == 1


def test_near_picks_the_branch() -> None:
    """The four-bar has two positions for each of its crank: the other one is found from afar."""
    robot = MECHANISMS["four_bar"].load()
    k, node = next((k, node) for k, node in enumerate(robot.tree.clusters) if node.loop)
    place = robot.tree.position_ranges[k]
    q, free = robot.neutral(), [j for j in range(node.nv) if j not in node.independent]
    starts = np.random.default_rng(0).uniform(-3.0, 3.0, (50, len(free)))
    for start in starts:
        other = q.copy()
        other[np.array(place)[free]] = start
        closed = solve(node.loop, other[place.start : place.stop], free)
        if closed.ok and np.abs(np.sin(closed.q - q[place.start : place.stop])).max() > 0.1:
            break
    other[place.start : place.stop] = closed.q
    y, zero = robot.independent_position(q), np.zeros(robot.ny)
    there = robot.casadi("inverse_dynamics", near=other)(y, zero, zero)
    expected = robot.inverse_dynamics(other, zero, zero)
    np.testing.assert_allclose(np.array(there).ravel(), expected, atol=1e-10)
    assert np.abs(expected - robot.inverse_dynamics(q, zero, zero)).max() > 1e-3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("no_such",), "there is no operation 'no_such'"),
        (("forward_dynamics", "minimal"), "coordinates: 'minimal'"),
        (("frame_pose",), "is about a frame"),
    ],
)
def test_what_cannot_be_made_is_rejected(given: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MECHANISMS["gear"].load().casadi(*given)


def test_options_that_an_operation_does_not_have_are_rejected() -> None:
    robot = MECHANISMS["gear"].load()
    with pytest.raises(InputError, match="takes no wrenches and no friction"):
        robot.casadi("mass_matrix", friction=True)
    with pytest.raises(InputError, match="has no link 'nowhere'"):
        robot.casadi("forward_dynamics", external_wrenches=("nowhere",))
    with pytest.raises(InputError, match="no position"):
        MECHANISMS["ball_joint_loop"].load().casadi("forward_dynamics")

"""Loop closure: from any determining joints, along branches, at dead points, out of reach."""

from __future__ import annotations

import functools
import itertools
import time

import numpy as np
import pytest
from mechanism_table import MECHANISMS, Mechanism, closed_states, cluster_positions, moved
from random_mechanisms import closable

from rbda_ros import ClosureError, InputError, Robot, load_robot
from rbda_ros.cluster_tree.cluster_joint import ClusterNode

SMALL = [name for name, m in MECHANISMS.items() if all(n.nv <= 6 for n in m.tree().clusters[1:])]


def residual(mechanism: Mechanism, q: np.ndarray) -> float:
    """Largest |phi| of all loops."""
    tree = mechanism.tree()
    parts = zip(tree.clusters, cluster_positions(tree, q), strict=True)
    return max(np.abs(node.loop.residual(q_k)).max() for node, q_k in parts if node.loop)


def positions_by_name(mechanism: Mechanism, q: np.ndarray) -> dict[str, np.ndarray]:
    bodies = mechanism.tree().spanning.bodies
    parts = np.split(q, np.cumsum([body.model.nq for body in bodies])[:-1])
    return {body.joint.name: part for body, part in zip(bodies, parts, strict=True)}


def as_given(position: np.ndarray):
    """A number for one-DoF joints, an array for others, as users give them."""
    return float(position[0]) if position.size == 1 else position


def minimal_determining_sets(node: ClusterNode, q: np.ndarray) -> list[tuple[str, ...]]:
    """Sets of whole joints, none larger than needed, whose rates determine the others'."""
    K = node.loop.jacobian(q)
    names = [body.joint.name for body in node.bodies]
    found: list[tuple[str, ...]] = []
    for size in range(1, len(names) + 1):
        for chosen in itertools.combinations(range(len(names)), size):
            known = {j for i in chosen for j in node.velocity_ranges[i]}
            unknown = [j for j in range(node.nv) if j not in known]
            values = np.linalg.svd(K[:, unknown], compute_uv=False) if unknown else np.ones(1)
            determined = len(unknown) <= K.shape[0] and values.min() > 0.02 * np.abs(K).max()
            group = tuple(names[i] for i in chosen)
            if determined and not any(set(smaller) <= set(group) for smaller in found):
                found.append(group)
    return found


@pytest.mark.parametrize("name", MECHANISMS)
def test_closes_from_independent_positions(name):
    mechanism = MECHANISMS[name]
    robot, tree = mechanism.load(), mechanism.tree()
    independent = {body.joint.name for body in tree.spanning.bodies} & {
        coordinate.split(".")[0]
        for node in tree.clusters
        for j, coordinate in enumerate(n for b in node.bodies for n in b.velocity_names)
        if j in node.independent
    }
    whole = name != "ball_joint_loop"  # its y has part of a ball joint
    for q in closed_states(mechanism, 20)[:5]:
        parts = positions_by_name(mechanism, q)
        y = np.concatenate([part for joint, part in parts.items() if joint in independent])
        closed = robot.close(y if whole else q, guess=q)
        assert residual(mechanism, closed) < 1e-12
        np.testing.assert_allclose(closed, q, atol=1e-10)


@pytest.mark.parametrize("name", SMALL)
def test_closes_from_every_minimal_determining_set(name):
    mechanism = MECHANISMS[name]
    robot, tree = mechanism.load(), mechanism.tree()
    count = 0
    for q in closed_states(mechanism, 20)[:2]:
        parts = positions_by_name(mechanism, q)
        near = moved(tree, q, 0.01 * np.ones(tree.nv))
        if tree.spanning.floating_base:
            near[:7] = q[:7]  # the pose of the base is known
        sets = [
            [(body.joint.name,) for body in node.bodies]
            if node.loop is None
            else minimal_determining_sets(node, q_k)
            for node, q_k in zip(tree.clusters, cluster_positions(tree, q), strict=True)
        ]
        free = {
            body.joint.name for node in tree.clusters if node.loop is None for body in node.bodies
        }
        looped = [s for node, s in zip(tree.clusters, sets, strict=True) if node.loop]
        for chosen in itertools.product(*looped):
            given = (free | set(itertools.chain(*chosen))) - {"floating_base"}
            known = {joint: as_given(parts[joint]) for joint in given}
            closed = robot.close(known, guess=near)
            assert residual(mechanism, closed) < 1e-12
            np.testing.assert_allclose(closed, q, atol=1e-8, err_msg=str(sorted(known)))
            count += 1
    assert count >= 2


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "geared_four_bar", "tello_leg"])
def test_more_joints_than_needed_may_be_given(name):
    """The independent joints stay as given; the others start there and are made to fit."""
    mechanism = MECHANISMS[name]
    robot, tree = mechanism.load(), mechanism.tree()
    rng = np.random.default_rng(0)
    for q in closed_states(mechanism, 20)[:5]:
        noise = rng.normal(0.0, 1e-3, tree.nv)
        noise[: 6 if tree.spanning.floating_base else 0] = 0.0
        noisy = moved(tree, q, noise)
        parts = positions_by_name(mechanism, noisy)
        parts.pop("floating_base", None)
        guess = noisy
        for closed in (
            robot.close({n: as_given(p) for n, p in parts.items()}, guess=guess),
            robot.close(noisy, guess=guess),
        ):
            assert residual(mechanism, closed) < 1e-12
            after = positions_by_name(mechanism, closed)
            for joint in robot.independent_joint_names:
                np.testing.assert_allclose(after[joint], parts[joint], atol=1e-14)
            np.testing.assert_allclose(closed, noisy, atol=0.05)


@functools.cache
def four_bar(branch: int) -> Robot:
    """The crank-rocker in one of its two assemblies, on a fixed base."""
    mechanism = MECHANISMS["four_bar"]
    text = mechanism.loops.read_text().replace("{crank: 1.0, coupler: -0.9, rocker: -0.5}", "{}")
    guesses = {
        1: "{crank: 1.0, coupler: -0.9, rocker: -0.5}",
        2: "{crank: 1.0, coupler: -2.9, rocker: 2.8}",
    }
    return load_robot(mechanism.urdf, text.replace("assembly: {}", f"assembly: {guesses[branch]}"))


def coupler_side(robot: Robot, q: np.ndarray) -> float:
    """On which side of the diagonal the coupler is: the sign of sin(angle coupler to rocker)."""
    crank, coupler, rocker = (q[robot.joint_names.index(n)] for n in ("crank", "coupler", "rocker"))
    return np.sign(np.sin((crank + coupler + 0.6) - (1.2 - rocker)))


@pytest.mark.parametrize("branch", [1, 2])
@pytest.mark.parametrize("step", [0.05, 0.3, 1.2], ids=["fine", "coarse", "wild"])
def test_a_crank_keeps_its_branch_through_full_turns(branch, step):
    robot = four_bar(branch)
    q = robot.close([0.0, 0.0])
    side = coupler_side(robot, q)
    for crank in np.arange(0.0, 4 * np.pi, step):
        q = robot.close([crank, 0.0], guess=q)
        assert coupler_side(robot, q) == side
    home = robot.close([0.0, 0.0])
    turned = robot.close([4 * np.pi, 0.0], guess=q)
    np.testing.assert_allclose(np.cos(turned - home), 1.0, atol=1e-12)


def test_assembly_guesses_pick_the_branch():
    sides = {
        branch: coupler_side(four_bar(branch), four_bar(branch).close([1.0, 0.0]))
        for branch in (1, 2)
    }
    assert sides[1] == -sides[2]


@pytest.mark.parametrize("branch", [1, 2])
@pytest.mark.parametrize("crank", np.linspace(-3.1, 3.1, 9).round(2))
def test_without_a_guess_the_branch_is_that_of_the_assembly(branch, crank):
    robot = four_bar(branch)
    assert coupler_side(robot, robot.close([crank, 0.0])) == coupler_side(
        robot, robot.close([1.0, 0.0])
    )


def test_a_warm_start_is_quick():
    """Closing near the last position takes a few Newton steps, not a search."""
    robot = four_bar(1)
    q = robot.close([0.5, 0.0])
    start = time.process_time()
    for i in range(100):
        q = robot.close([0.5 + 0.01 * i, 0.0], guess=q)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    ("name", "known", "loop"),
    [
        ("four_bar", {"rocker": -2.5, "flag": 0.0}, "pin"),
        ("slider_crank", {"wrist_pin": 1.5}, "cylinder"),
        ("tie_rod", {"steering": 2.5}, "rod"),
        ("fixed_cut", {"j1": 2.5, "j2": 2.5}, "bolts"),
        ("chained_loops", {"crank": 0.9, "far_rocker": 2.5}, "far_pin"),
        ("cam", {"follower-slide": 0.2}, "profile"),
    ],
)
def test_out_of_reach_names_the_loop_and_the_gap(name, known, loop):
    start = time.process_time()
    with pytest.raises(ClosureError, match=rf"'{loop}'.*\d") as caught:
        MECHANISMS[name].load().close(known)
    assert time.process_time() - start < 3.0
    assert "left" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "known", "missing"),
    [
        ("four_bar", {"flag": 0.0}, "crank"),
        ("belt_pair", {"hip": 0.0, "knee": 0.1, "knee_rotor": 1.2}, "ankle"),
        ("differential", {"left": 0.2}, "roll"),
        ("planar_joint_loop", {"leg_1": 0.3, "leg_2": 0.3}, "plate"),
        ("gear", {"swing": 0.1}, "elbow"),
        ("gear", {"elbow": 0.1}, "swing"),
        ("free_parents", {"left_elbow": 0.1, "left_shoulder": 0.1}, "right_shoulder"),
    ],
)
def test_joints_that_do_not_determine_the_rest_are_refused(name, known, missing):
    with pytest.raises(InputError, match=missing):
        MECHANISMS[name].load().close(known)


@pytest.mark.parametrize("known", [{"nonsense": 1.0}, {"crank": np.nan}, {"crank": "x"}])
def test_unknown_names_and_bad_numbers_are_refused(known):
    with pytest.raises(InputError):
        MECHANISMS["over_actuated"].load().close(known | {"tail": 0.0})


def test_the_piston_has_two_dead_points_and_neither_hangs():
    """Given the piston's pin alone, the crank is undetermined where it is in line with the rod."""
    mechanism = MECHANISMS["slider_crank"]
    robot = mechanism.load()
    start = time.process_time()
    for crank in np.linspace(-np.pi, np.pi, 60):
        q = robot.close({"crank": crank})
        rod = {"rod": float(q[robot.joint_names.index("rod")])}
        try:
            closed = robot.close(rod, guess=q)
        except (ClosureError, InputError):
            continue  # a clear refusal is right at the dead point
        assert residual(mechanism, closed) < 1e-9
    assert time.process_time() - start < 10.0


@pytest.mark.parametrize("crank", [20.0, -45.0, 60.0, 99.0, 300.0])
@pytest.mark.parametrize("branch", [1, 2])
def test_a_crank_many_turns_from_home_is_on_the_branch_of_the_assembly(crank, branch):
    robot = four_bar(branch)
    start = time.process_time()
    far = coupler_side(robot, robot.close([crank, 0.0]))
    assert time.process_time() - start < 5.0
    assert far == coupler_side(robot, robot.close([1.0, 0.0]))


def test_a_follower_finds_its_cam_from_the_dead_point():
    """Home is the top of the cam, where the follower's rate says nothing of the cam's."""
    mechanism = MECHANISMS["cam"]
    q = mechanism.load().close({"follower-slide": 0.03})
    assert residual(mechanism, q) < 1e-12
    assert abs(q[0]) > 0.5


@pytest.mark.parametrize("crank", [1e3, -1e6, 1e12])
def test_absurd_positions_neither_hang_nor_lie(crank):
    robot, mechanism = four_bar(1), MECHANISMS["four_bar"]
    start = time.process_time()
    try:
        q = robot.close([crank, 0.0])
    except ClosureError:
        q = None
    assert time.process_time() - start < 5.0
    if q is not None:
        node = next(n for n in mechanism.tree().clusters if n.loop)
        assert np.abs(node.loop.residual(q[:3])).max() < 1e-9


def test_a_batch_is_closed_as_one_after_the_other():
    """Slow and fast motion, a jump, and the same position again."""
    robot = four_bar(1)
    crank = np.concatenate([np.linspace(0.0, 0.5, 300), np.linspace(0.5, 9.0, 60), [3.0, 3.0, 3.1]])
    path = np.column_stack([crank, np.sin(crank)])
    one_by_one = [robot.close(path[0])]
    for row in path[1:]:
        one_by_one.append(robot.close(row, one_by_one[-1]))
    np.testing.assert_allclose(robot.close(path), one_by_one, rtol=0, atol=1e-12)
    assert robot.close(path[:0]).shape == (0, robot.nq)
    spanning = np.array(one_by_one)
    np.testing.assert_allclose(robot.close(spanning), spanning, rtol=0, atol=1e-12)
    path[200, 0] = np.nan
    with pytest.raises(InputError, match="not finite"):
        robot.close(path)


def test_a_batch_is_closed_along_the_motion():
    robot = four_bar(1)
    path = np.column_stack([np.linspace(0.0, 2 * np.pi, 50), np.zeros(50)])
    closed = robot.close(path)
    assert closed.shape == (50, robot.nq)
    assert len({coupler_side(robot, q) for q in closed}) == 1
    np.testing.assert_allclose(np.diff(closed, axis=0), 0.0, atol=0.3)  # no jump


@pytest.mark.parametrize(("seed", "joint", "step"), [(57, 0, 0.01), (59, 4, -0.01), (39, 1, 0.01)])
def test_a_guess_may_not_jump(seed, joint, step):
    """Just out of reach of the guess, though in reach of another branch far away."""
    mechanism = closable(seed)
    robot = load_robot(mechanism.urdf, mechanism.loops)
    q = robot.tree.home
    y = robot.independent_position(q)
    with pytest.raises(ClosureError, match="only far from the guess, on another branch"):
        for _ in range(100):
            y[joint] += step
            q = robot.close(y, q)
    elsewhere = robot.close(y)
    assert np.abs(elsewhere - q)[robot.tree.curved].max() > 1.0

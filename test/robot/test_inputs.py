"""Arguments as users give them: what is refused, and by which name."""

import numpy as np
import pytest
from mechanism_table import MECHANISMS
from pinocchio_oracle import assert_close

from rbda_ros import DescriptionError, InputError, SingularityError, load_robot

ROBOT = MECHANISMS["four_bar"].load()  # floating base, one loop, one joint beside it
Q = ROBOT.tree.home
YD = np.linspace(0.1, 0.8, ROBOT.ny)
NAN = np.full(ROBOT.ny, np.nan)


def off_unit(q):
    q = q.copy()
    q[3:7] *= 1.1
    return q


def off_loop(q):
    q = q.copy()
    q[7] += 0.1
    return q


ANKLE = MECHANISMS["parallel_ankle"].load()
BALL_OFF_UNIT = ANKLE.tree.home.copy()
BALL_OFF_UNIT[3:7] *= 1.1  # left_ball

WRONG = {
    "q too short": (lambda: ROBOT.mass_matrix(Q[:-1]), r"q has shape \(10,\)"),
    "q of three axes": (lambda: ROBOT.mass_matrix(Q[None, None]), r"q has shape \(1, 1, 11\)"),
    "q a number": (lambda: ROBOT.mass_matrix(1.0), r"q has shape \(\)"),
    "q not numbers": (lambda: ROBOT.mass_matrix("home"), "q: 'home' is not an array of numbers"),
    "q text": (lambda: ROBOT.mass_matrix(Q.astype(str)), "(?s)q: .* is not an array of numbers"),
    "q complex": (lambda: ROBOT.mass_matrix(Q + 1j), "(?s)q: .* is not an array of numbers"),
    "q ragged": (lambda: ROBOT.mass_matrix([[1.0], [1.0, 2.0]]), "q: .* is not an array"),
    "q none": (lambda: ROBOT.mass_matrix(None), "q: None is not an array of numbers"),
    "q not finite": (lambda: ROBOT.mass_matrix(np.full(11, np.inf)), r"q\[0\] is not finite"),
    "q off unit": (lambda: ROBOT.mass_matrix(off_unit(Q)), "quaternion .* of floating_base .* 1.1"),
    "a guess off unit": (
        lambda: ROBOT.close(Q, off_unit(Q)),
        r"guess: the quaternion .* of floating_base .* 1\.1",
    ),
    "a guess of a batch off unit": (lambda: ROBOT.close([Q, Q], off_unit(Q)), "guess: the quat"),
    "closing off unit": (lambda: ROBOT.close(off_unit(Q)), "floating_base has length 1.1"),
    "closing a batch off unit": (
        lambda: ROBOT.close([Q, off_unit(Q)]),
        "floating_base has length 1.1",
    ),
    "closing a ball joint off unit": (
        lambda: ANKLE.close(BALL_OFF_UNIT),
        "quaternion .* has length 1.1",
    ),
    "q off the loop": (lambda: ROBOT.mass_matrix(off_loop(Q)), "q does not satisfy the loops"),
    "one of a batch off the loop": (
        lambda: ROBOT.mass_matrix([Q, off_loop(Q)]),
        "q does not satisfy the loops",
    ),
    "one of a batch off unit": (lambda: ROBOT.mass_matrix([Q, off_unit(Q)]), "has length 1.1"),
    "qd too long": (lambda: ROBOT.bias_force(Q, np.ones(99)), r"qd has shape \(99,\)"),
    "qd not finite": (lambda: ROBOT.bias_force(Q, NAN), r"qd\[0\] is not finite"),
    "ydd spanning": (
        lambda: ROBOT.inverse_dynamics(Q, YD, np.ones(ROBOT.nv)),
        r"ydd has shape \(10,\); four_bar needs \(8,\)",
    ),
    "ydd not finite": (lambda: ROBOT.inverse_dynamics(Q, YD, NAN), r"ydd\[0\] is not finite"),
    "tau too short": (lambda: ROBOT.forward_dynamics(Q, YD, [1.0]), r"tau has shape \(1,\)"),
    "tau not finite": (lambda: ROBOT.forward_dynamics(Q, YD, NAN), r"tau\[0\] is not finite"),
    "tau of actuators": (lambda: ROBOT.actuator_efforts(Q, [1.0]), "tau has shape"),
    "spanning tau": (lambda: ROBOT.generalized_force(Q, [1.0]), "spanning_tau has shape"),
    "batches that differ": (
        lambda: ROBOT.bias_force([Q, Q], [YD, YD, YD]),
        r"batches have different lengths: \[2, 3\]",
    ),
    "wrench on no link": (
        lambda: ROBOT.inverse_dynamics(Q, YD, YD, {"elbow": np.ones(6)}),
        "external_wrenches: four_bar has no link 'elbow'",
    ),
    "wrench too short": (
        lambda: ROBOT.forward_dynamics(Q, YD, YD, {"flag_link": np.ones(3)}),
        r"external_wrenches\['flag_link'\] has shape \(3,\)",
    ),
    "wrench not finite": (
        lambda: ROBOT.forward_dynamics(Q, YD, YD, {"flag_link": [0, 0, np.nan, 0, 0, 0]}),
        r"external_wrenches\['flag_link'\]\[2\] is not finite",
    ),
    "wrenches without names": (
        lambda: ROBOT.forward_dynamics(Q, YD, YD, [np.ones(6)]),
        "external_wrenches: .* does not map links",
    ),
    "wrenches in batches that differ": (
        lambda: ROBOT.forward_dynamics(
            Q, YD, YD, {"flag_link": np.ones((2, 6)), "frame": np.ones((3, 6))}
        ),
        "external_wrenches: batches of different lengths",
    ),
    "unknown frame": (lambda: ROBOT.frame_pose(Q, "hand"), "frame 'hand': .* no link 'hand'"),
    "frame of no name": (lambda: ROBOT.jacobian(Q, 7), "frame 7: give a link"),
    "frame with a bad offset": (
        lambda: ROBOT.frame_pose(Q, ("flag_link", (1.0, 2.0))),
        "xyz of frame flag_link has shape",
    ),
    "frame with a batch of offsets": (
        lambda: ROBOT.frame_pose(Q, ("flag_link", np.ones((2, 3)))),
        "xyz of frame flag_link",
    ),
    "frame with a bad rotation": (
        lambda: ROBOT.frame_pose(Q, ("flag_link", (0, 0, 0), (np.nan, 0, 0))),
        r"rpy of frame flag_link\[0\] is not finite",
    ),
    "frames of no kind": (lambda: ROBOT.operational_space_inertia(Q, None), "frames: None; give"),
    "no frames": (lambda: ROBOT.operational_space_inertia(Q, []), "frames: name at least one"),
    "batch of q": (
        lambda: ROBOT.operational_space_inertia([Q, Q], "frame"),
        "q: give one position, not a batch",
    ),
    "negative damping": (
        lambda: ROBOT.operational_space_inertia(Q, "frame", damping=-1.0),
        "damping is -1.0",
    ),
    "damping not finite": (
        lambda: ROBOT.operational_space_inertia(Q, "frame", damping=np.nan),
        "damping is nan",
    ),
    "damping no number": (
        lambda: ROBOT.operational_space_inertia(Q, "frame", damping="much"),
        "damping: 'much'",
    ),
    "unknown kernel": (lambda: ROBOT.kernel("dance"), "no kernel 'dance'"),
    "kernel without its frames": (lambda: ROBOT.kernel("jacobian"), "name its frames"),
    "unknown joint to close": (lambda: ROBOT.close({"elbow": 1.0}), "no moving joint elbow"),
    "a number to close": (lambda: ROBOT.close({1: 2.0}), "no moving joint 1; its joints"),
    "no operation to prepare": (lambda: ROBOT.prepare(3), "prepare: 3; give a name"),
    "two frames to prepare": (
        lambda: ROBOT.prepare(("jacobian", "frame", "frame")),
        r"prepare: \('jacobian', 'frame', 'frame'\); give",
    ),
    "too little to close": (lambda: ROBOT.close({"crank": 1.0}), "no position for flag"),
    "nothing to close the loop with": (lambda: ROBOT.close({"flag": 1.0}), "do not determine"),
    "joint position not finite": (
        lambda: ROBOT.close({"crank": np.nan, "flag": 0.0}),
        r"crank\[0\] is not finite",
    ),
    "joint position a batch": (
        lambda: ROBOT.close({"crank": [[1.0], [2.0]], "flag": 0.0}),
        "crank has shape",
    ),
    "guess too short": (lambda: ROBOT.close(Q, guess=[1.0]), "guess has shape"),
    "guess a batch": (lambda: ROBOT.close(Q, guess=[Q, Q]), "guess has shape"),
    "target no pose": (lambda: ROBOT.inverse_kinematics("frame", np.eye(3)), "target: give"),
    "target no numbers": (lambda: ROBOT.inverse_kinematics("frame", "up"), "target: 'up'"),
    "target not finite": (lambda: ROBOT.inverse_kinematics("frame", [np.nan] * 3), "target: give"),
    "target mirrored": (
        lambda: ROBOT.inverse_kinematics("frame", np.diag([-1.0, 1.0, 1.0, 1.0])),
        "target: .* is no rotation",
    ),
    "target of no rotation": (
        lambda: ROBOT.inverse_kinematics("frame", np.zeros((4, 4))),
        "target: .* is no rotation",
    ),
    "no tolerance": (
        lambda: ROBOT.inverse_kinematics("frame", [0, 0, 0], tolerance=0.0),
        "tolerance is 0.0",
    ),
    "guess of inverse kinematics": (
        lambda: ROBOT.inverse_kinematics("frame", [0, 0, 0], guess=[1.0]),
        "guess has shape",
    ),
}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_velocity_is_given_once():
    with pytest.raises(TypeError, match="yd"):
        ROBOT.inverse_dynamics(Q, qd=YD, yd=YD, ydd=YD)
    with pytest.raises(TypeError, match="qd"):
        ROBOT.inverse_dynamics(Q, YD, yd=YD, ydd=YD)
    expected = ROBOT.inverse_dynamics(Q, YD, YD)
    np.testing.assert_allclose(ROBOT.inverse_dynamics(Q, yd=YD, ydd=YD), expected, rtol=1e-12)


def test_facts_of_a_robot_cannot_be_overwritten():
    """A limit that was written changed limits checked later, and gravity seemed to change."""
    for array in (ROBOT.gravity, ROBOT.limits.lower, ROBOT.limits.effort):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize("gravity", ["down", (0, 0), (0, 0, np.nan), None])
def test_wrong_gravity_is_named(gravity):
    with pytest.raises(DescriptionError, match="gravity"):
        load_robot(MECHANISMS["gear"].urdf, gravity=gravity)


def test_nearly_unit_quaternions_are_normalized():
    rounded = Q.copy()
    rounded[3:7] = np.round([0.1, 0.2, 0.3, np.sqrt(1 - 0.14)], 4)
    exact = rounded.copy()
    exact[3:7] /= np.linalg.norm(exact[3:7])
    before = rounded.copy()
    assert_close(ROBOT.gravity_force(rounded), ROBOT.gravity_force(exact), 1e-14)
    assert np.array_equal(rounded, before)  # the caller's array is left alone


def test_lists_and_integers_will_do():
    robot = MECHANISMS["gear"].load()
    assert_close(robot.mass_matrix([1, 0]), robot.mass_matrix(np.array([1.0, 0.0])), 0.0)


def test_independent_and_spanning_inputs_agree():
    positions = [0, 1, 2, 3, 4, 5, 6, *(7 + ROBOT.joint_names.index(n)
                                        for n in ROBOT.independent_joint_names)]  # fmt: skip
    q = ROBOT.close(Q[positions])
    qd = ROBOT.spanning_velocity(q, YD)
    tau = ROBOT.inverse_dynamics(q, qd, YD)
    assert_close(ROBOT.inverse_dynamics(Q[positions], YD, YD), tau, 1e-9)
    spanning_tau = np.zeros(ROBOT.nv)
    spanning_tau[list(ROBOT.tree.independent)] = tau
    assert_close(ROBOT.forward_dynamics(q, qd, spanning_tau), YD, 1e-9)


@pytest.mark.parametrize("method", ["inverse_dynamics", "forward_dynamics"])
def test_batches_of_wrenches(method):
    call = getattr(ROBOT, method)
    rng = np.random.default_rng(1)
    flag, frame = rng.normal(size=(4, 6)), rng.normal(size=6)
    together = call(Q, YD, YD, {"flag_link": flag, "frame": frame})
    single = [call(Q, YD, YD, {"flag_link": row, "frame": frame}) for row in flag]
    assert_close(together, np.array(single), 1e-14)


def test_operational_space_of_a_link_without_inertia():
    robot = load_robot(
        """<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">
        <parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>"""
    )
    with pytest.raises(SingularityError, match="no inertia"):
        robot.operational_space_inertia([0.1], [("b", (1.0, 0.0, 0.0))])


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [(0, 1e15, r"q\[0\] is 1e\+15; give at most 1e\+12"), (1, 1e200, r"qd\[0\] is 1e\+200")],
)
def test_numbers_that_no_robot_has_are_refused_for_what_they_are(place, value, said):
    robot = MECHANISMS["gear"].load()
    state = [robot.tree.home.copy(), np.zeros(robot.ny), np.zeros(robot.ny)]
    state[place][0] = value
    with pytest.raises(InputError, match=said):
        robot.inverse_dynamics(*state)
    with pytest.raises(InputError, match=said):
        robot.forward_dynamics(*state)


def test_a_residual_that_is_no_number_is_refused():
    """The logarithm of a negative position is no residual, and passes no comparison."""
    profile = {"type": "expression", "equation": "log(cam) - `follower-slide`"}
    loops = {"constraints": [profile], "assembly": {"cam": 1.0}}
    robot = load_robot(MECHANISMS["cam"].urdf, loops)
    good = robot.close({"cam": 1.1, "tip": 0.0})
    robot.gravity_force(good)
    bad = good.copy()
    bad[robot.coordinates.scalar_positions["cam"]] = -1.0
    for q in (bad, np.array([good, bad])):
        with pytest.raises(InputError, match="does not satisfy the loops: residual nan"):
            robot.gravity_force(q)


def test_complex_positions_are_not_closed_without_their_imaginary_part():
    robot = MECHANISMS["four_bar"].load()
    for given in (np.array([0.1 + 1j]), robot.neutral() + 1j):
        with pytest.raises(InputError, match="is not an array of numbers"):
            robot.close(given)

"""The bundled leg: it loads both ways, closes over its range, and its torques are Pinocchio's."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import yaml
from pinocchio_oracle import PinocchioOracle, explicit_jacobian

from rbda_ros import load_robot

FOLDER = Path(__file__).parents[2] / "config/robots"
URDF, LOOPS = FOLDER / "demo_leg.urdf", FOLDER / "demo_leg_loops.yaml"
LEG = ("hip_abduction", "hip_flexion", "knee", "ankle")


@pytest.fixture(scope="module")
def leg():
    return load_robot(URDF, LOOPS)


@pytest.fixture(scope="module")
def open_chain():
    return load_robot(URDF)


@pytest.fixture(scope="module")
def oracle(leg, tmp_path_factory):
    """Pinocchio on the URDF with the loop file's rotors written into it by hand."""
    parts = []
    for name, rotor in yaml.safe_load(LOOPS.read_text())["rotors"].items():
        axis = (1, 0, 0) if name == "hip_abduction" else (0, 1, 0)
        spin = [rotor["inertia"] * x for x in axis]
        carrier = {"hip_abduction": "stand", "hip_flexion": "hip"}.get(name, "thigh")
        parts.append(
            f"<link name='{name}_rotor_link'><inertial><mass value='0'/>"
            f"<inertia ixx='{spin[0]}' iyy='{spin[1]}' izz='{spin[2]}' ixy='0' ixz='0' iyz='0'/>"
            f"</inertial></link><joint name='{name}_rotor' type='continuous'>"
            f"<parent link='{carrier}'/><child link='{name}_rotor_link'/>"
            f"<axis xyz='{axis[0]} {axis[1]} {axis[2]}'/></joint>"
        )
    urdf = tmp_path_factory.mktemp("leg") / "with_rotors.urdf"
    urdf.write_text(URDF.read_text().replace("</robot>", "".join(parts) + "</robot>"))
    return PinocchioOracle(urdf, leg)


def ranges(robot):
    limits = {joint.name: joint.limits for joint in robot.description.joints}
    return np.array([(limits[name].lower, limits[name].upper) for name in LEG])


def states(robot, count=20):
    """Positions (nq) within the limits, velocities (nv), accelerations (ny)."""
    rng = np.random.default_rng(4)
    lower, upper = ranges(robot).T
    for _ in range(count):
        q = robot.close(rng.uniform(lower, upper))
        yield q, robot.spanning_velocity(q, rng.normal(0.0, 3.0, 4)), rng.normal(0.0, 20.0, 4)


def test_loads_with_and_without_the_loop_file(leg, open_chain):
    assert leg.warnings == open_chain.warnings == ()
    assert leg.independent_joint_names == LEG
    assert leg.actuated_joint_names == (
        "hip_abduction_rotor", "hip_flexion_rotor", "knee_rotor", "ankle_pulley_rotor"
    )  # fmt: skip
    assert (leg.nq, leg.ny) == (10, 4)
    assert [len(cluster.joints) for cluster in leg.clusters] == [2, 2, 6]
    assert open_chain.joint_names == (*LEG, "ankle_pulley", "ankle_rod")
    assert all(cluster.constraints == () for cluster in open_chain.clusters)
    assert leg.mass == pytest.approx(open_chain.mass) == pytest.approx(5.22)


def test_is_assembled_at_zero(leg):
    np.testing.assert_allclose(leg.tree.home, 0.0, atol=1e-9)


def test_closes_over_its_range_on_one_branch_far_from_dead_points(leg):
    limits = {joint.name: joint.limits for joint in leg.description.joints}
    grid = [np.linspace(*bounds, 9) for bounds in ranges(leg)[2:]]
    pulley, rod = (leg.joint_names.index(name) for name in ("ankle_pulley", "ankle_rod"))
    for knee, ankle in itertools.product(*grid):
        q = leg.close([0.1, -0.2, knee, ankle])
        for k in (pulley, rod):
            bounds = limits[leg.joint_names[k]]
            assert bounds.lower < q[k] < bounds.upper
        # The pulley turns with the knee, and by 1.2 to 1.7 times the ankle.
        G = explicit_jacobian(leg, q)[pulley]
        assert G[2] == pytest.approx(1.0)
        assert 1.2 < G[3] < 1.7


def test_rotors_turn_as_their_ratios_say(leg):
    position = dict(zip(leg.joint_names, leg.close([0.3, -0.5, 1.1, 0.4]), strict=True))
    for name, rotor in yaml.safe_load(LOOPS.read_text())["rotors"].items():
        assert position[f"{name}_rotor"] == pytest.approx(rotor["ratio"] * position[name])


def test_every_joint_moves_as_its_positions_do(leg):
    """G against finite differences of the closed position."""
    y, step = np.array([0.1, -0.4, 1.0, 0.3]), 1e-6
    q = leg.close(y)
    differences = [(leg.close(y + e) - leg.close(y - e)) / (2 * step) for e in step * np.eye(4)]
    np.testing.assert_allclose(explicit_jacobian(leg, q), np.transpose(differences), atol=1e-7)


def test_inverse_dynamics_equals_pinocchio_projected(leg, oracle):
    for q, qd, ydd in states(leg):
        spanning = oracle.rnea(q, qd, leg.spanning_acceleration(q, qd, ydd))
        expected = explicit_jacobian(leg, q).T @ spanning
        np.testing.assert_allclose(leg.inverse_dynamics(q, qd, ydd), expected, 1e-10, 1e-9)


def test_open_chain_differs_by_the_share_of_rotors_and_linkage(leg, open_chain, oracle):
    """The share of pulley, rod and rotors, which the open chain lacks, comes back through G."""
    of_open = [leg.joint_names.index(name) for name in open_chain.joint_names]
    of_leg = [leg.joint_names.index(name) for name in LEG]
    others = [k for k in range(leg.nv) if k not in of_leg]
    for q, qd, ydd in states(leg, 5):
        qdd = leg.spanning_acceleration(q, qd, ydd)
        apart = open_chain.inverse_dynamics(q[of_open], qd[of_open], qdd[of_open])[:4]
        spanning = oracle.rnea(q, qd, qdd)
        # A rotor also weighs on the joints below it, by gyroscopic moments.
        carried = spanning[of_leg] - apart
        share = explicit_jacobian(leg, q)[others].T @ spanning[others]
        together = leg.inverse_dynamics(q, qd, ydd)
        np.testing.assert_allclose(together - apart, carried + share, 1e-9, 1e-9)
        assert np.all(np.abs(share) > 1e-3)


def test_motors_give_the_power_that_the_joints_take(leg):
    motors = [leg.joint_names.index(name) for name in leg.actuated_joint_names]
    for q, qd, ydd in states(leg):
        tau = leg.inverse_dynamics(q, qd, ydd)
        efforts = leg.actuator_efforts(q, tau)
        yd = qd[[leg.joint_names.index(name) for name in LEG]]
        assert efforts @ qd[motors] == pytest.approx(tau @ yd)

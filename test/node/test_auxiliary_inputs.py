"""Another implementation's answers through the services, and ours to the last bit."""

import numpy as np
import pytest
from geometry_msgs.msg import Point
from pinocchio_oracle import assert_close
from rbda_ros.srv import (
    DescribeModel,
    ForwardDynamics,
    InverseDynamics,
    MassMatrix,
    OperationalSpaceInertia,
)
from reference_data import NAMES as REFERENCE_NAMES
from reference_data import SHARED, reference
from ros_requests import set_six, six_of, state_of, wrench_on

from rbda_ros.node.services.in_place import for_client

# A linkage, and a floating base with gears.
NAMES = [name for name in ("four_bar", "mini_cheetah") if name in REFERENCE_NAMES]


@pytest.mark.skipif(not NAMES, reason="no ../shared/reference beside the project")
def test_services_equal_the_reference_and_the_robot_to_the_last_bit(graph, monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")  # else either side may be compiled by now, or not
    graph.serve()
    client = graph.client()
    for name in NAMES:
        ref = reference(name)
        publisher = client.describe((SHARED / ref.data["urdf_file"]).read_text())
        client.until(lambda ref=ref: model_name(client) == ref.robot.name)
        client.until_active()
        compare(client, ref, ref.load(ref.robot.tree.gravity))
        client.node.destroy_publisher(publisher)


def model_name(client):
    return client.call(DescribeModel, "~/describe_model").robot_name


def compare(client, ref, robot):
    """Every service at a few states of the reference."""
    base = 6 if robot.floating_base else 0
    for state in ref.states[:3]:
        asked = state_of(robot, ref.position(state), ref.velocity(state))
        q = np.array(asked.position)
        q = robot.close(dict(zip(robot.joint_names, q, strict=True)))
        if base:
            q[:7] = ref.position(state)[:7]
        yd = ref.velocity(state)[list(robot.tree.independent)]

        ydd = ref.independent(state["id_ydd_in"])
        efforts, tau = robot.inverse_dynamics_efforts(q, yd, ydd)
        answer = inverse_dynamics(client, robot, asked, ydd)
        found = [*six_of(answer.base_wrench.force, answer.base_wrench.torque)[:base]]
        assert [*found, *answer.effort] == [*tau[:base], *efforts]
        assert_close(np.array([*found, *answer.effort]), ref.independent(state["id_tau"]), 1e-9)

        tau = ref.independent(state["tau"])
        request = ForwardDynamics.Request(state=asked, effort=tau[base:].tolist())
        if base:
            request.external_wrenches = [wrench_on(robot.clusters[0].name, tau[:6])]
        answer = client.call(ForwardDynamics, "~/forward_dynamics", request)
        assert answer.success, answer.message
        of_base = answer.base_acceleration
        found = [*six_of(of_base.linear, of_base.angular)[:base], *answer.acceleration]
        assert_close(np.array(found), ref.acceleration(state), 1e-9)

        answer = client.call(MassMatrix, "~/mass_matrix", MassMatrix.Request(state=asked))
        assert answer.success, answer.message
        assert list(answer.mass_matrix.data) == robot.mass_matrix(q).ravel().tolist()
        assert list(answer.bias) == robot.bias_force(q, yd).tolist()
        assert list(answer.gravity) == robot.gravity_force(q).tolist()
        if base:
            assert answer.mass_matrix.row_names[0] == f"{robot.clusters[0].name}.x"
        H = ref.matrix(state["H"])
        assert_close(np.array(answer.mass_matrix.data).reshape(H.shape), H, 1e-9, np.abs(H).max())
        assert_close(np.array(answer.bias), ref.independent(state["C"]), 1e-9)

        points = ref.end_effectors
        request = OperationalSpaceInertia.Request(state=asked)
        request.frames = [point["body"] for point in points]
        request.offsets = [
            Point(**dict(zip("xyz", p["local_offset"], strict=True))) for p in points
        ]
        answer = client.call(OperationalSpaceInertia, "~/operational_space_inertia", request)
        assert answer.success, answer.message
        frames = [(point["body"], point["local_offset"]) for point in points]
        space = robot.operational_space_inertia(q, frames)
        assert list(answer.inverse_inertia.data) == space.inverse_inertia.ravel().tolist()
        assert list(answer.inertia.data) == space.inertia.ravel().tolist()


def inverse_dynamics(client, robot, asked, ydd):
    """Ask with accelerations of the independent joints; the others are not read."""
    request = InverseDynamics.Request(state=asked)
    base = 6 if robot.floating_base else 0
    if base:
        set_six(request.base_acceleration, ydd[:6])
    wanted = dict(zip(robot.independent_joint_names, ydd[base:].tolist(), strict=True))
    request.acceleration = [wanted.get(name, 0.0) for name in robot.joint_names]
    answer = client.call(InverseDynamics, "~/inverse_dynamics", request)
    assert answer.success, answer.message
    return answer


@pytest.mark.parametrize("client_type", [for_client, lambda kind: kind], ids=["in place", "plain"])
def test_machine_code_on_both_sides_gives_the_same_to_the_last_bit(leg, client_type):
    client, _, robot = leg
    assert robot.kernel("inverse_dynamics").compile()
    assert robot.kernel("actuator_efforts").compile()
    kind = client_type(InverseDynamics)
    service = client.node.create_client(kind, "dynamics/inverse_dynamics")
    client.until(service.service_is_ready)
    client.spin(0.2)
    rng = np.random.default_rng(6)

    def ask(y, yd, ydd):
        request = kind.Request()
        request.state.position, request.state.velocity = y.tolist(), yd.tolist()
        request.acceleration = ydd.tolist()
        future = service.call_async(request)
        client.until(future.done)
        assert future.result().success, future.result().message
        return list(future.result().effort)

    def expected(*motion):
        y, *rates = motion
        return robot.inverse_dynamics_efforts(robot.close(y), *rates)[0].tolist()

    for _ in range(50):
        motion = rng.uniform(-0.3, 0.3, (3, robot.ny))
        # Once both sides have compiled what closes the loops, too.
        client.until(lambda motion=motion: ask(*motion) == expected(*motion))
    client.node.destroy_client(service)

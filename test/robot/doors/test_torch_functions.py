"""Operations in PyTorch: values, autograd, torch.func, precision, and rejected tensors."""

from __future__ import annotations

import numpy as np
import pytest
from door_samples import arguments_of, dead_point, method_results, options_of
from mechanism_table import MECHANISMS, closed_states

from rbda_ros import InputError, Robot, SingularityError
from rbda_ros.robot.operations import OPERATIONS

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install rbda_ros[torch]")
forward_ad = torch.autograd.forward_ad
NAMES = ("differential", "four_bar", "parallel_ankle")


def sample(robot: Robot, name: str, count: int = 3, dtype: object = torch.float64) -> list:
    """Independent positions (where there are), and random vectors."""
    states = closed_states(MECHANISMS[name], count)
    y = np.array([robot.independent_position(robot.state(q).q) for q in states])
    rng = np.random.default_rng(0)
    arrays = [y, *rng.normal(size=(2, count, robot.ny))]
    return [torch.tensor(x, dtype=dtype, requires_grad=True) for x in arrays]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_gives_the_values_of_its_method(operation: str) -> None:
    robot = MECHANISMS["four_bar"].load()
    given = arguments_of("four_bar", operation, 2)
    found = robot.torch(operation, **options_of(robot, operation))(*map(torch.tensor, given))
    found = found if isinstance(found, tuple) else (found,)
    for k, row in enumerate(zip(*given, strict=True)):
        for one, other in zip(found, method_results(robot, operation, row), strict=True):
            scale = max(1.0, np.abs(other).max())
            np.testing.assert_allclose(one[k], other, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("operation", ["forward_dynamics", "inverse_dynamics"])
def test_autograd_is_exact_to_second_order(name: str, operation: str) -> None:
    robot = MECHANISMS[name].load()
    given = sample(robot, name, 2)
    function = robot.torch(operation)
    tolerance = 1e-7 * max(1.0, float(function(*given).detach().abs().max()))
    if robot.floating_base:  # quaternions move on a sphere: differences of these need a chart
        base, joints = given[0].detach()[:, :7], given[0].detach()[:, 7:].requires_grad_()

        def of_joints(joints, *others):
            return function(torch.cat([base, joints], dim=-1), *others)

        given[0] = joints
    else:
        of_joints = function
    assert torch.autograd.gradcheck(
        of_joints, tuple(given), atol=tolerance, rtol=1e-7, check_forward_ad=True
    )
    if operation == "inverse_dynamics":
        assert torch.autograd.gradgradcheck(of_joints, tuple(given), atol=1e-5, rtol=1e-5)


def test_torch_func_gives_the_derivatives_of_the_method() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    function = robot.torch("forward_dynamics")
    y, yd, tau = (x.detach() for x in sample(robot, "parallel_ankle"))
    expected = robot.forward_dynamics_derivatives(y.numpy(), yd.numpy(), tau.numpy())
    scale = float(np.abs(expected.position).max())
    for derivative in (torch.func.jacrev, torch.func.jacfwd):
        by_y, by_tau = torch.func.vmap(derivative(function, argnums=(0, 2)))(y, yd, tau)
        np.testing.assert_allclose(by_y, expected.position, rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(by_tau, expected.force, rtol=0, atol=1e-9 * scale)
    _, tangent = torch.func.jvp(lambda tau: function(y, yd, tau), (tau,), (torch.ones_like(tau),))
    np.testing.assert_allclose(tangent, expected.force.sum(axis=-1), rtol=0, atol=1e-9 * scale)
    one = torch.func.vmap(function, in_dims=(0, None, 1))(y, yd[0], tau.T.contiguous())
    np.testing.assert_allclose(one, function(y, yd[:1], tau), rtol=1e-12)


def test_leading_axes_are_broadcast() -> None:
    robot = MECHANISMS["four_bar"].load()
    y, yd, tau = (x.detach() for x in sample(robot, "four_bar", 6))
    function = robot.torch("forward_dynamics")
    grid = function(y.reshape(2, 3, -1), yd[:3], tau[0])
    assert grid.shape == (2, 3, robot.ny)
    expected = robot.forward_dynamics(y[4].numpy(), yd[1].numpy(), tau[0].numpy())
    np.testing.assert_allclose(grid[1, 1], expected, rtol=1e-12)
    assert function(y[:0], yd[:0], tau[:0]).shape == (0, robot.ny)


def test_velocities_and_forces_of_all_joints_are_read() -> None:
    robot = MECHANISMS["four_bar"].load()
    y, yd, _ = (x.detach() for x in sample(robot, "four_bar", 1))
    q = torch.tensor(robot.close(y[0].numpy()))
    qd = torch.tensor(robot.spanning_velocity(q.numpy(), yd[0].numpy()))
    tau = torch.randn(robot.nv, dtype=torch.float64, requires_grad=True)
    found = robot.torch("forward_dynamics")(q=q, qd=qd, tau=tau)
    expected = robot.forward_dynamics(q.numpy(), qd.numpy(), tau.detach().numpy())
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-12)
    (by_tau,) = torch.autograd.grad(found.sum(), tau)
    third = robot.forward_dynamics_derivatives(q.numpy(), qd.numpy(), tau.detach().numpy()).force
    spread = [robot.generalized_force(q.numpy(), each) for each in np.eye(robot.nv)]
    np.testing.assert_allclose(by_tau, np.array(spread) @ third.sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_is_computed_in_double(name: str) -> None:
    robot = MECHANISMS[name].load()
    function = robot.torch("inverse_dynamics")
    given = sample(robot, name, dtype=torch.float32)
    found = function(*given)
    assert found.dtype == torch.float32
    found.sum().backward()
    assert all(x.grad.dtype == torch.float32 for x in given)
    double = [x.detach().double().requires_grad_() for x in given]
    function(*double).sum().backward()
    for one, other in zip(given, double, strict=True):
        scale = max(1.0, float(other.grad.abs().max()))
        np.testing.assert_allclose(one.grad, other.grad, atol=1e-6 * scale)
    spanning = torch.tensor(robot.neutral(), dtype=torch.float32)
    function(spanning, given[1][0], given[2][0])  # within rounding of the loops


def test_wrenches_act_and_have_gradients() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    link = robot.links[-1]
    y, yd, tau = (x.detach() for x in sample(robot, "parallel_ankle"))
    wrenches = torch.randn(3, 1, 6, dtype=torch.float64, requires_grad=True)
    function = robot.torch("forward_dynamics", external_wrenches=(link,), friction=True)
    found = function(y, yd, tau, wrenches)
    by_link = {link: wrenches.detach().numpy()[:, 0]}
    expected = robot.forward_dynamics(y.numpy(), yd.numpy(), tau.numpy(), by_link, friction=True)
    np.testing.assert_array_equal(found.detach(), expected)
    assert torch.autograd.gradcheck(lambda w: function(y, yd, tau, w), (wrenches,), atol=1e-5)


@pytest.mark.parametrize("operation", ["inverse_dynamics", "forward_dynamics"])
def test_parameters_have_gradients(operation: str) -> None:
    """Values are those with friction; derivatives follow from the regressor."""
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, x = (each.detach() for each in sample(robot, "parallel_ankle"))
    known = robot.parameters()
    parameters = torch.tensor(known.values, requires_grad=True)
    function = robot.torch(operation, parameters=True)
    found = function(y, yd, x, parameters)
    arrays = y.numpy(), yd.numpy(), x.numpy()
    expected = getattr(robot, operation)(*arrays, friction=True)
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-9, atol=1e-9)
    Y = robot.regressor(*arrays[:2], x.numpy() if operation == "inverse_dynamics" else expected)
    if operation == "forward_dynamics":  # H dydd + Y dp = 0
        Y = -np.linalg.solve(robot.mass_matrix(y.numpy()), Y)
    jacobian = torch.func.jacrev(lambda p: function(y, yd, x, p))(parameters.detach())
    scale = max(1.0, np.abs(Y).max())
    np.testing.assert_allclose(jacobian, Y, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.numpy(), "q is a ndarray; give a torch.Tensor"),
        (lambda x: x.half(), "q is of torch.float16; give float64 or float32"),
        (lambda x: x.cfloat(), "q is of torch.complex64; give float64 or float32"),
        (lambda x: x.long(), "q is of torch.int64; give float64 or float32"),
        (lambda x: x.to("meta"), "q is on meta; move it to the CPU"),
        (lambda x: x.to_sparse(), "q is torch.sparse_coo; give a dense tensor"),
        (lambda x: torch.nested.nested_tensor(list(x)), "q is nested; give a dense tensor"),
        (lambda x: x[0, 0], "q has shape"),
        (lambda x: x[..., :1], "q has shape"),
        (lambda x: x.float(), "the tensors differ in type"),
        (lambda x: x * torch.nan, "is not finite"),
        (lambda x: torch.cat([x, x])[:5], "cannot be broadcast"),
    ],
)
def test_bad_tensors_are_rejected(change, message: str) -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, tau = (x.detach() for x in sample(robot, "parallel_ankle"))
    with pytest.raises(InputError, match=message):
        robot.torch("forward_dynamics")(change(y), yd, tau)


def test_positions_off_the_loops_and_dead_points_are_rejected() -> None:
    robot = MECHANISMS["slider_crank"].load()
    function, zero = robot.torch("mass_matrix"), torch.zeros(1, dtype=torch.float64)
    q = torch.tensor(robot.neutral())
    with pytest.raises(InputError, match="does not satisfy the loops"):
        function(q + 0.1)
    with pytest.raises(InputError, match="does not satisfy the loops"):
        function(q.float() + 0.1)
    with pytest.raises(InputError, match="takes q, qd, tau"):
        robot.torch("forward_dynamics")(q, zero)
    robot, dead = dead_point()
    with pytest.raises(SingularityError, match="dead point"):
        robot.torch("mass_matrix")(torch.tensor(dead))


def test_parameters_are_an_argument_of_the_dynamics_alone() -> None:
    with pytest.raises(InputError, match="parameters=True is only for"):
        MECHANISMS["gear"].load().torch("mass_matrix", parameters=True)


def test_parameters_without_inertia_are_an_error() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, tau = (each.detach() for each in sample(robot, "parallel_ankle"))
    nothing = torch.zeros(len(robot.parameters().values), dtype=torch.float64)
    with pytest.raises(SingularityError, match="mass matrix of these parameters is singular"):
        robot.torch("forward_dynamics", parameters=True)(y, yd, tau, nothing)


def test_parameters_are_taken_in_single_precision() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, x = (each.detach().float() for each in sample(robot, "parallel_ankle"))
    parameters = torch.tensor(robot.parameters().values, dtype=torch.float32)
    found = robot.torch("inverse_dynamics", parameters=True)(y, yd, x, parameters)
    assert found.dtype == torch.float32
    expected = robot.inverse_dynamics(y.numpy(), yd.numpy(), x.numpy(), friction=True)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("operation", ["inverse_dynamics", "forward_dynamics"])
def test_parameters_that_are_not_finite_are_an_error(operation: str) -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    given = [each.detach() for each in sample(robot, "parallel_ankle")]
    values = torch.tensor(robot.parameters().values)
    function = robot.torch(operation, parameters=True)
    with pytest.raises(InputError, match=r"parameters\[3\] is not finite"):
        function(*given, values.index_fill(0, torch.tensor(3), torch.nan))
    with pytest.raises(InputError, match=r"parameters\[0\] is not finite"):
        torch.func.vmap(function)(*given, (values * torch.inf).expand(3, -1))


def test_derivatives_that_are_not_finite_are_an_error() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, tau = sample(robot, "parallel_ankle")
    function = robot.torch("forward_dynamics")
    with pytest.raises(SingularityError, match="vjp_forward_dynamics is not finite"):
        (function(y, yd, tau) * torch.nan).sum().backward()
    y, yd, tau = (x.detach() for x in (y, yd, tau))
    with pytest.raises(SingularityError, match="jvp_forward_dynamics is not finite"):
        torch.func.jvp(lambda x: function(y, x, tau), (yd,), (yd * torch.inf,))


def test_no_states_have_gradients_of_every_shape() -> None:
    robot = MECHANISMS["four_bar"].load()
    q = torch.zeros(2, 0, robot.nq, dtype=torch.float64, requires_grad=True)
    H = robot.torch("mass_matrix")(q)
    assert H.shape == (2, 0, robot.ny, robot.ny)
    assert torch.autograd.grad(H.sum(), q)[0].shape == q.shape


@pytest.mark.parametrize("in_forward_mode", [False, True])
def test_tensors_in_any_order_of_memory_are_read(in_forward_mode: bool) -> None:
    """Also with forward-mode derivatives while nothing is recorded."""
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, tau = (x.detach() for x in sample(robot, "parallel_ankle"))
    q = torch.tensor(robot.close(y.numpy()))
    function = robot.torch("forward_dynamics")
    strided = [x.T.contiguous().T for x in (q, yd, tau)]
    strided[1] = torch.complex(yd, -yd).conj().imag  # a view with another sign
    if not in_forward_mode:
        torch.testing.assert_close(function(*strided), function(q, yd, tau), rtol=0, atol=0)
        return
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(strided[2], torch.ones_like(tau))
        tangent = forward_ad.unpack_dual(function(*strided[:2], dual)).tangent
    expected = robot.forward_dynamics_derivatives(q.numpy(), yd.numpy(), tau.numpy()).force
    np.testing.assert_allclose(tangent, expected.sum(axis=-1), rtol=1e-9, atol=1e-9)


def test_a_function_tells_the_shapes_that_it_takes() -> None:
    robot = MECHANISMS["slider_crank"].load()
    text = repr(robot.torch("forward_dynamics"))
    assert "forward_dynamics(q (..., 3) or (..., 1), qd (..., 1) or (..., 3)" in text
    assert "-> ydd (..., 1) of 'slider_crank'" in text

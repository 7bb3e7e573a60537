"""Operations in JAX: values, jit, vmap, derivatives, precision, and rejected arrays."""

from __future__ import annotations

import numpy as np
import pytest
from door_samples import arguments_of, dead_point, method_results, options_of
from mechanism_table import MECHANISMS, closed_states

from rbda_ros import InputError, Robot, SingularityError
from rbda_ros.robot.operations import OPERATIONS

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install rbda_ros[jax]")
import jax.numpy as jnp  # noqa: E402

from rbda_ros.robot.doors import jax_calls  # noqa: E402

NAMES = ("differential", "four_bar", "parallel_ankle")


@pytest.fixture(autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def sample(robot: Robot, name: str, count: int = 3, dtype: object = np.float64) -> list:
    states = closed_states(MECHANISMS[name], count)
    y = np.array([robot.independent_position(robot.state(q).q) for q in states])
    rng = np.random.default_rng(0)
    return [jnp.array(x, dtype) for x in (y, *rng.normal(size=(2, count, robot.ny)))]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_gives_the_values_of_its_method(operation: str) -> None:
    robot = MECHANISMS["four_bar"].load()
    given = [each[0] for each in arguments_of("four_bar", operation, 1)]
    function = jax.jit(robot.jax(operation, **options_of(robot, operation)))
    for _ in range(2):  # the engine answers the second call
        found = function(*given)
        found = found if isinstance(found, tuple) else (found,)
        for one, other in zip(found, method_results(robot, operation, given), strict=True):
            scale = max(1.0, np.abs(other).max())
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_method(name: str) -> None:
    """With a floating base, those by the joints: its quaternion has another size than its twist."""
    robot = MECHANISMS[name].load()
    y, yd, tau = sample(robot, name)
    function = robot.jax("forward_dynamics")
    expected = robot.forward_dynamics_derivatives(*map(np.asarray, (y, yd, tau)))
    base = 6 if robot.floating_base else 0
    scale = np.abs(expected.position).max()
    for derivative in (jax.jacrev, jax.jacfwd):
        found = jax.jit(jax.vmap(derivative(function, argnums=(0, 1, 2))))(y, yd, tau)
        joints = found[0][..., 7:] if base else found[0]
        wanted = expected.position[..., base:], expected.velocity, expected.force
        for one, other in zip((joints, *found[1:]), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * scale)


def test_gradients_are_central_differences_and_second_derivatives_agree() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, tau = (x[0] for x in sample(robot, "parallel_ankle"))
    function = robot.jax("inverse_dynamics")

    def cost(y):
        return (function(y, yd, tau) ** 2).sum()

    step = 1e-5
    differences = [(cost(y + d) - cost(y - d)) / (2 * step) for d in step * jnp.eye(robot.ny)]
    scale = float(abs(cost(y)))
    np.testing.assert_allclose(jax.grad(cost)(y), jnp.stack(differences), atol=1e-7 * scale)
    hessians = [jax.hessian(cost)(y), jax.jacrev(jax.grad(cost))(y), jax.jacfwd(jax.grad(cost))(y)]
    np.testing.assert_allclose(hessians[0], hessians[1], rtol=1e-9)
    np.testing.assert_allclose(hessians[0], hessians[2], rtol=1e-9)
    np.testing.assert_allclose(hessians[0], hessians[0].T, rtol=1e-9)


def test_axes_are_mapped_and_broadcast() -> None:
    robot = MECHANISMS["four_bar"].load()
    y, yd, tau = sample(robot, "four_bar", 6)
    function = robot.jax("forward_dynamics")
    grid = function(y.reshape(2, 3, -1), yd[:3], tau[0])
    assert grid.shape == (2, 3, robot.ny)
    mapped = jax.vmap(function, in_axes=(0, None, 1))(y[:3], yd[1], tau[:3].T)
    np.testing.assert_allclose(mapped, function(y[:3], yd[1], tau[:3]), rtol=1e-12)


def test_single_precision_needs_no_double() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    double = sample(robot, "parallel_ankle")
    function = robot.jax("inverse_dynamics")

    def cost(y, yd, ydd):
        return function(y, yd, ydd).sum()

    expected = jax.grad(cost)(*double)
    jax.config.update("jax_enable_x64", False)
    single = sample(robot, "parallel_ankle", dtype=np.float32)
    found = jax.jit(jax.grad(cost))(*single)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    spanning = jnp.array(robot.neutral(), np.float32)
    assert function(spanning, single[1][0], single[2][0]).dtype == np.float32


def test_parameters_have_gradients() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, x = sample(robot, "parallel_ankle")
    values = robot.parameters().values
    forward = robot.jax("forward_dynamics", parameters=True)
    expected = robot.forward_dynamics(*map(np.asarray, (y, yd, x)), friction=True)
    np.testing.assert_allclose(forward(y, yd, x, values), expected, rtol=1e-9)
    inverse = robot.jax("inverse_dynamics", parameters=True)
    found = jax.jacrev(lambda p: inverse(y, yd, x, p))(jnp.array(values))
    Y = robot.regressor(*map(np.asarray, (y, yd, x)))
    np.testing.assert_allclose(found, Y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: "text", "q is a str; give an array"),
        (lambda x: None, "q is a NoneType; give an array"),
        (lambda x: x.astype(jnp.int32), "q is of int32; give float64 or float32"),
        (lambda x: x.astype(jnp.bfloat16), "q is of bfloat16; give float64 or float32"),
        (lambda x: x + 0j, "q is of complex128; give float64 or float32"),
        (lambda x: x[..., :1], "q has shape"),
        (lambda x: x.astype(jnp.float32), "the arrays differ in type"),
        (lambda x: jnp.concatenate([x, x])[:5], "cannot be broadcast"),
        (lambda x: x * jnp.nan, "is not finite"),
    ],
)
def test_bad_arrays_are_rejected(change, message: str) -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, tau = sample(robot, "parallel_ankle")
    with pytest.raises(InputError, match=message):
        robot.jax("forward_dynamics")(change(y), yd, tau)


def test_compiled_code_raises_with_the_same_text() -> None:
    robot = MECHANISMS["slider_crank"].load()
    function = jax.jit(robot.jax("mass_matrix"))
    with pytest.raises(Exception, match="does not satisfy the loops"):
        function(jnp.array(robot.neutral()) + 0.1).block_until_ready()
    robot, dead = dead_point()
    function = robot.jax("mass_matrix")
    with pytest.raises(SingularityError, match="dead point"):
        function(jnp.array(dead))
    with pytest.raises(Exception, match=r"SingularityError.*dead point"):
        jax.jit(function)(jnp.array(dead)).block_until_ready()


@pytest.mark.parametrize("name", ["differential", "slider_crank"])
def test_the_engine_answers_compiled_code_from_the_second_call_on(name: str, monkeypatch) -> None:
    robot = MECHANISMS[name].load()
    y, yd, tau = sample(robot, name, 5)
    q = jnp.array(robot.close(np.asarray(y)))
    function = robot.jax("forward_dynamics")
    both = jax.jit(jax.value_and_grad(lambda *x: (function(*x) ** 2).sum(), argnums=(0, 1, 2)))
    first = jax.block_until_ready(both(q, yd, tau))
    on_host = jax_calls._on_host
    monkeypatch.setattr(jax_calls, "_on_host", None)  # so that Python cannot
    again = jax.block_until_ready(both(q, yd, tau))
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(first), strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(jax_calls, "_on_host", on_host)
    with pytest.raises(Exception, match="is not finite"):
        jax.block_until_ready(both(q.at[2, 0].set(jnp.nan), yd, tau))
    if name == "slider_crank":
        with pytest.raises(Exception, match="does not satisfy the loops"):
            jax.block_until_ready(jax.jit(function)(q.at[..., -1].add(0.1), yd, tau))


def test_parameters_without_inertia_are_an_error_also_in_compiled_code() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, tau = sample(robot, "parallel_ankle", 1)
    function = robot.jax("forward_dynamics", parameters=True)
    nothing = jnp.zeros(len(robot.parameters().values))
    with pytest.raises(InputError, match=r"ydd.* is not finite"):
        function(y, yd, tau, nothing)
    with pytest.raises(Exception, match=r"InputError: ydd.* is not finite"):
        jax.jit(function)(y, yd, tau, nothing).block_until_ready()


@pytest.mark.parametrize("is_spanning", [False, True])
def test_parameters_are_taken_in_single_precision(is_spanning: bool) -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, x = map(np.asarray, sample(robot, "parallel_ankle"))
    q = robot.close(y) if is_spanning else y
    expected = robot.inverse_dynamics(q, yd, x, friction=True)
    function = robot.jax("inverse_dynamics", parameters=True)
    given = [jnp.array(each, np.float32) for each in (q, yd, x, robot.parameters().values)]
    for transformed in (function, jax.jit(function)):
        found = transformed(*given)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("operation", ["inverse_dynamics", "forward_dynamics"])
def test_parameters_that_are_not_finite_are_an_error_also_in_compiled_code(operation: str) -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    given = sample(robot, "parallel_ankle", 2)
    function = robot.jax(operation, parameters=True)
    values = jnp.array(robot.parameters().values).at[3].set(jnp.nan)
    with pytest.raises(InputError, match=r"parameters\[3\] is not finite"):
        function(*given, values)
    compiled = jax.jit(function)
    for _ in range(2):  # the second call is the engine's, if it can answer
        with pytest.raises(Exception, match=r"InputError: parameters\[3\] is not finite"):
            compiled(*given, values).block_until_ready()


def test_derivatives_that_are_not_finite_are_an_error_also_in_compiled_code() -> None:
    robot = MECHANISMS["parallel_ankle"].load()
    y, yd, tau = sample(robot, "parallel_ankle")
    function = robot.jax("forward_dynamics")

    def product(w):
        return jax.vjp(lambda x: function(y, x, tau), yd)[1](w)

    with pytest.raises(SingularityError, match="vjp_forward_dynamics is not finite"):
        product(tau * jnp.nan)
    with pytest.raises(Exception, match=r"SingularityError.*vjp_forward_dynamics is not finite"):
        jax.block_until_ready(jax.jit(product)(tau * jnp.nan))


def test_no_states_have_gradients_of_every_shape() -> None:
    robot = MECHANISMS["four_bar"].load()
    H, q = robot.jax("mass_matrix"), jnp.zeros((2, 0, robot.nq))
    assert H(q).shape == (2, 0, robot.ny, robot.ny)
    for transformed in (lambda f: f, jax.jit):
        assert transformed(jax.grad(lambda q: H(q).sum()))(q).shape == q.shape


@pytest.mark.parametrize("name", ["slider_crank", "parallel_ankle"])
def test_large_batches_in_compiled_loops(name: str) -> None:
    """Steps of a simulation inside ``scan``: the same numbers as with the method."""
    robot = MECHANISMS[name].load()
    y, yd, tau = (jnp.repeat(x, 700, axis=0) for x in sample(robot, name))
    function, h = robot.jax("forward_dynamics"), 1e-3

    @jax.jit
    def moved(y, yd):
        def step(state, _):
            y, yd = state
            yd = yd + h * function(y, yd, tau)
            return (y + h * yd, yd), None

        return jax.lax.scan(step, (y, yd), length=5)[0]

    found = moved(y, yd)
    y, yd, tau = map(np.asarray, (y, yd, tau))
    for _ in range(5):
        yd = yd + h * robot.forward_dynamics(y, yd, tau)
        y = y + h * yd
    np.testing.assert_allclose(found[0], y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[1], yd, rtol=1e-12, atol=1e-12)


def test_code_for_other_devices_brings_numbers_to_the_cpu() -> None:
    from rbda_ros.robot.doors.jax_calls import _traced

    robot = MECHANISMS["slider_crank"].load()
    given = sample(robot, "slider_crank")
    layout = robot.jax("forward_dynamics")._layout
    (found,) = jax.jit(lambda *x: _traced(*x, function=layout.independent))(*given)
    expected = robot.forward_dynamics(*map(np.asarray, given))
    np.testing.assert_array_equal(found, expected)


def test_compiled_code_of_another_process_is_an_error() -> None:
    from rbda_ros.robot.doors.jax_calls import INTERNAL, _evaluate_buffers

    code, text = _evaluate_buffers(1, (), ())
    assert code == INTERNAL and "another process" in text

"""Steps with friction beside Pinocchio's ADMM: from state to velocity, and the solver alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pinocchio as pin

from benchmark.calls import Row, _row
from benchmark.contacts import CASSIE_FEET, FEET, cassie_pair
from benchmark.robots import Pair, example_pairs
from rbda_ros import FrictionalStep, FrictionContact
from rbda_ros.robot.friction_contacts import Rows, SolverSettings, solve_cones

CORNERS = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.06, 0.06)]
FRICTION, DT, TOLERANCE = 0.7, 1e-3, 1e-9


def friction() -> Iterator[Row]:
    """Robots on feet with friction, forward, against Pinocchio's ADMM."""
    for both in example_pairs():
        if both.name not in FEET:
            continue
        points = CORNERS if both.name.startswith("talos") else [(0.0, 0.0, 0.0)]
        contacts = [
            FrictionContact(foot, xyz, friction=FRICTION)
            for foot in FEET[both.name]
            for xyz in points
        ]
        yield from _case(both, contacts, [])
    both, ends = cassie_pair()
    feet = [FrictionContact(contact.link, friction=FRICTION) for contact in CASSIE_FEET]
    yield from _case(both, feet, ends)


def _case(both: Pair, contacts: list[FrictionContact], cuts: list[tuple]) -> Iterator[Row]:
    """The step from state to velocity; the solver alone on the problem of both libraries."""
    robot = both.robot
    q, yd = both.ours[0], 0.1 * both.ours[1]
    tau = np.zeros(robot.ny)
    options = {"joint_limits": False, "joint_friction": False, "tolerance": TOLERANCE}
    ours = partial(robot.frictional_step, q, yd, tau, contacts, DT, **options)
    step = ours()
    for kernel in robot.traced_kernels():
        kernel.compile()
    theirs, delassus, g = _pinocchio(both, contacts, cuts, yd)
    name = f"{both.name}, {len(contacts)} contacts" + (f", {len(cuts)} loops" if cuts else "")
    after, impulses = theirs()
    if np.abs(step.yd[:6] - after[:6]).max() > 1e-5:  # theirs comes no nearer
        raise AssertionError(
            f"{name}: Pinocchio's base moves at {after[:6]}, ours at {step.yd[:6]}"
        )
    kinds = "e" * 3 * len(cuts) + "c" * len(contacts)
    misses = {
        "ours_misses": f"{max(step.cone_violation, step.complementarity):.0e}",
        "peer_misses": _misses(kinds, delassus, g, impulses),
    }
    row = _row("step with friction", name, "pin.ADMM", {"ours": ours, "theirs": theirs})
    yield row | misses

    coefficients = np.array([0.0] * 3 * len(cuts) + [FRICTION] * len(contacts))
    settings = SolverSettings(TOLERANCE, 500)
    problem = delassus, g, coefficients, np.zeros(len(g)), settings
    solver = partial(solve_cones, kinds, *problem)
    alone = _admm(both, contacts, cuts, delassus, g)
    misses = {
        "ours_misses": _misses(kinds, delassus, g, solver()[0]),
        "peer_misses": _misses(kinds, delassus, g, alone()),
    }
    row = _row("friction solver alone", name, "pin.ADMM", {"ours": solver, "theirs": alone})
    yield row | misses


def _misses(kinds: str, delassus: np.ndarray, g: np.ndarray, p: np.ndarray) -> str:
    """The most by which impulses miss Coulomb's law, in the measures of `FrictionalStep`."""
    keys = tuple(("contact" if kind == "c" else "held", i, 0.0) for i, kind in enumerate(kinds))
    none = np.zeros(len(g))
    mu = np.array([FRICTION if kind == "c" else 0.0 for kind in kinds])
    rows = Rows(keys, kinds, none[:, None], none, none, mu)
    velocities = delassus @ p + g
    step = FrictionalStep(none, none, none, none, p, rows, velocities, none, none, none > 1.0)
    return f"{max(step.cone_violation, step.complementarity):.0e}"


def _models(model: pin.Model, contacts: list[FrictionContact], cuts: list[tuple]) -> tuple:
    """Loops, then contacts."""
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    made = [pin.PointAnchorConstraintModel(model, *ends) for ends in cuts]
    for contact in contacts:
        frame = model.frames[model.getFrameId(contact.link)]
        place = frame.placement * pin.SE3(np.eye(3), np.array(contact.xyz, dtype=float))
        # The plane is that of the first joint's placement: the world's.
        point = pin.PointContactConstraintModel(
            model, 0, pin.SE3.Identity(), frame.parentJoint, place
        )
        point.setFriction(contact.friction)
        made.append(point)
    for each in made:
        constraint = pin.ConstraintModel(each)
        models.append(constraint)
        datas.append(constraint.createData())
    return models, datas


def _settings() -> pin.ADMMSolverSettings:
    settings = pin.ADMMSolverSettings()
    settings.max_iterations = 1000
    settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = TOLERANCE
    settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0.0
    return settings


def _pinocchio(
    both: Pair, contacts: list[FrictionContact], cuts: list[tuple], yd: np.ndarray
) -> tuple[Callable[[], tuple[np.ndarray, np.ndarray]], np.ndarray, np.ndarray]:
    """The same step by Pinocchio; the Delassus matrix and the free velocity of the contacts."""
    model, data = both.model, both.model.createData()
    models, datas = _models(model, contacts, cuts)
    q, v = both.theirs[0], 0.1 * both.theirs[1]
    tau = np.zeros(model.nv)
    cholesky = pin.ConstraintCholeskyDecomposition(model, data, models, datas)
    solver, result, settings = pin.ADMMConstraintSolver(), pin.ADMMSolverResult(), _settings()

    def free() -> tuple[np.ndarray, np.ndarray]:
        after = v + DT * pin.aba(model, data, q, v, tau)
        pin.crba(model, data, q)
        pin.computeJointJacobians(model, data, q)
        for constraint, of in zip(models, datas, strict=True):
            constraint.calc(model, data, of)
        cholesky.compute(model, data, models, datas, 1e-10)
        pairs = zip(models, datas, strict=True)
        return after, np.vstack([c.jacobian(model, data, d) for c, d in pairs])

    def step() -> tuple[np.ndarray, np.ndarray]:
        after, J = free()
        delassus = cholesky.getDelassusCholeskyExpression()
        result.reset()
        solver.solve(delassus, J @ after, models, datas, settings, result)
        p = result.retrieveConstraintImpulses()
        return after + np.linalg.solve(data.M, J.T @ p), p

    after, J = free()
    M = np.triu(data.M) + np.triu(data.M, 1).T
    return step, J @ np.linalg.solve(M, J.T), J @ after


def _admm(
    both: Pair,
    contacts: list[FrictionContact],
    cuts: list[tuple],
    delassus: np.ndarray,
    g: np.ndarray,
) -> Callable[[], np.ndarray]:
    models, datas = _models(both.model, contacts, cuts)
    solver, result, settings = pin.ADMMConstraintSolver(), pin.ADMMSolverResult(), _settings()
    operator = pin.DelassusOperatorDense(delassus)

    def solve() -> np.ndarray:
        result.reset()
        solver.solve(operator, g, models, datas, settings, result)
        return result.retrieveConstraintImpulses()

    return solve

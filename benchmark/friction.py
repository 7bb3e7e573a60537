"""Steps with friction beside Pinocchio's ADMM: from state to velocity, and the solver alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pinocchio as pin

from benchmark.calls import Row, _row
from benchmark.robots import Pair, example_pairs
from rbda_ros import FrictionContact
from rbda_ros.robot.friction_contacts import SolverSettings, solve_cones

FEET = {
    "solo12": ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
    "talos_reduced": ("left_sole_link", "right_sole_link"),
}
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
        yield from _case(both, contacts)


def _case(both: Pair, contacts: list[FrictionContact]) -> Iterator[Row]:
    robot, model = both.robot, both.model
    q, yd = both.ours[0], 0.1 * both.ours[1]
    tau = np.zeros(robot.ny)
    options = {"joint_limits": False, "joint_friction": False, "tolerance": TOLERANCE}
    ours = partial(robot.frictional_step, q, yd, tau, contacts, DT, **options)
    step = ours()
    for kernel in robot.traced_kernels():
        kernel.compile()
    theirs, delassus, g = _pinocchio(both, contacts, yd)
    name = f"{both.name}, {len(contacts)} contacts"
    if np.abs(step.yd[:6] - theirs()[:6]).max() > 1e-5:  # theirs comes no nearer
        raise AssertionError(
            f"{name}: Pinocchio's base moves at {theirs()[:6]}, ours at {step.yd[:6]}"
        )
    yield _row("step with friction", name, "pin.ADMM", {"ours": ours, "theirs": theirs})

    size = len(g)
    settings = SolverSettings(TOLERANCE, 500)
    problem = delassus, g, np.full(len(contacts), FRICTION), np.zeros(size), settings
    solver = partial(solve_cones, "c" * len(contacts), *problem)
    alone = _admm(contacts, model, delassus, g)
    yield _row("friction solver alone", name, "pin.ADMM", {"ours": solver, "theirs": alone})


def _models(model: pin.Model, contacts: list[FrictionContact]) -> tuple:
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for contact in contacts:
        frame = model.frames[model.getFrameId(contact.link)]
        place = frame.placement * pin.SE3(np.eye(3), np.array(contact.xyz, dtype=float))
        # The plane is that of the first joint's placement: the world's.
        point = pin.PointContactConstraintModel(
            model, 0, pin.SE3.Identity(), frame.parentJoint, place
        )
        point.setFriction(contact.friction)
        constraint = pin.ConstraintModel(point)
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
    both: Pair, contacts: list[FrictionContact], yd: np.ndarray
) -> tuple[Callable[[], np.ndarray], np.ndarray, np.ndarray]:
    """The same step by Pinocchio; the Delassus matrix and the free velocity of the contacts."""
    model, data = both.model, both.model.createData()
    models, datas = _models(model, contacts)
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

    def step() -> np.ndarray:
        after, J = free()
        delassus = cholesky.getDelassusCholeskyExpression()
        result.reset()
        solver.solve(delassus, J @ after, models, datas, settings, result)
        return after + np.linalg.solve(data.M, J.T @ result.retrieveConstraintImpulses())

    after, J = free()
    M = np.triu(data.M) + np.triu(data.M, 1).T
    return step, J @ np.linalg.solve(M, J.T), J @ after


def _admm(
    contacts: list[FrictionContact], model: pin.Model, delassus: np.ndarray, g: np.ndarray
) -> Callable[[], object]:
    models, datas = _models(model, contacts)
    solver, result, settings = pin.ADMMConstraintSolver(), pin.ADMMSolverResult(), _settings()
    operator = pin.DelassusOperatorDense(delassus)

    def solve() -> object:
        result.reset()
        return solver.solve(operator, g, models, datas, settings, result)

    return solve

"""Time per call from Python with numpy arrays, beside Pinocchio and MuJoCo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import mujoco
import numpy as np
import pinocchio as pin
import scipy.linalg

from benchmark.batches import one_core
from benchmark.robots import Pair, example_pairs, four_bar_chain, geared_chain
from benchmark.timing import interleaved
from rbda_ros import Robot

Row = dict[str, object]
BATCH = 4096
TREE_WORK = (("RNEA", "inverse_dynamics", pin.rnea), ("ABA", "forward_dynamics", pin.aba))


def _kernel(robot: Robot, name: str, *frames: str, batch: bool = False, **options: bool):
    kernel = robot.kernel(name, *frames, **options)
    kernel.compile(batch=batch)
    return kernel


def _row(work: str, robot: str, peer: str, calls: dict[str, Callable[[], object]]) -> Row:
    taken = interleaved(calls)
    ours, theirs = taken["ours"], taken["theirs"]
    return {
        "work": work, "robot": robot, "peer": peer, "ours_us": ours, "peer_us": theirs,
        "ratio": theirs / ours,
    }  # fmt: skip


def _vectors(cuts: list) -> tuple:
    """Constraints and their data in the containers that Pinocchio's bindings take."""
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for cut in cuts:
        models.append(cut)
        datas.append(cut.createData())
    return models, datas


def trees() -> Iterator[Row]:
    """RNEA and ABA of open trees against Pinocchio, one state at a time and in batches."""
    for both in example_pairs():
        robot, model, data = both.robot, both.model, both.model.createData()
        for work, kernel_name, peer in TREE_WORK:
            calls = {
                "ours": partial(_kernel(robot, kernel_name).call, *both.ours),
                "theirs": partial(peer, model, data, *both.theirs),
            }
            yield _row(work, both.name, f"pin.{peer.__name__}", calls)
        if both.name.startswith("talos"):
            yield from _batches(both)


def _batches(both: Pair) -> Iterator[Row]:
    model, data = both.model, both.model.createData()
    rng = np.random.default_rng(1)
    states = [np.repeat(x[None], BATCH, axis=0) for x in both.ours]
    theirs = [np.repeat(x[None], 256, axis=0) for x in both.theirs]
    states[1] = rng.normal(size=states[1].shape)
    for work, kernel_name, peer in TREE_WORK:
        kernel = _kernel(both.robot, kernel_name, batch=True)
        calls = {
            "ours": lambda k=kernel: k.batch(*states),
            "theirs": lambda p=peer: [p(model, data, *row) for row in zip(*theirs, strict=True)],
        }
        with one_core():
            taken = interleaved(calls)
        ours, peers = taken["ours"] / BATCH, taken["theirs"] / 256
        yield {
            "work": f"{work}, batch of {BATCH}", "robot": both.name, "peer": f"pin.{peer.__name__}",
            "ours_us": ours, "peer_us": peers, "ratio": peers / ours,
        }  # fmt: skip


def geared_chains() -> Iterator[Row]:
    """Forward dynamics with rotors against Pinocchio's mimic joints, CRBA and Cholesky."""
    for links in (5, 10, 20, 40, 80):
        both = geared_chain(links)
        kernel, model = _kernel(both.robot, "forward_dynamics"), both.model
        data = model.createData()
        q, yd, tau = both.ours
        tq, tqd, ttau = both.theirs
        zero = np.zeros(model.nv)

        def dense(model=model, data=data, tq=tq, tqd=tqd, ttau=ttau, zero=zero):
            bias = pin.rnea(model, data, tq, tqd, zero)
            H = pin.crba(model, data, tq)  # the upper triangle is what counts
            factor = scipy.linalg.cho_factor(H, overwrite_a=True, check_finite=False)
            return scipy.linalg.cho_solve(factor, ttau - bias, check_finite=False)

        calls = {"ours": lambda k=kernel, a=(q, yd, tau): k.call(*a), "theirs": dense}
        yield _row("FD, gears", both.name, "pin.rnea + pin.crba + Cholesky", calls)


def four_bar_chains() -> Iterator[Row]:
    """Forward dynamics of four-bars in series against Pinocchio's loop algorithms."""
    for count in (1, 2, 4, 8, 16):
        both, cuts = four_bar_chain(count)
        kernel, model = _kernel(both.robot, "forward_dynamics"), both.model
        q, yd, tau = both.ours
        tq, tqd, _ = both.theirs
        ttau = np.zeros(model.nv)
        ours = {"ours": lambda k=kernel, a=(q, yd, tau): k.call(*a)}

        data, (cuts, datas) = model.createData(), _vectors(cuts)
        settings = pin.ProximalSettings(1e-12, 1e-6, 10)
        pin.initConstraintDynamics(model, data, cuts, datas)
        peer = {
            "theirs": lambda m=model, d=data, c=cuts, cd=datas, s=settings, a=(tq, tqd, ttau): (
                pin.constraintDynamics(m, d, *a, c, cd, s)
            )
        }
        yield _row("FD, four-bars", both.name, "pin.constraintDynamics", ours | peer)

        data = model.createData()
        pin.computeJointMinimalOrdering(model, data, cuts)
        peer = {
            "theirs": lambda m=model, d=data, c=cuts, cd=datas, s=settings, a=(tq, tqd, ttau): (
                pin.lcaba(m, d, *a, c, cd, s)
            )
        }
        yield _row("FD, four-bars", both.name, "pin.lcaba", ours | peer)


def operational_space() -> Iterator[Row]:
    """The inverse operational-space inertia against Pinocchio's Delassus matrix."""
    for both, links in (
        (next(p for p in example_pairs() if p.name == "solo12"),
         ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")),
        (next(p for p in example_pairs() if p.name == "talos_reduced"),
         ("left_sole_link", "right_sole_link", "arm_left_7_link", "arm_right_7_link")),
    ):  # fmt: skip
        linear = both.name == "solo12"
        model, data = both.model, both.model.createData()
        kind = pin.ContactType.CONTACT_3D if linear else pin.ContactType.CONTACT_6D
        cuts = []
        for link in links:
            frame = model.frames[model.getFrameId(link)]
            cuts.append(
                pin.RigidConstraintModel(
                    kind, model, frame.parentJoint, frame.placement,
                    pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
                )
            )  # fmt: skip
        cuts, datas = _vectors(cuts)
        kernel = _kernel(
            both.robot, "inverse_operational_space_inertia", *links, linear_only=linear
        )
        q, tq = both.ours[0], both.theirs[0]
        calls = {
            "ours": lambda k=kernel, q=q: k.call(q),
            "theirs": lambda m=model, d=data, q=tq, c=cuts, cd=datas: pin.computeDelassusMatrix(
                m, d, q, c, cd
            ),
        }
        rows = (3 if linear else 6) * len(links)
        yield _row(f"inverse OSIM, {rows} rows", both.name, "pin.computeDelassusMatrix", calls)


def mujoco_chains() -> Iterator[Row]:
    """Forward dynamics of geared chains as MuJoCo has them: reflected inertia, no gyroscopy."""
    for links in (10, 40):
        both = geared_chain(links)
        parts, closing = [], ""
        for i in range(1, links + 1):
            axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
            parts.append(
                f'<body pos="0 0 0.2"><joint type="hinge" axis="{axis}" armature="0.2"/>'
                '<inertial mass="1" pos="0 0 0.1" diaginertia="0.003 0.003 0.004"/>'
            )
            closing += "</body>"
        xml = f"<mujoco><worldbody>{''.join(parts)}{closing}</worldbody></mujoco>"
        model = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(model)
        q, yd, tau = both.ours
        data.qvel[:] = yd
        for kernel in ("loop_state", "forward_dynamics"):
            _kernel(both.robot, kernel)
        calls = {
            "ours": partial(both.robot.forward_dynamics, q, yd, tau),
            "theirs": partial(mujoco.mj_forward, model, data),
        }
        yield _row("FD, gears", both.name, "mujoco.mj_forward (armature)", calls)

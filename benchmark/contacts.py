"""Forward dynamics with contacts beside Pinocchio's constraintDynamics and lcaba."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pinocchio as pin

from benchmark.calls import Row, _row, _vectors
from benchmark.cassie import cassie
from benchmark.limbs import PER_LIMB, limbs
from benchmark.parallel_chains import parallel_chains
from benchmark.robots import Pair, _link, example_pairs, pair
from rbda_ros import Contact
from rbda_ros.robot.contacts import Stop

FEET = {
    "solo12": ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
    "talos_reduced": ("left_sole_link", "right_sole_link"),
}
CASES = {
    "panda": [[Contact("panda_link8", kind="weld")]],
    "solo12": [[Contact(foot) for foot in FEET["solo12"][:n]] for n in (2, 3, 4)],
    "talos_reduced": [
        [Contact(link, kind="weld") for link in FEET["talos_reduced"]],
        [
            Contact(link, kind="weld")
            for link in (*FEET["talos_reduced"], "arm_left_7_link", "arm_right_7_link")
        ],
    ],
}
CASSIE_FEET = [Contact("left-foot"), Contact("right-foot")]

DAMPING = 1e-5
"""Pinocchio's mu. With less of it, lcaba takes fewer iterations and loses more digits than ours
does: at 1e-6 its accelerations of solo12 are right to 6e-8 only."""

ROUNDING = 1e-13
"""Accelerations below which nobody misses more than the other [m/s^2, rad/s^2]."""


def contacts() -> Iterator[Row]:
    """Arms, quadrupeds and humanoids in contact against Pinocchio."""
    for both in example_pairs():
        for held in CASES.get(both.name, []):
            yield from _case(both, held, [])
    yield from _cassie()


def _cassie() -> Iterator[Row]:
    """Two loops a leg, of which we embed one; Pinocchio cuts both."""
    both, ends = cassie_pair()
    yield from _case(both, CASSIE_FEET, _rigid(both, ends))


def _rigid(both: Pair, ends: list[tuple]) -> list[pin.RigidConstraintModel]:
    kind, local = pin.ContactType.CONTACT_3D, pin.ReferenceFrame.LOCAL
    return [pin.RigidConstraintModel(kind, both.model, *end, local) for end in ends]


def cassie_pair() -> tuple[Pair, list[tuple]]:
    """Cassie in both libraries, and the ends of its cuts: joint and place, twice."""
    urdf, loops = cassie()
    automatic = loops | {"method": "auto"}
    both = pair("cassie", urdf, floating_base=True, loops=automatic, spread=0.1)
    return both, _ends(both)


def _ends(both: Pair) -> list[tuple]:
    """The ends of a robot's cuts in Pinocchio: joint and place, twice."""
    cuts = []
    for loop in both.robot.description.constraints:
        ends: list = []
        for side in (loop.predecessor, loop.successor):
            frame = both.model.frames[both.model.getFrameId(side.link, pin.BODY)]
            offset = pin.SE3(pin.rpy.rpyToMatrix(*side.origin.rpy), np.array(side.origin.xyz))
            ends += [frame.parentJoint, frame.placement * offset]
        cuts.append(tuple(ends))
    return cuts


def _limbs_pair(count: int) -> Pair:
    """A floating body with so many limbs, each of five links and a loop; without rotors."""
    urdf, loops = limbs(PER_LIMB * count)
    # Rotors' inertia made the mass matrix regular.
    urdf = urdf.replace('<link name="body"/>', _link("body", 5.0, (0.0, 0.0, 0.1)))
    kept = {key: loops[key] for key in ("independent_joints", "constraints")}
    automatic = kept | {"method": "auto"}
    name = f"{count} limbs" if count > 1 else "1 limb"
    return pair(name, urdf, floating_base=True, loops=automatic, spread=0.1)


def methods() -> Iterator[Row]:
    """`Robot.constrained_forward_dynamics` against Pinocchio, with what both miss."""
    for both in example_pairs():
        for held in CASES.get(both.name, []):
            yield from _method(both, held, [])
    yield from _method(cassie_pair()[0], CASSIE_FEET, cassie_pair()[1])
    both = _limbs_pair(4)
    feet = [Contact(f"rocker_{i}_link", (0.0, 0.3, 0.1)) for i in range(4)]
    yield from _method(both, feet, _ends(both))


def loops() -> Iterator[Row]:
    """`Robot.forward_dynamics` of robots with loops against Pinocchio, with what both miss."""
    chains = parallel_chains(20, 10, "rod")
    for both in (
        cassie_pair()[0],
        _limbs_pair(1),
        _limbs_pair(4),
        _limbs_pair(8),
        pair("two chains of 20, rod", chains, loops={"method": "auto"}, spread=0.1),
    ):
        yield from _method(both, [], _ends(both))


def _method(both: Pair, held: list[Contact], ends: list[tuple]) -> Iterator[Row]:
    """A call of ours against each of Pinocchio's.

    Where Pinocchio misses less than ours at its default tolerance, ours is given the tolerance of
    what Pinocchio misses, down to `ROUNDING`.
    """
    robot, model = both.robot, both.model
    q, yd, _ = both.ours
    tau = np.zeros(robot.ny)
    constraints = [*_rigid(both, ends), *_held(model, held)]
    theirs = (*both.theirs[:2], np.zeros(model.nv))
    parts = [both.name]
    if held:
        parts.append(f"{sum(6 if contact.kind == 'weld' else 3 for contact in held)} rows")
    if ends:
        parts.append(f"{len(ends)} loop{'s' if len(ends) > 1 else ''}")

    def ours(tolerance: float) -> np.ndarray:
        if not held:
            return robot.forward_dynamics(q, yd, tau)
        return robot.constrained_forward_dynamics(q, yd, tau, held, tolerance=tolerance).ydd

    def missed(ydd: np.ndarray) -> float:
        found = _in_pinocchio(both, robot.spanning_acceleration(q, yd, ydd))
        return _misses(both, held, ends, found, classical=True)

    ours(Stop().tolerance)
    for kernel in robot.traced_kernels():
        kernel.compile()
    for peer in (pin.constraintDynamics, pin.lcaba):
        data, (models, datas) = model.createData(), _vectors(constraints)
        if peer is pin.lcaba:
            pin.computeJointMinimalOrdering(model, data, models)
        else:
            pin.initConstraintDynamics(model, data, models, datas)
        settings = pin.ProximalSettings(Stop().tolerance, DAMPING, 10)
        call = partial(peer, model, data, *theirs, models, datas, settings)
        their_misses = _misses(both, held, ends, np.array(call()), classical=False)
        tolerance = Stop().tolerance
        if missed(ours(tolerance)) > their_misses:
            tolerance = max(min(tolerance, their_misses), ROUNDING)
        calls = {"ours": partial(ours, tolerance), "theirs": call}
        work = "FD, contacts" if held else "FD, loops"
        row = _row(work, ", ".join(parts), f"pin.{peer.__name__}", calls)
        misses = {"ours_misses": missed(ours(tolerance)), "peer_misses": their_misses}
        yield row | {key: f"{value:.0e}" for key, value in misses.items()}


def _in_pinocchio(both: Pair, qdd: np.ndarray) -> np.ndarray:
    """Accelerations of a spanning tree in the order of Pinocchio's."""
    found = np.zeros(both.model.nv)
    base = len(qdd) - len(both.robot.joint_names)
    found[:base] = qdd[:base]
    for i, joint in enumerate(both.robot.joint_names):
        found[both.model.joints[both.model.getJointId(joint)].idx_v] = qdd[base + i]
    return found


def _misses(
    both: Pair, held: list[Contact], ends: list[tuple], a: np.ndarray, *, classical: bool
) -> float:
    """The largest acceleration of what is held, by Pinocchio's kinematics [m/s^2, rad/s^2].

    Pinocchio's welds hold the spatial acceleration; ours hold the classical one of their point.
    """
    model, data, world = both.model, both.model.createData(), pin.LOCAL_WORLD_ALIGNED
    pin.forwardKinematics(model, data, *both.theirs[:2], a)
    worst = 0.0
    for contact in held:
        at = _place(model, contact)
        still = pin.getFrameClassicalAcceleration(model, data, *at, world).vector
        if contact.kind == "weld" and not classical:
            still = pin.getFrameAcceleration(model, data, *at, pin.LOCAL).vector
        worst = max(worst, np.abs(still if contact.kind == "weld" else still[:3]).max())
    for first, place, second, other in ends:
        sides = [
            pin.getFrameClassicalAcceleration(model, data, joint, at, world).linear
            for joint, at in ((first, place), (second, other))
        ]
        worst = max(worst, np.abs(sides[0] - sides[1]).max())
    return float(worst)


def _held(model: pin.Model, held: list[Contact]) -> list[pin.RigidConstraintModel]:
    kinds = {"weld": pin.ContactType.CONTACT_6D, "point": pin.ContactType.CONTACT_3D}
    constraints = []
    for contact in held:
        place = _place(model, contact)
        constraints.append(pin.RigidConstraintModel(kinds[contact.kind], model, *place))
    return constraints


def _place(model: pin.Model, contact: Contact) -> tuple[int, pin.SE3]:
    """Joint and place of a contact in Pinocchio."""
    frame = model.frames[model.getFrameId(contact.link, pin.BODY)]
    return frame.parentJoint, frame.placement * pin.SE3(np.eye(3), np.array(contact.xyz))


def _case(both: Pair, held: list[Contact], cuts: list) -> Iterator[Row]:
    robot, model = both.robot, both.model
    kernel = robot.contact_kernel(held)
    kernel.compile()
    count = len(held)
    rows = sum(6 if contact.kind == "weld" else 3 for contact in held)
    q, yd, _ = both.ours
    nothing = np.zeros(robot.ny), np.tile(np.eye(3).ravel(), count), np.zeros(6 * count)
    ours = {"ours": partial(kernel.call, q, yd, *nothing, np.zeros(rows))}
    name = f"{both.name}, {rows} rows"

    constraints = [*cuts, *_held(model, held)]
    settings = pin.ProximalSettings(1e-12, DAMPING, 10)
    theirs = (*both.theirs[:2], np.zeros(model.nv))

    data, (models, datas) = model.createData(), _vectors(constraints)
    pin.initConstraintDynamics(model, data, models, datas)
    solver = models, datas, settings
    peer = {"theirs": partial(pin.constraintDynamics, model, data, *theirs, *solver)}
    yield _row("FD, contacts", name, "pin.constraintDynamics", ours | peer)

    other = model.createData()
    pin.computeJointMinimalOrdering(model, other, models)
    peer = {"theirs": partial(pin.lcaba, model, other, *theirs, *solver)}
    yield _row("FD, contacts", name, "pin.lcaba", ours | peer)

"""Forward dynamics with contacts beside Pinocchio's constraintDynamics and lcaba."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pinocchio as pin

from benchmark.calls import Row, _row, _vectors
from benchmark.cassie import cassie
from benchmark.robots import Pair, example_pairs, pair
from rbda_ros import Contact

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

DAMPING = 1e-5
"""Pinocchio's mu. With less of it, lcaba takes fewer iterations and loses more digits than ours
does: at 1e-6 its accelerations of solo12 are right to 6e-8 only."""


def contacts() -> Iterator[Row]:
    """Arms, quadrupeds and humanoids in contact against Pinocchio."""
    for both in example_pairs():
        for held in CASES.get(both.name, []):
            yield from _case(both, held, [])
    yield from _cassie()


def _cassie() -> Iterator[Row]:
    """Two loops a leg, of which we embed one; Pinocchio cuts both."""
    urdf, loops = cassie()
    automatic = loops | {"method": "auto"}
    both = pair("cassie", urdf, floating_base=True, loops=automatic, spread=0.1)
    cuts = []
    for loop in loops["constraints"]:
        ends = []
        for side in (loop["predecessor"], loop["successor"]):
            frame = both.model.frames[both.model.getFrameId(side["link"])]
            offset = pin.SE3(pin.rpy.rpyToMatrix(*side["rpy"]), np.array(side["xyz"]))
            ends += [frame.parentJoint, frame.placement * offset]
        kind = pin.ContactType.CONTACT_3D
        local = pin.ReferenceFrame.LOCAL
        cuts.append(pin.RigidConstraintModel(kind, both.model, *ends, local))
    yield from _case(both, [Contact("left-foot"), Contact("right-foot")], cuts)


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

    kinds = {"weld": pin.ContactType.CONTACT_6D, "point": pin.ContactType.CONTACT_3D}
    constraints = list(cuts)
    for contact in held:
        frame = model.frames[model.getFrameId(contact.link)]
        place = frame.parentJoint, frame.placement
        constraints.append(pin.RigidConstraintModel(kinds[contact.kind], model, *place))
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

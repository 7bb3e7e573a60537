"""Names of a compiled MJCF model's elements; what the file leaves unnamed is numbered."""

from __future__ import annotations

from typing import Any


class Names:
    """Unique names of bodies, joints and actuators of one model.

    Args:
        model: mujoco.MjModel.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._bodies = _unique([model.body(i).name for i in range(model.nbody)], "body")
        self._joints = _unique([model.joint(i).name for i in range(model.njnt)], "joint")
        self._link_names = set(self._bodies)
        self._joint_names = set(self._joints)

    def model(self) -> str:
        """The robot's name."""
        text = bytes(self._model.names[: self._model.name_bodyadr[0]]).split(b"\0")[0]
        return text.decode(errors="replace").strip() or "robot"

    def body(self, i: int) -> str:
        """Name of a body; 0 is the world."""
        return self._bodies[int(i)]

    def joint(self, i: int) -> str:
        """Name of a joint."""
        return self._joints[int(i)]

    def actuator(self, i: int) -> str:
        """Name of an actuator."""
        return self._model.actuator(i).name or f"actuator_{i}"

    def equality(self, i: int) -> str:
        """Name of an equality."""
        return self._model.equality(i).name or f"equality_{i}"

    def tendon(self, i: int) -> str:
        """Name of a tendon."""
        return self._model.tendon(i).name or f"tendon_{i}"

    def fixed_tendon(self, i: int) -> dict[str, float]:
        """Joints and coefficients of a tendon's length; empty for spatial ones."""
        import mujoco

        model = self._model
        first, count = int(model.tendon_adr[i]), int(model.tendon_num[i])
        wraps = range(first, first + count)
        if any(int(model.wrap_type[w]) != int(mujoco.mjtWrap.mjWRAP_JOINT) for w in wraps):
            return {}
        terms: dict[str, float] = {}
        for w in wraps:
            name = self.joint(model.wrap_objid[w])
            terms[name] = terms.get(name, 0.0) + float(model.wrap_prm[w])
        return {name: coefficient for name, coefficient in terms.items() if coefficient}

    def unique_link(self, name: str) -> str:
        """A name that no link has yet."""
        return _add(name, self._link_names)

    def unique_joint(self, name: str) -> str:
        """A name that no joint has yet."""
        return _add(name, self._joint_names)


def _unique(given: list[str], kind: str) -> list[str]:
    taken = {name for name in given if name}
    return [name or _add(f"{kind}_{i}", taken) for i, name in enumerate(given)]


def _add(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name

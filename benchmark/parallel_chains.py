"""Two chains side by side with one loop between them: Chignoli 2024, Fig. 11."""

from __future__ import annotations

from typing import Literal

LINK = (
    '<link name="{name}"><inertial><mass value="0.25"/><origin xyz="0 0.5 0"/>'
    '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial></link>'
)
JOINT = (
    '<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
    '<origin xyz="{xyz}"/><axis xyz="0 0 1"/></joint>'
)


def parallel_chains(depth: int, loop: int, kind: Literal["transmission", "rod"]) -> str:
    """URDF+ of two branches.

    Args:
        depth: d_t, bodies of each branch.
        loop: d_l, the body of each branch where the loop is.
        kind: a transmission makes the first d_l joints of both branches turn alike in sum (66); a
            connecting rod joins the two bodies.
    """
    parts = ['<link name="base"/>']
    for branch, start in ((1, "0 0 0"), (2, "1 0 0")):
        for i in range(1, depth + 1):
            parent = "base" if i == 1 else f"link_{branch}_{i - 1}"
            child = f"link_{branch}_{i}"
            xyz = start if i == 1 else "0 1 0"
            parts.append(LINK.format(name=child))
            parts.append(
                JOINT.format(name=f"joint_{branch}_{i}", parent=parent, child=child, xyz=xyz)
            )
    first, second = f"link_1_{loop}", f"link_2_{loop}"
    if kind == "transmission":
        parts.append(
            f'<coupling name="loop"><predecessor link="{first}"/><successor link="{second}"/>'
            '<ratio value="1"/></coupling>'
        )
    else:
        parts.append(LINK.format(name="rod"))
        parts.append(JOINT.format(name="rod", parent=first, child="rod", xyz="0 1 0"))
        parts.append(
            '<loop name="loop" type="revolute"><predecessor link="rod"><origin xyz="1 0 0"/>'
            f'</predecessor><successor link="{second}"><origin xyz="0 1 0"/></successor>'
            '<axis xyz="0 0 1"/></loop>'
        )
    return f'<robot name="parallel_chains">{"".join(parts)}</robot>'

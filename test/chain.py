"""Robots of any length, as text."""


def chain(count, name="chain"):
    """URDF of a chain of links that turn about x, y, z in turn."""
    parts = [f'<robot name="{name}"><link name="link0"/>']
    for k in range(1, count + 1):
        axis = ("1 0 0", "0 1 0", "0 0 1")[k % 3]
        parts.append(
            f'<joint name="joint{k}" type="continuous"><parent link="link{k - 1}"/>'
            f'<child link="link{k}"/><origin xyz="0.1 0.02 0.03"/><axis xyz="{axis}"/></joint>'
            f'<link name="link{k}"><inertial><origin xyz="0.05 0.01 0"/><mass value="1"/>'
            '<inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0.001" ixz="0" iyz="0"/>'
            "</inertial></link>"
        )
    return "".join([*parts, "</robot>"])

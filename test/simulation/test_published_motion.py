"""Andrews' squeezer, a planar mechanism of seven bodies and three loops, against its publication.

Hairer and Wanner, "Solving Ordinary Differential Equations II", Sec. VII.7; positions after 0.03 s
from the Test Set for Initial Value Problem Solvers.
"""

from __future__ import annotations

import numpy as np

from rbda_ros import Simulator, load_robot

# Where each body's joint is on its parent; its mass, inertia about its center, and center of mass.
BODIES = {
    "beta": ("base", (0.0, 0.0), 0.04325, 2.194e-6, (92e-5, 0.0)),
    "theta": ("beta", (7e-3, 0.0), 0.00365, 4.41e-7, (-115e-4, 0.0)),
    "gamma": ("base", (-0.03635, 0.03273), 0.02373, 5.255e-6, (1874e-5, 1043e-5)),
    "delta": ("base", (-0.06934, -0.00227), 0.0705, 1.169e-5, (2308e-5, 916e-5)),
    "phi": ("delta", (0.04, 0.0), 0.00706, 5.667e-7, (0.0, 1421e-5 - 0.02)),
    "epsilon": ("base", (-0.06934, -0.00227), 0.05498, 1.912e-5, (1228e-5, 449e-5)),
    "omega": ("epsilon", (0.0, -0.04), 0.00706, 5.667e-7, (0.02 - 1421e-5, 0.0)),
}
START = {
    "beta": -0.0617138900142764496,
    "theta": 0.0,
    "gamma": 0.455279819163070380,
    "phi": 0.222668390165885885,
    "delta": 0.487364979543842550,
    "omega": -0.222668390165885885,
    "epsilon": 1.23054744454982119,
}
END = {
    "beta": 15.81077119629904,
    "theta": -15.75637105984298,
    "gamma": 0.04082224013073101,
    "phi": -0.5347301163226948,
    "delta": 0.5244099658805304,
    "omega": 0.5347301163226948,
    "epsilon": 1.048080741042263,
}
TIPS = {"gamma": [0.0, -0.035, 0.0], "phi": [0.0, -0.02, 0.0], "omega": [0.02, 0.0, 0.0]}


def squeezer():
    links = ['<link name="base"/>']
    for name, (parent, (x, y), mass, inertia, (cx, cy)) in BODIES.items():
        links.append(
            f"""<link name="{name}"><inertial><origin xyz="{cx} {cy} 0"/><mass value="{mass}"/>
            <inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/>
            </inertial></link><joint name="{name}" type="continuous"><parent link="{parent}"/>
            <child link="{name}"/><origin xyz="{x} {y} 0"/><axis xyz="0 0 1"/></joint>"""
        )
    tip = {"link": "theta", "xyz": [-0.028, 0.0, 0.0]}
    loops = {
        "independent_joints": ["beta"],
        "actuated_joints": ["beta"],
        "constraints": [
            {
                "name": f"tip_{name}",
                "type": "revolute",
                "axis": [0, 0, 1],
                "predecessor": tip,
                "successor": {"link": name, "xyz": xyz},
            }
            for name, xyz in TIPS.items()
        ],
        "assembly": START,
        "springs": [
            {
                "name": "spring",
                "predecessor": {"link": "gamma", "xyz": [0.02, -0.018, 0.0]},
                "successor": {"link": "base", "xyz": [0.014, 0.072, 0.0]},
                "stiffness": 4530.0,
                "rest": 0.07785,
            }
        ],
    }
    return load_robot(f'<robot name="squeezer">{"".join(links)}</robot>', loops, gravity=(0, 0, 0))


def test_squeezer_arrives_where_it_was_published():
    robot = squeezer()
    sim = Simulator(robot, 1e-5, integrator="rk4")
    sim.reset(robot.close([START["beta"]], [START[name] for name in robot.joint_names]))
    sim.step([0.033], steps=3000)
    end = [END[name] for name in robot.joint_names]
    np.testing.assert_allclose(sim.q, end, atol=1e-7)

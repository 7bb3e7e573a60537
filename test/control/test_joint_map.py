"""Names of requests are mapped from several threads at once."""

import random
from concurrent.futures import ThreadPoolExecutor

from chain import chain

from rbda_ros import load_robot
from rbda_ros.control.joint_map import map_joints


def test_threads_may_ask_for_more_orders_than_are_cached(monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")
    monkeypatch.setattr("rbda_ros.control.joint_map.MAX_MAPS", 2)
    robot = load_robot(chain(6))

    def ask(seed):
        rng = random.Random(seed)
        for _ in range(300):
            names = list(robot.joint_names)
            rng.shuffle(names)
            found = map_joints(robot, names)
            assert [names[k] for k in found.independent] == list(robot.independent_joint_names)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))

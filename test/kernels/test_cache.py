"""Cached kernels are bounded, made once, and common to payloads that do not matter."""

import threading

import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros import Contact, Payload, Robot
from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.kernels.cache import KernelCache, LruCache


def test_the_least_recently_used_goes_first():
    cache = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert list(cache.snapshot()) == ["a", "c"]
    assert cache.get("b") is None


def test_a_value_is_made_once_and_others_need_not_wait_for_it():
    cache, begun, finish = LruCache(4), threading.Event(), threading.Event()
    cache.put("there", 0)
    made = []

    def make():
        begun.set()
        finish.wait(10.0)
        made.append(1)
        return 7

    askers = [threading.Thread(target=cache.get_or_make, args=("slow", make)) for _ in range(4)]
    for asker in askers:
        asker.start()
    begun.wait(10.0)
    assert cache.get_or_make("there", make) == 0
    finish.set()
    for asker in askers:
        asker.join()
    assert made == [1]
    assert cache.get("slow") == 7


def fresh(name="gear"):
    return Robot(build_cluster_tree(MECHANISMS[name].tree().description))


@pytest.mark.parametrize("name", ["gear", "four_bar"])
def test_what_clients_name_is_bounded_and_plain_kernels_stay(name, monkeypatch):
    monkeypatch.setattr("rbda_ros.kernels.cache.MAX_KERNELS", 3)
    monkeypatch.setattr("rbda_ros.robot.contact_dynamics.MAX_PLACES", 3)
    robot = fresh(name)
    q, still, link = robot.tree.home, np.zeros(robot.ny), robot.clusters[-1].links[-1]
    plain = robot.kernel("inverse_dynamics")
    for k in range(8):
        point = (0.1 * k, 0.0, 0.0)
        robot.jacobian(q, (link, point))
        robot.constrained_forward_dynamics(q, still, still, [Contact(link, point)])
    optional = [key for key in robot._kernels.kernels() if len(key) > 1]
    assert len(optional) == 3
    assert len(robot._contact_places) == 3
    assert robot.kernel("inverse_dynamics") is plain


def test_choices_of_joints_are_bounded(monkeypatch):
    monkeypatch.setattr("rbda_ros.robot.joint_choices.MAX_CHOICES", 2)
    robot = fresh("rotors")
    names = robot.joint_names
    for k in range(len(names)):
        rotated = names[k:] + names[:k]
        robot.close({name: 0.0 for name in rotated})
    assert len(robot._inputs.choices._positions) == 2


def test_a_loaded_robot_shares_what_does_not_see_inertia():
    robot = fresh()
    link = robot.clusters[-1].links[-1]
    loaded = robot.with_payloads({"load": Payload(link, 1.0)})
    assert loaded.kernel("jacobian", link) is robot.kernel("jacobian", link)
    assert loaded.kernel("spanning_motion") is robot.kernel("spanning_motion")
    assert loaded.kernel("inverse_dynamics") is not robot.kernel("inverse_dynamics")
    assert loaded.with_payloads({}) is robot


def test_kernels_of_one_tree_are_traced_once():
    kernels = KernelCache(MECHANISMS["four_bar"].tree())
    assert kernels.get("closure", (0,)) is kernels.get("closure", (0,))
    assert kernels.get("closure", (0,)) is not kernels.get("closure", (1,))

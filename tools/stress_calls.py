"""Native calls from several threads with random good and bad arguments; see tools/sanitize.py."""

import random
import resource
import sys
import threading
from pathlib import Path

import numpy as np

from rbda_ros import Contact, InputError, ModelError, _native, load_robot
from rbda_ros.robot.native_calls import METHODS
from rbda_ros.robot.native_plans import OF_FRAMES, PLANS, WITH_WRENCHES
from rbda_ros.robot.state import State

THREADS = 8
ROOT = Path(__file__).resolve().parents[1]
LARGEST_GROWTH = 32.0
"""MB: one leaked object of 48 bytes in every call would be more."""
SIZES = 0, 1, 2, 3, 5, 6, 7, 11, 13, 200
OTHERS = {
    "close": ["q"],
    "operational_space_inertia": ["q"],
    "constrained_forward_dynamics": ["q", "yd", "force"],
}
"""Vectors of methods without a plan."""
CONTACTS = {}
"""Of each robot, the same all the time."""
COUNTS = 1, 3, 40, 150
"""Of rows: of one block and of several."""


def robots():
    """One with loops, and one with a floating base and quaternions, all kernels compiled."""
    folder = ROOT / "config" / "robots"
    leg = load_robot(folder / "demo_leg.urdf", folder / "demo_leg_loops.yaml")
    floating = load_robot(ROOT / "test" / "mechanisms" / "gear.urdf", floating_base=True)
    for robot in (leg, floating):
        frame = robot.description.links[-1].name
        robot.kernel("loop_state").compile(batch=True)
        if robot.tree.has_loops:
            robot.close(robot.independent_position(robot.tree.home))
            names = dict.fromkeys(robot.independent_joint_names, 0.1)
            robot.close(names, robot.tree.home)
            for name, *options in robot._kernels.cached():
                robot._kernels.get(name, *options).compile(batch=True)
        for step in {step for plan in PLANS.values() for step in plan.steps}:
            frames = [frame] if step.kernel in OF_FRAMES else []
            robot.kernel(step.kernel, *frames).compile(batch=True)
        CONTACTS[robot.name] = [Contact(frame)]
        zero = np.zeros(robot.ny)
        for options in ({}, {"friction": True}):
            for wrenches in ({}, {frame: np.ones(6)}):
                robot.forward_dynamics(robot.tree.home, zero, zero, wrenches, **options)
                robot.inverse_dynamics(robot.tree.home, zero, zero, wrenches, **options)
        robot.jacobian(robot.tree.home, (frame, (0.1, 0.0, 0.2)))
        robot.operational_space_inertia(robot.tree.home, [frame])
        robot.constrained_forward_dynamics(robot.tree.home, zero, zero, CONTACTS[robot.name])
        for kernel in robot.traced_kernels():
            kernel.compile(batch=True)
        yield robot


def good(rng, robot, name):
    """An argument of a method that can be answered."""
    if name == "q":
        y = robot.independent_position(robot.tree.home)
        y[robot.coordinates.base_nq :] += rng.uniform(-0.1, 0.1)
        kind = rng.random()
        if kind < 0.5:
            return y
        return robot.close(y) if kind < 0.8 else robot.state(y)
    on_all = name == "spanning" or (name == "force" and rng.random() < 0.5)
    size = robot.nv if on_all else robot.ny
    return np.full(size, rng.uniform(-1.0, 1.0))


def bad(rng):
    """Anything."""
    size = rng.choice(SIZES)
    return rng.choice(
        [
            None,
            "text",
            7,
            [0.1] * size,
            np.zeros(size),
            np.full(size, np.nan),
            np.full(size, 1e300),
            np.zeros((3, size)),
            np.zeros(size, np.float32),
            np.zeros(2 * size)[::2],
            np.zeros(size, ">f8"),
            np.zeros(size, complex),
            np.array([None] * size),
            np.full((5, size), 0.1),
            np.full((5, size), np.nan),
            np.zeros((0, size)),
            np.zeros((5, 2 * size))[:, ::2],
            {"hip": 1.0},
            {},
            object(),
        ]
    )


def in_rows(rng, robot, given):
    """The same arguments as batches, now and then of different lengths, or with one bad row."""
    count, many = rng.choice(COUNTS), []
    for each in given:
        if isinstance(each, State):
            many.append(robot.state(np.tile(each.q, (count, 1))))
        elif isinstance(each, np.ndarray) and rng.random() < 0.95:
            rows = np.tile(each, (count + (rng.random() < 0.01), 1))
            if rng.random() < 0.02:
                rows[rng.randrange(count)] = rng.choice([np.nan, 1e300, 5.0])
            many.append(rows)
        else:
            many.append(each)
    return many


def more_arguments(rng, robot, method):
    """What some methods take beside vectors: frames, contacts, wrenches."""
    link = robot.description.links[-1].name
    if method in OF_FRAMES:
        return [rng.choice([link, (link, (0.1, 0.0, 0.2)), "nobody", ("x", [1.0])])]
    if method == "operational_space_inertia":
        frames = rng.choice([link, [link], (link, link), [(link, (0.1, 0.0, 0.2))], [], [7], None])
        return [frames, rng.choice([0.0, 0.5, -1.0, None]), rng.choice([True, False, 1])]
    if method == "constrained_forward_dynamics":
        new = [Contact(link, kind=rng.choice(["point", "weld"]))]
        return [rng.choice([CONTACTS[robot.name], CONTACTS[robot.name], new, [], [7], None])]
    if method in WITH_WRENCHES and rng.random() < 0.5:
        wrench = rng.choice([np.ones(6), np.ones(6), np.full(6, np.nan), np.ones(5), [1.0] * 6, 7])
        return [rng.choice([{link: wrench}, {}, {"nobody": wrench}, {7: wrench}, [wrench]])]
    return []


def call_once(rng, robot, counts):
    """One call of some method."""
    method = rng.choice(METHODS)
    given = PLANS[method].arguments.split() if method in PLANS else OTHERS[method]
    given = [good(rng, robot, name) for name in given]
    if method == "close":
        names = {name: rng.uniform(-0.1, 0.1) for name in robot.independent_joint_names}
        given = [rng.choice([given[0], names]), *rng.choice([[], [robot.tree.home]])]
    if rng.random() < 0.25:
        given = in_rows(rng, robot, given)
    given += more_arguments(rng, robot, method)
    if rng.random() < 0.05:
        given[rng.randrange(len(given))] = bad(rng)
    if rng.random() < 0.01:
        given = given[:-1]
    options = {"friction": True} if method in WITH_WRENCHES and rng.random() < 0.3 else {}
    try:
        answer = getattr(robot, method)(*given, **options)
    except (InputError, ModelError, TypeError, ValueError) as error:
        counts[type(error).__name__] = counts.get(type(error).__name__, 0) + 1
        return
    counts["answers"] = counts.get("answers", 0) + 1
    assert answer is not None


def memory():
    """Most memory of this process so far [MB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    assert _native.calls is not None
    print(f"{calls} calls from {THREADS} threads of {_native.calls.__file__}")
    both = list(robots())
    counts = [{} for _ in range(THREADS)]

    def work(k, share):
        rng = random.Random(k)
        for _ in range(share):
            call_once(rng, both[rng.random() < 0.5], counts[k])

    grown = []
    for part in (0.4, 0.6):  # caches are full after the first
        before = memory()
        share = int(calls * part / THREADS)
        threads = [threading.Thread(target=work, args=(k, share)) for k in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        grown.append(memory() - before)
    total = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    print(f"{total}; memory grew by {grown[0]:.1f}, then by {grown[1]:.1f} MB")
    assert sum(total.values()) >= 0.99 * calls, "a thread ended early"
    assert total["answers"] > 0.5 * calls
    assert grown[1] < LARGEST_GROWTH
    print("nothing reported, nothing leaked")


if __name__ == "__main__":
    main()

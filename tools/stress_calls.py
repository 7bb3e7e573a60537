"""Calls of the engine from several threads, with good and bad arguments; see tools/sanitize.py."""

import os
import random
import resource
import sys
import threading
from pathlib import Path

import numpy as np

from rbda_ros import Contact, FrictionContact, InputError, ModelError, load_robot
from rbda_ros.engine import core
from rbda_ros.robot.operations import METHODS, OPERATIONS
from rbda_ros.robot.state import State

THREADS = 8
ROOT = Path(__file__).resolve().parents[1]
LARGEST_GROWTH = 32.0
"""MB: one leaked object of 48 bytes in every call would be more."""
SIZES = 0, 1, 2, 3, 5, 6, 7, 11, 13, 200
OTHERS = {
    "close": ["Position"],
    "operational_space_inertia": ["Position"],
    "constrained_forward_dynamics": ["Position", "Velocity", "Force"],
}
"""Vectors of methods that are no operations."""
FILES = {
    "demo_leg": ("config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"),
    "gear": ("test/mechanisms/gear.urdf", None),
}
CONTACTS = {}
"""Of each robot, the same all the time."""
STEPS = 0.02
"""Share of calls that are steps with friction, which take some 100 times as long as others."""
COUNTS = 1, 3, 40, 150
"""Of rows: of one block and of several."""


def load(name):
    """A robot of `FILES`."""
    urdf, loops = FILES[name]
    return load_robot(ROOT / urdf, loops and ROOT / loops, floating_base=loops is None)


def robots():
    """One with loops, and one with a floating base and quaternions, all kernels compiled."""
    for robot in map(load, FILES):
        frame = robot.description.links[-1].name
        frames = [(name, frame) for name, each in OPERATIONS.items() if each.of_frame]
        robot.prepare(batch=True)
        robot.prepare(*frames, batch=True)
        if robot.has_loops:
            robot.close(dict.fromkeys(robot.independent_joint_names, 0.1), robot.neutral())
        CONTACTS[robot.name] = [Contact(frame)]
        zero = np.zeros(robot.ny)
        for options in ({}, {"friction": True}):
            for wrenches in ({}, {frame: np.ones(6)}):
                robot.forward_dynamics(robot.neutral(), zero, zero, wrenches, **options)
                robot.inverse_dynamics(robot.neutral(), zero, zero, wrenches, **options)
        robot.jacobian(robot.neutral(), (frame, (0.1, 0.0, 0.2)))
        robot.operational_space_inertia(robot.neutral(), [frame])
        robot.constrained_forward_dynamics(robot.neutral(), zero, zero, CONTACTS[robot.name])
        robot.prepare(batch=True)
        yield robot
        # The same where CasADi evaluates: it releases the interpreter lock in the midst of a call.
        os.environ["RBDA_ROS_COMPILE"] = "0"
        slow = load(robot.name)
        CONTACTS[slow.name] = CONTACTS[robot.name]
        del os.environ["RBDA_ROS_COMPILE"]
        yield slow


def good(rng, robot, name):
    """An argument of a method that can be answered."""
    if name == "Position":
        y = robot.independent_position(robot.neutral())
        y[robot.coordinates.base_nq :] += rng.uniform(-0.1, 0.1)
        kind = rng.random()
        if kind < 0.5:
            return y
        return robot.close(y) if kind < 0.8 else robot.state(y)
    if name == "Coordinates":
        return robot.neutral()
    if name == "Number":
        return rng.uniform(-1.0, 1.0)
    on_all = name == "Spanning" or (name == "Force" and rng.random() < 0.5)
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
    """Arguments of some methods beside vectors: frames, contacts, wrenches."""
    link = robot.description.links[-1].name
    record = OPERATIONS.get(method)
    if record is not None and record.of_frame:
        return [rng.choice([link, (link, (0.1, 0.0, 0.2)), "nobody", ("x", [1.0])])]
    if method == "operational_space_inertia":
        frames = rng.choice([link, [link], (link, link), [(link, (0.1, 0.0, 0.2))], [], [7], None])
        return [frames, rng.choice([0.0, 0.5, -1.0, None]), rng.choice([True, False, 1])]
    if method == "constrained_forward_dynamics":
        new = [Contact(link, kind=rng.choice(["point", "weld"]))]
        return [rng.choice([CONTACTS[robot.name], CONTACTS[robot.name], new, [], [7], None])]
    if record is not None and record.wrenches and rng.random() < 0.5:
        wrench = rng.choice([np.ones(6), np.ones(6), np.full(6, np.nan), np.ones(5), [1.0] * 6, 7])
        return [rng.choice([{link: wrench}, {}, {"nobody": wrench}, {7: wrench}, [wrench]])]
    return []


def step_once(rng, robot):
    """One step with friction, its inverse, or the solver of cones alone."""
    link, dt = robot.description.links[-1].name, rng.choice([1e-3, 1e-2])
    kinds = [{}, {"stiffness": 1e4, "damping": 10.0}, {"restitution": 0.5}]
    feet = [
        FrictionContact(
            link, (0.1 * i, 0.0, 0.0), friction=rng.choice([0.0, 0.7]), **rng.choice(kinds)
        )
        for i in range(rng.choice([1, 2, 4]))
    ]
    given = [good(rng, robot, kind) for kind in ("Position", "Velocity", "Velocity")]
    if rng.random() < 0.3:
        given = in_rows(rng, robot, given)
    if rng.random() < 0.1:
        given[rng.randrange(3)] = bad(rng)
    options = {"distances": bad(rng)} if rng.random() < 0.05 else {}
    kind = rng.random()
    if kind < 0.4:
        step = robot.frictional_step(*given, feet, dt, **options)
        if rng.random() < 0.5:
            step = robot.frictional_step(*given, feet, dt, warm_start=step)
        return step
    if kind < 0.5:
        held = [Contact(link, (0.0, 0.1, 0.0), rows=("x",))]
        return robot.frictional_step(*given, feet, dt, held=held, max_iterations=3)
    if kind < 0.6:
        return robot.frictional_inverse_dynamics(*given, feet, dt)
    letters = "".join(rng.choice("cpbe") for _ in range(rng.choice([0, 1, 3, 8])))
    sizes = [sum(3 if letter == "c" else 1 for letter in letters), len(letters)]
    if rng.random() < 0.3:
        sizes[rng.randrange(2)] += rng.choice([-1, 1])
    m, blocks = (max(size, 0) for size in sizes)
    random = np.random.default_rng(rng.randrange(1000))
    J = random.normal(size=(2, m, rng.choice([1, 6, 30])))
    A, g = J @ np.swapaxes(J, 1, 2), random.normal(size=(2, m))
    problem = [letters, A, g, random.uniform(0.0, 1.0, (2, blocks)), np.zeros((2, m))]
    if rng.random() < 0.1:
        problem[rng.randrange(5)] = bad(rng)
    return core.solve_cones(*problem, rng.random() < 0.8, 1e-10, rng.choice([1, 50]))


def call_once(rng, robot, counts):
    """One call of some method."""
    if rng.random() < STEPS:
        count_answer(counts, step_once, rng, robot)
        return
    method = rng.choice(METHODS)
    record = OPERATIONS.get(method)
    kinds = OTHERS[method] if record is None else [each.kind for each in record.arguments]
    given = [good(rng, robot, kind) for kind in kinds]
    if method == "close":
        names = {name: rng.uniform(-0.1, 0.1) for name in robot.independent_joint_names}
        given = [rng.choice([given[0], names]), *rng.choice([[], [robot.neutral()]])]
    if rng.random() < 0.25:
        given = in_rows(rng, robot, given)
    given += more_arguments(rng, robot, method)
    if rng.random() < 0.05:
        given[rng.randrange(len(given))] = bad(rng)
    if rng.random() < 0.01:
        given = given[:-1]
    takes_friction = record is not None and record.wrenches
    options = {"friction": True} if takes_friction and rng.random() < 0.3 else {}
    count_answer(counts, getattr(robot, method), *given, **options)


def count_answer(counts, function, *given, **options):
    """Call a function, and count its answer or error."""
    try:
        answer = function(*given, **options)
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
    print(f"{calls} calls from {THREADS} threads of {core.__file__}")
    both = list(robots())
    counts = [{} for _ in range(THREADS)]

    def work(k, share):
        rng = random.Random(k)
        for _ in range(share):
            call_once(rng, rng.choice(both), counts[k])

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

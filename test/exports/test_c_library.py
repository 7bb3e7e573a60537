"""Exported C against the robot: to the last bit, with the same status codes."""

import ctypes
import itertools
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from mechanism_table import FOLDER, MECHANISMS

from rbda_ros import MomentumObserver, Payload, Robot, load_robot
from rbda_ros.engine import core
from rbda_ros.errors import ClosureError, InputError, ModelError, NotFiniteError, SingularityError
from rbda_ros.exports import export_robot
from rbda_ros.exports.c_library import STATUS, function_names
from rbda_ros.exports.compiled import CompiledLibrary, compiler, feedforward_error
from rbda_ros.exports.operation_code import WITH, c_identifier, operation_names
from rbda_ros.robot.operations import OPERATIONS
from rbda_ros.robot.payloads import check_payload

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
CODE = {name: k for k, name in enumerate(STATUS)}
BY_DAY = {"parallel_ankle": 20, "rotors": 20}
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wconversion", "-O0", "-c"]
SHARED = Path(__file__).parents[3] / "shared" / "robots"
LONG = {"regressor", "inverse_dynamics_derivatives", "forward_dynamics_derivatives"}
"""Operations whose code is long: compiled by night."""
FLAGS = ["-O0", *(["-mfma"] if "fma" in Path("/proc/cpuinfo").read_text() else [])]


@pytest.fixture
def machine_code(monkeypatch):
    """Kernels are compiled also where tests interpret them."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")


def prepared(robot, function):
    """The result of a function of the robot, after all kernels that it uses are machine code."""
    function()
    for kernel in robot._kernels.kernels().values():
        assert kernel.compile()
    return function()


def closed_states(robot, count, seed=3):
    rng = np.random.default_rng(seed)
    positions = [robot.random_state(rng).q for _ in range(count)]
    return [(q, rng.normal(size=robot.ny), rng) for q in positions]


def arguments(robot, record, q, yd, rng):
    """Numbers for an operation, and the same as C takes them."""
    sizes = {"Independent": robot.ny, "Force": robot.ny, "Spanning": robot.nv, "Number": 1}
    given = [q]
    for argument in record.arguments[1:]:
        if argument.kind == "Velocity":
            given.append(yd)
        elif argument.kind == "Coordinates":
            given.append(robot.tree.home)
        else:
            given.append(rng.normal(size=sizes[argument.kind]))
    return given


def compare_operation(robot, library, name, states, frame):
    record = OPERATIONS.get(name)
    variant = 0
    for k, ending in enumerate(WITH[1:], start=1):
        if record is None and name.removesuffix(ending) in OPERATIONS:
            record, variant = OPERATIONS[name.removesuffix(ending)], k
    links = list(robot.tree.spanning.links)
    for k, (q, yd, rng) in enumerate(states):
        given = arguments(robot, record, q, yd, rng)
        options, in_c = {}, list(given)
        if record.wrenches:
            options["friction"] = bool(variant & 2)
        if variant & 1:
            wrenches = {links[-1]: rng.normal(size=6), links[0]: rng.normal(size=6)}
            options["external_wrenches"] = wrenches
            bodies = np.zeros(6 * len(robot.tree.spanning.bodies))
            for link, wrench in wrenches.items():
                library.library[f"{library.name}_add_wrench"](
                    links.index(link), *(pointer(each) for each in (wrench, bodies))
                )
            in_c.append(bodies)
        kinds = [argument.kind for argument in record.arguments]
        plain = [
            float(each[0]) if kind == "Number" else each
            for kind, each in zip(kinds, given, strict=False)
        ]
        if record.of_frame:
            options["frame"] = frame
        call = partial(getattr(robot, record.name), *plain, **options)
        expected = prepared(robot, call) if k == 0 else call()
        many = expected if isinstance(expected, tuple) else (expected,)
        if record.make is not None:
            many = tuple(getattr(expected, field) for field in record.make.__dataclass_fields__)
        outputs = [np.full(np.size(each), np.nan) for each in many]
        function = f"{name}_{c_identifier(frame)}" if record.of_frame else name
        assert library.call(function, *in_c, *outputs) == 0, name
        for output, right in zip(outputs, many, strict=True):
            assert np.array_equal(output, np.ravel(right)), name


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def check_operations(robot, folder, names, count):
    frame = list(robot.tree.spanning.links)[-1]
    report = export_robot(robot, folder, name="r", functions=names, frames=[frame])
    library = CompiledLibrary(report, flags=FLAGS)
    states = closed_states(robot, count)
    for name in names:
        compare_operation(robot, library, name, states, frame)


@pytest.mark.parametrize("mechanism", BY_DAY)
def test_operations_to_the_last_bit(mechanism, tmp_path, machine_code):
    names = [name for name in operation_names() if name not in LONG]
    check_operations(Robot(MECHANISMS[mechanism].tree()), tmp_path, names, BY_DAY[mechanism])


def robot_of(name):
    """A mechanism, or a shared robot."""
    if name in MECHANISMS:
        return Robot(MECHANISMS[name].tree())
    walks = any(word in name for word in ("humanoid", "cheetah"))
    try:
        return load_robot(SHARED / f"{name}.urdf", floating_base=walks)
    except (InputError, ModelError) as error:
        pytest.skip(f"needs a loop file: {error}")


EVERY = [*MECHANISMS, *(sorted(path.stem for path in SHARED.glob("*.urdf")))]
every_robot = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly) for name in EVERY]
)


@every_robot
def test_every_operation_of_every_robot_to_the_last_bit(name, tmp_path, machine_code):
    check_operations(robot_of(name), tmp_path, operation_names(), 1000)


def test_frames_have_functions_of_their_own(tmp_path, machine_code):
    robot = Robot(MECHANISMS["four_bar"].tree())
    frame = list(robot.tree.spanning.links)[-1]
    names = ["jacobian", "frame_pose", "frame_bias_acceleration", "loop_state", "velocity_map"]
    report = export_robot(robot, tmp_path, name="r", functions=names, frames=[frame])
    library = CompiledLibrary(report, flags=FLAGS)
    header = report.header.read_text()
    assert "phi (" in header and "conditioning (" in header and "o0" not in header
    for q, _, _ in closed_states(robot, 5):
        expected = prepared(robot, lambda q=q: robot.jacobian(q, frame))
        jacobian = np.zeros(expected.size)
        assert library.call(f"jacobian_{frame}", q, jacobian) == 0
        assert np.array_equal(jacobian, expected.ravel())
        G = np.zeros(robot.nv * robot.ny)
        library.kernel("velocity_map", q, G)
        (right,) = prepared(robot, lambda q=q: robot.kernel("velocity_map").call(q))
        assert np.array_equal(G, right.ravel())


def status_of(call):
    """The code of the error that a call raises, or 0."""
    try:
        call()
    except NotFiniteError:
        return CODE["BAD_ARGUMENT"]
    except ClosureError:
        return CODE["NOT_CLOSED"]
    except SingularityError as error:
        finite = re.search("not finite|no finite", str(error)) is None
        return CODE["DEAD_POINT" if finite else "NOT_FINITE"]
    except InputError as error:
        assert "cannot give" in str(error)
        return CODE["CANNOT_GIVE"]
    return 0


class Feedforward:
    """The same call in Python and in C."""

    def __init__(self, robot, folder, **options):
        self.robot = robot
        self.report = export_robot(
            robot, folder, name="r", functions=["feedforward", "motor_command"], **options
        )
        self.library = CompiledLibrary(self.report, flags=FLAGS)
        self.call = robot.feedforward(self.report.measured)
        self.call.searches = False
        self.call.kernel.compile()
        self.order = [self.report.measured.index(name) for name in self.call.joints]
        self.efforts = np.zeros(len(self.report.motors))

    def python(self, position, velocity, acceleration):
        """Status code and efforts."""
        self.call.position[:] = position[self.order]
        self.call.velocity[:] = velocity[self.order]
        self.call.acceleration[:] = acceleration
        return status_of(self.call)

    def c(self, position, velocity, acceleration):
        return self.library.call(
            "feedforward", *self.base(), position, velocity, acceleration, None, self.efforts
        )

    def base(self):
        if not self.robot.coordinates.base_nq:
            return ()
        return self.call.base_position.copy(), np.zeros(6), np.zeros(6)

    def follow(self, steps, seed=5):
        """A motion with jumps and bad numbers; how often each status came."""
        rng = np.random.default_rng(seed)
        robot, seen = self.robot, {}
        entries = [robot.coordinates.scalar_positions[name] for name in self.report.measured]
        home = robot.tree.home[entries]
        phase = rng.uniform(0, 6, len(entries))
        for k in range(steps):
            position = home + 0.5 * np.sin(0.01 * k + phase) - 0.5 * np.sin(phase)
            if k % 97 == 50:
                position = position + rng.normal(size=position.size)
            if k % 501 == 100:
                position = np.full_like(position, np.nan)
            velocity = rng.normal(size=position.size)
            acceleration = rng.normal(size=self.call.acceleration.size)
            status = self.python(position, velocity, acceleration)
            self.efforts[:] = np.nan
            assert self.c(position, velocity, acceleration) == status, k
            seen[status] = seen.get(status, 0) + 1
            assert np.array_equal(self.library.position(robot.nq), self.call.guess), k
            if status == 0:
                assert np.array_equal(self.efforts, self.call.efforts), k
            else:
                assert np.isnan(self.efforts).all()
        return seen


@pytest.mark.parametrize("mechanism", ["parallel_ankle", "four_bar"])
def test_feedforward_along_a_motion_to_the_last_bit(mechanism, tmp_path, machine_code):
    seen = Feedforward(Robot(MECHANISMS[mechanism].tree()), tmp_path).follow(600)
    assert seen[0] > 500
    assert seen[CODE["BAD_ARGUMENT"]] == 1


def exported(make, robot, folder):
    """The export that `make` returns; skips robots without one."""
    try:
        return make(robot, folder)
    except InputError as error:
        pytest.skip(f"nothing to export: {error}")


@every_robot
def test_feedforward_along_ten_thousand_steps(name, tmp_path, machine_code):
    assert exported(Feedforward, robot_of(name), tmp_path).follow(10000)[0] > 1000


def usual(name):
    """The status of most conversions and commands of a robot.

    The joint of cam is at its dead point in the assembly, that of cylindrical_cut near the end of
    its reach; no motor of over_actuated moves its tail.
    """
    odd = {"cam": "NOT_CLOSED", "cylindrical_cut": "NOT_CLOSED", "over_actuated": "CANNOT_GIVE"}
    return CODE[odd.get(name, "OK")]


class Conversion:
    """From motors to joints and back, in Python and in C."""

    def __init__(self, robot, folder):
        self.robot = robot
        report = export_robot(robot, folder, name="r", functions=["convert"])
        self.library = CompiledLibrary(report, flags=FLAGS)
        sides = {"motors_to_joints": (report.motors, report.joints)}
        sides["joints_to_motors"] = (report.joints, report.motors)
        self.sides = {name: side for name, side in sides.items() if name in report.functions}
        self.guess = {name: robot.tree.home.copy() for name in self.sides}

    def follow(self, steps):
        """A motion; how often each status came."""
        robot, rng, seen = self.robot, np.random.default_rng(4), {}
        for k in range(steps):
            for name, (given, targets) in self.sides.items():
                entries = [robot.coordinates.scalar_positions[each] for each in given]
                phase = np.arange(len(given))
                position = robot.tree.home[entries] + 0.3 * (
                    np.sin(0.02 * k + phase) - np.sin(phase)
                )
                status = self.compare(name, given, targets, position, rng, first=k == 0)
                seen[status] = seen.get(status, 0) + 1
        return seen

    def compare(self, name, given, targets, position, rng, first):
        v, a, e = rng.normal(size=(3, len(given)))
        fields = [dict(zip(given, each, strict=True)) for each in (position, v, a, e)]
        found = []

        def call():
            guess = self.guess[name]
            convert = partial(self.robot.convert, *fields, targets=targets, guess=guess)
            convert = partial(self.without_search, convert)
            found.append(prepared(self.robot, convert) if first else convert())

        status = status_of(call)
        outputs = [np.full(len(targets), np.nan) for _ in range(4)]
        assert self.library.call(name, position, v, a, e, *outputs) == status
        if status == 0:
            (right,) = found
            expected = (right.position, right.velocity, right.acceleration, right.effort)
            for output, each in zip(outputs, expected, strict=True):
                assert np.array_equal(output, each)
            assert abs(e @ v - outputs[3] @ outputs[1]) < 1e-12 * (1 + abs(e * v).sum())
            self.guess[name] = right.q
        return status

    def without_search(self, convert):
        """Where Newton steps of loops fail Python searches, and C does not."""
        if not self.robot.has_loops:
            return convert()
        closer = self.robot._closer
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(closer, "search", not_closed)
            return convert()


def not_closed(*_):
    raise ClosureError("there is no search in C")


def test_conversion_in_both_directions_to_the_last_bit(tmp_path, machine_code):
    conversion = Conversion(Robot(MECHANISMS["parallel_ankle"].tree()), tmp_path)
    assert conversion.follow(20) == {0: 40}
    call = conversion.library.call
    assert call("motors_to_joints", np.full(2, np.nan), *[None] * 7) == CODE["BAD_ARGUMENT"]
    assert call("joints_to_motors", np.full(2, 9.0), *[None] * 7) == CODE["NOT_CLOSED"]


def test_conversion_of_joints_in_a_loop_with_a_floating_base(tmp_path, machine_code):
    """The rotor of the shoulder turns on the base, so its loop contains the base."""
    conversion = Conversion(Robot(MECHANISMS["rotors"].tree()), tmp_path)
    assert conversion.follow(5) == {0: 10}


@every_robot
def test_conversion_of_every_robot_to_the_last_bit(name, tmp_path, machine_code):
    assert exported(Conversion, robot_of(name), tmp_path).follow(1000)[usual(name)] > 100


class Commands:
    """Commands of joints as those of motors, in Python and in C."""

    def __init__(self, robot, folder):
        self.both = Feedforward(robot, folder)
        report = self.both.report
        self.call = robot.motor_command(
            report.joints,
            efforts=("commanded", "springs", "dampers", "feedforward"),
            measured=report.measured,
        )
        self.call.kernel.compile()

    def follow(self, steps):
        """A motion; how often each status came."""
        both, call, seen = self.both, self.call, {}
        robot, report = both.robot, both.report
        rng = np.random.default_rng(6)
        home, places = robot.tree.home, robot.coordinates.scalar_positions
        measured = home[[places[n] for n in report.measured]]
        joints = home[[places[n] for n in report.joints]]
        coordinates = [robot.coordinates.velocities[n].start for n in report.joints]
        order = [report.joints.index(name) for name in call.joints]
        rates = [report.measured.index(n) for n in robot.determining_joints(report.measured)]
        for k in range(steps):
            at = measured + 0.2 * np.sin(0.1 * k)
            velocity, still = rng.normal(size=at.size), np.zeros(both.call.acceleration.size)
            assert both.python(at, velocity, still) == both.c(at, velocity, still)
            position = joints + 0.2 * np.cos(0.1 * k) - 0.2 + (5.0 if k == 50 else 0.0)
            qd, effort, stiffness, damping = rng.normal(size=(4, joints.size))
            call.position[:], call.velocity[:] = position[order], qd[order]
            call.effort[coordinates] = effort
            call.stiffness[coordinates], call.damping[coordinates] = stiffness, damping
            call.measured_velocity[:] = 0.0  # of a floating base
            call.measured_velocity[robot.coordinates.base_nv :] = velocity[rates]
            call.measured_q[:] = both.call.guess
            call.feedforward[:] = both.efforts
            limit = np.full(len(report.motors), 3.0)
            call.limit[:] = limit
            outputs = [np.full(len(report.motors), np.nan) for _ in range(3)]
            expected = status_of(call)
            status = both.library.call(
                "motor_command", position, qd, effort, stiffness, damping, velocity, both.efforts,
                limit, *outputs,
            )  # fmt: skip
            assert status == expected
            seen[status] = seen.get(status, 0) + 1
            if expected == 0:
                parts = (call.motor_position, call.motor_velocity, call.motor_effort)
                for output, right in zip(outputs, parts, strict=True):
                    assert np.array_equal(output, right)
        return seen


def test_motor_commands_to_the_last_bit(tmp_path, machine_code):
    commands = Commands(Robot(MECHANISMS["parallel_ankle"].tree()), tmp_path)
    assert commands.follow(100) == {0: 99, CODE["NOT_CLOSED"]: 1}


@every_robot
def test_motor_commands_of_every_robot_to_the_last_bit(name, tmp_path, machine_code):
    assert exported(Commands, robot_of(name), tmp_path).follow(1000)[usual(name)] > 100


def check_observer(robot, folder, steps):
    report = export_robot(robot, folder, name="r", functions=["observer"])
    library = CompiledLibrary(report, flags=FLAGS)
    observer = MomentumObserver(robot, 50.0)
    state = np.zeros(3 * robot.ny + 2)
    rng = np.random.default_rng(7)
    for name in ("momentum", "friction_force"):
        robot.kernel(name).compile()
    for k in range(steps):
        q, yd, tau = robot.random_state(rng).q, rng.normal(size=robot.ny), rng.normal(size=robot.ny)
        expected = observer.update(0.001 * k, q, yd, tau)
        first = (pointer(state), ctypes.c_double(50.0), ctypes.c_double(0.001 * k))
        assert library.call("observer_update", q, yd, tau, first=first) == 0
        assert np.array_equal(state[: robot.ny], expected), k
    assert library.call("observer_update", q, yd, tau, first=first) == CODE["NOT_LATER"]


def test_observer_to_the_last_bit(tmp_path, machine_code):
    check_observer(Robot(MECHANISMS["parallel_ankle"].tree()), tmp_path, 30)


@every_robot
def test_observer_of_every_robot_to_the_last_bit(name, tmp_path, machine_code):
    check_observer(robot_of(name), tmp_path, 1000)


def check_status_codes(robot, folder, count):
    """Positions on the loops, off them and far away, and numbers that are not finite."""
    report = export_robot(robot, folder, name="r", functions=["gravity_force"])
    library = CompiledLibrary(report, flags=FLAGS)
    call = robot._calls.call(robot, "gravity_force")
    rng, seen = np.random.default_rng(8), set()
    out = np.zeros(robot.ny)
    for _ in range(count):
        q = robot.random_state(rng).q.copy()
        if rng.random() < 0.5:
            q = q + 10.0 ** rng.uniform(-12, 1) * rng.normal(size=q.size)
        if rng.random() < 0.1:
            q[rng.integers(q.size)] = rng.choice([np.nan, np.inf, 1e13])
        answer = call(q)
        status = answer.status if isinstance(answer, core.Rejection) else 0
        assert library.call("gravity_force", q, out) == status
        seen.add(status)
    return seen


def test_status_codes_are_the_engines(tmp_path):
    assert [core.UNREAD, core.NOT_CLOSED, core.OFF_LOOPS, core.DEAD_POINT] == [1, 2, 3, 4]
    robot = Robot(MECHANISMS["parallel_ankle"].tree())
    assert {0, core.UNREAD, core.OFF_LOOPS} <= check_status_codes(robot, tmp_path, 200)


@every_robot
def test_status_codes_of_every_robot_are_the_engines(name, tmp_path):
    assert {0, core.UNREAD} <= check_status_codes(robot_of(name), tmp_path, 1000)


@pytest.mark.parametrize("float32", [False, True], ids=["double", "float"])
def test_compiles_as_c_and_as_cplusplus_without_warnings(tmp_path, float32):
    robot = Robot(MECHANISMS["four_bar"].tree())
    names = ["feedforward", "feedforward_with_wrenches", "convert", "motor_command", "observer"]
    names += ["gate", "forward_dynamics_with_friction", "forward_dynamics_derivatives"]
    report = export_robot(robot, tmp_path, name="r", functions=names, float32=float32)
    out = ["-o", str(tmp_path / "r.o")]
    commands = {"cc": ["-std=c99", "-pedantic"], "c++": ["-x", "c++"]}
    for tool, options in commands.items():
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}")
        for file in (report.source, report.example):
            subprocess.run([tool, *options, *STRICT, str(file), *out], check=True)
    text = report.source.read_text()
    assert not re.search(r"\b(malloc|calloc|realloc|alloca|free)\s*\(", text)
    assert not [line for line in text.splitlines() if line.startswith("static ") and "[]" in line
                and "const" not in line]  # fmt: skip


def test_build_file_and_example(tmp_path):
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("there is no cmake")
    robot = Robot(MECHANISMS["parallel_ankle"].tree())
    export_robot(robot, tmp_path / "ankle", functions=["feedforward"])
    build = tmp_path / "build"
    subprocess.run([cmake, "-S", tmp_path / "ankle", "-B", build], check=True, capture_output=True)
    target = [cmake, "--build", build, "--target", "ankle_example"]
    subprocess.run(target, check=True, capture_output=True)
    done = subprocess.run([build / "ankle_example"], check=True, capture_output=True, text=True)
    assert "left_motor: " in done.stdout and "right_motor: " in done.stdout


def test_single_precision_is_near_double(tmp_path):
    robot = Robot(MECHANISMS["parallel_ankle"].tree())
    report = export_robot(robot, tmp_path, name="r", functions=["feedforward"], float32=True)
    error = feedforward_error(robot, report)
    assert error is not None and error < 1e-3


def test_bad_choices_are_explained(tmp_path):
    robot = Robot(MECHANISMS["parallel_ankle"].tree())
    for options, words in (
        ({"functions": ["nothing"]}, "no function nothing; there are close, feedforward"),
        ({"functions": []}, "name a function"),
        ({"functions": ["jacobian"]}, "--frames"),
        ({"functions": ["feedforward"], "terms": ["luck"]}, "luck"),
        ({"functions": ["feedforward"], "name": "9"}, "no C identifier"),
        ({"functions": ["feedforward"], "measured": ["nobody"]}, "no moving joint nobody"),
    ):
        with pytest.raises(InputError, match=words):
            export_robot(robot, tmp_path, **options)
    assert {"feedforward", "convert", "gate", "loop_state"} <= set(function_names())


@pytest.mark.parametrize("functions", [["convert"], ["convert", "forward_dynamics"] * 2])
def test_a_robot_without_loops_compiles_without_warnings(functions, tmp_path):
    """It had a variable that nothing used, and a function that was named twice was there twice."""
    robot = load_robot(FOLDER / "rotors.urdf")
    report = export_robot(robot, tmp_path, name="r", functions=functions)
    command = ["cc", "-std=c99", "-pedantic", *STRICT, str(report.source)]
    subprocess.run([*command, "-o", str(tmp_path / "r.o")], check=True)
    assert "There are no loops to close." in report.header.read_text()


def test_a_library_of_kernels_alone_has_room_to_start(tmp_path):
    """The workspace had one number, and ``start_from`` wrote a position into it."""
    robot = load_robot(FOLDER / "screw.urdf")
    report = export_robot(robot, tmp_path, name="r", functions=["velocity_map"])
    (numbers,) = re.findall(r"memory\[(\d+)\]", report.header.read_text())
    assert int(numbers) >= robot.nq > 0


def test_closing_can_be_named(tmp_path):
    """The report lists it; naming it was an error."""
    report = export_robot(MECHANISMS["four_bar"].load(), tmp_path, functions=["close"])
    assert report.functions == ("close",)


def test_frames_that_c_cannot_tell_apart_are_explained(tmp_path):
    link = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
    names = ["base", "tip-1", "tip_1"]
    links = "".join(f"<link name='{name}'>{link}</inertial></link>" for name in names)
    joints = "".join(
        f"<joint name='to {child}' type='continuous'><parent link='{parent}'/>"
        f"<child link='{child}'/></joint>"
        for parent, child in itertools.pairwise(names)
    )
    robot = load_robot(f"<robot name='r'>{links}{joints}</robot>")
    with pytest.raises(InputError, match="frames tip-1, tip_1 are all called tip_1 in C"):
        export_robot(robot, tmp_path, functions=["jacobian"], frames=names)
    twice = export_robot(robot, tmp_path, functions=["jacobian"], frames=["tip-1", "tip-1"])
    assert twice.functions == ("jacobian_tip_1",)


def test_functions_about_motors_need_some(tmp_path):
    robot = load_robot(FOLDER / "rotors.urdf", {"actuated_joints": []})
    for name in ("feedforward", "convert", "motor_command"):
        with pytest.raises(InputError, match=rf"{name}: .* has no motors; .*actuated_joints"):
            export_robot(robot, tmp_path, functions=[name])
    with pytest.raises(InputError, match=r"close: .* has no loops"):
        export_robot(robot, tmp_path, functions=["close"])
    still = load_robot("<robot name='r'><link name='base'/></robot>")
    with pytest.raises(InputError, match="observer: r has no joint that moves"):
        export_robot(still, tmp_path, functions=["observer"])


def test_joints_of_several_coordinates_are_explained(tmp_path):
    robot = Robot(MECHANISMS["ball_joint_loop"].tree())
    with pytest.raises(InputError, match=r"ball\.w. is part of a joint with several coordinates"):
        export_robot(robot, tmp_path, functions=["feedforward"])


PAYLOAD = Payload("foot", 1.3, (0.04, -0.01, -0.02), (2e-3, 1e-4, -2e-4, 3e-3, 1e-4, 2.5e-3))


def set_payload(library, payload):
    com, inertia = np.array(payload.com), np.array(payload.inertia)
    first = (ctypes.c_double(payload.mass), pointer(com), pointer(inertia))
    return library.call("set_payload", first=first)


def test_payload_is_an_argument_at_run_time(tmp_path):
    """One library with a payload that comes, changes and goes, against robots that carry it."""
    robot = Robot(MECHANISMS["parallel_ankle"].tree())
    operations = ["inverse_dynamics", "forward_dynamics", "mass_matrix", "center_of_mass"]
    names = ["feedforward", "observer", *operations]
    report = export_robot(robot, tmp_path, name="r", functions=names, payload="foot")
    library = CompiledLibrary(report, flags=FLAGS)
    point = Payload("foot", 0.4, (0.0, 0.0, -0.1))
    for payloads in ({}, {"box": PAYLOAD}, {"tool": point}, {}):
        loaded = robot.with_payloads(payloads)
        given = next(iter(payloads.values()), Payload("foot", 0.0))
        assert set_payload(library, given) == 0
        call = loaded.feedforward(report.measured)
        for q, yd, rng in closed_states(robot, 10):
            a = rng.normal(size=robot.ny)
            for name in operations:
                arguments = {"mass_matrix": [q], "center_of_mass": [q]}.get(name, [q, yd, a])
                right = getattr(loaded, name)(*arguments)
                out = np.zeros(right.size)
                assert library.call(name, *arguments, out) == 0
                assert np.allclose(out, right.ravel(), rtol=1e-10, atol=1e-10), name
            entries = [robot.coordinates.scalar_positions[n] for n in report.measured]
            position, velocity = robot.tree.home[entries] + 0.1 * yd, yd
            call.position[:] = [position[report.measured.index(n)] for n in call.joints]
            call.velocity[:] = [velocity[report.measured.index(n)] for n in call.joints]
            call.acceleration[:] = a
            call()
            efforts = np.zeros(len(report.motors))
            assert library.call("feedforward", position, velocity, a, None, efforts) == 0
            assert np.allclose(efforts, call.efforts, rtol=1e-10, atol=1e-10)


def test_payloads_that_no_body_can_be(tmp_path):
    robot = Robot(MECHANISMS["parallel_ankle"].tree())
    report = export_robot(robot, tmp_path, name="r", functions=["gravity_force"], payload="foot")
    library = CompiledLibrary(report, flags=FLAGS)
    rng, seen = np.random.default_rng(9), set()
    for k in range(300):
        moments = rng.uniform(-0.1, 1.0, 3)
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        I = R @ np.diag(moments) @ R.T
        inertia = tuple(I[i, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)))
        mass = {0: np.nan, 1: -1.0, 2: 1e10, 3: np.inf}.get(k, 1.0)
        payload = Payload("foot", mass, (0.1, 0.0, 0.0), inertia)
        small, middle, large = np.sort(moments)
        if abs(small + middle - large) < 0.02 or abs(small) < 0.02:
            continue  # within the tolerances of either
        try:
            check_payload(robot.tree, "p", payload)
            expected = 0
        except InputError:
            expected = CODE["BAD_ARGUMENT"]
        assert set_payload(library, payload) == expected, payload
        seen.add(expected)
    assert seen == {0, 1}
    with pytest.raises(InputError, match="no link 'nobody'"):
        export_robot(robot, tmp_path, functions=["gravity_force"], payload="nobody")
    with pytest.raises(InputError, match="does not move"):
        export_robot(robot, tmp_path, functions=["gravity_force"], payload="shank")

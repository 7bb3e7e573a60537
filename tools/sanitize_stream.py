"""The C that talks to ROS, and the simulator's C, under sanitizers.

sanitize_stream.py [address | thread], both by default, builds the state machine, the stream's
thread, the conversion of messages and the simulator with AddressSanitizer and UBSan, or with
ThreadSanitizer, into build/sanitize_stream, and runs their tests with it. Ends with an error if
they fail, or if anything is reported.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[1]
COMPILER = os.environ.get("CC", "cc")
SOURCES = {
    "control/native": [
        *sorted(path.name for path in (ROOT / "rbda_ros/control").glob("*.c")),
        "../engine/closing.c",
    ],
    "node/rcl_stream": ["rcl_stream.c"],
    "node/services/c_messages": ["c_messages.c"],
    "simulation/stepper": ["stepper.c", "ground_contacts.c", "../engine/cones.c"],
}
"""Files of each module, in its package."""
TESTS = (
    "test/control/test_faults.py",
    "test/node/test_stream_thread.py",
    "test/node/test_model_swaps.py",
    "test/node/test_stream_commands.py",
    "test/node/services/test_in_place.py",
    "test/simulation/test_simulator.py",
    "test/simulation/test_ground_contacts.py",
)
LIBRARIES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
SANITIZERS = {"address": "address,undefined", "thread": "thread"}


def build(kind):
    """The modules with a sanitizer; the folder they are in, to be put on Python's path."""
    stage = ROOT / "build" / "sanitize_stream" / kind
    prefix = Path(sys.prefix)
    headers = [f"-I{sysconfig.get_path('include')}", f"-I{numpy.get_include()}"]
    headers += [f"-I{path}" for path in (prefix / "include").iterdir()]
    options = ["-std=gnu11", "-O1", "-g", "-shared", "-fPIC", "-fno-omit-frame-pointer"]
    options += [f"-fsanitize={SANITIZERS[kind]}", "-Wall", "-Wextra", "-Werror"]
    options += ["-Wno-missing-field-initializers", f"-L{prefix / 'lib'}"]
    for name, files in SOURCES.items():
        module = stage / "rbda_ros" / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
        module.parent.mkdir(parents=True, exist_ok=True)
        sources = [(ROOT / "rbda_ros" / name).parent / file for file in files]
        command = [COMPILER, *options, *headers, *sources, "-lrcl", "-lrcutils"]
        subprocess.run([*command, "-lrosidl_runtime_c", "-o", module], check=True)
    return stage


def library(name):
    """Where the compiler has a library."""
    command = [COMPILER, f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def run(kind):
    """Whether the tests pass and nothing is reported."""
    stage = build(kind)
    reports = stage / "report"
    for old in stage.glob("report.*"):
        old.unlink()
    environment = os.environ | {
        "LD_PRELOAD": " ".join(map(library, LIBRARIES[kind])),
        # Leaks of Python and of the middleware are none of ours; see test_memory.py.
        "ASAN_OPTIONS": f"detect_leaks=0:quarantine_size_mb=8:log_path={reports}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={reports}",
        # Python and the middleware know nothing of the sanitizer.
        "TSAN_OPTIONS": f"ignore_noninstrumented_modules=1:exitcode=0:log_path={reports}",
        "PYTHONPATH": os.pathsep.join([str(stage), str(ROOT)]),
    }
    # ThreadSanitizer wants addresses where it expects them.
    command = ["setarch", "-R", sys.executable, "-m", "pytest", "-q", "-n", "0", *TESTS]
    failed = subprocess.run(command, env=environment, cwd=ROOT).returncode
    for report in sorted(stage.glob("report.*")):
        print(report.read_text(errors="replace"))
        failed = 1
    return not failed


if __name__ == "__main__":
    sys.exit(0 if all([run(kind) for kind in sys.argv[1:] or SANITIZERS]) else 1)

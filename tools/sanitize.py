"""Calls of the engine, good and bad, under AddressSanitizer and UBSan: `make sanitize`.

Builds rbda_ros/engine with the sanitizers into build/sanitize, and runs tools/stress_calls.py with
it. Ends with an error if they report anything, or if memory grows.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / "build" / "sanitize"
COMPILER = os.environ.get("CC", "cc")
FLAGS = (
    *("-std=c11", "-O1", "-g", "-shared", "-fPIC", "-ffp-contract=off", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-missing-field-initializers"),
)


def build():
    """The module with sanitizers."""
    folder = STAGE / "rbda_ros" / "engine"
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / f"core{sysconfig.get_config_var('EXT_SUFFIX')}"
    headers = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    sources = sorted((ROOT / "rbda_ros" / "engine").glob("*.c"))
    libraries = ["-lm", "-lpthread"]
    subprocess.run([COMPILER, *FLAGS, *headers, *sources, *libraries, "-o", module], check=True)


def library(name):
    """Where the compiler has a library."""
    found = subprocess.run([COMPILER, f"-print-file-name={name}"], capture_output=True, text=True)
    return found.stdout.strip()


def main():
    build()
    environment = os.environ | {
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        # Leaks are looked for by how memory grows: what Python keeps to the end are none.
        "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0:quarantine_size_mb=4",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that every object is a block that the sanitizer knows
        "PYTHONPATH": os.pathsep.join([str(STAGE), str(ROOT)]),
    }
    stress = [sys.executable, ROOT / "tools" / "stress_calls.py", *sys.argv[1:]]
    sys.exit(subprocess.run(stress, env=environment, cwd=ROOT).returncode)


if __name__ == "__main__":
    main()

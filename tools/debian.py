"""Installs programs of Debian's that tests use: `make browser`, `make aarch64`.

Where apt and root are not at hand it says so and is content: the tests that need them are skipped.
"""

import os
import shutil
import sys
from typing import NamedTuple

import chromium
from step import run_step

APT = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60"]


class Wanted(NamedTuple):
    """Programs that a test needs, and the packages that have them."""

    title: str
    found: bool
    packages: list[str]


WANTED = {
    "browser": Wanted("Chromium", chromium.find() is not None, ["chromium"]),
    "aarch64": Wanted(
        "a compiler and an emulator for aarch64",
        all(map(shutil.which, ("aarch64-linux-gnu-gcc", "qemu-aarch64"))),
        ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"],
    ),
}


def install(name, wanted):
    if wanted.found:
        print(f"{name}: there is {wanted.title}")
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"{name}: none, and no root with apt-get to install it; its tests will be skipped")
        return
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    command = [*APT, "install", "-y", "--no-install-recommends", *wanted.packages]
    if run_step(name, f"Installing {wanted.title}", command) == 0:
        return
    # The lists may be old, or none.
    run_step(f"{name}-update", "Updating the lists of packages", [*APT, "update"])
    if run_step(name, f"Installing {wanted.title}", command):
        print(f"{name}: none; its tests will be skipped")


def main():
    for name in sys.argv[1:]:
        install(name, WANTED[name])


if __name__ == "__main__":
    sys.exit(main())

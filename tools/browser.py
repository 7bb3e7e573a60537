"""Installs Debian's Chromium where apt and root are at hand: `make browser`.

Where they are not it says so and is content: the tests that need a browser are skipped.
"""

import os
import shutil
import sys

import chromium
from step import run_step

APT = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60"]


def main():
    if found := chromium.find():
        print(f"browser: {found}")
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print("browser: none, and no root with apt-get to install one; its tests will be skipped")
        return
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    install = [*APT, "install", "-y", "--no-install-recommends", "chromium"]
    if run_step("browser", "Installing Chromium", install) == 0:
        return
    # The lists may be old, or none.
    run_step("browser-update", "Updating the lists of packages", [*APT, "update"])
    if run_step("browser", "Installing Chromium", install):
        print("browser: none; its tests will be skipped")


if __name__ == "__main__":
    sys.exit(main())

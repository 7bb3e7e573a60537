"""Writes requirements.lock: every distribution that building and running the node takes, hashed.

    python tools/lock.py

Asks pip what it would install for this Python, and keeps names, versions and hashes; nothing in it
says where they come from. Install with `pip install --require-hashes -r requirements.lock`, then
`pip install --no-deps --no-build-isolation .`.
"""

import json
import platform
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"


def resolve() -> list[tuple[str, str, str]]:
    """Name, version and SHA-256 of everything that pip would install."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*settings["build-system"]["requires"], *settings["project"]["dependencies"]]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        command += ["--dry-run", "--ignore-installed", "--report", str(report)]
        subprocess.run([*command, *wanted], check=True)
        installed = json.loads(report.read_text())["install"]
    return sorted(
        (
            item["metadata"]["name"].lower().replace("_", "-"),
            item["metadata"]["version"],
            item["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for item in installed
    )


def main() -> None:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    lines = [
        "# Written by tools/lock.py: what building and running the node takes, pinned and hashed,",
        f"# for Python {python} on {sys.platform}, {platform.machine()}.",
    ]
    found = resolve()
    for name, version, digest in found:
        lines += [f"{name}=={version} \\", f"    --hash=sha256:{digest}"]
    LOCK.write_text("\n".join(lines) + "\n")
    print(f"{LOCK.name}: {len(found)} distributions")


if __name__ == "__main__":
    main()

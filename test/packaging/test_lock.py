"""The lock file has all that pyproject.toml asks for, hashed, and does not say where it is from."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text()


def test_all_requirements_are_locked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {*settings["build-system"]["requires"], *settings["project"]["dependencies"]}
    names = {re.match(r"[\w-]+", each)[0].lower().replace("_", "-") for each in wanted}
    locked = set(re.findall(r"^([\w.-]+)==", LOCK, re.M))
    assert names <= locked


def test_every_line_is_a_pin_or_its_hash():
    lines = [line for line in LOCK.splitlines() if not line.startswith("#")]
    pins, hashes = lines[::2], lines[1::2]
    assert len(pins) == len(hashes)
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+ \\", pin) for pin in pins)
    assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line) for line in hashes)

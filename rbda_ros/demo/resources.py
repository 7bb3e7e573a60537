"""Where the files that come with the package are: configuration, robots, launch files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def share_file(relative: str) -> Path:
    """Path of a bundled file, e.g. ``config/robots/demo_leg.urdf``."""
    looked_in = []
    for folder in _share_folders():
        path = folder / relative
        if path.is_file():
            return path
        looked_in.append(str(folder))
    raise FileNotFoundError(f"{relative} is in none of: {', '.join(looked_in)}; reinstall rbda_ros")


def _share_folders() -> Iterator[Path]:
    """Folders to look in, the most specific first."""
    source_tree = Path(__file__).resolve().parents[2]
    if (source_tree / "package.xml").is_file():
        yield source_tree
    try:
        from ament_index_python.packages import get_package_share_directory
    except ImportError:
        pass
    else:
        # The wheels of PyPI do not set AMENT_PREFIX_PATH, which is an OSError here.
        with suppress(LookupError, OSError):
            yield Path(get_package_share_directory("rbda_ros"))
    yield Path(sys.prefix) / "share" / "rbda_ros"

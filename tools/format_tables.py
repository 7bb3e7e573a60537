"""Writes the tables of elements and attributes in docs/formats.md from the readers' own."""

from __future__ import annotations

import re
from pathlib import Path

from rbda_ros.description import elements

PAGE = Path(__file__).resolve().parents[1] / "docs" / "formats.md"
ROOTS = {"URDF": "robot", "SDF": "sdf", "MJCF": "mujoco"}


def rendered(name: str) -> str:
    """The table of a format, in Markdown."""
    rows = ["| element | read | warned about | does not concern dynamics |", "|---|---|---|---|"]
    for path, rest in elements.entries(ROOTS[name]):
        cells = {"read": "", "warned": "", "ignored": ""}
        kind = "read"
        if rest == "left out":
            cells["warned"] = "all of it"
        elif rest == "ignored":
            cells["ignored"] = "all of it"
        else:
            for word in rest.replace(";", " ").split():
                if word in cells:
                    kind = word
                else:
                    cells[kind] += f"`{word}` "
            if not any(cells.values()):
                cells["warned" if rest == "warned" else "read"] = "its text or children"
        columns = " | ".join(cells[each].strip() for each in ("read", "warned", "ignored"))
        rows.append(f"| `{path}` | {columns} |")
    return "\n".join(rows)


def main() -> None:
    page = PAGE.read_text()
    for name in ROOTS:
        pattern = rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)"
        table = f"\n{rendered(name)}\n\n"
        page = re.sub(pattern, lambda m, t=table: m[1] + t + m[2], page, flags=re.S)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()

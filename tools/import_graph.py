"""Draws the packages of rbda_ros and what each imports into docs/architecture.md.

import_graph.py writes the part between the markers; import_graph.py --check only says whether it
is current, and whether every module has a name of its own. The contract itself is import-linter's,
in pyproject.toml; this is its picture.
"""

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rbda_ros"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- import_graph.py: begin -->", "<!-- import_graph.py: end -->"


def packages_lowest_first():
    """The packages, lowest layer first; the contract lists the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [package for layer in reversed(layers) for package in layer.split(" | ")]


PACKAGES = packages_lowest_first()


def package_of(module):
    """Package of a module such as ``node.stream.wire``; that of names of the root is ``robot``."""
    package = module.partition(".")[0]
    return package if package in PACKAGES else "robot"


def modules():
    """Path of each module by its dotted name below rbda_ros."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__").removesuffix("__init__")] = path
    return found


def imported(path):
    """Packages that a file imports from, anywhere in it, except generated interfaces."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, module = name.partition(".")
            if package == "rbda_ros" and not module.startswith(("msg", "srv")):
                yield package_of(module)


def generated_part():
    """The picture and the table, as Markdown."""
    edges = set()
    for name, path in modules().items():
        if name:
            package = package_of(name)
            edges |= {(package, other) for other in imported(path) if other != package}
    # Arrows that follow from others are not drawn.
    drawn = {
        (a, b) for a, b in edges if not any((a, c) in edges and (c, b) in edges for c in PACKAGES)
    }
    order = {package: i for i, package in enumerate(PACKAGES)}
    picture = ["```mermaid", "graph BT"]
    for a, b in sorted(drawn, key=lambda edge: (order[edge[0]], order[edge[1]])):
        picture.append(f"  {a} --> {b}")
    table = ["| package | imports |", "|---|---|"]
    for package in PACKAGES:
        to = sorted((b for a, b in edges if a == package), key=order.__getitem__)
        table.append(f"| `{package}` | {', '.join(to) or '-'} |")
    return "\n".join([BEGIN, "", *picture, "```", "", *table, "", END])


def names_used_twice():
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__"))
    return sorted(name for name, uses in names.items() if uses > 1)


def main(check):
    if twice := names_used_twice():
        sys.exit(f"module names used twice: {', '.join(twice)}; give each module its own")
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    current = before + generated_part() + after
    if check and current != page:
        sys.exit(f"{PAGE.relative_to(ROOT)} is out of date: run python tools/import_graph.py")
    if not check:
        PAGE.write_text(current)


if __name__ == "__main__":
    main("--check" in sys.argv[1:])

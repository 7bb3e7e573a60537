"""`make mutants`: small errors made in a sample of the algorithms, and how many the tests notice.

Each mutant is one changed operator, sign or number in a copy of a file; the tests of that file run
on it, in a process of its own, and should fail. The sample is drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.hardening.verdicts import Verdict, conclude

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = {
    "algorithms/rnea.py": "test/algorithms/test_rnea.py",
    "algorithms/aba.py": "test/algorithms/test_aba.py",
    "algorithms/crba.py": "test/algorithms/test_crba.py",
    "algorithms/efpa.py": "test/algorithms/test_efpa.py",
    "algorithms/pv_osim.py": "test/algorithms/test_pv_osim.py",
    "algorithms/kinematics.py": "test/algorithms/test_kinematics.py",
    "cluster_tree/joints.py": "test/cluster_tree/test_joints.py",
}
ENOUGH = 0.8  # share of the mutants that must be noticed
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Mutate(ast.NodeTransformer):
    """Changes the place of a number; counts places otherwise."""

    def __init__(self, place: int = -1) -> None:
        self.place, self.seen, self.said = place, 0, ""

    def here(self, node: ast.AST, what: str) -> bool:
        self.seen += 1
        if self.seen - 1 != self.place:
            return False
        self.said = f"line {getattr(node, 'lineno', 0)}: {what}"
        return True

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = OPERATORS.get(type(node.op))
        if other is not None and self.here(node, f"{type(node.op).__name__} to {other.__name__}"):
            node.op = other()
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        other = OPERATORS.get(type(node.ops[0]))
        if other is not None and self.here(node, f"to {other.__name__}"):
            node.ops[0] = other()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.USub) and self.here(node, "sign dropped"):
            return node.operand
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr == "T" and self.here(node, "transpose dropped"):
            return node.value
        return node


def places(tree: ast.Module) -> int:
    """How many places can be changed."""
    counter = Mutate()
    counter.visit(tree)
    return counter.seen


def mutants(source: str, count: int, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Changed sources, and what was changed."""
    total = places(ast.parse(source))
    for place in sorted(rng.sample(range(total), min(count, total))):
        change = Mutate(place)
        yield ast.unparse(ast.fix_missing_locations(change.visit(ast.parse(source)))), change.said


def noticed(folder: Path, test: str) -> bool:
    """Whether the tests fail on the package of a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test],
        cwd=folder,
        capture_output=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        timeout=900,
    )
    return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=8, help="mutants a file")
    parser.add_argument("--only", default="", help="part of a file's name")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/hardening.md")
    asked = parser.parse_args()
    rng, verdicts = random.Random(19), []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "main"
        ignore = shutil.ignore_patterns(".venv*", "build", ".git", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, folder, ignore=ignore)
        (Path(temporary) / "shared").symlink_to(ROOT.parent / "shared")
        for name, test in SAMPLE.items():
            path = folder / "rbda_ros" / name
            source, alive, count = path.read_text(), [], 0
            sample = list(mutants(source, asked.count, rng))
            for changed, said in sample if asked.only in name else ():
                path.write_text(changed)
                count += 1
                if not noticed(folder, test):
                    alive.append(said)
            path.write_text(source)
            if count:
                share = 1.0 - len(alive) / count
                found = f"{count - len(alive)} of {count} noticed"
                found += f"; not: {'; '.join(alive)}" if alive else ""
                verdicts.append(Verdict(name, share >= ENOUGH, found))
                print(f"{verdicts[-1].word:<9} {name}: {found}", flush=True)
    conclude("mutants", f"{asked.count} of each file", verdicts, asked.write)


if __name__ == "__main__":
    main()

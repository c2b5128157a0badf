"""Measures of the source code: size, import cycles, interfaces, and the files a question uses.

    python -P benchmarks/house.py [--json]

All but the last are computed from the source text. The last is the number of files in which a
function is called when a question is asked from Python for the second time.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"accountant": "accountant", "lp": "lp", "verify": "verifier", "figures": "figures"}
"""Folders, and their names inside `dpassay`."""
WALKS = """
import json, pathlib, sys
import dpassay as d
certificate = d.certify("Gaussian(3)", epsilon=1, delta="1e-5")[1]
asked = {
    "verify": lambda: d.verify("Gaussian(3)", epsilon=1, delta="1e-5"),
    "epsilon of DP-SGD": lambda: d.dpsgd("1.1", 256, 60000, epochs=30, delta="1e-5").epsilon,
    "audit": lambda: d.audit("Laplace(1)", epsilon="0.9", samples=20000, seed=7),
    "check": lambda: d.check(certificate),
}
root = pathlib.Path.cwd().resolve()
parts = tuple(f"{root / name}/" for name in ("accountant", "lp", "verify", "figures"))
def walked(question):
    seen = set()
    question()
    sys.setprofile(lambda frame, event, _: event == "call" and seen.add(frame.f_code.co_filename))
    question()
    sys.setprofile(None)
    return sum(str(pathlib.Path(name).resolve()).startswith(parts) for name in seen)
print(json.dumps({f"files of a walk: {name}": walked(ask) for name, ask in asked.items()}))
"""


def trees() -> dict[str, tuple[Path, ast.Module]]:
    """Return path and syntax tree of each module of the four packages, by dotted name."""
    found = {}
    for package, inside in PACKAGES.items():
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT / package).with_suffix("").parts
            parts = ("dpassay", inside, *parts)
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path, ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(name: str, tree: ast.Module, known: set[str]) -> set[str]:
    """Return the modules of the package that a module imports, except for type checking only."""
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in node.body
        for inner in ast.walk(child)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for full in names:
            while full and full not in known:
                full = full.rpartition(".")[0]  # noqa: PLW2901
            if full and full != name:
                found.add(full)
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules that import each other, the largest first."""
    reach: dict[str, set[str]] = {}
    for start, following in graph.items():
        seen: set[str] = set()
        stack = list(following)
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack.extend(graph[name])
        reach[start] = seen
    rings = {frozenset(b for b in reach[a] if a in reach[b]) for a in graph if a in reach[a]}
    return sorted((sorted(ring) for ring in rings), key=len, reverse=True)


def unexplained(path: Path, tree: ast.Module) -> int:
    """Count the numeric constants of a module that have neither a comment nor a docstring."""
    lines = path.read_text(encoding="utf-8").splitlines()
    count = 0
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
        parts = list(ast.walk(node.value))
        numeric = any(
            isinstance(n, ast.Constant) and isinstance(n.value, int | float) for n in parts
        )
        named = re.fullmatch(r"_?[A-Z][A-Z0-9_]*", node.targets[0].id)
        if not (numeric and named and all(isinstance(n, kinds) for n in parts)):
            continue
        below = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        last = lines[(node.end_lineno or node.lineno) - 1]
        above = node.lineno > 1 and lines[node.lineno - 2].lstrip().startswith("#")
        count += not (below or "#" in last or above)
    return count


def defined(modules: dict[str, tuple[Path, ast.Module]], pattern: str) -> int:
    """Count the functions of the accountant whose names match."""
    return sum(
        isinstance(node, ast.FunctionDef) and re.fullmatch(pattern, node.name) is not None
        for name, (_, tree) in modules.items()
        if name.startswith("dpassay.accountant")
        for node in ast.walk(tree)
    )


def pairs(modules: dict[str, tuple[Path, ast.Module]]) -> tuple[int, int]:
    """Return how many classes derive from Pair, and how many methods Pair has."""
    parents: dict[str, set[str]] = {}
    methods = 0
    for name, (_, tree) in modules.items():
        if not name.startswith("dpassay.accountant"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                parents[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
                if node.name == "Pair":
                    methods = sum(isinstance(part, ast.FunctionDef) for part in node.body)
    known = {"Pair"}
    while more := {name for name, bases in parents.items() if bases & known} - known:
        known |= more
    return len(known) - 1, methods


def measured() -> dict[str, object]:
    """Return the measures."""
    modules = trees()
    size = {name: len(path.read_text().splitlines()) for name, (path, _) in modules.items()}
    inside = [name for name in modules if name.startswith("dpassay.accountant.composition")]
    graph = {name: imported(name, tree, set(modules)) for name, (_, tree) in modules.items()}
    bare = {name: unexplained(*modules[name]) for name in modules}
    classes, methods = pairs(modules)
    files = subprocess.run(
        [sys.executable, "-c", WALKS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    folders = {modules[name][0].parent for name in inside}
    return {
        "product lines": sum(size.values()),
        **{
            f"lines of {package}": sum(n for m, n in size.items() if m.split(".")[1] == name)
            for package, name in PACKAGES.items()
        },
        "composition: lines": sum(size[name] for name in inside),
        "composition: files": len(inside),
        "composition: folders": len(folders),
        "circles of imports, lazy ones counted": circles(graph),
        "classes of Pair": classes,
        "methods of Pair": methods,
        "inverses": defined(modules, r"_?inverse"),
        "root searches": defined(modules, r"_?(root|bisect|crossing|solve|search|bracket)\w*"),
        "constants that nothing explains: composition": sum(bare[name] for name in inside),
        "constants that nothing explains: all": sum(bare.values()),
        **json.loads(files.stdout),
        "test lines": sum(len(p.read_text().splitlines()) for p in (ROOT / "tests").rglob("*.py")),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    found = measured()
    if parser.parse_args().json:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        print(f"{name:58} {value if value != [] else 'none'}")


if __name__ == "__main__":
    main()

"""`dpassay optimal gaussian-shape`: the best covariance for a sensitivity space."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verify.cli.shell import Command, ExitCode, add_output_options, note, say, say_json

if TYPE_CHECKING:
    from lp.shapes import GaussianShape

_DESCRIPTION = """\
Find the covariance of least total (or weighted, or worst-coordinate) variance with which
Gaussian noise is 1-GDP for all differences of a space; divide it by mu^2 for any other mu.
"""
_EPILOG = """\
examples:
  dpassay optimal gaussian-shape "Box(bounds=[1, 2, 3])"
  dpassay optimal gaussian-shape "SparseBox(dimension=5, sparsity=3)" --objective worst
  dpassay optimal gaussian-shape "FiniteSet(vectors=[[1, 0], [1, 1]])" --weights 1,4 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("space", metavar="SPACE", help="Box(…), SparseBox(…) or FiniteSet(…)")
    parser.add_argument(
        "--objective", default="total", metavar="NAME", help="total (default) or worst"
    )
    parser.add_argument("--weights", metavar="LIST", help="of the coordinates (1,1,4)")
    parser.add_argument(
        "--solver", default="CLARABEL", metavar="NAME", help="for cvxpy (default CLARABEL)"
    )
    parser.add_argument("--certificate", metavar="FILE", help="write what proves the lower bound")
    add_output_options(parser, quiet="print the mechanism only")


def run(options: argparse.Namespace) -> int:
    """Solve and print."""
    from accountant import notation
    from lp.shape_problem import GaussianShapeProblem
    from lp.shapes import optimal_gaussian_shape

    space: Any = notation.parse_description(options.space)
    weights = None if options.weights is None else options.weights.split(",")
    found = optimal_gaussian_shape(
        GaussianShapeProblem(space, options.objective, weights), solver=options.solver
    )
    if options.certificate is not None:
        path = Path(options.certificate)
        path.write_text(json.dumps(certificate(found), indent=1) + "\n", encoding="utf-8")
        note(f"certificate: {path}")
    if options.json:
        say_json(to_json(found))
    elif options.quiet:
        say(repr(found.mechanism))
    else:
        _show(found)
    return ExitCode.DONE


def to_json(found: GaussianShape) -> dict[str, Any]:
    """Return the answer as plain data."""
    return {
        "schema_version": 1,
        "problem": repr(found.problem),
        "objective": found.problem.objective,
        "optimum": found.value.to_json(),
        "mechanism": repr(found.mechanism),
        "seconds": round(found.seconds, 6),
    }


def certificate(found: GaussianShape) -> dict[str, Any]:
    """Return what `lp.shapes.shape_bound` needs, and the mechanism, all exact."""
    data = to_json(found)
    del data["seconds"]
    return data | {
        "vertices": [
            {"square": str(v.square), "entries": [str(entry) for entry in v.entries]}
            for v in found.vertices
        ],
        "law": [str(mass) for mass in found.law],
        "coordinate_weights": [str(weight) for weight in found.coordinate_weights],
    }


def _show(found: GaussianShape) -> None:
    from verify import report

    total = "least total variance" if found.problem.objective == "total" else "least worst variance"
    if found.problem.weights is not None:
        total += ", weighted"
    say(f"  {total} at mu = 1   {found.value}")
    say("  covariance")
    rows = [[f"{float(entry):.8g}" for entry in row] for row in found.mechanism.covariance.matrix()]
    say(report.columns([("   ", *row) for row in rows]))


COMMAND = Command(
    "gaussian-shape",
    "the best covariance for given sensitivities",
    _DESCRIPTION,
    _EPILOG,
    configure,
    run,
)

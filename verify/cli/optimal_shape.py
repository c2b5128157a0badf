"""`dpassay optimal gaussian-shape`: the best covariance for a sensitivity space."""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.accountant.errors import InvalidInputError, suggestion
from dpassay.verifier.cli.optimal_shared import write_certificate
from dpassay.verifier.cli.shell import Command, ExitCode, add_output_options, say, say_json
from dpassay.verifier.tables import columns

if TYPE_CHECKING:
    from dpassay.accountant.geometry.spaces import Space
    from dpassay.lp.shapes import GaussianShape

_DESCRIPTION = """\
Find the covariance of least total (or weighted, or worst-coordinate) variance with which
Gaussian noise is 1-GDP for all differences of a space; divide it by mu^2 for any other mu.
A FILE (.toml or .json) holds space = "Box(…)" or the vertices = [[…], …] of a symmetric
polytope, and, where wanted, objective, weights and solver.
"""
_EPILOG = """\
examples:
  dpassay optimal gaussian-shape "Box(bounds=[1, 2, 3])"
  dpassay optimal gaussian-shape "SparseBox(dimension=5, sparsity=3)" --objective worst
  dpassay optimal gaussian-shape "FiniteSet(vectors=[[1, 0], [1, 1]])" --weights 1,4 --json
  dpassay optimal gaussian-shape shape.toml --certificate shape.json
"""
_NOTHING = 1e-8
"""Of the largest variance: a smaller covariance is printed as 0."""
_KEYS = ("space", "vertices", "objective", "weights", "solver")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add(
        "space",
        metavar="SPACE",
        help="Box(…), SparseBox(…), L2Ball(…), FiniteSet(…), DisjointGroups(…), or a FILE",
    )
    add("--objective", metavar="NAME", help="total (default) or worst")
    add("--weights", metavar="LIST", help="weights of the coordinates (1,1,4)")
    add("--solver", metavar="NAME", help="for cvxpy (default CLARABEL)")
    add("--certificate", metavar="FILE", help="write the proof of both bounds")
    add_output_options(parser, quiet="print the mechanism only")


def run(options: argparse.Namespace) -> int:
    """Solve and print."""
    from dpassay.lp.shapes import GaussianShapeProblem, optimal_gaussian_shape

    given = read(options.space)
    weights = given.get("weights") if options.weights is None else options.weights.split(",")
    found = optimal_gaussian_shape(
        GaussianShapeProblem(
            given["space"], options.objective or given.get("objective", "total"), weights
        ),
        solver=options.solver or given.get("solver", "CLARABEL"),
    )
    if options.certificate is not None:
        from dpassay.verifier.prover.optima import gaussian_shape

        write_certificate(options.certificate, gaussian_shape(found))
    if options.json:
        say_json(to_json(found))
    elif options.quiet:
        say(repr(found.mechanism))
    else:
        _show(found)
    return ExitCode.DONE


def read(text: str) -> dict[str, Any]:
    """Read a space in the notation of mechanisms, or a file with one.

    Raises InvalidInputError for a file that does not have the keys that are described above.
    """
    from dpassay.accountant import notation
    from dpassay.accountant.geometry.spaces import FiniteSet

    path = Path(text)
    if path.suffix.lower() not in (".toml", ".json"):
        return {"space": notation.parse_description(text)}
    try:
        content = path.read_text(encoding="utf-8")
        if path.suffix.lower() == ".json":
            data = json.loads(content, parse_float=str)
        else:
            data = tomllib.loads(content, parse_float=str)
    except ValueError as error:
        raise InvalidInputError(f"{path} cannot be read: {error}.") from None
    if not isinstance(data, dict):
        raise InvalidInputError(f"Expected {path} to hold a table with a space.")
    for key in data:
        if key not in _KEYS:
            raise InvalidInputError(f"{path} has an unknown key {key!r}. {suggestion(key, _KEYS)}")
    if ("space" in data) == ("vertices" in data):
        raise InvalidInputError(f"Expected {path} to have one of space and vertices.")
    if "vertices" in data:
        space: Space | Any = FiniteSet(data.pop("vertices"))
    else:
        space = notation.parse_description(str(data["space"]))
    return {**data, "space": space}


def to_json(found: GaussianShape) -> dict[str, Any]:
    """Return the answer as plain data."""
    return {
        "schema_version": 1,
        "problem": repr(found.problem),
        "minimised": found.problem.objective,
        "objective": found.value.to_json(),
        "exact": None,
        "law": repr(found.mechanism),
        "covariance": _covariance(found),
        "seconds": round(found.seconds, 6),
    }


def _covariance(found: GaussianShape) -> list[list[str]]:
    return [[str(entry) for entry in row] for row in found.mechanism.covariance.matrix()]


def _show(found: GaussianShape) -> None:
    from dpassay.accountant.numbers.reading import few

    total = "least total variance" if found.problem.objective == "total" else "least worst variance"
    if found.problem.weights is not None:
        total += ", weighted"
    say(f"  {total} at mu = 1   {found.value}")
    say("  covariance (rounded; --json has every digit)")
    matrix = found.mechanism.covariance.matrix()
    largest = max(float(row[i]) for i, row in enumerate(matrix))
    # What the solver leaves of a 0 is none of the answer.
    rows = [[few(x if abs(x) > _NOTHING * largest else 0) for x in row] for row in matrix]
    say(columns([("   ", *row) for row in rows]))


COMMAND = Command(
    "gaussian-shape",
    "the best covariance for given sensitivities",
    _DESCRIPTION,
    _EPILOG,
    configure,
    run,
)

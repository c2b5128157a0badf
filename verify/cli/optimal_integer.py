"""`dpassay optimal integer-noise`: the best bounded integer noise for (ε, δ)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpassay.verifier.cli.optimal_shared import DrawLaws, Kind, add_files, digits, shown
from dpassay.verifier.cli.shell import Command, add_output_options, say
from dpassay.verifier.tables import columns

if TYPE_CHECKING:
    from dpassay.lp.integer_noise import IntegerNoiseSolution

_DESCRIPTION = """\
Find the (epsilon, delta)-DP integer noise on -D..D of least cost. The hockey-stick divergence is
bounded for every shift up to the sensitivity, in both directions. With --objective delta, find the
least delta instead.
"""
_EPILOG = """\
examples:
  dpassay optimal integer-noise --epsilon 1 --delta 1e-6
  dpassay optimal integer-noise --ratio 3 --delta 1e-6 --objective error --json
  dpassay optimal integer-noise --epsilon 1 --objective delta --error-free 1/2 --support 10
  dpassay optimal integer-noise --epsilon 1 --delta 1e-3,1e-6 --support free --sensitivity 1,2,3
"""
_FIRST_SUPPORT = 8
"""Where --support free starts to look for a support that no larger one beats."""
_NAMES = {
    "variance": "least variance of unbiased noise, E[Z^2]",
    "absolute": "least E|Z|",
    "error": "least P(Z != 0)",
    "cost": "least E[cost(|Z|)]",
    "delta": "least delta",
}


def command(draw: DrawLaws | None) -> Command:
    """Return the command, which draws with `draw`."""
    return Command(
        "integer-noise",
        "bounded integer noise of least cost",
        _DESCRIPTION,
        _EPILOG,
        configure,
        lambda options: _KIND.run(options, draw),
    )


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("--epsilon", metavar="E", action="append", help="epsilon; several values make a sweep")
    add("--ratio", metavar="R", action="append", help="e^epsilon itself, for an exact answer")
    add("--delta", metavar="D", action="append", help="delta, unless it is the objective")
    add(
        "--objective",
        default="variance",
        metavar="NAME",
        help="variance (default), absolute, error, cost or delta",
    )
    add(
        "--costs", metavar="LIST", help="with --objective cost: costs of the errors 1, 2, … (1,4,9)"
    )
    add(
        "--support",
        metavar="D",
        action="append",
        help="the largest error (default 32), or free: best on every support",
    )
    add(
        "--sensitivity",
        metavar="S",
        action="append",
        help="sensitivity of the true answer (default 1)",
    )
    add("--error-free", metavar="P", action="append", help="prescribe P(Z = 0)")
    add("--monotone", action="store_true", help="require P(Z = z) to fall with |z|")
    add_files(parser, evidence="law and tests")
    add_output_options(parser, quiet="print the mechanism only")


def _solve(options: argparse.Namespace, cell: Mapping[str, str | None]) -> IntegerNoiseSolution:
    from dpassay.lp.integer_noise import (
        IntegerNoiseProblem,
        optimal_free_noise,
        optimal_integer_noise,
    )

    support = cell.get("support") or "32"
    free = support == "free"
    given: Any = {
        "objective": options.objective,
        "support": _FIRST_SUPPORT if free else support,
        "delta": cell.get("delta"),
        "epsilon": cell.get("epsilon"),
        "ratio": cell.get("ratio"),
        "sensitivity": cell.get("sensitivity") or "1",
        "error_free": cell.get("error_free"),
        "costs": None if options.costs is None else options.costs.split(","),
        "monotone": options.monotone,
    }
    problem = IntegerNoiseProblem(**given)
    return optimal_free_noise(problem) if free else optimal_integer_noise(problem)


def to_json(solution: IntegerNoiseSolution) -> dict[str, Any]:
    """Return the answer as plain data."""
    return {
        "schema_version": 1,
        "problem": repr(solution.problem),
        "minimised": solution.problem.objective,
        "objective": solution.value.to_json(),
        **({"delta": solution.value.to_json()} if solution.problem.delta is None else {}),
        "exact": None if solution.exact is None else str(solution.exact),
        "every_support": solution.every_support,
        "law": {
            "lowest": -solution.problem.support,
            "probabilities": [str(mass) for mass in solution.mechanism.probabilities],
        },
        "mechanism": repr(solution.mechanism),
        "seconds": round(solution.seconds, 6),
    }


def _show(solution: IntegerNoiseSolution, _: argparse.Namespace) -> None:
    rows = [(_NAMES[solution.problem.objective], str(solution.value))]
    if solution.exact is not None and len(str(solution.exact)) <= 60:
        rows.append(("exactly", str(solution.exact)))
    if solution.problem.objective != "delta":
        reached = "also for any larger support" if solution.every_support else "for this support"
        rows.append(("proved", reached))
    say(columns([(f"  {name}", value) for name, value in rows]))
    say("  law")
    for z, mass in enumerate(solution.side()):
        if mass:
            say(f"    P(Z = {'±' if z else ' '}{z:<3}) = {digits(mass)}")


def _laws(solution: IntegerNoiseSolution) -> tuple[list[tuple[str, int, list[float]]], str]:
    law = [float(mass) for mass in solution.mechanism.probabilities]
    title = f"P(Z = z), {_NAMES[solution.problem.objective]}: {solution.value}"
    return [("optimal", -solution.problem.support, law)], title


_KIND = Kind(
    name="integer-noise",
    axes=("epsilon", "ratio", "delta", "sensitivity", "support", "error_free"),
    fixed=("objective", "costs", "monotone"),
    kept=("objective", "exact", "mechanism", "seconds"),
    solve=_solve,
    certificate=lambda solution: import_module("dpassay.verifier.prover.optima").integer_noise(
        solution
    ),
    to_json=to_json,
    line=lambda answer: shown(answer["objective"]),
    quiet=lambda solution: repr(solution.mechanism),
    show=_show,
    laws=_laws,
)

"""`dpassay optimal integer-noise`: the best bounded integer noise for (ε, δ)."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verify.cli.shell import Command, ExitCode, add_output_options, note, say, say_json

if TYPE_CHECKING:
    from lp.integer_noise import IntegerNoiseSolution

_DESCRIPTION = """\
Find integer noise on -D..D of least cost among all that is (epsilon, delta)-DP, with the
hockey-stick divergence bounded for every shift up to the sensitivity, in both directions. With
--objective delta, find the least delta instead.
"""
_EPILOG = """\
examples:
  dpassay optimal integer-noise --epsilon 1 --delta 1e-6
  dpassay optimal integer-noise --ratio 3 --delta 1e-6 --objective error --json
  dpassay optimal integer-noise --epsilon 1 --objective delta --error-free 1/2 --support 10
"""
_NAMES = {
    "variance": "least variance of unbiased noise, E[Z^2]",
    "absolute": "least E|Z|",
    "error": "least P(Z != 0)",
    "cost": "least E[cost(|Z|)]",
    "delta": "least delta",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--epsilon", metavar="E", help="epsilon")
    parser.add_argument("--ratio", metavar="R", help="e^epsilon itself, for an exact answer")
    parser.add_argument("--delta", metavar="D", help="delta, unless it is the objective")
    parser.add_argument(
        "--objective",
        default="variance",
        metavar="NAME",
        help="variance (default), absolute, error, cost or delta",
    )
    parser.add_argument(
        "--costs", metavar="LIST", help="with --objective cost: of the errors 1, 2, … (1,4,9)"
    )
    parser.add_argument(
        "--support", default="32", metavar="D", help="the largest error (default 32)"
    )
    parser.add_argument(
        "--sensitivity", default="1", metavar="S", help="of the true answer (default 1)"
    )
    parser.add_argument("--error-free", metavar="P", help="prescribe P(Z = 0)")
    parser.add_argument(
        "--certificate", metavar="FILE", help="write the tests that prove the lower bound"
    )
    add_output_options(parser, quiet="print the mechanism only")


def run(options: argparse.Namespace) -> int:
    """Solve and print."""
    from lp.integer_noise import optimal_integer_noise
    from lp.integer_problem import IntegerNoiseProblem

    solution = optimal_integer_noise(
        IntegerNoiseProblem(
            options.objective,
            options.support,
            options.delta,
            options.epsilon,
            options.ratio,
            options.sensitivity,
            options.error_free,
            None if options.costs is None else options.costs.split(","),
        )
    )
    if options.certificate is not None:
        path = Path(options.certificate)
        path.write_text(json.dumps(certificate(solution), indent=1) + "\n", encoding="utf-8")
        note(f"certificate: {path}")
    if options.json:
        say_json(to_json(solution))
    elif options.quiet:
        say(repr(solution.mechanism))
    else:
        _show(solution)
    return ExitCode.DONE


def to_json(solution: IntegerNoiseSolution) -> dict[str, Any]:
    """Return the answer as plain data."""
    return {
        "schema_version": 1,
        "problem": repr(solution.problem),
        "objective": solution.problem.objective,
        "optimum": solution.value.to_json(),
        "exact": None if solution.exact is None else str(solution.exact),
        "every_support": solution.every_support,
        "mechanism": repr(solution.mechanism),
        "seconds": round(solution.seconds, 6),
    }


def certificate(solution: IntegerNoiseSolution) -> dict[str, Any]:
    """Return the problem, the law and the tests, all exact: what `dpassay optimal check` reads."""
    data, problem = to_json(solution), solution.problem
    del data["seconds"]
    given = {
        "objective": problem.objective,
        "support": problem.support,
        "sensitivity": problem.sensitivity,
        "costs": None if problem.costs is None else [str(cost) for cost in problem.costs],
    }
    for name in ("epsilon", "ratio", "delta", "error_free"):
        value = getattr(problem, name)
        given[name] = None if value is None else str(value)
    return data | {
        "given": given,
        "law": [str(mass.rational) for mass in solution.mechanism.probabilities],
        "ratio": [str(bound) for bound in solution.ratio],
        "divergence": str(solution.divergence),
        "tests": [[str(entry) for entry in test] for test in solution.tests],
    }


def _show(solution: IntegerNoiseSolution) -> None:
    from verify import report

    rows = [(_NAMES[solution.problem.objective], str(solution.value))]
    if solution.exact is not None and len(str(solution.exact)) <= 60:
        rows.append(("exactly", str(solution.exact)))
    if solution.problem.objective != "delta":
        reached = "also for any larger support" if solution.every_support else "for this support"
        rows.append(("proved", reached))
    say(report.columns([(f"  {name}", value) for name, value in rows]))
    say("  law")
    for z, mass in enumerate(solution.side()):
        if mass:
            say(f"    P(Z = {'±' if z else ' '}{z:<3}) = {float(mass):.12g}")


COMMAND = Command(
    "integer-noise", "bounded integer noise of least cost", _DESCRIPTION, _EPILOG, configure, run
)

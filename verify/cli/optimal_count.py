"""`dpassay optimal count-noise`: the least δ of bounded noise for counts."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpassay.verifier.cli.optimal_shared import DrawLaws, Kind, add_files, digits, shown
from dpassay.verifier.cli.shell import Command, add_output_options, say
from dpassay.verifier.tables import columns

if TYPE_CHECKING:
    from dpassay.lp.count_noise import Solution
    from dpassay.lp.problem import CountNoiseProblem

_DESCRIPTION = """\
Find the least delta of unbiased noise on -min(n, D)..D with P(Z = 0) = eta that is added to a
count n in 1..N: each count has a law of its own (--max-count), or all counts n >= D share one
law (--data-independent, the default). With --objective singular, delta bounds single outcomes,
P(Y = y | n) <= e^epsilon P(Y = y | n') + delta; with true-delta it is that of (epsilon, delta)-DP.
"""
_EPILOG = """\
examples:
  dpassay optimal count-noise --epsilon 2.2 --eta 0.7 --support 12 --max-count 1000000
  dpassay optimal count-noise --ratio 3 --eta 1/2 --support 4 --data-independent --json
  dpassay optimal count-noise --epsilon 1.5 --eta 0.5 --support 6 --objective true-delta
  dpassay optimal count-noise --epsilon 1,2,3 --eta 0.3,0.5 --support 6,8 --out cells.jsonl
  dpassay optimal count-noise --epsilon 1,1.5,2,2.5 --eta 0.5 --support 4,6,8 --plot delta.pdf
  dpassay optimal count-noise --epsilon 1.1 --eta 0.5 --support 6 --solver cvxpy:HIGHS
"""
_MOST_SHOWN = 6
"""Laws that are printed and drawn: of more, the first ones and the last."""


def command(draw: DrawLaws | None) -> Command:
    """Return the command, which draws with `draw`."""
    return Command(
        "count-noise",
        "bounded noise for counts with the least delta",
        _DESCRIPTION,
        _EPILOG,
        configure,
        lambda options: _KIND.run(options, draw),
    )


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    several = "; several values (1,2,3) make a sweep"
    add("--epsilon", metavar="E", action="append", help=f"epsilon{several}")
    add("--ratio", metavar="R", action="append", help="e^epsilon itself, for an exact answer")
    add("--eta", metavar="H", action="append", required=True, help="P(Z = 0), in (0, 1)")
    add("--support", metavar="D", action="append", required=True, help="the largest error")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--max-count", metavar="N", help="the largest count; laws differ by count")
    add("--min-count", metavar="N", default="1", help="the least count (default 1)")
    which.add_argument("--data-independent", action="store_true", help="one law (default)")
    add(
        "--objective",
        default="singular",
        metavar="NAME",
        help="singular (default): of single outcomes; true-delta: of (epsilon, delta)-DP",
    )
    add(
        "--alphas",
        action="store_true",
        help="also print the weights α[i1,i2,n] of the two-point laws",
    )
    add(
        "--solver",
        metavar="NAME",
        help="also solve the printed program by cvxpy, cvxpy:CLARABEL, cvxpy:HIGHS or cvxpy:SCS, "
        "and say how far its α's are from the proved optimum",
    )
    add("--relative-width", metavar="W", help="width of the enclosure (default: aim at 1e-12)")
    add_files(parser, evidence="laws and multipliers")
    add_output_options(parser, quiet="print the enclosure only")


def _solve(options: argparse.Namespace, cell: Mapping[str, str | None]) -> Solution:
    from dpassay.accountant.core.validate import rational
    from dpassay.lp.count_noise import optimal_count_noise

    width = options.relative_width
    return optimal_count_noise(
        _problem(options, cell),
        relative_width=None
        if width is None
        else rational("relative-width", width, least=0, strict=True),
        solver=options.solver,
    )


def _problem(options: argparse.Namespace, cell: Mapping[str, str | None]) -> CountNoiseProblem:
    from dpassay.lp.problem import CountNoiseProblem

    given: dict[str, Any] = {name: text for name, text in cell.items() if text is not None}
    return CountNoiseProblem(
        **given,
        max_count=options.max_count,
        objective=options.objective,
        min_count=options.min_count,
    )


def _show(solution: Solution, options: argparse.Namespace) -> None:
    from dpassay.lp.one_law import counts_for_one_law

    problem = solution.problem
    rows = [("least delta", str(solution.delta))]
    if solution.exact is not None and len(str(solution.exact)) <= 60:
        rows.append(("exactly", str(solution.exact)))
    singles, events = (str(solution.reached[name]) for name in ("singular", "true-delta"))
    star = dict(enumerate(solution.alpha_star or (), start=1))
    if problem.objective == "singular":
        rows.append(("of", "single outcomes"))
        rows.append(("as (ε, δ)-DP", f"δ = {events}, of all events"))
    else:
        rows.append(("of", "all events, as (ε, δ)-DP"))
        rows.append(("single outcomes", f"δ = {singles}"))
    if (found := solution.solver_answer) is not None:
        rows.append(
            (
                f"cvxpy, {found.solver}",
                f"δ = {found.delta:.9g}, off by {found.delta_off:.1e}; α's off by "
                f"{found.alpha_off:.1e} at most{'' if star else ' (several may be optimal)'}",
            )
        )
    singular = problem.max_count is None and problem.objective == "singular"
    if singular and (counts := counts_for_one_law(problem)) is not None:
        rows.append(("one law is best", f"over {counts} or more counts n ≥ {problem.support}"))
    say(columns([(f"  {name}", value) for name, value in rows]))
    laws = _laws(solution)
    skipped = len(solution.laws) - len(laws)
    for label, lowest, law in laws:
        if skipped and label == laws[-1][0]:
            say(f"  {skipped} laws in between are left out (--json has all)")
        say(f"  law of {label}")
        for z, mass in enumerate(law, start=lowest):
            if mass:
                own = f"   α_{z} = {digits(star[z])}" if z in star else ""
                say(f"    P(Z = {z:3}) = {digits(mass):<18}{own}".rstrip())
    if options.alphas:
        first = solution.problem.support if star else solution.problem.min_count
        for n, _ in enumerate(solution.laws, start=first):
            say(f"  weights of n = {n}")
            for (i1, i2), alpha in solution.alphas(n).items():
                say(f"    α[{i1},{i2},{n}] = {digits(alpha)}")


def _title(solution: Solution) -> str:
    """Return what is drawn, with the parameters and both δ."""
    problem = solution.problem
    privacy = f"E = {problem.ratio}" if problem.epsilon is None else f"ε = {problem.epsilon}"
    singles, events = (
        f"{float(solution.reached[name]):.4g}" for name in ("singular", "true-delta")
    )
    least = "single outcomes" if problem.objective == "singular" else "all events"
    return (
        f"Least δ of {least}: {privacy}, η = {problem.eta}, D = {problem.support}\n"
        f"δ of single outcomes {singles}; as (ε, δ)-DP {events}"
    )


def _laws(solution: Solution) -> list[tuple[str, int, list[float]]]:
    """Return label, least value and probabilities of the first laws and of the last."""
    if solution.problem.max_count is None:
        labels = [f"every n ≥ {solution.problem.support}"]
    else:
        first = solution.problem.min_count
        labels = [f"n = {count}" for count, _ in enumerate(solution.laws, first)]
        if solution.problem.max_count >= first + len(solution.laws):
            labels[-1] = f"n ≥ {first + len(solution.laws) - 1}"
    entries = [
        (label, law.lowest, [float(mass) for mass in law.fractions()])
        for label, law in zip(labels, solution.laws, strict=True)
    ]
    return entries if len(entries) <= _MOST_SHOWN else [*entries[: _MOST_SHOWN - 1], entries[-1]]


_KIND = Kind(
    name="count-noise",
    axes=("epsilon", "ratio", "eta", "support"),
    fixed=("objective", "max_count", "min_count", "relative_width", "solver"),
    kept=("delta", "exact", "seconds"),
    solve=_solve,
    certificate=lambda solution: import_module("dpassay.verifier.prover.optima").count_noise(
        solution
    ),
    to_json=lambda solution: import_module("dpassay.lp.report").to_json(solution),
    line=lambda answer: f"delta={answer['exact'] or shown(answer['delta'])}",
    quiet=lambda solution: str(solution.delta),
    show=_show,
    laws=lambda solution: (_laws(solution), _title(solution)),
    swept="delta",
)

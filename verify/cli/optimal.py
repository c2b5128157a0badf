"""`dpassay optimal`: the least noise of its kind, with proof that nothing is better."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.errors import InvalidInputError, suggestion
from dpassay.verifier.cli.shell import Command, ExitCode, checked_path, note, say, say_json
from dpassay.verifier.terminal import columns

if TYPE_CHECKING:
    from dpassay.accountant.geometry.spaces import Space
    from dpassay.lp.count_noise import Solution
    from dpassay.lp.integer_noise import IntegerNoiseSolution
    from dpassay.lp.shapes import GaussianShape


Law: TypeAlias = tuple[str, int, Sequence[float]]
"""A label, the least value, and the probabilities from there on."""


@final
@dataclass(frozen=True)
class Laws(Drawable):
    """Laws on integers, with what they are the best of."""

    laws: Sequence[Law]
    title: str


def _print_solution(
    options: argparse.Namespace,
    kind: str,
    solution: Any,
    to_json: Callable[[Any], object],
    *,
    quiet: str,
    show: Callable[[Any], None],
) -> None:
    """Write the certificate where it is wanted; print the answer in words, as JSON or in short."""
    if options.certificate is not None:
        from dpassay.verifier.prover import optima, write

        write(options.certificate, [getattr(optima, kind)(solution)])
        note(f"certificate: {options.certificate}")
    if options.json:
        say_json(to_json(solution))
    elif options.quiet:
        say(quiet)
    else:
        show(solution)


def digits(value: Fraction | float) -> str:
    """Return twelve digits, with the exponents that enclosures are printed with.

    >>> digits(Fraction(1, 3)), digits(5e-5), digits(1.25e-8)
    ('0.333333333333', '0.00005', '1.25e-8')
    """
    return f"{Decimal(f'{float(value):.12g}'):g}"


def _draw(laws: Sequence[Law], path: Path | None, title: str) -> None:
    """Draw laws where a file is named."""
    if path is not None:
        Laws(laws, title).plot(path)
        note(f"wrote {path}")


# --- `dpassay optimal count-noise`: the least δ of bounded noise for counts -----------------------

_COUNT_DESCRIPTION = """\
Find the least delta of unbiased noise on -min(n, D)..D with P(Z = 0) = eta that is added to a
count n in 1..N: each count has a law of its own (--max-count), or all counts n >= D share one
law (--data-independent, the default). With --objective singular, delta bounds single outcomes,
P(Y = y | n) <= e^epsilon P(Y = y | n') + delta; with true-delta it is that of (epsilon, delta)-DP.
"""
_COUNT_EPILOG = """\
examples:
  dpassay optimal count-noise --epsilon 2.2 --eta 0.7 --support 12 --max-count 1000000
  dpassay optimal count-noise --ratio 3 --eta 1/2 --support 4 --data-independent --json
  dpassay optimal count-noise --epsilon 1.5 --eta 0.5 --support 6 --objective true-delta
  dpassay optimal count-noise --epsilon 1.1 --eta 0.5 --support 6 --solver cvxpy:HIGHS
"""
_COUNT_OPTIONS = """\
--epsilon E  epsilon
--ratio R  e^epsilon itself, for an exact answer
--eta H !  P(Z = 0), in (0, 1)
--support D !  the largest error
--min-count N =1  the least count (default 1)
--max-count N  the largest count; laws differ by count
| --data-independent  one law (default)
--objective NAME =singular  singular (default): of single outcomes; true-delta: of (epsilon,
    delta)-DP
--alphas  also print the weights α[i1,i2,n] of the two-point laws
--solver NAME  also solve the printed program by cvxpy, cvxpy:CLARABEL, cvxpy:HIGHS or cvxpy:SCS,
    and say how far its α's are from the proved optimum
--relative-width W  width of the enclosure (default: aim at 1e-12)
--certificate FILE  write laws and multipliers, for dpassay check
--plot FILE  draw the laws (.png, .pdf or .svg)
"""
_MOST_SHOWN = 6
"""Laws that are printed and drawn: of more, the first ones and the last."""


def _run_count(options: argparse.Namespace) -> int:
    """Solve and print."""
    from dpassay.accountant.core.validate import rational
    from dpassay.lp import count_noise
    from dpassay.lp.problem import CountNoiseProblem

    path, width = checked_path(options.plot, Drawable.drawer), options.relative_width
    names = ("epsilon", "ratio", "eta", "support", "max_count", "min_count", "objective")
    given: Any = {name: getattr(options, name) for name in names}
    solution = count_noise.optimal_count_noise(
        CountNoiseProblem(**given),
        relative_width=None
        if width is None
        else rational("relative-width", width, least=0, strict=True),
        solver=options.solver,
    )
    show, said = partial(_count_show, options=options), str(solution.delta)
    _print_solution(options, "count_noise", solution, count_noise.to_json, quiet=said, show=show)
    _draw(_laws(solution), path, _title(solution))
    return ExitCode.DONE


def _count_show(solution: Solution, options: argparse.Namespace) -> None:
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


def _laws(solution: Solution) -> list[Law]:
    """Return label, least value and probabilities of the first laws and of the last."""
    if solution.problem.max_count is None:
        labels = [f"every n ≥ {solution.problem.support}"]
    else:
        first = solution.problem.min_count
        labels = [f"n = {count}" for count, _ in enumerate(solution.laws, first)]
        if solution.problem.max_count >= first + len(solution.laws):
            labels[-1] = f"n ≥ {first + len(solution.laws) - 1}"
    entries: list[Law] = [
        (label, law.lowest, [float(mass) for mass in law.fractions()])
        for label, law in zip(labels, solution.laws, strict=True)
    ]
    return entries if len(entries) <= _MOST_SHOWN else [*entries[: _MOST_SHOWN - 1], entries[-1]]


# --- `dpassay optimal integer-noise`: the best bounded integer noise for (ε, δ) -------------------

_INTEGER_DESCRIPTION = """\
Find the (epsilon, delta)-DP integer noise on -D..D of least cost. The hockey-stick divergence is
bounded for every shift up to the sensitivity, in both directions. With --objective delta, find the
least delta instead.
"""
_INTEGER_EPILOG = """\
examples:
  dpassay optimal integer-noise --epsilon 1 --delta 1e-6
  dpassay optimal integer-noise --ratio 3 --delta 1e-6 --objective error --json
  dpassay optimal integer-noise --epsilon 1 --objective delta --error-free 1/2 --support 10
  dpassay optimal integer-noise --epsilon 1 --delta 1e-3 --support free --sensitivity 2
"""
_INTEGER_OPTIONS = """\
--epsilon E  epsilon
--ratio R  e^epsilon itself, for an exact answer
--delta D  delta, unless it is the objective
--objective NAME =variance  variance (default), absolute, error, cost or delta
--costs LIST  with --objective cost: costs of the errors 1, 2, … (1,4,9)
--support D =32  the largest error (default 32), or free: best on every support
--sensitivity S =1  sensitivity of the true answer (default 1)
--error-free P  prescribe P(Z = 0)
--monotone  require P(Z = z) to fall with |z|
--certificate FILE  write law and tests, for dpassay check
--plot FILE  draw the laws (.png, .pdf or .svg)
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


def _run_integer(options: argparse.Namespace) -> int:
    """Solve and print."""
    from dpassay.lp.integer_noise import (
        IntegerNoiseProblem,
        optimal_free_noise,
        optimal_integer_noise,
    )

    path = checked_path(options.plot, Drawable.drawer)
    free = options.support == "free"
    problem = IntegerNoiseProblem(
        objective=options.objective,
        support=_FIRST_SUPPORT if free else options.support,
        delta=options.delta,
        epsilon=options.epsilon,
        ratio=options.ratio,
        sensitivity=options.sensitivity,
        error_free=options.error_free,
        costs=None if options.costs is None else options.costs.split(","),
        monotone=options.monotone,
    )
    solution = optimal_free_noise(problem) if free else optimal_integer_noise(problem)
    said = repr(solution.mechanism)
    _print_solution(options, "integer_noise", solution, to_json, quiet=said, show=_integer_show)
    law = [float(mass) for mass in solution.mechanism.probabilities]
    title = f"P(Z = z), {_NAMES[problem.objective]}: {solution.value}"
    _draw([("optimal", -solution.problem.support, law)], path, title)
    return ExitCode.DONE


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


def _integer_show(solution: IntegerNoiseSolution) -> None:
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


# --- `dpassay optimal gaussian-shape`: the best covariance for a sensitivity space ----------------

_SHAPE_DESCRIPTION = """\
Find the covariance of least total (or weighted, or worst-coordinate) variance with which
Gaussian noise is 1-GDP for all differences of a space; divide it by mu^2 for any other mu.
A FILE (.toml or .json) holds space = "Box(…)" or the vertices = [[…], …] of a symmetric
polytope, and, where wanted, objective, weights and solver.
"""
_SHAPE_EPILOG = """\
examples:
  dpassay optimal gaussian-shape "Box(bounds=[1, 2, 3])"
  dpassay optimal gaussian-shape "SparseBox(dimension=5, sparsity=3)" --objective worst
  dpassay optimal gaussian-shape "FiniteSet(vectors=[[1, 0], [1, 1]])" --weights 1,4 --json
  dpassay optimal gaussian-shape shape.toml --certificate shape.json
"""
_SHAPE_OPTIONS = """\
space SPACE  Box(…), SparseBox(…), L2Ball(…), FiniteSet(…), DisjointGroups(…), or a FILE
--objective NAME  total (default) or worst
--weights LIST  weights of the coordinates (1,1,4)
--solver NAME  for cvxpy (default CLARABEL)
--certificate FILE  write the proof of both bounds
"""
_NOTHING = 1e-8
"""Of the largest variance: a smaller covariance is printed as 0."""
_KEYS = ("space", "vertices", "objective", "weights", "solver")


def _run_shape(options: argparse.Namespace) -> int:
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
    said = repr(found.mechanism)
    _print_solution(options, "gaussian_shape", found, shape_to_json, quiet=said, show=_shape_show)
    return ExitCode.DONE


def read(text: str) -> dict[str, Any]:
    """Read a space in the notation of mechanisms, or a file with one.

    Raises InvalidInputError for a file that does not have the keys that are described above.
    """
    from dpassay.accountant import notation
    from dpassay.accountant.geometry.spaces import FiniteSet
    from dpassay.verifier.document import read_toml, text_of

    path = Path(text)
    if path.suffix.lower() not in (".toml", ".json"):
        return {"space": notation.parse_description(text)}
    content = text_of(path)
    if path.suffix.lower() == ".toml":
        data = read_toml(content, str(path))
    else:
        try:
            data = json.loads(content, parse_float=str)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"{path} is not a JSON file: {error}.") from None
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


def shape_to_json(found: GaussianShape) -> dict[str, Any]:
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


def _shape_show(found: GaussianShape) -> None:
    from dpassay.accountant.numbers.interval import few

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


_DESCRIPTION = """\
Find the best noise of a kind, with a proof: a mechanism attains the upper end of the answer, and no
other one is below the lower end.
"""
_EPILOG = """\
examples:
  dpassay optimal count-noise --epsilon 2.2 --eta 0.7 --support 12 --max-count 1000
  dpassay optimal integer-noise --epsilon 1 --delta 1e-6 --objective variance
  dpassay optimal integer-noise --ratio 3 --error-free 1/2 --objective delta --support 10
  dpassay optimal gaussian-shape "Box(bounds=[1, 2, 3])"
"""


COMMAND = Command(
    "optimal",
    "the least noise of a kind, with proof",
    _DESCRIPTION,
    _EPILOG,
    "",
    lambda options: ExitCode.USAGE,  # a kind is required
    kinds=(
        Command(
            "count-noise",
            "bounded noise for counts with the least delta",
            _COUNT_DESCRIPTION,
            _COUNT_EPILOG,
            _COUNT_OPTIONS,
            _run_count,
            quiet="print the enclosure only",
        ),
        Command(
            "integer-noise",
            "bounded integer noise of least cost",
            _INTEGER_DESCRIPTION,
            _INTEGER_EPILOG,
            _INTEGER_OPTIONS,
            _run_integer,
            quiet="print the mechanism only",
        ),
        Command(
            "gaussian-shape",
            "the best covariance for given sensitivities",
            _SHAPE_DESCRIPTION,
            _SHAPE_EPILOG,
            _SHAPE_OPTIONS,
            _run_shape,
            quiet="print the mechanism only",
        ),
    ),
)

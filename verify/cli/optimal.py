"""`dpassay optimal`: the least noise of its kind, with proof that nothing is better."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

from dpassay.accountant.errors import DpassayError, InvalidInputError, suggestion
from dpassay.verifier.cli.shell import Command, ExitCode, answer, checked_path, note, say, say_json
from dpassay.verifier.terminal import columns

if TYPE_CHECKING:
    from dpassay.accountant.geometry.spaces import Space
    from dpassay.lp.count_noise import Solution
    from dpassay.lp.integer_noise import IntegerNoiseSolution
    from dpassay.lp.local import LocalOptimum
    from dpassay.lp.problem import CountNoiseProblem
    from dpassay.lp.shapes import GaussianShape


"""What the kinds of `dpassay optimal` share: certificates, drawings, and sweeps that survive."""


class DrawLaws(Protocol):
    """Draws laws on integers into a file."""

    def __call__(
        self,
        series: Sequence[tuple[str, Sequence[float], Sequence[float]]],
        path: Path,
        *,
        title: str,
        x: str = "",
    ) -> None:
        """Draw (label, values, probabilities) of each law, or the least δ against x."""


def write_certificate(path: Path, data: dict[str, Any]) -> None:
    """Write a certificate, and say so."""
    from dpassay.verifier.prover import write

    write(path, [data])
    note(f"certificate: {path}")


def digits(value: Fraction | float) -> str:
    """Return twelve digits, with the exponents that enclosures are printed with.

    >>> digits(Fraction(1, 3)), digits(5e-5), digits(1.25e-8)
    ('0.333333333333', '0.00005', '1.25e-8')
    """
    return f"{Decimal(f'{float(value):.12g}'):g}"


def values(given: Sequence[str] | None) -> list[str | None]:
    """Return the values of an option that may be repeated or hold commas; None if not given.

    >>> values(["1,2", "3"])
    ['1', '2', '3']
    """
    if given is None:
        return [None]
    found = [text.strip() for entry in given for text in entry.split(",") if text.strip()]
    return [*found] or [None]


@final
@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of noise on integers that is solved for once, or for every cell of a sweep.

    `axes` names the options that may have several values, `fixed` the others that a cell depends
    on, `kept` the parts of its plain data that a cell has.
    """

    name: str
    axes: Sequence[str]
    fixed: Sequence[str]
    kept: Sequence[str]
    solve: Callable[[argparse.Namespace, Mapping[str, str | None]], Any]
    certificate: Callable[[Any], dict[str, Any]]
    to_json: Callable[[Any], dict[str, Any]]
    line: Callable[[Mapping[str, Any]], str]
    """Of a cell."""
    quiet: Callable[[Any], str]
    show: Callable[[Any, argparse.Namespace], None]
    laws: Callable[[Any], tuple[Sequence[tuple[str, int, Sequence[float]]], str]]
    """What is drawn, and its title."""
    swept: str = ""
    """The part of its plain data, an enclosure, that a sweep draws; none if empty."""

    def run(self, options: argparse.Namespace, draw: DrawLaws | None) -> int:
        """Solve and print, or sweep."""
        axes = {name: values(getattr(options, name)) for name in self.axes}
        path = checked_path(options.plot, draw)
        if options.out is not None or any(len(entries) > 1 for entries in axes.values()):
            if (path is not None and not self.swept) or options.certificate is not None:
                plot = "" if self.swept else "neither --plot nor "
                raise InvalidInputError(
                    f"A sweep takes {plot or 'no '}--certificate: ask cell by cell."
                )
            fixed = {"kind": self.name, **{name: getattr(options, name) for name in self.fixed}}
            used = {name: entries for name, entries in axes.items() if entries != [None]}
            code, found = _sweep(
                used, lambda cell: self._cell(options, cell), self.line, options, fixed
            )
            if path is not None and draw is not None and code == ExitCode.DONE:
                about = f"Least {self.swept} of {self.name}, {options.objective}"
                self._draw_sweep(used, found, draw, path, about)
            return code
        solution = self.solve(options, {name: entries[0] for name, entries in axes.items()})
        if options.certificate is not None:
            write_certificate(options.certificate, self.certificate(solution))
        if options.json:
            say_json(self.to_json(solution))
        elif options.quiet:
            say(self.quiet(solution))
        else:
            self.show(solution, options)
        if path is not None and draw is not None:
            laws, title = self.laws(solution)
            series = [(label, range(low, low + len(law)), law) for label, low, law in laws]
            draw(series, path, title=title)
            note(f"wrote {path}")
        return ExitCode.DONE

    def _draw_sweep(
        self,
        axes: Mapping[str, Sequence[str | None]],
        found: Sequence[Mapping[str, Any]],
        draw: DrawLaws,
        path: Path,
        about: str,
    ) -> None:
        """Draw what was swept against the first axis with several values, a curve for the rest."""
        x = next((name for name, entries in axes.items() if len(entries) > 1), next(iter(axes)))
        several = [name for name, entries in axes.items() if len(entries) > 1 and name != x]
        curves: dict[str, list[tuple[float, float]]] = {}
        for each in found:
            cell, ends = each["cell"], each[self.swept]
            label = ", ".join(f"{name} {cell[name]}" for name in several)
            middle = (Fraction(ends["lower"]) + Fraction(ends["upper"])) / 2
            curves.setdefault(label, []).append((float(Fraction(cell[x])), float(middle)))
        same = [f"{name} {entries[0]}" for name, entries in axes.items() if len(entries) == 1]
        title = ", ".join([about, *same])
        series = [
            (label, [place for place, _ in sorted(points)], [value for _, value in sorted(points)])
            for label, points in curves.items()
        ]
        draw(series, path, title=title, x=x)
        note(f"wrote {path}")

    def _cell(self, options: argparse.Namespace, cell: Mapping[str, str | None]) -> dict[str, Any]:
        found = self.to_json(self.solve(options, cell))
        return {key: found[key] for key in self.kept}


def shown(bounds: Mapping[str, str]) -> str:
    """Print an enclosure that was read from JSON."""
    from dpassay.accountant.numbers.interval import Interval

    return str(Interval(Decimal(bounds["lower"]), Decimal(bounds["upper"])))


def _sweep(
    axes: Mapping[str, Sequence[str | None]],
    solve: Callable[[dict[str, str | None]], dict[str, Any]],
    shown: Callable[[Mapping[str, Any]], str],
    options: argparse.Namespace,
    fixed: Mapping[str, object],
) -> tuple[int, list[dict[str, Any]]]:
    """Solve and print every combination of the values; return the exit code and the answers.

    What the file of finished ones holds is not solved again.

    A cell without an answer (an infeasible one) carries its "error". An interrupt leaves what was
    finished in the file.
    """
    from importlib.metadata import version

    from dpassay.verifier.terminal import Progress

    stamp = {"version": version("dpassay"), "fixed": dict(fixed)}
    known = _finished(options.out, stamp)
    cells = [dict(zip(axes, entry, strict=True)) for entry in itertools.product(*axes.values())]
    progress = Progress(len(cells), sys.stderr, silent=options.quiet, unit="cells")
    found: list[dict[str, Any]] = []
    interrupted = False
    try:
        for cell in cells:
            answer = known.get(_key(cell))
            if answer is None:
                try:
                    answer = solve(cell)
                except DpassayError as error:
                    answer = {"error": str(error)}
                _keep(options.out, stamp, cell, answer)
            found.append({"cell": cell, **answer})
            if not options.json:
                said = answer["error"] if "error" in answer else shown(answer)
                say("  ".join([*(f"{k}={v}" for k, v in cell.items()), said]))
            progress.advance(_key(cell))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        progress.close()
    if options.json:
        say_json({"schema_version": 1, "cells": found})
    if interrupted:
        kept = "" if options.out is None else f"; kept in {options.out}"
        note(f"interrupted: {len(found)} of {len(cells)} cells are finished{kept}")
        return ExitCode.INTERRUPTED, found
    failed = any("error" in each for each in found)
    return ExitCode.USAGE if failed else ExitCode.DONE, found


def _key(cell: Mapping[str, str | None]) -> str:
    return " ".join(f"{name}={value}" for name, value in cell.items() if value is not None)


def _finished(path: Path | None, stamp: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return the finished cells of a file; a last line that was cut off is left out."""
    if path is None or not path.exists():
        return {}
    known: dict[str, dict[str, Any]] = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            if entry["stamp"] == stamp:
                known[_key(entry["cell"])] = entry["answer"]
        except (ValueError, KeyError, TypeError, AttributeError):
            if number < len(lines):
                raise InvalidInputError(
                    f"Line {number} of {path} is no finished cell. Give another --out."
                ) from None
    return known


def _keep(
    path: Path | None,
    stamp: Mapping[str, object],
    cell: Mapping[str, str | None],
    answer: Mapping[str, Any],
) -> None:
    if path is None:
        return
    text = json.dumps({"stamp": stamp, "cell": cell, "answer": answer}, ensure_ascii=False)
    whole = not path.exists() or path.read_bytes()[-1:] in (b"\n", b"")
    with path.open("a", encoding="utf-8") as stream:
        stream.write(("" if whole else "\n") + text + "\n")


"""`dpassay optimal count-noise`: the least δ of bounded noise for counts."""

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
  dpassay optimal count-noise --epsilon 1,2,3 --eta 0.3,0.5 --support 6,8 --out cells.jsonl
  dpassay optimal count-noise --epsilon 1,1.5,2,2.5 --eta 0.5 --support 4,6,8 --plot delta.pdf
  dpassay optimal count-noise --epsilon 1.1 --eta 0.5 --support 6 --solver cvxpy:HIGHS
"""
_COUNT_OPTIONS = """\
--epsilon E ...  epsilon; several values (1,2,3) make a sweep
--ratio R ...  e^epsilon itself, for an exact answer
--eta H ... !  P(Z = 0), in (0, 1)
--support D ... !  the largest error
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
--out FILE  with a sweep: append each finished cell as JSON, and reuse finished ones
"""
_MOST_SHOWN = 6
"""Laws that are printed and drawn: of more, the first ones and the last."""


def _count_solve(options: argparse.Namespace, cell: Mapping[str, str | None]) -> Solution:
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


_COUNT_KIND = Kind(
    name="count-noise",
    axes=("epsilon", "ratio", "eta", "support"),
    fixed=("objective", "max_count", "min_count", "relative_width", "solver"),
    kept=("delta", "exact", "seconds"),
    solve=_count_solve,
    certificate=lambda solution: import_module("dpassay.verifier.prover.optima").count_noise(
        solution
    ),
    to_json=lambda solution: import_module("dpassay.lp.count_noise").to_json(solution),
    line=lambda answer: f"delta={answer['exact'] or shown(answer['delta'])}",
    quiet=lambda solution: str(solution.delta),
    show=_count_show,
    laws=lambda solution: (_laws(solution), _title(solution)),
    swept="delta",
)


"""`dpassay optimal integer-noise`: the best bounded integer noise for (ε, δ)."""

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
  dpassay optimal integer-noise --epsilon 1 --delta 1e-3,1e-6 --support free --sensitivity 1,2,3
"""
_INTEGER_OPTIONS = """\
--epsilon E ...  epsilon; several values make a sweep
--ratio R ...  e^epsilon itself, for an exact answer
--delta D ...  delta, unless it is the objective
--objective NAME =variance  variance (default), absolute, error, cost or delta
--costs LIST  with --objective cost: costs of the errors 1, 2, … (1,4,9)
--support D ...  the largest error (default 32), or free: best on every support
--sensitivity S ...  sensitivity of the true answer (default 1)
--error-free P ...  prescribe P(Z = 0)
--monotone  require P(Z = z) to fall with |z|
--certificate FILE  write law and tests, for dpassay check
--plot FILE  draw the laws (.png, .pdf or .svg)
--out FILE  with a sweep: append each finished cell as JSON, and reuse finished ones
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


def _integer_solve(
    options: argparse.Namespace, cell: Mapping[str, str | None]
) -> IntegerNoiseSolution:
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


def _integer_show(solution: IntegerNoiseSolution, _: argparse.Namespace) -> None:
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


def _integer_laws(solution: IntegerNoiseSolution) -> tuple[list[tuple[str, int, list[float]]], str]:
    law = [float(mass) for mass in solution.mechanism.probabilities]
    title = f"P(Z = z), {_NAMES[solution.problem.objective]}: {solution.value}"
    return [("optimal", -solution.problem.support, law)], title


_INTEGER_KIND = Kind(
    name="integer-noise",
    axes=("epsilon", "ratio", "delta", "sensitivity", "support", "error_free"),
    fixed=("objective", "costs", "monotone"),
    kept=("objective", "exact", "mechanism", "seconds"),
    solve=_integer_solve,
    certificate=lambda solution: import_module("dpassay.verifier.prover.optima").integer_noise(
        solution
    ),
    to_json=to_json,
    line=lambda answer: shown(answer["objective"]),
    quiet=lambda solution: repr(solution.mechanism),
    show=_integer_show,
    laws=_integer_laws,
)


"""`dpassay optimal local`: the report of one's category with the least variance of counts."""

_LOCAL_DESCRIPTION = """\
Find the report of one of K categories with the least variance of estimated counts, among all that
have no privacy loss above epsilon: a subset selection, with the dual that proves it.
"""
_LOCAL_EPILOG = """\
examples:
  dpassay optimal local --candidates 100 --epsilon 1
  dpassay optimal local --candidates 100 --epsilon 1 --share 0 --json
"""
_LOCAL_OPTIONS = """\
--candidates K !  number of categories
--epsilon E !  the largest privacy loss
--share S  share of people who hold the counted category (default 1/K: the average count)
"""


def _run_local(options: argparse.Namespace) -> int:
    """Solve and print."""
    from dpassay.lp.local import optimal_local

    found = optimal_local(options.candidates, options.epsilon, options.share)
    rows = [
        ("  least variance of a count, per person", str(found.value)),
        ("  of one who holds it", str(found.holder)),
        ("  of one who does not", str(found.other)),
        ("  dual: no report has a larger mean", str(found.dual)),
    ]
    name = repr(found.mechanism)
    return answer(options, local_to_json(found), f"{name}\n{columns(rows)}", quiet=name)


def local_to_json(found: LocalOptimum) -> dict[str, Any]:
    """Return the answer as plain data."""
    return {
        "schema_version": 1,
        "minimised": "variance",
        "share": str(found.share),
        "objective": found.value.to_json(),
        "holder": found.holder.to_json(),
        "other": found.other.to_json(),
        "dual": found.dual.to_json(),
        "mechanism": repr(found.mechanism),
    }


"""`dpassay optimal gaussian-shape`: the best covariance for a sensitivity space."""

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
    if options.certificate is not None:
        from dpassay.verifier.prover.optima import gaussian_shape

        write_certificate(options.certificate, gaussian_shape(found))
    if options.json:
        say_json(shape_to_json(found))
    elif options.quiet:
        say(repr(found.mechanism))
    else:
        _shape_show(found)
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


_DESCRIPTION = """\
Find the best noise of a kind, with a proof: a mechanism attains the upper end of the answer, and
the lower end bounds every other one.
"""
_EPILOG = """\
examples:
  dpassay optimal count-noise --epsilon 2.2 --eta 0.7 --support 12 --max-count 1000
  dpassay optimal integer-noise --epsilon 1 --delta 1e-6 --objective variance
  dpassay optimal integer-noise --ratio 3 --error-free 1/2 --objective delta --support 10
  dpassay optimal gaussian-shape "Box(bounds=[1, 2, 3])"
  dpassay optimal local --candidates 100 --epsilon 1
"""


def command(draw: DrawLaws | None) -> Command:
    """Return the command, which draws with `draw`."""
    kinds = (
        Command(
            "count-noise",
            "bounded noise for counts with the least delta",
            _COUNT_DESCRIPTION,
            _COUNT_EPILOG,
            _COUNT_OPTIONS,
            lambda options: _COUNT_KIND.run(options, draw),
            quiet="print the enclosure only",
        ),
        Command(
            "integer-noise",
            "bounded integer noise of least cost",
            _INTEGER_DESCRIPTION,
            _INTEGER_EPILOG,
            _INTEGER_OPTIONS,
            lambda options: _INTEGER_KIND.run(options, draw),
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
        Command(
            "local",
            "the best report of a category",
            _LOCAL_DESCRIPTION,
            _LOCAL_EPILOG,
            _LOCAL_OPTIONS,
            _run_local,
            quiet="print the mechanism only",
        ),
    )
    return Command(
        "optimal",
        "the least noise of a kind, with proof",
        _DESCRIPTION,
        _EPILOG,
        "",
        lambda options: ExitCode.USAGE,  # a kind is required
        kinds=kinds,
    )

"""The printed closed form of bounded count noise compared with certified optima on a grid.

    python -P benchmarks/closed_form.py [--cells NUMBER]

Two programs are solved on a grid of rational E = e^ε (so that every optimum is a fraction), η and
D: that of a single law for all counts n ≥ D, the subject of Theorem 3 of Sadeghi, Asoodeh and
Calmon; and that of Proposition 2, with a law for each count 1..N, N = 10^6, whose optimum Section
III claims to derive. Exact comparison assigns each cell to a region:

    right        the printed δ* is the optimum, and Definition 2 attains it
    value        the printed δ* is below the optimum: C < P_{D−1}/A_D
    tie          the printed δ* is the optimum, but Definition 2 does not attain it

The formula of `CountNoise.optimal_delta` is compared with the optimum as well. The programs are
solved by the simplex method (`dpassay.lp.search.answers`), independently of both formulas.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from flint import fmpq

from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.problem import CountNoiseProblem, to_fmpq, to_fraction
from dpassay.lp.search import answers

# e^0.05 … e^4, as fractions with denominator 20
RATIOS = ("21/20", "6/5", "3/2", "2", "27/10", "9/2", "9", "20", "54")
SHARES = ("1/100", "1/50", "1/20", "1/10", "1/5", "3/10", "1/2", "7/10", "4/5", "9/10", "99/100")
SUPPORTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)


class Cell(NamedTuple):
    """The results in a cell; all comparisons are exact."""

    ratio: str
    eta: str
    support: int
    region: str
    formula: bool
    printed: Fraction
    optimum: Fraction
    excess: Fraction


def one_law(ratio: str, eta: str, support: int) -> Cell:
    """Compare the printed and the corrected formula with the program of one law."""
    problem = CountNoiseProblem(ratio=ratio, eta=eta, support=support)
    noise = CountNoise(problem.exponential(), to_fmpq(problem.eta), support)
    printed, formula = fraction(noise.delta), fraction(noise.optimal_delta)
    excess = max(
        fraction(noise.mass(z)) - Fraction(ratio) * fraction(noise.mass(z + shift))
        for z in range(-support, support + 1)
        for shift in (-1, 1)
    )
    optimum = simplex_optimum(problem)
    if optimum is None:
        found = optimal_count_noise(problem)
        optimum = formula if formula in found.delta else fraction(to_fmpq(-1))
    attained = "right" if excess == printed else "tie"
    region = attained if printed == optimum else "value"
    return Cell(ratio, eta, support, region, formula == optimum, printed, optimum, excess)


def simplex_optimum(problem: CountNoiseProblem) -> Fraction | None:
    """Return the optimum that the simplex route proves exactly (D ≤ 16), or None."""
    if problem.support > 16:
        return None
    found = answers(problem, 100, own=1)
    return next((answer.exact for answer in found if answer.exact is not None), None)


def chain_bounds(ratio: str, eta: str, support: int, count: int) -> dict[str, Fraction]:
    """Return lower bounds of Proposition 2's optimum that the law of n = 1 gives by itself.

    P(Z = −1 | 1) ≥ (1 − η)/2, since the mean is 0, and the chain of y = 0 through n = 1..D + 1
    limits it to δ P_D: "left". The chain of y = k + 1 from n = k + 1 down to 1 gives
    P(Z = k | 1) ≥ (η − δ P_k)/E^k, and Σ (z + 1) P(Z = z | 1) = 1 − η: "right".
    """
    e, share = Fraction(ratio), Fraction(eta)
    plain = [sum((e**j for j in range(k)), Fraction(0)) for k in range(support + 1)]
    bounds = {"zero": Fraction(0)}
    if count > support:
        bounds["left"] = (1 - share) / (2 * plain[support])
    mass = slope = Fraction(0)
    right = Fraction(0)
    for k in range(1, min(support, count - 1) + 1):
        mass += (k + 1) * share / e**k
        slope += (k + 1) * plain[k] / e**k
        right = max(right, (mass - (1 - share)) / slope)
    bounds["right"] = right
    return bounds


def fraction(value: object) -> Fraction:
    """Convert a rational number to Python's Fraction."""
    if not isinstance(value, fmpq):
        raise TypeError("Expected rational arithmetic.")
    return to_fraction(value)


def grid() -> Iterator[tuple[str, str, int]]:
    """Yield the cells: E, η, D."""
    for support in SUPPORTS:
        for ratio in RATIOS:
            for eta in SHARES:
                yield ratio, eta, support


def theorem_3(cells: list[Cell]) -> None:
    """Print the regions of Theorem 3 by E and D: at which η each verdict falls."""
    counts = Counter(cell.region for cell in cells)
    print(f"{len(cells)} cells: {dict(counts)}; the corrected formula is the optimum (exactly for")
    print(f"D ≤ 16, within 1e-12 beyond) in {sum(cell.formula for cell in cells)}\n")
    print("| D | cells | printed δ* wrong | largest optimum/printed | at | corrected right |")
    print("|---|---|---|---|---|---|")
    for support in SUPPORTS:
        own = [cell for cell in cells if cell.support == support]
        if own:
            wrong = [cell for cell in own if cell.region == "value"]
            worst = max(own, key=lambda cell: cell.optimum / cell.printed)
            factor = float(worst.optimum / worst.printed)
            right = sum(cell.formula for cell in own)
            print(
                f"| {support} | {len(own)} | {len(wrong)} | {factor:.4g} "
                f"| E = {worst.ratio}, η = {worst.eta} | {right} |"
            )
    thresholds = [
        cell
        for cell in cells
        if (cell.region == "value") != (condition(cell) < 0) or cell.region == "tie"
    ]
    print(f"\nCells where C < P_(D−1)/A_D does not decide: {len(thresholds)}")


def condition(cell: Cell) -> Fraction:
    """Return C·A_D − P_{D−1}; Theorem 3 is said to hold where it is ≥ 0."""
    share, e = Fraction(cell.eta), Fraction(cell.ratio)
    weighted = sum(((cell.support - j) * e**j for j in range(cell.support)), Fraction(0))
    plain = sum((e**j for j in range(cell.support - 1)), Fraction(0))
    return 2 * share / (1 - share) * weighted - plain


def section_3(supports: tuple[int, ...]) -> None:
    """Print how the optimum of Proposition 2 compares with the formula derived in Section III."""
    rows: Counter[str] = Counter()
    factors: list[tuple[float, str]] = []
    number = 0
    for support in supports:
        for ratio in RATIOS:
            for eta in SHARES:
                problem = CountNoiseProblem(ratio=ratio, eta=eta, support=support, max_count=10**6)
                optimum = optimal_count_noise(problem).exact
                if optimum is None:
                    rows["no exact optimum"] += 1
                    continue
                number += 1
                bounds = chain_bounds(ratio, eta, support, 10**6)
                if optimum == max(bounds.values()):
                    rows[f"equal to the bound {max(bounds, key=lambda name: bounds[name])!r}"] += 1
                else:
                    rows["above both bounds: only the program knows"] += 1
                noise = CountNoise(problem.exponential(), to_fmpq(problem.eta), support)
                printed = fraction(noise.delta)
                rows["larger than the printed δ*"] += optimum > printed
                rows["equal to the printed δ*"] += optimum == printed
                rows["smaller than the printed δ*"] += optimum < printed
                where = f"E = {ratio}, η = {eta}, D = {support}"
                factors.append((float(optimum / printed), where))
    print(f"\nProposition 2 with a law for each count 1..10^6, {number} cells\n")
    for name, amount in sorted(rows.items()):
        print(f"* {name}: {amount}")
    print(f"* largest optimum/printed: {max(factors)[0]:.4g} at {max(factors)[1]}")


def main() -> None:
    """Solve the grid and print the tables."""
    parser = argparse.ArgumentParser(description="The printed closed form against certified optima")
    parser.add_argument("--cells", type=int, default=10**6, help="stop after so many cells")
    arguments = parser.parse_args()
    started = time.perf_counter()
    cells = []
    for number, (ratio, eta, support) in enumerate(grid()):
        if number == arguments.cells:
            break
        cells.append(one_law(ratio, eta, support))
    theorem_3(cells)
    section_3(tuple(d for d in SUPPORTS if d <= 6))
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

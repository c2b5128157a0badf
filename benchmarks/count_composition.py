"""Many releases of bounded count noise, beside unbounded noise of the same variance.

    python -P benchmarks/count_composition.py

The law of Definition 2 (Sadeghi, Asoodeh and Calmon), the geometric law and the discrete
Gaussian, each with the variance of the first to 25 digits, are composed k times. A law on −D..D
released k times has an output that the neighbour cannot give with probability
1 − (1 − p(D))^k: no ε brings δ below this floor, and the table says so instead of a number.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from flint import arb, ctx

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import (
    BoundedCountNoise,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
)
from dpassay.accountant.numbers import theta
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.reading import few
from dpassay.accountant.numbers.solve import bracket, root
from dpassay.accountant.questions import profile

CASES = (("1.5", "1/2", 2), ("1.5", "1/2", 4), ("3", "4/5", 2), ("3", "1/2", 4), ("3", "1/2", 8))
COUNTS = (10, 100)
DELTAS = ("1e-1", "1e-2", "1e-6")
_WIDTH = Fraction(1, 10**25)


def same_variance(spread: Fraction, variance: Callable[[ExactReal], arb]) -> Fraction:
    """Return the argument, rounded to 25 digits, at which an increasing variance is `spread`."""

    def shortfall(argument: ExactReal) -> arb:
        return ExactReal.of_rational(spread).ball() - variance(argument)

    found = root(
        shortfall,
        bracket(shortfall, Fraction(1, 4), floor=Fraction(1, 100)),
        relative_width=_WIDTH,
    )
    return Fraction(f"{found.lower:.25g}")


def geometric_variance(scale: ExactReal) -> arb:
    """Return 2q/(1 − q)², q = e^{−1/scale}."""
    ratio = (-1 / scale.ball()).exp()
    return 2 * ratio / (1 - ratio) ** 2


def mechanisms(epsilon: str, eta: str, support: int) -> tuple[Fraction, list[Mechanism]]:
    """Return the variance, and the three mechanisms that have it."""
    law = BoundedCountNoise(epsilon=epsilon, eta=eta, support=support)
    found = enclose(lambda: law.variances()[0], relative_width=_WIDTH)
    spread = Fraction(f"{found.lower:.25g}")
    scale = same_variance(spread, geometric_variance)
    parameter = same_variance(spread, theta.variance)
    return spread, [law, DiscreteLaplace(scale=scale), DiscreteGaussian(parameter=parameter)]


def floor(law: BoundedCountNoise, count: int) -> Interval:
    """Enclose 1 − (1 − p(D))^k."""

    def compute() -> arb:
        last = arb(law.masses(0)[0][-1])
        return -(count * (-last).log1p()).expm1()

    return enclose(compute)


def cell(mechanism: Mechanism, count: int, delta: str, least: Interval | None) -> str:
    """Return ε(δ) of k releases, or why there is none."""
    if least is not None and Decimal(delta) < least.lower:
        return "none"
    try:
        found = profile.epsilon(
            Composed(mechanism, count), delta, adjacency=None, relative_width=Fraction(1, 10**6)
        )
    except (NotApplicableError, UndecidedError):
        return "not reached"
    return f"{float(found.upper):.3f}"


def main() -> None:
    """Print the table in Markdown."""
    names = "Definition 2, geometric, discrete Gaussian"
    print(f"Each cell: ε at this δ for {names}; none: δ is below the floor.\n")
    heads = " | ".join(f"δ = {delta}" for delta in DELTAS)
    print(f"| ε, η, D of the law | variance | k | floor | {heads} |")
    print("|---|---|---|---|" + "---|" * len(DELTAS))
    for epsilon, eta, support in CASES:
        with ctx.workprec(128):
            spread, (law, *others) = mechanisms(epsilon, eta, support)
        if not isinstance(law, BoundedCountNoise):
            raise TypeError("Expected Definition 2's law first.")
        for count in COUNTS:
            least = floor(law, count)
            row = [f"{epsilon}, {eta}, {support}", f"{float(spread):.5f}", str(count)]
            row.append(few(least.lower, 3))
            for delta in DELTAS:
                own = cell(law, count, delta, least)
                row.append(", ".join([own, *(cell(x, count, delta, None) for x in others)]))
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()

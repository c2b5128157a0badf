"""What the figures on count queries compare: printed formulas, exact δ, other integer noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import BoundedCountNoise, DiscreteGaussian, DiscreteLaplace
from dpassay.accountant.mechanisms.additive.integer_noise import IntegerNoise
from dpassay.accountant.mechanisms.counting.count_noise_law import CountNoise
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.halving import halved
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from dpassay.figures import quantities, style
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.problem import CountNoiseProblem

_MECHANISM, _GAUSSIAN, _PRINTED, _BEST, _GEOMETRIC = style.CURVES[:5]
LOOKS = {
    "Definition 2": _MECHANISM,
    "mechanism": _MECHANISM,
    "exact δ": _MECHANISM,
    "discrete Gaussian, same variance": _GAUSSIAN,
    "discrete Gaussian, as printed": _PRINTED,
    "discrete Gaussian, eq. (45)": _PRINTED,
    "mechanism, (2D + 1)δ*": style.CURVES[5],
    "printed, (2D + 1)δ*": style.CURVES[5],
    "least true δ": _BEST,
    "least δ at ε = 2.18": _BEST,
    "least δ of one at ε = 1.1": _BEST,
    "geometric": _GEOMETRIC,
    "geometric, same P(Z = 0)": _GEOMETRIC,
}
"""One look for each noise in all figures."""
LEAST = 1e-15
"""A smaller δ is not plotted."""
_RELATION = Adjacency.ADD_REMOVE
"""The count changes by one."""
_LP_WIDTH = Fraction(1, 10**10)


def claimed(epsilon: str, eta: str, support: int) -> float:
    """Return the printed (2D + 1)δ*, without the minimum with 1."""
    star = quantities.value(lambda: arb(CountNoise.of(exact(epsilon), exact(eta), support).delta))
    return (2 * support + 1) * float(star.lower)


def bounded(epsilon: str, eta: str, support: int) -> BoundedCountNoise:
    """Return the mechanism of Definition 2."""
    return BoundedCountNoise(epsilon=epsilon, eta=eta, support=support)


def delta(mechanism: Mechanism, epsilon: str) -> float:
    """Return the exact δ(ε)."""
    return _middle(
        profile.delta(mechanism, epsilon, adjacency=_RELATION, relative_width=quantities.WIDTH)
    )


def shown(value: float) -> float | None:
    """Return a value that a logarithmic axis shows, else None."""
    return value if value >= LEAST else None


def variance(mechanism: Mechanism) -> float:
    """Return the variance of the noise."""
    return _middle(quantities.value(lambda: mechanism.variances()[0]))


def geometric(eta: float) -> DiscreteLaplace:
    """Return the geometric law with P(Z = 0) = η: its ratio is (1 − η)/(1 + η)."""
    loss = math.log1p(eta) - math.log1p(-eta)
    return DiscreteLaplace(scale=f"{1 / loss:.15g}")


@lru_cache(maxsize=256)
def same_variance(target: float) -> DiscreteGaussian:
    """Return the discrete Gaussian whose variance, not parameter, is a given number."""
    low, high = target / 2, 4 * target + 1
    while variance(DiscreteGaussian(parameter=f"{low:.17g}")) > target:
        low /= 2

    def is_less(parameter: float) -> bool:
        return variance(DiscreteGaussian(parameter=f"{parameter:.17g}")) < target

    return DiscreteGaussian(parameter=f"{halved(is_less, low, high)[0]:.17g}")


def parameter(value: float) -> DiscreteGaussian:
    """Return the discrete Gaussian with a given number as its parameter."""
    return DiscreteGaussian(parameter=f"{value:.17g}")


@lru_cache(maxsize=1024)
def optimum(epsilon: str, eta: str, support: int) -> tuple[float, IntegerNoise]:
    """Return the least true δ(ε) of any law with P(Z = 0) = η on −D..D, and such a law."""
    problem = CountNoiseProblem(eta=eta, support=support, epsilon=epsilon, objective="true-delta")
    found = optimal_count_noise(problem, relative_width=_LP_WIDTH)
    law = found.mechanism()
    assert law is not None  # the problem asks for one law for all counts
    return _middle(found.delta), law


def masses(mechanism: Mechanism, up_to: int) -> list[float]:
    """Return P(Z = z) for z = 0, …, from the mechanism's own law."""
    if isinstance(mechanism, BoundedCountNoise):
        law, middle = mechanism.masses(0)[0], mechanism.support
    elif isinstance(mechanism, IntegerNoise):
        law, middle = mechanism.masses(0)[0], -mechanism.lowest
    elif isinstance(mechanism, DiscreteGaussian):
        square = float(mechanism.parameter.ball())
        weights = [math.exp(-z * z / (2 * square)) for z in range(200)]
        total = weights[0] + 2 * math.fsum(weights[1:])
        return [weight / total for weight in weights[: up_to + 1]]
    else:
        assert isinstance(mechanism, DiscreteLaplace)
        ratio = math.exp(-1 / float(mechanism.scale.ball()))
        return [(1 - ratio) / (1 + ratio) * ratio**z for z in range(up_to + 1)]
    padded = [*law[middle:], *[arb(0)] * (up_to + 1)]
    return [float(mass.mid()) for mass in padded[: up_to + 1]]


def _middle(value: Interval) -> float:
    return float((value.lower + value.upper) / 2)

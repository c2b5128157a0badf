"""The independent route for single releases: their densities or masses in mpmath."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mpmath
from flint import arb
from mpmath import mp, mpf

from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.integers import SkellamPair
from dpassay.accountant.mechanisms.additive.laplace import (
    LaplacePair,
    LogisticPair,
    Staircase,
    TruncatedLaplacePair,
)
from dpassay.accountant.mechanisms.selection.candidates import BoundedRangePair, NoisyMaximumPair
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair, DiscreteLaplacePair
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.subsampled import GaussianMixturePair, Mixture
from tests.accountant.mpmath_reference import Continuous, Discrete, Reference, ball_to_mpf


def single(pair: Pair) -> Reference:
    """Return the densities or masses of a single release."""
    match pair:
        case GaussianPair():
            mu = ball_to_mpf(pair.mu)
            return Continuous(
                log_p=lambda x: -((x - mu()) ** 2) / 2,
                log_q=lambda x: -(x**2) / 2,
                log_normaliser=lambda mp: -mp.log(2 * mp.pi) / 2,
                knots=lambda: [mu() / 2],
            )
        case GaussianMixturePair(p, q):
            return Continuous(
                log_p=lambda x: _log_mixture(p, x),
                log_q=lambda x: _log_mixture(q, x),
                log_normaliser=lambda mp: -mp.log(2 * mp.pi) / 2,
                knots=lambda: sorted({mean.mpf() for _, mean in (*p, *q)}),
            )
        case LaplacePair():
            return _shifted(pair.distance.mpf, lambda x: -abs(x), lambda mp: -mp.log(2))
        case LogisticPair():
            return _shifted(pair.distance.mpf, _log_logistic, lambda _: mpf(0))
        case NoisyMaximumPair():  # whose profile is that of Laplace noise
            return single(LaplacePair(pair.distance))
        case BoundedRangePair():  # whose profile is that of logistic noise
            return single(LogisticPair(pair.length))
        case TruncatedLaplacePair():
            d, a = pair.distance.mpf(), pair.end.mpf()
            return Continuous(
                log_p=lambda x: -abs(x) if x <= a else mpmath.ninf,
                log_q=lambda x: -abs(x - d) if x >= d - a else mpmath.ninf,
                log_normaliser=lambda mp: -mp.log(-2 * mp.expm1(-a)),
                knots=lambda: [d - a, 0 * d, d, a],
                support=(-a, d + a),
            )
        case DiscreteLaplacePair():
            b = pair.scale
            return _integers(
                lambda z: mp.tanh(1 / (2 * b.mpf())) * mp.exp(-abs(z) / b.mpf()), pair.shift
            )
        case DiscreteGaussianPair():
            return _integers(_discrete_gaussian(pair), pair.shift)
        case SkellamPair():
            v = pair.variance
            return _integers(lambda z: mp.exp(-v.mpf()) * mp.besseli(abs(z), v.mpf()), pair.shift)
        case FinitePair(Staircase() as source):
            return _staircase(source).reverse() if pair.flipped else _staircase(source)
        case FinitePair():
            return _finite(pair)
    raise NotApplicableError("The mpmath route is for single releases.")


def _shifted(
    distance: Callable[[], Any], log_density: Callable[[Any], Any], normaliser: Callable[[Any], Any]
) -> Continuous:
    return Continuous(
        log_p=lambda x: log_density(x - distance()),
        log_q=log_density,
        log_normaliser=normaliser,
        knots=lambda: [0 * distance(), distance()],
    )


def _integers(mass: Callable[[int], Any], shift: int) -> Discrete:
    return Discrete(lambda z: (mass(z - shift), mass(z)), None, None)


def _log_logistic(x: Any) -> Any:
    return -abs(x) - 2 * mp.log1p(mp.exp(-abs(x)))


def _log_mixture(mixture: Mixture, x: Any) -> Any:
    return mp.log(
        sum(
            mpf(w.numerator) / w.denominator * mp.exp(-((x - mean.mpf()) ** 2) / 2)
            for w, mean in mixture
        )
    )


def _discrete_gaussian(pair: DiscreteGaussianPair) -> Callable[[int], Any]:
    """Return the masses, normalised by a plain sum."""

    def weight(z: int) -> Any:
        return mp.exp(-(z**2) / (2 * pair.parameter.mpf()))

    @functools.cache
    def normaliser(precision: int) -> Any:
        total, z, term = mpf(1), 1, mpf(1)
        while term > mpf(2) ** (-precision - 20):
            term = 2 * weight(z)
            total, z = total + term, z + 1
        return total

    return lambda z: weight(z) / normaliser(mp.prec)


def _staircase(source: Staircase) -> Discrete:
    """Return the masses of the intervals between consecutive steps of either density."""

    def density(x: Any) -> Any:
        """Return the density in units of Δ, from its definition."""
        b, gamma = mp.exp(-source.epsilon.mpf()), source.gamma.mpf()
        whole = mp.floor(abs(x))
        steps = whole + (1 if abs(x) - whole >= gamma else 0)
        return (1 - b) / (2 * (gamma + b * (1 - gamma))) * b**steps

    def masses(number: int) -> tuple[Any, Any]:
        whole, part = divmod(number, 3)
        gamma = source.gamma.mpf()
        near, far = min(gamma, 1 - gamma), max(gamma, 1 - gamma)
        low, high = [(0, near), (near, far), (far, 1)][part]
        x = whole + (low + high) / mpf(2)
        return (high - low) * density(x - 1), (high - low) * density(x)

    return Discrete(masses, None, None)


def _finite(pair: FinitePair) -> Discrete:
    @functools.cache
    def listed(precision: int) -> tuple[list[Any], list[Any]]:
        exact = pair.source.rational_masses(pair.index)
        if exact is not None:
            p, q = ([mpf(m.numerator) / m.denominator for m in masses] for masses in exact)
        else:
            with ctx.workprec(2 * precision + 64):
                balls = pair.source.masses(pair.index)
            p, q = ([_midpoint(mass) for mass in masses] for masses in balls)
        return (q, p) if pair.flipped else (p, q)

    def masses(number: int) -> tuple[Any, Any]:
        p, q = listed(mp.prec)
        return p[number], q[number]

    return Discrete(masses, 0, len(pair.source.outcomes(pair.index)) - 1)


def _midpoint(value: arb) -> Any:
    mantissa, exponent = value.mid().man_exp()
    return mp.ldexp(mpf(int(mantissa)), int(exponent))

"""Masses of laws on countable sets, a second time, in balls."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.reals import Real, UnknownError, apply, ball, exp

_MOST_OUTCOMES = 100_000
"""Outcomes of a law that is listed."""
_MOST_TERMS = 200_000
"""Terms of a series."""
_SPARE_BITS = 40
"""For the rounding of powers that are made from each other."""
_MANY = 1000
"""Trials from which on Arb's incomplete beta function takes longer; at 10¹² it has no digit."""
_MOST_STEPS = 5000
"""Convergents: some hundreds are enough where the tail is of use."""
_NEAR = arb(2) ** -100
"""Relative distance of two convergents between which the tail lies."""


class Bounded(dict[str, Any]):
    """A law of which H(ε) ≤ δ is known at one ε by how it is made; no certificate can write one."""

    def __init__(self, law: dict[str, Any], most: tuple[Any, Any]) -> None:
        super().__init__(law)
        self.most = most


def masses(law: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return the masses of P and Q on the outcomes of a law that has a list of them."""
    if law["law"] == "finite":
        return list(zip(law["p"], law["q"], strict=True))
    if law["law"] == "discrete-laplace":  # outcomes z ≤ 0, z = 1, …, s − 1, z ≥ s
        rate, s = 1 / law["scale"], int(law["shift"])
        if s > _MOST_OUTCOMES:
            raise UnknownError(f"a law on more than {_MOST_OUTCOMES} outcomes")
        least = apply("tanh", rate / 2)
        inner = [least * exp(-rate * z) for z in range(s + 1)]
        end = 1 / (1 + exp(-rate))
        far = exp(-rate * s) * end
        return [(far, end), *((inner[s - z], inner[z]) for z in range(1, s)), (end, far)]
    raise UnknownError(f"probabilities of the law {law['law']!r}")


def mixed(a: Any, b: Any, q: Any, *, first: bool) -> tuple[Any, Any]:
    """Return what a sample has of A and B: (1 − q)B + qA and B, or A and (1 − q)A + qB."""
    return ((1 - q) * b + q * a, b) if first else (a, (1 - q) * a + q * b)


def theta(v: Any, first: Any = None) -> Any:
    """Return the sum of e^{−z²/2v} over z = first, first + 1, …; over all integers for None."""
    if first is None:
        return 1 + 2 * theta(v, Fraction(1))
    if first <= 0 and first == int(first):
        return theta(v) - theta(v, 1 - first)
    return _series(v, first, 0, ctx.prec)


def sum_of_squares(parameter: Any) -> Any:
    """Return Σ z² e^{−z²/2v} over all integers z."""
    return 2 * _series(parameter, Fraction(1), 2, ctx.prec)


@lru_cache(maxsize=256)
def _series(v: Any, first: Any, power: int, bits: int) -> Real:
    """Return Σ z^k e^{−z²/2v} over z = first, first + 1, …: terms whose ratio falls.

    Of z and z + 1 it is (1 + 1/z)^k e^{−(2z + 1)/2v}: the rest is at most a geometric series.
    """
    with ctx.workprec(bits + _SPARE_BITS):
        rate, z = ball(1 / (2 * v)), ball(first)
        term, ratio = (-z * z * rate).exp(), (-(2 * z + 1) * rate).exp()
        step, whole, share = (-2 * rate).exp(), arb(0), arb(2) ** -(bits + 2)
        for _ in range(_MOST_TERMS):
            weighted, falls = (
                (term, ratio) if power == 0 else (term * z**power, ratio * (1 + 1 / z) ** power)
            )
            if falls < 1:
                rest = weighted / (1 - falls)
                if rest < whole * share:
                    return Real(whole + arb(0).union(rest))
            whole, term, ratio, z = whole + weighted, term * ratio, ratio * step, z + 1
    raise UnknownError("a discrete Gaussian law of so large a parameter")


def binomial_tail(k: int, n: int, p: arb) -> arb:
    """Return P(Bin(n, p) ≥ k), the incomplete beta function I_p(k, n − k + 1)."""
    if k <= 0 or p >= 1:
        return arb(1)
    if k > n or p <= 0:
        return arb(0)
    if k < (n + 1) * p:  # nearly 1 where k is far below the mean
        return 1 - binomial_tail(n - k + 1, n, 1 - p)
    return p.beta_lower(k, n - k + 1, 1) if n < _MANY else _by_fraction(k, n, p)


def _by_fraction(k: int, n: int, p: arb) -> arb:
    """Return P(Bin(n, p) ≥ k) for k ≥ (n + 1)p.

    The continued fraction of DiDonato and Morris ("Algorithm 708", 1992, equation 9): all its
    entries are positive here, so that its convergents of odd number are above the value, those of
    even number below. It needs as many at 10¹² as at 100.
    """
    a, b = arb(k), arb(n - k + 1)
    front = binomial_mass(k, n, p) * a * (1 - p)
    excess = a - (a + b) * p + 1
    if not excess > 0:
        raise UnknownError("a tail of a binomial law of so uncertain a probability")
    above, below = (arb(1), a * excess / (a + 1)), (arb(0), arb(1))
    for step in range(1, _MOST_STEPS):
        numerator = (a + step - 1) * (a + b + step - 1) * step * (b - step)
        if b == step:
            return front * above[0] / above[1]
        numerator *= (p / (a + 2 * step - 1)) ** 2
        denominator = (
            step
            + step * (b - step) * p / (a + 2 * step - 1)
            + (a + step) * (excess + step * (2 - p)) / (a + 2 * step + 1)
        )
        following = tuple(
            denominator * x + numerator * y for x, y in zip(above, below, strict=True)
        )
        scale = 1 / following[1]
        above, below = (following[0] * scale, arb(1)), (above[0] * scale, above[1] * scale)
        ends = above[0], below[0] / below[1]
        if abs(ends[0] - ends[1]) < abs(ends[0]) * _NEAR:
            break
    return front * ends[0].union(ends[1])


def binomial_mass(k: int, n: int, p: arb) -> arb:
    """Return P(Bin(n, p) = k)."""
    log = arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()
    return (log + k * p.log() + ((n - k) * (-p).log1p() if n > k else 0)).exp()

"""Masses of laws on countable sets, a second time, in balls."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from accountant.numbers.precision import ctx
from verify.checker.reals import Real, UnknownError, apply, ball, exp

_MOST_OUTCOMES = 100_000
_MOST_TERMS = 200_000
_SPARE_BITS = 40
"""For the rounding of powers that are made from each other."""
_FEW = 40


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


def total(values: Sequence[Any]) -> Any:
    """Return a sum: exactly where there are few numbers, or where all are rational."""
    if len(values) <= _FEW or all(isinstance(value, Fraction) for value in values):
        return sum(values, start=Fraction(0))
    return Real(sum(map(ball, values), start=arb(0)))


def theta(v: Any, first: Any = None) -> Any:
    """Return the sum of e^{−z²/2v} over z = first, first + 1, …; over all integers for None."""
    if first is None:
        return 1 + 2 * theta(v, Fraction(1))
    if first <= 0 and first == int(first):
        return theta(v) - theta(v, 1 - first)
    return _theta(v, first, ctx.prec)


@lru_cache(maxsize=256)
def _theta(v: Any, first: Any, bits: int) -> Real:
    """Add up terms whose ratio falls; the rest is at most a geometric series."""
    with ctx.workprec(bits + _SPARE_BITS):
        rate, start = ball(1 / (2 * v)), ball(first)
        term, ratio = (-start * start * rate).exp(), (-(2 * start + 1) * rate).exp()
        step, whole, share = (-2 * rate).exp(), arb(0), arb(2) ** -(bits + 2)
        for _ in range(_MOST_TERMS):
            whole, term, ratio = whole + term, term * ratio, ratio * step
            if ratio < 1 and term < whole * share:
                rest = term / (1 - ratio)
                if rest < whole * share:
                    return Real(whole + arb(0).union(rest))
    raise UnknownError("a discrete Gaussian law of so large a parameter")

"""Masses of laws on countable sets, a second time in mpmath."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mpmath import mp

from verify.checker.arithmetic import UnknownError


def masses(law: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return the masses of P and Q on the outcomes of a law that has a list of them."""
    if law["law"] == "finite":
        return [(mp.mpf(p), mp.mpf(q)) for p, q in zip(law["p"], law["q"], strict=True)]
    if law["law"] == "discrete-laplace":  # outcomes z ≤ 0, z = 1, …, s − 1, z ≥ s
        rate, s = 1 / mp.mpf(law["scale"]), int(law["shift"])
        inner = [mp.tanh(rate / 2) * mp.exp(-rate * z) for z in range(s + 1)]
        end, far = 1 / (1 + mp.exp(-rate)), mp.exp(-rate * s) / (1 + mp.exp(-rate))
        return [(far, end), *((inner[s - z], inner[z]) for z in range(1, s)), (end, far)]
    raise UnknownError(f"probabilities of the law {law['law']!r}")


def theta(v: Any, first: Any = None) -> Any:
    """Return the sum of e^{−z²/2v} over z = first, first + 1, …; over all integers for None."""
    if first is None:
        return 1 + 2 * theta(v, Fraction(1))
    if first <= 0 and first == int(first):
        return theta(v) - theta(v, 1 - first)
    total, term = mp.zero, mp.exp(-(mp.mpf(first) ** 2) / (2 * v))
    ratio, step = mp.exp(-(2 * mp.mpf(first) + 1) / (2 * v)), mp.exp(-1 / mp.mpf(v))
    while term > total * mp.eps:
        total, term, ratio = total + term, term * ratio, ratio * step
    return total

"""What a pair of laws (P, Q) answers, computed a second time in mpmath."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

from mpmath import mp

from verify.checker.arithmetic import AGREEMENT, UnknownError, agree
from verify.checker.integrals import laplace_product_tails, rank_one_complement

_FARTHEST = 1 << 20
Law: TypeAlias = dict[str, Any]
"""A name under "law" and parameters that are numbers or lists of numbers."""


def tails(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return P(L > ε) and Q(L > ε)."""
    match law["law"]:
        case "gaussian":
            half, cut = law["mu"] / 2, epsilon / law["mu"]
            return mp.ncdf(half - cut), mp.ncdf(-half - cut)
        case "laplace":
            t = law["distance"]
            if epsilon < -t or epsilon >= t or agree(epsilon, t):
                return (mp.zero, mp.zero) if epsilon > 0 else (mp.one, mp.one)
            return 1 - mp.exp((epsilon - t) / 2) / 2, mp.exp(-(t + epsilon) / 2) / 2
        case "discrete-gaussian":
            v, shift = law["parameter"], law["shift"]
            cut = v * epsilon / shift + Fraction(shift) / 2
            first = int(mp.floor(cut * (1 + mp.sign(cut) * AGREEMENT))) + 1
            return _theta(v, first - shift) / _theta(v), _theta(v, first) / _theta(v)
        case "laplace-product":
            return laplace_product_tails(law["distances"], epsilon)
        case "rank-one-gaussian":
            shape = law["dimension"], law["ratio"]
            return 1 - rank_one_complement(*shape, epsilon), rank_one_complement(*shape, -epsilon)
    factor = mp.exp(epsilon) * (1 + AGREEMENT)  # a loss of exactly ε is not above ε
    above = [(p, q) for p, q in _masses(law) if p > factor * q]
    return mp.fsum(p for p, _ in above), mp.fsum(q for _, q in above)


def hockey_stick(law: Law, epsilon: Any) -> Any:
    """Return H(ε) = P(L > ε) − e^ε Q(L > ε)."""
    p, q = tails(law, epsilon)
    return p - mp.exp(epsilon) * q


def renyi(law: Law, order: Any) -> Any:
    """Return the Rényi divergence of an order ≥ 1, or raise UnknownError."""
    less = order - 1
    match law["law"]:
        case "gaussian":
            return order * law["mu"] ** 2 / 2
        case "laplace":
            t = law["distance"]
            if not less:
                return t + mp.expm1(-t)
            moment = order * mp.exp(less * t) + less * mp.exp(-order * t)
            return mp.log(moment / (2 * order - 1)) / less
        case "laplace-product":
            return sum(renyi({"law": "laplace", "distance": t}, order) for t in law["distances"])
        case "discrete-gaussian":
            v, shift = law["parameter"], law["shift"]
            around = order * shift % 1
            inner = mp.log((_theta(v, -around) + _theta(v, 1 + around)) / _theta(v)) if less else 0
            return order * shift**2 / (2 * v) + (inner / less if less else 0)
        case "rank-one-gaussian":
            if less * (law["dimension"] - 1) >= 1:
                return mp.inf
            raise UnknownError("a Rényi divergence of the rank-one Gaussian law")
    charged = [(p, q) for p, q in _masses(law) if p]
    if not all(q for _, q in charged):
        return mp.inf
    if not less:
        return mp.fsum(p * mp.log(mp.mpf(p) / q) for p, q in charged)
    return mp.log(mp.fsum(q * (mp.mpf(p) / q) ** mp.mpf(order) for p, q in charged)) / less


def _masses(law: Law) -> list[tuple[Any, Any]]:
    """Return the masses of P and Q on the values of the loss."""
    if law["law"] == "finite":
        return [(mp.mpf(p), mp.mpf(q)) for p, q in zip(law["p"], law["q"], strict=True)]
    if law["law"] == "discrete-laplace":  # outcomes z ≤ 0, z = 1, …, s − 1, z ≥ s
        rate, s = 1 / mp.mpf(law["scale"]), int(law["shift"])
        inner = [mp.tanh(rate / 2) * mp.exp(-rate * z) for z in range(s + 1)]
        end, far = 1 / (1 + mp.exp(-rate)), mp.exp(-rate * s) / (1 + mp.exp(-rate))
        return [(far, end), *((inner[s - z], inner[z]) for z in range(1, s)), (end, far)]
    raise UnknownError(f"probabilities of the law {law['law']!r}")


def _theta(v: Any, first: Any = None) -> Any:
    """Return the sum of e^{−z²/2v} over z = first, first + 1, …; over all integers for None."""
    if first is None:
        return 1 + 2 * _theta(v, Fraction(1))
    if first <= 0 and first == int(first):
        return _theta(v) - _theta(v, 1 - first)
    total, term = mp.zero, mp.exp(-(mp.mpf(first) ** 2) / (2 * v))
    ratio, step = mp.exp(-(2 * mp.mpf(first) + 1) / (2 * v)), mp.exp(-1 / mp.mpf(v))
    while term > total * mp.eps:
        total, term, ratio = total + term, term * ratio, ratio * step
    return total


def trade_off(law: Law, alpha: Any) -> Any:
    """Return a lower bound of the least type II error at type I error α, very near to it.

    For every ε, 1 − H(ε) − e^ε α is a lower bound; it is best where Q(L > ε) crosses α.
    """
    epsilon = _crossing(lambda loss: tails(law, loss)[1] - alpha, 80)
    return 1 - hockey_stick(law, epsilon) - mp.exp(epsilon) * alpha


def least_epsilon(laws: list[Law], delta: Any) -> Any:
    """Return the ε at which the largest H(ε) is δ."""
    return _crossing(lambda loss: max(hockey_stick(law, loss) for law in laws) - delta, mp.prec)


def _crossing(falling: Callable[[Any], Any], bits: int) -> Any:
    """Return where a falling function of ε crosses zero, by bisection."""
    low, high = mp.mpf(-1), mp.mpf(1)
    while falling(low) < 0 or falling(high) > 0:
        if high > _FARTHEST:
            raise UnknownError("a level that no loss up to a million has")
        low, high = 2 * low, 2 * high
    for _ in range(bits):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high

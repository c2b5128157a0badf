"""What a pair of laws (P, Q) answers, computed a second time in mpmath.

The answers of a product are intervals (`verify.checker.composed`), all others are numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

from mpmath import iv, mp

from verify.checker import composed, samples
from verify.checker.arithmetic import AGREEMENT, UnknownError, agree, interval
from verify.checker.integrals import laplace_product_tails, rank_one_complement
from verify.checker.masses import masses, theta

_FARTHEST = 1 << 20
Law: TypeAlias = dict[str, Any]
"""A name under "law" and parameters that are numbers or lists of numbers."""


def tails(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return P(L > ε) and Q(L > ε)."""
    if composed.composite(law):
        found = composed.answers(law, epsilon)
        return found.above_p, found.above_q
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
            return theta(v, first - shift) / theta(v), theta(v, first) / theta(v)
        case "laplace-product":
            return laplace_product_tails(law["distances"], epsilon)
        case "rank-one-gaussian":
            shape = law["dimension"], law["ratio"]
            return 1 - rank_one_complement(*shape, epsilon), rank_one_complement(*shape, -epsilon)
        case "subsampled":
            return _subsampled_tails(law, epsilon)
        case "gaussian-mixture":
            return _mixture_tails(law, epsilon)
    factor = mp.exp(epsilon) * (1 + AGREEMENT)  # a loss of exactly ε is not above ε
    above = [(p, q) for p, q in masses(law) if p > factor * q]
    return mp.fsum(p for p, _ in above), mp.fsum(q for _, q in above)


def hockey_stick(law: Law, epsilon: Any) -> Any:
    """Return H(ε) = P(L > ε) − e^ε Q(L > ε)."""
    if composed.composite(law):
        return composed.answers(law, epsilon).hockey_stick
    p, q = tails(law, epsilon)
    return p - mp.exp(epsilon) * q


def largest(values: list[Any]) -> Any:
    """Return the maximum, of intervals an interval."""
    if not any(isinstance(value, iv.mpf) for value in values):
        return max(values)
    boxes = [interval(value) for value in values]
    return iv.mpf([max(box.a for box in boxes), max(box.b for box in boxes)])


def _mixture_tails(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return those of mixtures of N(m, 1), m ≥ 0 as P, m ≤ 0 as Q: L increases with the outcome.

    H at another threshold than that of L = ε is lower, by the square of how far it is.
    """
    p, q = ([(mp.mpf(weight), mp.mpf(mean)) for weight, mean in law[side]] for side in ("p", "q"))
    means = sorted(mean for _, mean in p), sorted(mean for _, mean in q)
    if not (means[0][0] >= 0 < means[0][-1] and means[1][0] < 0 >= means[1][-1]):
        raise UnknownError("the law of this mixture")

    def log_density(parts: list[tuple[Any, Any]], x: Any) -> Any:
        return mp.log(mp.fsum(weight * mp.exp(mean * x - mean**2 / 2) for weight, mean in parts))

    def above(x: Any) -> bool:
        return bool(log_density(p, x) - log_density(q, x) > epsilon)

    low, high = -mp.one, mp.one
    while above(low):
        low *= 2
    while not above(high):
        high *= 2
    for _ in range(mp.prec):
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) else (middle, high)
    return tuple(mp.fsum(w * mp.ncdf(mean - high) for w, mean in side) for side in (p, q))


def _subsampled_tails(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return the tails of one subsampled release from those of its pair (A, B), l its loss.

    With the mixture as P, L = ln(1 − q + q e^l); as Q, L = −ln(1 − q + q e^{−l}).
    """
    if composed.composite(law["pair"]):
        raise UnknownError("the law of a sample that is used in a composition")
    q, first = mp.mpf(law["sampling_prob"]), law["mixture"] == "P"
    inner = (mp.expm1(epsilon if first else -epsilon) + q) / q  # e^l, or e^{−l}, at L = ε
    if inner <= 0:
        return (mp.one, mp.one) if first else (mp.zero, mp.zero)
    at = Fraction(0) if not epsilon else mp.log(inner) * (1 if first else -1)
    a, b = tails(law["pair"], at)
    return ((1 - q) * b + q * a, b) if first else (a, (1 - q) * a + q * b)


def renyi(law: Law, order: Any) -> Any:
    """Return the Rényi divergence of an order ≥ 1, or raise UnknownError."""
    less = order - 1
    match law["law"]:
        case "product":
            pieces = zip(law["factors"], law["counts"], strict=True)
            return _added([int(count) * renyi(factor, order) for factor, count in pieces])
        case "subsampled" if law["pair"]["law"] in samples.KNOWN:
            return samples.renyi(law, order)
        case "subsampled" | "gaussian-mixture" | "discrete-gaussian-product":
            return composed.renyi(law, order)
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
            bound = order * shift**2 / (2 * v)
            if not less or not around:  # the sum is over the integers again
                return bound
            inner = mp.log((theta(v, -around) + theta(v, 1 + around)) / theta(v))
            return bound + inner / less
        case "rank-one-gaussian":
            if less * (law["dimension"] - 1) >= 1:
                return mp.inf
            raise UnknownError("a Rényi divergence of the rank-one Gaussian law")
    charged = [(p, q) for p, q in masses(law) if p]
    if not all(q for _, q in charged):
        return mp.inf
    if not less:
        return mp.fsum(p * mp.log(mp.mpf(p) / q) for p, q in charged)
    return mp.log(mp.fsum(q * (mp.mpf(p) / q) ** mp.mpf(order) for p, q in charged)) / less


def _added(values: list[Any]) -> Any:
    """Return a sum of numbers and intervals."""
    if mp.inf in values or not any(isinstance(value, iv.mpf) for value in values):
        return sum(values)
    return sum(map(interval, values), start=iv.mpf(0))


def enveloped_renyi(laws: list[Law], order: Any) -> Any:
    """Return an upper bound of the divergence of a law whose H is at most the largest of several.

    With M = e^{(a − 1) D_a}, M − 1 is an integral of H and of that of the reverse with weights ≥ 0,
    so at most the sum of all M_i − 1; D_1 is at most the sum of the D_1.
    """
    found = [interval(renyi(law, order)) for law in laws]
    if order == 1:
        return sum(found, start=iv.mpf(0))
    less = interval(order - 1)
    return iv.log(1 + sum((iv.exp(less * one) - 1 for one in found), start=iv.mpf(0))) / less


def trade_off(law: Law, alpha: Any) -> Any:
    """Return a lower bound of the least type II error at type I error α, very near to it.

    For every ε, 1 − H(ε) − e^ε α is a lower bound; it is best where Q(L > ε) crosses α.
    """
    epsilon = _support(law, alpha)
    return 1 - hockey_stick(law, epsilon) - mp.exp(epsilon) * alpha


def enveloped_trade_off(laws: list[Law], alpha: Any) -> Any:
    """Return the same for a law whose H is the largest of several ones at every ε."""
    found = []
    for epsilon in (mp.zero, *(_support(law, alpha) for law in laws)):
        largest_one = max(hockey_stick(law, epsilon) for law in laws)
        found.append(1 - largest_one - mp.exp(epsilon) * alpha)
    return max(found)


def _support(law: Law, alpha: Any) -> Any:
    if composed.composite(law):
        raise UnknownError("the trade-off function of a composition")
    return _crossing(lambda loss: tails(law, loss)[1] - alpha, 80)


def least_epsilon(laws: list[Law], delta: Any) -> Any:
    """Return the ε at which the largest H(ε) is δ."""
    if any(map(composed.composite, laws)):
        raise UnknownError("the epsilon of a composition")
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

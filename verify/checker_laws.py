"""Pairs of laws a second time, in mpmath: what a mechanism's pairs are, and what they answer.

Part of the independent checker: no code is shared with `accountant`. Numbers are Fractions where
they are rational and mpmath reals at the working precision elsewhere; `settle` raises that
precision until two evaluations agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar, final

from mpmath import mp

Law: TypeAlias = dict[str, Any]
Numbers = TypeVar("Numbers", list[Any], dict[str, Any])
AGREEMENT = Fraction(1, 10**38)
"""Relative distance below which two numbers count as the same number."""

_PRECISIONS = (45, 60, 120, 240, 480, 960)
_DEFAULTS = {
    **dict.fromkeys(("l1_sensitivity", "l2_sensitivity", "sensitivity"), Fraction(1)),
    **{"categories": Fraction(2), "lowest": Fraction(0)},
}


class UnknownError(Exception):
    """A quantity that the checker cannot recompute; the message names it."""


@final
@dataclass(frozen=True)
class Noise:
    """A mechanism as it is named: its arguments are numbers, texts, lists or mechanisms."""

    name: str
    arguments: dict[str, Any]

    def __getitem__(self, argument: str) -> Any:
        return self.arguments.get(argument, _DEFAULTS.get(argument))


def settle(compute: Callable[[], Numbers]) -> Numbers:
    """Evaluate at rising precision until all numbers agree twice to 38 digits (or are exact)."""
    before: list[Any] | None = None
    for digits in _PRECISIONS:
        with mp.workdps(digits):
            values = compute()
            flat = list(values.values() if isinstance(values, dict) else values)
            if all(isinstance(value, Fraction) for value in flat):
                return values
            if before is not None and all(map(agree, flat, before)):
                return values
        before = flat
    raise UnknownError("a number that does not settle")


def agree(one: Any, other: Any) -> bool:
    """Whether two numbers are equal to 38 digits."""
    return bool(one == other or abs(one - other) <= AGREEMENT * max(abs(one), abs(other)))


def pairs(noise: Noise) -> list[Law]:
    """Derive the worst pairs of a mechanism from its arguments, or raise UnknownError."""
    match noise.name:
        case "Gaussian":
            mu = noise["l2_sensitivity"] / noise["standard_deviation"]
            return [{"law": "gaussian", "mu": mu}]
        case "Laplace":
            return [{"law": "laplace", "distance": noise["l1_sensitivity"] / noise["scale"]}]
        case "LaplaceVector":
            distances = sorted(abs(shift) / noise["scale"] for shift in noise["shifts"])
            return [{"law": "laplace-product", "distances": distances}]
        case "DiscreteLaplace" | "TruncatedGeometric":
            law = {"law": "discrete-laplace", "scale": noise["scale"]}
            return [{**law, "shift": noise["sensitivity"]}]
        case "DiscreteGaussian":
            law = {"law": "discrete-gaussian", "parameter": noise["parameter"]}
            return [{**law, "shift": noise["sensitivity"]}]
        case "EllipticalGaussian":  # Σ Δ_j²/σ_j² = μ² for σ_j² = Δ_j Σ Δ_i/μ²
            return [{"law": "gaussian", "mu": noise["mu"]}]
        case "Staircase":
            decay, gamma = mp.exp(-noise["epsilon"]), noise["gamma"]
            height = (1 - decay) / (2 * (gamma + decay * (1 - gamma)))
            side = mp.mpf(1) / 2 + height * min(gamma, 1 - gamma)
            middle = height * abs(1 - 2 * gamma) * (decay if 2 * gamma < 1 else 1)
            return [
                {
                    "law": "finite",
                    "p": [side, middle, decay * side],
                    "q": [decay * side, middle, side],
                }
            ]
        case "RandomizedResponse":
            odds, rest = mp.exp(noise["epsilon"]), noise["categories"] - 2
            p = [entry / (odds + rest + 1) for entry in (odds, rest, mp.one)]
            return [{"law": "finite", "p": p, "q": p[::-1]}]
        case "RankOneGaussian":
            ratio = noise["l2_sensitivity"] / mp.sqrt(noise["sigma_star"])
            return [{"law": "rank-one-gaussian", "dimension": noise["dimension"], "ratio": ratio}]
        case "Tabulated":
            return _both_ways(list(noise["p"]), list(noise["q"]))
        case "IntegerNoise":
            masses, found = list(noise["probabilities"]), []
            for shift in range(1, int(noise["sensitivity"]) + 1):
                padding = [Fraction(0)] * shift
                found += _both_ways(padding + masses, masses + padding)
            return found
    raise UnknownError(f"the law of {noise.name}")


def _both_ways(p: list[Any], q: list[Any]) -> list[Law]:
    return [{"law": "finite", "p": p, "q": q}, {"law": "finite", "p": q, "q": p}]


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
            return _product_tails(law["distances"], epsilon)
        case "rank-one-gaussian":
            return 1 - _outside(law, epsilon), _outside(law, -epsilon)
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


def trade_off(law: Law, alpha: Any) -> Any:
    """Return a lower bound of the least type II error at type I error α, very near to it.

    For every ε, 1 − H(ε) − e^ε α is a lower bound; it is best where Q(L > ε) crosses α.
    """
    epsilon = _crossing(lambda loss: tails(law, loss)[1] - alpha, 80)
    return 1 - hockey_stick(law, epsilon) - mp.exp(epsilon) * alpha


def least_epsilon(laws: list[Law], delta: Any) -> Any:
    """Return the ε at which the largest H(ε) is δ."""
    return _crossing(lambda loss: max(hockey_stick(law, loss) for law in laws) - delta, mp.prec)


def variance(noise: Noise, index: Any = 0) -> Any:
    """Return the variance of a coordinate; of every one, where they are the same."""
    match noise.name:
        case "EllipticalGaussian":
            return (
                noise["sensitivities"][int(index)] * sum(noise["sensitivities"]) / noise["mu"] ** 2
            )
        case "Gaussian":
            return noise["standard_deviation"] ** 2
        case "Laplace" | "LaplaceVector":
            return 2 * noise["scale"] ** 2
        case "DiscreteLaplace":
            return 1 / (2 * mp.sinh(1 / (2 * mp.mpf(noise["scale"]))) ** 2)
        case "RankOneGaussian":
            return noise["sigma_star"] / noise["dimension"]
    raise UnknownError(f"the variance of {noise.name}")


def mean_squared_error(noise: Noise) -> Any:
    """Return the average of the variances."""
    count = len(noise["sensitivities"]) if noise.name == "EllipticalGaussian" else 1
    return sum(variance(noise, index) for index in range(count)) / count


def _crossing(falling: Callable[[Any], Any], bits: int) -> Any:
    """Return where a falling function of ε crosses zero, by bisection."""
    low, high = mp.mpf(-1), mp.mpf(1)
    while falling(low) < 0:
        low *= 2
    while falling(high) > 0:
        high *= 2
    for _ in range(bits):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


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


def _product_tails(distances: list[Any], epsilon: Any) -> tuple[Any, Any]:
    """Return both tails of a sum of independent losses of Laplace pairs.

    With dP = e^{l/2} dm and dQ = e^{−l/2} dm, each coordinate gives m two atoms e^{−t/2}/2 at ±t
    and the density e^{−t/2}/4 on (−t, t), the difference of the half-lines below t and −t. So m
    is a sum of atoms and of powers (j − l)₊^{n−1}/(n − 1)!, whose integrals over l > ε are
    confluent hypergeometric functions.
    """
    weights: dict[tuple[Any, int], Any] = {(Fraction(0), 0): Fraction(1)}
    for t in distances:
        grown: dict[tuple[Any, int], Any] = {}
        for (j, n), weight in weights.items():
            for state, share in (
                ((j + t, n), 2),
                ((j - t, n), 2),
                ((j + t, n + 1), 1),
                ((j - t, n + 1), -1),
            ):
                grown[state] = grown.get(state, 0) + weight * share / 4
        weights = grown
    p = q = mp.zero
    for (j, n), weight in weights.items():
        z = j - epsilon
        if z > AGREEMENT and weight:
            power = mp.mpf(weight) * mp.mpf(z) ** n / mp.factorial(n)
            p += power * mp.exp(mp.mpf(j) / 2) * mp.hyp1f1(n, n + 1, -mp.mpf(z) / 2)
            q += power * mp.exp(-mp.mpf(j) / 2) * mp.hyp1f1(n, n + 1, mp.mpf(z) / 2)
    scale = mp.exp(-mp.mpf(sum(distances)) / 2)
    return scale * p, scale * q


def _outside(law: Law, epsilon: Any) -> Any:
    """Return G(ε) = ∫ erfc(ρ/√2) c (1 − τ²)^{a−1} dτ for the rank-one Gaussian law.

    Noise √σ_* z v with z normal and v uniform on the sphere of R^M; a = (M − 1)/2, κ the shift
    in units of √σ_*. At the distances ρ, w from the centres of P and Q the loss is
    L = 2a ln(w/ρ) + (w² − ρ²)/2, and {L > ε} meets the sphere of radius ρ in the cap cos > τ(ρ),
    of share C(τ), C' = −c (1 − τ²)^{a−1}. Integrating P(L > ε) = ∫ φ(ρ) C(τ(ρ)) dρ by parts gives
    1 − G(ε), and the mirror image x → s − x gives Q(L > ε) = P(L < −ε) = G(−ε).

    The curve L = ε is run through by x = ln(s/(1 − s)), s the share of (w² − ρ²)/2 in ε: there
    ln(w²/ρ²) = ε(1 − s)/a. It has |τ| < 1 from the segment between the centres on, except
    between two crossings of the axis beyond a centre, if there are any.
    """
    a, kappa, size = mp.mpf(law["dimension"] - 1) / 2, mp.mpf(law["ratio"]), mp.mpf(abs(epsilon))
    c = mp.exp(mp.loggamma(a + mp.mpf(1) / 2) - mp.loggamma(a)) / mp.sqrt(mp.pi)
    mirrored = epsilon < 0

    def integrand(x: Any) -> Any:
        s = 1 / (1 + mp.exp(-x))
        d, z = 2 * size * s, size * (1 - s) / a
        shape = z / mp.expm1(z) if z else mp.one
        square = 2 * a * mp.exp(x) * shape + (d if mirrored else 0)  # ρ², or w² when mirrored
        growth = 1 - s + s * shape + (0 if mirrored else s * z)  # its logarithmic derivative
        sign, root = (-1 if mirrored else 1), mp.sqrt(square)
        tau = (sign * d - kappa**2) / (2 * kappa * root)
        slope = sign * d * (1 - s) / (2 * kappa * root) - tau * growth / 2
        inside = max((1 - tau) * (1 + tau), mp.zero)
        return mp.erfc(root / mp.sqrt(2)) * inside ** (a - 1) * slope

    def crossing(v: Any, ends: list[Any]) -> Any:  # x at the root of v, ln(w²/ρ²) = 2v there
        h = mp.findroot(v, ends, solver="anderson", tol=mp.eps, verify=False) if size else ends[0]
        return mp.log(size - 2 * a * h) - mp.log(2 * a * h) if size else mp.log(kappa**2 / (8 * a))

    def between(h: Any) -> Any:
        return 2 * a * h + kappa**2 / 2 * mp.tanh(h / 2) - size

    def beyond(h: Any) -> Any:
        return 2 * a * h + kappa**2 / 2 * mp.coth(h / 2) - size

    horizon = mp.log(mp.log(10) * (2 * mp.dps + 20) + size) - mp.log(a)
    pieces = [(crossing(between, [mp.zero, size / (2 * a)]), horizon)]
    lowest = 2 * mp.asinh(kappa / mp.sqrt(8 * a))
    if size and beyond(lowest) < 0:
        near = crossing(beyond, [lowest, size / (2 * a)])
        far = crossing(beyond, [kappa**2 / size, lowest])
        pieces = [(pieces[0][0], near), (far, horizon)]
    total = mp.zero
    for low, high in pieces:
        steps = max(int(mp.ceil((high - low) / 2)), 0)
        cuts = [low + (high - low) * k / steps for k in range(steps + 1)] if steps else []
        total += mp.fsum(mp.quad(integrand, cut) for cut in pairwise(cuts))
    return c * total

"""Events of several participations in an epoch: contour integrals, by two sums in balls.

W = (1/t) Σ_j X_j under Q, X = e^{mZ − m²/2}, m = θμ, 0 < θ ≤ 1. P_k adds μ to k of the Z, all sets
being equally likely. With ψ(s) = E e^{−sX}, and ψ₁(s) the same with Z + μ for Z, the integrals
(1/2πi) ∫ e^{λK} f(λ) dλ over Re λ = c > 0 are

    Q(W ≤ K) for f = ψ(λ/t)^t/λ,   P_k(W ≤ K) for f = ψ(λ/t)^{t−k} ψ₁(λ/t)^k/λ.

*Step.* By Poisson's formula the sum with step h = 2π/B is Σ_n G(K + nB) e^{−ncB} for each of these
functions G. For B > K the terms with n < 0 are 0, and those with n ≥ 1 probabilities.

*End.* On the line Im x = −η, 0 < ω = mη ≤ π/2, ψ(s) is ∫ n(x − iη) exp(−s e^{−iω} e^{mx − m²/2}) dx
with the normal density n, and ψ₁(s) the same with n(x − iη − μ). For τ = t Im s therefore
|ψ(s)| ≤ e^{η²/2} ψ(ρ) and |ψ₁(s)| ≤ e^{η²/2} ψ₁(ρ), ρ = (τ/t) sin ω; and ψ₁(ρ) ≤ ψ(ρ), as
e^{−ρX} falls with Z. Let r = e^{η²/2} ψ(ρ) at τ = T = Nh. One of the factors is integrated: as
∫ e^{−ρX} dτ/τ ≤ t e^{−ρX}/(TX sin ω) from T on and E 1/X = e^{m²}, what is beyond is at most

    e^{cK} r^{t−1} e^{η²/2 + m²} t/(πT sin ω).

*ψ* is the trapezoidal sum with η = a, 4ma < π, of step g. For 0 ≤ arg s ≤ π/2 the integrand is at
most |n| in the strip of half-width a around the line: the error is at most
2 e^{2a²}/(e^{2πa/g} − 1) (Trefethen and Weideman 2014, Theorem 5.1), and what lies beyond
|x| = Mg > μ at most e^{a²/2} erfc((Mg − μ)/√2). The same holds of ψ₁.

c, B, N, η, g and M are chosen; the bounds are evaluated for what was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.reals import Real, UnknownError, ball, exp

Law: TypeAlias = dict[str, Any]
_BITS = (96, 48)
"""Bits after the point, the second where the first take too long: t = 2, say."""
_ENOUGH = 24
"""Bits of a probability that are enough: more are asked for where fewer come soon."""
_WORKING = 256
"""Bits of all balls."""
_PERIOD = 3
"""B/K: the smaller it is, the more e^{cK} costs."""
_TALLEST = 3.0
"""The largest a: e^{2a²} is lost there."""
_INSIDE = 0.99
"""Share of π/(4m) that a has at most."""
_ANGLES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
"""Angles ω that are tried, in units of π/2."""
_FIRST_END, _LONGER = 4.0, 1.3
"""The first T that is tried, and by how much the next ones are larger."""
_STEPS, _PARTS = 4, (-0.16, -0.08, 0.0, 0.08, 0.16)
"""Places between two that are tried, and shares of their distance beside the best one."""
_ROOM = 0.1
"""How much farther a stated ln c may be from these places than the standard deviation of ln W."""
_MOST = 3_000_000
"""Most exponentials: about ten seconds."""


def event_tails(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return the probabilities of {W > c} under P_k and Q, or {W ≤ c} under Q and P_k.

    θ and ln c are given, or 1 and searched where P_k(W > c) − e^ε Q(W > c) is largest, nearly.
    Raises UnknownError where that takes too long.
    """
    first, k = law["mixture"] == "P", int(law["participations"])
    power, t, mu = Fraction(law.get("power", 1)), int(law["steps"]), float(ball(law["mu"]).mid())
    if not 0 < power <= 1:
        raise ValueError("the power of likelihood ratios is not in (0, 1]")

    def of(at: Any, *bits: int) -> tuple[arb, arb]:
        p, q = _asked(law, power, exp(at), bits)
        with ctx.workprec(_WORKING):
            return (1 - p, 1 - q) if first else (q, p)

    def gain(at: float) -> float:
        p, q = of(Fraction(at), _BITS[-1])
        with ctx.workprec(_WORKING):
            return float((p - ball(exp(epsilon)) * q).mid())

    level = float(ball(epsilon).mid()) * (1 if first else -1)
    one = math.expm1(level) / k  # with one large X, or k
    ends = [float(power) * level / k, float(power) * math.log1p(max(one, -_INSIDE))]
    if level > 0:
        grown = math.exp(float(power * (1 - power)) * mu**2 / 2)
        several = math.exp((level + math.log(math.comb(t, k))) / k)
        ends += [
            math.log1p((number * x ** float(power) * grown - number) / t)
            for number, x in ((1, 1 + t * one), (k, several))
        ]
    low, high = min(ends), max(ends)
    chosen = law.get("log_threshold")
    if chosen is None:
        chosen = Fraction(_largest(gain, low, high))
    reach = _ROOM + mu * math.sqrt((k * k + abs(level)) / t)
    if not low - reach <= float(ball(chosen).mid()) <= high + reach:
        raise ValueError("log_threshold is far from where the loss is about epsilon")
    p, q = of(chosen, _BITS[-1])
    if any(abs(each).rel_accuracy_bits() < _ENOUGH for each in (p, q)):
        p, q = of(chosen)
    return Real(p), Real(q)


def _largest(gain: Callable[[float], float], low: float, high: float) -> float:
    """Return about where a function with one maximum has it, near two places."""
    width = high - low
    places = [low + width * step / _STEPS for step in range(-1, _STEPS + 2)]
    best = max(places, key=gain)
    return max((best + width * part for part in _PARTS), key=gain)


def _asked(law: Law, power: Fraction, level: Any, several: Sequence[int]) -> tuple[arb, arb]:
    """Return P_k(W ≤ K) and Q(W ≤ K)."""
    with ctx.workprec(_WORKING):
        mu = ball(law["mu"])
        numbers = (_exact(x) for x in (mu, ball(power) * mu, ball(level)))
        asked = *numbers, int(law["steps"]), int(law["participations"])
        for bits in several or _BITS:
            found = _below(asked, bits)
            if found is not None:
                return found
    raise UnknownError("the law of this random allocation: its integral takes too long")


def _exact(value: arb) -> str:
    """Return a number as text, so that equal questions are asked once."""
    return str(value.str(_WORKING // 4))


@lru_cache(maxsize=64)
def _below(asked: tuple[str, str, str, int, int], bits: int) -> tuple[arb, arb] | None:
    """Return P_k(W ≤ K) and Q(W ≤ K) of μ, m, K, t and k; None where that takes too long."""
    *numbers, t, taken = asked
    mu, m, level = map(arb, numbers)
    wanted = bits * math.log(2)
    period = _PERIOD * level
    line = arb(float(wanted / period.mid()))  # e^{−cB} is what is wanted
    transform = _Transform(mu, m, wanted * (1 + 1 / _PERIOD) + math.log(t))
    grown = (line * level).exp()
    end = _end(transform, t, period, math.exp(-wanted) / grown)
    if end is None:
        return None
    count, beyond = end
    step, p, q = 2 * arb.pi() / period, arb(0), arb(0)
    for k in range(count + 1):
        z = acb(line, k * step)
        psi, own = transform(z / t)
        turned = acb(0, k * step * level).exp() * psi ** (t - taken) / z / (1 if k else 2)
        p, q = p + (turned * own**taken).real, q + (turned * psi**taken).real
    share = (-line * period).exp()
    above = arb(0).union(share / (1 - share))
    rest, scale = arb(0, (beyond * grown).upper()) - above, grown * step / arb.pi()
    return scale * p + rest, scale * q + rest


def _end(transform: _Transform, t: int, period: arb, least: arb) -> tuple[int, arb] | None:
    """Return N and a bound of what is beyond it, less e^{cK}; None where N is too large."""
    end, step, m = _FIRST_END, 2 * arb.pi() / period, transform.m
    while True:
        count = math.ceil(end / float(step.mid()))
        if count * transform.nodes > _MOST:
            return None
        top = count * step
        for part in _ANGLES:
            angle = arb(part) * arb.pi() / 2
            half, sine = (angle / m) ** 2 / 2, angle.sin()
            log = half + transform(acb(top / t * sine))[0].real.log()
            error = ((t - 1) * log + half + m * m).exp() * t / (sine * arb.pi() * top)
            if error < least:
                return count, error
        end *= _LONGER


class _Transform:
    """ψ and ψ₁, for arguments in a quarter of the plane, by sums of one set of nodes."""

    def __init__(self, mu: arb, m: arb, wanted: float) -> None:
        self.m = m
        a = arb(min(_INSIDE * math.pi / (4 * float(m.mid())), _TALLEST))
        fall = wanted + 2 * float(a) ** 2 + 3
        g = arb(2 * math.pi * float(a) / fall)
        reach = math.ceil((math.sqrt(2 * fall) + float(mu.mid())) / float(g)) + 1
        self.nodes = 2 * reach + 1
        scale = g / (2 * arb.pi()).sqrt()
        self.terms = []
        for x in (acb(g * j, -a) for j in range(-reach, reach + 1)):
            weight = scale * (-x * x / 2).exp()
            moved = (mu * x - mu * mu / 2).exp()
            self.terms.append((weight, weight * moved, (m * x - m * m / 2).exp()))
        error = 2 * (2 * a * a).exp() / (2 * arb.pi() * a / g).expm1()
        error += (a * a / 2).exp() * ((g * reach - mu) / arb(2).sqrt()).erfc()
        self.doubtful = acb(arb(0, error.upper()), arb(0, error.upper()))

    def __call__(self, s: acb) -> tuple[acb, acb]:
        """Return ψ(s) and ψ₁(s)."""
        psi, own = self.doubtful, self.doubtful
        for weight, weighted, x in self.terms:
            falling = (-s * x).exp()
            psi += weight * falling
            own += weighted * falling
        return psi, own

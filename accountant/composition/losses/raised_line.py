"""Ratios of moments of a Gaussian mixture on a vertical line, from nodes above the real axis.

With A = N(μ, 1) and B = N(0, 1), w = 1 − q + q e^{μx − μ²/2} the density of (1 − q)B + qA against B
and Λ(s) = E_B[w^s], the trapezoidal rule for Λ(s + it) is that of `saddle_bounds`, but on the line
Im z = v. For 0 ≤ y ≤ 2v, with 2vμ < π, the two terms of w are vectors at an angle θ = μy < π: so w
has no zero there, |w(x + iy)| ≤ w(x) and 0 ≤ arg w ≤ θ. For s ≥ 0 and t ≥ 0 therefore

    |φ(z) w(z)^{s + it}| ≤ e^{y²/2} φ(x) w(x)^s,   z = x + iy,

and the rule with step η is wrong by at most Λ(s) (1 + e^{2v²})/(e^{2πv/η} − 1), whatever t is
(Trefethen and Weideman 2014, Theorem 5.1, with the real axis and Im z = 2v as the two edges).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import acb, acb_mat, arb

from accountant.composition.losses.bounds import Mixture
from accountant.core.pair import Pair
from accountant.errors import UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx

MOST_WORK = 24_000_000
"""Most products of a node in x and a node on the line, at 256 bits; bits cost their square."""
_BITS = 256
_SPARE = 12
_HIGHEST = 0.475
"""v, as a part of π/μ."""
_TALLEST = 2.5
_LOG_2 = math.log(2)


@final
@dataclass(frozen=True)
class RaisedLine:
    """A rule for Λ(s + it), t ≥ 0, on the line Im z = v."""

    losses: tuple[acb, ...]
    """ln w at the nodes."""
    weights: tuple[acb, ...]
    """η φ w^s at the nodes."""
    error: arb
    """A bound of the error of the rule at every t ≥ 0."""

    def line(self, step: Fraction, count: int) -> list[acb]:
        """Return Λ(s + ij·step)/Λ(s) for 0 ≤ j < count."""
        blur = arb(0, self.error.upper())
        with ctx.workprec(ctx.prec + _SPARE):
            total = sum(self.weights, start=acb(0)).real + blur
            turns = [acb(0, ball(step)) * loss for loss in self.losses]
            found = sums(turns, self.weights, count)
            return [(value + acb(blur, blur)) / total for value in found]


def raised_line(pair: Pair, sampling_prob: ExactReal, floats: Mixture, s: Fraction) -> RaisedLine:
    """Return a rule whose error is about 2^−prec of Λ(s), for s ≥ 0 and a mixture without cuts.

    `pair` is (N(μ, 1), N(0, 1)); `floats` are the same numbers, for the choice of nodes.
    """
    fall = (ctx.prec + 4) * _LOG_2
    v = dyadic(min(_HIGHEST * math.pi / floats.mu, _TALLEST))
    step = dyadic(2 * math.pi * float(v) / (fall + 2 * float(v) ** 2 + 1))
    low, high = floats.reach(float(s), 0.0, 0.0, fall + 8)
    first, last = math.floor(low / step), math.ceil(high / step)
    rates = floats.rates(float(first * step), float(last * step), float(s), 0.0)
    with ctx.workprec(ctx.prec + _SPARE):
        q, mu = sampling_prob.ball(), (2 * pair.kullback_leibler()).sqrt()
        height, eta, exponent, rest = ball(v), ball(step), ball(s), 1 - q
        if not 2 * height * mu < arb.pi():
            raise UndecidedError(f"The line at the height {float(v):.6g} is not below the zeros.")
        odds, scale = (q.log() - mu * mu / 2).exp(), eta / (2 * arb.pi()).sqrt()
        losses, weights = [], []
        for j in range(first, last + 1):
            z = acb(eta * j, height)
            loss = (rest + odds * (mu * z).exp()).log()
            losses.append(loss)
            weights.append(scale * (exponent * loss - z * z / 2).exp())
        outside = arb(0)
        for j, rate in zip((first, last), rates, strict=True):
            x = eta * j
            size = scale * (exponent * (rest + odds * (mu * x).exp()).log() - x * x / 2).exp()
            outside += (height * height / 2).exp() * size / (eta * rate).expm1()
        share = (1 + (2 * height * height).exp()) / (2 * arb.pi() * height / eta).expm1()
        whole = (abs(sum(weights, start=acb(0)).real) + outside) / (1 - share)
        return RaisedLine(tuple(losses), tuple(weights), (share * whole + outside).upper())


def sums(turns: Sequence[acb], weights: Sequence[acb | arb], count: int) -> list[acb]:
    """Return Σ_k weights_k e^{j·turns_k} for 0 ≤ j < count.

    With j = bG + g the terms factor into e^{bG·turn} and e^{g·turn}: a product of two matrices,
    whose entries are products of two earlier ones.

    Raises UndecidedError where that is too much work.
    """
    if count * len(turns) * max(1.0, ctx.prec / _BITS) ** 2 > MOST_WORK:
        raise UndecidedError(
            f"The contour needs {count} × {len(turns)} terms at {ctx.prec} bits, more work than "
            f"{MOST_WORK} at {_BITS} bits. Ask for a larger relative_width, such as 1e-9."
        )
    inner = max(1, math.isqrt(count))
    outer = -(-count // inner)
    with ctx.workprec(ctx.prec + _SPARE):
        near = [_powers(turn.exp(), inner + 1) for turn in turns]
        far = [_powers(powers[inner], outer) for powers in near]
        left = [
            row[b] * weight for b in range(outer) for row, weight in zip(far, weights, strict=True)
        ]
        product = acb_mat(outer, len(turns), left)
        product *= acb_mat(len(turns), inner, [power for row in near for power in row[:inner]])
        return [product[j // inner, j % inner] for j in range(count)]


def _powers(base: acb, number: int) -> list[acb]:
    """Return base^g for 0 ≤ g < number."""
    found = [acb(1), base]
    for g in range(2, number):
        found.append(found[g // 2] * found[g - g // 2])
    return found[:number]


def dyadic(value: float) -> Fraction:
    """Round down to six bits."""
    mantissa, exponent = math.frexp(value)
    return Fraction(math.floor(mantissa * 64), 64) * Fraction(2) ** exponent

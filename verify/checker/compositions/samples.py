"""Rényi divergences of Poisson samples, in balls: where no integral over normal laws is needed.

Let (A, B) be the pair of the noise, l its loss, and w = 1 − q + q e^l, under B. Both laws are
symmetric, so that −l has under A the law that l has under B. Of a > 1,

    (a − 1) D_a = ln E_B[w^a] for the mixture as P,   ln E_B[w^{1 − a}] for the mixture as Q,

and D_1 = E_B[w ln w], −E_B[ln w]. The means are an integral over a bounded loss and two atoms for
Laplace noise, and a sum for discrete Gaussian noise. For mixtures of normal laws, with
w = Σ w_i e^{l_i}, large losses dominate at large orders:
w_m^a M_m ≤ E_B[w^a] ≤ (Σ w_i M_i^{1/a})^a with
M_i = E_B[e^{a l_i}] = e^{a(a − 1)μ_i²/2}, the latter by Minkowski's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.masses import theta
from dpassay.verifier.checker.reals import Real, UnknownError, ball, log

KNOWN = ("laplace", "discrete-gaussian")
_NARROW_DIGITS = 45
"""Digits that bounds agree to where large losses dominate."""
_MOST_TERMS = 100_000
"""Terms of a sum: a minute."""
_MOST_EVALUATIONS = 100_000
"""Evaluations of an integrand: a minute."""


def renyi(law: dict[str, Any], order: Any) -> Any:
    """Enclose D_a for an order a ≥ 1; raise UnknownError where it takes too many terms."""
    pair, q, first = law["pair"], ball(law["sampling_prob"]), law["mixture"] == "P"
    if order == 1:
        return Real(_mean(pair, lambda loss: _entropy(q, loss, first=first), arb(2)))
    power = ball(order if first else 1 - order)
    spread = abs(power) * (-(-q).log1p()).max(arb(1))
    moment = _mean(pair, lambda loss: (power * (1 + q * loss.expm1()).log()).exp(), spread)
    return log(Real(moment)) / (order - 1)


def _entropy(q: arb, loss: Any, *, first: bool) -> Any:
    w = 1 + q * loss.expm1()
    return w * w.log() if first else -w.log()


def of_large_losses(parts: list[tuple[arb, arb]], a: arb) -> arb | None:
    """Enclose D_a of a mixture of N(μ_i, 1) with weights w_i against N(0, 1); None unless narrow.

    The (w_i, μ_i) are in the order of the means, the largest of which dominates.
    """
    weight, largest = parts[-1]
    share = (a - 1) * largest**2 / 2  # ln M / a of the largest mean
    others = [w * ((a - 1) * mean**2 / 2 - share).exp() for w, mean in parts[:-1]]
    least = a * (share + weight.log())
    excess = a * (sum(others, arb(0)) / weight).log1p()
    if not excess < least * arb(10) ** -_NARROW_DIGITS:
        return None
    return (least + arb(0).union(excess)) / (a - 1)


def _mean(pair: dict[str, Any], value: Callable[[Any], Any], spread: arb) -> arb:
    """Enclose E_B of a value of the loss, e^{spread·(1 + |loss|)} being a bound of its size."""
    if pair["law"] == "laplace":
        return _over_laplace(ball(pair["distance"]), value)
    v, s = pair["parameter"], int(pair["shift"])
    return _over_integers(ball(v), s, value, spread) / ball(theta(v))


def _over_laplace(t: arb, value: Callable[[Any], Any]) -> arb:
    """Add two atoms and an integral; the values are analytic where 1 − q + q e^l is not ≤ 0."""

    def integrand(x: acb, analytic: bool) -> acb:
        loss = 2 * x - t
        if analytic and not abs(loss.imag) < arb.pi():
            return acb(arb.nan())
        return acb(value(loss)) * (-x).exp() / 2

    ends = (value(-t) + value(t) * (-t).exp()) / 2
    inside = acb.integral(integrand, acb(0), acb(t), eval_limit=_MOST_EVALUATIONS)
    return arb(ends + inside.real)


def _over_integers(v: arb, s: int, value: Callable[[Any], Any], spread: arb) -> arb:
    """Sum over |z| ≤ R. Beyond, the bound of a term falls by a ratio that falls, too.

    It is e^{−z²/2v + spread·(1 + (2|z| + s)s/2v)}, the same on both sides.
    """
    reach = (2 * v * (ctx.prec + 2 * spread + 20)).sqrt() + 2 * s * (spread + 1)
    if not reach < _MOST_TERMS:
        raise UnknownError("a Rényi divergence of a sample of so large an order")
    last, total = math.ceil(float(reach)), arb(0)
    for z in range(-last, last + 1):
        loss = arb(2 * z * s - s * s) / (2 * v)
        total += (-arb(z * z) / (2 * v)).exp() * value(loss)
    next_one = arb(last + 1)
    growth = spread * (1 + (2 * next_one + s) * s / (2 * v))
    bound = (-next_one * next_one / (2 * v) + growth).exp()
    ratio = (-(2 * next_one + 1) / (2 * v) + spread * s / v).exp()
    if not ratio < 1:
        raise UnknownError("a Rényi divergence of a sample of so large an order")
    rest = 2 * bound / (1 - ratio)
    return total + rest.union(-rest)

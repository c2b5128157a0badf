"""Rényi divergences of Poisson samples, in mpmath: where no integral over normal laws is needed.

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

from collections.abc import Callable
from typing import Any

from mpmath import iv, mp

from verify.checker.arithmetic import UnknownError
from verify.checker.masses import theta

KNOWN = ("laplace", "discrete-gaussian")
_NARROW_DIGITS = 45
"""Digits that bounds agree to where large losses dominate."""
_MOST_TERMS = 100_000
_MOST_PANELS = 500
_PANEL = 16
"""Largest logarithm of the change of the integrand over a panel."""


def renyi(law: dict[str, Any], order: Any) -> Any:
    """Return D_a for an order a ≥ 1; raise UnknownError where it takes too many terms."""
    pair, q, first = law["pair"], mp.mpf(law["sampling_prob"]), law["mixture"] == "P"

    def ratio(loss: Any) -> Any:
        return 1 + q * mp.expm1(loss)

    if order == 1:

        def entropy(loss: Any) -> Any:
            w = ratio(loss)
            return w * mp.log(w) if first else -mp.log(w)

        return _mean(pair, entropy, mp.one)
    power = mp.mpf(order) if first else 1 - mp.mpf(order)
    spread = abs(power) * max(mp.one, -mp.log1p(-q))
    moment = _mean(pair, lambda loss: ratio(loss) ** power, spread)
    return mp.log(moment) / (mp.mpf(order) - 1)


def of_large_losses(parts: list[tuple[Any, Any]], order: Any) -> Any:
    """Enclose D_a of a mixture of N(μ_i, 1) with weights w_i against N(0, 1); None unless narrow.

    The (w_i, μ_i) are in the order of the means, the largest of which dominates.
    """
    if order <= 1:
        return None
    a, (weight, largest) = mp.mpf(order), parts[-1]
    share = (a - 1) * mp.mpf(largest) ** 2 / 2  # ln M / a of the largest mean
    others = (w * mp.exp((a - 1) * mp.mpf(mean) ** 2 / 2 - share) for w, mean in parts[:-1])
    least, excess = a * (share + mp.log(weight)), a * mp.log1p(mp.fsum(others) / weight)
    if not excess < least * mp.mpf(10) ** -_NARROW_DIGITS:
        return None
    slack = least * mp.mpf(10) ** (5 - mp.dps)  # of rounding
    return iv.mpf([least - slack, least + excess + slack]) / iv.mpf(a - 1)


def _mean(pair: dict[str, Any], value: Callable[[Any], Any], spread: Any) -> Any:
    """Return E_B of a value of the loss, e^{spread·(1 + |loss|)} being a bound of it.

    The tails that a sum leaves out are below the working precision of what it has.
    """
    if pair["law"] == "laplace":
        t = mp.mpf(pair["distance"])
        panels = int((2 * spread + 1) * t / _PANEL) + 1
        if panels > _MOST_PANELS:
            raise UnknownError("a Rényi divergence of a sample of so large an order")
        ends = (value(-t) + value(t) * mp.exp(-t)) / 2
        edges = mp.linspace(0, t, panels + 1)
        inside, error = mp.quad(
            lambda x: value(2 * x - t) * mp.exp(-x) / 2,
            edges,
            error=True,
            method="gauss-legendre",
        )
        if error > mp.mpf(10) ** (10 - mp.dps) * (abs(inside) + abs(ends)):
            raise UnknownError("a Rényi divergence of a sample whose integral does not settle")
        return ends + inside
    v, s = mp.mpf(pair["parameter"]), int(pair["shift"])
    reach = mp.sqrt(2 * v * ((mp.dps + 10) * mp.ln10 + 4 * spread)) + 2 * s
    last = int(mp.ceil(reach + spread * s))
    if last + reach > _MOST_TERMS:
        raise UnknownError("a Rényi divergence of a sample of so large an order")
    terms = (
        mp.exp(-mp.mpf(z * z) / (2 * v)) * value(mp.mpf(2 * z * s - s * s) / (2 * v))
        for z in range(-int(reach) - 1, last + 1)
    )
    return mp.fsum(terms) / theta(v)

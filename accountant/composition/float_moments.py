"""Bounds of real moments of Gaussian mixtures in floats, with all errors.

Λ(s) = ∫ φ w^s dx, w = 1 − q + q e^{μx − μ²/2}, is taken by the trapezoidal rule with step η. At
the height y < π/μ above the real axis the two terms of w are vectors at an angle θ = μy < π, so
that cos(θ/2) w(x) ≤ |w(x + iy)| ≤ w(x), and

    |φ w^s| at x + iy ≤ G φ(x) w(x)^s,   G = e^{y²/2} for s ≥ 0,   e^{y²/2} cos(θ/2)^s for s < 0:

the rule is wrong by at most 2GΛ(s)/(e^{2πy/η} − 1) (Trefethen and Weideman 2014, Theorem 5.1).
Nodes that are left out decay geometrically (`saddle_bounds.Mixture.rates`).

*Rounding*, u = 2^−53. The numbers of the mixture and b = ln(q e^{μx − μ²/2}) are wrong by at most
8u(1 + |ln q| + |μx| + μ²/2) = 8uB; ln w = ln(1 − q) + ln(1 + odds) takes over the share p of that
and 8u of its own two terms, of which the second is at most 2p(1 + B). A logarithm of a term is
wrong by |s| times as much and by 8u(1 + x² + |s ln w|): together by less than 64u(1 + x² +
|s|(|ln(1 − q)| + p(1 + B))). The logarithm of the sum is wrong by the mean of that, weighted with
the terms, which is doubled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from accountant.composition.saddle_cells import HALF_LOG_2PI
from accountant.errors import UndecidedError

if TYPE_CHECKING:
    from accountant.composition.saddle_bounds import Mixture

_FALL = 38.0
"""−ln of the relative error of the rule that is aimed at."""
_BEYOND = 8.0
_HIGHEST = 0.9
"""The largest height, as a part of π/μ."""
_MOST_NODES = 1 << 14
_ROUNDING = 2.0**-47
_SMALL = 1e-3


def log_moment(floats: Mixture, s: float) -> tuple[float, float] | None:
    """Return bounds of ln Λ(s) for a law that is not cut, None where floats do not do."""
    if floats.is_cut:
        return None
    height, log_growth = _height(floats.mu, s)
    step = 2 * math.pi * height / (_FALL + log_growth)
    step = 2.0 ** math.floor(math.log2(step))  # so that nodes are not rounded
    try:
        low, high = floats.reach(s, 0.0, 0.0, _FALL + _BEYOND)
    except UndecidedError:
        return None
    first, last = math.floor(low / step), math.ceil(high / step)
    rates = floats.rates(first * step, last * step, s, 0.0)
    if last - first > _MOST_NODES or min(rates) <= 0:
        return None
    x = np.arange(float(first), last + 1.0) * step
    loss, share = floats.log_density(x), floats.share(x)
    log_odds = abs(floats.log_share) + floats.mu * np.abs(x) + 0.5 * floats.mu * floats.mu
    wrong = 1 + x * x + abs(s) * (abs(floats.log_rest) + share * (2 + log_odds))
    logs = s * loss - 0.5 * x * x
    top = float(logs.max())
    if not _ROUNDING * float(wrong.max()) < _SMALL:
        return None
    terms = np.exp(logs - top)
    total = math.fsum(terms)
    beyond = terms[0] / math.expm1(rates[0] * step) + terms[-1] / math.expm1(rates[1] * step)
    error = 2 * math.exp(log_growth) / math.expm1(2 * math.pi * height / step)
    found = top + math.log(total * step) - HALF_LOG_2PI
    slack = 2 * _ROUNDING * (float(terms @ wrong) / total + abs(top))
    return found - error - slack, found + 2 * error + float(beyond) / total + slack


def _height(mu: float, s: float) -> tuple[float, float]:
    """Return a height of about the largest step, and ln G there."""
    most = _HIGHEST * math.pi / mu
    if s >= 0:
        y = min(math.sqrt(2 * _FALL), most)
        return y, 0.5 * y * y
    y = min(math.sqrt(2 * _FALL / (1 - 0.25 * s * mu * mu)), most)
    return y, 0.5 * y * y + s * math.log(math.cos(0.5 * mu * y))

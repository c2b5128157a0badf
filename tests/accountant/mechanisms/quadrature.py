"""Divergences of a pair by its second route, in mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
from mpmath import mp, mpf

from dpassay.accountant.core.pair import Pair
from dpassay.accountant.numbers.exact import exact
from tests.accountant.composition.mpmath_route import by_mpmath


def divergence(pair: Pair, order: str) -> float:
    """Integrate or sum D_a, a ≥ 1."""
    reference = by_mpmath(pair)
    if order != "1":
        return float(reference.renyi(exact(order), 30))

    def loss(p: Any, q: Any) -> Any:
        return p * mp.log(p / q) if p else mpf(0)

    with mpmath.workdps(45):
        return float(reference.integrate(loss, None))

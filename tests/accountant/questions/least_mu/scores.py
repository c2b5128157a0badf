"""Normal scores in mpmath, for the tests."""

from __future__ import annotations

from typing import Any

from mpmath import mp


def score(tail: Any) -> Any:
    """Return t with P(N(0, 1) > t) = tail, by Newton's method for the logarithm."""
    if tail > mp.mpf(1) / 2:
        return -score(1 - tail)
    t = mp.sqrt(-2 * mp.log(tail))
    for _ in range(60):
        own = mp.ncdf(-t)
        step = mp.log(own / tail) * own / mp.npdf(t)
        t += step
        if abs(step) < mp.mpf(10) ** (8 - mp.dps) * (1 + abs(t)):
            return t
    raise AssertionError("Newton's method did not settle")

r"""Guesses of one run against a whole curve: a bound that uses another point of it at every count.

The notation is that of `statistics.one_run_bound`; p_k = P(V = k). Averaged over coins and
canaries, P(V = k, canary i is guessed right) = (k/m) p_k. Take the event that i is guessed right
and at least j guesses are. With the coin of i flipped the same outputs guess i wrong, and have one
right guess less, so that (ε, δ)-DP in both orders says for every j ≥ 1

    R_j ≤ e^ε H_{j−1} + δ,    R_j = Σ_{k ≥ j} (k/m) p_k,    H_j = Σ_{k ≥ j} ((r − k)/m) p_k.   (1)

(These are the constraints of Mahloujifar, Melis and Chaudhuri, "Auditing f-differential privacy in
one run", 2024.) Let the curve give a point (ε_j, δ_j) for each j from j₀ to v, put λ_j ≥ 0 on that
inequality and ν > 0 on Σ p_k = 1. With A_k the sum of λ_j over j ≤ k and B_k that of e^{ε_j} λ_j
over j ≤ k + 1, if for every k

    1[k ≥ v] ≤ ν + (k/m) A_k − ((r − k)/m) B_k,                                             (2)

then multiplying by p_k and adding up gives P(V ≥ v) ≤ ν + Σ λ_j δ_j (weak duality). Equality in (2)
for k from j₀ − 1 to v − 1 determines every λ from ν; below both sums are 0; beyond v the right side
grows with k, so that equality at v fixes ν. In terms of

    X_k = m ν + r A_{k−1} + k (r − k + 1) λ_k,

λ_{j₀} = e^{−ε} mν/(r − j₀ + 1), λ_{k+1} = e^{−ε} X_k/((r − k)(r − k + 1)), 1 = X_v/(m(r − v + 1)):
nothing negative occurs, and rounding stays relative. So

    P(V ≥ v) ≤ min(1, (1 + Σ λ_j δ_j) m (r − v + 1)/X_v)    at ν = 1.                          (3)

Any points of the curve make (3) true. Good ones are those at which the inequalities bind when
P(V ≥ v) is the level: there H_{j−1} is the largest (R_j − δ)/e^ε along the curve, and p_{j−1}
follows from H_{j−1} − H_j.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

_MOST_STEPS = 1000
"""Inequalities that are used: those of far smaller counts add next to nothing."""
_LEVELS = 8
"""Levels that are tried: each is the bound that the one before gave."""
_LARGE = 1e200
"""Where multipliers are scaled down, lest they overflow."""
_ROUNDING = 1e-9
"""Relative, of sums and products of some thousand positive numbers."""


@final
class BothOrders(NamedTuple):
    """Points (ε, δ) of a claim; the second half are those of the first in the other order."""

    epsilons: Floats
    deltas: Floats

    @staticmethod
    def of(epsilons: Floats, deltas: Floats) -> BothOrders:
        """Return points with what they imply in the other order: (−ε, 1 − e^{−ε}(1 − δ))."""
        other = -np.expm1(-epsilons) + np.exp(-epsilons) * deltas
        return BothOrders(
            np.append(epsilons, -epsilons), np.append(deltas, other * (1 + _ROUNDING))
        )


def curve_bound(
    right: int, guesses: int, canaries: int, curve: BothOrders, level: float
) -> tuple[float, list[int]]:
    """Return (3) rounded up, least near a level, and its points for j = v, v − 1, …"""
    best: tuple[float, list[int]] = 1.0, []
    for _ in range(_LEVELS):
        points = binding(right, guesses, canaries, curve, level)
        found = bound(right, guesses, canaries, curve, points)
        if found >= best[0]:
            break
        best, level = (found, points), found
    return best


def binding(right: int, guesses: int, canaries: int, curve: BothOrders, level: float) -> list[int]:
    """Return the points of a curve that bind at a level: for the counts j = v, v − 1, …"""
    factors, deltas, r = np.exp(-curve.epsilons), curve.deltas, guesses
    likely, unlikely = level * right / canaries, level * (r - right) / canaries
    found: list[int] = []
    for i in range(right - 1, max(-1, right - 1 - _MOST_STEPS), -1):
        needed = (likely - deltas) * factors
        place = int(needed.argmax())
        if not unlikely < needed[place] <= 1:
            break
        found.append(place)
        likely += i / (r - i) * (needed[place] - unlikely)
        unlikely = float(needed[place])
    return found


def bound(right: int, guesses: int, canaries: int, curve: BothOrders, points: list[int]) -> float:
    """Return (3) for points of a curve, those of j = v, v − 1, …, rounded up."""
    if not points:
        return 1.0
    m, r = float(canaries), guesses
    nu, total, paid, x = 1.0, 0.0, 0.0, 0.0
    for j, place in enumerate(reversed(points), right - len(points) + 1):
        share = x / ((r - j + 1) * (r - j + 2)) if x else m * nu / (r - j + 1)
        weight = float(np.exp(-curve.epsilons[place])) * share
        x = m * nu + r * total + j * (r - j + 1) * weight
        total, paid = total + weight, paid + weight * float(curve.deltas[place])
        if x > _LARGE:
            nu, total, paid, x = nu / _LARGE, total / _LARGE, paid / _LARGE, x / _LARGE
    return min(1.0, (nu + paid) * m * (r - right + 1) / x * (1 + _ROUNDING))

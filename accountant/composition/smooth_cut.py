"""A smooth end of a mixture of normal laws on the right: its bounds, and what it takes away.

φχ takes the place of the normal density φ, χ(x) = erfc((x − x_c)/(τ√2))/2, 0 < τ ≤ 1.

- On the line Im s = v the size of e^{−s²} is e^{v² − (Re s)²}, hence
  |erfc(u + iv)| ≤ e^{v²} erfc(u) and |χ(x + iy)| ≤ e^{y²/2τ²} χ(x).
- To the right of x_c, χ(x) ≤ e^{−(x − x_c)²/2τ²}/2: so e^{kx − x²/2} χ(x) ≤ e^{E − Λ(x − m)²/2}/2
  with Λ = 1 + 1/τ², m = (k + x_c/τ²)/Λ and E = Λm²/2 − x_c²/2τ².
- With Z standard normal, what is taken away are the outcomes with x + τZ > x_c: from N(a, 1) the
  mass P(Z > (x_c − a)/√(1 + τ²)).
- Of N(b, 1) those of them with x < t have, if t > b and x_c − b > (1 + τ²)(t − b), at most
  P(Z > √((t − b)² + (x_c − t)²/τ²)): the nearest point to b of a quadrant, a convex set, is its
  corner, so that it lies in a half-plane at this distance.
- Of N(a, 1) those that are left, x + τZ ≤ x_c, with x > t ≥ x_c have for the same reason at most
  P(Z > √((t − a)² + (t − x_c)²/τ²)), if t ≥ a or (a − t)τ² ≤ t − x_c; else, as all of them do, at
  most P(Z > (a − x_c)/√(1 + τ²)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from flint import arb

from accountant.composition.saddle_cells import log_half_erfc

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
@dataclass(frozen=True)
class SmoothCut:
    """χ, its x_c and τ exact floats."""

    at: float
    width: float

    def kept(self, x: arb) -> arb:
        """Return χ at a real point."""
        return ((x - self.at) / (arb(self.width) * arb(2).sqrt())).erfc() / 2

    def log_kept(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return ln χ in floats, rounded up but for 1e−12 of itself."""
        scaled = (x - self.at) / (self.width * math.sqrt(2))
        return log_half_erfc(scaled, np.zeros_like(scaled))

    def log_most(self, x: NDArray[Any], y: NDArray[Any], *, above: bool = False) -> NDArray[Any]:
        """Return ln|χ(x + iy)|, or ln|1 − χ(x + iy)|, in floats, rounded up as well."""
        scale = self.width * math.sqrt(2) * (-1 if above else 1)
        return log_half_erfc((x - self.at) / scale, y / scale)

    def growth(self, y: arb) -> arb:
        """Return ln of the largest |χ(x + iy)|/χ(x)."""
        return (y / self.width) ** 2 / 2

    def tail(self, k: arb) -> tuple[arb, arb, arb]:
        """Return E − ln 2, m and Λ."""
        square = arb(self.width) ** 2
        steep = 1 + 1 / square
        middle = (k + self.at / square) / steep
        peak = steep * middle * middle / 2 - arb(self.at) ** 2 / (2 * square)
        return peak - arb(2).log(), middle, steep

    def taken(self, parts: Sequence[tuple[arb, arb]]) -> arb:
        """Return the mass that is taken from a mixture of weights and means."""
        scale = (2 * (1 + arb(self.width) ** 2)).sqrt()
        terms = (weight * ((self.at - mean) / scale).erfc() / 2 for weight, mean in parts)
        return sum(terms, start=arb(0))

    def taken_below(self, t: float, parts: Sequence[tuple[arb, arb]]) -> arb:
        """Return a bound of the mass below t that is taken from a mixture."""
        total, square = arb(0), arb(self.width) ** 2
        for weight, mean in parts:
            near, far = t - mean, self.at - mean
            if not (near > 0 and far > (1 + square) * near):
                return arb(1)
            distance = (near * near + (far - near) ** 2 / square).sqrt()
            total += weight * (distance / arb(2).sqrt()).erfc() / 2
        return total.upper()

    def left_above(self, t: float, parts: Sequence[tuple[arb, arb]]) -> arb:
        """Return a bound of the mass above t that is left of a mixture, t ≥ x_c."""
        total, square = arb(0), arb(self.width) ** 2
        for weight, mean in parts:
            near, far = t - mean, t - arb(self.at)
            if near >= 0 or -near * square <= far:
                distance = (near * near + far * far / square).sqrt()
            else:
                distance = (mean - self.at).max(arb(0)) / (1 + square).sqrt()
            total += weight * (distance / arb(2).sqrt()).erfc() / 2
        return total.upper()

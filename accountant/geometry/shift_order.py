"""The order of shifts: δ grows with every size, and when sizes move apart.

Let t_1, …, t_d ≥ 0 be the shifts in units of the scale. In the notation of
`accountant.composition.exact.laplace_product_sums`, P = e^{l/2} m and Q = e^{−l/2} m for a measure
m whose Laplace transform is the product of e^{−t/2}(cosh ts + sinh(ts)/(2s)) over the coordinates,
and

    δ(ε) = e^{ε/2} (1/2πi) ∫ e^{−sε} m̂(s)/(s² − ¼) ds.

The derivative of a factor by its t is e^{−t/2} (s² − ¼) sinh(ts)/s: the kernel cancels. What is
left, sinh(ts)/s, is the transform of ½ on (−t, t). With m₋ᵢ the measure of the other coordinates,

    ∂δ/∂t_i = ½ e^{(ε−t_i)/2} m₋ᵢ(ε − t_i, ε + t_i) ≥ 0.

*Sizes that move apart.* For a = t_i ≥ b = t_j the difference of the two derivatives is made of
sinh(as) cosh(bs)/s − sinh(bs) cosh(as)/s = sinh((a − b)s)/s and the other coordinates, so that

    ∂δ/∂t_i − ∂δ/∂t_j = ½ e^{(ε−a−b)/2} m₋ᵢⱼ(ε − (a − b), ε + (a − b)) ≥ 0.

(Where m has an atom at an end of a window, these hold for almost every size, and δ, which is
Lipschitz, is their integral.) So δ is increasing and Schur-convex: if the k largest of t add up to
no more than the k largest of u, for every k, then δ(t) ≤ δ(u) at every ε ≥ 0 (Marshall, Olkin and
Arnold, Inequalities, 3.A.8).

*The majorant.* Let ‖t‖₁ ≤ T₁ and ‖t‖₂ ≤ T₂, T₂ ≤ T₁. The k largest of t add up to at most
min(√k T₂, T₁), by the Cauchy–Schwarz inequality. The vector whose partial sums are these numbers
has κ = (T₁/T₂)² coordinates, rounded up, and a δ that no shift exceeds, though its own ℓ2 norm is
above T₂. One coordinate of size T₁ is a cruder one.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

from accountant.composition.exact.laplace_product import of_distances
from accountant.composition.product import Product
from accountant.numbers.exact import ExactReal

_GRID = 10**6
"""Parts of T₂ to which partial sums are rounded up: δ grows by about a millionth."""


def majorant(second: ExactReal, kappa: Fraction) -> Product:
    """Return the pair whose δ(ε) no shift with ‖t‖₂ ≤ T₂ and ‖t‖₁ ≤ √κ T₂ exceeds.

    Its partial sums are √min(k, κ) T₂, each rounded up to a millionth of T₂.
    """
    whole = range(1, math.ceil(kappa) + 1)
    sums = [_root_up(min(Fraction(k), kappa) * _GRID**2) for k in whole]
    sizes = [high - low for low, high in pairwise([0, *sums])]
    unit = second / ExactReal.of_rational(_GRID)
    return of_distances([ExactReal.of_rational(size) * unit for size in sizes])


def _root_up(square: Fraction) -> int:
    """Return the least integer that is at least the root."""
    whole = math.ceil(square)
    root = math.isqrt(whole)
    return root if root * root == whole else root + 1

"""The least μ of discrete Gaussian noise, in closed form: what the half-line in the middle needs.

Z has the masses p(z) ∝ e^{−z²/2v}, and T(k) = P(Z ≥ k) = Φ̄(t(k)). Moved by s, the test {Z ≥ k}
needs μ_k = t(k) − t(k − s). No other test needs more than all of these: between them the power is
piecewise linear in the level, and Φ(μ − z_α) is concave. μ_k is the sum of d(j) = t(j + 1) − t(j)
over k − s ≤ j < k. As t(1 − k) = −t(k), d(−j) = d(j). *The d(j) fall from j = 0 on*, so that the
sum is largest in the middle, at k = ⌊s/2⌋ + 1.

*Proof.* Let k ≥ 1 be the least one with d(k) > d(k − 1) =: b. Let ℓ be the straight line through
t(k − 1) and t(k), and q(j) = Φ̄(ℓ(j)) − Φ̄(ℓ(j + 1)), for real j. T and Φ̄(ℓ) agree at k − 1 and k,
and T is less at k + 1. So r = ln q/p is 0 at k − 1, r < 0 at k, r > 0 at some j > k; and p and q
have the same sum over j < k − 1. With V the variance of u under e^{−ℓ(j)u − u²/2} on [0, b],

    q = ∫ φ(ℓ(j) + u) du over [0, b],   r″ = 1/v − b²(1 − V).

V falls on both sides of the place where ℓ(j) = −b/2, to 0 (below). If r″ > 0 everywhere, r is
convex, and so positive on all j < k − 1: the sums differ. Else r tends to −∞ on both sides, and r″
changes its sign at most twice, so that r has at most four zeros. r < 0 far to the left, and as the
sums are equal, r > 0 at some j < k − 1. With the zero at k − 1, r(k) < 0, r > 0 beyond and r < 0
far out these are four; so none lies between that j and k − 1, and r(k − 2) > 0. Then Φ̄(ℓ) > T at
k − 2, t(k − 2) > ℓ(k − 2), and d(k − 2) < b = d(k − 1). For k ≥ 2 that is so for no k less than
the least; for k = 1 d(−1) = d(1) > b.

*V.* About the middle, w = u − b/2 has the density e^{−mw − w²/2} on [−b/2, b/2], and dV/dm = −κ₃.
Let S = w + w′ and D = w − w′ for two of these, so that 2κ₃ = Cov(D², S). Given S, D has the density
e^{−D²/4} on |D| ≤ b − |S|, so that E D² falls as |S| grows; given |S|, S has the mean
−|S| tanh(m|S|), which falls too, for m > 0. So κ₃ ≥ 0 (Chebyshev), and V falls as m grows from 0.

*Sums.* The law of a sum of n such variables is that of one with the parameter nv but for factors in
e^{±κ} (`dpassay.accountant.pairs.discrete_gaussian_product`). On both tails these move a score by
at most κ/λ(−κ) ≤ 3κ/2 where κ ≤ 1/10, λ = φ/Φ̄, so that μ changes by at most 3κ.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import upper_tail
from dpassay.accountant.pairs.discrete_gaussian_product import log_spread
from dpassay.accountant.questions.least_mu.curve import score

_NEAREST = Fraction(1, 10)
"""The largest logarithm of a factor of probabilities that is allowed for."""


def of_sum(parameter: ExactReal, shift: int, count: int, width: Fraction) -> arb | None:
    """Enclose that of the sum of `count` such variables, each of them moved; None where v is small.

    To a relative width.
    """
    spread = log_spread(parameter, count)
    if not spread <= ball(_NEAREST):
        return None
    found = least_mu(ExactReal.of_rational(count) * parameter, count * shift)
    if not 3 * spread <= found * ball(width) / 8:
        return None
    return found + arb(0, (3 * spread).upper())


def least_mu(parameter: ExactReal, shift: int) -> arb:
    """Return the least μ of noise with a parameter v, moved by a shift."""
    first = shift // 2 + 1
    # scores in the middle of much noise are about 1/√v
    with ctx.workprec(ctx.prec + math.floor(parameter).bit_length()):
        found = score(upper_tail(parameter, first)) + score(
            upper_tail(parameter, shift + 1 - first)
        )
    return +found

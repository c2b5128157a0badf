"""The square root of prefix sums with columns of nearly one length, and what it costs.

M is lower triangular and Toeplitz with the entries f_j = C(2j, j)/4ʲ, and M² = A. Its column t,
from 0, has the squared length S_{n−t}, S_m = Σ_{j<m} f_j². All could be as long as the first: that
costs no privacy with Gaussian noise. With the whole numbers w_t = ⌈256 √(S_{n−t}/S_n)⌉ and
W = diag(w_t/256)

    R = M W⁻¹,    L = A W M⁻¹,    L R = A,

and w_0 = 256: no column of R is longer than the first. It is the longest in the ℓ1 norm too: with
F_m = Σ_{j<m} f_j = 2m f_m, (F_{m+1}/F_m)² = (1 + 1/2m)² > 1 + 1/m ≥ 1 + f_m²/S_m = S_{m+1}/S_m, as
f falls, so that F_m/F_n ≤ √(S_m/S_n).

y = M z = A (M⁻¹z) are the prefix sums of M⁻¹z, so that summation by parts gives

    (L z)_i = (w_i y_i + Σ_{t<i} (w_t − w_{t+1}) y_t)/256,

where no coefficient is negative, and all add up to w_0.

Henzinger, Kalinin and Upadhyay, "Normalized Square Root" (2025), without the rounding of w.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from itertools import accumulate

import numpy as np
from flint import arb

from dpassay.accountant.numbers.landau import coefficients, landau
from dpassay.accountant.numbers.precision import ctx

LEVEL_BITS = 8
"""Of a weight, as below."""
LEVELS = 1 << LEVEL_BITS
"""Of the weights: the error is within 0.4 % of that without rounding from 10³ to 10⁵ steps, where a
hundred different weights make `row_units` quick."""
_NEAR = 1e-6
"""Of 256 √(S_m/S_n) to a whole number: doubles decide the rest, with errors below 1e-7."""
_DECIDING = 256
"""Bits for those that are near."""


@functools.lru_cache(maxsize=16)
def weights(steps: int) -> tuple[int, ...]:
    """Return w_0, …, w_{n−1}, from 256 downwards."""
    j = np.arange(1, steps)
    entries = np.cumprod(np.concatenate([[1.0], (2 * j - 1) / (2 * j)]))
    lengths = np.cumsum(entries * entries)
    roots = LEVELS * np.sqrt(lengths[::-1] / lengths[-1])
    found = np.ceil(roots).astype(np.int64)
    near = np.flatnonzero(np.abs(roots - np.round(roots)) < _NEAR)
    for t in near[near > 0].tolist():
        found[t] = _rounded_up(steps - t, steps, round(roots[t]))
    found[0] = LEVELS
    return tuple(found.tolist())


def _rounded_up(m: int, n: int, w: int) -> int:
    """Return w if w²S_n ≥ 256²S_m, and w + 1 else."""
    with ctx.workprec(_DECIDING):
        return w if landau(n) * (w * w) >= landau(m) * (LEVELS * LEVELS) else w + 1


def rows(steps: int) -> list[list[Fraction]]:
    """Return L, exactly."""
    f, w = coefficients(steps), weights(steps)
    before, found = [Fraction(0)] * steps, []
    for i in range(steps):
        column = f[i::-1]
        found.append([Fraction(w[i], LEVELS) * c + b for c, b in zip(column, before, strict=False)])
        found[-1] += [Fraction(0)] * (steps - i - 1)
        step = Fraction(w[i] - w[i + 1], LEVELS) if i + 1 < steps else Fraction(0)
        if step:
            before = [b + step * c for b, c in zip(before, column, strict=False)] + before[i + 1 :]
    return found


def row_units(steps: int) -> list[arb]:
    """Return the squared norm of every row of L, at flint's precision.

    That is the variance of (w_i y_i + Σ_{t<i} (w_t − w_{t+1}) y_t)/256 for unit z, with the
    covariances c(t, d) = Σ_{l≤t} f_l f_{l+d} of y_t and y_{t+d}. As l f_l = (l − ½) f_{l−1},

        Σ l f_l f_{l+d} = Σ (l + ½) f_l f_{l+d+1} − (t + ½) f_t f_{t+d+1},
        Σ (l + d + 1) f_l f_{l+d+1} = Σ (l + d + ½) f_l f_{l+d},

    which add up to c(t, d + 1) = c(t, d) − (t + ½) f_t f_{t+d+1}/(d + ½). Most weights fall near
    the end, so that few covariances are needed.
    """
    entries, entry = [arb(1)], arb(1)
    for j in range(1, steps):
        entry = entry * (2 * j - 1) / (2 * j)
        entries.append(entry)
    lengths = list(accumulate(f * f for f in entries))
    inverses = [2 / arb(2 * d - 1) for d in range(1, steps)]
    w = weights(steps)
    before, sums = arb(0), [arb(0)] * steps
    """The variance of Σ_{t<i} (w_t − w_{t+1}) y_t, and its covariance with each y_i."""
    found = []
    for i in range(steps):
        found.append((w[i] * w[i] * lengths[i] + 2 * w[i] * sums[i] + before) / LEVELS**2)
        fall = w[i] - w[i + 1] if i + 1 < steps else 0
        if fall:
            before = before + fall * fall * lengths[i] + 2 * fall * sums[i]
            covariance, factor = fall * lengths[i], fall * (i + arb(0.5)) * entries[i]
            for later in range(i + 1, steps):
                covariance -= factor * entries[later] * inverses[later - i - 1]
                sums[later] += covariance
    return found

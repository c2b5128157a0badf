"""Mean squared errors of continual counting: trees of Laplace noise, and Gaussian factorisations.

The square-root factorisation A = M² of the lower-triangular ones has M Toeplitz with the entries
C(2j, j)/4ʲ. With S_m = Σ_{j<m} (C(2j, j)/4ʲ)² the largest column of M has norm² S_n, and output m
has variance σ²·S_n·S_m where σ is the deviation of a Gaussian mechanism of sensitivity 1, so

    MSE = σ² · S_n · (1/n) Σ_{m ≤ n} S_m.

Henzinger, Upadhyay and Upadhyay bound it by C²(1 + ln(4n/5)/π)², C = (2/ε)√(4/9 + ln(√(2/π)/δ)).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpassay.accountant.counting.tree import Digits, Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray


def tree_error(arity: int, steps: int, *, signed: bool) -> float:
    """Return the mean squared error of a k-ary tree, times ε²."""
    return float(Tree(arity, steps, Digits.SIGNED if signed else Digits.PLAIN).mean_squared_error())


def root_factor(steps: int) -> float:
    """Return S_n·(1/n) Σ_{m ≤ n} S_m, the error of the square-root factorisation over σ²."""
    sums, means = _root_sums(1 << max(0, steps - 1).bit_length())
    return float(sums[steps - 1] * means[steps - 1])


@lru_cache(maxsize=2)
def _root_sums(steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    j = np.arange(1, steps)
    entries = np.concatenate([[1.0], np.cumprod((2 * j - 1) / (2 * j))])
    sums = np.cumsum(entries**2)
    return sums, np.cumsum(sums) / np.arange(1, steps + 1)


def printed_threshold(steps: int, error: float) -> float:
    """Return ln(1/δ) for which the bound is a given error, times ε²."""
    square = error / (1 + math.log(4 * steps / 5) / math.pi) ** 2
    return square / 4 - 4 / 9 - math.log(math.sqrt(2 / math.pi))

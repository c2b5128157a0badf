"""The correlated noise C⁻¹Z of a strategy, step by step: C y = Z is solved by substitution."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dpassay.accountant.counting.strategies import Dense, Toeplitz

if TYPE_CHECKING:
    from numpy.typing import NDArray


def correlated(
    matrix: Toeplitz | Dense, sigma: float, shape: tuple[int, ...], rng: np.random.Generator
) -> Iterator[NDArray[Any]]:
    """Yield an array of a shape for each step: y_t = (Z_t − Σ_{s<t} C_ts y_s)/C_tt, in doubles.

    As many of the arrays before are kept as there are bands, less one. Of a tree it is the
    difference of two outputs.
    """
    if isinstance(matrix, Dense) and matrix.outputs is not None:
        drawn: dict[int, NDArray[Any]] = {}
        before = np.zeros(shape)
        for output in matrix.outputs:
            taken = [v for v, entry in enumerate(output) if entry]
            for v in taken:
                if v not in drawn:
                    drawn[v] = np.asarray(rng.normal(0.0, sigma, shape))
            total = np.sum([drawn[v] for v in taken], axis=0)
            yield total - before
            before = total
        return
    kept: deque[NDArray[Any]] = deque(maxlen=matrix.bands - 1)
    for row in matrix.floats():
        step = np.asarray(rng.normal(0.0, sigma, shape))
        if kept:
            step = step - np.tensordot(row[1 : len(kept) + 1], np.stack(kept), axes=1)
        step = step / row[0]
        kept.appendleft(step)
        yield step

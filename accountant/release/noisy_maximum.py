"""The place of the largest noisy score, exactly: no rounding changes a probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from accountant.numbers.precision import ctx
from accountant.release import lazy_reals
from accountant.release.lattice import input_error

if TYPE_CHECKING:
    from accountant.core.randomness import Randomness

_ROUNDING = 2.0**-50
"""More than what rounding a score and a sum to doubles takes of their sizes."""
_SPARE_BITS = 64
"""Of balls, beyond the digits that are drawn of a number."""


def place_of_largest(
    scores: Callable[[], Sequence[arb]], law: str, times: int, *, rng: Randomness
) -> NDArray[Any]:
    """Draw the place of the largest u_i + noise, so many times.

    Parameters
    ----------
    scores
        Returns the u_i in units of the noise, at flint's current precision.
    law
        "normal" or "laplace": N(0, 1), or the density e^{−|x|}/2.
    times, rng
        How many draws, and from which generator.
    """
    about = np.array([float(u.mid()) for u in scores()])
    shape = times, len(about)
    drawn = getattr(lazy_reals, law)(times * len(about), rng=rng)
    noise = drawn.floats().reshape(shape)
    values = noise + about
    off = input_error(noise) + _ROUNDING * (np.abs(about) + np.abs(noise))
    best: NDArray[Any] = values.argmax(axis=1)
    sure = np.take_along_axis(values - off, best[:, np.newaxis], axis=1)
    for row in np.flatnonzero(((values + off) >= sure).sum(axis=1) > 1):
        rivals = np.flatnonzero(values[row] + off[row] >= sure[row])
        best[row] = _largest(scores, drawn, int(row) * len(about), rivals.tolist(), rng)
    return best


def _largest(
    scores: Callable[[], Sequence[arb]],
    drawn: lazy_reals.LazyReals,
    start: int,
    rivals: list[int],
    rng: Randomness,
) -> int:
    """Draw further digits of the noise of rivals until one of them is the largest."""
    while len(rivals) > 1:
        places = max(drawn.digits(start + i)[1] for i in rivals)
        with ctx.workprec(2 * places + _SPARE_BITS):
            known = scores()
            sums = {i: known[i] + drawn.ball(start + i) for i in rivals}
        rivals = [i for i in rivals if not any(sums[i] < other for other in sums.values())]
        for i in rivals if len(rivals) > 1 else ():
            drawn.refine(start + i, rng=rng)
    return rivals[0]

"""One stream of the sparse vector technique, exactly: comparisons of lazy real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flint import arb

from accountant.core.randomness import Randomness
from accountant.numbers.precision import ctx
from accountant.release import lazy_reals

_SPARE_BITS = 64
"""Of balls, beyond the digits that are drawn of a number."""


def stream(
    answers: Sequence[Callable[[], arb]],
    scales: Callable[[], tuple[arb, arb]],
    count: int | None,
    *,
    fresh: bool,
    rng: Randomness,
) -> list[int]:
    """Return 1 where answer + r·noise ≥ s·noise of the threshold, 0 elsewhere, −1 after the end.

    Parameters
    ----------
    answers
        Each returns an answer less its threshold, at flint's current precision.
    scales
        Returns s and r.
    count
        After how many answers above the stream ends; None for never.
    fresh
        Whether the noise of the threshold is drawn anew after each answer above.
    rng
        Draws the noise.
    """
    threshold, found, above = lazy_reals.laplace(1, rng=rng), [], 0
    for answer in answers:
        if count is not None and above >= count:
            found.append(-1)
            continue
        noise = lazy_reals.laplace(1, rng=rng)
        while True:
            places = max(noise.digits(0)[1], threshold.digits(0)[1])
            with ctx.workprec(2 * places + _SPARE_BITS):
                s, r = scales()
                gap = answer() + r * noise.ball(0) - s * threshold.ball(0)
            if gap > 0 or gap < 0:
                break
            noise.refine(0, rng=rng)
            threshold.refine(0, rng=rng)
        found.append(int(gap > 0))
        above += found[-1]
        if fresh and found[-1]:
            threshold = lazy_reals.laplace(1, rng=rng)
    return found

"""Exact comparisons of noisy numbers: the largest of several, and which exceed a threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import input_error

_ROUNDING = 2.0**-50
"""Bound on the relative error of rounding a score, and a sum with it, to doubles."""
_SPARE_BITS = 64
"""Bits of precision of the balls beyond the digits drawn so far."""


def place_of_largest(
    scores: Callable[[], Sequence[arb]], law: str, times: int, *, rng: Randomness
) -> Array:
    """Draw the index of the largest u_i + noise_i, `times` times.

    Parameters
    ----------
    scores
        Returns the u_i in units of the noise, at flint's current precision.
    law
        "normal" or "laplace": N(0, 1), or the density e^{−|x|}/2.
    times, rng
        The number of draws, and the source of randomness.
    """
    about = np.array([float(u.mid()) for u in scores()])
    drawn = getattr(sampling, law)(times * len(about), rng=rng)
    noise = drawn.floats().reshape(times, len(about))
    values = noise + about
    off = input_error(noise) + _ROUNDING * (np.abs(about) + np.abs(noise))
    best: Array = values.argmax(axis=1)
    sure = (values - off)[np.arange(times), best][:, np.newaxis]
    for row in np.flatnonzero(((values + off) >= sure).sum(axis=1) > 1):
        rivals = np.flatnonzero(values[row] + off[row] >= sure[row])
        best[row] = _largest(scores, drawn, int(row) * len(about), rivals.tolist(), rng)
    return best


def _largest(
    scores: Callable[[], Sequence[arb]],
    drawn: sampling.LazyReals,
    start: int,
    rivals: list[int],
    rng: Randomness,
) -> int:
    """Draw further digits of the candidates' noise until one candidate is the largest."""
    while len(rivals) > 1:
        places = max(drawn.digits(start + i)[1] for i in rivals)
        with ctx.workprec(2 * places + _SPARE_BITS):
            known = scores()
            sums = {i: known[i] + drawn.ball(start + i) for i in rivals}
        rivals = [i for i in rivals if not any(sums[i] < other for other in sums.values())]
        for i in rivals if len(rivals) > 1 else ():
            drawn.refine(start + i, rng=rng)
    return rivals[0]


def stream(
    answers: Sequence[Callable[[], arb]],
    scales: Callable[[], tuple[arb, arb]],
    count: int | None,
    *,
    fresh: bool,
    rng: Randomness,
) -> list[int]:
    """Return for each answer 1 if answer + r·noise ≥ s·threshold noise, else 0; −1 after the end.

    Parameters
    ----------
    answers
        Each returns an answer minus its threshold, at flint's current precision.
    scales
        Returns s and r.
    count
        The stream ends after this many answers above the threshold; None for no end.
    fresh
        Whether the threshold's noise is drawn anew after each answer above it.
    rng
        The source of randomness.
    """
    draw = sampling.laplace
    threshold, found, above = draw(1, rng=rng), [], 0
    for answer in answers:
        if count is not None and above >= count:
            found.append(-1)
            continue
        noise = draw(1, rng=rng)
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
            threshold = draw(1, rng=rng)
    return found

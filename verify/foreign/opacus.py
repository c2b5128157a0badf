"""Histories of Opacus' accountants: (noise_multiplier, sample_rate, steps), one after another.

Each step is a Poisson sample with rate q of which a Gaussian release is made, whose ℓ2 norm per
record is clipped to 1 in units of the noise; neighbours are add/remove, as in Opacus.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.verifier.claims import Claim, guarantee
from dpassay.verifier.foreign.events import NOTHING, count, number, reported

_ENTRY = 3
"""Numbers of an entry of a history: σ, q and the steps."""


def mechanism_of(accountant: object) -> Mechanism:
    """Return the mechanism of an accountant, or of its history.

    Raises InvalidInputError for anything that is no list of triples.
    """
    history = getattr(accountant, "history", accountant)
    if not isinstance(history, Iterable) or isinstance(history, (str, bytes)):
        raise expected("history", history, "to be a list of (noise_multiplier, sample_rate, steps)")
    parts = [_steps(index, entry) for index, entry in enumerate(history)]
    parts = [part for part in parts if part != NOTHING]
    if len(parts) == 1:
        return parts[0]
    return Composed(tuple(parts)) if parts else NOTHING


def claim(
    accountant: object, delta: object, epsilon: object = None, *, name: str = "opacus"
) -> Claim:
    """Return the claim that what was run is (epsilon, delta)-DP.

    `epsilon` is what was reported; None asks the accountant itself.
    """
    value = reported(accountant, delta) if epsilon is None else epsilon
    eps, d = number("epsilon", value), number("delta", delta)
    return guarantee(
        {"epsilon": eps, "delta": d},
        id=name,
        source=type(accountant).__name__,
        statement=f"({eps}, {d})-DP, as reported.",
        mechanism=repr(mechanism_of(accountant)),
        adjacency=Adjacency.ADD_REMOVE.value,
    )


def _steps(index: int, entry: object) -> Mechanism:
    if not isinstance(entry, (tuple, list)) or len(entry) != _ENTRY:
        raise expected(f"history[{index}]", entry, "to be (noise_multiplier, sample_rate, steps)")
    noise, rate, steps = entry
    times = count(f"history[{index}] steps", steps)
    release: Mechanism = Gaussian(number("noise_multiplier", noise))
    q = number("sample_rate", rate)
    if q.rational != 1:
        release = PoissonSubsampled(release, q)
    if times == 0:
        return NOTHING
    return release if times == 1 else Composed(release, times)

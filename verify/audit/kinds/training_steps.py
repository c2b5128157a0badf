"""Sequential audits of one training run: a canary in a fair half of its steps, bets after each.

In every step a fair coin of its own decides whether a canary gradient goes into the batch, and a
score of the update says whether it seems to be in, such as its product with the canary's direction.
If every step, given all that was seen before it, satisfies the claim for batches that differ in the
canary, then guesses of the coins are bets as in `kinds.sequential`: the evidence is a
non-negative supermartingale whatever the canaries are and however the steps depend on each other,
so that training may be watched, and stopped, at any step. The claim is that of one step.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.verifier.audit.kinds.players import Learner
from dpassay.verifier.audit.kinds.rounds import KeptRounds
from dpassay.verifier.audit.kinds.samples import Named
from dpassay.verifier.audit.kinds.sequential import SequentialResult, played
from dpassay.verifier.audit.learning import features
from dpassay.verifier.audit.learning.outputs import Sides
from dpassay.verifier.audit.runs.plan import Plan
from dpassay.verifier.audit.statistics.guarantee import Claim, guarantee

_NAME = "one step of training"
_MOST = 1 << 40
"""Steps: no training has so many."""


def audit_training(
    steps: Iterable[tuple[float, bool]],
    claim: Claim,
    *,
    significance: float = 0.05,
) -> SequentialResult:
    """Audit the steps of one training run, until the claim is refuted or the steps end.

    Parameters
    ----------
    steps
        For each step the score of its update and whether its coin put the canary in, in their
        order. A generator that trains is read no further than a refutation needs.
    claim
        What each step satisfies: ε, (ε, δ), {"mu": 1/σ}, a mechanism or a profile.
    significance
        The largest probability with which private training is ever accused.

    Raises
    ------
    InvalidInputError
        For a score that is no finite number, a coin that is not true or false, or no step at all.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> coins = rng.random(4000) < 0.5
    >>> scores = coins + rng.normal(size=4000)  # the claim is twice the noise
    >>> found = audit_training(zip(scores, coins), {"mu": "0.5"})
    >>> found.outcome.value, found.samples < 2000
    ('REFUTED', True)
    """
    if not 0 < significance < 1:
        raise expected("significance", significance, "in (0, 1)")
    started = time.perf_counter()
    whole, pair = guarantee(claim), ("canary in", "canary out")
    plan = Plan(Named(_NAME), whole, (pair,), _MOST, significance, 0, None)
    numbered = enumerate(steps)
    player = Learner(plan, (features.plain,), lambda size: _read(numbered, size))
    found = played(plan, player, KeptRounds(None, "", 0), started)
    if not found.rounds:
        raise InvalidInputError("Expected at least one step with its coin.")
    return replace(found, notes=("the scores and coins of the steps were given",))


def _read(steps: Iterator[tuple[int, Any]], size: int) -> Sides:
    """Read so many numbered steps; return the scores with the canary and those without."""
    sides: tuple[list[float], list[float]] = ([], [])
    for number, step in itertools.islice(steps, size):
        try:
            score, coin = step
            value = float(score)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"Expected steps to be pairs (score, included): step {number} is {step!r}."
            ) from None
        if not math.isfinite(value) or coin not in (0, 1):
            raise InvalidInputError(
                f"Expected a finite score and a coin that is true or false: step {number} has "
                f"{value:g} and {coin!r}."
            )
        sides[0 if coin else 1].append(value)
    first, second = (np.array(side, np.float64)[:, np.newaxis] for side in sides)
    return first, second

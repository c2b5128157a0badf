"""Audits of outputs that are there already: rows of two files, or scores of a canary.

One part of the rows of either side, drawn by lot, chooses the event; the others test it, once. That
is the test of `kinds.auditor` with rows in place of fresh runs. It rests on the rows being
independent runs on the two datasets: copies are refused, and so is an order that tells the next row
from the one before.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.verifier.audit.kinds.result import AuditResult
from dpassay.verifier.audit.learning import features
from dpassay.verifier.audit.learning.features import Proposer
from dpassay.verifier.audit.learning.hedged import decide
from dpassay.verifier.audit.learning.learn import DEFAULT_PROPOSERS, choose
from dpassay.verifier.audit.learning.outputs import Matrix
from dpassay.verifier.audit.learning.wording import worded
from dpassay.verifier.audit.runs.blocks import generator
from dpassay.verifier.audit.runs.plan import Plan, oddities
from dpassay.verifier.audit.runs.rows import SCORES, matrices, real_numbers
from dpassay.verifier.audit.runs.target import GIVEN
from dpassay.verifier.audit.runs.training import training_runs
from dpassay.verifier.audit.statistics.exact_test import Design
from dpassay.verifier.audit.statistics.guarantee import Claim, guarantee

_SPLIT, _COINS = 901, 902
_SPARE = 7.5
"""Standard deviations of fair coins for which rows are kept: more fall out with chance 1e-13."""


def audit_samples(
    first: Any,
    second: Any,
    claim: Claim,
    *,
    significance: float = 0.05,
    seed: int | None = None,
    adjacency: Adjacency | str | None = None,
    names: tuple[str, str] = ("first", "second"),
    proposers: Sequence[Proposer] = DEFAULT_PROPOSERS,
) -> AuditResult:
    """Audit a claim on outputs of independent runs on two neighbouring datasets.

    Parameters
    ----------
    first, second
        The outputs on either dataset, one run a row: an array whose first axis counts the runs, or
        a list of outputs of any kind. Their numbers may differ.
    claim
        ε, (ε, δ), {"mu": μ}, a profile δ(·) or a mechanism whose profile is claimed.
    significance
        The largest probability with which a private mechanism is accused.
    seed
        Of the lots that decide which rows choose the event; None draws one and reports it.
    adjacency
        The relation of a claimed mechanism's profile, where it depends on it.
    names
        What the two sides are called in the report.
    proposers
        What events are looked for: by default also in the last bits of floats.

    Raises
    ------
    InvalidInputError
        For too few rows, rows of another kind or shape on the other side, rows that are all the
        same, copies, or rows that depend on their order.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> p, q = rng.laplace(1, 1, 5000), rng.laplace(0, 1, 5000)
    >>> audit_samples(p, q, "0.5", seed=1).outcome.value
    'REFUTED'
    """
    started = time.perf_counter()
    whole = guarantee(claim, adjacency=adjacency)
    if not 0 < significance < 1:
        raise expected("significance", significance, "in (0, 1)")
    sides, form = matrices(first, second, names)
    fixed = secrets.randbits(63) if seed is None else int(seed)
    least = min(map(len, sides))
    plan = Plan(Named(" and ".join(names)), whole, (names,), least, significance, fixed, None)
    plan.require_enough()
    training = training_runs(plan, sides[0].shape[1])
    mixed = [
        rows[generator(fixed, _SPLIT, i).permutation(len(rows))] for i, rows in enumerate(sides)
    ]
    learning, fresh = [rows[:training] for rows in mixed], [rows[training:] for rows in mixed]
    rule = choose(
        learning[0],
        learning[1],
        whole,
        runs=least - training,
        significance=significance,
        proposers=proposers,
        mixed=form.width is not None,
    )
    rule = worded(rule, (learning[0], learning[1]), form.width, form.names)
    if rule.design is Design.GUESSES:
        fresh = _by_coins(fresh, fixed)
    histogram = np.array([rule.histograms(rows) for rows in fresh])
    found = decide(rule, histogram, significance)
    notes = [GIVEN, *oddities(learning[0], learning[1], mixed=False)]
    return AuditResult.of(
        plan,
        found,
        training=training,
        samples=min(len(rows) for rows in fresh),
        seconds=time.perf_counter() - started,
        notes=tuple(notes),
    )


def audit_scores(
    included: Any,
    excluded: Any = None,
    claim: Claim | None = None,
    *,
    delta: float = 1e-5,
    significance: float = 0.05,
    seed: int | None = None,
) -> AuditResult:
    """Audit by the scores that one canary has in runs with it, and in runs without it.

    Each score is that of a run of its own; for many canaries in one run see `audit_one_run`. Events
    are scores beyond a threshold or between two.

    Parameters
    ----------
    included, excluded
        A number for each run with the canary, and for each run without it; or, as the one
        argument, a `CanaryScoreAuditor` of JAX-Privacy, whose scores are those of such runs.
    claim
        As for `audit_samples`; by default nothing is claimed but (0, δ)-DP, so that the result is
        the lower bound of ε at δ.
    delta
        δ at which ε is bounded where nothing is claimed.

    Other parameters, errors and the result are those of `audit_samples`.
    """
    if excluded is None:
        included, excluded = _of_auditor(included)
    scores = []
    for name, given in zip(SCORES, (included, excluded), strict=True):
        values = real_numbers(given, f"{name} to be numbers, one for each run")
        if values.ndim != 1:
            raise expected(name, values.shape, "to be a list of numbers")
        if np.isnan(values).any():
            raise InvalidInputError(
                f"{int(np.isnan(values).sum())} of {len(values)} scores of {name} are NaN. Give a "
                "run without a score a number of its own, such as -inf."
            )
        scores.append(values)
    return audit_samples(
        scores[0],
        scores[1],
        (0, str(delta)) if claim is None else claim,
        significance=significance,
        seed=seed,
        names=SCORES,
        proposers=(features.plain,),
    )


def _of_auditor(thing: Any) -> tuple[Any, Any]:
    """Return the scores that a `CanaryScoreAuditor` of JAX-Privacy keeps."""
    sides = [getattr(thing, f"_{side}_canary_scores", None) for side in ("in", "out")]
    if any(side is None for side in sides):
        raise InvalidInputError(
            "Expected audit_scores(included, excluded), the scores of runs with and without the "
            f"canary, or a CanaryScoreAuditor of JAX-Privacy, not {type(thing).__name__} alone."
        )
    return sides[0], sides[1]


class Named:
    """What stands in place of a mechanism: rows cannot be drawn again."""

    def __init__(self, name: str) -> None:
        self.name = name

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Raise: there is nothing to run."""
        raise InvalidInputError("The rows were given; there is nothing to run.")


def _by_coins(sides: list[Matrix], seed: int) -> list[Matrix]:
    """Return as many runs as fair coins give to each side, with room for their luck."""
    least = min(map(len, sides))
    root = (math.sqrt(_SPARE**2 + 8 * least) - _SPARE) / 2  # n/2 + s√n/2 ≤ least for √n up to it
    runs = max(2, int(root**2))
    heads = int(generator(seed, _COINS).binomial(runs, 0.5))
    heads = min(max(heads, runs - least), least)  # it is there already but with chance 1e-13
    return [sides[0][:heads], sides[1][: runs - heads]]

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
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.numbers.exact import Number
from dpassay.verifier.audit.kinds.result import AuditResult
from dpassay.verifier.audit.learning import features
from dpassay.verifier.audit.learning.learn import (
    VALUES,
    bits_of,
    choose,
    shares_of,
)
from dpassay.verifier.audit.learning.outputs import Matrix
from dpassay.verifier.audit.learning.rule import Ranked, Rule
from dpassay.verifier.audit.learning.rule import counted as cell_counts
from dpassay.verifier.audit.learning.wording import all_worded
from dpassay.verifier.audit.runs.blocks import generator
from dpassay.verifier.audit.runs.plan import Plan, oddities
from dpassay.verifier.audit.runs.rows import SCORES, matrices, real_numbers
from dpassay.verifier.audit.runs.target import GIVEN
from dpassay.verifier.audit.runs.training import training_runs
from dpassay.verifier.audit.statistics.exact_test import Design
from dpassay.verifier.audit.statistics.guarantee import Claim, guarantee

Array: TypeAlias = NDArray[Any]

_SPLIT, _COINS = 901, 902
_MOST_FOR_BITS, _LEAST_FOR_BITS, _ENTRIES_FOR_BITS = 40_000, 5_000, 1_000_000
"""Rows a side, and entries, that test last bits."""
_ENTRIES_AT_ONCE = 2_000_000
"""Numbers that are copied and scored in one go: 16 MB of doubles."""
_SPARE = 7.5
"""Standard deviations of fair coins for which rows are kept: more fall out with chance 1e-13."""


def audit_samples(
    first: Any,
    second: Any,
    claim: Claim | None = None,
    *,
    significance: float = 0.05,
    delta: Number = 0,
    bits: bool | None = None,
    seed: int | None = None,
    adjacency: Adjacency | str | None = None,
    names: tuple[str, str] = ("first", "second"),
) -> AuditResult:
    """Test a claim on outputs of independent runs on two neighbouring datasets.

    Parameters
    ----------
    first, second
        The outputs on either dataset, one run a row: an array whose first axis counts the runs, or
        a list of outputs of any kind. Their numbers may differ.
    claim
        ε, (ε, δ), {"mu": μ}, a profile δ(·) or a mechanism whose profile is claimed. None for an
        estimate: bounds of ε and of δ(ε).
    significance
        The largest probability with which a private mechanism is accused, of all bounds together.
    delta
        Where ε is bounded best, without a claim.
    bits
        Whether the last bits of floats are looked at, as for `audit`.
    seed
        Of the lots that decide which rows choose the event; None draws one and reports it.
    adjacency
        The relation of a claimed mechanism's profile, where it depends on it.
    names
        What the two sides are called in the report.

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
    whole = guarantee((0, delta) if claim is None else claim, adjacency=adjacency)
    if not 0 < significance < 1:
        raise expected("significance", significance, "in (0, 1)")
    sides, form = matrices(first, second, names)
    fixed = secrets.randbits(63) if seed is None else int(seed)
    least = min(map(len, sides))
    what = Named(" and ".join(names))
    claimed = claim is not None
    plan = Plan(what, whole, (names,), least, significance, fixed, None, claimed, bits)
    plan.require_enough()
    training = training_runs(plan, sides[0].shape[1])
    lots = [generator(fixed, _SPLIT, i).permutation(len(rows)) for i, rows in enumerate(sides)]
    learning = [rows[lot[:training]] for rows, lot in zip(sides, lots, strict=True)]
    fresh = [lot[training:] for lot in lots]
    rule = choose(
        learning[0],
        learning[1],
        whole,
        runs=least - training,
        significance=significance,
        values=(features.plain,) if names == SCORES else VALUES,
        bits=bits_of(bits),
        shares=shares_of(bits, claimed=claimed),
        mixed=form.width is not None,
    )
    rule = all_worded(rule, (learning[0], learning[1]), form.width, form.names)
    of_bits = [lot[: _most_for_bits(sides[0].shape[1])] for lot in fresh]
    parts = [(rule.values.rules, fresh), (() if rule.bits is None else (rule.bits,), of_bits)]
    histogram = np.hstack(
        [
            *(_counted(sides, tested, lots, fixed) for tested, lots in parts if tested),
            _counted(sides, (rule.ranked,), fresh, fixed),
        ]
    )
    odd = oddities(learning[0], learning[1], mixed=False, with_bits=bits is not False)
    notes = [GIVEN, *odd]
    if rule.bits is not None and len(of_bits[0]) < len(fresh[0]):
        notes.append(f"last bits were tested on {len(of_bits[0])} rows a side")
    return AuditResult.of(
        plan,
        rule,
        histogram,
        training=training,
        samples=int(histogram[:, : rule.values.partition.size].sum(axis=1).min()),
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
        As for `audit_samples`.
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
        claim,
        significance=significance,
        delta=str(delta),
        bits=False,
        seed=seed,
        names=SCORES,
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


def _most_for_bits(width: int) -> int:
    """Return how many rows a side test last bits: trees score them slowly, and leaks are gross."""
    return min(_MOST_FOR_BITS, max(_LEAST_FOR_BITS, _ENTRIES_FOR_BITS // max(1, width)))


def _counted(
    sides: Sequence[Matrix], counted: Sequence[Rule | Ranked], lots: Sequence[Array], seed: int
) -> Array:
    """Count the cells of some features on rows that are given by their numbers."""
    if any(isinstance(each, Rule) and each.design is Design.GUESSES for each in counted):
        lots = _by_coins(lots, seed)
    cells = [(each.feature, each.partition) for each in counted]
    chunk = max(1, _ENTRIES_AT_ONCE // max(1, sides[0].shape[1]))
    return np.array(
        [
            sum(
                cell_counts(cells, rows[lot[start : start + chunk]])
                for start in range(0, max(1, len(lot)), chunk)
            )
            for rows, lot in zip(sides, lots, strict=True)
        ]
    )


def _by_coins(sides: Sequence[Array], seed: int) -> list[Array]:
    """Return as many runs as fair coins give to each side, with room for their luck."""
    least = min(map(len, sides))
    root = (math.sqrt(_SPARE**2 + 8 * least) - _SPARE) / 2  # n/2 + s√n/2 ≤ least for √n up to it
    runs = max(2, int(root**2))
    heads = int(generator(seed, _COINS).binomial(runs, 0.5))
    heads = min(max(heads, runs - least), least)  # it is there already but with chance 1e-13
    return [sides[0][:heads], sides[1][: runs - heads]]

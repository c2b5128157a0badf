"""One-run audits: many canaries, each included by a fair coin of its own, one run.

An auditor who sees the output guesses some of the coins; more right guesses than a claim allows
refute it (`statistics.one_run_bound`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from dpassay.accountant.errors import InvalidInputError, NeitherTrueNorFalse, expected
from dpassay.accountant.numbers.halving import halved
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.kinds.result import COMPARE
from dpassay.verifier.audit.outcome import Outcome
from dpassay.verifier.audit.runs.rows import real_numbers
from dpassay.verifier.audit.statistics.exact_test import LARGEST_MU, least
from dpassay.verifier.audit.statistics.guarantee import Claim, Guarantee, epsilon_delta, guarantee
from dpassay.verifier.audit.statistics.one_run_bound import (
    LARGEST_EPSILON,
    Steps,
    bound_of_claim,
    least_bound,
    points_of,
    points_of_mu,
    tail_bound,
)

Floats: TypeAlias = NDArray[np.float64]
_MOST_CANARIES = 1 << 30
"""Where the search for a number of canaries ends: no run holds a billion."""
_FEWEST = 8
"""Guesses that are worth trying."""
_SHARES = (1, 2, 4, 16, 64)
"""The usual numbers of guesses are the canaries over these."""
_UNFAIR = 6.0
"""Standard deviations from half of the canaries that fair coins do not give (2e-9)."""
_NARROW = 1e-6
"""Relative width to which bounds of μ are searched."""


@final
@dataclass(frozen=True, repr=False, eq=False)
class Evidence:
    """What a certificate of one run holds besides the result."""

    scores: NDArray[Any]
    included: NDArray[np.bool_]
    seed: int
    guarantee: Guarantee | None
    tested: Steps
    """The points of the claim that the p-value rests on."""
    epsilon_guesses: int
    """The number of guesses that the bound of ε rests on."""


@final
@dataclass(frozen=True, repr=False)
class OneRunResult(NeitherTrueNorFalse):
    """What one run tells."""

    compare: ClassVar[str] = COMPARE
    outcome: Outcome | None
    """None where nothing was claimed."""
    claim: str
    canaries: int
    guesses: int
    """The number of guesses that tells most, of those that were tried."""
    right: int
    tried: tuple[int, ...]
    delta: float
    epsilon: float
    """Lower bound of ε at δ, at confidence 1 − significance."""
    mu: float
    """Lower bound of μ, at the same confidence."""
    p_value: float | None
    """Of the claim, times the numbers of guesses that were tried; None without a claim."""
    significance: float
    evidence: Evidence

    @property
    def refuted(self) -> bool:
        """Whether the claim was refuted."""
        return self.outcome is Outcome.REFUTED

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "schema_version": 1,
            "verdict": None if self.outcome is None else self.outcome.value,
            "claim": self.claim,
            "canaries": self.canaries,
            "guesses": self.guesses,
            "right": self.right,
            "guesses_tried": list(self.tried),
            "delta": self.delta,
            "epsilon_lower_bound": self.epsilon,
            "mu_lower_bound": self.mu,
            "p_value": self.p_value,
            "significance": self.significance,
        }

    def certificate(self) -> dict[str, Any]:
        """Return scores, coins and result as a certificate, for `dpassay check`.

        Raises InvalidInputError where nothing was claimed.
        """
        from dpassay.verifier.prover import audits

        return audits.one_run(self)

    def __str__(self) -> str:
        """Return the result in a few lines."""
        head = "" if self.outcome is None else f"{self.outcome.value}  {self.claim}\n"
        p_value = "" if self.p_value is None else f"  p-value      {few(self.p_value, 3)}\n"
        tried = ", ".join(map(str, self.tried))
        return (
            f"{head}  canaries     {self.canaries}, each included by a fair coin of its own\n"
            f"  guesses      {self.right} of {self.guesses} right (numbers tried: {tried})\n"
            f"{p_value}"
            f"  with confidence {1 - self.significance:.7g} each: epsilon({few(self.delta)}) ≥ "
            f"{self.epsilon:.6g}; mu ≥ {self.mu:.6g}"
        )

    __repr__ = __str__


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    claim: Claim | None = None,
    *,
    delta: float = 1e-5,
    guesses: int | Sequence[int] | None = None,
    significance: float = 0.05,
    seed: int = 0,
) -> OneRunResult:
    """Audit one run with canaries that fair coins included.

    Parameters
    ----------
    scores
        One number for each of m canaries, computed from the output alone: larger where the canary
        seems to be included.
    included
        Whether each was: m independent fair coins.
    claim
        ε, (ε, δ), {"mu": μ}, a mechanism or a profile, for neighbours that differ in one canary
        (added or removed); without one the result is the bounds alone.
    delta
        δ at which ε is bounded.
    guesses
        How many guesses are made: the largest half of them says "included", the least "excluded".
        Several numbers may be given, and pay for each other. By default m, m/2, m/4, m/16 and m/64.
    significance
        The largest probability with which a private mechanism is accused.
    seed
        Decides among canaries with the same score.

    Raises
    ------
    InvalidInputError
        For scores that are not finite or all equal, coins that are not fair, or too few canaries.

    Examples
    --------
    >>> coins = np.random.default_rng(1).random(1000) < 0.5
    >>> found = audit_one_run(np.where(coins, 3.0, 0.0), coins, 2)
    >>> found.outcome.value, round(found.epsilon, 2)
    ('REFUTED', 5.42)
    """
    values, coins = _read(scores, included)
    if not 0 < significance < 1:
        raise expected("significance", significance, "in (0, 1)")
    if not 0 <= delta < 1:
        raise expected("delta", delta, "in [0, 1)")
    m = len(values)
    numbers = _numbers(guesses, m)
    whole = None if claim is None else guarantee(claim)
    level = significance / len(numbers)
    _require_enough(whole, m, None if guesses is None else numbers, significance)
    right = {r: _right(values, coins, r, seed) for r in numbers}
    epsilons = {r: _epsilon(v, r, m, delta, level) for r, v in right.items()}
    mus = {r: _mu(v, r, m, level) for r, v in right.items()}
    best = max(numbers, key=lambda r: (epsilons[r], mus[r]))
    p_value, tested = None, []
    if whole is not None:
        points = points_of(whole)
        found = {r: least_bound(v, r, m, points, level) for r, v in right.items()}
        best = min(numbers, key=lambda r: found[r][0])
        p_value, tested = min(1.0, len(numbers) * found[best][0]), found[best][1]
    return OneRunResult(
        outcome=None if p_value is None else Outcome.of(p_value, significance),
        claim="" if whole is None else whole.description,
        canaries=m,
        guesses=best,
        right=right[best],
        tried=numbers,
        delta=float(delta),
        epsilon=max(epsilons.values()),
        mu=max(mus.values()),
        p_value=p_value,
        significance=significance,
        evidence=Evidence(
            values, coins, seed, whole, tested, max(numbers, key=epsilons.__getitem__)
        ),
    )


def canaries_needed(
    epsilon: float,
    truth: float,
    *,
    delta: float = 1e-5,
    significance: float = 0.05,
    power: float = 0.9,
) -> int:
    """Return how many canaries refute (ε, δ)-DP, where each guess is right as at ε = `truth`.

    That is randomised response on every coin, the mechanism that leaks most at `truth`: others need
    more. All canaries are guessed, and `power` is the probability of a refutation.

    Raises
    ------
    InvalidInputError
        If `truth` is not above ε, or more than a billion canaries are needed.
    """
    if not 0 <= epsilon < truth:
        raise expected("truth", truth, f"> epsilon={epsilon}", "Nothing is to be refuted.")
    chance = 1 / (1 + math.exp(-truth))

    def enough(m: int) -> bool:
        most = int(stats.binom.ppf(1 - power, m, chance))  # P(V ≥ most) is at least the power
        return float(tail_bound(most, m, m, epsilon, delta)[0]) <= significance

    needed = least(enough, _MOST_CANARIES)
    if needed is None:
        raise InvalidInputError(
            f"More than a billion canaries are needed at delta={few(delta)}: the bound has a "
            "term of their number times delta. Take a smaller delta."
        )
    return needed


def _read(scores: ArrayLike, included: ArrayLike) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    values = real_numbers(scores, "scores to be numbers, one for each canary")
    coins = np.asarray(included)
    if values.ndim != 1 or coins.shape != values.shape:
        raise InvalidInputError(
            f"Expected scores and included to be lists of one length, not of shapes {values.shape} "
            f"and {coins.shape}."
        )
    if coins.dtype != np.bool_:
        if not np.isin(coins, (0, 1)).all():
            raise InvalidInputError("Expected included to be true or false for each canary.")
        coins = coins.astype(bool)
    if not np.isfinite(values).all():
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InvalidInputError(
            f"Expected finite scores: scores[{first}] is {values[first]}. Give a canary without a "
            "score the middle one."
        )
    m, inside = len(values), int(coins.sum())
    if m > 1 and (values == values[0]).all():
        raise InvalidInputError(f"All {m} scores are {values[0]:g}: nothing can be guessed.")
    if abs(2 * inside - m) > _UNFAIR * math.sqrt(m):
        raise InvalidInputError(
            f"{inside} of {m} canaries were included: that is no result of fair coins. Include "
            "each canary with probability 1/2, independently."
        )
    return values, coins


def _numbers(guesses: int | Sequence[int] | None, m: int) -> tuple[int, ...]:
    if guesses is None:
        found = {m // share for share in _SHARES if m // share >= _FEWEST} or {m}
        return tuple(sorted(found, reverse=True))
    found = {guesses} if isinstance(guesses, int) else {int(number) for number in guesses}
    for number in found:
        if not 1 <= number <= m:
            raise expected("guesses", number, f"in [1, {m}]", "There are so many canaries.")
    if not found:
        raise InvalidInputError("Expected at least one number of guesses.")
    return tuple(sorted(found, reverse=True))


def _require_enough(
    claim: Guarantee | None, m: int, numbers: tuple[int, ...] | None, significance: float
) -> None:
    """Raise where even guesses that are all right could not refute the claim, or anything.

    `numbers` of guesses that were asked for share the significance; None stands for the usual ones.
    """
    about = epsilon_delta(0, 0) if claim is None else claim

    def enough(canaries: int) -> bool:
        tried = numbers if canaries == m and numbers else _numbers(None, canaries)
        level = significance / len(tried)
        return any(bound_of_claim(r, r, canaries, about) <= level for r in tried)

    if enough(m):
        return
    needed = least(enough, _MOST_CANARIES)
    if needed is None:
        raise InvalidInputError("More than a billion canaries are needed to refute this claim.")
    raise InvalidInputError(
        f"{m} canaries are too few: even if every guess were right, nothing would be refuted at "
        f"this significance. From {needed} on something can be."
    )


def _right(values: NDArray[Any], coins: NDArray[np.bool_], guesses: int, seed: int) -> int:
    """Count the right guesses: the canaries with the largest scores are in, the least are out.

    Equal scores are put in an order that does not depend on the coins: by SHA-256 of seed and
    place, which whoever checks a certificate can compute again.
    """
    lots = np.zeros(len(values), "S32")
    if len(np.unique(values)) < len(values):
        lots[:] = [hashlib.sha256(f"{seed} {i}".encode()).digest() for i in range(len(values))]
    order = np.lexsort((lots, values))
    out = guesses // 2
    inside = order[len(values) - (guesses - out) :]
    return int(coins[inside].sum()) + int((~coins[order[:out]]).sum())


def _epsilon(right: int, guesses: int, m: int, delta: float, level: float) -> float:
    """Return the largest ε at which so many right guesses are refuted; 0 where there is none."""

    def bound(epsilon: float) -> float:
        return float(tail_bound(right, guesses, m, epsilon, delta)[0])

    return _largest(bound, level, LARGEST_EPSILON)


def _mu(right: int, guesses: int, m: int, level: float) -> float:
    """Return the largest μ that is refuted; 0 where there is none."""
    return _largest(
        lambda mu: least_bound(right, guesses, m, points_of_mu(mu), level)[0],
        level,
        LARGEST_MU,
        _NARROW,
    )


def _largest(
    bound: Callable[[float], float], level: float, top: float, width: float = 1e-9
) -> float:
    """Return where a growing bound passes the level, from below."""
    if bound(0.0) > level:
        return 0.0
    return halved(lambda x: bound(x) <= level, 0.0, top, width=width)[0]

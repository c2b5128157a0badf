"""The optimal way to keep or drop one key by the number of its users."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Positive, Probability
from dpassay.accountant.errors import AdjacencyError, expected
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import enclose
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.release import sampling

_MOST = 10**15
"""Users up to which a float tells where the curve bends, to within one."""


def add_remove(adjacency: Adjacency | None, mechanism: object) -> None:
    """Raise AdjacencyError unless add/remove is named."""
    if require(adjacency, mechanism) is Adjacency.REPLACE_ONE:
        raise AdjacencyError(
            f"{type(mechanism).__name__} is known for a user who is added or removed. Name "
            "adjacency='add-remove'; a replaced user is one who leaves and one who comes."
        )


@declared
class PartitionSelection(Mechanism, FiniteLaws):
    """Keep a key that n users hold with the largest probability that (ε, δ)-DP allows.

    Desfontaines, Voss, Gipson and Mandayam (2022), Theorem 1: π(0) = 0 and
    π(n + 1) = min(e^ε π(n) + δ, 1 − e^{−ε}(1 − π(n) − δ), 1), at every n the most of all
    mechanisms. A user has at most one key.

    Parameters
    ----------
    epsilon
        ε > 0.
    delta
        0 < δ < 1: the probability that a key of one user is kept.

    Notes
    -----
    The first bound is the smaller one while π(n) ≤ (1 − δ)/(1 + e^ε), then the second one. Of the
    pairs (π(n + 1), π(n)) few are ever worst: on each of the two branches π(n + 1) is affine in
    π(n), and so is P(S) − e^x Q(S) for each of the four events S and every x, in both directions.
    So its maximum over n is at an end of a branch: n = 0, the n next to the bend, the last two.
    Which end is worst depends on x: at one α the trade-off function of another n may be below
    those of all ends, so that β is known between theirs and that of the largest profile.
    """

    example = "PartitionSelection(epsilon=1, delta='1e-5')"
    no_variance = (
        "PartitionSelection keeps a key or drops it: it has no variance. Ask for keeps(users)."
    )
    noise_argument = "epsilon"
    noise_grows = False

    epsilon: Positive = Positive()
    delta: Probability = Probability(interior=True)

    def __post_init__(self) -> None:
        if self._bend() > _MOST:
            raise expected("epsilon", self.epsilon, "and delta to keep a key of 1e15 users")

    @property
    def dominated_by(self) -> Mechanism:
        """Whatever is (ε, δ)-DP."""
        return Guaranteed(self.epsilon, self.delta)

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs of the first user, next to the bend, and of the last user but one."""
        ends = {0, max(0, self._bend() - 1), self._bend() + 1, max(0, self._last() - 4)}
        return tuple(FinitePair(self, n) for n in sorted(ends))

    def _bend(self) -> int:
        """Return the n, to within one, from which the second bound is the smaller one."""
        epsilon, delta = self.epsilon.ball(), self.delta.ball()
        return math.floor(float(((epsilon / 2).tanh() * (1 - delta) / delta).log1p() / epsilon))

    def keeps(self, users: int) -> tuple[arb, arb]:
        """Return π(n) and 1 − π(n), each without cancellation, for n users.

        Up to the bend π(n) = δ(e^{nε} − 1)/(e^ε − 1); from there on
        1 − π(n + j) = (1 − π(n) + c)e^{−jε} − c, c = δ/(e^ε − 1), until that is 0.
        """
        epsilon, delta = self.epsilon.ball(), self.delta.ball()
        rise = epsilon.exp()
        early = max(0, self._bend() - 2)
        n = min(users, early)
        kept = delta * (n * epsilon).expm1() / epsilon.expm1()
        lost = 1 - kept
        while n < min(users, early + 5):
            kept, lost = (
                (rise * kept + delta).min(1 - (lost - delta).max(arb(0)) / rise),
                (1 - rise * kept - delta).max((lost - delta) / rise).max(arb(0)),
            )
            n += 1
        c = delta / epsilon.expm1()
        if users > n:
            lost = ((lost + c) * (-(users - n) * epsilon).exp() - c).max(arb(0))
            kept = 1 - lost
        return kept, lost

    def needed(self, probability: ExactReal) -> int:
        """Return the least number of users whose key is kept with at least this probability.

        Raises UndecidedError where a probability π(n) cannot be told from it.
        """

        def enough(users: int) -> bool:
            return bool(enclose(lambda: self.keeps(users)[0]) >= probability)

        return 1 + bisect_left(range(1, self._last() + 1), True, key=enough)

    def _last(self) -> int:
        """Return a number of users, at most two above the least that is always kept."""
        start = max(0, self._bend() + 3)
        _, lost = self.keeps(start)
        c = self.delta.ball() / self.epsilon.ball().expm1()
        return start + max(0, math.ceil(float(((lost / c).log1p() / self.epsilon.ball()).upper())))

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pairs at the ends of both branches; raise AdjacencyError for replaced users.

        A few more are listed, as both ends are known to within two users, but none of users whose
        key is always kept.
        """
        add_remove(adjacency, self)
        bend, last = self._bend(), self._last()
        ends = {0, *range(bend - 3, bend + 4), *range(last - 5, last)}
        pairs = tuple(
            FinitePair(self, n) for n in sorted(ends) if n >= 0 and not self.keeps(n)[1].is_zero()
        )
        return WorstCase(
            pairs,
            tuple(pair.reverse() for pair in pairs),
            "The probability of a key with a user more is an affine function of that without on "
            "either side of the bend, so one of the ends is worst.",
            enveloped=True,
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the two outcomes."""
        return "the key is kept", "the key is dropped"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return those of index + 1 and of index users."""
        return list(self.keeps(index + 1)), list(self.keeps(index))

    def exact_bound(self, index: int, epsilon: ExactReal) -> ExactReal | None:
        """Return δ at ε: the curve is the largest one that keeps to it."""
        return self.delta if epsilon == self.epsilon else None

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal] | None:
        """Return δ and 0 for the first user."""
        if index or self.keeps(1)[1].contains(0):
            return None
        return self.delta, ExactReal.of_rational(0)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Say which keys are kept, exactly.

        The value: how many users hold each key.
        """
        counts = np.asarray(value)
        if counts.dtype.kind not in "iu" or (counts < 0).any():
            raise expected("value", value, "to be numbers of users")
        kept = np.empty((times, *counts.shape), bool)

        def drawn(users: int, number: int) -> Array:
            return sampling.indices_by_inversion(lambda: [self.keeps(users)[1]], number, rng=rng)

        for users in np.unique(counts):
            where = counts == users
            kept[:, where] = drawn(int(users), times * int(where.sum())).reshape(times, -1) == 1
        return kept

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw whether the key of one user is kept."""
        return self.release(1, size, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return no user and one, and the two ends at the bend."""
        bend = max(1, self._bend())
        return [(0, 1), (bend - 1, bend), (bend, bend + 1), (bend + 1, bend + 2)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw whether the key of so many users is kept."""
        return self.release(int(answer), size, rng=rng).astype(int)

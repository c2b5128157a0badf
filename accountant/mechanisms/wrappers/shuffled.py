"""Local reports of several users, which are shuffled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import log2
from typing import Any, TypeAlias

from flint import arb, arb_poly

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer
from dpassay.accountant.errors import AdjacencyError, NotApplicableError, expected
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed
from dpassay.accountant.mechanisms.wrappers.parts import OneMechanism
from dpassay.accountant.mechanisms.wrappers.randomized_response import RandomizedResponse
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.pairs.shuffled_reports import ShuffledReports
from dpassay.accountant.release.lattice import integers

Counts: TypeAlias = tuple[int, ...]
"""How many records, or reports, there are of each category."""
_MOST_MASSES = 60_000
"""Masses of all pairs together, a second for each precision: 244 users of 2 categories, 17 of 3."""
_MOST_USERS = 10**7
"""Users: a bound takes about 10 √users terms, and a second for ten million."""
_LARGEST_EPSILON = 100
"""Of one report: more would take millions of bits, and no report would be a lie."""


@declared
class Shuffled(Mechanism, FiniteLaws):
    """Publish how many of n users reported each category, every report made by itself.

    Parameters
    ----------
    mechanism
        What each user runs: `RandomizedResponse(epsilon=2)`, or `Guaranteed(epsilon=2)` for any
        randomiser that is 2-DP.
    users
        n ≥ 1, everyone who reports.

    Notes
    -----
    The shuffler hides who reported what, so the histogram of the reports is all there is.
    Neighbours replace the record of one user; n is known.

    *Many users, or any randomiser*: δ and ε have two ends, which differ
    (`dpassay.accountant.pairs.shuffled_reports`).

    *Few users with randomised response: every pair is looked at.* Let user 1 change from category
    a to b. With F(M) the law of the histogram where M_c users hold category c, and m counts what
    the others hold, the laws are P = F(m + e_a) and Q = F(m + e_b). F(M) has the generating
    function Π_c f_c^{M_c}, where f_c(x) = Σ_j r(c, j) x_j is that of one report, and depends on m
    alone, not on who holds what. Renaming the categories renames the histogram: a = 0, b = 1 is
    enough, and of the other counts (m_2, …, m_{k−1}) one order each. Exchanging the names of a and
    b turns the pair of (m_0, m_1, …) into the reverse of that of (m_1, m_0, …): the list serves
    both directions.

    No single m is worst. With two categories the loss grows with the number of reports of a, and
    δ(ε) = max over m_0 and J of A g(J − 1) − (e^ε − 1) P(S ≥ J), with S the reports of a by the
    others, g its law, and A = p − e^ε(1 − p) for truth p. Another user who holds a instead of b
    adds (2p − 1)(A h(J − 2) − (A + e^ε − 1) h(J − 1)), h the law without that user. Its sign
    changes once, from + to −, as h(J − 2)/h(J − 1) falls in m_0. So at fixed J the value rises,
    then falls, and often the peak is inside: the others do not all hold one category, as lower
    bounds usually assume.
    """

    example = "Shuffled(mechanism=RandomizedResponse(epsilon=2), users=4)"
    no_variance = (
        "Shuffled has no variance: its counts are of reports, not of records. "
        "Ask for delta, epsilon or the trade-off function."
    )

    mechanism: OneMechanism = OneMechanism()
    users: Integer = Integer(least=1)

    def __post_init__(self) -> None:
        response = self.mechanism
        if not isinstance(response, (RandomizedResponse, Guaranteed)) or (
            isinstance(response, Guaranteed) and response.delta.sign
        ):
            raise NotApplicableError(
                f"Shuffled knows randomised response, not {self.mechanism!r}. Write "
                "Shuffled(mechanism=RandomizedResponse(epsilon=1, categories=3), users=10), or "
                "Guaranteed(epsilon=1) for any randomiser that is 1-DP."
            )
        if response.epsilon > ExactReal.of_rational(_LARGEST_EPSILON):
            raise expected("mechanism.epsilon", response.epsilon, f"≤ {_LARGEST_EPSILON}")
        if self.users > _MOST_USERS:
            raise expected("users", self.users, f"≤ {_MOST_USERS}", "More take too long to add up.")

    @cached_property
    def _is_listed(self) -> bool:
        """Whether every pair of datasets can be listed."""
        if not isinstance(self.mechanism, RandomizedResponse):
            return False
        k = self.mechanism.categories
        if (k - 1) * log2(self.users + 1) > log2(_MOST_MASSES):
            return False
        histograms: int = (self.users + 1) ** (k - 1)
        return len(self._others) * histograms <= _MOST_MASSES

    @property
    def _response(self) -> RandomizedResponse:
        if not isinstance(self.mechanism, RandomizedResponse):
            raise NotApplicableError(
                f"Expected a randomiser that can be run, not {self.mechanism!r}, which stands for "
                "all that have the guarantee. Write RandomizedResponse(epsilon=…)."
            )
        return self.mechanism

    @property
    def only_alone(self) -> str:
        """Why it cannot be composed: of many users no dominating pair is known."""
        if self._is_listed:
            return ""
        return "of so many users only bounds of delta are known, which do not compose."

    @cached_property
    def _others(self) -> list[Counts]:
        """What the other users may hold: all (m_0, m_1), and the rest in falling order."""
        rest = self.users - 1
        if self._response.categories == 2:
            return [(first, rest - first) for first in range(rest, -1, -1)]
        return [
            (first, second, *others)
            for first in range(rest, -1, -1)
            for second in range(rest - first, -1, -1)
            for others in _falling(rest - first - second, self._response.categories - 2)
        ]

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return a pair for everything that the others may hold. Raises for add/remove."""
        if adjacency is Adjacency.ADD_REMOVE:
            raise AdjacencyError(
                "Shuffled has a known number of users, whose records are replaced. "
                "Name adjacency='replace-one', or none."
            )
        if not self._is_listed:
            response = self.mechanism
            assert isinstance(response, (RandomizedResponse, Guaranteed))
            known = isinstance(response, RandomizedResponse)
            categories = self._response.categories if known else 0
            return WorstCase.symmetric(
                ShuffledReports(response.epsilon, categories, self.users),
                "Every other user sends, with some probability, what might be a report of user 1: "
                "an upper bound; the lower one is of datasets in which all others are alike.",
            )
        pairs = tuple(FinitePair(self, index) for index in range(len(self._others)))
        return WorstCase(
            pairs,
            pairs,
            "One user changes from the first category to the second; everything that the others "
            "may hold is listed, up to renaming.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Return how many reports there are of the first category, or of all of them."""
        if self._response.categories == 2:
            return range(self.users + 1)
        return [",".join(map(str, counts)) for counts, _ in self._histograms]

    @cached_property
    def _histograms(self) -> list[tuple[Counts, int]]:
        """Every histogram, with the exponent of its monomial: the last count is implied."""
        base, found = self.users + 1, []
        for exponent in range(base ** (self._response.categories - 1)):
            digits, left = [], exponent
            for _ in range(self._response.categories - 1):
                left, digit = divmod(left, base)
                digits.append(digit)
            if sum(digits) <= self.users:
                found.append(((*digits, self.users - sum(digits)), exponent))
        return found

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the laws of both histograms, small masses with all their digits."""
        bits = ctx.prec
        odds = float(self._response.epsilon.ball().exp().upper()) + self._response.categories
        with ctx.workprec(bits + int(self.users * log2(odds)) + 64):
            others = arb_poly([1])
            for category, count in enumerate(self._others[index]):
                if count:
                    others = others * _power(self, category, count, ctx.prec)
            laws = [others * _power(self, category, 1, ctx.prec) for category in (0, 1)]
            p, q = ([law[place] for _, place in self._histograms] for law in laws)
        return p, q

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ±ε where all reports are of one of the two categories, 0 where P = Q.

        P and Q differ by a multiple of g(h − e_0) − g(h − e_1), g the law of the others.
        """
        epsilon, alike = self._response.epsilon, self._others[index][0] == self._others[index][1]
        found: list[ExactReal | None] = []
        for counts, _ in self._histograms:
            first, second = counts[:2]
            if first == second and (first == 0 or alike):
                found.append(ExactReal.of_rational(0))
            elif self.users in (first, second):
                found.append(epsilon if first else -epsilon)
            else:
                found.append(None)
        return found

    @property
    def dimension(self) -> int:
        """The counts of all categories."""
        return self._response.categories

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw `size` histograms where everybody holds the first category, exactly."""
        return self.outputs((self.users, *[0] * (self.dimension - 1)), size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Return the histogram of one report of each entry of an array of n categories."""
        records = integers(value)
        if records.shape != (self.users,):
            raise expected(
                "value", records.shape, f"to be {self.users} records", "One of each user."
            )
        for place, entry in enumerate(records):
            if not 0 <= entry < self.dimension:
                raise expected(f"value[{place}]", entry, f"in 0..{self.dimension - 1}")
        counts = tuple(int((records == category).sum()) for category in range(self.dimension))
        drawn = self.outputs(counts, times, rng=rng)
        return drawn

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the datasets of every pair, as how many users hold each category."""
        return [
            ((first + 1, second, *rest), (first, second + 1, *rest))
            for first, second, *rest in self._others
        ]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw `size` histograms of reports, one row each, where answer[c] users hold c."""
        drawn = np.zeros((size, self.dimension), dtype=np.int64)
        for category, count in enumerate(answer):
            lies = self._response.sample(size * int(count), rng=rng).reshape(size, int(count))
            reports = (lies + category) % self.dimension
            for other in range(self.dimension):
                drawn[:, other] += (reports == other).sum(axis=1)
        return drawn


def _falling(total: int, parts: int, most: int | None = None) -> Iterator[Counts]:
    """Yield the falling lists of `parts` integers ≥ 0 of a sum."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(min(total, total if most is None else most), -1, -1):
        if first * parts < total:
            return
        for rest in _falling(total - first, parts - 1, first):
            yield (first, *rest)


@lru_cache(maxsize=4096)
def _power(shuffled: Shuffled, category: int, count: int, bits: int) -> arb_poly:
    """Return f_c^count, where x_j stands for x^{(n + 1)^j}, and x_{k−1} for 1."""
    if count > 1:
        half = _power(shuffled, category, count // 2, bits)
        whole = half * half
        return whole * _power(shuffled, category, 1, bits) if count % 2 else whole
    response = shuffled.mechanism
    assert isinstance(response, RandomizedResponse)
    k, base = response.categories, shuffled.users + 1
    odds = response.epsilon.ball().exp()
    places = [base**j for j in range(k - 1)] + [0]
    entries = [arb(0)] * (places[-2] + 1)
    for j, place in enumerate(places):
        entries[place] = (odds if j == category else arb(1)) / (odds + k - 1)
    return arb_poly(entries)

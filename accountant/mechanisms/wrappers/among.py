"""The shuffle model with given inputs of the other users: the exact profile of any randomiser.

User 1 holds input a or b, m_c of the n − 1 other users hold input c, and R_c is the law of a report
on c. Only the histogram of the reports is published. Two reports o and o' are of the same *kind* if
the columns (R_c(o))_c and (R_c(o'))_c are proportional, where c runs over a, b and the inputs with
m_c > 0. The privacy loss of the histogram of reports is that of the histogram h of kinds, and

    P(h) = Σ_o R_a(o) G(h − e_o),   Q(h) = Σ_o R_b(o) G(h − e_o),

where o runs over the kinds and G is the convolution over c of the multinomial laws of m_c trials
with probabilities R_c(o). *Proof.* Let column o be t_o times a common vector of its kind. A report
of this kind is o with probability t_o/Σt, independently, whichever input its sender holds. So the
histogram of reports can be drawn from h without the data: h is a sufficient statistic. All terms
are ≥ 0, so small masses keep their relative accuracy.

If all other users send reports with one law R, then
P(h)/Q(h) = Σ h_o R_a(o)/R(o) / Σ h_o R_b(o)/R(o), because G(h − e_o) R(o) is h_o/n times the
multinomial probability of h.

If R_a(o) = e^l R_b(o) for every kind o that occurs in h, then P(h) = e^l Q(h). If m_a = m_b,
exchanging R_a and R_b maps kinds to kinds, and this map leaves h unchanged, then P(h) = Q(h).
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import Any, TypeAlias, TypeVar, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integers, declared
from dpassay.accountant.errors import AdjacencyError, NotApplicableError, expected
from dpassay.accountant.mechanisms.wrappers.channel import (
    Channel,
    LocalReport,
    RandomizedResponse,
    SubsetSelection,
    balls,
)
from dpassay.accountant.mechanisms.wrappers.composed import OneMechanism
from dpassay.accountant.mechanisms.wrappers.sampling import largest_loss
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair

T = TypeVar("T", arb, Fraction)
Column: TypeAlias = tuple[Any, ...]
"""One report over the held inputs, by probabilities, or bits (1 if the report contains it)."""
_MOST_MASSES = 60_000
"""Limit on the masses of all pairs together; they take two or three seconds at each precision."""
_MOST_TERMS = 4_000_000
"""Limit on the products of one convolution; they take three seconds."""
_MOST_EXACT = 40_000
"""Limit on masses times users for which masses are also computed as fractions."""
_MOST_HELD = 12
"""Limit on the held inputs if a report has a bit for each: the columns number 2^held."""


@final
@dataclass(frozen=True)
class _Kind:
    """A set of reports with proportional columns."""

    name: str
    columns: tuple[Column, ...]
    loss: ExactReal | None
    """ln(R_a/R_b) if it is known exactly, else None."""

    def mapped(self, *, exchanged: bool) -> Hashable:
        """Return the columns as a multiset, with a and b exchanged if `exchanged`."""
        found = (((c[1], c[0], *c[2:]) if exchanged else c) for c in self.columns)
        return frozenset(Counter(found).items())


@declared
class ShuffledAmong(Mechanism, FiniteLaws):
    """Publish the histogram of the reports of n users, for given inputs of all users but one.

    Parameters
    ----------
    mechanism
        The randomiser of each user: `RandomizedResponse`, a report of a set (`UnaryEncoding`,
        `Rappor`, `SubsetSelection`), or a `Channel`.
    others
        The number of other users that hold each input, in the order of the inputs. `[99, 0]` means
        100 users including user 1, of whom the 99 others hold input 0.

    Notes
    -----
    The answers hold for *these* other users only: user 1 changes from any input to any other, or to
    a neighbour if the channel has `neighbours`. On other datasets δ(ε) may be larger. `Shuffled`
    covers all datasets, and δ and ε here are lower bounds of its values. Proofs are in
    `dpassay.accountant.mechanisms.wrappers.among`.

    Every histogram of the kinds of reports is listed. This is feasible for thousands of users with
    two kinds, some hundreds with three and some tens with four.
    """

    every_pair_listed = True
    example = "ShuffledAmong(mechanism=RandomizedResponse(epsilon=2), others=[3, 0])"
    no_variance = (
        "ShuffledAmong has no variance: its counts are of reports, not of records. "
        "Ask for delta, epsilon or the trade-off function."
    )

    mechanism: OneMechanism = OneMechanism()
    others: Integers = Integers(least=0)

    def __post_init__(self) -> None:
        response = self.mechanism
        if not isinstance(response, (RandomizedResponse, LocalReport, Channel)):
            raise NotApplicableError(
                f"ShuffledAmong knows reports with finitely many outcomes, not {response!r}. Write "
                "RandomizedResponse, UnaryEncoding, Rappor, SubsetSelection or a Channel."
            )
        if len(self.others) != self._inputs:
            raise expected(
                "others", list(self.others), f"of {self._inputs} counts", "One for each input."
            )
        held = sum(map(bool, self.others)) + 2
        if isinstance(response, LocalReport) and held > _MOST_HELD:
            raise self._too_many(f"{held} inputs that somebody may hold")
        masses = 0
        for index in self._different:
            kinds = len(_kinds(self, index))
            masses += math.comb(self.users + kinds - 1, kinds - 1)
            if masses > _MOST_MASSES:
                raise self._too_many(f"over {_MOST_MASSES} histograms of {kinds} kinds of reports")
            terms, before = 0, 0
            for m in filter(None, self.others):
                sizes = (math.comb(count + kinds - 1, kinds - 1) for count in (before, m))
                terms, before = terms + math.prod(sizes), before + m
            if terms > _MOST_TERMS:
                raise self._too_many(f"sums of over {_MOST_TERMS} terms")

    def _too_many(self, why: str) -> NotApplicableError:
        return NotApplicableError(
            f"ShuffledAmong lists every histogram, and {self.users} users have {why}. Give fewer "
            "others, or ask Shuffled(mechanism, users) for both ends over all others."
        )

    @property
    def users(self) -> int:
        """n, the number of users including user 1."""
        return sum(self.others) + 1

    @property
    def _inputs(self) -> int:
        response = self.mechanism
        if isinstance(response, Channel):
            return len(response.matrix)
        assert isinstance(response, (RandomizedResponse, LocalReport))
        return response.categories

    @cached_property
    def _different(self) -> list[int]:
        """The indices a·inputs + b of the pairs between which user 1 may change.

        Unless the mechanism is a channel, renaming the categories renames the histograms, so the
        profile depends only on m_a, m_b and the other counts; one pair of each profile is listed.
        """
        response, k = self.mechanism, self._inputs
        edges = response.neighbours if isinstance(response, Channel) else None
        found: dict[Hashable, int] = {}
        counts = list(self.others)
        for a, b in sorted({(min(edge), max(edge)) for edge in edges or combinations(range(k), 2)}):
            same: Hashable = (a, b)
            if not isinstance(response, Channel):
                same = (min(counts[a], counts[b]), max(counts[a], counts[b]))
            found.setdefault(same, a * k + b)
        return list(found.values())

    def held(self, index: int) -> list[int]:
        """Return a, b, and all other inputs c with m_c > 0."""
        a, b = divmod(index, self._inputs)
        return [a, b, *(c for c, m in enumerate(self.others) if m and c not in (a, b))]

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pairs between which user 1 may change, in both directions.

        Raises AdjacencyError under add/remove.
        """
        if adjacency is Adjacency.ADD_REMOVE:
            raise AdjacencyError(
                "ShuffledAmong has a known number of users, one of whom changes a record. "
                "Name adjacency='replace-one', or none."
            )
        one_way = [FinitePair(self, index) for index in self._different]
        pairs = tuple(way for pair in one_way for way in (pair, pair.reverse()))
        return WorstCase(
            pairs,
            pairs,
            "For these inputs of the others only: user 1 changes from one input to another one, in "
            "both directions, and all histograms of the reports are listed.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the histograms of kinds as text."""
        kinds = _kinds(self, index)
        return [
            " and ".join(f"{n} {kind.name}" for n, kind in zip(counts, kinds, strict=True) if n)
            for _, counts in _histograms(self.users, len(kinds))
        ]

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the laws P and Q of the histogram of kinds."""
        return _enclosed(self, index, ctx.prec)

    def rational_masses(self, index: int) -> tuple[list[Fraction], list[Fraction]] | None:
        """Return P and Q as fractions for rational channels and few users, else None."""
        kinds = _kinds(self, index)
        size = math.comb(self.users + len(kinds) - 1, len(kinds) - 1)
        if not isinstance(self.mechanism, Channel) or size * self.users > _MOST_EXACT:
            return None
        entries = (entry for kind in kinds for column in kind.columns for entry in column)
        return _exactly(self, index) if all(isinstance(e, Fraction) for e in entries) else None

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return l if every kind in a histogram has loss l, 0 if P = Q by exchange, else None."""
        if self.rational_masses(index) is not None:
            return super().exact_losses(index)
        kinds = _kinds(self, index)
        a, b = divmod(index, self._inputs)
        places = {kind.mapped(exchanged=False): place for place, kind in enumerate(kinds)}
        image = [places.get(kind.mapped(exchanged=True)) for kind in kinds]
        exchanged = self.others[a] == self.others[b] and None not in image
        zero, found = ExactReal.of_rational(0), list[ExactReal | None]()
        for _, counts in _histograms(self.users, len(kinds)):
            losses = [kind.loss for kind, n in zip(kinds, counts, strict=True) if n]
            first = losses[0]
            if first is not None and all(loss is not None and loss == first for loss in losses):
                found.append(first)
            elif exchanged and all(
                place is not None and counts[place] == n
                for place, n in zip(image, counts, strict=True)
            ):
                found.append(zero)
            else:
                found.append(None)
        return found

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` histograms exactly if user 1 holds input 0."""
        return self.outputs(0, size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Raise NotApplicableError: the inputs of the other users are given, not a dataset."""
        raise NotApplicableError(
            "ShuffledAmong asks about given inputs, and releases none. Release the reports with "
            "the mechanism itself, and shuffle them."
        )

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the pairs of inputs between which user 1 may change."""
        return [divmod(index, self._inputs) for index in self._different]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` histograms of reports, one per row, if user 1 holds the input `answer`."""
        response = self.mechanism
        if isinstance(response, LocalReport):
            raise NotApplicableError(
                f"ShuffledAmong does not run {response!r}. Shuffle what its own release returns."
            )
        columns = self._inputs
        if isinstance(response, Channel):
            columns = len(response.matrix[0])
        drawn = np.zeros((size, columns), dtype=np.int64)
        for c, count in enumerate(self.others):
            holders = count + (c == int(answer))
            reports = response.outputs(c, size * holders, rng=rng).reshape(size, holders)
            for column in range(columns):
                drawn[:, column] += (reports == column).sum(axis=1)
        return drawn


@lru_cache(maxsize=1024)
def _kinds(shuffled: ShuffledAmong, index: int) -> list[_Kind]:
    """Return the kinds of reports for the pair of inputs with this index."""
    response, held = shuffled.mechanism, shuffled.held(index)
    found: dict[Any, list[tuple[int, Column]]] = {}
    if isinstance(response, Channel):
        for number, column in enumerate(zip(*(response.matrix[c] for c in held), strict=True)):
            if any(entry != 0 for entry in column):
                found.setdefault(_direction(column), []).append((number, column))
        losses = response.exact_losses(index)
        return [
            _Kind(
                f"in {{{','.join(str(number) for number, _ in listed)}}}",
                tuple(column for _, column in listed),
                _log_ratio(listed[0][1], losses[listed[0][0]]),
            )
            for listed in found.values()
        ]
    for number, column in enumerate(_contained(response, len(held), shuffled.others)):
        alike = all(column) or not any(column)
        found.setdefault(None if alike else column, []).append((number, column))
    epsilon = largest_loss(response)
    by_sign = {1: epsilon, 0: ExactReal.of_rational(0), -1: -epsilon}
    return [
        _Kind(
            _named(held, key),
            tuple(column for _, column in listed),
            by_sign[listed[0][1][0] - listed[0][1][1]],
        )
        for key, listed in found.items()
    ]


def _named(held: Sequence[int], bits: Column | None) -> str:
    """Describe the held inputs that a report contains."""
    if bits is None:
        return "of none or all"
    inside = [str(c) for c, bit in zip(held, bits, strict=True) if bit]
    return f"of {inside[0]}" if len(inside) == 1 else f"of {{{','.join(inside)}}}"


def _direction(column: Column) -> Hashable:
    """Return a key of a column: equal keys imply proportional columns.

    For columns of fractions the converse holds too.
    """
    if all(entry == column[0] for entry in column):
        return 1
    if all(isinstance(entry, Fraction) for entry in column):
        lead = next(entry for entry in column if entry)
        return tuple(entry / lead for entry in column)
    return column


def _log_ratio(column: Column, known: ExactReal | None) -> ExactReal | None:
    """Return the known ln(R_a/R_b) of a column, or compute it from fractions; None if unknown."""
    p, q = column[:2]
    if known is not None or not (isinstance(p, Fraction) and isinstance(q, Fraction) and p and q):
        return known
    with contextlib.suppress(ArithmeticError):  # too long: balls are compared instead
        return ExactReal.of_rational(p / q).log()
    return None


def _set_size(response: Mechanism) -> int | None:
    """Return the number of categories in a report, None if its bits are independent."""
    if isinstance(response, RandomizedResponse):
        return 1
    return response.set_size if isinstance(response, SubsetSelection) else None


def _contained(response: Mechanism, held: int, others: Sequence[int]) -> Iterator[Column]:
    """Yield the subsets of the held inputs that a report may contain, as bits."""
    size, rest = _set_size(response), len(others) - held
    if size is None:
        yield from product((0, 1), repeat=held)
        return
    for inside in range(max(0, size - rest), min(size, held) + 1):
        for chosen in combinations(range(held), inside):
            yield tuple(int(place in chosen) for place in range(held))


def _chance(response: Mechanism, held: int, place: int, column: Column) -> arb:
    """Return the probability that a report on held input `place` has these bits at held inputs."""
    size = _set_size(response)
    if size is None:
        assert isinstance(response, LocalReport)
        p, q = response.chances()
        found = arb(1)
        for at, bit in enumerate(column):
            each = p if at == place else q
            found *= each if bit else 1 - each
        return found
    assert isinstance(response, (RandomizedResponse, SubsetSelection))
    k = response.categories
    if isinstance(response, RandomizedResponse):
        p = response.masses(0)[0][0]
    else:
        p = response.chances()[0]
    ways = arb(math.comb(k - held, size - sum(column)))
    if column[place]:
        return p * ways / math.comb(k - 1, size - 1)
    return (1 - p) * ways / math.comb(k - 1, size)


@lru_cache(maxsize=64)
def _histograms(users: int, kinds: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return (code, counts) of every histogram: the code is Σ counts_j (n + 1)^j, j < kinds − 1."""
    found: list[tuple[int, int, tuple[int, ...]]] = [(0, users, ())]
    for j in range(kinds - 1):
        place = (users + 1) ** j
        found = [
            (code + n * place, left - n, (*counts, n))
            for code, left, counts in found
            for n in range(left + 1)
        ]
    return [(code, (*counts, left)) for code, left, counts in found]


@lru_cache(maxsize=64)
def _enclosed(shuffled: ShuffledAmong, index: int, bits: int) -> tuple[list[arb], list[arb]]:
    """Return P and Q as balls; extra bits compensate for the n roundings of a power."""
    response, held = shuffled.mechanism, shuffled.held(index)

    def chance(place: int, column: Column) -> arb:
        if isinstance(response, Channel):
            return balls([column[place]])[0]
        return _chance(response, len(held), place, column)

    with ctx.workprec(bits + 2 * shuffled.users.bit_length() + 16):
        return _laws(shuffled, index, chance, arb(1))


@lru_cache(maxsize=64)
def _exactly(shuffled: ShuffledAmong, index: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return P and Q as fractions, for a channel of fractions."""
    return _laws(shuffled, index, lambda place, column: column[place], Fraction(1))


def _laws(
    shuffled: ShuffledAmong, index: int, chance: Callable[[int, Column], T], one: T
) -> tuple[list[T], list[T]]:
    """Return P and Q of all histograms; chance(i, column) is a report's probability on held[i]."""
    kinds, held, zero = _kinds(shuffled, index), shuffled.held(index), one * 0
    chances = [
        [sum((chance(place, column) for column in kind.columns), zero) for kind in kinds]
        for place in range(len(held))
    ]
    base, others = shuffled.users + 1, {0: one}
    for c, law in zip(held, chances, strict=True):
        if shuffled.others[c]:
            others = _convolution(others, _multinomial(law, shuffled.others[c], base, one))
    first, second = (_convolution(others, _multinomial(law, 1, base, one)) for law in chances[:2])
    codes = [code for code, _ in _histograms(shuffled.users, len(kinds))]
    return [first.get(code, zero) for code in codes], [second.get(code, zero) for code in codes]


def _multinomial(chances: Sequence[T], trials: int, base: int, one: T) -> dict[int, T]:
    """Return the multinomial law of the counts of each kind, as a map from code to probability."""
    places = [base**j for j in range(len(chances) - 1)] + [0]
    possible = [(r, place) for r, place in zip(chances, places, strict=True) if r != 0]
    found = [(0, trials, one * math.factorial(trials))]
    for number, (r, place) in enumerate(possible):
        powers = [one]
        for n in range(1, trials + 1):
            powers.append(powers[-1] * r / n)
        last = number == len(possible) - 1
        found = [
            (code + n * place, left - n, weight * powers[n])
            for code, left, weight in found
            for n in ((left,) if last else range(left + 1))
        ]
    return {code: weight for code, _, weight in found}


def _convolution(one: dict[int, T], other: dict[int, T]) -> dict[int, T]:
    """Return the law of the sum of two independent histograms: the convolution of two laws."""
    if len(one) < len(other):
        one, other = other, one
    found: dict[int, T] = {}
    for shift, factor in other.items():
        for code, weight in one.items():
            at, term = code + shift, weight * factor
            found[at] = found[at] + term if at in found else term
    return found

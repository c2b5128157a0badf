"""Any randomiser of finitely many inputs, as a matrix of probabilities."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate, combinations
from typing import Any, TypeAlias, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, refuse_added
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import (
    Field,
    Integer,
    NonNegative,
    OptionalInteger,
    Positive,
    Rational,
    Read,
    Switch,
    declared,
    integer,
    probabilities,
)
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.numbers import formula
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import ball, enclose
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.finite import Ends, FiniteLaws, FinitePair, Masses, hull, masses, over
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import release_integers, release_reports

# --- Probabilities of a table: rational numbers, or formulas such as exp(1)/(exp(1)+1) ------------

Entry: TypeAlias = Fraction | ExactReal
"""A rational number, or one that is not."""
_BITS = 256
"""Of masses in tables that are no smaller: compositions ask for the δ of floats."""


def law(name: str, value: object) -> tuple[Entry, ...]:
    """Return the masses of a law, of sum exactly 1."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return probabilities(name, value)  # which says what a list is
    known = tuple(_entry(f"{name}[{i}]", given) for i, given in enumerate(value))
    if all(isinstance(entry, Fraction) for entry in known):
        return probabilities(name, known)
    try:
        whole = _total(known)
    except ArithmeticError:
        raise InvalidInputError(
            f"Expected {name} to sum to 1, which takes too many terms to check. Write the entries "
            "over "
            "one denominator."
        ) from None
    if whole != 1:
        raise InvalidInputError(
            f"Expected {name} to sum to 1, not {enclose(lambda: _ball(whole))}. Divide by the sum."
        )
    return known


def _total(values: Sequence[Entry]) -> Entry:
    """Return the sum; ArithmeticError where it has too many terms."""
    parts: dict[object, formula.Quotient] = {}
    for value in values:  # those of one denominator first
        quotient = _quotient(value)
        key = frozenset(quotient[1].items())
        parts[key] = formula.add(parts[key], quotient) if key in parts else quotient
    return _known(ExactReal.of_quotient(functools.reduce(formula.add, parts.values()), "a sum"))


def _quotient(value: Entry) -> formula.Quotient:
    return formula.of_fraction(value) if isinstance(value, Fraction) else value.quotient()


def _known(value: ExactReal) -> Entry:
    return value if value.rational is None else value.rational


def _ball(value: Entry) -> arb:
    return ball(value) if isinstance(value, Fraction) else value.ball()


def balls(entries: Sequence[Entry]) -> list[arb]:
    """Return balls that contain the entries."""
    return [_ball(entry) for entry in entries]


class TableLaws(FiniteLaws):
    """Laws that are rows of entries."""

    @abstractmethod
    def rows(self, index: int) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Return P and Q."""

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return balls around the entries."""
        p, q = self.rows(index)
        return balls(p), balls(q)

    def rational_masses(self, index: int) -> Masses | None:
        """Return the entries where all are rational."""
        p, q = (tuple(e for e in row if isinstance(e, Fraction)) for row in self.rows(index))
        return (p, q) if len(p) == len(q) == len(self.rows(index)[0]) else None

    def table_above(self, index: int) -> Masses:
        """Return rational masses with a profile that is at least as large, by 2⁻²⁵⁶ or so."""
        if (exact := self.rational_masses(index)) is not None:
            return exact
        with ctx.workprec(_BITS):
            p, q = ([_around(b) for b in law] for law in self.masses(index))
        return masses(hull(over(p, q)))

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ln(p/q) where it is an exact number: of no other outcome is it an exact ε."""
        if self.rational_masses(index) is not None:
            return super().exact_losses(index)
        return list(map(_log_ratio, *self.rows(index)))


def _entry(name: str, value: object) -> Entry:
    number = exact(value, name)  # type: ignore[arg-type]  # exact refuses what is no number
    if number.sign < 0:
        raise expected(name, number, "≥ 0")
    return _known(number)


@functools.lru_cache(maxsize=4096)
def _log_ratio(p: Entry, q: Entry) -> ExactReal | None:
    """Return ln(p/q) of two numbers ≥ 0 where it is algebraic; else, or if too long, None."""
    if p == 0 or q == 0:
        return None
    try:
        ratio = formula.times(_quotient(p), formula.inverse(_quotient(q)))
        exponent = formula.algebraic_log(ratio)
    except ArithmeticError:
        return None
    return None if exponent is None else ExactReal.of_quotient(exponent)


def _around(value: arb) -> Ends:
    return max(fraction(value.lower()), Fraction(0)), fraction(value.upper())


Rows: TypeAlias = tuple[tuple[Entry, ...], ...]
Edges: TypeAlias = tuple[tuple[int, int], ...]
_MOST_INPUTS = 100
"""Inputs: 9,900 ordered pairs of rows, each of which every question looks at."""


@final
class Stochastic(Field[Rows, Any]):
    """Two or more rows of numbers ≥ 0, of one length, each of sum exactly 1: a list or an array."""

    def read(self, value: Any) -> Rows:
        """Convert every row, naming the entry or the row that is wrong."""
        name = self._name
        listed = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
            raise expected(name, value, "to be a list of rows", 'Write [["3/4", "1/4"], …].')
        if not 2 <= len(listed) <= _MOST_INPUTS:
            raise InvalidInputError(
                f"Expected {name} of 2 to {_MOST_INPUTS} rows, not {len(listed)}."
            )
        rows = tuple(law(f"{name}[{i}]", row) for i, row in enumerate(listed))
        for i, row in enumerate(rows):
            if len(row) != len(rows[0]):
                size = f"to have {len(rows[0])} entries, as the first"
                raise expected(f"{name}[{i}]", list(listed[i]), size)
        return rows


@final
class Graph(Field[Edges | None, Any]):
    """Pairs of different whole numbers ≥ 0; None for all."""

    def read(self, value: Any) -> Edges | None:
        """Convert every pair, naming the one that is wrong."""
        if value is None:
            return None
        listed = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence) or not listed:
            raise expected(self._name, value, "to be a list of pairs", "Write [[0, 1], [1, 2]].")
        found = []
        for index, pair in enumerate(listed):
            name = f"{self._name}[{index}]"
            if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise expected(name, pair, "to be a pair of inputs", "Write [0, 1].")
            i, j = (integer(f"{name}[{k}]", entry, least=0) for k, entry in enumerate(pair))
            if i == j:
                raise expected(name, pair, "to be two different inputs")
            found.append((i, j))
        return tuple(found)


@declared
class Channel(Mechanism, TableLaws):
    """Report an outcome j of an input i with probability matrix[i][j].

    Parameters
    ----------
    matrix
        A row for each input, a column for each outcome: rational numbers ≥ 0, or formulas with
        + - * / **, exp and sqrt such as "exp(1)/(exp(1)+1)", each row of sum exactly 1: a list
        of rows, or an array.
    neighbours
        Pairs [i, j] of inputs, counted from 0; without it every two inputs are neighbours.

    Notes
    -----
    Without `neighbours` the input is one record, so neighbours replace it (local differential
    privacy). With it the inputs may be datasets, and the pairs are the relation, whatever its name.
    The profile is the maximum over all pairs of rows, in both orders. A pair with the same entries
    (p, q) as another one, in another order, has the same profile, and is listed once.
    """

    every_pair_listed = True
    example = "Channel(matrix=[['2/3', '1/3'], ['1/4', '3/4']])"
    no_variance = (
        "Channel has no variance: its outcomes are names, not answers with an error. "
        "Ask for delta, epsilon or the trade-off function."
    )

    matrix: Stochastic = Stochastic()
    neighbours: Graph = Graph(None)

    def __post_init__(self) -> None:
        for pair in self.neighbours or ():
            if max(pair) >= len(self.matrix):
                raise expected("neighbours", list(pair), f"to be in 0..{len(self.matrix) - 1}")

    def __hash__(self) -> int:
        """Hash once: every pair of rows asks."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.matrix, self.neighbours))

    @cached_property
    def _different(self) -> list[int]:
        """The numbers i·inputs + j of ordered pairs of rows, one of each profile."""
        found: dict[tuple[tuple[int, int], ...], int] = {}
        names: dict[Entry, int] = {}
        named = [[names.setdefault(entry, len(names)) for entry in row] for row in self.matrix]
        edges = self.neighbours or combinations(range(len(self.matrix)), 2)
        for i, j in sorted({way for a, b in edges for way in ((a, b), (b, a))}):
            entries = sorted(zip(named[i], named[j], strict=True))
            found.setdefault(tuple(entries), i * len(self.matrix) + j)
        return list(found.values())

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the ordered pairs of rows. Raises AdjacencyError for a record that is added."""
        if self.neighbours is None:
            refuse_added(adjacency, self)
        pairs = tuple(FinitePair(self, index) for index in self._different)
        return WorstCase(
            pairs,
            pairs,
            "All ordered pairs of neighbouring rows are listed; of pairs with the same entries in "
            "another order only one is.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the numbers of the columns."""
        return range(len(self.matrix[0]))

    def rows(self, index: int) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Return two rows."""
        i, j = divmod(index, len(self.matrix))
        return self.matrix[i], self.matrix[j]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` reports of the input 0, exactly."""
        return self.outputs(0, size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Report every entry of an array of inputs 0, …, n − 1, exactly."""
        draw = partial(self.outputs, rng=rng)
        return release_reports(draw, value, times, inputs=len(self.matrix))

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the pairs of inputs, one of each profile."""
        return [divmod(index, len(self.matrix)) for index in self._different]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw `size` reports of an input."""
        row = self.matrix[int(answer)]
        return sampling.indices_by_inversion(
            lambda: list(accumulate(balls(row)))[:-1], size, rng=rng
        )


# --- Randomised response --------------------------------------------------------------------------


class CategoryReport(Mechanism, FiniteLaws, ABC):
    """A report of one person's category, of k, with the privacy losses ε, 0 and −ε."""

    noise_argument = "epsilon"
    noise_grows = False

    categories: Integer

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the reports on two different categories. Raises AdjacencyError for add/remove."""
        refuse_added(adjacency, self)
        return WorstCase.symmetric(
            FinitePair(self, 0),
            "Renaming the categories maps every pair of different true categories to every other.",
        )

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ε, 0, −ε."""
        epsilon: ExactReal = self.epsilon  # all but Rappor
        return [epsilon, ExactReal.of_rational(0), -epsilon]

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return two categories: all pairs are alike."""
        return [(0, 1)]


@declared
class RandomizedResponse(CategoryReport):
    """Report one person's category truthfully with odds e^ε against each other category.

    The true category is reported with probability e^ε/(e^ε + k − 1) and each of the others with
    probability 1/(e^ε + k − 1) (Warner 1965 for k = 2; Kairouz, Bonawitz and Ramage 2016).

    Parameters
    ----------
    epsilon
        ε ≥ 0, the largest privacy loss.
    categories
        k ≥ 2, the number of categories.

    Notes
    -----
    The input is one record, so neighbours replace it: the add/remove relation does not fit.
    """

    example = "RandomizedResponse(epsilon=1, categories=4)"

    epsilon: NonNegative = NonNegative()
    categories: Integer = Integer(2, least=2)

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the reports by what they say."""
        return "the true category under P", "another category", "the true category under Q"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the probabilities of the three kinds of reports."""
        true, other = self._probabilities()
        rest = (self.categories - 2) * other
        return [true, rest, other], [other, rest, true]

    def error_probability(self) -> arb:
        """Return the probability (k − 1)/(e^ε + k − 1) that the report is not the truth."""
        return (self.categories - 1) * self._probabilities()[1]

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw (report − truth) mod k for `size` reports, exactly."""
        lies = sampling.indices_by_inversion(lambda: [self._probabilities()[0]], size, rng=rng)
        return lies * rng.integers(1, self.categories, size)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Report every entry of an answer, categories 0..k − 1, exactly."""
        reports = release_integers(lambda count: self.sample(count, rng=rng), value, times)
        return reports % self.categories

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw reports of a true category."""
        reports: Array = (self.sample(size, rng=rng) + int(answer)) % self.categories
        return reports

    def variances(self) -> list[arb]:
        """Return [p(1 − p)] of a reported bit.

        Raises NotApplicableError for more than two categories, which are names and not numbers.
        """
        self._require_bit("variance")
        true, other = self._probabilities()
        return [true * other]

    def mean_squared_error(self) -> arb:
        """Return the probability of a wrong bit: the report, unlike the truth, is biased.

        Raises NotApplicableError for more than two categories.
        """
        self._require_bit("mean squared error")
        return self.error_probability()

    def _probabilities(self) -> tuple[arb, arb]:
        """Return the probability of the true category, and of each other one."""
        odds = (-self.epsilon.ball()).exp()
        true = 1 / (1 + (self.categories - 1) * odds)
        return true, odds * true

    def _require_bit(self, question: str) -> None:
        if self.categories > 2:
            raise NotApplicableError(
                f"RandomizedResponse over {self.categories} categories has no {question}: its "
                "reports are names. Ask for error_probability()."
            )


# --- Any finite pair of laws ----------------------------------------------------------------------


@declared
class Tabulated(Mechanism, TableLaws):
    """A mechanism known by its laws on one pair of neighbours: outcomes 0, …, n − 1.

    Parameters
    ----------
    p, q
        Probabilities of the outcomes, of sum exactly 1, in the same order: rational, or formulas
        with + - * / **, exp and sqrt. REMOVE compares p with q, ADD compares q with p.

    Notes
    -----
    A guarantee holds for these two datasets, under any relation; that no other neighbours
    are worse is for whoever made the table to say. `sample` draws outcomes from p.
    """

    example = "Tabulated(p=['3/4', '1/4'], q=['1/4', '3/4'])"
    no_variance = (
        "Tabulated has no variance: its outcomes are names, not answers with an error. "
        "Ask for delta, epsilon or the trade-off function."
    )

    p: Read[tuple[Entry, ...], Any] = Read(law)
    q: Read[tuple[Entry, ...], Any] = Read(law)

    def __post_init__(self) -> None:
        if len(self.p) != len(self.q):
            raise InvalidInputError(
                f"Expected p and q to list the same outcomes, not {len(self.p)} and "
                f"{len(self.q)}. Write 0 where an outcome is impossible."
            )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of tables, in both directions."""
        pair = FinitePair(self, 0)
        return WorstCase((pair,), (pair.reverse(),), "The pair is given as it is.")

    def outcomes(self, index: int) -> Sequence[object]:
        """Return 0, …, n − 1."""
        return range(len(self.p))

    def rows(self, index: int) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Return p and q."""
        return self.p, self.q

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` outcomes from p, exactly."""
        return sampling.indices_by_inversion(
            lambda: list(accumulate(balls(self.p)))[:-1], size, rng=rng
        )

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the two datasets: 0 has the law p, 1 the law q."""
        return [(0, 1)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw outcomes from p for the answer 0, else from q."""
        law = self if answer == 0 else Tabulated(self.q, self.p)
        return law.sample(size, rng=rng)


# --- Reports of one person's category: every report is a set of categories, the true one more
#     likely
# What a report says of two categories is which of them it contains. Whichever other categories
# there are, it has the loss ε where it contains the true one under P alone, −ε where it contains
# the true one under Q alone, and 0 elsewhere; renaming the categories maps every pair of them to
# every other. So one pair of three outcomes is worst, in both directions, and each mechanism states
# its masses.
#
# The number of people who hold a category is estimated without bias: of n reports m contain it, and
# (m − nq)/(p − q) is the estimate, where a report contains the true category with probability p and
# each other one with probability q. A person adds q(1 − q)/(p − q)² to its variance, and a holder
# p(1 − p)/(p − q)² (Wang, Blocki, Li and Jha 2017, Theorem 2).

_WHOLE_BITS = 512
"""Precision at which a real number is rounded to the nearest whole one."""


class LocalReport(CategoryReport, ABC):
    """A report of one of k categories with the privacy losses ε, 0 and −ε."""

    @abstractmethod
    def chances(self) -> tuple[arb, arb]:
        """Return the probabilities that a report contains the true category, and another one."""

    @abstractmethod
    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the probabilities of a report of one alone, of both or none, of the other."""

    @abstractmethod
    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw reports of a category: rows of k bits, 1 for each category in the set."""

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the reports by what they contain."""
        return "the true category under P alone", "both or none", "the true category under Q alone"

    @property
    def dimension(self) -> int:
        """The number of categories, each of which a report has a bit for."""
        return self.categories

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` reports of the category 0, exactly."""
        return self.outputs(0, size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Report every entry of an array of categories, exactly; the bits are a new last axis."""
        draw, k = partial(self.outputs, rng=rng), self.categories
        return release_reports(draw, value, times, inputs=k, width=(k,))

    def estimate(self, reports: ArrayLike) -> Array:
        """Estimate without bias how many of those who report hold each category, in floats."""
        p, q = (float(chance) for chance in self.chances())
        rows = np.asarray(reports).reshape(-1, self.categories)
        found: Array = (rows.sum(axis=0) - len(rows) * q) / (p - q)
        return found

    def variances(self) -> list[arb]:
        """Return [q(1 − q)/(p − q)²]: what one who does not hold it adds to that of a count."""
        p, q = self.chances()
        return [q * (1 - q) / (p - q) ** 2]

    def mean_squared_error(self) -> arb:
        """Return what a person adds to that of all estimates, per category: one of k is held."""
        p, q = self.chances()
        of_others = (self.categories - 1) * q * (1 - q)
        return (p * (1 - p) + of_others) / (p - q) ** 2 / self.categories


class _Bits(LocalReport, ABC):
    """Reports whose bits are independent."""

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return p(1 − q), pq + (1 − p)(1 − q), q(1 − p)."""
        p, q = self.chances()
        listed = [p * (1 - q), p * q + (1 - p) * (1 - q), q * (1 - p)]
        return listed, listed[::-1]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw every bit."""
        reports = _coins(lambda: self.chances()[1], size * self.categories, rng)
        reports = reports.reshape(size, self.categories)
        reports[:, int(answer)] = _coins(lambda: self.chances()[0], size, rng)
        return reports


@declared
class UnaryEncoding(_Bits):
    """Report a bit for each of k categories, the true one's 1, each flipped independently.

    Wang, Blocki, Li and Jha (2017). The symmetric encoding keeps a bit with probability
    p = e^{ε/2}/(1 + e^{ε/2}); the optimised one keeps 1 with probability ½ and turns 0 into 1 with
    probability q = 1/(1 + e^ε), which has the least variance of a count that few people add to.

    Parameters
    ----------
    epsilon
        ε > 0, the largest privacy loss.
    categories
        k ≥ 2.
    optimised
        Whether 1 and 0 are flipped with the two probabilities of the optimised encoding.
    """

    example = "UnaryEncoding(epsilon=1, categories=10, optimised=True)"

    epsilon: Positive = Positive()
    categories: Integer = Integer(least=2)
    optimised: Switch = Switch(False)

    def chances(self) -> tuple[arb, arb]:
        """Return p and q."""
        if self.optimised:
            return arb("0.5"), 1 / (1 + self.epsilon.ball().exp())
        q = 1 / (1 + (self.epsilon.ball() / 2).exp())
        return 1 / (1 + (-self.epsilon.ball() / 2).exp()), q


@declared
class Rappor(_Bits):
    """Report a bit for each of k categories: the permanent response of RAPPOR.

    Erlingsson, Pihur and Korolova (2014): each bit is kept with probability 1 − f, and is else a
    fair coin. That is the symmetric unary encoding at ε = 2 ln((2 − f)/f), with rational chances.

    Parameters
    ----------
    flip
        f in (0, 1), rational.
    categories
        k ≥ 2.
    """

    example = "Rappor(flip='1/2', categories=10)"

    noise_argument = "flip"
    noise_grows = True

    flip: Rational = Rational(least=0, strict=True)
    categories: Integer = Integer(least=2)

    def __post_init__(self) -> None:
        if self.flip >= 1:
            raise expected("flip", self.flip, "< 1", "Give the share of bits that are coins.")

    def chances(self) -> tuple[arb, arb]:
        """Return 1 − f/2 and f/2."""
        return ball(1 - self.flip / 2), ball(self.flip / 2)

    def rational_masses(self, index: int) -> tuple[list[Fraction], list[Fraction]]:
        """Return the masses, which are rational."""
        q = self.flip / 2
        listed = [(1 - q) ** 2, 2 * q * (1 - q), q**2]
        return listed, listed[::-1]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return 0 for both or none; the others are logarithms."""
        return FiniteLaws.exact_losses(self, index)


@declared
class SubsetSelection(LocalReport):
    """Report a set of d categories, with odds e^ε for those that contain the true one.

    Ye and Barg (2018). The true one is in it with probability p = d e^ε/(d e^ε + k − d).

    Parameters
    ----------
    epsilon
        ε > 0, the largest privacy loss.
    categories
        k ≥ 2.
    size
        d in 1..k − 1; by default k/(e^ε + 1) rounded, and at least 1. With d = 1 it is randomised
        response.
    """

    example = "SubsetSelection(epsilon=1, categories=10)"

    epsilon: Positive = Positive()
    categories: Integer = Integer(least=2)
    size: OptionalInteger = OptionalInteger(least=1)

    def __post_init__(self) -> None:
        if self.size is not None and self.size >= self.categories:
            raise expected("size", self.size, f"in 1..{self.categories - 1}")

    @property
    def set_size(self) -> int:
        """The size d."""
        k = self.categories
        return self.size or max(1, nearest("size", lambda: k / (self.epsilon.ball().exp() + 1)))

    def chances(self) -> tuple[arb, arb]:
        """Return p, and (d − p)/(k − 1) of each other."""
        k, d = self.categories, self.set_size
        p = 1 / (1 + (arb(k - d) / d) * (-self.epsilon.ball()).exp())
        return p, (d - p) / (k - 1)

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return p(k − d)/(k − 1), (p(d − 1) + (1 − p)(k − d − 1))/(k − 1), (1 − p)d/(k − 1)."""
        k, d, p = self.categories, self.set_size, self.chances()[0]
        rest = p * (d - 1) + (1 - p) * (k - d - 1)
        listed = [part / (k - 1) for part in (p * (k - d), rest, (1 - p) * d)]
        return listed, listed[::-1]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw whether the true one is in the set, and the others without replacement."""
        k, d, each = self.categories, self.set_size, np.arange(size)
        with_truth = _coins(lambda: self.chances()[0], size, rng)
        reports = np.zeros((size, k), dtype=np.int64)
        reports[:, int(answer)] = with_truth
        others = np.delete(np.arange(k), int(answer))
        order = np.tile(others[:, np.newaxis], size)
        for place in range(d):
            drawn = place + rng.integers(0, k - 1 - place, size)
            order[place], order[drawn, each] = order[drawn, each], order[place].copy()
            more = place < d - with_truth
            reports[each[more], order[place][more]] = 1
        return reports


def _coins(chance: Callable[[], arb], size: int, rng: Randomness) -> Array:
    """Draw bits that are 1 with a probability, exactly."""
    return sampling.indices_by_inversion(lambda: [1 - chance()], size, rng=rng)


def nearest(argument: str, value: Callable[[], arb]) -> int:
    """Return the nearest whole number; raise InvalidInputError where that is too large to tell."""
    with ctx.workprec(_WHOLE_BITS):
        found = (value() + arb("0.5")).floor().unique_fmpz()
    if found is None:
        raise expected(argument, None, "to be given", "Its default is too large for this epsilon.")
    return int(found)

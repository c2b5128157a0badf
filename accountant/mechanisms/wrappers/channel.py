"""Randomisers with finitely many outcomes: tables, randomised response, local reports of sets."""

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
    require_one_length,
)
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.numbers import formula
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import ball, enclose
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair, Masses, hull, masses, over
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import categories, release_integers, release_reports

# --- Entries of a table: rational numbers, or formulas such as exp(1)/(exp(1)+1) ------------------

Entry: TypeAlias = Fraction | ExactReal
"""A probability, as a Fraction if it is rational, else as an ExactReal."""
_BITS = 256
"""Precision of rational upper bounds (`table_above`): compositions ask for δ of float size."""


def law(name: str, value: object) -> tuple[Entry, ...]:
    """Return the probabilities of a law.

    Raises InvalidInputError if an entry is negative, the sum is not exactly 1, or the sum has too
    many terms to check.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return probabilities(name, value)  # raises, and says what is expected
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
    """Return the sum; raise ArithmeticError if it has too many terms."""
    parts: dict[object, formula.Quotient] = {}
    for value in values:  # add up values with a common denominator first
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
    """Return a ball around each entry."""
    return [_ball(entry) for entry in entries]


class TableLaws(FiniteLaws):
    """Finite laws that are given as rows of a table."""

    @abstractmethod
    def rows(self, index: int) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Return the probabilities of P and of Q, in the same order of outcomes."""

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return balls around the probabilities of P and of Q."""
        p, q = self.rows(index)
        return balls(p), balls(q)

    def rational_masses(self, index: int) -> Masses | None:
        """Return the probabilities of P and of Q if all are rational, else None."""
        p, q = (tuple(e for e in row if isinstance(e, Fraction)) for row in self.rows(index))
        return (p, q) if len(p) == len(q) == len(self.rows(index)[0]) else None

    def table_above(self, index: int) -> Masses:
        """Return rational masses whose profile is an upper bound, larger by about 2⁻²⁵⁶."""
        if (exact := self.rational_masses(index)) is not None:
            return exact
        with ctx.workprec(_BITS):
            p, q = (
                [(max(fraction(b.lower()), Fraction(0)), fraction(b.upper())) for b in law]
                for law in self.masses(index)
            )
        return masses(hull(over(p, q)))

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ln(p/q) of each outcome, or None if it is not known to be algebraic.

        For rational tables see `FiniteLaws`.
        """
        if self.rational_masses(index) is not None:
            return super().exact_losses(index)
        return list(map(_log_ratio, *self.rows(index)))


def _entry(name: str, value: object) -> Entry:
    number = exact(value, name)  # type: ignore[arg-type]  # exact raises for other types
    if number.sign < 0:
        raise expected(name, number, "≥ 0")
    return _known(number)


@functools.lru_cache(maxsize=4096)
def _log_ratio(p: Entry, q: Entry) -> ExactReal | None:
    """Return ln(p/q) for p, q ≥ 0 if it is algebraic; None if not, or if it is too long."""
    if p == 0 or q == 0:
        return None
    try:
        ratio = formula.times(_quotient(p), formula.inverse(_quotient(q)))
        exponent = formula.algebraic_log(ratio)
    except ArithmeticError:
        return None
    return None if exponent is None else ExactReal.of_quotient(exponent)


Rows: TypeAlias = tuple[tuple[Entry, ...], ...]
Edges: TypeAlias = tuple[tuple[int, int], ...]
_MOST_INPUTS = 100
"""Limit on the inputs: every question examines all ordered pairs of rows, here 9,900."""


@final
class Stochastic(Field[Rows, Any]):
    """A field with two or more probability vectors of equal length, given as a list or an array."""

    def read(self, value: Any) -> Rows:
        """Return the rows; an error names the entry or the row that is invalid."""
        name = self._name
        listed = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
            raise expected(name, value, "to be a list of rows", 'Write [["3/4", "1/4"], …].')
        if not 2 <= len(listed) <= _MOST_INPUTS:
            raise InvalidInputError(
                f"Expected {name} of 2 to {_MOST_INPUTS} rows, not {len(listed)}."
            )
        rows = tuple(law(f"{name}[{i}]", row) for i, row in enumerate(listed))
        require_one_length(name, rows, listed)
        return rows


@final
class Graph(Field[Edges | None, Any]):
    """A field with pairs of different integers ≥ 0; None means all pairs."""

    def read(self, value: Any) -> Edges | None:
        """Return the pairs; an error names the pair that is invalid."""
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
    """Report the outcome j for an input i with probability matrix[i][j].

    Parameters
    ----------
    matrix
        A list of rows or an array, with one row for each input and one column for each outcome.
        The entries are rational numbers ≥ 0, or formulas with + - * / **, exp and sqrt, such as
        "exp(1)/(exp(1)+1)". Each row sums to exactly 1.
    neighbours
        Pairs [i, j] of neighbouring inputs, counted from 0. By default every two inputs are
        neighbours.

    Notes
    -----
    Without `neighbours` the input is one record, and neighbours replace it (local differential
    privacy). With `neighbours` the inputs may be datasets, and the pairs define the neighbouring
    relation, whatever relation a question names. The profile is the maximum over all pairs of
    neighbouring rows, in both orders. Pairs of rows that have the same entries (p, q) in another
    order of the outcomes have the same profile, so only one of them is listed.
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
        """Return the cached hash; every pair of rows needs it."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.matrix, self.neighbours))

    @cached_property
    def _different(self) -> list[int]:
        """The indices i·inputs + j of ordered pairs of rows, one for each multiset of entries."""
        found: dict[tuple[tuple[int, int], ...], int] = {}
        names: dict[Entry, int] = {}
        named = [[names.setdefault(entry, len(names)) for entry in row] for row in self.matrix]
        edges = self.neighbours or combinations(range(len(self.matrix)), 2)
        for i, j in sorted({way for a, b in edges for way in ((a, b), (b, a))}):
            entries = sorted(zip(named[i], named[j], strict=True))
            found.setdefault(tuple(entries), i * len(self.matrix) + j)
        return list(found.values())

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return all ordered pairs of neighbouring rows.

        Raises AdjacencyError under add/remove if there are no `neighbours`.
        """
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
        """Return the column numbers 0, …, n − 1."""
        return range(len(self.matrix[0]))

    def rows(self, index: int) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Return the rows of the pair of inputs with this index."""
        i, j = divmod(index, len(self.matrix))
        return self.matrix[i], self.matrix[j]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` reports of input 0, exactly."""
        return self.outputs(0, size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` reports of every entry of an array of inputs 0, …, n − 1, exactly."""
        draw = partial(self.outputs, rng=rng)
        return release_reports(draw, value, times, inputs=len(self.matrix))

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the listed pairs of inputs."""
        return [divmod(index, len(self.matrix)) for index in self._different]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw `size` reports of an input, exactly."""
        row = self.matrix[int(answer)]
        return sampling.indices_by_inversion(
            lambda: list(accumulate(balls(row)))[:-1], size, rng=rng
        )


# --- Randomised response --------------------------------------------------------------------------


class CategoryReport(Mechanism, FiniteLaws, ABC):
    """A report of one person's category out of k, with privacy losses ε, 0 and −ε."""

    noise_argument = "epsilon"
    noise_grows = False

    categories: Integer

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the laws of the reports of two categories.

        Raises AdjacencyError under add/remove.
        """
        refuse_added(adjacency, self)
        return WorstCase.symmetric(
            FinitePair(self, 0),
            "Renaming the categories maps every pair of different true categories to every other.",
        )

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ε, 0, −ε."""
        epsilon: ExactReal = self.epsilon  # Rappor, which has no epsilon, overrides this
        return [epsilon, ExactReal.of_rational(0), -epsilon]

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return one pair of categories: by symmetry all pairs are equivalent."""
        return [(0, 1)]


@declared
class RandomizedResponse(CategoryReport):
    """Report one person's category: the truth is e^ε times as likely as each other category.

    The true category is reported with probability e^ε/(e^ε + k − 1) and each other one with
    probability 1/(e^ε + k − 1) (Warner 1965 for k = 2; Kairouz, Bonawitz and Ramage 2016).

    Parameters
    ----------
    epsilon
        ε ≥ 0, the largest privacy loss.
    categories
        k ≥ 2, the number of categories.

    Notes
    -----
    The input is one record and neighbours replace it; the add/remove relation does not apply.
    """

    example = "RandomizedResponse(epsilon=1, categories=4)"

    epsilon: NonNegative = NonNegative()
    categories: Integer = Integer(2, least=2)

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the names of the three kinds of reports."""
        return "the true category under P", "another category", "the true category under Q"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the probabilities of the three kinds of reports."""
        true, other = self._probabilities()
        rest = (self.categories - 2) * other
        return [true, rest, other], [other, rest, true]

    def error_probability(self) -> arb:
        """Return the probability (k − 1)/(e^ε + k − 1) that the report is wrong."""
        return (self.categories - 1) * self._probabilities()[1]

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw (report − truth) mod k for `size` reports, exactly."""
        lies = sampling.indices_by_inversion(lambda: [self._probabilities()[0]], size, rng=rng)
        return lies * rng.integers(1, self.categories, size)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` reports of every entry of an array of categories 0..k − 1, exactly."""
        truth = categories(value, self.categories)
        reports = release_integers(lambda count: self.sample(count, rng=rng), truth, times)
        return reports % self.categories

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` reports if `answer` is the true category."""
        reports: Array = (self.sample(size, rng=rng) + int(answer)) % self.categories
        return reports

    def variances(self) -> list[arb]:
        """Return [p(1 − p)], the variance of a reported bit that is true with probability p.

        Raises NotApplicableError for more than two categories, because they are not numbers.
        """
        self._require_bit("variance")
        true, other = self._probabilities()
        return [true * other]

    def mean_squared_error(self) -> arb:
        """Return 1 − p, the probability of a wrong bit; it includes the bias of the report.

        Raises NotApplicableError for more than two categories.
        """
        self._require_bit("mean squared error")
        return self.error_probability()

    def _probabilities(self) -> tuple[arb, arb]:
        """Return the probabilities of the true category and of each other one."""
        odds = (-self.epsilon.ball()).exp()
        true = 1 / (1 + (self.categories - 1) * odds)
        return true, odds * true

    def _require_bit(self, question: str) -> None:
        if self.categories > 2:
            raise NotApplicableError(
                f"RandomizedResponse over {self.categories} categories has no {question}: its "
                "reports are names. Ask for error_probability()."
            )


# --- A given pair of finite laws ------------------------------------------------------------------


@declared
class Tabulated(Mechanism, TableLaws):
    """A mechanism given by the laws of its outcomes 0, …, n − 1 on one pair of neighbours.

    Parameters
    ----------
    p, q
        Probabilities of the outcomes, in the same order; each sums to exactly 1. The entries are
        rational numbers, or formulas with + - * / **, exp and sqrt. REMOVE compares p with q, ADD
        compares q with p.

    Notes
    -----
    Guarantees hold for these two datasets only, under any relation. They hold for a mechanism if
    this pair is its worst one, which is not checked. `sample` draws outcomes from p.
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
        """Return (p, q) for REMOVE and (q, p) for ADD."""
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
        """Return the two datasets: 0 has law p, 1 has law q."""
        return [(0, 1)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` outcomes from p if `answer` is 0, else from q."""
        law = self if answer == 0 else Tabulated(self.q, self.p)
        return law.sample(size, rng=rng)


# --- Local reports that are sets of categories, biased towards the true one -----------------------
#
# The likelihood ratio of a report for two true categories depends only on which of the two it
# contains. The loss is ε if it contains only the true category under P, −ε if it contains only the
# true category under Q, and 0 otherwise. Renaming the categories maps every pair to every other.
# So a single pair of laws on three outcomes is worst, in both directions; each mechanism gives its
# masses.
#
# Suppose that a report contains the true category with probability p and each other category with
# probability q. If m of n reports contain a category, then (m − nq)/(p − q) is an unbiased estimate
# of the number of people who hold it. A person who holds it adds p(1 − p)/(p − q)² to the variance,
# and any other person q(1 − q)/(p − q)² (Wang, Blocki, Li and Jha 2017, Theorem 2).

_WHOLE_BITS = 512
"""Precision at which a real number is rounded to the nearest integer."""


class LocalReport(CategoryReport, ABC):
    """A report of one of k categories that is itself a set of categories."""

    @abstractmethod
    def chances(self) -> tuple[arb, arb]:
        """Return (p, q): the probability that a report contains the true, or a given other one."""

    @abstractmethod
    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw `size` reports of a category: rows of k bits, 1 for each category in the set."""

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the names of the three outcomes: which of the two true categories is reported."""
        return "the true category under P alone", "both or none", "the true category under Q alone"

    @property
    def dimension(self) -> int:
        """k, the number of categories and of bits of a report."""
        return self.categories

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` reports of category 0, exactly."""
        return self.outputs(0, size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` reports of every entry of an array, exactly; the last axis is the k bits."""
        draw, k = partial(self.outputs, rng=rng), self.categories
        return release_reports(draw, value, times, inputs=k, width=(k,))

    def estimate(self, reports: ArrayLike) -> Array:
        """Return unbiased estimates, in floats, of how many people hold each category.

        `reports` is an array of bits whose last axis has length k.
        """
        p, q = (float(chance) for chance in self.chances())
        rows = np.asarray(reports).reshape(-1, self.categories)
        found: Array = (rows.sum(axis=0) - len(rows) * q) / (p - q)
        return found

    def variances(self) -> list[arb]:
        """Return [q(1 − q)/(p − q)²], the variance of a count per person who does not hold it."""
        p, q = self.chances()
        return [q * (1 - q) / (p - q) ** 2]

    def mean_squared_error(self) -> arb:
        """Return the variance that a person adds to an estimate, averaged over the k categories."""
        p, q = self.chances()
        of_others = (self.categories - 1) * q * (1 - q)
        return (p * (1 - p) + of_others) / (p - q) ** 2 / self.categories


class _Bits(LocalReport, ABC):
    """Local reports with independent bits."""

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return P = (p(1 − q), pq + (1 − p)(1 − q), q(1 − p)) and Q, which is P reversed."""
        p, q = self.chances()
        listed = [p * (1 - q), p * q + (1 - p) * (1 - q), q * (1 - p)]
        return listed, listed[::-1]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw `size` reports, exactly: the bit of `answer` is 1 with probability p, others q."""
        reports = _coins(lambda: self.chances()[1], size * self.categories, rng)
        reports = reports.reshape(size, self.categories)
        reports[:, int(answer)] = _coins(lambda: self.chances()[0], size, rng)
        return reports


@declared
class UnaryEncoding(_Bits):
    """Report k bits, of which the true category's is 1, after flipping each bit independently.

    Wang, Blocki, Li and Jha (2017). The symmetric encoding keeps each bit with probability
    e^{ε/2}/(1 + e^{ε/2}). The optimised encoding keeps 1 with probability ½ and turns 0 into 1 with
    probability 1/(1 + e^ε), which minimises the variance of small counts.

    Parameters
    ----------
    epsilon
        ε > 0, the largest privacy loss.
    categories
        k ≥ 2.
    optimised
        Whether to use the optimised encoding. The default is the symmetric one.
    """

    example = "UnaryEncoding(epsilon=1, categories=10, optimised=True)"

    epsilon: Positive = Positive()
    categories: Integer = Integer(least=2)
    optimised: Switch = Switch(False)

    def chances(self) -> tuple[arb, arb]:
        """Return (p, q), the probabilities that a bit is reported as 1 if it is 1, or 0."""
        if self.optimised:
            return arb("0.5"), 1 / (1 + self.epsilon.ball().exp())
        q = 1 / (1 + (self.epsilon.ball() / 2).exp())
        return 1 / (1 + (-self.epsilon.ball() / 2).exp()), q


@declared
class Rappor(_Bits):
    """Report a bit for each of k categories: the permanent response of RAPPOR.

    Erlingsson, Pihur and Korolova (2014): each bit is kept with probability 1 − f, and otherwise
    replaced by a fair coin. This is the symmetric unary encoding with ε = 2 ln((2 − f)/f), whose
    probabilities are rational.

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
        """Return P = ((1 − q)², 2q(1 − q), q²), with q = f/2, and Q, which is P reversed."""
        q = self.flip / 2
        listed = [(1 - q) ** 2, 2 * q * (1 - q), q**2]
        return listed, listed[::-1]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return 0 for the middle outcome and None for the others, which are logarithms."""
        return FiniteLaws.exact_losses(self, index)


@declared
class SubsetSelection(LocalReport):
    """Report a set of d categories: each set with the true one is e^ε times as likely as others.

    Ye and Barg (2018). The set contains the true category with probability
    p = d e^ε/(d e^ε + k − d).

    Parameters
    ----------
    epsilon
        ε > 0, the largest privacy loss.
    categories
        k ≥ 2.
    size
        d in 1..k − 1. The default is k/(e^ε + 1), rounded, but at least 1. With d = 1 the mechanism
        is randomised response.
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
        """d, the size of the reported set."""
        k = self.categories
        return self.size or max(1, _nearest(lambda: k / (self.epsilon.ball().exp() + 1)))

    def chances(self) -> tuple[arb, arb]:
        """Return p and q = (d − p)/(k − 1)."""
        k, d = self.categories, self.set_size
        p = 1 / (1 + (arb(k - d) / d) * (-self.epsilon.ball()).exp())
        return p, (d - p) / (k - 1)

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the law P below and Q, which is P reversed.

        P = (p(k − d), p(d − 1) + (1 − p)(k − d − 1), (1 − p)d)/(k − 1).
        """
        k, d, p = self.categories, self.set_size, self.chances()[0]
        rest = p * (d - 1) + (1 - p) * (k - d - 1)
        listed = [part / (k - 1) for part in (p * (k - d), rest, (1 - p) * d)]
        return listed, listed[::-1]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw `size` reports, exactly.

        First draw whether the set contains the true category, then fill it with other categories,
        drawn without replacement.
        """
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
    """Draw `size` bits that are 1 with the given probability, exactly."""
    return sampling.indices_by_inversion(lambda: [1 - chance()], size, rng=rng)


def _nearest(value: Callable[[], arb]) -> int:
    """Return the nearest integer; raise InvalidInputError if the value is too large to round."""
    with ctx.workprec(_WHOLE_BITS):
        found = (value() + arb("0.5")).floor().unique_fmpz()
    if found is None:
        raise expected("size", None, "to be given", "Its default is too large for this epsilon.")
    return int(found)

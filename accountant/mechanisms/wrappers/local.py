"""Reports of one person's category: every report is a set of categories, the true one more likely.

What a report says of two categories is which of them it contains. Whichever other categories there
are, it has the loss ε where it contains the true one under P alone, −ε where it contains the true
one under Q alone, and 0 elsewhere; renaming the categories maps every pair of them to every other.
So one pair of three outcomes is worst, in both directions, and each mechanism states its masses.

The number of people who hold a category is estimated without bias: of n reports m contain it, and
(m − nq)/(p − q) is the estimate, where a report contains the true category with probability p and
each other one with probability q. A person adds q(1 − q)/(p − q)² to its variance, and a holder
p(1 − p)/(p − q)² (Wang, Blocki, Li and Jha 2017, Theorem 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from flint import arb

from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, OptionalInteger, Positive, Rational, Switch
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.wrappers.randomized_response import CategoryReport
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import FiniteLaws
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import release_reports

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
class LocalHashing(_Bits):
    """Report a random hash function and, by randomised response, the bucket of the category.

    Wang, Blocki, Li and Jha (2017). The function is uniform among all from k categories to g
    buckets. Here a report lists which categories lie in the reported bucket: nothing else in it
    depends on the truth. Given the bucket, the others are in it independently, with probability
    1/g; the true one with probability p = e^ε/(e^ε + g − 1).

    Parameters
    ----------
    epsilon
        ε > 0, the largest privacy loss.
    categories
        k ≥ 2.
    buckets
        g ≥ 2; by default e^ε + 1 rounded, which has nearly the least variance.
    """

    example = "LocalHashing(epsilon=1, categories=10)"

    epsilon: Positive = Positive()
    categories: Integer = Integer(least=2)
    buckets: OptionalInteger = OptionalInteger(least=2)

    def chances(self) -> tuple[arb, arb]:
        """Return p and 1/g."""
        g = self.buckets or nearest("buckets", lambda: self.epsilon.ball().exp()) + 1
        return 1 / (1 + (g - 1) * (-self.epsilon.ball()).exp()), arb(1) / g


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
    def _size(self) -> int:
        k = self.categories
        return self.size or max(1, nearest("size", lambda: k / (self.epsilon.ball().exp() + 1)))

    def chances(self) -> tuple[arb, arb]:
        """Return p, and (d − p)/(k − 1) of each other."""
        k, d = self.categories, self._size
        p = 1 / (1 + (arb(k - d) / d) * (-self.epsilon.ball()).exp())
        return p, (d - p) / (k - 1)

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return p(k − d)/(k − 1), (p(d − 1) + (1 − p)(k − d − 1))/(k − 1), (1 − p)d/(k − 1)."""
        k, d, p = self.categories, self._size, self.chances()[0]
        rest = p * (d - 1) + (1 - p) * (k - d - 1)
        listed = [part / (k - 1) for part in (p * (k - d), rest, (1 - p) * d)]
        return listed, listed[::-1]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw whether the true one is in the set, and the others without replacement."""
        k, d, each = self.categories, self._size, np.arange(size)
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


@declared
class HadamardResponse(LocalReport):
    """Report one of K columns of a Hadamard matrix, with odds e^ε where the row of the truth is +1.

    Acharya, Sun and Zhang (2019), for high privacy: K is the least power of two above k, and
    category x has row x + 1 of the K × K matrix of Sylvester. Two rows agree in half of the
    columns, and each of two is +1 alone in a quarter. A report lists the categories whose rows are
    +1 in its column: the true one with probability p = e^ε/(1 + e^ε), each other with ½.

    Parameters
    ----------
    epsilon
        ε > 0, the largest privacy loss.
    categories
        k ≥ 2.
    """

    example = "HadamardResponse(epsilon=1, categories=10)"

    epsilon: Positive = Positive()
    categories: Integer = Integer(least=2)

    def chances(self) -> tuple[arb, arb]:
        """Return p and ½."""
        return 1 / (1 + (-self.epsilon.ball()).exp()), arb("0.5")

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return p/2, ½, (1 − p)/2."""
        odds = (-self.epsilon.ball()).exp()
        p = 1 / (1 + odds)
        listed = [p / 2, arb("0.5"), p * odds / 2]
        return listed, listed[::-1]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw a column, and move it where it should be +1 and is not, or the reverse.

        Entry (r, c) is −1 to the number of bits that r and c share: to change the lowest bit of r
        in c changes it, one column for one.
        """
        row = int(answer) + 1
        plus = _coins(lambda: self.chances()[0], size, rng)
        column = rng.integers(0, 1 << self.categories.bit_length(), size)
        wrong = np.bitwise_count(column & row) % 2 == plus
        column = np.where(wrong, column ^ (row & -row), column)
        rows = np.arange(1, self.categories + 1)
        reports: Array = 1 - np.bitwise_count(column[:, np.newaxis] & rows) % 2
        return reports.astype(np.int64)


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

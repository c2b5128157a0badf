"""Statements of optimisation problems, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb, fmpq

from dpassay.accountant.core.validate import Description, Field, Integer, OneOf, OptionalInteger
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.numbers.exact import ExactReal, Number, exact

Value: TypeAlias = fmpq | arb
"""A number: rational if E = e^ε is, else a ball."""

COUNT_OBJECTIVES = ("singular", "true-delta")
_BYTES_PER_SQUARE = 32
"""Measured memory over D² of a law of support D, whose numbers have a few D digits each."""
_BYTES_PER_TERM = 700
"""Measured memory per matrix entry, for the objective "singular"."""
_BYTES_PER_SLACK = 100_000
"""Measured memory per slack variable, including exact numbers, for the objective "true-delta"."""
_MOST_BYTES = 2 << 30
"""Maximal memory of a program: 2 GiB."""


@final
class OptionalReal(Field[ExactReal | None, Number | None]):
    """A number ≥ `least`, or None."""

    def __init__(self, *, least: int) -> None:
        super().__init__(None)
        self._least = least

    def read(self, value: Number | None) -> ExactReal | None:
        """Convert unless None, and require ≥ `least`."""
        if value is None:
            return None
        number = exact(value, self._name)
        if number < ExactReal.of_rational(self._least):
            raise expected(self._name, value, f"≥ {self._least}")
        return number


def _share(name: str, value: Number) -> Fraction:
    number = exact(value, name).rational
    if number is None or not 0 < number < 1:
        raise expected(name, value, "to be rational and in (0, 1)", "Give it exactly.")
    return number


@final
class Share(Field[Fraction, Number]):
    """A rational number in the open interval (0, 1)."""

    def read(self, value: Number) -> Fraction:
        """Convert, and require a rational number strictly between 0 and 1."""
        return _share(self._name, value)


@final
class OptionalShare(Field[Fraction | None, Number | None]):
    """A rational number in the open interval (0, 1), or None."""

    def __init__(self) -> None:
        super().__init__(None)

    def read(self, value: Number | None) -> Fraction | None:
        """Convert unless None."""
        return None if value is None else _share(self._name, value)


class WithRatio(Description):
    """A problem that is given either ε ≥ 0 or a rational E = e^ε ≥ 1."""

    epsilon: OptionalReal
    ratio: OptionalReal

    def require_one_ratio(self) -> None:
        """Require exactly one of ε and E."""
        if (self.epsilon is None) == (self.ratio is None):
            given = "neither" if self.ratio is None else "both"
            raise InvalidInputError(
                f"Expected one of epsilon and ratio, not {given}. "
                "Give epsilon, or ratio = e^epsilon for exact answers."
            )
        if self.ratio is not None and self.ratio.rational is None:
            raise expected("ratio", self.ratio, "to be rational", "Give epsilon instead.")

    @property
    def is_rational(self) -> bool:
        """Whether E is rational. The optimum is then rational too."""
        return self.ratio is not None or (self.epsilon is not None and self.epsilon.sign == 0)

    def exponential(self) -> Value:
        """Return E: exactly if it is rational, else as a ball at the current precision."""
        if self.ratio is not None and self.ratio.rational is not None:
            return to_fmpq(self.ratio.rational)
        if self.epsilon is None or self.epsilon.sign == 0:
            return fmpq(1)
        return self.epsilon.ball().exp()


@final
@dataclass(frozen=True, repr=False)
class CountNoiseProblem(WithRatio):
    """Bounded noise Z for a count n, as in Section II of Sadeghi, Asoodeh and Calmon.

    The released value is Y = n + Z, where Z satisfies (P1) −min(n, D) ≤ Z ≤ D,
    (P2) P(Z = 0 | n) = η and (P3) E[Z | n] = 0. The problem is to find, over all such laws, the
    least δ with

        P(Y = y | n) ≤ E·P(Y = y | n') + δ    for all y and all neighbours n' = n ± 1,

    where E = e^ε. These are the singular events of Proposition 2, eqs. (7) and (8).

    Parameters
    ----------
    eta
        η, a rational number in (0, 1).
    support
        D, an integer ≥ 1.
    epsilon
        ε ≥ 0. Give either `epsilon` or `ratio`.
    ratio
        E = e^ε, rational and ≥ 1. The answers are then exact fractions.
    max_count
        N. Each count n in min_count..N has its own law (Proposition 2). None asks for a single law
        for all counts n ≥ D (the "data-independent" program of Section III).
    objective
        "singular" minimises the δ of single outcomes above. "true-delta" minimises the δ of
        (ε, δ)-DP, max over n, n' of Σ_y max(0, P(Y = y | n) − E·P(Y = y | n'))
        (see `dpassay.lp.search`).
    min_count
        The least count that occurs.
    """

    eta: Share = Share()
    support: Integer = Integer(least=1)
    epsilon: OptionalReal = OptionalReal(least=0)
    ratio: OptionalReal = OptionalReal(least=1)
    max_count: OptionalInteger = OptionalInteger(least=1)
    objective: OneOf = OneOf(*COUNT_OBJECTIVES, default="singular")
    min_count: Integer = Integer(1, least=1)

    def __post_init__(self) -> None:
        self.require_one_ratio()
        if self.min_count > (self.max_count or 1):
            raise expected(
                "min_count",
                self.min_count,
                f"≤ {self.max_count or 1}",
                "It is the least of the counts up to max_count, and 1 without max_count.",
            )
        cells = self.columns * 3 * self.support
        single = self.objective == "singular"
        estimate = cells * (3 * _BYTES_PER_TERM if single else _BYTES_PER_SLACK)
        estimate = max(estimate, _BYTES_PER_SQUARE * self.support**2)
        if estimate > _MOST_BYTES:
            raise expected(
                "support",
                self.support,
                f"to give a program that fits into {_MOST_BYTES >> 30} GiB",
                f"It would take about {estimate / (1 << 30):.0f} GiB.",
            )

    @property
    def columns(self) -> int:
        """Number of laws in the program: at most D + 1, since larger counts share a law."""
        if self.counts is None:
            return 1
        return min(self.counts, self.support + 1)

    @property
    def counts(self) -> int | None:
        """Number of counts, each with its own law; None if one law serves all."""
        return None if self.max_count is None else self.max_count - self.min_count + 1

    def lowest(self, count: int) -> int:
        """Return the least value of the noise at a count: −min(n, D)."""
        return -min(count, self.support)


def middle(value: Value) -> arb:
    """Return the midpoint of a ball; a rational number is converted first."""
    return arb(value).mid()


def to_fmpq(value: Fraction | int) -> fmpq:
    """Convert a Python rational to python-flint's."""
    value = Fraction(value)
    return fmpq(value.numerator, value.denominator)


def to_fraction(value: fmpq) -> Fraction:
    """Convert a python-flint rational to Python's."""
    return Fraction(int(value.p), int(value.q))

"""The sensitivity of a strategy: how far one record moves C x, proved or enclosed.

For Toeplitz C the first columns are the longest, and three cases of
`dpassay.accountant.counting.participation` need no inner products: one participation; bands that
end before the next one, so that columns are orthogonal; and coefficients c_0 ≥ c_1 ≥ … ≥ 0 (any c ≥
0, where steps are exactly b apart: G_{i+1,j+1} ≤ G_ij alone moves a pattern to the first step). All
others go through CᵀC.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.counting.participation import (
    Most,
    Participation,
    Record,
    largest,
    progression,
)
from dpassay.accountant.counting.strategies import Dense, Toeplitz
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx


@final
@dataclass(frozen=True)
class ColumnSensitivity:
    """Δ² = max ‖Σ_{i∈π} u_i ⊗ C_{·i}‖² over the patterns π of a schema and ‖u_i‖ ≤ 1."""

    matrix: Toeplitz | Dense
    schema: Participation

    @cached_property
    def _in_order(self) -> str | None:
        """Say why participations from the first step on are worst; None where that is open."""
        c = self.matrix
        if not isinstance(c, Toeplitz):
            return None
        if self.schema.most == 1:
            return "The first column is the longest."
        if c.bands <= self.schema.separation:
            return "Columns of one record are orthogonal, and earlier ones are longer."
        if c.decreases or (c.nonnegative and self.schema.schema != "min-separation"):
            return (
                "Coefficients are not negative, and inner products of columns fall with time"
                + (" and distance" if c.decreases else "")
                + ": participations from the first step on, as close as may be, are worst."
            )
        return None

    @cached_property
    def _most(self) -> tuple[Most, int]:
        """What is proved of Δ² from CᵀC, and its denominator."""
        dense = self.matrix.dense() if isinstance(self.matrix, Toeplitz) else self.matrix
        if dense is None:
            raise NotApplicableError(
                "The sensitivity of a Toeplitz strategy whose coefficients rise or are negative "
                "takes the inner products of all columns, here of too many digits. Give at most "
                "1024 steps and shorter coefficients, or separation ≥ bands."
            )
        return largest(dense.gram, self.schema), dense.below**2

    @property
    def reason(self) -> str:
        """Why the worst pattern is that, or between what its sensitivity lies."""
        return self._in_order or self._most[0].reason

    @property
    def record(self) -> Record:
        """The steps and signs of a record that attains it, or the least that is proved."""
        if self._in_order is None:
            return self._most[0].record
        return dict.fromkeys(self.schema.first(), 1)

    @cached_property
    def exact(self) -> Fraction | None:
        """Δ², where it is proved and rational of not too many digits, else None."""
        if self._in_order is None:
            low, high = self.ends
            return low if low == high else None
        assert isinstance(self.matrix, Toeplitz)
        if self.matrix.exact is None:
            return None
        integers, below = self.matrix.exact
        return Fraction(progression(integers, self.schema, 0), below**2)

    @property
    def is_open(self) -> bool:
        """Whether Δ² is only enclosed, by `ends`."""
        return self._in_order is None and self.exact is None

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """What Δ² lies between, from CᵀC."""
        most, below = self._most
        return Fraction(most.lower, below), Fraction(most.upper, below)

    def ball(self) -> arb:
        """Return Δ² as a ball: as wide as what is not known of it."""
        if self.is_open:
            low, high = self.ends
            return ball(low).union(ball(high))
        if self.exact is not None:
            return ball(self.exact)
        precision, known = int(ctx.prec), self._by_precision
        if precision not in known:
            assert isinstance(self.matrix, Toeplitz)
            known[precision] = progression(self.matrix.balls(), self.schema, arb(0))
        return known[precision]

    @cached_property
    def _by_precision(self) -> dict[int, arb]:
        return {}

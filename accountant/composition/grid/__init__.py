"""Two laws on a grid that bracket any product of pairs, in floats with proved errors.

The engine loads what it takes when it is first asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.composition.grid.plan import samples_sums
from dpassay.accountant.composition.product import Engine, Product
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import GRID_WIDTH, Interval

SELDOM_BELOW = Fraction(1, 10**8)
"""A relative width below which a grid hardly ever answers, after minutes."""
OF_SUMS = Fraction(1, 10**4)
"""The relative width that comes soon of samples of several releases: of their sum (`grid.sums`)."""


@final
@dataclass(frozen=True)
class Grid(Engine):
    """Two laws on a grid that bracket the product; each pair is asked for its tails alone."""

    most: int | None = None
    """Grid points at most, if that is said."""

    numerical = True

    def width(self, product: Product) -> Fraction:
        """Return the relative width that grids reach within about a second."""
        return OF_SUMS if samples_sums(product) else GRID_WIDTH

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a ball around the two bounds."""
        from dpassay.accountant.composition.grid import plan

        return plan.profile(product, epsilon, self.most)

    def inverse(self, product: Product, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by the points at which the two bounds pass δ."""
        from dpassay.accountant.composition.grid import plan

        return plan.bracket_inverse(product, delta, relative_width, self.most)

    def inverse_near(
        self, product: Product, delta: ExactReal, relative_width: Fraction, start: float | None
    ) -> Interval:
        """Enclose ε(δ), searched from an estimate of it, if there is one."""
        from dpassay.accountant.composition.grid import plan

        return plan.bracket_inverse(product, delta, relative_width, self.most, start)

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the upper bound on the coarsest grid."""
        from dpassay.accountant.composition.grid import plan

        return plan.coarsest(product, epsilon)


GRID = Grid()

"""Counters whose outputs show less than the measured sums: there are more sums than outputs."""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from fractions import Fraction

from flint import arb

from dpassay.accountant.composition.exact.laplace_product import of_distances
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.validate import OneOf
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.counting.linear_counter import LinearCounter
from dpassay.accountant.mechanisms.wrappers.tabulated import Tabulated
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian import GaussianPair

_UNKNOWN = "what the outputs alone tell"


class PartlyShown(LinearCounter, ABC):
    """A counter of which the outputs count as released, or all measured sums.

    `released` is "outputs", A x + L z, or "measurements", R x + z, of which the outputs are a
    function: no less private, and attained. What the outputs tell of Gaussian noise is exact
    (`dpassay.accountant.counting.shown`). Of Laplace noise it lies between a measured sum that is
    an output and all of them; the largest loss is that of all.
    """

    released: OneOf

    @abstractmethod
    def shown(self) -> list[Fraction | arb]:
        """Return the squared distance that outputs show, in units of the noise, or its two ends.

        A ball, at flint's precision, where it has too many digits.
        """

    @property
    @abstractmethod
    def alone(self) -> int:
        """How many of the measured sums that an input moves are outputs by themselves."""

    @property
    @abstractmethod
    def shows_largest_loss(self) -> bool:
        """Whether the outputs are proved to have the largest loss of the measured sums."""

    def releasing(self, what: str) -> PartlyShown:
        """Return the same counter with its "outputs", or its "measurements"."""
        return dataclasses.replace(self, released=what)  # type: ignore[type-var]  # all are dataclasses

    @property
    def _hides(self) -> bool:
        """Whether the outputs are asked about, and tell less than the measured sums."""
        known = self.contributions == 1 or self.worst_positions() is not None
        return self.released == "outputs" and known and self.alone < len(self.distances)

    @property
    def _is_open(self) -> bool:
        """Whether only two ends are known."""
        return self._hides and (self.mu is None or len(self.shown()) > 1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of what is released; no matter which relation.

        Raises NotApplicableError as `LinearCounter` does.
        """
        if not self._hides:
            return super().worst_case(adjacency)
        if self.mu is None:
            (most,) = self.releasing("measurements").worst_case(adjacency).remove
            least: Pair = of_distances([ExactReal.of_rational(1) / self.scale])
            if not self.alone:
                (least,) = Tabulated(["1"], ["1"]).worst_case(None).remove
            largest = most.exact_max_loss() if self.shows_largest_loss else None
            return WorstCase.symmetric(
                Between((least,), most, _UNKNOWN, largest),
                "The outputs are a function of the measured sums, whose pair is above. Below: a "
                "measured sum that is an output by itself, or nothing.",
            )
        pair: Pair = GaussianPair(self, None)
        if self._is_open:
            ends = [ExactReal.of_root(end) for end in self.shown() if isinstance(end, Fraction)]
            low, high = (GaussianPair(Gaussian(self.scale, end), None) for end in ends)
            pair = Between((low,), high, _UNKNOWN)
        return WorstCase.symmetric(
            pair,
            "A person moves the outputs A x + L z by A e, of which Gaussian noise hides "
            "(A e)'(L L')^-1(A e) least for the worst positions.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return μ of what is released, where it is the root of a fraction."""
        if self.mu is None or not self._hides:
            return super().exact_gaussian_mu(adjacency)
        first, *other = self.shown()
        if other or isinstance(first, arb):
            return None
        return ExactReal.of_root(first) / self.scale

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return the same as a ball, around both ends where there are two."""
        if self.mu is None:
            return super().enclosed_gaussian_mu(adjacency)
        ends = [end if isinstance(end, arb) else ball(end) for end in self.shown()]
        return functools.reduce(arb.union, ends).sqrt() / self.scale.ball()

    @property
    def only_alone(self) -> str:
        """Say what to compose where there are two ends."""
        if not self._is_open:
            return super().only_alone
        return (
            f"What the outputs of {self!r} tell is known between two ends only. Ask about "
            f"{self.releasing('measurements')!r}, which is no more private."
        )

"""Products of losses by a contour integral: subsampled Gaussian releases, and others beside them.

Laplace noise has atoms, and so have lists: there |M| does not fall to 0 along a line, but the power
of many releases is as good as 0 (`accountant.composition.losses.laplace`).
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, final

from flint import arb

from accountant.composition.fourier.certified import ContourPair, Kernel, integral
from accountant.composition.fourier.cut import chosen, coarse, cut_off, lost, near, start
from accountant.composition.fourier.estimates import ABOVE_P, ABOVE_Q, CALL, PUT
from accountant.composition.fourier.measure import LOSS, Loss, estimator
from accountant.composition.invert import rough_root
from accountant.composition.joint import UnsuitedError
from accountant.composition.losses.transform import GaussianTransform, MixtureTransform, Transform
from accountant.composition.numeric.search import Strip
from accountant.composition.subsampling import SubsampledPair
from accountant.core.pair import Pair, Tails
from accountant.errors import UndecidedError
from accountant.mechanisms.additive.laplace import LaplacePair
from accountant.numbers import ledger
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import GRID_WIDTH, Interval, asked_width, ball
from accountant.numbers.precision import cached_property, ctx
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.gaussian import GaussianPair

if TYPE_CHECKING:
    from accountant.composition.grid.pair import GridPair

MOST_FEW, RARE = 100, 2.0
"""Samples in all, and the mean number of draws, up to which a grid is faster than inversion."""
QUICK_WIDTH = Fraction(1, 10**7)
"""The finest width that is asked of that grid."""
MOST_CELLS, MOST_POINTS = 1 << 24, 1 << 20
"""Grid points of all its factors together, and of one: about two seconds."""
_FINEST_GRID = 512
"""Bits of precision above which no grid is asked: it has not the digits."""
_SMALL_DELTA = -2.5
"""ln δ from which on no estimate is made: its saddle nears the pole at 0."""
_ROUGH_WIDTH = Fraction(1, 10**8)
"""Relative width of values for an estimate: H to 1e-8 gives ε to about as much."""
_CLOSE = 1e-7
"""Relative size of the last step of Newton's method: the next one would be its square."""
_MIRROR = {
    Kernel.CALL: (Kernel.CALL, CALL),
    Kernel.ABOVE_P: (Kernel.ABOVE_Q, ABOVE_Q),
    Kernel.ABOVE_Q: (Kernel.ABOVE_P, ABOVE_P),
}


def transform(pair: Pair) -> Transform | None:
    """Return the transform of a smooth loss, None for any other pair."""
    if isinstance(pair, GaussianPair):
        return GaussianTransform(pair)
    if isinstance(pair, SubsampledPair) and isinstance(pair.inner, GaussianPair):
        return MixtureTransform(pair.inner, pair.sampling_prob, pair.mixed_first)
    return None


@functools.lru_cache(maxsize=64)
def _transforms(pair: Pair) -> tuple[tuple[Transform, int], ...]:
    """Return the transforms of the independent losses of a pair, none for an unknown one."""
    if (smooth := transform(pair)) is not None:
        return ((smooth, 1),)
    if isinstance(pair, LaplacePair):
        from accountant.composition.losses.laplace import LaplaceTransform

        return ((LaplaceTransform(pair.distance), 1),)
    if (declared := pair.loss_transform()) is not None:
        return ((declared, 1),)
    from accountant.composition.losses import lists

    if isinstance(pair, DiscreteGaussianPair):
        return ((lists.DiscreteGaussianTransform(pair), 1),)
    small = lists.finite_list(pair)
    return () if small is None else ((lists.ListTransform(small), 1),)


def applies(pairs: Sequence[Pair]) -> bool:
    """Whether all losses have a transform, and some have a density."""
    kinds = [_transforms(pair) for pair in pairs]
    smooth = any(not part.is_listed for kind in kinds for part, _ in kind)
    return all(kinds) and smooth


@final
@dataclass(frozen=True)
class SmoothPair(ContourPair):
    """A product of pairs that `applies` to: Gaussian, subsampled, and with atoms.

    Its profile and tails are contour integrals of the moment generating function of the loss,
    enclosed with all their errors (`accountant.composition.fourier.certified`).
    """

    grid_first: bool = False
    """Whether a grid is asked first for widths down to `QUICK_WIDTH`."""

    def with_grid_first(self) -> SmoothPair:
        """Return the same for few and rare samples, whose transforms decay slowly, else itself."""
        share, number = 0.0, 0
        for pair, count in self.any_factors:
            if not isinstance(pair, SubsampledPair):
                return self
            share += count * float(pair.sampling_prob.ball().mid())
            number += count
        return replace(self, grid_first=True) if number <= MOST_FEW and share <= RARE else self

    def quick(self, width: Fraction | None) -> GridPair | None:
        """Return the grid, where it is asked first for a width."""
        if not self.grid_first or width is None or width < QUICK_WIDTH:
            return None
        most = min(MOST_CELLS // len(self.any_factors), MOST_POINTS)
        return self._on_grid(1 << (most.bit_length() - 1))

    def _on_grid(self, *most: int) -> GridPair:
        """Return the same product for a grid, of so many points at most if that is said."""
        from accountant.composition.grid.pair import GridPair

        return GridPair(self.any_factors, *most)

    @property
    def usual_width(self) -> Fraction:
        """Relative width of answers for which none is named: what comes within about a second."""
        return GRID_WIDTH if self.grid_first else super().usual_width

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        """Enclose ε(δ), on the grid where it is asked first and has the width."""
        quick = self.quick(relative_width)
        if quick is not None:
            with contextlib.suppress(UndecidedError):
                return quick.inverse(delta, relative_width)
        return super().inverse(delta, relative_width)

    def bound(self, epsilon: ExactReal) -> arb:
        """Return the upper bound of a coarse grid, where it is asked first."""
        quick = self.quick(GRID_WIDTH)
        return super().bound(epsilon) if quick is None else quick.bound(epsilon)

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε); on a grid where a contour would have too many nodes.

        That happens for few releases of a small q, whose transform decays slowly. Raises
        UndecidedError where too few releases have atoms, and M does not fall.
        """
        outside = self.outside(epsilon)
        if outside is not None:
            return outside
        quick = self.quick(asked_width.get())
        if quick is not None:
            with contextlib.suppress(UndecidedError):
                return quick.hockey_stick(epsilon)
        try:
            return self.on_contour(epsilon)
        except UndecidedError:
            if ctx.prec > _FINEST_GRID or self._has_atoms():
                raise
            grid = self._on_grid()
            grid.refuse_seldom(epsilon)
            return grid.hockey_stick(epsilon)

    def on_contour(self, epsilon: ExactReal) -> arb:
        """Return H(ε), for ε < 0 as 1 − e^ε and what the reversed pair adds, if anything.

        Rare large losses, which make the variance, do not matter then.
        """
        sure = -epsilon.ball().expm1()
        if not (sure > 0 and self.is_mixed()):
            return super().on_contour(epsilon)
        if self.reversed_below(-epsilon, limit := sure * arb(2) ** -ctx.prec):
            return sure + arb(0).union(limit)
        if self.loss().cumulants(0.0)[2] <= 1:
            with contextlib.suppress(UndecidedError):
                return sure + self.integral(Kernel.CALL, PUT, epsilon)
        return super().on_contour(epsilon)

    def reversed_below(self, epsilon: ExactReal, limit: arb) -> bool:
        """Whether Chernoff's inequality shows H(ε) of the reversed pair to be below a limit."""
        whole, log_limit, at = self.reverse().loss(), float(limit.log().mid()), float(epsilon)
        loss = cut_off(whole, -log_limit, guarded=True)
        c, least = 1 / at, math.inf
        try:
            while (value := loss.cumulants(c)[0] - c * at) > log_limit - 1.0:
                if value > least:
                    return False
                c, least = 2 * c, value
            size = (loss.log_upper(Fraction(c)) - ball(Fraction(c)) * epsilon.ball()).exp()
        except (ArithmeticError, UndecidedError):
            return False
        return bool(size + self._cut_off(loss, Kernel.CALL, CALL, epsilon) < limit)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return each tail as an integral of its own, or 1 minus a smaller one."""
        if (known := self.surely(epsilon)) is not None:
            return known
        try:
            return self.tails_on_contours(epsilon)
        except UndecidedError:
            if ctx.prec > _FINEST_GRID or self._has_atoms():
                raise
            return self._on_grid().tails(epsilon)

    def integral(self, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
        """Return the integral to the accuracy that is asked for, or raise UndecidedError."""
        if math.isinf(strip.low) and self._sides() == {False}:
            return self._mirrored(kernel, epsilon)
        problem, bits = UndecidedError("No contour was found."), self.accuracy()
        for way in self._ways(kernel, strip, epsilon, bits):
            try:
                return way(kernel, strip, epsilon, bits)
            except UndecidedError as error:
                problem = error
        raise UnsuitedError(str(problem)) if self._has_atoms() else problem

    def _ways(
        self, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int
    ) -> Sequence[Callable[[Kernel, Strip, ExactReal, int], arb]]:
        """Return the contours that may serve, the best first."""
        if self._has_atoms() or len(self._sides()) > 1:
            return [self._straight]
        if self._sides() == {False} or not math.isinf(strip.high):
            return [self._straight]
        whole, at, planned = self.loss(), near(float(epsilon)), coarse(bits)
        cut = chosen(whole, strip, at, planned)
        if cut != whole:
            from accountant.composition.fourier.jumps_plan import cancel

            if cancel(cut, strip, at, planned):
                return [self._apart, self._straight, self._decided]
        return [self._straight, self._apart, self._decided]

    def _straight(self, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
        """Return the integral on a vertical line."""
        loss = self.loss()
        if self.is_mixed():
            loss = chosen(loss, strip, near(float(epsilon)), coarse(bits))
        found = integral(loss, kernel, strip, epsilon, bits)
        found += self._cut_off(loss, kernel, strip, epsilon)
        if found.rel_accuracy_bits() < bits - LOSS:
            raise UndecidedError(f"The contour does not give {bits} bits.")
        return found

    def _apart(self, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
        """Return the integral with the large losses taken apart."""
        from accountant.composition.fourier.jumps_integral import jump_integral

        return jump_integral(self.loss(), kernel, strip, epsilon, bits)

    def _decided(self, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
        """Return the integral with the losses that decide alone taken apart."""
        from accountant.composition.fourier.sure import decided_integral

        return decided_integral(self.loss(), kernel, strip, epsilon, bits)

    def _mirrored(self, kernel: Kernel, epsilon: ExactReal) -> arb:
        """Return an integral left of all poles as one of the reversed pair, right of them at −ε.

        E_P[(e^{ε−L} − 1)⁺] = e^ε E_Q[(1 − e^{L−ε})⁺], and the events {L < ε} and {−L > −ε} are one:
        large negative losses are large ones of the reversed pair.
        """
        other, strip = _MIRROR[kernel]
        return self.reverse().integral(other, strip, -epsilon) * epsilon.ball().exp()

    @staticmethod
    def _cut_off(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
        """Return [0, b]: what large losses that are cut off can add to the integral."""
        first, second = lost(loss)
        if kernel == Kernel.ABOVE_Q or strip == PUT:
            first = (second * epsilon.ball().exp()).upper()
        return arb(0).union(first)

    def _has_atoms(self) -> bool:
        """Whether some loss is not smooth, so that the straight line is the only contour."""
        return any(transform(pair) is None for pair, _ in self.any_factors)

    def is_mixed(self) -> bool:
        """Whether some loss is that of a mixture."""
        return bool(self._sides())

    def _sides(self) -> set[bool]:
        """Return for which pairs the mixture is the first law: none, some, or all."""
        return {
            pair.mixed_first for pair, _ in self.any_factors if isinstance(pair, SubsampledPair)
        }

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return ε with ln H(ε) = log_delta, None for a δ that is not small.

        By the float engine; where cancellation takes its digits, by Newton's method on enclosures
        of few bits.
        """
        return None if log_delta >= _SMALL_DELTA else _estimate(self, log_delta)

    def root(self, log_delta: float) -> float | None:
        """Return the same by Newton's method on enclosures of few bits."""
        try:
            width = asked_width.get() or _ROUGH_WIDTH
            first = start(self.loss(), log_delta)
            return rough_root(self.on_contour, log_delta, first, width, _CLOSE)
        except (UndecidedError, ArithmeticError):
            return None

    def loss(self) -> Loss:
        """Return the transforms of the factors, with their counts.

        Mixtures alone have bounds in floats that are not rounded outward one by one.
        """
        if self.is_mixed():
            ledger.note("saddle")
        return self._loss

    @cached_property
    def _loss(self) -> Loss:
        parts = [
            (part, times * count)
            for pair, count in self.any_factors
            for part, times in _transforms(pair)
        ]
        return Loss(tuple(parts))


@functools.lru_cache(maxsize=64)
def _estimate(pair: SmoothPair, log_delta: float) -> float | None:
    loss = pair.loss()
    with contextlib.suppress(UndecidedError, ArithmeticError):
        return estimator(loss).epsilon(log_delta)
    if pair.is_mixed():
        from accountant.composition.fourier import jumps_integral as jumps

        with contextlib.suppress(UndecidedError, ArithmeticError):
            return jumps.estimate(loss, log_delta)
    return pair.root(log_delta)

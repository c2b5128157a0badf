"""Products of losses by a contour integral: subsampled Gaussian releases, and others beside them.

Laplace noise has atoms, and so have lists: there |M| does not fall to 0 along a line, but the power
of many releases is as good as 0 (`accountant.composition.losses.laplace`).
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb

from accountant.composition.fourier import certified
from accountant.composition.fourier.certified import Kernel, accuracy, integral, plan_contour
from accountant.composition.fourier.contour import Contour, below_all
from accountant.composition.fourier.cut import chosen, coarse, cut_off, lost, near, takes_apart
from accountant.composition.fourier.estimates import ABOVE_P, ABOVE_Q, CALL, PUT
from accountant.composition.fourier.measure import LOSS, Alike, Loss
from accountant.composition.losses.transform import GaussianTransform, MixtureTransform, Transform
from accountant.composition.numeric.search import Strip
from accountant.composition.product import Product, UnsuitedError
from accountant.core.pair import Pair
from accountant.errors import UndecidedError
from accountant.mechanisms.additive.laplace import LaplacePair
from accountant.numbers import ledger
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.gaussian import GaussianPair
from accountant.pairs.subsampled import SubsampledPair

Way: TypeAlias = Callable[[Loss, Kernel, Strip, ExactReal, int], arb]
"""A contour for G(ε) to so many bits."""
_LONG_LINE = 1500
"""Nodes of a straight line above which other contours come first: planning these takes as long."""
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
class Fourier(Contour):
    """Contour integrals of the moment generating function of the loss, with all their errors.

    For products that `applies` to: Gaussian, subsampled, and with atoms
    (`accountant.composition.fourier.certified`).
    """

    def loss(self, product: Product) -> Loss:
        """Return the transforms of the factors, with their counts.

        Mixtures alone have bounds in floats that are not rounded outward one by one.
        """
        if _sides(product):
            ledger.note("saddle")
        return _loss(product)

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return H(ε), for ε < 0 as 1 − e^ε and what the reversed pair adds, if anything.

        Rare large losses, which make the variance, do not matter then. Raises UndecidedError where
        too few releases have atoms, and M does not fall.
        """
        sure = -epsilon.ball().expm1()
        if not (sure > 0 and _sides(product)) or below_all(product, epsilon):
            return super().profile(product, epsilon)
        if self._is_below(product.reverse(), -epsilon, limit := sure * arb(2) ** -ctx.prec):
            return sure + arb(0).union(limit)
        if self.loss(product).cumulants(0.0)[2] <= 1:
            with contextlib.suppress(UndecidedError):
                return sure + self.integral(product, Kernel.CALL, PUT, epsilon)
        return super().profile(product, epsilon)

    def _is_below(self, product: Product, epsilon: ExactReal, limit: arb) -> bool:
        """Whether Chernoff's inequality shows H(ε) to be below a limit."""
        whole, log_limit, at = self.loss(product), float(limit.log().mid()), float(epsilon)
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
        return bool(size + _cut_off(loss, Kernel.CALL, CALL, epsilon) < limit)

    def integral(self, product: Product, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
        """Return the integral to the accuracy that is asked for, or raise UndecidedError.

        Left of all poles it is one of the reversed pair, right of them at −ε:
        E_P[(e^{ε−L} − 1)⁺] = e^ε E_Q[(1 − e^{L−ε})⁺], and the events {L < ε} and {−L > −ε} are
        one: large negative losses are large ones of the reversed pair.
        """
        if math.isinf(strip.low) and _sides(product) == {False}:
            other, turned = _MIRROR[kernel]
            value = self.integral(product.reverse(), other, turned, -epsilon)
            return value * epsilon.ball().exp()
        problem, bits = UndecidedError("No contour was found."), accuracy()
        loss = self.loss(product)
        for way in _ways(product, kernel, strip, epsilon, bits):
            try:
                return way(loss, kernel, strip, epsilon, bits)
            except UndecidedError as error:
                problem = error
        raise problem if is_smooth(product) else UnsuitedError(str(problem))


FOURIER = Fourier()


def is_smooth(product: Product) -> bool:
    """Whether every loss has a density: else the straight line is the only contour."""
    return all(transform(pair) is not None for pair in product.pairs)


def _sides(product: Product) -> set[bool]:
    """Return for which pairs the mixture is the first law: none, some, or all."""
    return {pair.mixed_first for pair in product.pairs if isinstance(pair, SubsampledPair)}


@functools.lru_cache(maxsize=64)
def _loss(product: Product) -> Loss:
    parts = [
        (part, times * count)
        for pair, count in product.factors
        for part, times in _transforms(pair)
    ]
    return Loss(tuple(parts))


def _ways(
    product: Product, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int
) -> Sequence[Way]:
    """Return the contours that may serve, the best first."""
    whole, at, planned = FOURIER.loss(product), near(float(epsilon)), coarse(bits)
    if not (takes_apart(whole) and math.isinf(strip.high)):
        return [_straight]
    cut = chosen(whole, strip, at, planned)
    if cut != whole:
        from accountant.composition.fourier.jumps_plan import cancel

        if cancel(cut, strip, at, planned):
            return [_apart, _straight]
    if _is_short(cut, kernel, strip, epsilon, bits):
        return [_straight, _apart]
    return [_apart, _straight]


def _is_short(cut: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> bool:
    """Whether a straight line has so few nodes that no other contour is likely shorter."""
    with contextlib.suppress(UndecidedError):
        plan = plan_contour(Alike(cut), kernel, strip, certified.near(float(epsilon)), bits)
        return plan.line.count <= _LONG_LINE
    return False


def _straight(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
    """Return the integral on a vertical line, with losses cut off that are rare and large."""
    short = loss
    if any(isinstance(part, MixtureTransform) for part, _ in loss.factors):
        short = chosen(loss, strip, near(float(epsilon)), coarse(bits))
    found = integral(short, kernel, strip, epsilon, bits) + _cut_off(short, kernel, strip, epsilon)
    if found.rel_accuracy_bits() < bits - LOSS:
        raise UndecidedError(f"The contour does not give {bits} bits.")
    return found


def _apart(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
    """Return the integral with the large losses taken apart."""
    from accountant.composition.fourier.jumps_integral import jump_integral

    return jump_integral(loss, kernel, strip, epsilon, bits)


def _cut_off(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
    """Return [0, b]: what large losses that are cut off can add to the integral."""
    first, second = lost(loss)
    if kernel == Kernel.ABOVE_Q or strip == PUT:
        first = (second * epsilon.ball().exp()).upper()
    return arb(0).union(first)

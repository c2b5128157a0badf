"""An engine of contour integrals, for products of Gaussian releases and samples of them.

Their losses have densities, so |M| falls to 0 along a line, even if Laplace noise is composed with
them. Other losses with atoms are left to exact sums and to the lattice engine.
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

from dpassay.accountant.composition.fourier.estimates import (
    ABOVE_P,
    ABOVE_Q,
    CALL,
    MIDDLE,
    PUT,
    FloatCurve,
)
from dpassay.accountant.composition.fourier.measure import (
    LOSS,
    SHORT,
    Kernel,
    Loss,
    Sum,
    accuracy,
    coarse,
    estimator,
    falls_soon,
    has_rare_jumps,
    integral,
    is_narrow,
    lost_masses,
    near,
    near_for_cuts,
    plan_contour,
    size_bound,
    with_cuts,
)
from dpassay.accountant.composition.fourier.saddle import Strip, saddle
from dpassay.accountant.composition.losses.laplace import LaplaceMoments
from dpassay.accountant.composition.losses.transform import (
    GaussianTransform,
    MixtureTransform,
    Transform,
)
from dpassay.accountant.composition.product import Engine, Product
from dpassay.accountant.core.pair import Pair, Tails, max_finite_loss
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import note
from dpassay.accountant.numbers.solve import log_peak, shortened
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.subsampled import SubsampledPair

Way: TypeAlias = Callable[[Loss, Kernel, Strip, ExactReal, int], arb]
"""A way to compute G(ε) to so many bits."""
_REACH = 1.0
"""How far from its own ε a line serves others, in standard deviations of the tilted law."""
_WIDER = 12
"""Additional bits of aliases and of terms for a line that serves others: e^8 at that distance."""
_REMEMBERED = 31
"""Numbers of lines, and of questions without a line, that are kept besides the latest."""
_MOST_DOUBLINGS = 16
"""Tilts 1, 2, 4, … that are tried for a closed bound, until it is larger than the one before."""
_SAME, _ONE = 1 / 64, 1e-4
"""Distances, in units of the reach and relative to ε, within which two questions count as one: for
instance an ε and the neighbours that prove it."""
_CLOSE = 0.1
"""Error of the saddle point of an upper bound, in its widths: the bound is flat there."""
_MIRROR = {
    Kernel.CALL: (Kernel.CALL, CALL),
    Kernel.ABOVE_P: (Kernel.ABOVE_Q, ABOVE_Q),
    Kernel.ABOVE_Q: (Kernel.ABOVE_P, ABOVE_P),
}


def transform(pair: Pair) -> Transform | None:
    """Return the transform of a smooth loss or of Laplace noise, or None for any other pair."""
    if isinstance(pair, GaussianPair):
        return GaussianTransform(pair)
    if isinstance(pair, LaplacePair):
        return LaplaceMoments(pair.distance)
    if isinstance(pair, SubsampledPair) and isinstance(pair.inner, GaussianPair):
        return MixtureTransform(pair.inner, pair.sampling_prob, pair.mixed_first)
    return None


def applies(pairs: Sequence[Pair]) -> bool:
    """Whether each loss is Gaussian, sampled Gaussian or Laplace, and not all are Laplace."""
    known = [transform(pair) for pair in pairs]
    return None not in known and not all(isinstance(part, LaplaceMoments) for part in known)


@final
@dataclass(frozen=True)
class Fourier(Engine):
    """Contour integrals of M(z) = E_P[e^{zL}; L finite], with bounds on all errors.

    It is for products that `applies` accepts; see `composition.fourier.measure`.
    """

    on_contours = numerical = True

    def loss(self, product: Product) -> Loss:
        """Return the transforms of the factors with their counts.

        For all losses, sums over contours are computed in floats with a bound on their errors.
        """
        note("saddle")
        return _loss(product)

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return H(ε), from whichever of H, 1 − H and H − 1 + e^ε is computed best.

        H − 1 + e^ε is E_P[(e^{ε−L} − 1)⁺] + e^ε Q(L = −∞). It is computed first for ε < 0, where
        rare large losses do not matter to it, although they dominate the variance.
        """
        sure = _negative(product, epsilon) - epsilon.ball().expm1()
        if below_all(product, epsilon):
            return sure
        loss, eps = self.loss(product), float(epsilon)
        _, mean, variance = loss.cumulants(0.0)
        if eps < 0 and variance <= 1 and _sides(product):
            with contextlib.suppress(UndecidedError):
                return self.integral(product, Kernel.CALL, PUT, epsilon) + sure
        if eps >= mean - math.sqrt(variance):
            return product.infinity_mass() + self.integral(product, Kernel.CALL, CALL, epsilon)
        if variance > 1 and eps > loss.cumulants(-1.0)[1]:
            return 1 - self.integral(product, Kernel.CALL, MIDDLE, epsilon)
        return self.integral(product, Kernel.CALL, PUT, epsilon) + sure

    def integral(self, product: Product, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
        """Return the integral to the requested accuracy, or raise UndecidedError.

        An integral to the left of all poles equals one of the reversed pair to the right of them at
        −ε, because E_P[(e^{ε−L} − 1)⁺] = e^ε E_Q[(1 − e^{L−ε})⁺], and {L < ε} = {−L > −ε}: large
        negative losses are large losses of the reversed pair.
        """
        if math.isinf(strip.low) and _sides(product) == {False}:
            other, turned = _MIRROR[kernel]
            value = self.integral(product.reverse(), other, turned, -epsilon)
            return value * epsilon.ball().exp()
        problem, bits = (
            UndecidedError("No contour was found. Ask for a larger relative_width."),
            accuracy(product.relative_width),
        )
        loss = self.loss(product)
        if (found := _neighbours(loss, kernel, strip, bits).at(epsilon)) is not None:
            return found
        for way in _ways(product, kernel, strip, epsilon, bits):
            try:
                return way(loss, kernel, strip, epsilon, bits)
            except UndecidedError as error:
                problem = error
        raise problem

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return each tail as an integral, or as 1 minus a smaller one."""
        if max_finite_loss(product) <= epsilon.ball():
            infinite = product.infinity_mass()
            return Tails(infinite, 1 - infinite, arb(0), arb(1))
        if below_all(product, epsilon, strictly=True):
            infinite = product.reverse().infinity_mass()
            return Tails(arb(1), arb(0), 1 - infinite, infinite)
        above_p, below_p = self._both(product, Kernel.ABOVE_P, 0.0, epsilon)
        above_q, below_q = self._both(product, Kernel.ABOVE_Q, -1.0, epsilon)
        return Tails(above_p, below_p, above_q, below_q)

    def _both(
        self, product: Product, kernel: Kernel, pole: float, epsilon: ExactReal
    ) -> tuple[arb, arb]:
        """Return P(L > ε) and P(L ≤ ε), or those under Q; the smaller one is integrated."""
        above = float(epsilon) >= self.loss(product).cumulants(pole)[1]
        strip = Strip(pole, math.inf, (pole,)) if above else Strip(-math.inf, pole, (pole,))
        value = self.integral(product, kernel, strip, epsilon)
        if kernel == Kernel.ABOVE_Q:
            value *= (-epsilon.ball()).exp()
            rest = arb(0) if above else product.reverse().infinity_mass()
        else:
            rest = product.infinity_mass() if above else arb(0)
        value = (value + rest).min(arb(1))
        return (value, 1 - value) if above else (1 - value, value)

    def estimate_log_delta(self, product: Product, epsilon: float) -> float | None:
        """Return ln H(ε) in floats; −∞ if ε is at or beyond the largest loss."""
        if not _is_finite(product):
            return None
        with contextlib.suppress(UndecidedError, ArithmeticError):
            return float(curve(product).delta(epsilon).log)
        return None

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta in floats, or None if cancellation is too large."""
        return _estimate(product, log_delta) if _is_finite(product) else None

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return an upper bound on H(ε), from the size of its integrand on one line."""
        if max_finite_loss(product) <= epsilon.ball():
            return product.infinity_mass()
        if below_all(product, epsilon):
            return _negative(product, epsilon) - epsilon.ball().expm1()
        loss = self.loss(product)
        with contextlib.suppress(ArithmeticError, UndecidedError):
            c = Fraction(saddle(loss, CALL, float(epsilon), close=_CLOSE).c)
            return (size_bound(loss, c, epsilon) + product.infinity_mass()).min(arb(1))
        return arb(1)

    def closed_bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return Chernoff's bound from closed bounds on moments; 1 if a factor has none."""
        factors, best = _loss(product).factors, arb(1)
        if not all(isinstance(part, MixtureTransform) for part, _ in factors):
            return best
        for doublings in range(_MOST_DOUBLINGS):
            c = arb(1 << doublings)
            logs = log_peak(c) - c * epsilon.ball()
            for part, count in factors:
                assert isinstance(part, MixtureTransform)
                if (moment := part.closed_bound(c)) is None:
                    return best
                logs += count * moment.log()
            found = logs.exp().upper()
            if not found < best:
                break
            best = found
        return best


FOURIER = Fourier()


@functools.lru_cache(maxsize=64)
def curve(product: Product) -> FloatCurve:
    """Return the profile and tails of a product in floats."""
    largest, least = product.max_loss(), -product.reverse().max_loss()
    return FloatCurve(
        estimator(FOURIER.loss(product)),
        float(least.mid()) if least.is_finite() else -math.inf,
        float(largest.mid()) if largest.is_finite() else math.inf,
    )


@functools.lru_cache(maxsize=64)
def _estimate(product: Product, log_delta: float) -> float | None:
    with contextlib.suppress(UndecidedError, ArithmeticError):
        return curve(product).epsilon(log_delta)
    return None


def _is_finite(product: Product) -> bool:
    """Whether no loss is +∞ or −∞."""
    return bool(product.infinity_mass().is_zero() and product.reverse().infinity_mass().is_zero())


def below_all(product: Product, epsilon: ExactReal, *, strictly: bool = False) -> bool:
    """Whether ε is certainly at most, or strictly below, the least loss."""
    least, eps = -max_finite_loss(product.reverse()), epsilon.ball()
    return bool(least > eps if strictly else least >= eps)


def _negative(product: Product, epsilon: ExactReal) -> arb:
    """Return e^ε Q(L = −∞)."""
    return epsilon.ball().exp() * product.reverse().infinity_mass()


def _sides(product: Product) -> set[bool]:
    """Return the values of `mixed_first` among the samples (whether P or Q is the mixture)."""
    return {pair.mixed_first for pair in product.pairs if isinstance(pair, SubsampledPair)}


@functools.lru_cache(maxsize=64)
def _loss(product: Product) -> Loss:
    parts: list[tuple[Transform, int]] = []
    for pair, count in product.factors:
        part = transform(pair)
        assert part is not None  # `applies`
        parts.append((part, count))
    return Loss(tuple(parts))


def _ways(
    product: Product, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int
) -> Sequence[Way]:
    """Return the ways that may work, the best first."""
    whole, at = FOURIER.loss(product), near_for_cuts(float(epsilon))
    if not (has_rare_jumps(whole) and math.isinf(strip.high)):
        return [_on_line]
    if falls_soon(whole, kernel, strip, near(float(epsilon)), bits, SHORT):
        return [_on_line, _by_jumps]
    if falls_soon(_kept(whole, kernel, strip, epsilon, bits), kernel, strip, at, bits):
        return [_on_line, _by_jumps]
    return [_by_jumps, _on_line]


def _on_line(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
    """Return the integral on a vertical line, with rare large losses cut off."""
    short = _kept(loss, kernel, strip, epsilon, bits)
    if (found := _neighbours(loss, kernel, strip, bits).widen(short, epsilon)) is not None:
        return found
    rest = _cut_off(short, kernel, strip, epsilon)
    found = integral(short, kernel, strip, epsilon, bits, added=rest)
    if found.rel_accuracy_bits() < bits - LOSS:
        raise UndecidedError(
            f"The contour does not give {bits} bits. Ask for a larger relative_width."
        )
    return found


def _kept(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> Loss:
    """Return the loss, with cuts if the search for them is worth it."""
    if not any(isinstance(part, MixtureTransform) for part, _ in loss.factors):
        return loss
    if falls_soon(loss, kernel, strip, near(float(epsilon)), bits, SHORT):
        return loss
    return with_cuts(loss, strip, near_for_cuts(float(epsilon)), coarse(bits))


class _Neighbours:
    """Lines that serve many ε, made when a second ε within reach is asked."""

    def __init__(self, kernel: Kernel, strip: Strip, bits: int) -> None:
        self._about = kernel, strip, bits
        self._asked: list[float] = []
        self._sums: list[tuple[float, float, Sum]] = []
        self._failed = False

    def at(self, epsilon: ExactReal) -> arb | None:
        """Return the integral from an existing line, or None if none is near or narrow enough."""
        kernel, strip, bits = self._about
        for place, reach, known in reversed(self._sums):
            if abs(float(epsilon) - place) <= reach:
                assert isinstance(known.loss, Loss)
                found = known.at(epsilon) + _cut_off(known.loss, kernel, strip, epsilon)
                if is_narrow(found, bits):
                    return found
        return None

    def widen(self, loss: Loss, epsilon: ExactReal) -> arb | None:
        """Make a line for neighbouring ε if several were asked; else remember this one."""
        (kernel, strip, bits), at = self._about, float(epsilon)
        if all(abs(at - other) <= _ONE * abs(at) for other in self._asked):  # or none before
            self._asked = self._asked or [at]
            return None
        try:
            curvature = saddle(loss, strip, at).curvature
        except (ArithmeticError, UndecidedError):
            return None
        reach = _REACH * math.sqrt(curvature)
        away = [abs(at - other) for other in self._asked]
        if not any(distance < _SAME * reach for distance in away):
            self._asked = [*self._asked[-_REMEMBERED:], at]
        if self._failed or not any(_SAME * reach <= distance <= reach for distance in away):
            return None
        for share in (1.0, 0.5):
            more = bits + round(_WIDER * share)
            with contextlib.suppress(UndecidedError):
                plan = plan_contour(loss, kernel, strip, shortened(at, 20), more)
                known = Sum.of(loss, kernel, plan, more, quick=True)
                if known is not None:
                    self._sums = [*self._sums[-_REMEMBERED:], (at, share * reach, known)]
                    if (found := self.at(epsilon)) is not None:
                        return found
        self._failed = True
        return None


@functools.lru_cache(maxsize=256)
def _neighbours(loss: Loss, kernel: Kernel, strip: Strip, bits: int) -> _Neighbours:
    """Return the lines for questions that differ in ε only."""
    return _Neighbours(kernel, strip, bits)


def _by_jumps(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal, bits: int) -> arb:
    """Return the integral with rare large losses treated separately."""
    from dpassay.accountant.composition.fourier.jumps import jump_integral

    return jump_integral(loss, kernel, strip, epsilon, bits)


def _cut_off(loss: Loss, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
    """Return [0, b], which contains the contribution of the large losses that are cut off."""
    first, second = lost_masses(loss)
    if kernel == Kernel.ABOVE_Q or strip == PUT:
        first = (second * epsilon.ball().exp()).upper()
    return arb(0).union(first)

"""What a product asks of contour integrals, whichever way they are formed."""

from __future__ import annotations

import contextlib
import functools
import math
from abc import abstractmethod
from fractions import Fraction

from flint import arb

from accountant.composition.fourier.certified import Kernel
from accountant.composition.fourier.estimates import CALL, MIDDLE, PUT
from accountant.composition.fourier.float_curve import FloatCurve
from accountant.composition.fourier.measure import Loss
from accountant.composition.numeric.search import Strip, saddle
from accountant.composition.product import Engine, Product
from accountant.core.pair import Tails
from accountant.errors import UndecidedError
from accountant.numbers.chernoff import log_peak
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball


class Contour(Engine):
    """Profile and tails by integrals of M(z) = E_P[e^{zL}; L finite]."""

    on_contours = True

    @abstractmethod
    def loss(self, product: Product) -> Loss:
        """Return the transforms of the factors, with their counts."""

    @abstractmethod
    def integral(self, product: Product, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
        """Return the function G(ε) of a kernel and a strip."""

    def is_numerical(self, product: Product) -> bool:
        """Return True: contours have so many nodes at most."""
        return True

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return H(ε), from whichever of H, 1 − H and H − 1 + e^ε is computed best.

        The latter is E[(e^{ε−L} − 1)⁺] over P, and e^ε Q(L = −∞).
        """
        if below_all(product, epsilon):
            return _negative(product, epsilon) - epsilon.ball().expm1()
        loss, eps = self.loss(product), float(epsilon)
        _, mean, variance = loss.cumulants(0.0)
        if eps >= mean - math.sqrt(variance):
            return product.infinity_mass() + self.integral(product, Kernel.CALL, CALL, epsilon)
        if variance > 1 and eps > loss.cumulants(-1.0)[1]:
            return 1 - self.integral(product, Kernel.CALL, MIDDLE, epsilon)
        put = self.integral(product, Kernel.CALL, PUT, epsilon)
        return put + _negative(product, epsilon) - epsilon.ball().expm1()

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return each tail as an integral of its own, or 1 minus a smaller one."""
        if product.max_finite_loss() <= epsilon.ball():
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
        """Return P(L > ε) and P(L ≤ ε), or those of Q; the smaller one is integrated."""
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
        """Return ln H(ε) in floats; −∞ where ε is at or beyond the largest loss."""
        if not product.infinity_mass().is_zero():
            return None
        with contextlib.suppress(UndecidedError, ArithmeticError):
            return curve(product).delta(epsilon).log
        return None

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta; None where cancellation takes floats' digits."""
        return _estimate(product, log_delta) if product.infinity_mass().is_zero() else None

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return Chernoff's bound M(c) e^{−cε} c^c/(1 + c)^{1 + c} at a c near its best."""
        if product.max_finite_loss() <= epsilon.ball():
            return product.infinity_mass()
        if below_all(product, epsilon):
            return _negative(product, epsilon) - epsilon.ball().expm1()
        loss = self.loss(product)
        try:
            c = Fraction(saddle(loss, CALL, float(epsilon)).c)
        except ArithmeticError:
            return arb(1)
        if c <= 0:
            return arb(1)
        at = ball(c)
        size = loss.log_upper(c) - at * epsilon.ball() + log_peak(at)
        return (size.exp() + product.infinity_mass()).min(arb(1))


@functools.lru_cache(maxsize=64)
def curve(product: Product) -> FloatCurve:
    """Return the same in floats."""
    assert isinstance(product.engine, Contour)
    largest, least = product.max_loss(), -product.reverse().max_loss()
    return FloatCurve(
        product.engine.loss(product),
        float(least.mid()) if least.is_finite() else -math.inf,
        float(largest.mid()) if largest.is_finite() else math.inf,
    )


@functools.lru_cache(maxsize=64)
def _estimate(product: Product, log_delta: float) -> float | None:
    with contextlib.suppress(UndecidedError, ArithmeticError):
        return curve(product).epsilon(log_delta)
    return None


def below_all(product: Product, epsilon: ExactReal, *, strictly: bool = False) -> bool:
    """Whether ε is certainly at or below, or strictly below, the least loss."""
    least, eps = -product.reverse().max_finite_loss(), epsilon.ball()
    return bool(least > eps if strictly else least >= eps)


def _negative(product: Product, epsilon: ExactReal) -> arb:
    """Return e^ε Q(L = −∞)."""
    return epsilon.ball().exp() * product.reverse().infinity_mass()

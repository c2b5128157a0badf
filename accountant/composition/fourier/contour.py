"""What a product asks of contour integrals, whichever way they are formed."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction

from flint import arb

from accountant.composition.fourier.certified import Kernel
from accountant.composition.fourier.estimates import CALL, MIDDLE, PUT
from accountant.composition.fourier.measure import Loss, estimator
from accountant.composition.joint import FactorsPair
from accountant.composition.numeric.search import Strip, saddle
from accountant.core.pair import Tails
from accountant.errors import UndecidedError
from accountant.numbers.chernoff import log_peak
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import START_PRECISION, asked_width, ball
from accountant.numbers.precision import ctx

_SPARE = 12


class ContourPair(FactorsPair):
    """A product whose profile and tails are integrals of M(z) = E_P[e^{zL}; L finite]."""

    @abstractmethod
    def loss(self) -> Loss:
        """Return the transforms of the factors, with their counts."""

    @abstractmethod
    def integral(self, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
        """Return the function G(ε) of a kernel and a strip (`saddle_certified`)."""

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε)."""
        outside = self.outside(epsilon)
        return self.on_contour(epsilon) if outside is None else outside

    def on_contour(self, epsilon: ExactReal) -> arb:
        """Return H(ε), from whichever of H, 1 − H and H − 1 + e^ε is computed best.

        The latter is E[(e^{ε−L} − 1)⁺] over P, and e^ε Q(L = −∞).
        """
        loss, eps = self.loss(), float(epsilon)
        _, mean, variance = loss.cumulants(0.0)
        if eps >= mean - math.sqrt(variance):
            return self.infinity_mass() + self.integral(Kernel.CALL, CALL, epsilon)
        if variance > 1 and eps > loss.cumulants(-1.0)[1]:
            return 1 - self.integral(Kernel.CALL, MIDDLE, epsilon)
        put = self.integral(Kernel.CALL, PUT, epsilon)
        return put + self._negative(epsilon) - epsilon.ball().expm1()

    def _negative(self, epsilon: ExactReal) -> arb:
        """Return e^ε Q(L = −∞)."""
        return epsilon.ball().exp() * self.reverse().infinity_mass()

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return each tail as an integral of its own, or 1 minus a smaller one."""
        return self.surely(epsilon) or self.tails_on_contours(epsilon)

    def surely(self, epsilon: ExactReal) -> Tails | None:
        """Return the tails where ε is certainly not between the least and the largest loss."""
        eps = epsilon.ball()
        if self.max_finite_loss() <= eps:
            infinite = self.infinity_mass()
            return Tails(infinite, 1 - infinite, arb(0), arb(1))
        if -self.reverse().max_finite_loss() > eps:
            infinite = self.reverse().infinity_mass()
            return Tails(arb(1), arb(0), 1 - infinite, infinite)
        return None

    def tails_on_contours(self, epsilon: ExactReal) -> Tails:
        """Return the tails from integrals."""
        loss, eps = self.loss(), float(epsilon)
        above_p, below_p = self._both(Kernel.ABOVE_P, 0.0, eps >= loss.cumulants(0.0)[1], epsilon)
        above_q, below_q = self._both(Kernel.ABOVE_Q, -1.0, eps >= loss.cumulants(-1.0)[1], epsilon)
        return Tails(above_p, below_p, above_q, below_q)

    def _both(
        self, kernel: Kernel, pole: float, above: bool, epsilon: ExactReal
    ) -> tuple[arb, arb]:
        """Return P(L > ε) and P(L ≤ ε), or those of Q; the smaller one is integrated."""
        infinity = float("inf")
        strip = Strip(pole, infinity, (pole,)) if above else Strip(-infinity, pole, (pole,))
        value = self.integral(kernel, strip, epsilon)
        if kernel == Kernel.ABOVE_Q:
            value *= (-epsilon.ball()).exp()
            rest = arb(0) if above else self.reverse().infinity_mass()
        else:
            rest = self.infinity_mass() if above else arb(0)
        value = (value + rest).min(arb(1))
        return (value, 1 - value) if above else (1 - value, value)

    def accuracy(self) -> int:
        """Return the relative accuracy in bits that is aimed at."""
        best = ctx.prec - _SPARE
        if (asked := asked_width.get()) is None:
            return best
        needed = (asked.denominator // asked.numerator).bit_length()
        return min(best, needed + _SPARE + max(0, ctx.prec - max(START_PRECISION + 8, needed + 34)))

    def estimate_log_delta(self, epsilon: float) -> float | None:
        """Return ln H(ε) by the float engine; −∞ where ε is at or beyond the largest loss."""
        if not self.infinity_mass().is_zero():
            return None
        if epsilon >= self._largest():
            return -math.inf
        try:
            return estimator(self.loss()).log_delta(epsilon)
        except (UndecidedError, ArithmeticError):
            return None

    def bound(self, epsilon: ExactReal) -> arb:
        """Return Chernoff's bound M(c) e^{−cε} c^c/(1 + c)^{1 + c} at a c near its best."""
        outside = self.outside(epsilon)
        if outside is not None:
            return outside
        loss = self.loss()
        try:
            c = Fraction(saddle(loss, CALL, float(epsilon)).c)
        except ArithmeticError:
            return arb(1)
        if c <= 0:
            return arb(1)
        at = ball(c)
        size = loss.log_upper(c) - at * epsilon.ball() + log_peak(at)
        return (size.exp() + self.infinity_mass()).min(arb(1))

    def _largest(self) -> float:
        largest = self.max_finite_loss()
        return float(largest.mid()) if largest.is_finite() else math.inf

    def outside(self, epsilon: ExactReal) -> arb | None:
        """Return H(ε) where ε is certainly not between the least and the largest loss."""
        eps = epsilon.ball()
        if self.max_finite_loss() <= eps:
            return self.infinity_mass()
        if -self.reverse().max_finite_loss() >= eps:
            return self._negative(epsilon) - eps.expm1()
        return None

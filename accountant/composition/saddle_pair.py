"""Products of smooth losses: subsampled Gaussian releases, and Gaussian ones beside them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from flint import arb, ctx

from accountant.composition.joint import Factor, JointPair
from accountant.composition.saddle_certified import Kernel, Loss, integral
from accountant.composition.saddle_search import Strip
from accountant.composition.saddle_transform import GaussianTransform, MixtureTransform, Transform
from accountant.composition.subsampling import SubsampledPair
from accountant.errors import NotApplicableError, UndecidedError
from accountant.number import ExactReal
from accountant.pair import Pair, Tails
from accountant.pairs.gaussian import GaussianPair

if TYPE_CHECKING:
    from accountant.reference import Reference

_SPARE = 12
_FEWER = (1.0, 0.62, 0.4)
_LONGEST_LADDER = 200
_CALL = Strip(0.0, float("inf"), (0.0, -1.0))
_MIDDLE = Strip(-1.0, 0.0, (0.0, -1.0))
_PUT = Strip(float("-inf"), -1.0, (0.0, -1.0))


def transform(pair: Pair) -> Transform | None:
    """Return the transform of a smooth loss, None for any other pair."""
    if isinstance(pair, GaussianPair):
        return GaussianTransform(pair)
    if isinstance(pair, SubsampledPair) and isinstance(pair.inner, GaussianPair):
        return MixtureTransform(pair.inner, pair.sampling_prob, pair.mixed_first)
    return None


@final
@dataclass(frozen=True)
class SmoothPair(JointPair):
    """A product of Gaussian pairs and subsampled Gaussian pairs.

    Its profile and tails are contour integrals of the moment generating function of the loss,
    enclosed with all their errors (`accountant.composition.saddle_certified`).
    """

    smooth_factors: tuple[Factor, ...]

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The pairs and their counts."""
        return self.smooth_factors

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε), from whichever of H, 1 − H and H − 1 + e^ε is computed best."""
        outside = self._outside(epsilon)
        if outside is not None:
            return outside
        loss, eps = self._loss(), float(epsilon)
        mean, _ = loss.cumulants(0.0)[1], None
        if eps >= mean:
            return self._integral(Kernel.CALL, _CALL, epsilon)
        spread = loss.cumulants(0.0)[2] ** 0.5
        if eps >= mean - spread:
            return self._integral(Kernel.CALL, _CALL, epsilon)
        if spread > 1 and eps > loss.cumulants(-1.0)[1]:
            return 1 - self._integral(Kernel.CALL, _MIDDLE, epsilon)
        return self._integral(Kernel.CALL, _PUT, epsilon) - epsilon.ball().expm1()

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return each tail as an integral of its own, or 1 minus a smaller one."""
        if (outside := self._outside(epsilon)) is not None:
            everything = bool(outside > 0)
            return Tails(*(arb(int(side)) for side in (everything, not everything) * 2))
        loss, eps = self._loss(), float(epsilon)
        above_p, below_p = self._both(Kernel.ABOVE_P, 0.0, eps >= loss.cumulants(0.0)[1], epsilon)
        above_q, below_q = self._both(Kernel.ABOVE_Q, -1.0, eps >= loss.cumulants(-1.0)[1], epsilon)
        return Tails(above_p, below_p, above_q, below_q)

    def _both(
        self, kernel: Kernel, pole: float, above: bool, epsilon: ExactReal
    ) -> tuple[arb, arb]:
        """Return P(L > ε) and P(L ≤ ε), or those of Q; the smaller one is integrated."""
        infinity = float("inf")
        strip = Strip(pole, infinity, (pole,)) if above else Strip(-infinity, pole, (pole,))
        value = self._integral(kernel, strip, epsilon)
        if kernel is Kernel.ABOVE_Q:
            value *= (-epsilon.ball()).exp()
        value = value.min(arb(1))
        return (value, 1 - value) if above else (1 - value, value)

    def _integral(self, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
        """Return the integral as accurately as the precision asks and a bounded effort allows.

        Raises UndecidedError once a high precision is far out of reach.
        """
        for share in _FEWER if ctx.prec <= _LONGEST_LADDER else _FEWER[:1]:
            try:
                return integral(
                    self._loss(), kernel, strip, epsilon, int(ctx.prec * share) - _SPARE
                )
            except UndecidedError as error:
                problem = error
        raise problem

    def _loss(self) -> Loss:
        found = tuple((transform(pair), count) for pair, count in self.smooth_factors)
        return Loss(tuple((part, count) for part, count in found if part is not None))

    def _outside(self, epsilon: ExactReal) -> arb | None:
        """Return H(ε) where ε is certainly not between the least and the largest loss."""
        eps = epsilon.ball()
        if self.max_loss() <= eps:
            return arb(0)
        if -self.reverse().max_loss() >= eps:
            return -eps.expm1()
        return None

    def renyi(self, order: arb) -> arb:
        """Return ln M(a − 1)/(a − 1) at an order with an exact ball, else between its ends."""
        if not order.is_exact():
            ends = [self.renyi(order.lower()), self.renyi(order.upper())]
            return ends[0].union(ends[1])  # Rényi divergences increase with the order
        mantissa, exponent = (int(part) for part in order.man_exp())
        less = Fraction(mantissa) * Fraction(2) ** exponent - 1
        if not less > 0:
            raise NotApplicableError(f"Expected an order above 1, not {order}.")
        return self._loss().log_value(less) / (order - 1)

    def reverse(self) -> SmoothPair:
        """Return the product of the reversed pairs."""
        return SmoothPair(tuple((pair.reverse(), count) for pair, count in self.smooth_factors))

    def reference(self) -> Reference:
        """Return the same contour integrals in mpmath, with nodes and steps of their own."""
        from accountant.composition.saddle_reference import SmoothReference

        return SmoothReference(self.smooth_factors)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return f"the releases whose privacy losses ln(dP/dQ) have a sum above {epsilon}"

"""Products of Laplace laws, each coordinate shifted by its own distance.

Coordinate i contributes to the loss L an atom +t with mass 1/2, an atom −t with mass e^{−t}/2 and
the density (1/4) e^{(l − t)/2} on (−t, t), t = t_i. The tails are in
`accountant.composition.exact.laplace_product_sums`. Reflection of every coordinate exchanges P and
Q, so −L under Q has the law of L under P: P(L ≤ ε) = Q(L ≥ −ε), and H(ε) = e^ε H(−ε) + 1 − e^ε.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from flint import arb

from accountant.composition.exact import laplace_product_sums as sums
from accountant.composition.exact.laplace_product_plan import Groups, Kernel
from accountant.composition.joint import Factor, JointPair
from accountant.core.pair import Tails
from accountant.errors import InvalidInputError, UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import COMPOSED_WIDTH, RELATIVE_WIDTH, asked_width
from accountant.numbers.precision import cached_property, ctx

if TYPE_CHECKING:
    from accountant.composition.fourier.pair import SmoothPair
    from accountant.composition.grid.pair import GridPair
    from accountant.numbers.interval import Interval

_GUARD_BITS = 16
"""Bits for what cancels between the terms of H at ε < 0, and of 1 − H."""
_FEW_CONTINUOUS = 25.0
"""x above which all coordinates are on atoms with a probability below e^−25: then |M| falls to that
on a line, and it is tried first."""
_FEW_SHIFTS = 16
"""Coordinates of a vector for which all digits come at once."""


@final
@dataclass(frozen=True)
class LaplaceProductPair(JointPair):
    """P = Lap(1)^d at (t_1, …, t_d), Q = Lap(1)^d at 0, with t_i = multiples[i]·unit > 0.

    Parameters
    ----------
    unit
        Any exact number > 0; no matter if there are no coordinates.
    multiples
        Integers ≥ 1, ascending.
    """

    unit: ExactReal
    multiples: tuple[int, ...]

    @staticmethod
    def of_distances(distances: Sequence[ExactReal]) -> LaplaceProductPair:
        """Return the pair at the given distances ≥ 0; a distance 0 loses nothing.

        Raises InvalidInputError if two distances have an irrational ratio.
        """
        return LaplaceProductPair.of_counts(Counter(distances))

    @staticmethod
    def of_counts(counts: Mapping[ExactReal, int]) -> LaplaceProductPair:
        """Return the same, from the distinct distances and how many coordinates have each."""
        positive = sorted(distance for distance in counts if distance.sign > 0)
        if not positive:
            return LaplaceProductPair(ExactReal.of_rational(1), ())
        ratios = [(distance / positive[0]).rational for distance in positive]
        if None in ratios:
            raise InvalidInputError(
                "Expected shifts whose ratios are rational, so that the losses of the coordinates "
                "share a unit. Round the shifts up to a common grid: delta grows with each of them."
            )
        fractions = [ratio for ratio in ratios if ratio is not None]
        denominator = math.lcm(*(ratio.denominator for ratio in fractions))
        numbers = [int(ratio * denominator) for ratio in fractions]
        divisor = math.gcd(*numbers)
        unit = positive[0] * ExactReal.of_rational(Fraction(divisor, denominator))
        multiples: list[int] = []
        for number, distance in zip(numbers, positive, strict=True):
            multiples += [number // divisor] * counts[distance]
        return LaplaceProductPair(unit, tuple(multiples))

    @property
    def usual_width(self) -> Fraction:
        """Relative width of answers for which none is named: few shifts have short sums."""
        return COMPOSED_WIDTH if len(self.multiples) > _FEW_SHIFTS else RELATIVE_WIDTH

    def exact_max_loss(self) -> ExactReal:
        """Return T = Σ t_i."""
        return ExactReal.of_rational(sum(self.multiples)) * self.unit

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        top = self.exact_max_loss()
        if epsilon >= top:
            return arb(0)
        if epsilon <= -top:
            return -epsilon.ball().expm1()
        if epsilon.sign < 0:
            with ctx.workprec(ctx.prec + _GUARD_BITS):
                value = epsilon.ball().exp() * self.hockey_stick(-epsilon) - epsilon.ball().expm1()
            return +value
        if (line := self._on_line()) is not None:
            with contextlib.suppress(UndecidedError):
                return line.hockey_stick(epsilon)
        if not self._is_short(epsilon):
            try:
                return self._on_grid().hockey_stick(epsilon)
            except UndecidedError:
                if not sums.is_possible(self.groups, self.unit, epsilon, Kernel.EXCESS):
                    raise
        if self._far_below(epsilon):
            with ctx.workprec(ctx.prec + _GUARD_BITS):
                rest = self._above(-epsilon, Kernel.Q, at_least=True)
                value = 1 - rest - epsilon.ball().exp() * self._above(epsilon, Kernel.Q)
            return +value
        return self._above(epsilon, Kernel.EXCESS)

    def _is_short(self, epsilon: ExactReal) -> bool:
        """Whether the sums at ε have few enough terms, of any precision."""
        return sums.is_short(self.groups, self.unit, epsilon, Kernel.EXCESS)

    def _on_grid(self) -> GridPair:
        """Return the same pair for an engine that takes any shifts."""
        from accountant.composition.grid.pair import GridPair

        return GridPair(self.factors)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The pairs of single coordinates, and how many have each."""
        from accountant.mechanisms.additive.laplace import LaplacePair

        sizes = [(ExactReal.of_rational(t) * self.unit, n) for t, n in self.groups]
        return tuple((LaplacePair(distance), n) for distance, n in sizes)

    def _on_line(self) -> SmoothPair | None:
        """Return the same pair for one contour integral, None where its atoms count.

        All coordinates are on atoms with a probability of about e^{−x}, x = Σ tanh(t/2).
        """
        if self._continuous < _FEW_CONTINUOUS:
            return None
        from accountant.composition.fourier.pair import SmoothPair

        return SmoothPair(self.factors)

    @cached_property
    def _continuous(self) -> float:
        sizes = ((float(ExactReal.of_rational(t) * self.unit), n) for t, n in self.groups)
        return math.fsum(n * math.tanh(size / 2) for size, n in sizes)

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        """Enclose ε(δ) where the sums are too long; None elsewhere."""
        token = asked_width.set(relative_width)
        try:
            short = self._is_short(ExactReal.of_rational(0))
        finally:
            asked_width.reset(token)
        if short or self._on_line() is not None:
            return None
        return self._on_grid().inverse(delta, relative_width)

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta, nearly and without proof."""
        line = self._on_line()
        found = None if line is None else line.estimate_epsilon(log_delta)
        if found is not None:
            return found
        return sums.estimate_epsilon(self.groups, self.unit, log_delta)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return both tails, an atom at ε counted on the side ≤; the smaller one is computed."""
        top = self.exact_max_loss()
        if epsilon >= top:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon < -top:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        if (line := self._on_line()) is not None:
            with contextlib.suppress(UndecidedError):
                return line.tails(epsilon)
        if not self._is_short(epsilon):
            return self._on_grid().tails(epsilon)
        if float(epsilon) >= self._mean():
            p = self._above(epsilon, Kernel.P)
            rest_p = 1 - p
        else:
            rest_p = self._above(-epsilon, Kernel.Q, at_least=True)
            p = 1 - rest_p
        if float(epsilon) >= -self._mean():
            q = self._above(epsilon, Kernel.Q)
            rest_q = 1 - q
        else:
            rest_q = self._above(-epsilon, Kernel.P, at_least=True)
            q = 1 - rest_q
        return Tails(p_above=p, p_below=rest_p, q_above=q, q_below=rest_q)

    def _above(self, epsilon: ExactReal, kernel: Kernel, *, at_least: bool = False) -> arb:
        return sums.above(self.groups, self.unit, epsilon, kernel, at_least=at_least)

    @cached_property
    def groups(self) -> Groups:
        """The multiples, and how many coordinates have each."""
        return tuple(sorted(Counter(self.multiples).items()))

    def _mean(self) -> float:
        """Return E_P[L], nearly."""
        unit = float(self.unit)
        return math.fsum(n * (t * unit + math.expm1(-t * unit)) for t, n in self.groups)

    def _far_below(self, epsilon: ExactReal) -> bool:
        """Whether most of P has a larger loss, so that 1 − H(ε) is the number to compute."""
        mean = self._mean()
        return float(epsilon) < mean - math.sqrt(2 * mean)

    def reverse(self) -> LaplaceProductPair:
        """Return the pair itself: reflecting every coordinate exchanges P and Q."""
        return self

    def law(self) -> dict[str, object]:
        """Return {"law": "laplace-product", "unit", "multiples"}."""
        return {
            "law": "laplace-product",
            "unit": str(self.unit),
            "multiples": list(self.multiples),
        }

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return (
            "the outcomes x, in units of the scale and from the true answer under Q, with "
            f"Σ |x_i| − |x_i − t_i| > {epsilon}, where t_i are the shifts in units of the scale"
        )

"""Products that several engines apply to: the first one that answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar, final

from flint import arb

from accountant.composition.joint import Factor, JointPair, UnsuitedError
from accountant.errors import UndecidedError
from accountant.interval import Interval, asked_width
from accountant.number import ExactReal
from accountant.pair import Tails

if TYPE_CHECKING:
    from accountant.reference import Reference

T = TypeVar("T")

LEAST_WIDTH = Fraction(1, 10**12)
"""No engine of sums in floats reaches less."""
_BETTER = 1e-4


@final
@dataclass(frozen=True)
class LadderPair(JointPair):
    """A product in the forms that its engines take, the best first."""

    rungs: tuple[JointPair, ...]

    @property
    def factors(self) -> Sequence[Factor]:
        """The pairs and their counts."""
        return self.rungs[0].factors

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around H(ε). Raises UndecidedError where every engine does."""
        asked = asked_width.get()
        return self._first(lambda rung: rung.hockey_stick(epsilon), asked or Fraction(1))

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        """Enclose ε(δ). Raises UndecidedError where every engine does."""
        from accountant.profile import inverse_by_values  # profiles ask pairs, not the reverse

        def ask(rung: JointPair) -> Interval:
            known = rung.inverse(delta, relative_width)
            return known or inverse_by_values([rung], delta, relative_width)

        return self._first(ask, relative_width)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails. Raises UndecidedError where every engine does."""
        return self._first(lambda rung: rung.tails(epsilon), asked_width.get() or Fraction(1))

    def estimate_log_delta(self, epsilon: float) -> float | None:
        """Return what the best engine estimates."""
        return self.rungs[0].estimate_log_delta(epsilon)

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return what the best engine estimates."""
        return self.rungs[0].estimate_epsilon(log_delta)

    def bound(self, epsilon: ExactReal) -> arb:
        """Return the bound of the best engine."""
        return self.rungs[0].bound(epsilon)

    def _first(self, ask: Callable[[JointPair], T], relative_width: Fraction) -> T:
        """Return the first answer, or raise the refusal that reached the narrowest enclosure.

        Of several that say of none, the last one. A rung is not asked for a width that it hardly
        ever has, after minutes, where another one has reached more than its first refusal says.
        """
        refusals: list[UndecidedError] = []
        for rung in self.rungs:
            hopeless = relative_width < rung.seldom_below
            if hopeless and any(refusal.reached < _BETTER for refusal in refusals):
                break
            try:
                return ask(rung)
            except UndecidedError as refusal:
                refusals.append(refusal)
            if relative_width < LEAST_WIDTH and not isinstance(refusals[-1], UnsuitedError):
                break
        known = [refusal for refusal in refusals if not isinstance(refusal, UnsuitedError)]
        raise min(reversed(known or refusals), key=lambda refusal: refusal.reached)

    def reverse(self) -> LadderPair:
        """Return the product of the reversed pairs."""
        turned = [rung.reverse() for rung in self.rungs]
        return LadderPair(tuple(rung for rung in turned if isinstance(rung, JointPair)))

    def reference(self) -> Reference:
        """Raise NotApplicableError: there is no second route to these products."""
        return self.rungs[0].reference()

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return self.rungs[0].describe_event(epsilon)

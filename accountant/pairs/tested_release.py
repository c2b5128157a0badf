"""A noisy number that is released where a noisy distance reaches a threshold.

Let the test be passed with the chances a under P and b under Q, and the number move by t units of
Laplace noise. The loss is ln(a/b) and that of the noise where it passes, ln((1 − a)/(1 − b)) else:

    H(ε) = a H_Laplace(ε − ln(a/b)) + ((1 − a) − e^ε (1 − b))⁺.

H_Laplace(x) is the largest of 0, 1 − e^x and 1 − e^{(x − t)/2}, for every x.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import ball


def tail(x: Fraction) -> tuple[arb, arb]:
    """Return P(Z ≥ x) and P(Z < x) for Laplace noise Z of scale 1."""
    rare = (-abs(ball(x))).exp() / 2
    return (rare, 1 - rare) if x >= 0 else (1 - rare, rare)


@final
@dataclass(frozen=True)
class TestedReleasePair(Pair):
    """P and Q of two neighbours whose distances differ by one.

    Parameters
    ----------
    distance
        t > 0, by how much the number moves, in units of its noise.
    margin
        x, by how much the smaller distance is below the threshold, in units of the test's noise.
    step
        r > 0, by how much the other one is above it, in the same units.
    rises
        Whether P has the larger distance.
    """

    law_name = "tested-release"

    distance: Fraction
    margin: Fraction
    step: Fraction
    rises: bool

    @property
    def _noise(self) -> LaplacePair:
        return LaplacePair(exact(self.distance))

    def _chances(self) -> tuple[tuple[arb, arb], tuple[arb, arb]]:
        """Return (a, 1 − a) and (b, 1 − b)."""
        both = tail(self.margin), tail(self.margin - self.step)
        return both[::-1] if self.rises else both

    def _losses(self) -> tuple[arb, arb]:
        """Return ln(a/b) and ln((1 − a)/(1 − b)): ±r where both are on that side of x = 0."""
        (a, no_a), (b, no_b) = self._chances()
        way = ball(self.step) * (1 if self.rises else -1)
        passed = way if self.margin >= self.step else (a / b).log()
        return passed, -way if self.margin <= 0 else (no_a / no_b).log()

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the sum of both parts."""
        (a, no_a), (_, no_b) = self._chances()
        passed, _ = self._losses()
        x, t, factor = epsilon.ball() - passed, ball(self.distance), epsilon.ball().exp()
        noisy = (-x.expm1()).max(-((x - t) / 2).expm1()).max(arb(0))
        return a * noisy + (no_a - factor * no_b).max(arb(0))

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the loss; a part whose loss may be ε or not is between both."""
        (a, no_a), (b, no_b) = self._chances()
        passed, failed = self._losses()
        above, below = self._noise_tails(epsilon.ball() - passed)
        fails = _above(failed, epsilon)
        return Tails(
            p_above=a * above[0] + no_a * fails,
            p_below=a * below[0] + no_a * (1 - fails),
            q_above=b * above[1] + no_b * fails,
            q_below=b * below[1] + no_b * (1 - fails),
        )

    def _noise_tails(self, x: arb) -> tuple[tuple[arb, arb], tuple[arb, arb]]:
        """Return P and Q of {l > x}, and of the rest, for the loss l of the noise."""
        t = ball(self.distance)
        none, all_of_it = (arb(0), arb(0)), (arb(1), arb(1))
        if x >= t:
            return none, all_of_it
        if x < -t:
            return all_of_it, none
        c = (t + x) / 2
        left, right = (c - t).exp() / 2, (-c).exp() / 2
        above, below = (1 - left, right), (left, 1 - right)
        if not (-t <= x < t):  # an atom that is not told from x
            above = above[0].union(arb(0)).union(arb(1)), above[1].union(arb(0)).union(arb(1))
            below = 1 - above[0], 1 - above[1]
        return above, below

    def renyi(self, order: arb) -> arb:
        """Return ln(E e^{(order − 1)L})/(order − 1)."""
        (a, no_a), _ = self._chances()
        passed, failed = self._losses()
        less = order - 1
        inner = (less * (self._noise.renyi(order) + passed)).exp()
        return (a * inner + no_a * (less * failed).exp()).log() / less

    def kullback_leibler(self) -> arb:
        """Return E L."""
        (a, no_a), _ = self._chances()
        passed, failed = self._losses()
        return a * (passed + self._noise.kullback_leibler()) + no_a * failed

    def max_loss(self) -> arb:
        """Return the larger one of both parts."""
        passed, failed = self._losses()
        return (passed + ball(self.distance)).max(failed)

    def exact_max_loss(self) -> ExactReal | None:
        """Return r + t where P has the larger distance, and both are below the threshold."""
        if self.rises and self.margin >= self.step:
            return exact(self.step + self.distance)
        return None

    def reverse(self) -> TestedReleasePair:
        """Return the pair with P and Q exchanged."""
        return TestedReleasePair(self.distance, self.margin, self.step, not self.rises)


def _above(loss: arb, epsilon: ExactReal) -> arb:
    """Return 1 where a loss is above ε, 0 where it is not, and both where that is not known."""
    if loss > epsilon.ball():
        return arb(1)
    return arb(0) if loss <= epsilon.ball() else arb(0).union(arb(1))

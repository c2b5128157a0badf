"""The choice between two noisy scores: pairs that neighbours of every selection have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import normal_cdf

STEPS = 8
"""Steps in which a score may stand behind, from 0 to the whole move."""


def _laplace(x: arb, ratio: arb) -> arb:
    """Return P(X − rY ≥ x) for x ≥ 0, X and Y Laplace variables of scale 1."""
    if ratio == 1:
        return (2 + x) * (-x).exp() / 4
    square = ratio**2
    return (square * (-x / ratio).exp() - (-x).exp()) / (2 * (square - 1))


_TAILS: dict[str, Callable[[arb, arb], arb]] = {
    "Exponential": lambda x, _: (-x).exp() / 2,
    "Laplace": _laplace,
    "Gaussian": lambda x, _: normal_cdf(-x / arb(2).sqrt()),
}
"""P(X − Y ≥ x) for x ≥ 0: the tail of the difference of two noises."""


@final
@dataclass(frozen=True)
class TwoCandidates(FiniteLaws):
    """Which of two noisy scores is larger: the first gains t units of noise on the second.

    Of n steps, under Q pair number i has the first score it/n behind, under P (n − i)t/n ahead. Of
    Gumbel noise its losses are s and s − t, s = (2i + 1)t/(2n + 2). The other way round it is pair
    n − i.

    Parameters
    ----------
    noise
        "Gumbel", "Exponential", "Laplace" or "Gaussian".
    distance
        t > 0.
    ratio
        The scale of the second noise, for Laplace noise.
    steps
        n, of which there are n + 1 pairs.
    """

    noise: str
    distance: ExactReal
    ratio: ExactReal = ExactReal.of_rational(1)
    steps: int = STEPS

    @property
    def pairs(self) -> tuple[FinitePair, ...]:
        """All of them."""
        return tuple(FinitePair(self, i) for i in range(self.steps + 1))

    def divergence(self, order: arb | None) -> arb:
        """Return their largest D_order (D_1 for None), a lower bound, to few digits."""
        with ctx.workprec(START_PRECISION):
            found = arb(0)
            for pair in self.pairs:
                found = found.max(pair.kullback_leibler() if order is None else pair.renyi(order))
            return found

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the candidates."""
        return "the one that rises", "the other one"

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return P(X − Y < a) and the rest at a = (8 − i)t/8 and at a = −it/8."""
        t, ratio = self.distance.ball(), self.ratio.ball()
        if self.noise == "Gumbel":
            s = t * (2 * index + 1) / (2 * self.steps + 2)
            rises, falls = (s - t).expm1() / (-t).expm1(), s.expm1() / t.expm1()
            return [rises, falls], [rises * (-s).exp(), falls * (t - s).exp()]
        ahead = _TAILS[self.noise](t * (self.steps - index) / self.steps, ratio)
        behind = _TAILS[self.noise](t * index / self.steps, ratio)
        return [1 - ahead, ahead], [behind, 1 - behind]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return s and s − t of Gumbel noise."""
        if self.noise != "Gumbel":
            return None, None
        share = Fraction(2 * index + 1, 2 * self.steps + 2)
        return [ExactReal.of_rational(part) * self.distance for part in (share, share - 1)]

    def is_mirrored(self, index: int) -> bool:
        """Whether both are as far apart under P as under Q."""
        return 2 * index == self.steps

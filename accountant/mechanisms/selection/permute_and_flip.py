"""Permute-and-flip: report the noisy maximum, with exponential noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import MirroredPair, Pair, Tails, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Positive, Switch
from dpassay.accountant.mechanisms.additive.laplace import Laplace, LaplacePair
from dpassay.accountant.mechanisms.selection.choice import WITHIN, Choice
from dpassay.accountant.mechanisms.selection.exponential import exponents
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.two_candidates import TwoCandidates
from dpassay.accountant.release import sampling


@final
@dataclass(frozen=True)
class NoisyMaximumPair(MirroredPair):
    """The largest of the profiles of all pairs of permute-and-flip: that of Laplace noise.

    Of divergences only bounds are known: that of Laplace noise, and those of two candidates.
    The complement of an event is one, with scores exchanged.
    """

    law_name = "noisy-maximum"

    distance: ExactReal

    @property
    def _laplace(self) -> LaplacePair:
        return LaplacePair(self.distance)

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return that of Laplace noise."""
        return self._laplace.hockey_stick(epsilon)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of Laplace noise."""
        return self._laplace.tails(epsilon)

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Return that of Laplace noise."""
        return self._laplace.inverse(delta, relative_width)

    def _two_candidates(self, order: arb | None) -> arb:
        """Return the largest D_order found of two candidates (order 1 for None)."""
        return TwoCandidates("Exponential", self.distance).divergence(order)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball: from two candidates up to Laplace noise."""
        return self._two_candidates(order).union(self._laplace.renyi(order))

    def kullback_leibler(self) -> arb:
        """Return a wide ball: from two candidates up to Laplace noise."""
        return self._two_candidates(None).union(self._laplace.kullback_leibler())

    def closed_rho(self) -> arb:
        """Return a wide ball: from two candidates up to Laplace noise."""
        return self._two_candidates(None).union(self.rho_bound())

    def rho_bound(self) -> arb:
        """Return that of Laplace noise."""
        return self._laplace.rho_bound()

    def exact_max_loss(self) -> ExactReal:
        """Return t, which rare events of two candidates come near."""
        return self.distance

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidate whose score rises."""
        return (
            f"of two candidates the one that rises, from {epsilon}/2 + {self.distance}/2 units "
            "of noise below the other to above it by what is left"
        )


@declared
class PermuteAndFlip(Choice):
    """Go through candidates in random order; take i with probability e^{ε(u_i − max u)/(2Δ)}.

    McKenna and Sheldon (2020). The choice is that of the largest u_i + (2Δ/ε)E_i with independent
    exponential E_i (Ding, Kifer, Steinke, Wang, Xiao and Zhang 2021). It is ε-DP.

    Parameters
    ----------
    epsilon
        ε > 0.
    sensitivity
        Δ > 0: no score u_i differs by more between neighbours.
    monotone
        Whether all scores change in the same direction: then Δ in place of 2Δ is enough.

    Notes
    -----
    Its trade-off function is exactly that of Laplace noise at distance ε, for any number of
    candidates. Count scores in units of the noise and let S be a set of candidates, M_S the largest
    noisy score in S, and M the largest of the others. Against Q the law P(S) is largest where all
    of S rises, and the others fall, as far as they may: M_S − M moves by ε. With
    p(t) = P(M_S + t > M) two facts hold. The largest of independent exponentials has a hazard rate
    of at most 1: past x at least one of them is, and that one exceeds x + s with probability
    e^{−s}. So p(t + s) ≤ e^s p(t), and, with the roles of S and the others exchanged,
    1 − p(t) ≤ e^s(1 − p(t + s)): p′ ≤ min(p, 1 − p). The distribution function F of Laplace noise
    has F′ = min(F, 1 − F), hence p(t + ε) ≤ F(F⁻¹(p(t)) + ε), the most that Laplace noise lets a
    test reach. Two candidates attain it everywhere: the difference of two exponentials is Laplace.
    """

    example = "PermuteAndFlip(epsilon=1)"
    noise_argument = "epsilon"
    noise_grows = False

    epsilon: Positive = Positive()
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)

    @property
    def dominated_by(self) -> Mechanism:
        """Laplace noise."""
        return Laplace(ExactReal.of_rational(1) / self.epsilon)

    def attained(self) -> tuple[Pair, ...]:
        """Return those of two candidates."""
        return TwoCandidates("Exponential", self.epsilon).pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pairs of two candidates."""
        return WorstCase.symmetric(
            NoisyMaximumPair(self.epsilon),
            "The best event moves by epsilon units of noise against the rest, and the probability "
            "that it holds the maximum moves at most as fast as that of a half-line under Laplace "
            "noise, which two candidates attain.",
        )

    def _exponents(self, scores: ArrayLike) -> list[arb]:
        return exponents(scores, self.epsilon, self.sensitivity, self.monotone)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Flip the coin of every candidate, and go through them in random order."""
        count = len(self._exponents(value))

        @cache
        def tails(_precision: int) -> list[arb]:
            return [-exponent.expm1() for exponent in self._exponents(value)]

        def flips(i: int) -> Array:
            return sampling.indices_by_inversion(lambda: [tails(ctx.prec)[i]], times, rng=rng)

        heads = np.array([flips(i) for i in range(count)])  # each candidate is met at most once
        order, each = np.tile(np.arange(count)[:, np.newaxis], times), np.arange(times)
        for met in range(count - 1):
            drawn = met + rng.integers(0, count - met, times)
            order[met], order[drawn, each] = order[drawn, each], order[met].copy()
        first = np.take_along_axis(heads, order, axis=0).argmax(axis=0)
        found: Array = order[first, each]
        return found

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return scores of two candidates, each moved by Δ at most: equal, and crossing."""
        move = WITHIN * float(self.sensitivity)
        down = 0.0 if self.monotone else -move
        return [([0.0, 0.0], [move, down]), ([0.0, (move - down) / 2], [move, (move + down) / 2])]

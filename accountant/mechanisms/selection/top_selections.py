"""The best few candidates, in one shot."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, OneOf, Positive, Switch
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.selection.candidates import (
    WITHIN,
    Choice,
    ExponentialMechanism,
    ReportNoisyMax,
    exponents,
    read_scores,
)
from dpassay.accountant.mechanisms.wrappers.composed import Guaranteed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.maxima import STEPS, TwoCandidates
from dpassay.accountant.pairs.selection import MOST_RELEASES, BoundedRangeProduct
from dpassay.accountant.release import sampling
from dpassay.accountant.release.comparisons import places_of_largest

_FINE = 24
"""Steps in which the move is shared by two scores, of one release."""
_MANY = 1000
"""Candidates of a first selection: bounds of any number are those of this many."""


@declared
class TopSelections(Choice):
    """Report the k candidates with the largest noisy scores, in order: noise is added once.

    Durfee and Rogers (2019) with Gumbel noise; Qiao, Su and Zhang (2021) with Laplace noise. The
    noise has the scale 2Δ/ε, or Δ/ε; all k together are kε-DP, and no better.

    Parameters
    ----------
    epsilon
        ε > 0 of each selection.
    selected
        k ≥ 1, of any larger number of candidates.
    sensitivity
        Δ > 0: no score differs by more between neighbours.
    monotone
        Whether all scores change in the same direction.
    noise
        "Gumbel", "Laplace" or "Exponential".

    Notes
    -----
    *Gumbel, above.* Given the first i, candidate i + 1 is that of an exponential mechanism among
    the others (Durfee and Rogers 2019, Lemma 4.2): so all are at most k adaptive exponential
    mechanisms, which `dpassay.accountant.pairs.selection` encloses.

    *Laplace and exponential, above.* Let f be the density of the noise. The chance of an order is
    the integral of Π f(y_i − u_i) over y_1 > … > y_k > M, M the largest noisy score of the others.
    Where the scores u become v, add Δ to every y: the others exceed M + Δ never more than before,
    and y_i + Δ − v_i is y_i − u_i and some number in [0, 2Δ], or in [0, Δ] where all scores rise;
    where all fall the y stay. A factor f falls by at most e^ε each. So all are kε-DP.

    *Below.* Let very many candidates have one of two scores. Of Gumbel noise to leave out k of them
    changes nothing in the limit, and k independent selections between both scores are attained. So
    with the other noises: they have the tail e^{−x} above every score, and given that the noisy
    score number k + 1 is above all scores, as it is but for a vanishing chance, those before it
    are drawn independently in proportion to e^{u_i}. With exponential noise the first selection
    alone is permute-and-flip.
    """

    example = "TopSelections(epsilon='1/2', selected=3)"
    noise_argument = "epsilon"
    noise_grows = False

    epsilon: Positive = Positive()
    selected: Integer = Integer(least=1)
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)
    noise: OneOf = OneOf("Gumbel", "Laplace", "Exponential", default="Gumbel")

    def __post_init__(self) -> None:
        if self.selected > MOST_RELEASES:
            raise expected("selected", self.selected, f"≤ {MOST_RELEASES}")

    @property
    def _scale(self) -> ExactReal:
        """The scale of the noise."""
        return self.sensitivity / self.epsilon * ExactReal.of_rational(1 if self.monotone else 2)

    @property
    def _one(self) -> ExponentialMechanism | ReportNoisyMax:
        """The first selection; of any number of candidates."""
        given = self.sensitivity, self.monotone
        if self.noise == "Gumbel":
            return ExponentialMechanism(self.epsilon, *given)
        return ReportNoisyMax(self.noise, self._scale, _MANY, *given)

    @property
    def dominated_by(self) -> Mechanism:
        """As many exponential mechanisms' bound, or whatever is kε-DP."""
        from dpassay.accountant.mechanisms.wrappers.composed import Composed

        one = self._one.dominated_by
        assert one is not None
        if self.noise == "Gumbel":
            return Composed(one, self.selected)
        if self.selected == 1:
            return one
        return Guaranteed(self.epsilon * ExactReal.of_rational(self.selected))

    def attained(self) -> tuple[Pair, ...]:
        """Return those of independent selections between two scores, or of the first one."""
        if self.selected == 1:
            return self._one.attained()
        return self._independent(STEPS)

    def _independent(self, steps: int) -> tuple[Pair, ...]:
        """Return independent selections between two scores, for some shares of the move."""
        from dpassay.accountant.composition.choose import product

        pairs = TwoCandidates("Gumbel", self.epsilon, steps=steps).pairs
        return tuple(product([(pair, self.selected)]) for pair in pairs)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return what lies between independent and adaptive selections."""
        if self.selected == 1:
            return self._one.worst_case(adjacency)
        from dpassay.accountant.pairs.between import Between

        least = self._independent(_FINE)
        known = "exponential mechanisms, each chosen by what came before"
        most: Pair = BoundedRangeProduct(self.epsilon, self.selected)
        if self.noise != "Gumbel":
            (most,) = self.dominated_by.worst_case(adjacency).remove
            known = "every loss that k times that of one selection allows"
        if self.noise == "Exponential":
            least += self._one.worst_case(adjacency).remove
        return WorstCase.symmetric(
            Between(least, most, "how private selections without repetition are"),
            "Below: independent selections between two scores that very many candidates have. "
            f"Above: {known}.",
        )

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Select one after the other, each among those that are left."""
        known = read_scores(value)
        if len(known) <= self.selected:
            raise expected("value", value, f"to have more than {self.selected} scores")
        if self.noise != "Gumbel":
            return self._noisy(known, times, rng)
        found = np.empty((times, self.selected), int)
        for row in found:
            left = list(range(len(known)))
            for place in range(self.selected):

                def cumulative(left: list[int] = left) -> list[arb]:
                    given = exponents(value, self.epsilon, self.sensitivity, self.monotone)
                    weights = [given[i].exp() for i in left]
                    total = sum(weights[1:], start=weights[0])
                    return list(accumulate(weight / total for weight in weights))[:-1]

                drawn = sampling.indices_by_inversion(cumulative, 1, rng=rng)
                row[place] = left.pop(int(drawn[0])) if len(left) > 1 else left.pop()
        return found

    def _noisy(self, known: list[ExactReal], times: int, rng: Randomness) -> Array:
        """Add noise once: the largest noisy score, then the largest of the others, …"""
        return places_of_largest(
            lambda: [score.ball() / self._scale.ball() for score in known],
            self.noise.lower(),
            times,
            self.selected,
            rng=rng,
        )

    def sample(self, size: int, *, rng: Any) -> Array:
        """Draw selections among candidates of the same score, one more than are selected."""
        return self.release([0] * (self.selected + 1), size, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return equal scores of which half rise and half fall."""
        move = WITHIN * float(self.sensitivity)
        half = 4 * self.selected
        down = 0.0 if self.monotone else -move
        return [([0.0] * (2 * half), [move] * half + [down] * half)]

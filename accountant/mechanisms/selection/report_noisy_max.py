"""Report noisy max: the index of the largest of some scores with independent noise."""

from __future__ import annotations

import math
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
from dpassay.accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.additive.logistic import Logistic
from dpassay.accountant.mechanisms.selection.choice import WITHIN, Choice, read_scores
from dpassay.accountant.mechanisms.selection.exponential import ExponentialMechanism
from dpassay.accountant.mechanisms.selection.permute_and_flip import PermuteAndFlip
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs import gaussian_maxima, maxima
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian_maxima import GaussianMaximaPair
from dpassay.accountant.pairs.maxima import MaximaPair, TwoDiscreteCandidates, UnequalMaximaPair
from dpassay.accountant.pairs.two_candidates import TwoCandidates
from dpassay.accountant.release.comparisons import places_of_largest

_LEAST = 2
"""Candidates of a choice."""
_KNOWN = 3
"""Candidates up to which ρ with Gaussian noise is known exactly."""
_FEW = ((1, 7), (1, 5), (1, 4), (1, 3), (1, 2), (2, 4), (2, 3), (2, 2), (3, 3))
"""Candidates of equal scores that rise, and others; no other sizes are known to be worse by 1 %
where ε ≤ 0.9t. Nearer to t more others are: at 0.99t one against six by 13 %."""


@declared
class ReportNoisyMax(Choice):
    """Add independent noise to the score of each candidate, and report which one is the largest.

    Dwork and Roth (2014), section 3.3. Let t be the largest move between two scores in units of
    the noise. With Gumbel noise it is the exponential mechanism, with exponential noise
    permute-and-flip: both exact, and t-DP. With Laplace noise it is t-DP for any number of
    candidates, and its profile lies between two bounds, which meet for two candidates. So with
    discrete Laplace noise, of integer scores: of equal noisy scores the first one is reported.
    With Gaussian noise the profile is exact for every number of candidates.

    Parameters
    ----------
    noise
        "Laplace", "Gaussian", "Exponential", "Gumbel" or "DiscreteLaplace".
    scale
        The standard deviation of Gaussian noise, and the scale of every other noise: the mean of
        exponential noise, b in e^{−|x|/b} and in e^{−e^{−x/b}}.
    candidates
        How many there are, ≥ 2; they do not depend on the data.
    sensitivity
        Δ > 0: no score differs by more between neighbours; an integer for discrete noise.
    monotone
        Whether all scores change in the same direction: two of them then move by at most Δ against
        each other, otherwise by 2Δ.

    Notes
    -----
    The proofs are at the head of `gaussian_maxima` and `maxima` in `dpassay.accountant.pairs`. A
    Laplace density changes by at most e^s where it is moved by s; so, as for permute-and-flip,
    Laplace noise at distance t dominates.
    """

    example = "ReportNoisyMax(noise='Gaussian', scale=2, candidates=10)"
    noise_argument = "scale"

    noise: OneOf = OneOf("Laplace", "Gaussian", "Exponential", "Gumbel", "DiscreteLaplace")
    scale: Positive = Positive()
    candidates: Integer = Integer(least=_LEAST)
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)

    def __post_init__(self) -> None:
        if self._is_discrete and not _is_integer(self.sensitivity):
            raise expected("sensitivity", self.sensitivity, "to be an integer for this noise")

    @property
    def _is_discrete(self) -> bool:
        return self.noise == "DiscreteLaplace"

    @property
    def _moved(self) -> ExactReal:
        """How far two scores move against each other."""
        return self.sensitivity * ExactReal.of_rational(1 if self.monotone else 2)

    @property
    def distance(self) -> ExactReal:
        """The same in units of the noise, t."""
        return self._moved / self.scale

    @property
    def dominated_by(self) -> Mechanism:
        """Noise whose trade-off function is below every one of this: of several releases too."""
        one = ExactReal.of_rational(1)
        if self.noise == "Gumbel":
            return Logistic(one / self.distance)
        if self._is_discrete:
            return DiscreteLaplace(self.scale, math.floor(self._moved))
        if self.noise in ("Exponential", "Laplace"):
            return Laplace(one / self.distance)
        joint = GaussianMaximaPair(self.candidates, self.distance).joint_rho
        return Gaussian(self.scale, self._moved * ExactReal.of_root(2 * joint))

    def attained(self) -> tuple[Pair, ...]:
        """Return those of two candidates, the others far below."""
        if self._is_discrete:
            return TwoDiscreteCandidates(self.distance, math.floor(self._moved)).pairs
        return TwoCandidates(self.noise, self.distance).pairs

    def same(self) -> ExponentialMechanism | PermuteAndFlip | None:
        """Return the selection that has the same law, if there is one."""
        given = self.distance, self.sensitivity, self.monotone
        if self.noise == "Gumbel":
            return ExponentialMechanism(*given)
        return PermuteAndFlip(*given) if self.noise == "Exponential" else None

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return all pairs of scores at once."""
        same = self.same()
        if same is not None:
            return same.worst_case(adjacency)
        if self.noise == "Gaussian":
            return WorstCase.symmetric(
                GaussianMaximaPair(self.candidates, self.distance),
                "The best event is a set of candidates that rise while the others fall; its "
                "probability moves most for equal scores in it, and equal ones outside.",
            )
        t = math.floor(self._moved) if self._is_discrete else None
        if self.candidates == _LEAST:
            return WorstCase.symmetric(
                MaximaPair(1, 1, self.distance, t),
                "The best event is that of the candidate that rises, from the worst gap.",
            )
        least = tuple(
            MaximaPair(*size, self.distance, t)
            for few in _FEW
            for size in dict.fromkeys((few, few[::-1]))
            if sum(size) <= self.candidates
        )
        most: Pair = UnequalMaximaPair(self.candidates, self.distance)
        if self._is_discrete:
            (most,) = self.dominated_by.worst_case(adjacency).remove
        return WorstCase.symmetric(
            Between(least, most, "which scores of several candidates are worst"),
            "Below: a few equal scores rise, a few others fall. Above: what the largest of several "
            "noises of any scores can do, or each step of the scores costs what a step of one "
            "noise does.",
        )

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw noise until it tells which score is the largest."""
        known = read_scores(value)
        if len(known) != self.candidates:
            raise expected("value", value, f"to have {self.candidates} scores, as candidates says")
        same = self.same()
        if same is not None:
            return same.releases(value, times, rng)
        if self._is_discrete:
            return self._first_of_the_largest(known, times, rng)
        law = {"Gaussian": "normal", "Laplace": "laplace"}[self.noise]
        scores = [score / self.scale for score in known]
        found = places_of_largest(lambda: [u.ball() for u in scores], law, times, 1, rng=rng)
        return np.asarray(found[:, 0])

    def _first_of_the_largest(self, scores: list[ExactReal], times: int, rng: Randomness) -> Array:
        """Add integers to integers."""
        for i, score in enumerate(scores):
            if not _is_integer(score):
                raise expected(f"scores[{i}]", score, "to be an integer, for this noise")
        whole = [math.floor(score) for score in scores]
        drawn = DiscreteLaplace(self.scale).sample(times * len(whole), rng=rng).tolist()
        found = np.empty(times, int)
        for row in range(times):
            noise = drawn[row * len(whole) : (row + 1) * len(whole)]
            noisy = [score + z for score, z in zip(whole, noise, strict=True)]
            found[row] = noisy.index(max(noisy))
        return found

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw what equal scores give."""
        return self.outputs([0] * self.candidates, size, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return equal scores of which half rise and half fall, and one that catches up."""
        k, move = self.candidates, WITHIN * float(self.sensitivity)
        if self._is_discrete:
            move = float(self.sensitivity)
        down = 0.0 if self.monotone else -move
        half = [move] * (k // 2) + [down] * (k - k // 2)
        behind = [-(move - down) // 2 if self._is_discrete else -(move - down) / 2] + [0.0] * (
            k - 1
        )
        return [([0.0] * k, half), (behind, [behind[0] + move] + [down] * (k - 1))]

    def chance_of_best(self, distance: arb) -> arb:
        """Return P(the best is chosen) where the others are all so many units of noise below it.

        Of Laplace or Gaussian noise.
        """
        if self.noise == "Gaussian":
            return gaussian_maxima.difference(self.candidates, 1, distance)[0]
        return maxima.chance_of_best(self.candidates, distance)

    def exact_rho(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return t²(k − 1)/(2k) of Gaussian noise for two and three candidates."""
        if self.noise != "Gaussian" or self.candidates > _KNOWN:
            return None
        pair = GaussianMaximaPair(self.candidates, self.distance)
        return self.distance.squared.times(pair.joint_rho)


def _is_integer(value: ExactReal) -> bool:
    return value == ExactReal.of_rational(math.floor(value))

"""Report noisy max: the index of the largest of some scores with independent noise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, OneOf, Positive, Switch
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.additive.logistic import Logistic
from dpassay.accountant.mechanisms.selection.choice import WITHIN, Choice, read_scores
from dpassay.accountant.mechanisms.selection.exponential import ExponentialMechanism
from dpassay.accountant.mechanisms.selection.permute_and_flip import PermuteAndFlip
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import enclose
from dpassay.accountant.pairs import gaussian_maxima, maxima
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian_maxima import GaussianMaximaPair
from dpassay.accountant.pairs.gumbel_tables import GumbelTables
from dpassay.accountant.pairs.gumbel_value import GumbelValuePair
from dpassay.accountant.pairs.maxima import MaximaPair, TwoDiscreteCandidates, UnequalMaximaPair
from dpassay.accountant.pairs.noisy_values import ExponentialValue, NothingAbove
from dpassay.accountant.pairs.two_candidates import TwoCandidates
from dpassay.accountant.release.comparisons import places_of_largest

_LEAST = 2
"""Candidates of a choice."""
_FINE = Fraction(1, 10**45)
"""By how much a mass that a value shows is rounded up: checkers compare 38 digits."""
_FAR = ExactReal.of_rational(50)
"""Scales below one score at which others hardly ever win."""
_BITS = 20
"""Of a simulated number, in units of the noise: its float has 53."""
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
    returns
        "index"; "gap", with it how far the largest noisy score is ahead of the second (Ding, Wang,
        Zhang and Kifer 2019); "value", with it the largest noisy score.

    Notes
    -----
    The proofs are at the head of `gaussian_maxima` and `maxima` in `dpassay.accountant.pairs`. A
    Laplace density changes by at most e^s where it is moved by s; so, as for permute-and-flip,
    Laplace noise at distance t dominates.

    *Gap.* Two candidates report the difference of both noisy scores: noise of a log-concave
    density, moved by t, whose best events are half-lines, which are choices between two scores too.
    So H is that of the index. Of more candidates the index is a lower bound. Above, given all other
    noise an outcome is one of the noise of the winner, which moves by at most t against them: a
    loss of at most t for Laplace noise, where ln f has a slope of at most 1. So it is with Gumbel
    noise: the largest of the others is a Gumbel variable again, and the winner is ahead of it by
    logistic noise. With Gaussian noise, what all noisy scores against their mean allow.

    With exponential noise the loss is at most t too. Let the winner be at 0 and x = −g for a gap g;
    its density there is h = ∫ e^{x−m} Σ_j g_j(m) dm over m ≥ x, where g_j(m) is the density of the
    largest of the others at m if it is that of j, at u_j + noise. From m on g_j falls at most like
    e^{−m}, as the other factors are distribution functions: so A_j = ∫ e^{x−m} g_j ≥ g_j(x)/2. By
    parts ∂h/∂u_j = g_j(x) − A_j, which is so between −A_j and A_j. Where every u_j moves by at most
    dt, h moves by at most dt ΣA_j = h dt.

    *Value.* With Gumbel noise its profile is exact, and larger than that of the index: see
    `gumbel_value`. With exponential noise it is (0, 1 − e^{−Δ/b})-DP, exactly: see `noisy_values`,
    which has the largest loss with Laplace noise too. Else, below, the index, and one candidate far
    above the others, which shows its noisy score; above, all noisy scores, each moved by Δ.
    """

    example = "ReportNoisyMax(noise='Gaussian', scale=2, candidates=10)"
    noise_argument = "scale"

    noise: OneOf = OneOf("Laplace", "Gaussian", "Exponential", "Gumbel", "DiscreteLaplace")
    scale: Positive = Positive()
    candidates: Integer = Integer(least=_LEAST)
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)
    returns: OneOf = OneOf("index", "gap", "value", default="index")

    def __post_init__(self) -> None:
        if self._is_discrete and not _is_integer(self.sensitivity):
            raise expected("sensitivity", self.sensitivity, "to be an integer for this noise")

    @property
    def _is_one_noise(self) -> bool:
        """Whether it is the difference of two noises that is reported."""
        known = self.noise in ("Gaussian", "Exponential", "Gumbel")
        return known and self.returns == "gap" and self.candidates == _LEAST

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
    def _each(self) -> ExactReal:
        """How far one score moves, in units of the noise."""
        return self.sensitivity / self.scale

    @property
    def _exponential_value(self) -> ExponentialValue | None:
        known = self.returns == "value" and self.noise == "Exponential"
        return ExponentialValue(self._each) if known else None

    @property
    def _is_gumbel_value(self) -> bool:
        return self.returns == "value" and self.noise == "Gumbel"

    @property
    def only_alone(self) -> str:
        """Also of the value with Gumbel noise, whose worst scores depend on ε."""
        if self._is_gumbel_value:
            return (
                "Which scores are worst depends on epsilon: a composition is only enclosed, and a "
                "sample not known. Ask about one, or about returns='index' or 'gap'."
            )
        return str(Choice.only_alone.__get__(self))

    @property
    def dominated_by(self) -> Mechanism | None:
        """Noise whose trade-off function is below every one of this: of several releases too."""
        return self._bounding

    @property
    def _bounding(self) -> Mechanism:
        one = ExactReal.of_rational(1)
        value = self._exponential_value
        if value is not None:
            return Guaranteed(0, enclose(lambda: value.own, relative_width=_FINE).upper)
        if self._is_gumbel_value:
            return GumbelTables(GumbelValuePair(self._each, self.monotone))
        if self.returns == "value":
            return Composed(self._of_one_score, self.candidates)
        if self.returns == "gap" and self.candidates > _LEAST and self.noise != "Gaussian":
            return Guaranteed(self.distance)
        if self.noise == "Gumbel":
            return Logistic(one / self.distance)
        if self._is_discrete:
            return DiscreteLaplace(self.scale, math.floor(self._moved))
        if self.noise in ("Exponential", "Laplace"):
            return Laplace(one / self.distance)
        joint = GaussianMaximaPair(self.candidates, self.distance).joint_rho
        return Gaussian(self.scale, self._moved * ExactReal.of_root(2 * joint))

    @property
    def _of_one_score(self) -> Mechanism:
        if self._is_discrete:
            return DiscreteLaplace(self.scale, math.floor(self.sensitivity))
        return (Gaussian if self.noise == "Gaussian" else Laplace)(self.scale, self.sensitivity)

    def attained(self) -> tuple[Pair, ...]:
        """Return those of two candidates, or one, the others far below."""
        if self._exponential_value is not None:
            return self._exponential_value.attained
        if isinstance(self._bounding, GumbelTables) and self._bounding.below:
            return self._bounding.below
        if self._is_one_noise:
            return self._bounding.worst_case(None).remove
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
        if self._is_one_noise:
            return self._bounding.worst_case(adjacency)
        if self._is_gumbel_value:
            return WorstCase.symmetric(
                GumbelValuePair(self._each, self.monotone),
                "Index and value are the first of independent clocks, whose rates change by "
                "factors; the worst ones are the largest and the least, which two candidates have.",
            )
        if self._exponential_value is not None:
            return WorstCase.symmetric(
                self._exponential_value.pair,
                "Noise above the higher scores is shared; one candidate far above the others shows "
                "the rest.",
            )
        if self.returns == "value" or (self.returns == "gap" and self.candidates > _LEAST):
            return self._with_a_number(adjacency)
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
            (most,) = self._bounding.worst_case(adjacency).remove
        return WorstCase.symmetric(
            Between(least, most, "which scores of several candidates are worst"),
            "Below: a few equal scores rise, a few others fall. Above: what the largest of several "
            "noises of any scores can do, or each step of the scores costs what a step of one "
            "noise does.",
        )

    def _with_a_number(self, adjacency: Adjacency | None) -> WorstCase:
        known = [dataclasses.replace(self, returns="index"), self._bounding]
        if self.returns == "value":
            known.insert(1, self._of_one_score)
        alone = ", and one score far above the others" if self.returns == "value" else ""
        *least, most = (each.worst_case(adjacency).remove[0] for each in known)
        largest = None
        if self.returns == "value" and self.noise != "Gaussian":
            rate = ExactReal.of_rational(1) / self.scale if self._is_discrete else None
            nothing = NothingAbove(self.candidates, self._each, rate)
            least, largest = [*least, nothing.pair], nothing.largest
        return WorstCase.symmetric(
            Between(tuple(least), most, f"what the {self.returns} adds", largest),
            f"Below: the index{alone}. Above: what the noise of the winner, or of all, allows.",
        )

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw noise until it tells which score is the largest."""
        known = read_scores(value)
        if self.returns != "index":
            raise NotApplicableError("Only the index is released exactly. Ask for returns='index'.")
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

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw indices; with a number, in a second column, from floats that are rounded.

        For simulation and audits: on a lattice the last bits tell nothing of the scores.
        """
        if self.returns == "index":
            return super().outputs(answer, size, rng=rng)
        known, scale = np.array([float(score) for score in read_scores(answer)]), float(self.scale)
        shape = size, len(known)
        draw: dict[str, Callable[..., Any]] = {
            "Laplace": rng.laplace,
            "Gaussian": rng.normal,
            "Gumbel": rng.gumbel,
            "Exponential": lambda _, scale, size: rng.exponential(scale, size),
            "DiscreteLaplace": lambda _, scale, size: (
                DiscreteLaplace(self.scale).sample(math.prod(size), rng=rng).reshape(size)
            ),
        }
        step = 2.0 ** (math.floor(math.log2(scale)) - _BITS)
        noisy = step * np.round((known + draw[self.noise](0, scale, shape)) / step)
        index, ordered = noisy.argmax(axis=1), np.sort(noisy, axis=1)
        number = ordered[:, -1] - (ordered[:, -2] if self.returns == "gap" else 0)
        return np.column_stack([index, number])

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return equal scores of which half rise and half fall, and one that catches up.

        Of a value also equal scores that all rise, and one far above the others.
        """
        k, move = self.candidates, WITHIN * float(self.sensitivity)
        if self._is_discrete:
            move = float(self.sensitivity)
        down = 0.0 if self.monotone else -move
        half = [move] * (k // 2) + [down] * (k - k // 2)
        behind = [-(move - down) // 2 if self._is_discrete else -(move - down) / 2] + [0.0] * (
            k - 1
        )
        listed = [
            ([0.0] * k, half),
            (behind, [behind[0] + move] + [down] * (k - 1)),
        ]
        if self.returns == "value":
            others = [-float(math.ceil(_FAR * self.scale))] * (k - 1)
            listed += [([0.0] * k, [move] * k), ([0.0, *others], [move, *others])]
        return listed

    def chance_of_best(self, distance: arb) -> arb:
        """Return P(the best is chosen) where the others are all so many units of noise below it.

        Of Laplace or Gaussian noise.
        """
        if self.noise == "Gaussian":
            return gaussian_maxima.difference(self.candidates, 1, distance)[0]
        return maxima.chance_of_best(self.candidates, distance)

    def exact_rho(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return t²(k − 1)/(2k) of Gaussian noise for two and three candidates."""
        if self._is_one_noise:
            return self._bounding.exact_rho(adjacency)
        if self.returns != "index":
            return None
        if self.noise != "Gaussian" or self.candidates > _KNOWN:
            return None
        pair = GaussianMaximaPair(self.candidates, self.distance)
        return ExactReal.of_rational(pair.joint_rho * self.distance.square)


def _is_integer(value: ExactReal) -> bool:
    return value == ExactReal.of_rational(math.floor(value))

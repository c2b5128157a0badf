"""The sparse vector technique: which answers of a stream are above a threshold."""

from __future__ import annotations

from typing import Any

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import (
    Integer,
    OneOf,
    OptionalInteger,
    Rational,
    Switch,
    exact_list,
)
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.selection.choice import WITHIN
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed
from dpassay.accountant.mechanisms.wrappers.tabulated import Tabulated
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.above_threshold import AboveThresholdPair
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian_maxima import GaussianMaximaPair
from dpassay.accountant.pairs.maxima import MaximaPair
from dpassay.accountant.pairs.short_stream import ShortStream, largest_square
from dpassay.accountant.pairs.two_candidates import TwoCandidates
from dpassay.accountant.release.comparisons import stream

_MOST_STEPS = 10_000
"""Answers of a short stream: integrals of more lose digits."""
_CERTAIN = Tabulated([1, 0], [0, 1])
"""What tells neighbours apart for sure."""


@declared
class AboveThreshold(Mechanism):
    """Say of each answer of a stream whether it is above a noisy threshold; stop after some.

    The six algorithms of Lyu, Su and Li (2017, Figure 1) for ε, with Δ the sensitivity: theirs has
    the scales 2Δ/ε and 4cΔ/ε; that of Dwork and Roth (2014) 2cΔ/ε and 4cΔ/ε with a fresh threshold;
    Roth's lecture 2Δ/ε and 2cΔ/ε with noisy values; Lee and Clifton's (2014) 4Δ/ε and 4Δ/(3ε);
    Stoddard et al.'s (2014) 2Δ/ε and 0, endless; Chen et al.'s (2015) 2Δ/ε and 2Δ/ε, endless. The
    largest loss of the standard algorithm is Δ/s + 2cΔ/r, or Δ/s + cΔ/r where monotone, exactly.

    Parameters
    ----------
    threshold_scale
        s > 0, the scale of the Laplace noise of the threshold.
    query_scale
        r ≥ 0, that of the noise of every answer.
    count
        c ≥ 1, after how many answers above the stream ends.
    sensitivity
        Δ > 0: no answer differs by more between neighbours.
    monotone
        Whether all answers change in the same direction.
    variant
        "standard"; "fresh-threshold", with new noise of the threshold after each answer above;
        "noisy-values", which shows the noisy value of an answer above; "endless", which ignores
        the count.
    noise
        "Laplace", or "Gaussian", of which the scales are standard deviations.
    steps
        How many answers the stream has at most, for the standard variant; None for any number.

    Notes
    -----
    An endless stream tells neighbours apart for sure, and δ(ε) = 1 for every ε: let every second
    answer of very many at one place rise and the others fall (or stay, where monotone); then the
    shares of both halves that are above differ as the laws of the noise do. So does a stream
    without noise on its answers, of any count: answers rise slowly, and neighbours differ by which
    half of them is the first to be above any threshold. With Gaussian noise every stream without
    an end does. The other proofs are at the head of `above_threshold` and, for Gaussian noise, of
    `short_stream` in `dpassay.accountant.pairs`. Of one answer the profile is exact; of several
    `steps` the largest loss, and with Laplace noise δ of two or three where `count` is 1, to six
    digits as a rule (`first_above`); else δ lies between two ends.
    """

    example = "AboveThreshold(threshold_scale=2, query_scale=4)"
    no_variance = "AboveThreshold says above or below: it has no variance."
    noise_argument = "query_scale"

    threshold_scale: Rational = Rational(least=0, strict=True)
    query_scale: Rational = Rational(least=0)
    count: Integer = Integer(1, least=1)
    sensitivity: Rational = Rational(1, least=0, strict=True)
    monotone: Switch = Switch(False)
    variant: OneOf = OneOf(
        "standard", "fresh-threshold", "noisy-values", "endless", default="standard"
    )
    noise: OneOf = OneOf("Laplace", "Gaussian", default="Laplace")
    steps: OptionalInteger = OptionalInteger(least=1)

    def __post_init__(self) -> None:
        """Require what is known of Gaussian noise, and of short streams."""
        if self.variant != "standard" and (self._is_gaussian or self.steps is not None):
            raise expected(
                "variant", self.variant, "to be 'standard' for Gaussian noise, and for steps"
            )
        if self.steps is not None and not self.query_scale:
            raise expected("query_scale", self.query_scale, "> 0 where steps are given")
        if self.steps is not None and self.steps > _MOST_STEPS:
            raise expected(
                "steps",
                self.steps,
                f"≤ {_MOST_STEPS}",
                "Without steps it is a stream of any length.",
            )

    @property
    def _is_gaussian(self) -> bool:
        return self.noise == "Gaussian"

    @property
    def _tells_all(self) -> bool:
        endless = self.variant == "endless" or (self._is_gaussian and self.steps is None)
        return endless or not self.query_scale

    @property
    def _single(self) -> GaussianMaximaPair | MaximaPair:
        """One answer less its threshold: a choice between two scores, with noise of two scales."""
        s, r, move = self.threshold_scale, self.query_scale, self.sensitivity
        if self._is_gaussian:
            return GaussianMaximaPair(2, ExactReal.of_root(2 * move**2 / (s**2 + r**2)))
        return MaximaPair(1, 1, ExactReal.of_rational(move / r), ratio=s / r)

    @property
    def _pair(self) -> AboveThresholdPair:
        return AboveThresholdPair(
            self.threshold_scale / self.sensitivity,
            self.query_scale / self.sensitivity,
            self.count,
            self.monotone,
            self.variant,
            self.steps,
        )

    @property
    def _joint(self) -> Gaussian:
        """All noisy answers of a short stream."""
        assert self.steps is not None
        s, r = self.threshold_scale / self.sensitivity, self.query_scale / self.sensitivity
        square = largest_square(s, r, self.steps, monotone=self.monotone)
        return Gaussian(ExactReal.of_root(1 / square))

    @property
    def dominated_by(self) -> Mechanism | None:
        """Whatever has the same largest loss; certainty where there is none."""
        if self._tells_all:
            return None
        if self._is_gaussian:
            return self._joint
        if self.steps == 1:
            return Laplace(max(self.threshold_scale, self.query_scale), self.sensitivity)
        largest = self._pair.exact_max_loss()
        return _CERTAIN if largest is None else Guaranteed(largest)

    def attained(self) -> tuple[Pair, ...]:
        """Return those of one answer, which passes the threshold or not."""
        if self._is_gaussian:
            return TwoCandidates("Gaussian", self._single.distance).pairs
        return self._pair.one_answer.pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return all pairs of streams at once."""
        if self._tells_all:
            (certain,) = _CERTAIN.worst_case(adjacency).remove
            return WorstCase.symmetric(certain, "Some streams tell neighbours apart for sure.")
        if self.steps == 1:
            reason = "Half-lines are the best events of one answer less its threshold."
            return WorstCase.symmetric(self._single, reason)
        if self._is_gaussian:
            return self._short(adjacency)
        return WorstCase.symmetric(
            self._pair,
            "The largest loss is that of outputs with answers that are first below, and move "
            "against the threshold, and then above.",
        )

    def _short(self, adjacency: Adjacency | None) -> WorstCase:
        assert self.steps is not None
        units = self.threshold_scale / self.sensitivity, self.query_scale / self.sensitivity
        (most,) = self._joint.worst_case(adjacency).remove
        events = ShortStream(*units, self.steps, self.monotone).pairs
        return WorstCase.symmetric(
            Between((self._single, *events), most, "which answers of a short stream are worst"),
            "Below: one answer, and events of several at one place. Above: what all noisy answers "
            "against the noisy threshold tell.",
        )

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Say of each answer whether it is above: 1, 0, or −1 after the end; exactly.

        The value: the answers in their order, each less its threshold.
        """
        if self.variant == "noisy-values":
            raise NotApplicableError("Noisy values are not released: they are not private.")
        answers = exact_list("value", np.asarray(value).tolist() if np.ndim(value) else [value])
        if self.steps is not None and len(answers) > self.steps:
            raise expected("value", value, f"to have at most {self.steps} answers, as steps says")
        found = np.array(
            [
                stream(
                    [answer.ball for answer in answers],
                    lambda: (ball(self.threshold_scale), ball(self.query_scale)),
                    None if self.variant == "endless" else self.count,
                    fresh=self.variant == "fresh-threshold",
                    law="normal" if self._is_gaussian else "laplace",
                    rng=rng,
                )
                for _ in range(times)
            ]
        )
        return found

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw what is said of one answer at the threshold."""
        return self.release([0], size, rng=rng)[:, 0]

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return answers of which some are below, and move, and others above."""
        move, c = WITHIN * float(self.sensitivity), self.count
        if self.steps is not None:
            c = min(c, self.steps // 2)
            above, below = [move] * max(1, min(c + 2, self.steps - c)), [0.0] * c
            return [(above + below, [0.0] * len(above) + [0.0 if self.monotone else move] * c)]
        up = 0.0 if self.monotone else move
        return [([move] * (c + 2) + [0.0] * c, [0.0] * (c + 2) + [up] * c)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw what is said of some answers."""
        return self.release(answer, size, rng=rng)

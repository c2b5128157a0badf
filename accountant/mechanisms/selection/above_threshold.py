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
    Rational,
    Switch,
    exact_list,
)
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.selection.choice import WITHIN
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed
from dpassay.accountant.mechanisms.wrappers.tabulated import Tabulated
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.above_threshold import AboveThresholdPair
from dpassay.accountant.release.comparisons import stream

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

    Notes
    -----
    An endless stream tells neighbours apart for sure, and δ(ε) = 1 for every ε: let every second
    answer of very many at one place rise and the others fall (or stay, where monotone); then the
    shares of both halves that are above differ as the laws of the noise do. So does a stream
    without noise on its answers, of any count: answers rise slowly, and neighbours differ by which
    half of them is the first to be above any threshold. The other proofs are at
    the head of `above_threshold` in `dpassay.accountant.pairs`.
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

    @property
    def _tells_all(self) -> bool:
        return self.variant == "endless" or not self.query_scale

    @property
    def _pair(self) -> AboveThresholdPair:
        return AboveThresholdPair(
            self.threshold_scale / self.sensitivity,
            self.query_scale / self.sensitivity,
            self.count,
            self.monotone,
            self.variant,
        )

    @property
    def dominated_by(self) -> Mechanism | None:
        """Whatever has the same largest loss; certainty where there is none."""
        if self._tells_all:
            return None
        largest = self._pair.exact_max_loss()
        return _CERTAIN if largest is None else Guaranteed(largest)

    def attained(self) -> tuple[Pair, ...]:
        """Return those of one answer, which passes the threshold or not."""
        return self._pair.one_answer.pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return all pairs of streams at once."""
        if self._tells_all:
            (certain,) = _CERTAIN.worst_case(adjacency).remove
            return WorstCase.symmetric(certain, "Some streams tell neighbours apart for sure.")
        return WorstCase.symmetric(
            self._pair,
            "The largest loss is that of outputs with answers that are first below, and move "
            "against the threshold, and then above.",
        )

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Say of each answer whether it is above: 1, 0, or −1 after the end; exactly.

        The value: the answers in their order, each less its threshold.
        """
        if self.variant == "noisy-values":
            raise NotApplicableError("Noisy values are not released: they are not private.")
        answers = exact_list("value", np.asarray(value).tolist() if np.ndim(value) else [value])
        found = np.array(
            [
                stream(
                    [answer.ball for answer in answers],
                    lambda: (ball(self.threshold_scale), ball(self.query_scale)),
                    None if self.variant == "endless" else self.count,
                    fresh=self.variant == "fresh-threshold",
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
        up = 0.0 if self.monotone else move
        return [([move] * (c + 2) + [0.0] * c, [0.0] * (c + 2) + [up] * c)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw what is said of some answers."""
        return self.release(answer, size, rng=rng)

"""The best few candidates, in one shot."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, final

from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.pair import Pair, WorstCase
from accountant.core.validate import Integer, Positive, Switch
from accountant.errors import expected
from accountant.mechanisms.selection.choice import WITHIN, Choice, read_scores
from accountant.mechanisms.selection.exponential import ExponentialMechanism, exponents
from accountant.pairs.bounded_range import MOST_RELEASES, BoundedRangeProduct
from accountant.pairs.two_candidates import TwoCandidates

if TYPE_CHECKING:
    from flint import arb
    from numpy.typing import ArrayLike, NDArray

    from accountant.core.randomness import Randomness


@final
@dataclass(frozen=True, repr=False)
class TopSelections(Choice):
    """Report the k candidates with the largest noisy scores, in order: Gumbel noise is added once.

    Durfee and Rogers (2019). The noise has the scale 2Δ/ε, or Δ/ε; all k together are kε-DP, and
    no better.

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

    Notes
    -----
    Given the first i, candidate i + 1 is that of an exponential mechanism among the others (Durfee
    and Rogers 2019, Lemma 4.2): so all are at most k adaptive exponential mechanisms, which
    `accountant.pairs.bounded_range` encloses. On the other side let very many candidates have one
    of two scores: to leave out k of them changes nothing in the limit, and k independent
    selections between both scores are attained.
    """

    example = "TopSelections(epsilon='1/2', selected=3)"
    noise_argument = "epsilon"
    noise_grows = False

    epsilon: Positive = Positive()
    selected: Integer = Integer(least=1)
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)

    def __post_init__(self) -> None:
        """Require a number of selections that is followed."""
        if self.selected > MOST_RELEASES:
            raise expected("selected", self.selected, f"≤ {MOST_RELEASES}")

    @property
    def _one(self) -> ExponentialMechanism:
        return ExponentialMechanism(self.epsilon, self.sensitivity, self.monotone)

    @property
    def dominated_by(self) -> Mechanism:
        """As many exponential mechanisms' bound."""
        from accountant.mechanisms.wrappers.composed import Composed

        return Composed(self._one.dominated_by, self.selected)

    def attained(self) -> tuple[Pair, ...]:
        """Return those of independent selections between two scores."""
        from accountant.composition.choose import product

        pairs = TwoCandidates("Gumbel", self.epsilon).pairs
        return tuple(product([(pair, self.selected)]) for pair in pairs)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return what lies between independent and adaptive selections."""
        if self.selected == 1:
            return self._one.worst_case(adjacency)
        from accountant.pairs.between import Between

        most = BoundedRangeProduct(self.epsilon, self.selected)
        return WorstCase.symmetric(
            Between(self.attained(), most, "how private selections without repetition are"),
            "Below: independent selections between two scores that very many candidates have. "
            "Above: exponential mechanisms, each chosen by what was selected before.",
        )

    def choose(self, scores: ArrayLike, times: int, rng: Randomness) -> NDArray[Any]:
        """Select one after the other, each among those that are left."""
        import numpy as np

        from accountant.release import sampling

        known = read_scores(scores)
        if len(known) <= self.selected:
            raise expected("value", scores, f"to have more than {self.selected} scores")
        found = np.empty((times, self.selected), int)
        for row in found:
            left = list(range(len(known)))
            for place in range(self.selected):

                def cumulative(left: list[int] = left) -> list[arb]:
                    given = exponents(scores, self.epsilon, self.sensitivity, self.monotone)
                    weights = [given[i].exp() for i in left]
                    total = sum(weights[1:], start=weights[0])
                    return list(accumulate(weight / total for weight in weights))[:-1]

                drawn = sampling.indices_by_inversion(cumulative, 1, rng=rng)
                row[place] = left.pop(int(drawn[0])) if len(left) > 1 else left.pop()
        return found

    def sample(self, size: int, *, rng: Any) -> NDArray[Any]:
        """Draw selections among candidates of the same score, one more than are selected."""
        return self.release([0] * (self.selected + 1), size, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return equal scores of which half rise and half fall."""
        move = WITHIN * float(self.sensitivity)
        half = 4 * self.selected
        down = 0.0 if self.monotone else -move
        return [([0.0] * (2 * half), [move] * half + [down] * half)]

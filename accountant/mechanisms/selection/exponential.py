"""The exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import MirroredPair, Pair, Tails, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Positive, Switch
from dpassay.accountant.mechanisms.additive.logistic import Logistic, LogisticPair
from dpassay.accountant.mechanisms.selection.choice import WITHIN, Choice, read_scores
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.two_candidates import TwoCandidates
from dpassay.accountant.release import sampling

_RARER = 2
"""ln of how much rarer the second candidate is in an attack: rarer ones take more samples."""


@final
@dataclass(frozen=True)
class BoundedRangePair(MirroredPair):
    """The largest of the profiles of all pairs whose loss lies in an interval of length t.

    Let Q be a law on finitely many outcomes, 0 ≤ x_i ≤ t, and P_i = Q_i e^{x_i}/Z with
    Z = Σ Q_i e^{x_i}. P(S) − e^ε Q(S) is largest with x = t on S and 0 elsewhere, as that raises
    P(S) and leaves Q; so only p = Q(S) counts: P(S) = p e^t/(1 + p(e^t − 1)). The best p has
    1 + p(e^t − 1) = e^{(t−ε)/2}, and there

        H(ε) = (1 − e^{(ε−t)/2})²/(1 − e^{−t}) for |ε| ≤ t,

    the profile of logistic noise at distance t (`LogisticPair`). The errors (Q(S), 1 − P(S)) of the
    tests S are the points of its trade-off function, one for each p: each is attained. But no one
    pair is worst everywhere. Of the divergences the largest is returned, and each has its own p:
    with Y = e^x in [1, e^t], E_Q[Y^a]/E_Q[Y]^a is, at a given mean of Y, largest where Y is 1 or
    e^t (t ↦ t^a is convex), and so is E_Q[Y ln Y].
    P and Q change places with −x, in an interval of length t too.
    """

    law_name = "bounded-range"

    length: ExactReal

    @property
    def _logistic(self) -> LogisticPair:
        return LogisticPair(self.length)

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return that of logistic noise."""
        return self._logistic.hockey_stick(epsilon)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of logistic noise: of the pair that is worst at ε."""
        return self._logistic.tails(epsilon)

    def renyi(self, order: arb) -> arb:
        """Return the largest D_a.

        With b = e^t − 1, A = e^{at} − 1 and the moment (1 + pA)/(1 + pb)^a, the best p is
        (A − ab)/((a − 1)Ab), where 1 + pA = (A − b)/((a − 1)b) and 1 + pb = a(A − b)/((a − 1)A).
        """
        t, less = self.length.ball(), order - 1
        b, a_moment = t.expm1(), (order * t).expm1()
        rest = t.exp() * (less * t).expm1()  # A − b
        first = (rest / (less * b)).log()
        return (first + order * (less * a_moment / (order * rest)).log()) / less

    def kullback_leibler(self) -> arb:
        """Return u − 1 − ln u, u = t/(1 − e^{−t}): at 1 + p(e^t − 1) = t e^t/(e^t − 1)."""
        t = self.length.ball()
        u = t / -(-t).expm1()
        return u - 1 - u.log()

    def exact_max_loss(self) -> ExactReal:
        """Return t, which no pair exceeds and p → 0 comes near."""
        return self.length

    def rho_bound(self) -> arb:
        """Return t²/8: Hoeffding's lemma for a loss in an interval of length t."""
        return self.length.ball() ** 2 / 8

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates whose scores rise."""
        return (
            "the candidates whose scores rise most, where their probability under Q is "
            f"(e^(({self.length} - {epsilon})/2) - 1)/(e^{self.length} - 1)"
        )


@declared
class ExponentialMechanism(Choice):
    """Select candidate i of several with probability in proportion to e^{εu_i/(2Δ)}, or e^{εu_i/Δ}.

    McSherry and Talwar (2007). It is ε-DP for any number of candidates, and no better.

    Parameters
    ----------
    epsilon
        ε > 0.
    sensitivity
        Δ > 0: no score u_i differs by more between neighbours.
    monotone
        Whether all scores change in the same direction, such as counts when a record is added:
        then Δ in place of 2Δ is enough.

    Notes
    -----
    Between neighbours the exponents move by amounts in an interval of length ε, and any amounts in
    it occur with any probabilities of two candidates (of more, in the limit of low scores). So the
    profile is that of all pairs of *bounded range* ε (Durfee and Rogers 2019), for any number of
    candidates from two on. Which scores are worst depends on where the profile is asked.
    """

    example = "ExponentialMechanism(epsilon=1)"
    noise_argument = "epsilon"
    noise_grows = False

    epsilon: Positive = Positive()
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)

    @property
    def dominated_by(self) -> Mechanism:
        """Logistic noise; compositions of equal ones have a closer bound (`bounded_range`)."""
        return Logistic(ExactReal.of_rational(1) / self.epsilon)

    def attained(self) -> tuple[Pair, ...]:
        """Return those of two candidates."""
        return TwoCandidates("Gumbel", self.epsilon).pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return all pairs of bounded range ε."""
        return WorstCase.symmetric(
            BoundedRangePair(self.epsilon),
            "The exponents of neighbours differ by amounts in an interval of length epsilon; the "
            "best event gives the candidates in it the largest rise, and two candidates attain "
            "every probability of it.",
        )

    def probabilities(self, scores: ArrayLike) -> list[arb]:
        """Return the probability of each candidate, at flint's current precision.

        Raises InvalidInputError for fewer than two scores, or one that is not finite.
        """
        known = exponents(scores, self.epsilon, self.sensitivity, self.monotone)
        weights = [exponent.exp() for exponent in known]
        total = sum(weights, start=arb(0))
        return [weight / total for weight in weights]

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Invert the distribution function."""

        def cumulative() -> list[arb]:
            return list(accumulate(self.probabilities(value)))[:-1]

        cumulative()  # bad scores are named before anything is drawn
        return sampling.indices_by_inversion(cumulative, times, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return scores of two candidates, each moved by Δ at most: worst at ε = 0, and above it.

        The second candidate is e^`_RARER` times rarer in the latter.
        """
        half = WITHIN * float(self.sensitivity) / 2
        first = (0.0, 0.0) if self.monotone else (half, -half)
        unit = float(self.sensitivity) / float(self.epsilon) * (1 if self.monotone else 2)
        below = (0.0, -_RARER * unit)
        return [([first[0], by - half], [first[1], by + half]) for by in below]


def exponents(
    scores: ArrayLike, epsilon: ExactReal, sensitivity: ExactReal, monotone: bool
) -> list[arb]:
    """Return ε(u_i − max u)/(2Δ), or of Δ; raise InvalidInputError as `probabilities` does."""
    known = [score.ball() for score in read_scores(scores)]
    factor = epsilon.ball() / (sensitivity.ball() * (1 if monotone else 2))
    largest = max(known, key=lambda value: float(value.mid()))
    return [factor * (value - largest) for value in known]

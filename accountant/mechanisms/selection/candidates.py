"""Selection of one of several candidates: exponential mechanism, permute-and-flip, noisy max."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Any, ClassVar, final

from flint import acb, arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Known, MirroredPair, Pair, Tails, WorstCase, rho_bound
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, OneOf, Positive, Switch, declared
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import (
    Laplace,
    LaplacePair,
    Logistic,
    LogisticPair,
)
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.integral import integral
from dpassay.accountant.numbers.interval import START_PRECISION
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair, normal_cdf
from dpassay.accountant.pairs.invert import most
from dpassay.accountant.pairs.own_density import OwnDensityPair
from dpassay.accountant.release import sampling
from dpassay.accountant.release.comparisons import place_of_largest

# --- Base class of selections ---------------------------------------------------------------------

WITHIN = 1 - 1e-12
"""Share of the sensitivity by which float scores move, so that rounding cannot exceed it."""
_LEAST_CANDIDATES = 2
"""Smallest number of candidates."""


class Choice(Mechanism, ABC):
    """A mechanism that selects one of several candidates by their scores."""

    @abstractmethod
    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` indices of selected candidates, exactly: no probability is rounded.

        `value` has one score for each candidate.
        """

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw selections among candidates of equal scores: two if their number is not fixed."""
        return self.release([0] * getattr(self, "candidates", 2), size, rng=rng)

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` selections for the scores `answer`."""
        return self.release(answer, size, rng=rng)

    def variances(self) -> list[arb]:
        """Raise NotApplicableError, because candidates are not numbers."""
        raise NotApplicableError(f"{type(self).__name__} selects a candidate: it has no variance.")


def read_scores(scores: ArrayLike) -> list[ExactReal]:
    """Return the scores as exact numbers.

    Raises InvalidInputError for fewer than two scores, or a score that is not finite.
    """
    given: Any = scores if isinstance(scores, (list, tuple)) else np.asarray(scores).tolist()
    if not isinstance(given, (list, tuple)) or len(given) < _LEAST_CANDIDATES:
        raise expected("scores", scores, "to be a list of at least two numbers")
    return [exact(value, f"scores[{i}]") for i, value in enumerate(given)]


# --- Selection between two noisy scores: attained pairs, which give lower bounds ------------------

STEPS = 8
"""Number of steps of the initial gap between two scores, from 0 to their relative move t."""


def _laplace(x: arb, ratio: arb) -> arb:
    """Return P(X − rY ≥ x) for x ≥ 0 and independent X, Y ~ Lap(1)."""
    if ratio == 1:
        return (2 + x) * (-x).exp() / 4
    square = ratio**2
    return (square * (-x / ratio).exp() - (-x).exp()) / (2 * (square - 1))


_TAILS: dict[str, Callable[[arb, arb], arb]] = {
    "Exponential": lambda x, _: (-x).exp() / 2,
    "Laplace": _laplace,
    "Gaussian": lambda x, _: normal_cdf(-x / arb(2).sqrt()),
}
"""P(X − Y ≥ x) for x ≥ 0, where X and Y are the noises of the two scores."""


@final
@dataclass(frozen=True)
class TwoCandidates(FiniteLaws):
    """The larger of two noisy scores, where the first score gains t on the second from Q to P.

    In pair i = 0, …, n the first score is it/n behind under Q, and (n − i)t/n ahead under P, in
    units of the noise. For Gumbel noise the pairs are instead chosen by their losses, which are s
    and s − t with s = (2i + 1)t/(2n + 2). Pair i reversed is pair n − i with candidates exchanged.

    Parameters
    ----------
    noise
        "Gumbel", "Exponential", "Laplace" or "Gaussian".
    distance
        t > 0.
    ratio
        The scale of the second noise relative to the first, for Laplace noise.
    steps
        n; there are n + 1 pairs.
    """

    noise: str
    distance: ExactReal
    ratio: ExactReal = ExactReal.of_rational(1)
    steps: int = STEPS

    @property
    def pairs(self) -> tuple[FinitePair, ...]:
        """The n + 1 pairs."""
        return tuple(FinitePair(self, i) for i in range(self.steps + 1))

    def divergence(self, order: arb) -> arb:
        """Return the largest Rényi divergence of the pairs, a lower bound, at low precision."""
        with ctx.workprec(START_PRECISION):
            return most([pair.renyi(order) for pair in self.pairs])

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the names of the two candidates."""
        return "the one that rises", "the other one"

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return (P(X − Y < a), P(X − Y ≥ a)), at a = (n − i)t/n under P and −it/n under Q."""
        t, ratio = self.distance.ball(), self.ratio.ball()
        if self.noise == "Gumbel":
            s = t * (2 * index + 1) / (2 * self.steps + 2)
            rises, falls = (s - t).expm1() / (-t).expm1(), s.expm1() / t.expm1()
            return [rises, falls], [rises * (-s).exp(), falls * (t - s).exp()]
        ahead = _TAILS[self.noise](t * (self.steps - index) / self.steps, ratio)
        behind = _TAILS[self.noise](t * index / self.steps, ratio)
        return [1 - ahead, ahead], [behind, 1 - behind]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return s and s − t for Gumbel noise, else None."""
        if self.noise != "Gumbel":
            return None, None
        share = Fraction(2 * index + 1, 2 * self.steps + 2)
        return [ExactReal.of_rational(part) * self.distance for part in (share, share - 1)]

    def is_mirrored(self, index: int) -> bool:
        """Whether Q is P with the candidates exchanged: the gap is t/2 under both."""
        return 2 * index == self.steps


# --- The exponential mechanism --------------------------------------------------------------------

RARER = 2
"""ln of the odds against the second candidate in an attack; a larger value needs more samples."""


@final
@dataclass(frozen=True)
class ChoicePair(MirroredPair):
    """The supremum of the profiles of all neighbours of a selection by noisy scores.

    Between neighbours two scores move relative to each other by at most t units of noise.
    Exchanging P and Q maps an event to its complement with the moves of the scores exchanged.

    **Gumbel noise** (exponential mechanism): all pairs whose loss lies in an interval of length t.
    Let Q be a law on finitely many outcomes, 0 ≤ x_i ≤ t, and P_i = Q_i e^{x_i}/Z with
    Z = Σ Q_i e^{x_i}. For an event S, P(S) − e^ε Q(S) is largest if x = t on S and 0 elsewhere,
    which maximises P(S) and leaves Q unchanged. So only p = Q(S) matters:
    P(S) = p e^t/(1 + p(e^t − 1)). At the optimal p, 1 + p(e^t − 1) = e^{(t−ε)/2}, and

        H(ε) = (1 − e^{(ε−t)/2})²/(1 − e^{−t}) for |ε| ≤ t,

    which is the profile of logistic noise at distance t (`LogisticPair`). The errors
    (Q(S), 1 − P(S)) for all p are the points of its trade-off function, and each is attained. But
    no single pair is worst everywhere. The Rényi divergence is the supremum over all pairs, which
    has another p for each order. Let Y = e^x in [1, e^t]. For a given mean of Y, convexity implies
    that E_Q[Y^a]/E_Q[Y]^a and E_Q[Y ln Y] are largest if Y takes only the values 1 and e^t.

    **Exponential noise** (permute-and-flip): the profile is that of Laplace noise
    (`PermuteAndFlip`). Divergences are only bounded: above by that of Laplace noise, below by those
    of two candidates.

    **Gaussian noise**, k candidates: the smaller of two upper bounds. One is H of the vector of
    noisy scores, whose divergences are upper bounds too. The other, for ε ≥ 0, is k − 1 times H of
    one score at distance t: for a set S of fewer than k candidates, P(S) − e^ε Q(S) is at most the
    sum over its candidates. Given the noise of the others, a candidate is selected if its own noise
    exceeds a threshold, which moves by at most t.

    Parameters
    ----------
    scores
        "Gumbel", "Exponential" or "Gaussian".
    distance
        t > 0.
    candidates
        k ≥ 2, used for Gaussian noise only.
    """

    scores: str
    distance: ExactReal
    candidates: int = 2

    @cached_property
    def noise(self) -> LogisticPair | LaplacePair | GaussianPair:
        """The pair of additive noise with this profile; for Gaussian noise, of the score vector."""
        if self.scores == "Gumbel":
            return LogisticPair(self.distance)
        if self.scores == "Exponential":
            return LaplacePair(self.distance)
        return GaussianPair(Gaussian(1, self.farthest), None)

    @property
    def farthest(self) -> ExactReal:
        """The largest ℓ2 norm of the centred moves of the scores, where half rise by t."""
        k = self.candidates
        return self.distance * ExactReal.of_root(Fraction(k // 2 * (k - k // 2), k))

    @cached_property
    def _one(self) -> GaussianPair:
        return GaussianPair(Gaussian(1, self.distance), None)

    def excess(self, epsilon: ExactReal) -> arb:
        """Return H(ε) of `noise`, or the smaller one of both bounds for Gaussian noise."""
        value = self.noise.hockey_stick(epsilon)
        if self.scores != "Gaussian":
            return value
        return value.min((self.candidates - 1) * self._one.hockey_stick(epsilon))

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of `noise`, which are those of the worst pair at ε."""
        return self.noise.tails(epsilon)

    def renyi(self, order: arb) -> arb:
        """Return the supremum of D_a (Gumbel), an enclosure (Exponential) or a bound (Gaussian).

        For Gumbel noise let b = e^t − 1 and A = e^{at} − 1. The moment (1 + pA)/(1 + pb)^a is
        largest at p = (A − ab)/((a − 1)Ab), where 1 + pA = (A − b)/((a − 1)b) and
        1 + pb = a(A − b)/((a − 1)A). For a = 1 the best p satisfies
        1 + p(e^t − 1) = u = t/(1 − e^{−t}), and D_1 = u − 1 − ln u.
        """
        if self.scores == "Gaussian":
            return self.noise.renyi(order)
        if self.scores == "Exponential":
            least = TwoCandidates("Exponential", self.distance).divergence(order)
            return least.union(self.noise.renyi(order))
        t, less = self.distance.ball(), order - 1
        if order == 1:
            u = t / -(-t).expm1()
            return u - 1 - u.log()
        b, a_moment = t.expm1(), (order * t).expm1()
        rest = t.exp() * (less * t).expm1()  # A − b
        first = (rest / (less * b)).log()
        return (first + order * (less * a_moment / (order * rest)).log()) / less

    @property
    def known(self) -> Known:
        """Return closed forms and bounds of ε, ρ and the largest loss."""
        if self.scores == "Gaussian":
            return Known(rho=self.noise.known.rho)
        if self.scores == "Gumbel":
            return Known(
                # approached as p → 0
                max_loss=lambda: self.distance,
                # Hoeffding's lemma: the loss lies in an interval of length t
                rho_bound=lambda: self.distance.ball() ** 2 / 8,
            )
        return Known(
            inverse=self.noise.known.inverse,
            # between the values of two candidates and of Laplace noise
            rho=lambda: self.renyi(arb(1)).union(rho_bound(self)),
            rho_bound=lambda: rho_bound(self.noise),
            # approached by rare events with two candidates
            max_loss=lambda: self.distance,
        )

    def law(self) -> dict[str, object]:
        """Return the law as JSON: "bounded-range", "noisy-maximum" or "gaussian-choice", and t."""
        name = {"Gumbel": "bounded-range", "Exponential": "noisy-maximum"}.get(self.scores)
        found: dict[str, object] = {
            "law": name or "gaussian-choice",
            "distance": str(self.distance),
        }
        return found if name else found | {"candidates": self.candidates}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates in the best event, whose scores rise."""
        if self.scores == "Gumbel":
            return (
                "the candidates whose scores rise most, where their probability under Q is "
                f"(e^(({self.distance} - {epsilon})/2) - 1)/(e^{self.distance} - 1)"
            )
        if self.scores == "Exponential":
            return (
                f"of two candidates the one that rises, from {epsilon}/2 + {self.distance}/2 units "
                "of noise below the other to above it by what is left"
            )
        return super().describe_event(epsilon)


class ChoiceByEpsilon(Choice, ABC):
    """A selection that is exactly ε-DP, with noise scaled to ε.

    Between neighbours the difference of two scores moves by at most ε units of noise.
    """

    noise_argument = "epsilon"
    noise_grows = False
    noise: ClassVar[str]
    """The noise of a score, as named in `TwoCandidates`."""
    additive: ClassVar[type[Logistic] | type[Laplace]]
    """The additive mechanism for a number that has the same profile at scale 1/ε."""
    reason: ClassVar[str]
    """Why the pairs of `ChoicePair` are worst."""

    epsilon: Positive
    sensitivity: Positive
    monotone: Switch

    @property
    def dominated_by(self) -> Mechanism:
        """The additive mechanism for a number that has the same profile."""
        return self.additive(ExactReal.of_rational(1) / self.epsilon)

    def attained(self) -> tuple[Pair, ...]:
        """Return pairs of laws with two candidates."""
        return TwoCandidates(self.noise, self.epsilon).pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the supremum over all neighbours as one pair."""
        return WorstCase.symmetric(ChoicePair(self.noise, self.epsilon), self.reason)

    def exponents(self, scores: ArrayLike) -> list[arb]:
        """Return ε(u_i − max u)/(2Δ), or ε(u_i − max u)/Δ if the scores are monotone.

        Raises InvalidInputError for fewer than two scores, or a score that is not finite.
        """
        known = [score.ball() for score in read_scores(scores)]
        factor = self.epsilon.ball() / (self.sensitivity.ball() * (1 if self.monotone else 2))
        largest = max(known, key=lambda value: float(value.mid()))
        return [factor * (value - largest) for value in known]


@declared
class ExponentialMechanism(ChoiceByEpsilon):
    """Select candidate i with probability proportional to e^{εu_i/(2Δ)}, or e^{εu_i/Δ} if monotone.

    McSherry and Talwar (2007). The mechanism is exactly ε-DP for any number of candidates.

    Parameters
    ----------
    epsilon
        ε > 0.
    sensitivity
        Δ > 0, the largest change of a score u_i between neighbours.
    monotone
        Whether all scores change in the same direction, as counts do if a record is added. Then Δ
        replaces 2Δ.

    Notes
    -----
    Between neighbours the exponents move by amounts in an interval of length ε. With two candidates
    any such amounts occur with any probabilities; with more candidates this holds in the limit of
    low scores of the others. So the profile is that of all pairs of *bounded range* ε (Durfee and
    Rogers 2019), for any number of candidates ≥ 2. The worst scores depend on the ε' at which δ(ε')
    is evaluated.

    A base measure w changes nothing: probabilities proportional to w_i e^{au_i} are a selection by
    the scores u_i + ln(w_i)/a, which move between neighbours as the u_i do. `PrivateQuantile` is a
    selection on a line, where the weights may depend on the records.
    """

    example = "ExponentialMechanism(epsilon=1)"
    noise = "Gumbel"
    additive = Logistic
    reason = (
        "The exponents of neighbours differ by amounts in an interval of length epsilon; the best "
        "event gives the candidates in it the largest rise, and two candidates attain every "
        "probability of it."
    )

    epsilon: Positive = Positive()
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)

    def probabilities(self, scores: ArrayLike) -> list[arb]:
        """Return the probability of each candidate, at flint's current precision.

        Raises InvalidInputError for fewer than two scores, or a score that is not finite.
        """
        weights = [exponent.exp() for exponent in self.exponents(scores)]
        total = sum(weights, start=arb(0))
        return [weight / total for weight in weights]

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` selections exactly, by inversion of the distribution function."""

        def cumulative() -> list[arb]:
            return list(accumulate(self.probabilities(value)))[:-1]

        cumulative()  # raises for invalid scores before anything is drawn
        return sampling.indices_by_inversion(cumulative, times, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return scores of two candidates, each moved by at most Δ.

        The first pair is worst at ε = 0. In the second pair, which is worse at larger ε, the second
        candidate is e^`RARER` times rarer.
        """
        half = WITHIN * float(self.sensitivity) / 2
        first = (0.0, 0.0) if self.monotone else (half, -half)
        unit = float(self.sensitivity) / float(self.epsilon) * (1 if self.monotone else 2)
        below = (0.0, -RARER * unit)
        return [([first[0], by - half], [first[1], by + half]) for by in below]


# --- Permute-and-flip: report noisy max with exponential noise ------------------------------------


@declared
class PermuteAndFlip(ChoiceByEpsilon):
    """Visit the candidates in random order; select i with probability e^{ε(u_i − max u)/(2Δ)}.

    McKenna and Sheldon (2020). The law of the selection is that of the largest u_i + (2Δ/ε)E_i with
    independent standard exponential E_i (Ding, Kifer, Steinke, Wang, Xiao and Zhang 2021). The
    mechanism is ε-DP.

    Parameters
    ----------
    epsilon
        ε > 0.
    sensitivity
        Δ > 0, the largest change of a score u_i between neighbours.
    monotone
        Whether all scores change in the same direction. Then Δ replaces 2Δ.

    Notes
    -----
    The trade-off function is exactly that of Laplace noise at distance ε, for any number of
    candidates. *Proof.* Measure scores in units of the noise. Let S be a set of candidates, M_S the
    largest noisy score in S, and M the largest of the others. For given Q, P(S) is largest if all
    scores in S rise and all others fall as far as they can, so that M_S − M moves by ε. Let
    p(t) = P(M_S + t > M). The maximum of independent shifted exponentials has hazard rate at most
    1: if it exceeds x, one of them does, and this one exceeds x + s with conditional probability at
    least e^{−s}. So p(t + s) ≤ e^s p(t). Exchanging S and the others gives
    1 − p(t) ≤ e^s(1 − p(t + s)). Together, p′ ≤ min(p, 1 − p). The distribution function F of
    Laplace noise satisfies F′ = min(F, 1 − F). Hence p(t + ε) ≤ F(F⁻¹(p(t)) + ε), which is the
    largest power of a test under Laplace noise. Two candidates attain it everywhere, because the
    difference of two exponentials is Laplace. ∎
    """

    example = "PermuteAndFlip(epsilon=1)"
    noise = "Exponential"
    additive = Laplace
    reason = (
        "The best event moves by epsilon units of noise against the rest, and the probability that "
        "it holds the maximum moves at most as fast as that of a half-line under Laplace noise, "
        "which two candidates attain."
    )

    epsilon: Positive = Positive()
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` selections exactly: flip all coins, then visit them in random order."""
        count = len(self.exponents(value))

        @cache
        def tails(_precision: int) -> list[arb]:
            return [-exponent.expm1() for exponent in self.exponents(value)]

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
        """Return scores of two candidates that start equal, or that exchange their order."""
        move = WITHIN * float(self.sensitivity)
        down = 0.0 if self.monotone else -move
        return [([0.0, 0.0], [move, down]), ([0.0, (move - down) / 2], [move, (move + down) / 2])]


# --- Report noisy max: the index of the largest score after adding independent noise --------------

_DIFFERENCE = "(1+abs(x))*exp(-abs(x))/4"
"""The density of the difference of two independent Lap(1) variables."""
_LEAST = Fraction(1, 10**9)
"""Smallest distance t, and smallest 1/t, for which integrals of this density are fast enough."""


@declared
class ReportNoisyMax(Choice):
    """Add independent noise to the score of each candidate, and report the index of the largest.

    Dwork and Roth (2014), section 3.3. Let t be the largest relative move of two scores between
    neighbours, in units of the noise. With Gumbel noise this is the exponential mechanism, and with
    exponential noise permute-and-flip; both profiles are exact, and both mechanisms are t-DP. With
    Laplace noise it is t-DP for any number of candidates. With Laplace or Gaussian noise the
    profile is exact for two candidates. For more candidates it is enclosed, from below by two
    candidates and from above by dominating additive noise.

    Parameters
    ----------
    noise
        "Laplace", "Gaussian", "Exponential" or "Gumbel".
    scale
        The standard deviation of Gaussian noise, the mean of exponential noise, and b for the
        Laplace density ∝ e^{−|x|/b} and the Gumbel distribution function e^{−e^{−x/b}}.
    candidates
        The number of candidates, ≥ 2, which does not depend on the data.
    sensitivity
        Δ > 0, the largest change of a score between neighbours.
    monotone
        Whether all scores change in the same direction. Then the relative move of two scores is at
        most Δ, otherwise 2Δ.

    Notes
    -----
    *Two candidates.* The selection depends on the difference of the two noises, shifted by t. Its
    law is unimodal, so the full move is worst.

    *Laplace noise, upper bound.* Laplace noise at distance t dominates. Measure scores in units of
    the noise, and let F be the distribution function of Laplace noise. Fix the noise of all
    candidates outside a set. The set wins if the noise z_i of one of its candidates satisfies
    z_i ≥ c_i. If all its scores rise by s, it wins if some z_i ≥ c_i − s. Given this, the first
    such i has z_i ≥ c_i with probability at least e^{−s}. So the probability p(s) that the set wins
    satisfies p′ ≤ p. Exchanging the set and the others gives p′ ≤ 1 − p. As for `PermuteAndFlip`,
    it follows that p(t) ≤ F(F⁻¹(p(0)) + t).

    *Gaussian noise, upper bound.* A common move of all scores does not change the selection. The
    remaining move of k scores is longest if ⌊k/2⌋ of them rise by t; its norm is
    √(⌊k/2⌋⌈k/2⌉/k) t, the distance of the vector of noisy scores. For large ε the bound of
    `ChoicePair` is tighter.
    """

    example = "ReportNoisyMax(noise='Gaussian', scale=2, candidates=10)"
    noise_argument = "scale"

    noise: OneOf = OneOf("Laplace", "Gaussian", "Exponential", "Gumbel")
    scale: Positive = Positive()
    candidates: Integer = Integer(least=_LEAST_CANDIDATES)
    sensitivity: Positive = Positive(1)
    monotone: Switch = Switch(False)

    @property
    def distance(self) -> ExactReal:
        """t, the largest relative move of two scores in units of the noise."""
        move = self.sensitivity * ExactReal.of_rational(1 if self.monotone else 2)
        return move / self.scale

    @property
    def dominated_by(self) -> Mechanism:
        """Additive noise that dominates the selection, in compositions too."""
        unit = ExactReal.of_rational(1) / self.distance
        if self.noise == "Gumbel":
            return Logistic(unit)
        if self.noise in ("Exponential", "Laplace"):
            return Laplace(unit)
        vector = ChoicePair("Gaussian", self.distance, self.candidates)
        return Gaussian(self.scale, vector.farthest * self.scale)

    def attained(self) -> tuple[Pair, ...]:
        """Return pairs of laws with two candidates, approached if all others are far below."""
        return TwoCandidates(self.noise, self.distance).pairs

    def same(self) -> ExponentialMechanism | PermuteAndFlip | None:
        """Return the equal ExponentialMechanism or PermuteAndFlip, None for other noise."""
        given = self.distance, self.sensitivity, self.monotone
        if self.noise == "Gumbel":
            return ExponentialMechanism(*given)
        return PermuteAndFlip(*given) if self.noise == "Exponential" else None

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return one pair that stands for all neighbours: exact, or with lower and upper bounds."""
        same = self.same()
        if same is not None:
            return same.worst_case(adjacency)
        least, t = self.attained(), self.distance.rational
        if self.noise == "Gaussian":
            least = (ChoicePair("Gaussian", self.distance).noise,)
        elif self.candidates == _LEAST_CANDIDATES and t is not None and _LEAST < t < 1 / _LEAST:
            least = (OwnDensityPair(_DIFFERENCE, t, False),)
        if self.candidates == _LEAST_CANDIDATES and len(least) == 1:
            return WorstCase.symmetric(
                least[0], "The best event is that of the candidate that rises, from the worst gap."
            )
        most: Pair = ChoicePair("Gaussian", self.distance, self.candidates)
        largest = None
        if self.noise == "Laplace":  # two candidates approach t: (2 + x)e^{−x} decays like e^{−x}
            (most,) = self.dominated_by.worst_case(adjacency).remove
            largest = self.distance
        return WorstCase.symmetric(
            Between(least, most, "which scores of several candidates are worst", largest),
            "Lower bound: two candidates far ahead of the others. Upper bound: a dominating pair.",
        )

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` selections exactly: noise is refined until the largest score is certain."""
        known = read_scores(value)
        if len(known) != self.candidates:
            raise expected(
                "value", value, f"to have {self.candidates} scores, one for each candidate"
            )
        same = self.same()
        if same is not None:
            return same.releases(value, times, rng)
        law = {"Gaussian": "normal", "Laplace": "laplace"}[self.noise]
        scores = [score / self.scale for score in known]
        return place_of_largest(lambda: [u.ball() for u in scores], law, times, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return equal scores of which half rise and half fall, and scores where one catches up."""
        k, move = self.candidates, WITHIN * float(self.sensitivity)
        down = 0.0 if self.monotone else -move
        half = [move] * (k // 2) + [down] * (k - k // 2)
        behind = [-(move - down) / 2] + [0.0] * (k - 1)
        return [([0.0] * k, half), (behind, [behind[0] + move] + [down] * (k - 1))]

    def chance_of_best(self, distance: arb) -> arb:
        """Return the probability that the best candidate is selected if all n others are d below.

        d is `distance`, in units of the noise. The probability is ∫ f(x) F(x + d)^n dx, for Laplace
        or Gaussian noise. For Laplace noise the parts x < −d and x > 0 have closed forms.
        """
        n, half = self.candidates - 1, arb("0.5")
        if self.noise == "Laplace":
            q = (-distance).exp() / 2

            def between(s: acb, _: bool) -> acb:  # x = −ds
                below = 1 - half * (-distance * (1 - s)).exp()
                return half * distance * (-distance * s).exp() * below**n

            ends = q / (arb(2) ** n * (n + 1)) + (1 - (1 - q) ** (n + 1)) / (2 * q * (n + 1))
            middle: arb = integral(between, arb(0), arb(1)).real
            return ends + middle
        reach = (2 * arb(2).log() * ctx.prec).sqrt().upper()

        def normal(x: acb, _: bool) -> acb:
            below = half * (-(x + distance) / arb(2).sqrt()).erfc()
            return (-x * x / 2).exp() / (2 * arb.pi()).sqrt() * below**n

        beyond = 2 * normal_cdf(-reach)
        found: arb = integral(normal, -reach, reach).real + arb(0).union(beyond)
        return found

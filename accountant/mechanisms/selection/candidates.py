"""One of some candidates: exponential mechanism, permute-and-flip, report noisy max."""

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
from dpassay.accountant.pairs.own_density import OwnDensityPair
from dpassay.accountant.release import sampling
from dpassay.accountant.release.comparisons import place_of_largest

# --- What the selections of one of several candidates share ---------------------------------------

WITHIN = 1 - 1e-12
"""Scores in floats move by this share of the sensitivity, lest they move by more."""
_LEAST_CANDIDATES = 2
"""A selection is among two candidates at least."""


class Choice(Mechanism, ABC):
    """A mechanism that reports one of several candidates, by their scores."""

    @abstractmethod
    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Select a candidate by its index, exactly: no rounding changes a probability.

        The value: the scores, one for each candidate.
        """

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw selections among candidates of the same score, two where any number is possible."""
        return self.release([0] * getattr(self, "candidates", 2), size, rng=rng)

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw selections with some scores."""
        return self.release(answer, size, rng=rng)

    def variances(self) -> list[arb]:
        """Raise NotApplicableError: candidates are names."""
        raise NotApplicableError(f"{type(self).__name__} selects a candidate: it has no variance.")


def read_scores(scores: ArrayLike) -> list[ExactReal]:
    """Return the scores exactly; raise InvalidInputError for one, or one that is not finite."""
    given = list(scores) if isinstance(scores, (list, tuple)) else _listed(scores)
    if len(given) < _LEAST_CANDIDATES:
        raise expected("scores", given, "to be a list of at least two numbers")
    return [exact(value, f"scores[{i}]") for i, value in enumerate(given)]


def _listed(scores: ArrayLike) -> list[Any]:
    array = np.asarray(scores)
    if array.ndim != 1:
        raise expected("scores", scores, "to be a list of at least two numbers")
    values: list[Any] = array.tolist()
    return values


# --- The choice between two noisy scores: pairs that neighbours of every selection have -----------

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

    def divergence(self, order: arb) -> arb:
        """Return their largest D_order, a lower bound, to few digits."""
        with ctx.workprec(START_PRECISION):
            found = arb(0)
            for pair in self.pairs:
                found = found.max(pair.renyi(order))
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


# --- The exponential mechanism --------------------------------------------------------------------

RARER = 2
"""ln of how much rarer the second candidate is in an attack: rarer ones take more samples."""


@final
@dataclass(frozen=True)
class ChoicePair(MirroredPair):
    """The largest of the profiles of all pairs of a choice by noisy scores, at distance t.

    What is exchanged with an event is its complement, with scores exchanged.

    **Gumbel noise**, or the exponential mechanism: all pairs whose loss lies in an interval of
    length t. Let Q be a law on finitely many outcomes, 0 ≤ x_i ≤ t, and P_i = Q_i e^{x_i}/Z with
    Z = Σ Q_i e^{x_i}. P(S) − e^ε Q(S) is largest with x = t on S and 0 elsewhere, as that raises
    P(S) and leaves Q; so only p = Q(S) counts: P(S) = p e^t/(1 + p(e^t − 1)). The best p has
    1 + p(e^t − 1) = e^{(t−ε)/2}, and there

        H(ε) = (1 − e^{(ε−t)/2})²/(1 − e^{−t}) for |ε| ≤ t,

    the profile of logistic noise at distance t (`LogisticPair`). The errors (Q(S), 1 − P(S)) of the
    tests S are the points of its trade-off function, one for each p: each is attained. But no one
    pair is worst everywhere. Of the divergences the largest is returned, and each has its own p:
    with Y = e^x in [1, e^t], E_Q[Y^a]/E_Q[Y]^a is, at a given mean of Y, largest where Y is 1 or
    e^t (t ↦ t^a is convex), and so is E_Q[Y ln Y].

    **Exponential noise**, or permute-and-flip: the profile is that of Laplace noise
    (`PermuteAndFlip`). Of divergences only bounds are known: that of Laplace noise, and those of
    two candidates.

    **Gaussian noise** of k candidates: an upper bound, the least of two. One is H of the vector of
    noisy scores, whose divergences are bounds too; for ε ≥ 0 the other is k − 1 times H of one
    score at distance t. For a set S of s < k candidates P(S) − e^ε Q(S) is at most the sum over its
    candidates, and one of them is chosen, given the noise of the others, where its own noise
    exceeds a number that moves by at most t.

    Parameters
    ----------
    scores
        "Gumbel", "Exponential" or "Gaussian".
    distance
        t > 0.
    candidates
        k ≥ 2, of Gaussian noise.
    """

    scores: str
    distance: ExactReal
    candidates: int = 2

    @cached_property
    def noise(self) -> LogisticPair | LaplacePair | GaussianPair:
        """Additive noise with this profile; of Gaussian scores that of their vector."""
        if self.scores == "Gumbel":
            return LogisticPair(self.distance)
        if self.scores == "Exponential":
            return LaplacePair(self.distance)
        return GaussianPair(Gaussian(1, self.farthest), None)

    @property
    def farthest(self) -> ExactReal:
        """How far the vector of noisy scores moves, less what is common: half rise, half fall."""
        k = self.candidates
        return self.distance * ExactReal.of_root(Fraction(k // 2 * (k - k // 2), k))

    @cached_property
    def _one(self) -> GaussianPair:
        return GaussianPair(Gaussian(1, self.distance), None)

    def excess(self, epsilon: ExactReal) -> arb:
        """Return that of the noise, or the least of both bounds."""
        value = self.noise.hockey_stick(epsilon)
        if self.scores != "Gaussian":
            return value
        return value.min((self.candidates - 1) * self._one.hockey_stick(epsilon))

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the noise: of the pair that is worst at ε."""
        return self.noise.tails(epsilon)

    def renyi(self, order: arb) -> arb:
        """Return the largest D_a, a wide ball up to that of Laplace noise, or that of the vector.

        With b = e^t − 1, A = e^{at} − 1 and the moment (1 + pA)/(1 + pb)^a, the best p is
        (A − ab)/((a − 1)Ab), where 1 + pA = (A − b)/((a − 1)b) and 1 + pb = a(A − b)/((a − 1)A);
        for a = 1 it has 1 + p(e^t − 1) = u = t/(1 − e^{−t}), and D_1 = u − 1 − ln u.
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
        """Return closed forms, and where a search may start."""
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
            # from two candidates up to Laplace noise
            rho=lambda: self.renyi(arb(1)).union(rho_bound(self)),
            rho_bound=lambda: rho_bound(self.noise),
            # rare events of two candidates come near it
            max_loss=lambda: self.distance,
        )

    def law(self) -> dict[str, object]:
        """Return "bounded-range", "noisy-maximum" or "gaussian-choice", and the distance."""
        name = {"Gumbel": "bounded-range", "Exponential": "noisy-maximum"}.get(self.scores)
        found: dict[str, object] = {
            "law": name or "gaussian-choice",
            "distance": str(self.distance),
        }
        return found if name else found | {"candidates": self.candidates}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates whose scores rise."""
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
    """A choice whose ε says how fast probabilities rise with scores: exactly ε-DP.

    Between neighbours the units of noise by which two scores differ move by at most ε.
    """

    noise_argument = "epsilon"
    noise_grows = False
    noise: ClassVar[str]
    """That of a score, as of `TwoCandidates`."""
    additive: ClassVar[type[Logistic] | type[Laplace]]
    """Noise of a number that has the same profile at scale 1/ε."""
    reason: ClassVar[str]
    """Why the pairs of `ChoicePair` are worst."""

    epsilon: Positive
    sensitivity: Positive
    monotone: Switch

    @property
    def dominated_by(self) -> Mechanism:
        """The noise of a number that has this profile."""
        return self.additive(ExactReal.of_rational(1) / self.epsilon)

    def attained(self) -> tuple[Pair, ...]:
        """Return the pairs of two candidates."""
        return TwoCandidates(self.noise, self.epsilon).pairs

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return all pairs of scores at once."""
        return WorstCase.symmetric(ChoicePair(self.noise, self.epsilon), self.reason)

    def exponents(self, scores: ArrayLike) -> list[arb]:
        """Return ε(u_i − max u)/(2Δ), or of Δ where monotone.

        Raises InvalidInputError for fewer than two scores, or one that is not finite.
        """
        known = [score.ball() for score in read_scores(scores)]
        factor = self.epsilon.ball() / (self.sensitivity.ball() * (1 if self.monotone else 2))
        largest = max(known, key=lambda value: float(value.mid()))
        return [factor * (value - largest) for value in known]


@declared
class ExponentialMechanism(ChoiceByEpsilon):
    """Select candidate i with a probability proportional to e^{εu_i/(2Δ)}, or to e^{εu_i/Δ}.

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

    A base measure changes none of this: weights w_i e^{au_i} are the choice by u_i + ln(w_i)/a, and
    these scores move between neighbours as the u_i do. On a line the weights may depend on the
    records: `PrivateQuantile`.
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

        Raises InvalidInputError for fewer than two scores, or one that is not finite.
        """
        weights = [exponent.exp() for exponent in self.exponents(scores)]
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

        The second candidate is e^`RARER` times rarer in the latter.
        """
        half = WITHIN * float(self.sensitivity) / 2
        first = (0.0, 0.0) if self.monotone else (half, -half)
        unit = float(self.sensitivity) / float(self.epsilon) * (1 if self.monotone else 2)
        below = (0.0, -RARER * unit)
        return [([first[0], by - half], [first[1], by + half]) for by in below]


# --- Permute-and-flip: report the noisy maximum, with exponential noise ---------------------------


@declared
class PermuteAndFlip(ChoiceByEpsilon):
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
        """Flip the coin of every candidate, and go through them in random order."""
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
        """Return scores of two candidates, each moved by Δ at most: equal, and crossing."""
        move = WITHIN * float(self.sensitivity)
        down = 0.0 if self.monotone else -move
        return [([0.0, 0.0], [move, down]), ([0.0, (move - down) / 2], [move, (move + down) / 2])]


# --- Report noisy max: the index of the largest of some scores with independent noise -------------

_DIFFERENCE = "(1+abs(x))*exp(-abs(x))/4"
"""The density of the difference of two Laplace variables of scale 1."""
_LEAST = Fraction(1, 10**9)
"""Distances, and their reciprocals, below which its integrals are too long."""


@declared
class ReportNoisyMax(Choice):
    """Add independent noise to the score of each candidate, and report which one is the largest.

    Dwork and Roth (2014), section 3.3. Let t be the largest move between two scores in units of
    the noise. With Gumbel noise it is the exponential mechanism, with exponential noise
    permute-and-flip: both exact, and t-DP. With Laplace noise it is t-DP for any number of
    candidates. With Laplace or Gaussian noise the profile is exact for two candidates, and lies
    between two bounds for more: that of two of them, and that of a noise that dominates.

    Parameters
    ----------
    noise
        "Laplace", "Gaussian", "Exponential" or "Gumbel".
    scale
        The standard deviation of Gaussian noise, and the scale of every other noise: the mean of
        exponential noise, b in e^{−|x|/b} and in e^{−e^{−x/b}}.
    candidates
        How many there are, ≥ 2; they do not depend on the data.
    sensitivity
        Δ > 0: no score differs by more between neighbours.
    monotone
        Whether all scores change in the same direction: two of them then move by at most Δ against
        each other, otherwise by 2Δ.

    Notes
    -----
    *Of two candidates* the difference of both noises decides, moved by t: a law with one mode, so
    that the full move is worst.

    *Laplace noise at distance t dominates.* Count scores in units of the noise, and let F be the
    distribution function of Laplace noise. Whatever the noise of the others, a set of candidates
    wins if one of it, of noise z_i, has z_i ≥ c_i; where the set is s further ahead, if one has
    z_i ≥ c_i − s. Given the latter, the first such i has z_i ≥ c_i with a chance of e^{−s} or more.
    So the probability p(s) that the set wins has p′ ≤ p, and, with the others in the role of the
    set, p′ ≤ 1 − p, as for `PermuteAndFlip`: p(t) ≤ F(F⁻¹(p(0)) + t).

    *Gaussian noise.* A move of all scores by the same amount changes no choice. What is left of the
    moves of k scores is longest where half of them rise by t: √(⌊k/2⌋⌈k/2⌉/k) t, the distance of
    the vector of noisy scores. At large ε `ChoicePair` has a closer bound.
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
        """How far two scores move against each other in units of the noise, t."""
        move = self.sensitivity * ExactReal.of_rational(1 if self.monotone else 2)
        return move / self.scale

    @property
    def dominated_by(self) -> Mechanism:
        """Noise whose trade-off function is below every one of this: of several releases too."""
        unit = ExactReal.of_rational(1) / self.distance
        if self.noise == "Gumbel":
            return Logistic(unit)
        if self.noise in ("Exponential", "Laplace"):
            return Laplace(unit)
        vector = ChoicePair("Gaussian", self.distance, self.candidates)
        return Gaussian(self.scale, vector.farthest * self.scale)

    def attained(self) -> tuple[Pair, ...]:
        """Return those of two candidates, the others far below."""
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
        if self.noise == "Laplace":  # two candidates come near to t: (2 + x)e^{−x} falls as e^{−x}
            (most,) = self.dominated_by.worst_case(adjacency).remove
            largest = self.distance
        return WorstCase.symmetric(
            Between(least, most, "which scores of several candidates are worst", largest),
            "Lower end: two candidates, far ahead of the others. Upper end: noise that dominates.",
        )

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw noise until it tells which score is the largest."""
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

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw what equal scores give."""
        return self.outputs([0] * self.candidates, size, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return equal scores of which half rise and half fall, and one that catches up."""
        k, move = self.candidates, WITHIN * float(self.sensitivity)
        down = 0.0 if self.monotone else -move
        half = [move] * (k // 2) + [down] * (k - k // 2)
        behind = [-(move - down) / 2] + [0.0] * (k - 1)
        return [([0.0] * k, half), (behind, [behind[0] + move] + [down] * (k - 1))]

    def chance_of_best(self, distance: arb) -> arb:
        """Return P(the best is chosen) where the others are all so many units of noise below it.

        Of Laplace or Gaussian noise: ∫ f(x) F(x + d)^n dx, n others. Of Laplace noise the parts
        below −d and above 0 have closed forms.
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

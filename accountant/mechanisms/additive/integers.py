"""Integer noise: discrete Gaussian, discrete Laplace, Skellam, truncated geometric, finite laws."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, count
from typing import Any, cast, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Known, MirroredPair, Pair, Tails, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, Positive, Probabilities, declared, integer
from dpassay.accountant.errors import NotApplicableError, UndecidedError, expected
from dpassay.accountant.mechanisms.additive.laplace import complement
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import first
from dpassay.accountant.numbers.theta import theta, upper_tail, variance
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair, DiscreteLaplacePair
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import release_integers

# --- Base classes of integer noise, and of symmetric log-concave integer noise --------------------

Tail = Callable[[int], arb]


class AddedIntegers(Mechanism, ABC):
    """A mechanism that adds integer noise, drawn exactly."""

    @abstractmethod
    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` releases of an array of integers, exactly."""
        return release_integers(lambda count: self.sample(count, rng=rng), value, times)


class LogConcaveIntegers(AddedIntegers, ABC):
    """Noise Z with masses p that are symmetric and log-concave: p(z)² ≥ p(z − 1) p(z + 1)."""

    sensitivity: Integer

    @abstractmethod
    def pair(self) -> Pair:
        """Return the pair of laws of Z + sensitivity and Z."""

    @abstractmethod
    def at_most(self, x: int) -> arb:
        """Return P(Z ≤ x) = P(Z ≥ −x)."""

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the laws of Z + sensitivity and Z; `DiscreteGaussian` has the proof."""
        return WorstCase.symmetric(
            self.pair(),
            "The law is log-concave, so the best event is a half-line, whose probability "
            "increases with the shift: the worst pair is at distance sensitivity.",
        )

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""
        return sampling.integers_by_inversion(self.at_most, size, rng=rng)

    @property
    def is_symmetric(self) -> bool:
        """True, because p(−z) = p(z)."""
        return True

    def worst_shift(self) -> Any:
        """Return the sensitivity."""
        return self.sensitivity

    def quantile(self, probability: ExactReal) -> arb:
        """Return the least integer x with P(Z ≤ x) ≥ probability."""
        return integer_quantile(self.at_most, lambda x: self.at_most(-x - 1), probability)


def integer_quantile(at_most: Tail, above: Tail, probability: ExactReal) -> arb:
    """Return the least integer x with P(Z ≤ x) ≥ probability; −∞ at 0 and +∞ at 1.

    Parameters
    ----------
    at_most, above
        P(Z ≤ x) and P(Z > x), at flint's current precision. Above the median `above` is used, so a
        probability near 1 needs no more precision than one near 0.
    probability
        In [0, 1]. The support of Z must be unbounded on both sides.

    Returns
    -------
    arb
        A ball that contains x. It contains several integers if the precision does not decide
        between them.
    """
    if probability.sign == 0:
        return arb.neg_inf()
    if probability.rational == 1:
        return arb.pos_inf()
    upper = probability > ExactReal.of_rational(Fraction(1, 2))
    target = complement(probability) if upper else probability.ball()
    if not target > 0:  # an irrational probability within one rounding of 1
        return arb("0 +/- inf")

    def excess(x: int) -> arb:
        return target - above(x) if upper else at_most(x) - target

    low = first(lambda x: not excess(x) < 0)
    return arb(low).union(arb(first(lambda x: excess(x) >= 0, low)))


# --- The discrete Gaussian mechanism --------------------------------------------------------------

_MOST_TERMS = 100_000
"""Limit on the terms of the sum for a mean absolute error; they take about a second."""


@declared
class DiscreteGaussian(LogConcaveIntegers):
    """Release a true integer plus Z, where P(Z = z) ∝ e^{−z²/2σ²} for integers z.

    Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
    Definition 1.

    Parameters
    ----------
    parameter
        σ² > 0 in the formula. It is *not* the variance, which is smaller (`variances`): by less
        than 10⁻⁶ σ² if σ² ≥ 1, but by an arbitrarily large factor if σ² is small.
    sensitivity
        The largest distance, an integer ≥ 1, between the true answers on two neighbours, for
        whichever relation it was computed.

    Notes
    -----
    The full shift is worst. *Proof.* The law is log-concave: p(z)² ≥ p(z − 1) p(z + 1). So
    p(z − d)/p(z) is non-decreasing in z for every d ≥ 0, and the best event that distinguishes the
    shift d from no shift is a half-line: H_d(ε) = max over m of P(Z ≥ m − d) − e^ε P(Z ≥ m). Each
    term is non-decreasing in d. A shift by −d is the mirror image of a shift by d.

    The tight zCDP parameter is sensitivity²/2σ², as for the continuous Gaussian. It bounds D_a/a at
    every order a, and is attained at every a for which a·sensitivity is an integer.
    """

    example = "DiscreteGaussian(parameter=9)"

    noise_argument = "parameter"

    parameter: Positive = Positive()
    sensitivity: Integer = Integer(1, least=1)

    def pair(self) -> DiscreteGaussianPair:
        """Return the pair of laws of Z + sensitivity and Z."""
        return DiscreteGaussianPair(self.parameter, self.sensitivity)

    def exact_rho(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return sensitivity²/2σ²."""
        return ExactReal.of_rational(Fraction(self.sensitivity**2, 2)) / self.parameter

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""
        if self.parameter.rational is not None:
            return sampling.discrete_gaussian(self.parameter.rational, size, rng=rng)
        return super().sample(size, rng=rng)

    def mean_absolute_error(self) -> arb:
        """Return E|Z|; raise NotApplicableError if s = σ² is too large for the sum.

        The sum Σ z e^{−z²/2s} over z ≥ 1 is truncated at some N ≥ 2√s + 2. From N on, consecutive
        terms have a ratio of at most r = (1 + 1/N) e^{−N/s}, because (z + 1)/z and e^{−(2z+1)/2s}
        decrease in z. A geometric series therefore bounds the rest.
        """
        s = self.parameter.ball()
        start = int((2 * s.sqrt() + 2).upper().ceil().fmpz())
        if start > _MOST_TERMS:
            raise NotApplicableError(
                f"Expected a parameter of DiscreteGaussian below {_MOST_TERMS**2 // 4}, not "
                f"{self.parameter}: its mean absolute error is summed term by term. Ask for its "
                "variance."
            )
        total, tiny = arb(0), arb(2) ** (-ctx.prec)
        for z in count(1):
            term = z * (-z * z / (2 * s)).exp()
            if z >= start:
                ratio = (1 + arb(1) / z) * (-z / s).exp()
                if ratio < 1 and (rest := term / (1 - ratio)) < tiny * (1 + total):
                    total += arb(0, rest.upper())
                    break
            total += term
        return 2 * total / theta(self.parameter)

    def probability_exact(self) -> arb:
        """Return P(Z = 0)."""
        return 1 / theta(self.parameter)

    def variances(self) -> list[arb]:
        """Return [Σ z² e^{−z²/2σ²}/Σ e^{−z²/2σ²}], below σ²."""
        return [variance(self.parameter)]

    def at_most(self, x: int) -> arb:
        """Return P(Z ≤ x) = P(Z ≥ −x)."""
        return upper_tail(self.parameter, -x)


# --- The discrete Laplace (geometric) mechanism ---------------------------------------------------


@declared
class DiscreteLaplace(LogConcaveIntegers):
    """Release a true integer plus Z, where P(Z = z) = tanh(1/2b) e^{−|z|/b} for integers z.

    This is the geometric mechanism of Ghosh, Roughgarden and Sundararajan (2009) with α = e^{−1/b}.
    It is exactly (sensitivity/b)-DP.

    Parameters
    ----------
    scale
        b > 0. The variance is 1/(2 sinh²(1/2b)).
    sensitivity
        The largest distance, an integer ≥ 1, between the true answers on two neighbours, for
        whichever relation it was computed.

    Notes
    -----
    The law is log-concave, so the full shift is worst, as for `DiscreteGaussian`.
    """

    example = "DiscreteLaplace(scale=2)"

    noise_argument = "scale"

    scale: Positive = Positive()
    sensitivity: Integer = Integer(1, least=1)

    def pair(self) -> DiscreteLaplacePair:
        """Return the pair of laws of Z + sensitivity and Z."""
        return DiscreteLaplacePair(self.scale, self.sensitivity)

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""
        if self.scale.rational is not None:
            return sampling.discrete_laplace(self.scale.rational, size, rng=rng)
        return super().sample(size, rng=rng)

    def mean_absolute_error(self) -> arb:
        """Return 1/sinh(1/b)."""
        return 1 / (1 / self.scale.ball()).sinh()

    def probability_exact(self) -> arb:
        """Return tanh(1/2b)."""
        return (1 / (2 * self.scale.ball())).tanh()

    def variances(self) -> list[arb]:
        """Return [1/(2 sinh²(1/2b))]."""
        return [1 / (2 * (1 / (2 * self.scale.ball())).sinh() ** 2)]

    def at_most(self, x: int) -> arb:
        """Return P(Z ≤ x)."""
        rate = 1 / self.scale.ball()
        if x < 0:
            return (rate * x).exp() / (1 + (-rate).exp())
        return 1 - (-rate * (x + 1)).exp() / (1 + (-rate).exp())


# --- Integer noise with an arbitrary finite law ---------------------------------------------------


@declared
class IntegerNoise(AddedIntegers, FiniteLaws):
    """Release a true integer plus Z, where P(Z = lowest + i) = probabilities[i].

    Parameters
    ----------
    probabilities
        Rational numbers ≥ 0 that sum to exactly 1.
    lowest
        The value of Z that has the first probability.
    sensitivity
        The largest distance, an integer ≥ 1, between the true answers on two neighbours, for
        whichever relation it was computed. A record may increase or decrease the answer.

    Notes
    -----
    The law can have any shape. Without log-concavity a smaller shift may be worse than a larger
    one, and if the law is asymmetric, the two signs of a shift differ. A record may change the
    answer by any integer d with |d| ≤ sensitivity. So Z + d is compared with Z for every
    d = ±1, …, ±sensitivity, whether the record is added or removed. The pair of −d is the reverse
    of the pair of d, and equivalent to it if the law is symmetric.
    """

    example = "IntegerNoise(probabilities=['1/4', '1/2', '1/4'], lowest=-1)"

    probabilities: Probabilities = Probabilities()
    lowest: Integer = Integer()
    sensitivity: Integer = Integer(1, least=1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pairs of Z + d and Z for d = ±1, …, ±sensitivity."""
        sides = (False,) if self.probabilities == self.probabilities[::-1] else (False, True)
        shifts = range(1, self.sensitivity + 1)
        pairs = tuple(FinitePair(self, shift, side) for shift in shifts for side in sides)
        return WorstCase(
            pairs,
            pairs,
            "The noise does not depend on the data, so a pair of neighbours is a shift of the law; "
            "a record may raise or lower the answer, so every shift from 1 to sensitivity is "
            "listed, in both directions.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the values that can be released for the true answers 0 and `index`."""
        return range(self.lowest, self.highest + index + 1)

    def rational_masses(self, index: int) -> tuple[Sequence[Fraction], Sequence[Fraction]]:
        """Return the laws of Z + index and of Z."""
        law, padding = self.probabilities, (Fraction(0),) * index
        return padding + law, law + padding

    @property
    def highest(self) -> int:
        """The value of Z that has the last probability."""
        return self.lowest + len(self.probabilities) - 1

    def mean(self) -> Fraction:
        """Return E[Z], exactly."""
        return self._moment(1)

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""
        cumulative = list(accumulate(self.probabilities))[:-1]
        indices = sampling.indices_by_inversion(
            lambda: [ball(value) for value in cumulative], size, rng=rng
        )
        return self.lowest + indices

    @property
    def is_symmetric(self) -> bool:
        """Whether P(Z = z) = P(Z = −z) for every z."""
        law = self.probabilities
        return self.lowest + self.highest == 0 and law == law[::-1]

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return all shifts, because any of them may be the worst."""
        return [(0, shift) for shift in range(1, self.sensitivity + 1)]

    def mean_absolute_error(self) -> arb:
        """Return E|Z|."""
        masses = enumerate(self.probabilities, start=self.lowest)
        return ball(sum((abs(z) * p for z, p in masses), start=Fraction(0)))

    def probability_exact(self) -> arb:
        """Return P(Z = 0)."""
        inside = self.lowest <= 0 <= self.highest
        return ball(self.probabilities[-self.lowest]) if inside else arb(0)

    def variances(self) -> list[arb]:
        """Return [E[Z²] − E[Z]²]."""
        return [ball(self._moment(2) - self.mean() ** 2)]

    def mean_squared_error(self) -> arb:
        """Return E[Z²], which exceeds the variance if E[Z] ≠ 0."""
        return ball(self._moment(2))

    def quantile(self, probability: ExactReal) -> arb:
        """Return the least integer x with P(Z ≤ x) ≥ probability, −∞ at 0."""
        if probability.sign == 0:
            return arb.neg_inf()
        reached = (
            index
            for index, value in enumerate(accumulate(self.probabilities))
            if ExactReal.of_rational(value) >= probability
        )
        return arb(self.lowest + next(reached))

    def _moment(self, power: int) -> Fraction:
        terms = (
            p * Fraction(z) ** power for z, p in enumerate(self.probabilities, start=self.lowest)
        )
        return sum(terms, start=Fraction(0))


# --- Skellam noise: the difference of two Poisson variables ---------------------------------------

_LARGEST = 10**6
"""Limit on the variance: about 13 standard deviations of masses are listed."""
_GUARD = 64
"""Extra bits of precision for sums of masses."""
_MOST_ADDED = 4096
"""Limit on the masses beyond the list that are summed for a tail probability."""
_FARTHEST = 1 << 40
"""Limit on the outcomes at which a loss is compared with ε; beyond it masses are negligible."""
_MOST_BITS = 4096
"""Limit on the precision at which a loss is compared with ε."""


@final
class Masses:
    """P(X = k) = e^{−v} I_k(v) and P(X ≥ k) for 0 ≤ k ≤ N, with a bound on P(X > N).

    X is a sum of independent variables with log-concave laws, so its law is log-concave and
    P(X = k + 1)/P(X = k) decreases in k. If this ratio is r < 1 at k = N, then
    P(X > N) ≤ P(X = N) r/(1 − r). The masses below N follow from the recurrence
    I_{k−1} = I_{k+1} + (2k/v) I_k, whose terms are positive. Tails beyond N are summed by the same
    recurrence, started from two Bessel functions farther out.
    """

    def __init__(self, variance: ExactReal, bits: int) -> None:
        v = self._v = variance.ball()
        size = 8 + 4 * math.isqrt(math.ceil(variance))
        while True:
            last, beyond = self.mass(size), self.mass(size + 1)
            if beyond < last and beyond / (1 - beyond / last) < arb(2) ** (-bits):
                break
            size += size // 2
        self.masses = [beyond, last]
        for k in range(size, 0, -1):
            self.masses.append(self.masses[-2] + 2 * k / v * self.masses[-1])
        self.masses = self.masses[:0:-1]
        total = arb(0).union(beyond / (1 - beyond / last))
        self.tails = [total]
        for mass in reversed(self.masses):
            total += mass
            self.tails.append(total)
        self.tails.reverse()  # N + 2 entries, the last of which is P(X > N)

    def mass(self, k: int) -> arb:
        """Return P(X = ±k)."""
        return self._v.bessel_i(arb(k), scaled=True)

    def at(self, k: int) -> arb:
        """Return P(X = k) for any integer k, from the list if it contains k."""
        k = abs(k)
        return self.masses[k] if k < len(self.masses) else self.mass(k)

    def at_least(self, k: int) -> arb:
        """Return P(X ≥ k)."""
        if k <= 0:
            return 1 - self.at_least(1 - k)
        if k < len(self.masses):
            return self.tails[k]
        fall = -float((self.mass(k + 1) / self.mass(k)).log().upper())  # of ln P(X = k) in a step
        added = ctx.prec * math.log(2) / fall if fall > 0 else math.inf
        last = k + math.ceil(min(added, _MOST_ADDED))
        mass, after = self.mass(last), self.mass(last + 1)
        total = arb(0).union(after / (1 - after / mass))
        for outcome in range(last, k - 1, -1):
            total += mass
            mass, after = after + 2 * outcome / self._v * mass, mass
        return total


@lru_cache(maxsize=16)
def _listed(variance: ExactReal, bits: int) -> Masses:
    with ctx.workprec(bits + _GUARD):
        return Masses(variance, bits)


def _masses(variance: ExactReal) -> Masses:
    return _listed(variance, ctx.prec)


@final
@dataclass(frozen=True)
class SkellamPair(MirroredPair):
    """P is the law of X + s and Q is the law of X, for an integer s ≥ 1.

    The loss L(z) = ln(P(X = z − s)/P(X = z)) is non-decreasing in z, because the law is
    log-concave. So {L > ε} = {z ≥ m} for some m, and H(ε) = P(X ≥ m − s) − e^ε P(X ≥ m). Reflection
    z → s − z exchanges P and Q, so L(s − z) = −L(z). L vanishes only at z = s/2.
    """

    law_name = "skellam"

    variance: ExactReal
    shift: int

    def _cut(self, epsilon: ExactReal) -> int | None:
        """Return the least integer m with L(m) > ε ≥ 0, None if it is beyond `_FARTHEST`.

        Raises UndecidedError if the largest precision does not decide whether a loss exceeds ε.
        """
        start, last = self.shift // 2 + 1, len(_masses(self.variance).masses) - 1
        if epsilon.sign == 0:
            return start
        low, high = start - 1, max(start, last)  # L(low) ≤ 0 < ε
        while not self._above(high, epsilon):
            low, high = high, 2 * high
            if high > _FARTHEST:
                return None
        between = range(low + 1, high)
        return low + 1 + bisect_left(between, True, key=lambda z: self._above(z, epsilon))

    def _above(self, z: int, epsilon: ExactReal) -> bool:
        """Whether L(z) > ε."""
        bits = max(ctx.prec, _GUARD)
        while bits <= _MOST_BITS:
            with ctx.workprec(bits + _GUARD):
                known = _listed(self.variance, bits)
                first, second = known.at(z - self.shift), known.at(z) * epsilon.ball().exp()
                if first > second:
                    return True
                if first < second:
                    return False
            bits *= 2
        raise UndecidedError(
            f"Whether the loss at {z} exceeds epsilon={epsilon} was not decided: they are too "
            "close. Give a slightly different epsilon.",
            reached=math.inf,
        )

    def excess(self, epsilon: ExactReal) -> arb:
        """Return P(X ≥ m − s) − e^ε P(X ≥ m)."""
        with ctx.workprec(ctx.prec + _GUARD):
            above = self.tails(epsilon)
            value = above.p_above - epsilon.ball().exp() * above.q_above
            if self._cut(epsilon) is None:
                value = arb(0).union(above.p_above)
        return +value

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses on both sides of m, or bounds from the end of the list if m is None.

        For ε < 0, reflection maps {L > ε} under P to {L < −ε} under Q; no loss equals −ε.
        """
        if epsilon.sign < 0:
            return self.tails(-epsilon).reflected
        m, s, known = self._cut(epsilon), self.shift, _masses(self.variance)
        if m is None:
            last = len(known.masses) - 1
            p, q = (arb(0).union(known.at_least(last + 1 - d)) for d in (s, 0))
            return Tails(p, 1 - p, q, 1 - q)
        return Tails(
            p_above=known.at_least(m - s),
            p_below=known.at_least(s + 1 - m),
            q_above=known.at_least(m),
            q_below=known.at_least(1 - m),
        )

    @property
    def known(self) -> Known:
        """Return an upper bound on H, and why divergences are refused."""
        return Known(
            # beyond the list the enclosure of H is wide, so its upper end is used
            bound=lambda epsilon: self.hockey_stick(epsilon).upper().max(arb(0)),
            refusal="Of Skellam noise no Rényi or Kullback–Leibler divergence is enclosed. Ask for "
            "delta, epsilon or the trade-off function.",
        )

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}, or its complement for ε < 0."""
        sign, size = ("at most", -epsilon) if epsilon.sign < 0 else ("at least", epsilon)
        m = self._cut(size)
        place = "far out" if m is None else m if epsilon.sign >= 0 else self.shift - m
        outside = "all but outcomes" if epsilon.sign < 0 else "outcomes"
        return (
            f"{outside} {sign} {place} above the true answer under Q "
            f"(the true answer under P is {self.shift} higher)"
        )


@declared
class Skellam(LogConcaveIntegers):
    """Release a true integer plus X = A − B, where A and B are independent Poisson(v/2) variables.

    P(X = k) = e^{−v} I_k(v) (Skellam 1946). A sum of independent Skellam variables is a Skellam
    variable whose variance is the sum, so several parties can each add a share of the noise
    (Agarwal, Kairouz and Liu 2021).

    Parameters
    ----------
    variance
        v > 0, at most 10⁶.
    sensitivity
        The largest distance, an integer ≥ 1, between the true answers on two neighbours.

    Notes
    -----
    Poisson laws are log-concave, and so is the law of X, since convolution preserves
    log-concavity. Hence the full shift is worst, as for `DiscreteGaussian`. A larger variance is
    more private, because it amounts to adding further independent noise.
    """

    example = "Skellam(variance=9)"

    noise_argument = "variance"

    variance: Positive = Positive()
    sensitivity: Integer = Integer(1, least=1)

    def __post_init__(self) -> None:
        if self.variance > ExactReal.of_rational(_LARGEST):
            raise expected("variance", self.variance, f"≤ {_LARGEST}", "Its masses are listed.")

    def pair(self) -> SkellamPair:
        """Return the pair of laws of X + sensitivity and X."""
        return SkellamPair(self.variance, self.sensitivity)

    def mean_absolute_error(self) -> arb:
        """Return E|X| = v e^{−v}(I_0(v) + I_1(v)).

        This follows from k I_k(v) = v(I_{k−1}(v) − I_{k+1}(v))/2, whose sum over k ≥ 1 telescopes.
        """
        known = _masses(self.variance)
        return self.variance.ball() * (known.at(0) + known.at(1))

    def probability_exact(self) -> arb:
        """Return P(X = 0)."""
        return _masses(self.variance).at(0)

    def variances(self) -> list[arb]:
        """Return [v]."""
        return [self.variance.ball()]

    def at_most(self, x: int) -> arb:
        """Return P(X ≤ x) = P(X ≥ −x)."""
        return _masses(self.variance).at_least(-x)


# --- The truncated geometric mechanism ------------------------------------------------------------


@declared
class TruncatedGeometric(Mechanism):
    """Release min(max(n + Z, low), high) for a count n in low..high, where P(Z = z) ∝ e^{−|z|/b}.

    Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms"
    (2009), Section 2. The tails of the geometric mechanism become atoms at the two ends.

    Parameters
    ----------
    scale
        b > 0, the scale of the noise before truncation.
    low, high
        The range of the counts and of the released value, low < high.
    sensitivity
        The largest distance between the counts of two neighbours, 1 ≤ sensitivity ≤ high − low.

    Notes
    -----
    Truncation does not change the privacy profile. *Proof.* Take counts n and n + d, both in
    low..high. The loss of the untruncated outcome y is −d/b for all y ≤ n and d/b for all
    y ≥ n + d. Truncation merges the outcomes y ≤ low ≤ n into one and the outcomes
    y ≥ high ≥ n + d into another. So it merges only outcomes of equal loss, and the law of the loss
    is unchanged under both counts. ∎ Hence *every* pair of counts at distance d has the profile of
    two discrete Laplace laws at distance d, and every pair at distance `sensitivity` is worst. The
    mechanism is exactly (sensitivity/b)-DP, as without truncation.
    """

    example = "TruncatedGeometric(scale=2, low=0, high=10)"
    no_variance = (
        "The noise of TruncatedGeometric depends on the true count. "
        "Ask for variance_at(count) or mean_squared_error_at(count)."
    )

    noise_argument = "scale"

    scale: Positive = Positive()
    low: Integer = Integer()
    high: Integer = Integer()
    sensitivity: Integer = Integer(1, least=1)

    def __post_init__(self) -> None:
        if self.high <= self.low:
            raise expected("high", self.high, f"> low={self.low}", "Give a larger high.")
        if self.sensitivity > self.high - self.low:
            raise expected(
                "sensitivity",
                self.sensitivity,
                f"≤ high − low = {self.high - self.low}",
                "Widen the range, or give a smaller sensitivity.",
            )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the untruncated pair at distance `sensitivity`, whose loss has the same law."""
        return WorstCase.symmetric(
            DiscreteLaplacePair(self.scale, self.sensitivity),
            "Truncation merges only outcomes of equal loss, so every pair of counts in the range "
            "at distance d has the profile of the untruncated noise at distance d, which "
            "increases with d: every pair at distance sensitivity is worst.",
        )

    def masses(self, count: int) -> list[arb]:
        """Return P(released value = low), …, P(released value = high) for a true count."""
        n, low, high = self._count(count), self.low, self.high
        rate = 1 / self.scale.ball()
        outer = 1 + (-rate).exp()
        centre = (rate / 2).tanh()
        inner = [centre * (-rate * abs(y - n)).exp() for y in range(low + 1, high)]
        return [(-rate * (n - low)).exp() / outer, *inner, (-rate * (high - n)).exp() / outer]

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases before truncation, exactly."""
        return DiscreteLaplace(self.scale).sample(size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` released values for one true count, exactly."""
        values = self._count(cast(int, value)) + self.sample(times, rng=rng)
        return np.asarray(np.clip(values, self.low, self.high))

    def mean_at(self, count: int) -> arb:
        """Return the mean of the released value for a true count; it is biased off the middle."""
        return self._mean_of(count, lambda value: value)

    def mean_squared_error_at(self, count: int) -> arb:
        """Return E[(released − n)²] for a true count n."""
        return self._mean_of(count, lambda value: (value - count) ** 2)

    def variance_at(self, count: int) -> arb:
        """Return the variance of the released value for a true count."""
        return self.mean_squared_error_at(count) - (self.mean_at(count) - count) ** 2

    def _mean_of(self, count: int, function: Callable[[int], int]) -> arb:
        """Return the mean of a function of the released value for a true count."""
        masses = enumerate(self.masses(count), start=self.low)
        return sum((function(value) * mass for value, mass in masses), start=arb(0))

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return counts that differ by 1, at both ends and in the middle of the range."""
        starts = (self.low, (self.low + self.high) // 2, self.high - 1)
        return [(count, count + 1) for count in dict.fromkeys(starts)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` released values for the true count `answer`, exactly."""
        return self.release(int(answer), size, rng=rng)

    def _count(self, count: int) -> int:
        n = integer("count", count)
        if not self.low <= n <= self.high:
            raise expected("count", n, f"in {self.low}..{self.high}", "Give a count of the range.")
        return n

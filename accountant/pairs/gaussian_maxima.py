"""The profile of the report of a noisy maximum: scores with Gaussian noise, k candidates.

Count scores in units of σ, and let S be a set of s candidates, M_S the largest noisy score in it
and M the largest of the m = k − s others. P(S) is largest where S rises and the others fall as far
as they may: with t the sum of both moves, p(t) = P(M − M_S < t) against p(0).

*Equal scores in S, and equal ones outside, are worst.* Let X be the largest of s standard normal
variables, Y that of m, and F the distribution function of Y − X. Then p(t) ≤ F(F⁻¹(p(0)) + t):

1. With r = φ/Φ, as a function of y = −ln Φ, r is concave: dr/dy = x + r(x), which falls with x, as
   r′ > −1 (Sampford 1953). Where M_S has the distribution function G = Π Φ(x − a_i), its density is
   G Σ r(y_i) ≤ G s r(y/s), y = Σ y_i = −ln G: that of X where its distribution function is G. So
   M_S = ψ(X) with ψ′ ≥ 1, and M = χ(Y) with χ′ ≥ 1.
2. X and Y have log-concave densities. Given Y − X = d, Y and −X increase stochastically with d
   (Efron 1965): with U the rank of Y given Y − X, which is uniform and independent of Y − X, the
   curves of one U have y and −x that do not fall with d. Along them χ(y) − ψ(x) rises by at least
   what d rises by. So {M − M_S < c + t} lies, at each U, below d(U) + t where {M − M_S < c} lies
   below d(U), and p(t) ≤ E F(d(U) + t), p(0) = E F(d(U)).
3. F has a log-concave density, so q ↦ F(F⁻¹(q) + t) is concave: Jensen's inequality.

Its trade-off functions are so those of the noise Y − X at distance t, for s = 1, …, k − 1, and each
is attained. H(ε) is the largest F(a + t) − e^ε F(a), concave in q = F(a).

F and its density f are integrals of products of Φ(x)'s and φ(x)'s, k in all, and the trapezoidal
rule is fast: |φ(x + iy)| ≤ e^{y²/2} φ(x) and |Φ(x + iy)| ≤ e^{y²/2} Φ(x), so with E = 2π²/(h²k) the
rule of step h errs by at most 1/sinh(E) of the integral (Trefethen and Weideman 2014, Theorem 5.1,
on a strip of half-width 2π/(hk)).
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, final

from flint import arb

from dpassay.accountant.core.pair import MirroredPair, Tails
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import largest_divergence
from dpassay.accountant.pairs.gaussian import gaussian_tails, normal_cdf

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BITS, _ROUGH_BITS = 64, 24
"""Of quadratures: for an answer, and to see that a size of S is not worst."""
_ROUGH_PRECISION, _MOST_PRECISION = 64, 1024
"""Bits of the numbers of a rough one, and the most of any: more are for values below 1e-300."""
_SPARE_BITS = 12
"""More of them than a raised precision has."""
_FAR = 18.0
"""Levels of Y − X that floats look for, beyond the distance: F(−18) is 1e-37 at most."""
_HALVINGS, _NEWTON, _STEP = 9, 5, 0.1
"""Halvings of a bracket, steps after them, and the longest one, of the search for a level."""
_ASIDE = (2e-13, 1e-10, 1e-6)
"""How far on both sides of a level found in floats the best one is shown to lie."""
_ABOVE = 1e-4
"""How far above it, in units of 1/t, a tangent is taken that shows that a size is not worst."""
_TIED = 1 - 1e-9
"""Share of the largest H from which on floats count another one as equal."""
_MOST_NUMBERS = 1 << 23
"""Numbers of a table of all sizes of S, of 2400 candidates: one of 10,000 takes gigabytes."""
_MOST_EPSILON = 700.0
"""Largest ε of which floats know the exponential."""
_STEPS, _SETTLED = 30, 1e-14
"""Most steps towards an ε in floats, and the relative size of the last one."""
_STARTS = 4
"""Scores of two candidates from which divergences are bounded from below."""


@lru_cache(maxsize=8)
def _nodes(k: int, bits: int, precision: int) -> tuple[arb, list[arb], list[arb], list[arb], arb]:
    """Return the step, the nodes, Φ and φ there, and the mass of φ beyond them."""
    step = math.pi * math.sqrt(2 / (k * bits * math.log(2)))
    most = math.ceil((math.sqrt(2 * math.log(2) * precision) + 1) / step)
    h = arb(step)
    at = [h * j for j in range(-most, most + 1)]
    return h, at, [normal_cdf(x) for x in at], [_density(x) for x in at], 2 * normal_cdf(-h * most)


def _density(x: arb) -> arb:
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def difference(k: int, s: int, a: arb, bits: int = _BITS) -> tuple[arb, arb]:
    """Return F(a) and f(a) of Y − X, the largest of k − s and of s standard normal variables."""
    h, at, cdf, density, beyond = _nodes(k, bits, ctx.prec)
    m = k - s
    low, slope = arb(0), arb(0)
    for x, below, here in zip(at, cdf, density, strict=True):
        weight = here * below ** (s - 1)
        other = normal_cdf(x + a)
        rest = weight * other ** (m - 1)
        low += rest * other
        slope += rest * _density(x + a)
    off = 1 / (2 * arb.pi() ** 2 / (h * h * k)).sinh()
    wide = (1 + off.union(-off)) ** -1
    tail = arb(0).union(beyond)
    return s * (h * low + tail) * wide, s * m * (h * slope + tail) * wide


@lru_cache(maxsize=64)
def _levels(k: int, distance: float, epsilon: float) -> tuple[NDArray[Any], ...]:
    """Return for every s, in floats, the a with f(a + t) = e^ε f(a), H(ε), and F(a).

    Raises UndecidedError for too many candidates.
    """
    import numpy as np
    from scipy.special import log_ndtr

    size = np.arange(1, k)[:, np.newaxis]
    step = math.pi * math.sqrt(2 / (k * _BITS / 2))
    reach = _FAR * 3 / 2 + distance
    if k * 2 * reach > _MOST_NUMBERS * step:
        raise UndecidedError(
            f"The best event of {k} candidates, of noise that moves by {distance:.3g} deviations, "
            "takes too long to find. Ask about fewer candidates or more noise."
        )
    x = np.arange(-reach, reach, step)
    weight = (size - 1) * log_ndtr(x) - x * x / 2

    def log_density(a: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        y = x + a
        cdf = log_ndtr(y)
        found = weight + (k - size - 1) * cdf - y * y / 2
        most = found.max(axis=1, keepdims=True)
        share = np.exp(found - most)
        whole = share.sum(axis=1, keepdims=True)
        slopes = (k - size - 1) * np.exp(-y * y / 2 - cdf) / math.sqrt(2 * math.pi) - y
        return np.log(whole) + most, (share * slopes).sum(axis=1, keepdims=True) / whole

    low, high = np.full(size.shape, -_FAR - distance), np.full(size.shape, _FAR)
    for step_number in range(_HALVINGS + _NEWTON):
        a = (low + high) / 2 if step_number < _HALVINGS else low
        (above, above_slope), (here, here_slope) = log_density(a + distance), log_density(a)
        excess = above - here - epsilon
        if step_number < _HALVINGS:
            low, high = np.where(excess > 0, a, low), np.where(excess > 0, high, a)
        else:
            with np.errstate(all="ignore"):  # slopes that floats do not tell apart
                off = excess / (above_slope - here_slope)
            low = a - np.nan_to_num(np.clip(off, -_STEP, _STEP))

    def mass(a: NDArray[Any]) -> NDArray[Any]:
        found = np.exp(weight + (k - size) * log_ndtr(x + a)).sum(axis=1, keepdims=True)
        return np.asarray(found * size * step / math.sqrt(2 * math.pi))

    found = mass(low)
    return (
        low[:, 0],
        (mass(low + distance) - np.exp(min(epsilon, _MOST_EPSILON)) * found)[:, 0],
        found[:, 0],
    )


_TWO = 2
"""Candidates of which the gap says all."""


@final
@dataclass(frozen=True)
class GaussianMaximaPair(MirroredPair):
    """The largest of the profiles of all pairs of the report of a noisy maximum, Gaussian noise.

    Of divergences only bounds are known: those of the vector of noisy scores, and those of two
    candidates.
    The complement of an event is one, with scores exchanged.
    """

    law_name = "noisy-maxima"

    candidates: int
    distance: ExactReal

    usual_width: ClassVar = Fraction(1, 10**12)
    """1e-12: integrals take longer for more."""

    def _found(self, epsilon: ExactReal) -> tuple[NDArray[Any], ...]:
        return _levels(self.candidates, float(self.distance), float(epsilon))

    def _at(self, s: int, a: arb, bits: int) -> tuple[arb, arb, arb, arb]:
        """Return F(a + t), F(a), f(a + t) and f(a) for sets of s candidates."""
        p, p_slope = difference(self.candidates, s, a + self.distance.ball(), bits)
        q, q_slope = difference(self.candidates, s, a, bits)
        return p, q, p_slope, q_slope

    def _at_most(self, s: int, epsilon: ExactReal) -> arb:
        """Return an upper bound of the H(ε) of sets of s candidates: a tangent, soon evaluated."""
        with ctx.workprec(_ROUGH_PRECISION):
            factor, t = epsilon.ball().exp(), float(self.distance)
            above = arb(float(self._found(epsilon)[0][s - 1]) + _ABOVE / max(t, _ABOVE))
            p, q, p_slope, q_slope = self._at(s, above, _ROUGH_BITS)
            rise = p_slope / q_slope - factor
            return (p - factor * q + (-rise * q if rise <= 0 else abs(rise))).upper()

    def _of_size(self, s: int, epsilon: ExactReal) -> tuple[arb, tuple[arb, arb] | None]:
        """Return the H(ε) of sets of s candidates, and levels around the best one.

        F(a + t) − e^ε F(a) is concave in q = F(a), with the slope f(a + t)/f(a) − e^ε. Where that
        is ≥ 0 at one level and ≤ 0 at another, the best one is between them, and the tangent at
        the first one is above the maximum.
        """
        factor, bits = epsilon.ball().exp(), self._bits()
        near = float(self._found(epsilon)[0][s - 1])
        for aside in _ASIDE:
            low, high = arb(near - aside), arb(near + aside)
            p, q, p_slope, q_slope = self._at(s, low, bits)
            p_high, q_high, p_end, q_end = self._at(s, high, bits)
            value, rise = p - factor * q, p_slope / q_slope - factor
            if rise >= 0 and p_end - factor * q_end <= 0:
                above = value + rise * (q_high - q)
                return value.max(p_high - factor * q_high).union(above), (low, high)
        if ctx.prec >= _MOST_PRECISION:
            raise UndecidedError(f"The best event at epsilon={epsilon} is too rare to be found.")
        return value.max(arb(0)).union(self.bound(epsilon)), None

    def _bits(self) -> int:
        return _BITS if ctx.prec <= START_PRECISION else ctx.prec + _SPARE_BITS

    def _largest(self, epsilon: ExactReal) -> tuple[arb, int, tuple[arb, arb] | None]:
        """Return H(ε), a size of S that is worst as far as is known, and levels around its best."""
        values = self._found(epsilon)[1]
        worst = int((values >= values.max() * _TIED).argmax()) + 1  # of equal ones the smallest
        order = [s for s in values.argsort()[::-1] + 1 if s != worst]
        with ctx.workprec(min(ctx.prec, _MOST_PRECISION)):
            best, levels = self._of_size(worst, epsilon)
            for s in map(int, order):
                if not self._at_most(s, epsilon) < best.lower():
                    best = best.max(self._of_size(s, epsilon)[0])
        return best, worst, levels

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the largest over the sizes of S; the closed form of one normal law."""
        if self.is_gaussian:
            tails = self.tails(epsilon)
            return tails.p_above - epsilon.ball().exp() * tails.q_above
        return self._largest(epsilon)[0].max(-epsilon.ball().expm1()).max(arb(0))

    def bound(self, epsilon: ExactReal) -> arb:
        """Return the H(ε) of the vector of noisy scores."""
        mu = (2 * self.rho_bound()).sqrt()
        half, cut = mu / 2, epsilon.ball() / mu
        return (normal_cdf(half - cut) - epsilon.ball().exp() * normal_cdf(-half - cut)).upper()

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε ≥ 0 with ln H(ε) = log_delta in floats, by steps of Newton."""
        epsilon = 0.0
        for _ in range(_STEPS):
            try:
                _, values, masses = _levels(self.candidates, float(self.distance), epsilon)
            except UndecidedError:
                return None
            best = values.argmax()
            if not (values[best] > 0 and masses[best] > 0 and epsilon < _MOST_EPSILON):
                return None
            value = float(values[best])
            step = (math.log(value) - log_delta) * value / (math.exp(epsilon) * masses[best])
            epsilon += step
            if epsilon < 0:
                return None
            if abs(step) <= _SETTLED * epsilon:
                return float(epsilon)
        return None

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of Y − X moved by t, for the size of S that is worst at ε."""
        if self.is_gaussian:
            return gaussian_tails((2 * self.rho_bound()).sqrt(), epsilon)
        _, s, levels = self._largest(epsilon)
        k, t, bits = self.candidates, self.distance.ball(), self._bits()
        if levels is None:
            some = arb(0).union(arb(1))
            return Tails(some, some, some, some)

        def at(size: int, shift: arb, sign: int) -> arb:
            low, high = (difference(k, size, sign * (a + shift), bits)[0] for a in levels)
            return low.union(high)

        return Tails(at(s, t, 1), at(k - s, t, -1), at(s, arb(0), 1), at(k - s, arb(0), -1))

    def _lower(self, order: arb | None) -> arb:
        """Return the largest D_order that was found of two candidates (order 1 for None)."""
        laws = []
        with ctx.workprec(START_PRECISION):  # more digits of a bound that is far off help nobody
            mu = self.distance.ball() / arb(2).sqrt()
            for i in range(_STARTS + 1):
                z = -mu * i / _STARTS * (1 if order is None else order)
                p, q = ((normal_cdf(x), normal_cdf(-x)) for x in (z + mu, z))
                laws.append((p, q))
            return largest_divergence(laws, order)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball: from two candidates up to the vector of noisy scores."""
        return self._lower(order).union(order * self.rho_bound())

    def kullback_leibler(self) -> arb:
        """Return a wide ball: from two candidates up to the vector of noisy scores."""
        return self._lower(None).union(self.rho_bound())

    def closed_rho(self) -> arb:
        """Return a ball from `limiting_rho` up to `rho_bound`, which are one number for k ≤ 3."""
        return self.distance.squared.times(self.limiting_rho).ball().union(self.rho_bound())

    @property
    def is_gaussian(self) -> bool:
        """Whether it is the half-lines of one normal law: those of the gap of two candidates."""
        return self.candidates == _TWO

    @property
    def limiting_rho(self) -> Fraction:
        """(k − 1)/(2k), the least that ρ/t² may be: what one candidate against the others needs.

        Its noisy score is c above theirs with probability e^{−c²/(2 + 2/(k − 1)) + O(ln c)}. So at
        large orders a, with c = at, D_a/a of the event tends to that.
        """
        return Fraction(self.candidates - 1, 2 * self.candidates)

    @property
    def joint_rho(self) -> Fraction:
        """The ρ/t² of the vector of noisy scores: half the largest variance of a move, times k.

        A move of all scores by the same amount changes no choice, so that only what is left of the
        moves counts: half of them up by t, the others not.
        """
        k = self.candidates
        return Fraction(k // 2 * (k - k // 2), 2 * k)

    def rho_bound(self) -> arb:
        """Return that of the vector of noisy scores."""
        return self.distance.squared.times(self.joint_rho).ball()

    def least_mu(self) -> arb:
        """Return a ball from what rare events and H(0) need up to the vector of noisy scores.

        μ-GDP implies ρ = μ²/2, and H(0) ≤ 2Φ(μ/2) − 1 = erf(μ/√8).
        """
        rare, all_scores = (
            self.distance.squared.times(2 * rho).root().ball()
            for rho in (self.limiting_rho, self.joint_rho)
        )
        if self.limiting_rho == self.joint_rho:
            return all_scores
        with contextlib.suppress(UndecidedError):
            total = self.hockey_stick(ExactReal.of_rational(0))
            rare = rare.max(arb(8).sqrt() * total.erfinv())
        return rare.union(all_scores)

    def law(self) -> dict[str, object]:
        """Return {"law": "noisy-maxima", "candidates": k, "distance": t, "gaussian": True}."""
        return {**super().law(), "gaussian": True}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates that rise."""
        _, s, levels = self._largest(epsilon)
        level = f"{float(levels[0].mid()):.6g}" if levels else "some number"
        return (
            f"{s} of the {self.candidates} candidates: their scores are equal, and rise by "
            f"{self.distance} standard deviations of the noise against the others, which are equal "
            f"too, from {level} on"
        )

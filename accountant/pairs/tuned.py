"""The best of a random number of runs (private selection): both bounds of δ(ε) over all scores.

A mechanism is run K times independently on the same data, and the run with the best score is
released, or nothing if K = 0. K is drawn first; φ(z) = E z^K and E K < ∞. The score is any function
of the output and of independent coins. P and Q are the laws of one run, and x = e^ε.

**It suffices to study one dominating pair.** If (P, Q) dominates the laws of two neighbours, these
laws are the images of P and Q under one Markov kernel (Blackwell 1953), that is, functions of an
outcome and coins. We may release the outcome and the coins, and let the score depend on both, since
this releases more. Ties are broken by a further coin, which gives the same law as a uniform choice
among them. So a score is a strict ranking of all outcomes. The bound is attained if the outputs
of the mechanism contain such coins.

**The law of the best run.** The best of k runs is below a place in the ranking exactly if all runs
are. So it is between two places with probability φ(A′) − φ(A) under P and φ(B′) − φ(B) under Q,
where A and B (A′ and B′) are the probabilities of one run below the lower (upper) place.

**The worst ranking.** Divide a ranking into chunks that alternate between inside and outside of an
event S. P*(S), the probability that the best run is in S, is the sum of φ(A′) − φ(A) over the
chunks inside. Its derivative with respect to the P-mass of chunk k is φ′(A′_k) + R_k if the chunk
is inside and R_k if it is outside, where R_k is the sum of φ′(A′) − φ′(A) over all later chunks
inside. Since φ′ is increasing, these derivatives always order the chunks in the same way: first, by
increasing derivative, those outside from the last to the first, then those inside from the first to
the last. Fix the Q-mass of every chunk, and so Q*(S). Redistribute P: give the last chunk inside
the outcomes of largest loss, the one before it the next largest, and so on down this order. No
outcomes of a given Q-mass have more P-mass, so this choice has the largest partial sums of P-mass
from the top of the order. By summation by parts, P*(S) does not decrease along the straight line to
it. Hence there is a worst ranking in which, at each place, the outcomes ranked so far are those
with losses in an *interval* (i, j). The interval starts anywhere, grows upwards by outcomes inside
S and downwards by outcomes outside. Sufficiently fine chunks approximate any ranking, as E K < ∞.
So

    δ(ε) = sup over paths (i, j) of Σ over steps up of φ(A′) − φ(A) − x (φ(B′) − φ(B)).

**The upper bound.** On a path an outcome b inside adds φ′(A) p − x φ′(B) q, a density in b, where A
and B are the masses of the outcomes with losses in an interval (a, b). We take the best a for each
b by itself, and b outside if that is negative:

    δ(ε) ≤ ∫ max(0, sup over a ≤ b of φ′(A) p − x φ′(B) q) db.

This is an equality if the best a decreases in b, and the b inside are those from one on, since they
then form a path. They nearly always do.

**Discretisation.** Let the outcomes have finitely many losses, and divide those of each loss into
pieces by a further coin. Take b at the fraction u of a piece of masses p and q, and a at the
fraction v of a lower piece, of Q-mass q′. A and B are affine in u and in v. Since φ′ is convex, and
φ‴ increasing, φ′(A) is at most its bilinear interpolation between the four ends u, v ∈ {0, 1}, and
φ′(B) is at least its interpolation minus (q² + q′²) φ‴(B)/8 with the largest B. It is also at least
0. So the integrand is at most (1 − u) M₀ + u M₁, where M₀ and M₁ are the largest of these bounds at
u = 0 and at u = 1 over the ends of all pieces, and at least 0. The integral over the piece is at
most (M₀ + M₁)/2. If a is in the same piece as b, the interpolation is in w = u − v ≤ u, between an
empty interval (w = 0, at both ends of u) and the whole piece (w = 1, at u = 1), so the same holds.

**Both bounds.** Let s < t be neighbours among finitely many losses at which H, the profile of one
run, and the tails are enclosed. For the upper bound take the pair whose profile is the lower convex
hull, in e^ε, of upper bounds of H at these losses: H is convex, so it lies below every chord of
them, and this pair dominates (P, Q). Its losses are among these. For the lower bound take the pair
whose trade-off curve is the hull of the points with Q(L > s) rounded up and P(L > s) rounded down:
it is a coarser release. Any path of its pieces will do; we follow the best a for each piece, as far
as they decrease.

**The largest loss** is the largest loss of one run plus the largest ln φ′(A)/φ′(B). (A, B) lies on
the trade-off curve (Neyman and Pearson). On its straight pieces φ′(A)/φ′(B) is a power of a
quotient of linear functions, or an exponential, so only their ends matter. If there are infinite
losses, of P-mass m, and φ′(0) > 0, the same sum with the largest finite loss of one run is the
largest finite loss. From there on δ(ε) = 1 − φ(1 − m), attained by a score that prefers infinite
losses: only these contribute, and no score selects them more often.

**Rényi divergences** are bounded by those of one run: Papernot and Steinke 2022, "Hyperparameter
tuning with Rényi differential privacy", Theorems 2 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial, reduce
from heapq import heapify, heappop, heappush
from itertools import accumulate, pairwise
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.pair import Known, Pair, Tails, refined
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import cached_property, ctx, note
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.between import narrow_enough, passes
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair

_BITS = 448
"""Precision in bits of sums of masses, which are subtracted from each other."""
_TAILS = 192
"""Precision of the tails of one run in bits. Less widens tails of compositions, more is slow."""
_FEWEST, _QUICK, _MOST = 32, 64, 512
"""Numbers of losses at which tails are computed: the first one for ε, that of a quick bound, and
the largest one. The two bounds differ by about the inverse square of this number."""
_FINE = 16
"""Points for each piece in which an outcome is divided, between which `_rank` is interpolated."""
_SCALE = 4
"""Step of −ln δ in the depth, which decides where the range of losses is truncated."""
_DEPTH, _DEEPEST = 2, 30
"""Depth of a quick bound, and the largest one; for δ below e^−120 the two bounds are far apart."""
_LEFT_OUT = 2.0**-16
"""Fraction of δ that the losses beyond the grid, which are not distinguished, may add."""
_WIDTH = Fraction(1, 10**6)
"""Relative width of the tails of one run if they have no closed form."""
_USUAL = Fraction(1, 2000)
"""Relative width of ε that is tried if none is asked; ten times less is seldom reached."""
_STEPS, _CLOSE, _ENDS = 64, 1e-12, Fraction(1, 10**5)
"""Most steps of Newton's method for ε, the relative change of e^ε at which it stops, and the
relative distance to which each bound is inverted."""
_EVENTS = 16
"""Most events that are tried for a lower bound of ε."""
_HALVINGS, _DOUBLINGS = 10, 40
"""Steps of the search for a loss with little mass above it."""
_SLACK = 2.0**-40
"""Relative rounding error of one term in floats: that of up to 1000 operations of 2^−52 each."""
_LARGEST = ExactReal.of_rational(600)
"""For larger ε the upper bound at this ε is used, because e^ε becomes too large for floats."""
_ORDERS = tuple(1 + 2.0 ** (k / 2) for k in range(-4, 24))
"""Orders of the divergences of one run in the bounds of a Rényi divergence."""
_UNIT = 2.0**-52
"""Upper bound of the relative rounding error of a float operation."""

_Node: TypeAlias = tuple[float, float, ExactReal, Tails]
"""A loss as a float, ln(Q(L ≤ s)/P(L > s)) there, the loss, and the tails."""
Path: TypeAlias = list[tuple[int, int]]
"""Steps up of a path, which add the piece j to the interval of pieces i, …, j − 1."""


@final
@dataclass(frozen=True)
class Runs:
    """The law of the number of runs K.

    Parameters
    ----------
    mean
        E K.
    shape
        "poisson"; "fixed" for K = E K; or the number η > −1 of the truncated negative binomial
        law, P(K = k) ∝ (1 − γ)^k Γ(k + η)/k! for k ≥ 1. η = 1 is the geometric law, η = 0 the
        logarithmic one.
    """

    mean: ExactReal
    shape: ExactReal | str

    @cached_property
    def gamma(self) -> arb:
        """The parameter γ of a truncated negative binomial law, to `_BITS` bits.

        Found by bisection: the mean η(1 − γ)/(γ(1 − γ^η)) decreases in γ.
        """
        assert isinstance(self.shape, ExactReal)
        low, high = Fraction(0), Fraction(1)
        with ctx.workprec(3 * _BITS):
            if self.shape == ExactReal.of_rational(1):
                return 1 / self.mean.ball()
            for _ in range(_BITS):
                middle = (low + high) / 2
                value = _mean(ball(middle), self.shape)
                if value > self.mean.ball():
                    low = middle
                elif value < self.mean.ball():
                    high = middle
                else:  # a root that cannot be distinguished from this number
                    ends = middle - Fraction(1, 2**_BITS), middle + Fraction(1, 2**_BITS)
                    least, most = (_mean(ball(end), self.shape) for end in reversed(ends))
                    if least < self.mean.ball() < most:
                        low, high = ends
                    break
            return ball(low).union(ball(high))

    def derivative(self, below: arb, above: arb) -> arb:
        """Return φ′ at the probability `below`; `above` is its complement."""
        if self.shape == "poisson":
            mean = self.mean.ball()
            return mean * (-mean * above).exp()
        if self.shape == "fixed":
            k = int(float(self.mean))
            return k * below ** (k - 1)
        assert isinstance(self.shape, ExactReal)
        eta, gamma = self.shape.ball(), self.gamma
        return self._unit() * (1 - gamma) * (gamma + (1 - gamma) * above) ** (-eta - 1)

    def _unit(self) -> arb:
        """Return φ′(1) γ^{η + 1}/(1 − γ) of a truncated negative binomial law."""
        assert isinstance(self.shape, ExactReal)
        eta, gamma = self.shape.ball(), self.gamma
        return -1 / gamma.log() if self.shape.sign == 0 else eta / (gamma**-eta - 1)

    def growth(self, below: arb, more: arb) -> arb:
        """Return φ(below + more) − φ(below), without cancellation in γ."""
        within = below + more
        if self.shape == "poisson":
            mean = self.mean.ball()
            return -(-mean * (1 - within)).exp() * (-mean * more).expm1()
        if self.shape == "fixed":
            k = int(float(self.mean))
            return within**k - below**k
        assert isinstance(self.shape, ExactReal)
        eta, gamma = self.shape.ball(), self.gamma
        y = gamma + (1 - gamma) * (1 - within)
        logs = ((1 - gamma) * more / y).log1p()
        if self.shape.sign == 0:
            return -logs / gamma.log()
        return -(y**-eta) * (-eta * logs).expm1() / (gamma**-eta - 1)

    def slope(self, order: int, within: Array, outside: Array) -> Array:
        """Return φ′ or φ‴ at `within` in floats, with a relative error below `_SLACK`."""
        mean = float(self.mean)
        if self.shape == "poisson":
            return mean**order * np.exp(-mean * outside)
        if self.shape == "fixed":
            factor = math.perm(int(mean), order)
            return factor * within ** (mean - order) if factor else np.zeros_like(within)
        eta, gamma, rest, unit = self._floats
        rising = unit * math.prod((eta + k) * rest for k in range(1, order)) * rest
        return rising * (gamma + rest * outside) ** (-eta - order)

    @cached_property
    def _floats(self) -> tuple[float, float, float, float]:
        """η, γ, 1 − γ and φ′(1) γ^{η + 1}/(1 − γ) of a truncated negative binomial law."""
        assert isinstance(self.shape, ExactReal)
        with ctx.workprec(_BITS):
            gamma, rest, unit = (
                float(each.mid()) for each in (self.gamma, 1 - self.gamma, self._unit())
            )
        return float(self.shape), gamma, rest, unit

    def never(self) -> arb:
        """Return P(K = 0)."""
        return (-self.mean.ball()).exp() if self.shape == "poisson" else arb(0)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draw `size` numbers of runs, for simulation; computed in floats."""
        mean = float(self.mean)
        if self.shape == "poisson":
            return rng.poisson(mean, size)
        if self.shape == "fixed":
            return np.full(size, int(mean))
        levels, found = np.sort(rng.random(size))[::-1], np.ones(size, dtype=np.int64)
        eta, _, rest, unit = self._floats
        total = mass = unit * rest
        k, left = 1, size
        while left := int((levels[:left] > total).sum()):  # those that run more than k times
            mass *= rest * (k + eta) / (k + 1)
            k, before, total = k + 1, total, total + mass
            if total == before:
                break
            found[:left] = k
        return rng.permutation(found)


def _mean(gamma: arb, shape: ExactReal) -> arb:
    if shape.sign == 0:
        return (1 - gamma) / (gamma * -gamma.log())
    eta = shape.ball()
    return eta * (1 - gamma) / (gamma * (1 - gamma**eta))


@final
@dataclass(frozen=True)
class TunedPair(Pair):
    """The pair whose profile is the largest profile of the best of several runs, over all scores.

    Parameters
    ----------
    base
        The pair that dominates one run.
    runs
        The law of the number of runs.
    """

    law_name = "tuned"

    base: Pair
    runs: Runs

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball that contains both bounds of H(ε)."""
        low, high = self.lower(epsilon), self.upper(epsilon)
        return low.lower().max(arb(0)).union(high.upper())

    def lower(self, epsilon: ExactReal, depth: int | None = None, losses: int = _MOST) -> arb:
        """Return a lower bound of H(ε), from one ranking and one event.

        `depth` decides where the range of losses is truncated; None takes that of `_depth`.
        `losses` is the number of losses that are distinguished.
        """
        if epsilon.sign < 0:
            x = epsilon.ball().exp()
            return 1 - x + x * self.reverse().lower(-epsilon, depth, losses)
        shown = _event(self, epsilon, depth or _depth(self, epsilon), losses)[0]
        return shown.max(self.infinity_mass())

    def upper(self, epsilon: ExactReal, depth: int | None = None, losses: int = _MOST) -> arb:
        """Return an upper bound of H(ε); `depth` and `losses` as for `lower`."""
        if epsilon.sign < 0:
            x = epsilon.ball().exp()
            return 1 - x + x * self.reverse().upper(-epsilon, depth, losses)
        once, at = self.base.max_loss(), epsilon.ball()
        if once.is_finite() and at >= once.lower() and at >= self.max_loss():
            return arb(0)
        if not once.is_finite() and at >= _largest_finite(self):
            return self.infinity_mass()
        pieces = _pieces(self, depth or _depth(self, epsilon), losses)
        return arb(pieces.most(epsilon)).min(arb(1))

    def max_loss(self) -> arb:
        """Return the largest loss of one run plus the largest ln φ′(A)/φ′(B), or +∞."""
        largest = self.base.max_loss()
        return _largest(self) if largest.is_finite() else arb.pos_inf()

    def infinity_mass(self) -> arb:
        """Return 1 − φ(1 − m), that of a score that prefers the outcomes of infinite loss."""
        mass = self.base.infinity_mass()
        if mass.is_zero():
            return arb(0)
        return self.runs.growth(1 - mass, mass)

    def renyi(self, order: arb) -> arb:
        """Return a ball from D_a of a constant score up to the bounds named in the module."""
        with ctx.workprec(_BITS):
            return _divergence(self, order)

    @property
    def known(self) -> Known:
        """Return the upper bounds, the attained pair and the inverse."""
        return Known(
            refusal="Of the best of several runs only bounds of delta and of epsilon are known, "
            "which hold for every score. Ask for these.",
            upper=self.upper,
            bound=self._quickly,
            attained=lambda epsilon: FinitePair(TunedEvent(self, epsilon), 0),
            width=lambda: _USUAL,
            inverse=self._inverse,
        )

    def _quickly(self, epsilon: ExactReal) -> arb:
        with suppress(UndecidedError):
            return self.upper(epsilon, _DEPTH, _QUICK)
        return arb(1)

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ), with more losses until the enclosure is narrow enough."""
        depth = min(max(1, math.ceil(-float(delta.ball().log().mid()) / _SCALE)), _DEEPEST)
        losses, x = _FEWEST, 1.0
        while True:
            found, x = self._enclosed(delta, depth, losses, x)
            reached = found.relative_width
            if losses == _MOST:
                break
            if reached is None:  # ε may be 0, or the upper bound never falls to δ
                losses *= 4
            elif reached <= relative_width:
                break
            else:
                losses *= 2 ** math.ceil(math.log(reached / relative_width, 4))
                losses = min(losses, _MOST)
        return narrow_enough(
            found,
            relative_width,
            "below by a score, above by all scores, both of losses in finitely many intervals",
        )

    def _enclosed(
        self, delta: ExactReal, depth: int, losses: int, x: float
    ) -> tuple[Interval, float]:
        """Return an enclosure of ε(δ), and e^ε about at its upper end; the search starts at x."""
        lower, upper = (
            partial(bound, depth=depth, losses=losses) for bound in (self.lower, self.upper)
        )
        x = _pieces(self, depth, losses).crossing(float(delta), x)
        if x < 1 + _ENDS and upper(ExactReal.of_rational(0)) <= delta.ball():
            low, high = (passes(bound, delta, Fraction(1), _ENDS) for bound in (lower, upper))
            return low.hull(high), 1.0
        end = Fraction(math.log(x)) * (1 + _ENDS / 4)
        if not ball(end) < self.base.max_loss() or not self.base.infinity_mass().is_zero():
            largest = _largest_finite(self).min(self.max_loss()).upper()
            end = fraction(largest.min(ball(end)).upper())
        proved = bool(upper(ExactReal.of_rational(end)) <= delta.ball())
        most = Interval.of_exact(end) if proved else Interval.of_ball(arb.pos_inf())
        least = arb.neg_inf()
        if proved or losses == _MOST:
            least = self._event_at(delta, end, depth, losses)
        return Interval(Interval.of_ball(least).lower, most.upper), x

    def _event_at(self, delta: ExactReal, end: Fraction, depth: int, losses: int) -> arb:
        """Return a lower bound of ε(δ), found from an event near `end`; −∞ if it is not positive.

        Every event S has P(S) − e^ε Q(S) ≤ δ at ε(δ).
        """
        best = arb.neg_inf()
        with ctx.workprec(_BITS):
            for _ in range(_EVENTS):
                _, p, q = _event(self, ExactReal.of_rational(end), depth, losses)
                x = (p - delta.ball()) / q
                if x > 1:  # the best event there is better still
                    last, best = best, best.max(x.log().lower())
                    end = fraction(best)
                    if best <= last * (1 + ball(_ENDS)):
                        break
                else:
                    end /= 2
        return best

    def reverse(self) -> TunedPair:
        """Return the pair for the reversed pair of one run."""
        return TunedPair(self.base.reverse(), self.runs)

    def law(self) -> dict[str, object]:
        """Return the law of the pair of one run, and mean and shape of the number of runs."""
        found = {"law": self.law_name, **{f"run_{k}": v for k, v in self.base.law().items()}}
        return found | {"mean": str(self.runs.mean), "shape": str(self.runs.shape)}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the event of the lower bound."""
        return "the runs of large loss, where the score ranks middle losses lowest"


@final
@dataclass(frozen=True)
class TunedEvent(FiniteLaws):
    """The event of the lower bound at ε = `at`, and its complement, as a pair of two outcomes."""

    pair: TunedPair
    at: ExactReal

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the probabilities of the event and of its complement."""
        at = self.at if self.at.sign >= 0 else ExactReal.of_rational(0)
        _, p, q = _event(self.pair, at, _depth(self.pair, at), _MOST)
        return [p, 1 - p], [q, 1 - q]

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the names of the event and of its complement."""
        return "a run of large loss", "any other"


def _rank(places: Array, mean: float) -> Array:
    """Return, for places among the outcomes by P- and Q-mass, what pieces divide equally.

    It is the sum of both integrals of 1/(1/mean + min(t, 1 − t)), since φ′ changes by about the
    same factor on pieces whose length is a share of this: 1 − A may be as small as min(t, 1 − t).
    """
    near = np.clip(np.minimum(places, 1 - places), 0.0, 1.0)
    risen = np.log1p(mean * near)
    found: Array = np.where(places < 0.5, risen, 2 * math.log1p(mean / 2) - risen).sum(axis=0)
    return found


class _Pieces:
    """Pieces of outcomes by increasing loss, and the quantities that do not depend on ε."""

    def __init__(self, masses: list[tuple[arb, arb]], runs: Runs, losses: int, bits: int) -> None:
        self.pieces: list[tuple[arb, arb]] = []
        places = np.array([[0.0, *accumulate(float(m[s].mid()) for m in masses)] for s in (0, 1)])
        mean = max(float(runs.mean), 1.0)
        ranks = _rank(places, mean)
        parts = np.ceil(np.diff(ranks) * losses / (4 * math.log1p(mean / 2)))
        for k, (p, q) in enumerate(masses):
            if parts[k] <= 1:
                self.pieces.append((p, q))
                continue
            u = np.linspace(0.0, 1.0, int(_FINE * parts[k]) + 1)
            fine = _rank(places[:, k : k + 1] * (1 - u) + places[:, k + 1 : k + 2] * u, mean)
            cuts = np.interp(np.linspace(fine[0], fine[-1], int(parts[k]) + 1)[1:-1], fine, u)
            for one, two in pairwise([0.0, *cuts.tolist(), 1.0]):
                part = arb(two) - arb(one)
                self.pieces.append((p * part, q * part))
        self.size, self.runs, self.bits = len(self.pieces), runs, bits
        self.sums = [list(accumulate(piece[side] for piece in self.pieces)) for side in (0, 1)]

    @cached_property
    def ends(self) -> tuple[Array, Array, Array, Array]:
        """Bounds of p φ′(A) and q φ′(B) − e at both ends of a piece, indexed [piece, i].

        The lower end first, where the pieces from i on below it are ranked before, then the upper
        end. Those of p φ′(A) are upper bounds, the others lower bounds.
        """
        masses, *sums = self._sums(0, above=True)
        above = self.runs.slope(1, *sums)
        least, *sums = self._sums(1, above=False)
        below = self.runs.slope(1, *sums)
        _, *sums = self._sums(1, above=True)
        third = self.runs.slope(3, *(each[1:] for each in sums))
        most = np.nextafter(least, 1.0) * (1 + _SLACK)
        errors = most[:, None] * third * (most[:, None] ** 2 + np.append(most, 0.0) ** 2) / 8
        errors *= 1 + 8 * _SLACK
        least = (least * (1 - _SLACK))[:, None]
        none = errors[:, :-1] > below[:-1, 1:] * least  # cells in which q φ′(B) is bounded by 0
        errors[:, :-1][none] = 0.0
        errors[:, 1:] = np.maximum(errors[:, 1:], errors[:, :-1])
        none = np.pad(none, ((0, 0), (0, 1))) | np.pad(none, ((0, 0), (1, 0)))
        gains, costs = list[Array](), list[Array]()
        for row, part in enumerate((slice(None, -1), slice(1, None))):
            gain = above[part] * (masses * (1 + _SLACK))[:, None]
            gain[np.triu(np.ones_like(none), 1 + row)] = -np.inf  # no piece is before itself
            cost = below[part] * least - errors
            gains.append(gain)
            costs.append(np.where(none, np.minimum(cost, 0.0), cost))
        return gains[0], costs[0], gains[1], costs[1]

    @cached_property
    def about(self) -> tuple[Array, Array]:
        """About twice φ(A′) − φ(A) and φ(B′) − φ(B) of a piece, indexed [piece, i]."""
        found = list[Array]()
        for side in (0, 1):
            masses, *sums = self._sums(side, above=side == 0)
            slopes = self.runs.slope(1, *sums)
            found.append((slopes[:-1] + slopes[1:]) * masses[:, None])
        found[0][np.triu(np.ones(found[0].shape, dtype=bool), 1)] = -np.inf
        return found[0], found[1]

    def _sums(self, side: int, *, above: bool) -> tuple[Array, Array, Array]:
        """Return bounds of the masses of pieces, of those of pieces i, …, j − 1, and of all others.

        Sums are indexed [j, i]. All are rounded so that φ′ is bounded from above, or from below.
        """
        n, listed = self.size, [piece[side] for piece in self.pieces]
        inside = np.array([_end(mass, above) for mass in listed])
        rests = accumulate(reversed(listed))
        lows = np.array([0.0, *(_end(mass, not above) for mass in self.sums[side])])
        highs = np.array([0.0, *(_end(mass, not above) for mass in rests)])[::-1]
        within = np.tril(np.broadcast_to(inside, (n, n)))[:, ::-1].cumsum(axis=1)[:, ::-1]
        within = np.pad(within, ((1, 0), (0, 1))) * (1 + (n if above else -n) * _UNIT)
        return inside, within, lows[None, :] + highs[:, None]

    def crossing(self, delta: float, x: float) -> float:
        """Return about the x = e^ε ≥ 1 at which `most` is δ, or the largest x; x is a guess."""
        gains, costs, more, less = self.ends
        low, high = 1.0, math.exp(float(_LARGEST))
        for _ in range(_STEPS):
            p = q = 0.0
            for above, below in ((gains, costs), (more, less)):
                each = above - x * below
                best = each.argmax(axis=1)[:, None]
                kept = np.take_along_axis(each, best, 1) > 0
                p += float(np.take_along_axis(above, best, 1)[kept].sum()) / 2
                q += float(np.take_along_axis(below, best, 1)[kept].sum()) / 2
            value = p - x * q
            low, high = (x, high) if value > delta else (low, x)
            # Newton's method for ln δ as a function of ε, else for δ as a function of x
            step = math.log(value / delta) * value / (x * q) if value > 0 < q else math.inf
            tries = x * math.exp(min(step, 700.0)), (p - delta) / q if q > 0 else 0.0
            last, x = x, math.sqrt(low) * math.sqrt(high)
            x = next((found for found in tries if low < found < high), x)
            if abs(x - last) <= _CLOSE * x:
                break
        return x

    def most(self, epsilon: ExactReal) -> float:
        """Return an upper bound of the value of every path at ε ≥ 0."""
        note("tuned")
        x = float(min(epsilon, _LARGEST).ball().exp().lower()) * (1 - _SLACK)
        gains, costs, more, less = self.ends
        best = np.maximum((gains - x * costs).max(axis=1), 0.0)
        best += np.maximum((more - x * less).max(axis=1), 0.0)
        return float(best.sum()) / 2 * (1 + self.size * _UNIT)

    def path(self, epsilon: ExactReal) -> Path:
        """Return about the best path of whole pieces; found in floats."""
        x = math.exp(float(min(epsilon, _LARGEST)))
        gains, costs = self.about
        value = gains - x * costs
        places = value.argmax(axis=1)
        places = np.maximum.accumulate(places[::-1])[::-1]  # a path has lower i at higher j
        least = int((places > np.arange(self.size)).sum())
        sums = np.cumsum(value[np.arange(self.size), places][least:][::-1])[::-1]
        start = least + int(sums.argmax())
        return list(zip(places[start:].tolist(), range(start, self.size), strict=True))

    def shown(self, path: Path) -> tuple[arb, arb]:
        """Return the probabilities of the event of a path under P and under Q."""
        grow = self.runs.growth
        p, q = (
            sum((grow(self._mass(s, i, j), self.pieces[j][s]) for i, j in path), start=arb(0))
            for s in (0, 1)
        )
        return p, q

    def _mass(self, side: int, i: int, j: int) -> arb:
        """Return the mass of the pieces i, …, j − 1 under P (side 0) or Q (1)."""
        if i == j:
            return arb(0)
        sums = self.sums[side]
        return sums[j - 1] - sums[i - 1] if i else sums[j - 1]

    def largest(self) -> arb:
        """Return the maximum of φ′(A)/φ′(B), and at least 1, over the pieces i, …, n − 1."""
        masses = [
            (self._mass(0, i, self.size), self._mass(1, i, self.size)) for i in range(self.size)
        ]
        slopes = [[self.runs.derivative(each, 1 - each) for each in pair] for pair in masses]
        return reduce(arb.max, (p / q for p, q in slopes if q > 0), arb(1))


def _end(mass: arb, above: bool) -> float:
    """Return a float above the mass, or a float ≥ 0 below it."""
    end = float((mass.upper() if above else mass.lower()).mid())
    return max(math.nextafter(end, math.inf if above else -math.inf), 0.0)


@lru_cache(maxsize=32)
def _pieces(pair: TunedPair, depth: int, losses: int, *, above: bool = True) -> _Pieces:
    """Return pieces of a pair that dominates one run, or else of a coarser release of it."""
    with ctx.workprec(_BITS):
        listed = _listed(pair.base)
    far = 0.0 if listed else max(abs(node[0]) for node in _nodes(pair, depth, losses))
    bits = _BITS + 4 * math.ceil(far)  # e^loss and e^−loss are compared with 1
    with ctx.workprec(bits):
        return _Pieces(listed or _cut(pair, depth, losses, above), pair.runs, losses, bits)


def _listed(base: Pair) -> list[tuple[arb, arb]]:
    """Return (p, q) of finitely many outcomes by increasing loss.

    [] if there are too many, or if their order is not known.
    """
    if not isinstance(base, FinitePair):
        return []
    found = base.by_loss()
    return found if len(found) <= _MOST else []


def _cut(pair: TunedPair, depth: int, losses: int, above: bool) -> list[tuple[arb, arb]]:
    """Return the outcomes of a pair that dominates one run, or is a coarser release of it."""
    never = pair.base.infinity_mass()
    nodes = _nodes(pair, depth, losses)
    one, zero = arb(1), arb(0)
    if above:
        points = [(zero, one)]
        for _, _, loss, tails in nodes:
            x = loss.ball().exp()
            put = 1 - x + (x * tails.q_below - tails.p_below)
            points.append((x.upper(), (tails.p_above - x * tails.q_above).min(put).upper()))
        hull = _convex(points)
        steps = [(a[1] - b[1]) / (b[0] - a[0]) for a, b in pairwise(hull)]
        falls = [a - b for a, b in pairwise([*steps, zero])]
        inner = [(x * fall, fall) for (x, _), fall in zip(hull[1:], falls, strict=True)]
        return [(zero, 1 - steps[0]), *inner, (hull[-1][1], zero)]
    points = [(zero, -never.lower())]
    for _, _, _, tails in reversed(nodes):
        q = tails.q_above.upper().min(1 - tails.q_below.lower())
        p = tails.p_above.lower().max(1 - tails.p_below.upper())
        points.append((q, -p))
    hull = _convex([*points, (one, -one)])
    found = [(a[1] - b[1], b[0] - a[0]) for a, b in pairwise(hull)]
    return [*reversed(found), (-hull[0][1], zero)]


def _convex(points: list[tuple[arb, arb]]) -> list[tuple[arb, arb]]:
    """Return points of the lower convex hull of points given by about increasing abscissa.

    The first and the last one are kept, and the others that certainly lie right of the one before
    and below the chord of their neighbours. (Fewer points give a weaker bound.)
    """
    kept = points[:1]
    for x, y in points[1:]:
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2:]
            if x > x1 and (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            kept.pop()
        if x > kept[0][0]:
            kept.append((x, y))
    return kept


@lru_cache(maxsize=32)
def _nodes(pair: TunedPair, depth: int, losses: int) -> list[_Node]:
    """Return losses in increasing order and the tails there.

    Beyond the first and the last one little mass is left. The interval with the largest product of
    its squared length and its rise of ln(Q(L ≤ s)/P(L > s)), which is about the mass in it as a
    share of the tail, is halved next.
    """
    base = refined(pair.base, _WIDTH)
    mean = max(float(pair.runs.mean), 1.0)

    def node(loss: ExactReal) -> _Node:
        tails = base.tails(loss)
        known = tails.q_below > 0 and tails.p_above > 0
        rise = float((tails.q_below / tails.p_above).log().mid()) if known else -math.inf
        return float(loss), max(rise, math.log(_LEFT_OUT / mean)), loss, tails

    with ctx.workprec(_TAILS):
        if losses > _FEWEST:
            found = list(_nodes(pair, depth, losses // 2))
        else:
            high = _place(pair.base, _LEFT_OUT * math.exp(-_SCALE * depth) / mean)
            low = -_place(pair.base.reverse(), _LEFT_OUT / mean)
            found = [node(loss) for loss in sorted({low, high})]
        intervals = [_weighed(*ends) for ends in pairwise(found)]
        heapify(intervals)
        while intervals and len(found) < losses:
            _, _, one, two = heappop(intervals)
            middle = node(ExactReal.of_rational(Fraction((one[0] + two[0]) / 2)))
            found.append(middle)
            for ends in ((one, middle), (middle, two)):
                heappush(intervals, _weighed(*ends))
    return sorted(found, key=lambda node: node[0])


def _weighed(one: _Node, two: _Node) -> tuple[float, float, _Node, _Node]:
    """Return an interval for a heap, the one to be halved next first."""
    return -abs(two[1] - one[1]) * (two[0] - one[0]) ** 2, one[0], one, two


def _place(base: Pair, mass: float) -> ExactReal:
    """Return a loss above which the finite losses have about this P-mass, or the largest loss."""
    known, never = base.known.max_loss(), float(base.infinity_mass().mid())
    rough = refined(base, Fraction(1, 100))

    def little(at: Fraction) -> bool:
        with ctx.workprec(64):
            return float(rough.tails(ExactReal.of_rational(at)).p_above.mid()) - never <= mass

    low, high = Fraction(-1), Fraction(1)
    guess = base.known.epsilon(math.log(mass)) if never == 0 else None
    if guess is not None and math.isfinite(guess):  # H(s) is a large part of the mass above s
        low = high = Fraction(guess)
    else:
        for _ in range(_DOUBLINGS):
            if little(high) or (known is not None and ExactReal.of_rational(high) >= known):
                break
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if little(middle) else (middle, high)
    found = ExactReal.of_rational(high)
    return found if known is None else min(found, known)


@lru_cache(maxsize=256)
def _depth(pair: TunedPair, epsilon: ExactReal) -> int:
    """Return the depth for δ(ε): about −ln δ(ε) in steps of `_SCALE`."""
    depth, largest = 1, pair.max_loss()
    if epsilon.ball() >= largest.lower() or _listed(pair.base):
        return depth
    while depth < _DEEPEST:
        value = float(_event(pair, epsilon, depth, _QUICK)[0].mid())
        needed = 2 * depth if value <= 0 else math.ceil(-math.log(value) / _SCALE)
        if needed <= depth:
            break
        depth = min(needed, _DEEPEST)
    return depth


@lru_cache(maxsize=256)
def _event(pair: TunedPair, epsilon: ExactReal, depth: int, losses: int) -> tuple[arb, arb, arb]:
    """Return P(S) − e^ε Q(S), P(S) and Q(S) of about the best event S of whole pieces."""
    pieces = _pieces(pair, depth, losses, above=False)
    with ctx.workprec(pieces.bits):
        p, q = pieces.shown(pieces.path(epsilon))
        return p - epsilon.ball().exp() * q, p, q


@lru_cache(maxsize=64)
def _largest(pair: TunedPair) -> arb:
    """Return the largest loss; the largest loss of one run must be finite."""
    with ctx.workprec(_BITS):
        losses = _MOST if pair.base.known.to_width is None else _QUICK  # engines take longer
        low = _pieces(pair, _DEPTH, losses, above=False).largest()
        high = _pieces(pair, _DEPTH, losses).largest()
        return pair.base.max_loss() + low.log().union(high.log())


@lru_cache(maxsize=64)
def _largest_finite(pair: TunedPair) -> arb:
    """Return an upper bound of the largest finite loss if there are infinite ones, or +∞."""
    with ctx.workprec(_BITS):
        listed = _listed(pair.base)
        if not (listed and pair.runs.derivative(arb(0), arb(1)) > 0):
            return arb.pos_inf()
        finite = ((p / q).log() for p, q in listed if not (q.is_zero() or p.is_zero()))
        once = reduce(arb.max, finite, arb.neg_inf())
        return once + _pieces(pair, _DEPTH, _MOST).largest().log()


def _divergence(pair: TunedPair, order: arb) -> arb:
    """Enclose the Rényi divergence of an order; see the module and `TunedPair.renyi`."""
    base, runs = pair.base, pair.runs
    one, never = base.renyi(order), runs.never()
    if order == 1:
        low = (1 - never) * one
        order, one = arb(2), base.renyi(arb(2))  # D_a grows with a
    else:
        low = (never + (1 - never) * ((order - 1) * one).exp()).log() / (order - 1)
    if runs.shape == "fixed":  # releasing all runs has at least this divergence
        return low.union(int(float(runs.mean)) * one)
    mean, most = runs.derivative(arb(1), arb(0)), arb(0)
    if runs.shape != "poisson":
        assert isinstance(runs.shape, ExactReal)
        bounds = []
        for a in _ORDERS:
            second = base.renyi(arb(a)).max(base.reverse().renyi(arb(a)))
            bounds.append(((1 - 1 / arb(a)) * second - runs.gamma.log() / a).upper())
        most = (1 + runs.shape.ball()) * min(bounds)
    high = arb.pos_inf()
    for a in (order, *(order + arb(more) for more in _ORDERS)):  # larger orders bound it too
        one, less = base.renyi(a), a - 1
        if runs.shape == "poisson":
            near = ExactReal.of_rational(fraction((1 / less).log1p().lower()))
            most = mean * base.hockey_stick(near).max(base.reverse().hockey_stick(near))
        high = high.min((one + most + mean.log() / less).upper())
    return low.union(high)

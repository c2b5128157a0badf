"""Noisy answers restricted to a range, by resampling, clipping or wrapping.

The noise X is symmetric and log-concave, with density or mass function f. The true answer a is in
[l, u], of width w = u − l, and the answers of neighbours differ by at most d ≤ w. For a < b the
ratio f(x − a)/f(x − b) decreases in x, so the best event for a against b is a half-line {x < t},
and the best event for b against a is {x > t}. Reflection of the range exchanges the two, so it
suffices to consider one order of each two answers.

**Resampling.** X is drawn until a + X is in [l, u]. The law at a has density f(x − a)/Z(a) on
[l, u], where Z(a) = P(l ≤ a + X ≤ u). *It is not a post-processing of a + X*, because the
probability of acceptance depends on a. Let F_a(t) = P(l ≤ a + X < t)/Z(a). Then

    H(ε) = sup over a ≤ u − d and t of F_a(t) − e^ε F_{a+d}(t).

*Proof.* For b > a the ratio of the laws at a and b decreases in x, because normalisation only
multiplies it by Z(b)/Z(a). Hence F_b(t) decreases in b for every t, and the largest b is worst. If
a + d > u, the largest b is u; since F_a decreases in a, a = u − d is then at least as bad. In both
cases the worst answers differ by d. ∎ The worst a depends on ε: Z(a) is smallest at the ends, which
matters for large ε; in the middle fewer draws are rejected. For real noise the supremum over a is
enclosed by branch and bound. Let g(a, t) = F_a(t) − e^ε F_{a+d}(t), with t where the loss is ε.
This t is optimal for a, so by the envelope theorem the derivative of sup_t g in a is ∂g/∂a.

The largest loss of *Laplace* noise is at x = l with a = l. For scale 1 it is
d + ln(Z(a + d)/Z(a)), which decreases in a, because Z is log-concave, and increases in d (Holohan,
Antonatos, Braghin and Mac Aonghusa 2020, "The bounded Laplace mechanism in differential privacy").
The largest loss of *Gaussian* noise is at x = l with a = u − d. For σ = 1 it is
d(2(a − l) + d)/2 + ln(Z(a + d)/Z(a)). Its derivative in a is
d + (E_{a+d} − a − d) − (E_a − a) = E_{a+d} − E_a ≥ 0, where E_a is the mean of the law at a.

**Clipping** moves a + X to the nearer end of the range. It is a post-processing. Without clipping
the best event is {x < a + τ}, the set {L > ε}. With clipping t must be in [l, u], or the event is
trivial. As a function of τ, F(τ) − e^ε F(τ − d) increases up to the best τ and then decreases. For
ε ≥ 0 the best τ is at most d/2, and a = u − d allows the widest range of τ. So the optimum is the
larger one of τ and −(w − d), and the answers u − d and u attain H. Laplace noise has τ ≥ 0 whenever
H > 0, so clipping does not reduce its H.

**Wrapping** reduces an integer sum modulo m = u − l + 1 into the range. The laws at two answers are
shifts of each other on a circle. Half-lines need not be optimal there, so every shift up to the
sensitivity is listed. The shifts s and −s are reflections of each other.

**Rounding** to a grid is also a post-processing. It does not reduce H if the answer can be any real
number, because for some a the best half-line ends between two points of the grid. It is therefore
not offered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, final

from flint import arb, arb_series

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Known, MirroredPair, Pair, Tails, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import OneOf, Real, declared
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.integers import (
    DiscreteLaplace,
    IntegerNoise,
    LogConcaveIntegers,
)
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.wrappers.composed import OneMechanism
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import normal_cdf
from dpassay.accountant.pairs.invert import hull
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import release_reports

_MOST_VALUES = 256
"""Limit on the integers in a range: each pair of neighbours is a table of as many masses."""
_MOST_MASSES = 1 << 18
"""Limit on the masses of all tables together; they take a few seconds."""
_ACCURACY = 44
"""Relative accuracy, in bits, of a supremum over true answers; each bit takes two steps."""
_NARROW = 40
"""Relative accuracy, in bits, below which a ball is evaluated at its two ends instead."""
_PARTS = 16
"""Number of intervals of true answers with which the branch and bound starts."""
_MOST_BOXES = 3_000
"""Limit on the intervals that a branch and bound examines; they take about a second."""


@final
@dataclass(frozen=True, slots=True)
class HalfLine:
    """The event {L > ε} = {x < a + τ} for true answers a (P) and a + d (Q)."""

    a: arb
    tau: arb
    p: arb
    q: arb
    excess: arb
    """p − e^ε q, for the probabilities p and q of the event under P and Q."""
    inside: bool
    """Whether t = a + τ is certainly inside the range."""
    slope: arb
    """The derivative of `excess` in a; t is optimal, so its dependence on a contributes 0."""


@final
@dataclass(frozen=True)
class ResampledPair(MirroredPair):
    """The supremum over a of the profiles of f(x − a)/Z(a) and f(x − a − d)/Z(a + d) on [0, w].

    Reflection of the range maps the pair of a to the reversed pair of w − d − a.
    """

    law_name = "resampled"

    noise: str
    """"laplace" or "gaussian", of scale or standard deviation 1."""
    distance: ExactReal
    width: ExactReal

    @property
    def known(self) -> Known:
        """Return the width of answers, and why divergences are refused."""
        return Known(
            refusal="Divergences of resampled noise are not enclosed. Ask for delta, epsilon or "
            "beta.",
            width=lambda: Fraction(1, 10**10),
        )

    def max_loss(self) -> arb:
        """Return ln(f(−a)Z(a + d)/(f(−a − d)Z(a))); a = 0 for Laplace noise, w − d for Gaussian."""
        d, room = self.distance.ball(), (self.width - self.distance).ball()
        if self.noise == "laplace":
            return d + self._rise(arb(0))
        return d * (2 * room + d) / 2 + self._rise(room)

    def excess(self, epsilon: ExactReal) -> arb:
        """Return the supremum over a, which is 0 for ε beyond the largest loss."""
        if epsilon.ball() > self.max_loss():
            return arb(0)
        return _worst(self, epsilon, ctx.prec)[0].max(arb(0))

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of the pairs that attain the supremum.

        They give its derivative in e^ε.
        """
        if epsilon.sign < 0:
            return self.tails(-epsilon).reflected
        if epsilon.ball() > self.max_loss():
            return Tails(arb(0), arb(1), arb(0), arb(1))
        found = self.at(_worst(self, epsilon, ctx.prec)[1], epsilon)
        d, a, tau, room = self.distance.ball(), found.a, found.tau, self.width.ball() - found.a
        return Tails(
            found.p,
            self._between(tau, room) / self._whole(a),
            found.q,
            self._between(tau - d, room - d) / self._whole(a + d),
        )

    def at(self, a: arb, epsilon: ExactReal) -> HalfLine:
        """Enclose {L > ε} for all true answers in the ball a.

        The largest loss l is that of x = 0, and P(L > ε) − e^ε Q(L > ε) ≤ (1 − e^{ε−l})⁺. Where
        ε = d, and l − d is too small for the balls to decide whether the event is empty, this is
        the bound that counts.
        """
        d, w = self.distance.ball(), self.width.ball()
        first, second = self._whole(a), self._whole(a + d)
        beyond = epsilon.ball() - self._rise(a)
        if self.noise == "gaussian":
            tau, largest = d / 2 - beyond / d, d * (2 * a + d) / 2
        else:
            tau, largest = (d - beyond) / 2, d
            if not beyond <= d:  # the event may be empty
                tau = tau.union(-a)
        if tau < -a or (self.noise == "laplace" and beyond > d):
            return HalfLine(a, -a, arb(0), arb(0), arb(0), inside=False, slope=arb(0))
        inside = tau > -a and tau < w - a
        tau = tau.max(-a).min(w - a)
        p, q = self._between(-a, tau) / first, self._between(-a - d, tau - d) / second
        x = epsilon.ball().exp()
        slope = self._drift(a, p) / first - x * self._drift(a + d, q) / second
        excess = (p - x * q).min((-(beyond - largest).expm1()).max(arb(0)))
        return HalfLine(a, tau, p, q, excess, inside, slope if inside else slope.union(arb(0)))

    def bend(self, a: arb, epsilon: ExactReal) -> arb:
        """Enclose the second derivative in a of sup_t g(a, t), valid if t is inside the range."""
        d, w, x = self.distance.ball(), self.width.ball(), epsilon.ball().exp()
        with ctx.workcap(3):
            at = arb_series([a, 1])
            if self.noise == "gaussian":
                root = arb(2).sqrt()
                before: Callable[[Any], Any] = lambda y: (-y / root).erfc() / 2  # noqa: E731
                after = before
            else:
                before = lambda y: y.exp() / 2  # noqa: E731
                after = lambda y: 1 - (-y).exp() / 2  # noqa: E731
            first = after(w - at) - before(-at)
            second = after(w - d - at) - before(-at - d)
            if not (first[0] > 0 and second[0] > 0):
                return arb("0 +/- inf")
            beyond = epsilon.ball() - (second / first).log()
            tau = d / 2 - beyond / d if self.noise == "gaussian" else (d - beyond) / 2
            p, q = after(tau) - before(-at), before(tau - d) - before(-at - d)
            found: arb = 2 * (p / first - x * (q / second))[2]
            return found

    def _drift(self, a: arb, share: arb) -> arb:
        """Return f(a) − F_a(t) Z′(a), which is Z(a) ∂F_a(t)/∂a + f(t − a), t fixed."""
        start = self._density(a)
        return start - share * (start - self._density(self.width.ball() - a))

    def _rise(self, a: arb) -> arb:
        """Return ln(Z(a + d)/Z(a)), which decreases in a because Z is log-concave."""
        if a.rel_accuracy_bits() < _NARROW and not a.is_exact():
            return self._rise(a.lower()).union(self._rise(a.upper()))
        return (self._whole(a + self.distance.ball()) / self._whole(a)).log()

    def _whole(self, a: arb) -> arb:
        return self._between(-a, self.width.ball() - a)

    def _between(self, low: arb, high: arb) -> arb:
        """Return P(low ≤ X ≤ high) for low ≤ high, using the lower tail to avoid cancellation."""
        cdf = normal_cdf if self.noise == "gaussian" else _laplace_cdf
        if low > 0:
            low, high = -high, -low
        return (_rising(cdf, high) - _rising(cdf, low)).max(arb(0))

    def _density(self, x: arb) -> arb:
        if self.noise == "gaussian":
            return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
        return (-abs(x)).exp() / 2

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the worst pair of answers and the half-line {L > ε}."""
        a = _worst(self, epsilon if epsilon.sign >= 0 else -epsilon, ctx.prec)[1]
        first, end = (float(x.mid()) for x in (a, a + self.at(a, epsilon).tau))
        return (
            f"outcomes at most {end:.6g} noise scales above the lower end, for true answers "
            f"{first:.6g} (P) and {first + float(self.distance):.6g} (Q) scales above it"
        )


def _rising(cdf: Callable[[arb], arb], x: arb) -> arb:
    """Enclose the values of a distribution function on a ball, by the values at its ends."""
    return cdf(x) if x.rel_accuracy_bits() > _NARROW else cdf(x.lower()).union(cdf(x.upper()))


def _laplace_cdf(x: arb) -> arb:
    if x <= 0:
        return x.exp() / 2
    if x >= 0:
        return 1 - (-x).exp() / 2
    return x if x.is_nan() else _rising(_laplace_cdf, x)


@lru_cache(maxsize=256)
def _worst(pair: ResampledPair, epsilon: ExactReal, bits: int) -> tuple[arb, arb]:
    """Enclose the supremum over a in [0, w − d], and all a where it is attained, for ε ≥ 0.

    Branch and bound: intervals of a are bisected. The upper bound of an interval comes from its
    values, or from its midpoint and the derivatives. An interval is dropped if this bound is below
    a known value. It is also dropped if the slope has one sign: then its maximum is at an end,
    which belongs to an adjacent interval too or is an end of the whole range.
    """
    room = (pair.width - pair.distance).ball()
    ends = [(a, pair.at(a, epsilon).excess) for a in (arb(0), room)]
    best = max((value.lower() for _, value in ends), key=float).max(arb(0))
    close = 1 + arb(2) ** -min(_ACCURACY, bits - 12)
    size = Fraction(1, 2 * _PARTS)
    middles = [] if room.is_zero() else [size * (2 * i + 1) for i in range(_PARTS)]
    seen, near = 0, []  # near: intervals whose bound is accurate enough
    while True:
        looked = []
        for share in middles:
            a, radius = ball(share) * room, ball(size) * room
            around = a.union(a - radius).union(a + radius)
            middle, whole = pair.at(a, epsilon), pair.at(around, epsilon)
            best, slope = best.max(middle.excess.lower()), whole.slope
            tops = [middle.excess + radius * abs(slope), whole.excess, arb(1)]
            if whole.inside and (bend := pair.bend(around, epsilon)).is_finite():
                near_by = middle.slope + arb(0, 1) * radius * bend
                slope = near_by if near_by.rad() < slope.rad() or not slope.is_finite() else slope
                curved = radius**2 / 2 * bend.max(arb(0))
                tops.append(middle.excess + radius * abs(middle.slope) + curved)
            top = min((t.upper() for t in tops if t.is_finite()), key=float)
            if not (slope > 0 or slope < 0):
                looked.append((share, around, top.max(arb(0))))
        seen += len(middles)
        kept = [row for row in looked if not row[2] < best]
        near += [row for row in kept if row[2] <= best * close]
        kept = [row for row in kept if not row[2] <= best * close]
        if not kept or seen > _MOST_BOXES:
            break
        size /= 2
        middles = [share + side * size for share, *_ in kept for side in (-1, 1)]
    places = [(around, top) for _, around, top in near + kept if not top < best]
    places += [(a, value.upper()) for a, value in ends if not value.upper() < best]
    found, most = places[0]
    for place, top in places[1:]:
        found, most = found.union(place), most.max(top)
    return best.union(most.max(best)), found


@final
@dataclass(frozen=True)
class ClippedGaussianPair(MirroredPair):
    """The supremum over a of the profiles of N(a, 1) and N(a + d, 1), both clipped to [0, w].

    For ε ≥ 0 the answers w − d and w attain it. For ε < 0 the pair is reversed, by reflection.
    """

    law_name = "clipped-gaussian"

    distance: ExactReal
    width: ExactReal

    @property
    def known(self) -> Known:
        """Return why divergences are refused."""
        return Known(
            refusal="Divergences of clipped noise are not enclosed: ask for those of the noise, "
            "which are no smaller."
        )

    def max_loss(self) -> arb:
        """Return ln(Φ(d − w)/Φ(−w))."""
        d, w = self.distance.ball(), self.width.ball()
        return (normal_cdf(d - w) / normal_cdf(-w)).log()

    def excess(self, epsilon: ExactReal) -> arb:
        """Return Φ(τ) − e^ε Φ(τ − d), or 0 for ε beyond the largest loss."""
        tails = self.tails(epsilon)
        return (tails.p_above - epsilon.ball().exp() * tails.q_above).max(arb(0))

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses on both sides of τ = max(d/2 − ε/d, d − w).

        None is above the largest loss.
        """
        if epsilon.sign < 0:
            return self.tails(-epsilon).reflected
        beyond = epsilon.ball() - self.max_loss()
        nothing = Tails(arb(0), arb(1), arb(0), arb(1))
        if beyond > 0:
            return nothing
        d, w = self.distance.ball(), self.width.ball()
        end = (d / 2 - epsilon.ball() / d).max(d - w)  # τ
        found = Tails(normal_cdf(end), normal_cdf(-end), normal_cdf(end - d), normal_cdf(d - end))
        return found if beyond < 0 else hull(found, nothing)


@declared
class Bounded(Mechanism, FiniteLaws):
    """Release an answer in [lower, upper] plus noise, restricted to the same range.

    Parameters
    ----------
    mechanism
        The noise and the sensitivity: `Laplace` or `Gaussian` for a single number, or an integer
        mechanism (`DiscreteLaplace`, `DiscreteGaussian`, `Skellam`, `IntegerNoise`).
    lower, upper
        The range, lower < upper; both are integers for integer noise. True answers must lie in it.
    how
        "resample" draws noise until the sum is in the range. "clip" moves the sum to the nearer end
        of the range. "wrap", for integer noise only, takes the sum modulo upper − lower + 1.

    Notes
    -----
    The profile is the supremum over all neighbours in the range. Clipping and wrapping are
    post-processing. Resampling is not: resampled Laplace noise of sensitivity 1 and scale 1 is not
    1-DP. Proofs are in `dpassay.accountant.mechanisms.wrappers.bounded`.
    """

    example = "Bounded(mechanism=Laplace(scale=2), lower=0, upper=10, how='resample')"
    no_variance = (
        "The error of Bounded depends on the true answer, and the release is biased. Simulate it "
        "with outputs."
    )

    mechanism: OneMechanism = OneMechanism()
    lower: Real = Real()
    upper: Real = Real()
    how: OneOf = OneOf("resample", "clip", "wrap")

    def __post_init__(self) -> None:
        noise = self.mechanism
        if not isinstance(noise, (Laplace, Gaussian, LogConcaveIntegers, IntegerNoise)):
            raise NotApplicableError(
                f"Bounded knows Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian, Skellam and "
                f"IntegerNoise, not {noise!r}. Name one of these."
            )
        if self.upper <= self.lower:
            raise expected("upper", self.upper, f"> lower={self.lower}")
        if isinstance(noise, (Laplace, Gaussian)):
            if self.how == "wrap":
                raise InvalidInputError(
                    "Expected integer noise with how='wrap', not real noise. Write "
                    "DiscreteLaplace or DiscreteGaussian."
                )
            return
        for name in ("lower", "upper"):
            if (end := getattr(self, name).rational) is None or end.denominator != 1:
                raise expected(name, getattr(self, name), "to be an integer", "The noise is.")
        if self._size > _MOST_VALUES:
            raise expected(
                "upper",
                self.upper,
                f"< lower + {_MOST_VALUES}",
                "Every two neighbours in the range are listed. A clipped or wrapped release is at "
                f"least as private as {noise!r}: ask for that.",
            )
        if len(self._indices) * self._size > _MOST_MASSES:
            raise expected("upper", self.upper, "nearer to lower", "There are too many neighbours.")
        if isinstance(noise, IntegerNoise) and self.how == "resample":
            for answer in range(self._size):
                if not any(self._kept(noise, answer)):
                    raise InvalidInputError(
                        f"Expected noise that reaches the range from every answer in it: from "
                        f"{math.floor(self.lower) + answer} it never does. Clip it instead."
                    )

    @property
    def _width(self) -> ExactReal:
        return self.upper - self.lower

    @property
    def _size(self) -> int:
        return math.floor(self._width) + 1

    def __hash__(self) -> int:
        """Return the hash of the arguments."""
        return hash((self.mechanism, self.lower, self.upper, self.how))

    @property
    def only_alone(self) -> str:
        """Why resampled real noise cannot be composed, or an empty string for other noise."""
        if self.how == "resample" and isinstance(self.mechanism, (Laplace, Gaussian)):
            return (
                "Every loss of it is a search over true answers, too slow for sums. Compose "
                "Guaranteed(epsilon=...) of its largest loss, epsilon at delta = 0, or "
                "resampled DiscreteLaplace on a grid."
            )
        return ""

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return all neighbours in the range, or for real noise the supremum of their profiles."""
        noise = self.mechanism
        if isinstance(noise, (Laplace, Gaussian)):
            return WorstCase.symmetric(self._real(noise), _REASONS[self.how])
        pairs = tuple(FinitePair(self, index) for index in self._indices)
        return WorstCase(pairs, pairs, _REASONS["wrap" if self.how == "wrap" else "integers"])

    def _real(self, noise: Laplace | Gaussian) -> Pair:
        if isinstance(noise, Laplace):
            if self.how == "clip" and noise.l1_sensitivity <= self._width:
                (pair,) = noise.worst_case(None).remove
                return pair
            name, unit, distance = "laplace", noise.scale, noise.l1_sensitivity
        else:
            name, unit, distance = "gaussian", noise.standard_deviation, noise.l2_sensitivity
        width, distance = self._width / unit, min(distance, self._width) / unit
        if self.how == "resample":
            return ResampledPair(name, distance, width)
        if name == "laplace":
            (pair,) = Laplace(unit, self._width).worst_case(None).remove
            return pair
        return ClippedGaussianPair(distance, width)

    @property
    def _indices(self) -> list[int]:
        """The indices a·size + b of the pairs of answers lower + a, lower + b that are listed."""
        size, noise = self._size, self.mechanism
        assert isinstance(noise, (LogConcaveIntegers, IntegerNoise))
        farthest = min(noise.sensitivity, size - 1)
        if self.how == "wrap":
            steps = range(1, min(farthest, size // 2) + 1)
            if noise.is_symmetric:
                return list(steps)
            return [a * size + b for s in steps for a, b in ((0, s), (s, 0))]
        if isinstance(noise, LogConcaveIntegers):
            return [a * size + a + farthest for a in range(size - farthest)]
        every = range(size)
        return [a * size + b for a in every for b in every if 0 < abs(a - b) <= farthest]

    every_pair_listed = True

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the integers of the range."""
        start = math.floor(self.lower)
        return range(start, start + self._size)

    def rational_masses(self, index: int) -> tuple[list[Fraction], list[Fraction]] | None:
        """Return P and Q as fractions for `IntegerNoise`, else None."""
        if not isinstance(self.mechanism, IntegerNoise):
            return None
        a, b = divmod(index, self._size)
        return self._table(a), self._table(b)

    def _table(self, answer: int) -> list[Fraction]:
        """Return the law of the release for the answer lower + `answer`, for rational noise."""
        assert isinstance(self.mechanism, IntegerNoise)
        masses = self._kept(self.mechanism, answer)
        whole = sum(masses)
        return [p / whole for p in masses]

    def _kept(self, noise: IntegerNoise, answer: int) -> list[Fraction]:
        """Return the probability of each integer in the range, before normalisation."""
        size = self._size
        masses = [Fraction(0)] * size
        for z, p in enumerate(noise.probabilities, start=noise.lowest):
            place = answer + z
            if self.how == "resample" and not 0 <= place < size:
                continue
            masses[place % size if self.how == "wrap" else min(max(place, 0), size - 1)] += p
        return masses

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the laws P and Q of the release."""
        if (exact := self.rational_masses(index)) is not None:
            return [ball(p) for p in exact[0]], [ball(q) for q in exact[1]]
        a, b = divmod(index, self._size)
        return self._law(a), self._law(b)

    def _law(self, answer: int) -> list[arb]:
        """Return the law of the release for the answer lower + `answer`, for log-concave noise."""
        size = self._size
        points, tails = _listed(self, ctx.prec)
        if self.how == "wrap":
            return [points[(z - answer) % size] for z in range(size)]
        found = [points[abs(z - answer)] for z in range(size)]
        if self.how == "clip":
            found[0], found[-1] = tails[answer], tails[size - 1 - answer]
            return found
        whole = sum(found, start=arb(0))
        return [p / whole for p in found]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return the losses known as exact numbers: all for clipped discrete Laplace noise."""
        noise, size = self.mechanism, self._size
        a, b = divmod(index, size)
        if self.how == "clip" and isinstance(noise, DiscreteLaplace):
            return [
                ExactReal.of_rational(abs(z - b) - abs(z - a)) / noise.scale for z in range(size)
            ]
        return super().exact_losses(index)

    def is_mirrored(self, index: int) -> bool:
        """Whether reflection of the range exchanges the two answers."""
        return self.mechanism.is_symmetric and sum(divmod(index, self._size)) == self._size - 1

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` releases if the true answer is the middle of the range."""
        middle = self.lower + self._width / ExactReal.of_rational(2)
        real = isinstance(self.mechanism, (Laplace, Gaussian))
        return self.outputs(float(middle) if real else math.floor(middle), size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` releases of every entry of an array of integers in the range, exactly."""
        if isinstance(self.mechanism, (Laplace, Gaussian)):
            raise NotApplicableError(
                "Bounded releases integers only: write DiscreteLaplace or DiscreteGaussian on a "
                "grid. `outputs` simulates real noise."
            )
        start = math.floor(self.lower)

        def draw(entry: int, count: int) -> Array:
            return self.outputs(entry + start, count, rng=rng)

        truth = np.asarray(value) - start
        return release_reports(draw, truth, times, inputs=self._size)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return all listed pairs for integer noise, else pairs at the ends and in the middle."""
        if not isinstance(self.mechanism, (Laplace, Gaussian)):
            start = math.floor(self.lower)
            found = (divmod(index, self._size) for index in self._indices)
            return [(start + a, start + b) for a, b in found]
        low, high = float(self.lower), float(self.upper)
        shift = min(float(self.mechanism.worst_shift()), high - low)
        room = high - low - shift
        starts = [low, low + room / 2, low + room]
        pairs = [(a, a + shift) for a in starts]
        return [way for a, b in dict.fromkeys(pairs) for way in ((a, b), (b, a))]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw `size` releases of an answer: exactly for integer noise, else in floats."""
        if not isinstance(self.mechanism, (Laplace, Gaussian)):
            start = math.floor(self.lower)
            place = int(answer) - start

            def cumulative() -> list[arb]:
                return list(accumulate(self.masses(place * self._size)[0]))[:-1]

            drawn: Array = start + sampling.indices_by_inversion(cumulative, size, rng=rng)
            return drawn
        if not isinstance(rng, np.random.Generator):
            raise NotApplicableError("Real noise is only simulated: give a generator of NumPy.")
        low, high, noise = float(self.lower), float(self.upper), self.mechanism
        if self.how == "clip":
            clipped: Array = np.clip(answer + noise.sample(size, rng=rng), low, high)
            return clipped
        found = np.empty(0)
        while len(found) < size:
            more = answer + noise.sample(size + 16, rng=rng)
            found = np.concatenate([found, more[(low <= more) & (more <= high)]])
        return found[:size]


_REASONS = {
    "resample": "The ratio of two laws falls in x, so the best event is a half-line, and the "
    "farthest neighbour is worst; the largest profile over all true answers is enclosed.",
    "clip": "The best event is a half-line, and the true answers at one end leave most room for "
    "it: u - sensitivity and u attain the largest profile.",
    "integers": "All neighbours at the largest distance are listed; of log-concave noise the "
    "others are no worse.",
    "wrap": "The laws of two answers are shifts of each other on a circle: every shift is listed.",
}


@lru_cache(maxsize=16)
def _listed(bounded: Bounded, bits: int) -> tuple[list[arb], list[arb]]:
    """Return P(Z = z) and P(Z ≥ z) for z = 0, …, size − 1.

    If the release is wrapped, return P(Z ≡ z mod size) and an empty list.
    """
    noise, size = bounded.mechanism, bounded._size
    assert isinstance(noise, LogConcaveIntegers)
    with ctx.workprec(bits + 64):
        tails = [noise.at_most(-z) for z in range(size + 1)]
        points = [tails[z] - tails[z + 1] for z in range(size)]
        points[0] = tails[0] - tails[1]
        if bounded.how != "wrap":
            return points, tails[:size]
        turns = 1
        while not noise.at_most(-turns * size) < points[-1] * arb(2) ** -bits:
            turns += 1
        found = []
        for z in range(size):
            total = points[z]
            for k in range(1, turns + 1):
                for place in (k * size + z, k * size - z):
                    total += noise.at_most(-place) - noise.at_most(-place - 1)
            found.append(total + arb(0).union(2 * noise.at_most(-turns * size)))
        return found, []

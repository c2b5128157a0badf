"""Float estimates of profiles and trade-off functions, in about a millisecond, without proof.

No verdict, certificate or calibration depends on a number from here; those use
`dpassay.accountant.questions.profile`. Every function takes either a number, in any notation, and
returns an `Estimate`, or an array of numbers, and returns floats of the same shape.

Compositions of subsampled Gaussian releases use
`dpassay.accountant.composition.fourier.estimates`. With L the privacy loss and M(z) = E_P[e^{zL}],

    δ(ε) = (1/2πi) ∫ M(z) e^{−zε} / (z(z + 1)) dz,   Re z = c > 0,

is computed by the trapezoidal rule on the line through the saddle point of the integrand. The error
of the rule decreases exponentially with the number of nodes and is relative to the integral, so
digits are kept at any δ. The cost does not depend on the number of releases. Other lines give 1 − δ
and δ − 1 + e^ε, and the kernels 1/z and 1/(z + 1) give the tails of L under P and Q; the smaller
quantity is always the one computed. Inverses are roots of log-odds, found by Newton's method in a
bracket.

*Accuracy.* The rules are chosen for errors of e^−34 ≈ 1e-15. Compared with enclosures, logarithms
of δ and of the tails have a relative error of about 1e-13, and ε has one of about 1e-12.

Closed forms (Gaussian, Laplace, finite laws) are evaluated for a whole array at once, with an error
of 1e-12 in ln δ and ε: 10⁵ values of ε take 0.02 s.

If floats lose digits to cancellation (few releases, or a part in which one rare loss matters), and
for all other mechanisms, the estimate is the midpoint of a quick enclosure, of relative width 1e-6
or what is reached; `Estimate.error` is its accuracy. If less than three digits are known,
UndecidedError is raised and carries the enclosure.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, final

from flint import arb

from dpassay.accountant.composition.choose import smooth
from dpassay.accountant.composition.fourier.engine import curve
from dpassay.accountant.composition.fourier.estimates import FloatCurve, Runs, Share, log_of_rest
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.arrays import ArrayLike, NDArray, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import InvalidInputError, UndecidedError, expected
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, decimal_context
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.questions import guarantees, profile, tradeoff
from dpassay.accountant.questions.profile import enclosed, reached, usual

if TYPE_CHECKING:
    from dpassay.accountant.reference import Reference

    Floats: TypeAlias = NDArray[np.float64]
    Estimates: TypeAlias = "Estimate | Floats"
    Points: TypeAlias = ArrayLike | Number


# --- Closed forms in floats, for arrays: Gaussian, Laplace and finite pairs. Nothing is proved ----
# *Accuracy.* ln δ, ε and the logarithms of tails and powers have an error of at most 1e-12,
# relative if they exceed 1. If cancellation or a jump costs more digits, the value is NaN, and an
# enclosure is computed instead.
#
# *Gaussian.* With x = ε/μ − μ/2 and R(x) = e^{x²/2} Φ(−x), H(ε) = e^{−x²/2} (R(x) − R(x + μ)).
# This form keeps its digits for large x; R(x) is half of scipy's erfcx at x/√2.

_ALLOWED = 2.5e-13
"""Largest accepted error of one logarithm; a few of them are added up."""
_UNIT = 2.0**-52
_MOST_STEPS = 100
"""Largest number of Newton steps; the method is monotone here, and quadratic at the end."""
_MOST_OUTCOMES = 64
"""Largest number of outcomes for which a whole array is evaluated at once; more need too much
memory."""


class Forms:
    """Float functions of one pair; `fourier.estimates.FloatCurve` defines them."""

    delta: Callable[[Floats], Share]
    epsilon: Callable[[Floats], Floats]
    power: Callable[[Floats], Share]
    tail_of_p: Callable[[Floats], Share]


def forms(pair: Pair) -> Forms | None:
    """Return the closed forms of a pair, or None if there are none."""
    with ctx.workprec(START_PRECISION):
        if isinstance(pair, GaussianPair):
            return _Gaussian(_float(pair.mu()))
        if isinstance(pair, LaplacePair):
            return _Laplace(_float(pair.distance.ball()))
        if isinstance(pair, FinitePair):
            outcomes = pair.masses()
            if len(outcomes) <= _MOST_OUTCOMES:
                return _Finite(outcomes)
    return None


def _float(value: arb) -> float:
    return float(value.mid())


def _known(value: Floats, error: Floats) -> Floats:
    """Return the values, with NaN for those whose error is too large."""
    return np.where(error <= _ALLOWED * np.maximum(1.0, np.abs(value)), value, math.nan)


@final
class _Gaussian(Forms):
    """N(μ, 1) against N(0, 1)."""

    def __init__(self, mu: float) -> None:
        self._mu = mu

    def delta(self, epsilon: Floats) -> Share:
        """Return H(ε), by R for x > 0 and by normal tails for x ≤ 0."""
        far = epsilon > 0.5 * self._mu**2
        if far.all():
            found = self._far(epsilon)
            return Share(found[0], slope=found[1])
        log, slope = np.empty_like(epsilon), np.empty_like(epsilon)
        for side, ask in ((far, self._far), (~far, self._near)):
            if side.any():
                log[side], slope[side] = ask(epsilon[side])
        return Share(log, slope=slope)

    def _far(self, epsilon: Floats) -> tuple[Floats, Floats]:
        from scipy.special import erfcx  # slow to import

        root, cut, half = math.sqrt(0.5), epsilon / self._mu, 0.5 * self._mu
        x = cut - half
        one, other = erfcx(x * root), erfcx((cut + half) * root)
        less = one - other
        log = np.log(0.5 * less) - 0.5 * x * x
        error = _UNIT * (4 * (one + other) / less + x * (cut + half))
        return _known(log, error), -other / less

    def _near(self, epsilon: Floats) -> tuple[Floats, Floats]:
        from scipy.special import log_ndtr

        cut, half = epsilon / self._mu, 0.5 * self._mu
        x = cut - half
        first, second = log_ndtr(-x), epsilon + log_ndtr(-cut - half)
        rest = np.logaddexp(log_ndtr(x), second)
        log = np.where(rest < -1, np.log1p(-np.exp(rest)), first + log_of_rest(second - first))
        error = _UNIT * (8 * np.exp(first - log) + np.abs(x) * (np.abs(cut) + half))
        return _known(log, error), -np.exp(second - log)

    def epsilon(self, log_delta: Floats) -> Floats:
        """Return ε by Newton's method from the right; as ln H is concave, it is monotone."""
        known = np.clip(log_delta, -1e300, -1e-300)
        at = self._mu**2 / 2 + self._mu * np.sqrt(-2 * known)
        for _ in range(_MOST_STEPS):
            found = self.delta(at)
            assert found.slope is not None
            move = (known - found.log) / found.slope
            at = at + move
            if not (np.abs(move) > 1e-14 * np.maximum(np.abs(at), self._mu)).any():
                break
        ends = np.where(log_delta == 0, -math.inf, math.inf)
        return np.where((log_delta == 0) | (log_delta == -math.inf), ends, at)

    def power(self, alpha: Floats) -> Share:
        """Return Φ(Φ⁻¹(α) + μ)."""
        from scipy.special import log_ndtr, ndtri

        at = ndtri(alpha) + self._mu
        return Share(log_ndtr(at), log_ndtr(-at))

    def tail_of_p(self, loss: Floats) -> Share:
        """Return Φ(μ/2 − l/μ)."""
        from scipy.special import log_ndtr

        at = 0.5 * self._mu - loss / self._mu
        return Share(log_ndtr(at), log_ndtr(-at))


@final
class _Laplace(Forms):
    """Lap(t, 1) against Lap(0, 1)."""

    def __init__(self, distance: float) -> None:
        self._t = distance

    def delta(self, epsilon: Floats) -> Share:
        """Return H(ε): 1 − e^ε for ε < −t, 1 − e^{(ε−t)/2} for −t ≤ ε < t, and 0 for ε ≥ t."""
        t = self._t
        rest = np.minimum(np.where(epsilon >= -t, 0.5 * (epsilon - t), epsilon), 0.0)
        log = log_of_rest(rest)
        share = np.where(epsilon >= -t, 0.5, 1.0)
        slope = np.where(rest < 0, -share * np.exp(rest - log), -math.inf)
        return Share(self._sharp(log, np.abs(epsilon - t)), slope=slope)

    def epsilon(self, log_delta: Floats) -> Floats:
        """Return the larger of t + 2 ln(1 − δ) and ln(1 − δ)."""
        rest = log_of_rest(log_delta)
        return np.maximum(self._t + 2 * rest, rest)

    def power(self, alpha: Floats) -> Share:
        """Return the power: e^t α, 1 − e^{−t}/(4α) or 1 − e^{−t}(1 − α), by increasing α."""
        t, low = self._t, 0.5 * math.exp(-self._t)
        middle = -t - np.log(4 * np.clip(alpha, low, 0.5))
        rest = np.where(alpha <= 0.5, middle, np.log1p(-alpha) - t)
        steep = t + np.log(np.minimum(alpha, low))
        log = np.where(alpha < low, steep, log_of_rest(rest))
        return Share(log, np.where(alpha < low, np.log1p(-np.exp(steep)), rest))

    def tail_of_p(self, loss: Floats) -> Share:
        """Return P(L > l): 1 − e^{(l−t)/2}/2 between the atoms of L at ±t."""
        t = self._t
        rest = 0.5 * (np.clip(loss, -t, t) - t) - math.log(2)
        log = np.where(loss >= t, -math.inf, np.where(loss < -t, 0.0, log_of_rest(rest)))
        complement = np.where(loss >= t, 0.0, np.where(loss < -t, -math.inf, rest))
        edge = np.minimum(np.abs(loss - t), np.abs(loss + t))
        return Share(self._sharp(log, edge), self._sharp(complement, edge))

    def _sharp(self, value: Floats, distance: Floats) -> Floats:
        """Return the values, with NaN so near to a corner that the rounding of t matters."""
        return np.where(distance * _ALLOWED >= self._t * _UNIT, value, math.nan)


@final
class _Finite(Forms):
    """A pair of laws on finitely many outcomes."""

    def __init__(self, outcomes: list[tuple[float, float, float]]) -> None:
        rows = sorted(outcomes, key=lambda row: -row[2])
        self._p, self._q, self._losses = np.array(rows, float).reshape(-1, 3).T
        self._above = [np.append(0.0, np.cumsum(each)) for each in (self._p, self._q)]
        self._below = [np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in (self._p, self._q)]

    def delta(self, epsilon: Floats) -> Share:
        """Return Σ p (1 − e^{ε−L}) over the losses above ε."""
        away = epsilon[:, None] - self._losses
        above = away < 0
        terms = np.where(above, -np.expm1(np.minimum(away, 0.0)) * self._p, 0.0)
        total = terms.sum(axis=1)
        finite = np.where(np.isfinite(self._losses), np.abs(self._losses), 0.0)
        size = np.where(above, (finite + np.abs(epsilon)[:, None]) * self._p, 0.0).sum(axis=1)
        edge = np.abs(away).min(axis=1) < 1e-12 * (1 + np.abs(epsilon))
        log = np.log(total)
        error = _UNIT * len(self._p) * (1 + size / np.where(total > 0, total, 1.0))
        slope = -np.exp(epsilon) * (above * self._q).sum(axis=1) / total
        slope = np.where(edge, math.nan, np.where(total > 0, slope, -math.inf))
        sure = _known(log, error) if self._losses.size else log
        return Share(np.where(edge & (total < 1e-3), math.nan, sure), slope=slope)

    def epsilon(self, log_delta: Floats) -> Floats:
        """Return NaN: the inverse jumps at corners, which need exact arithmetic."""
        return np.full_like(log_delta, math.nan)

    def power(self, alpha: Floats) -> Share:
        """Return the largest power: reject outcomes by decreasing loss, the last one partly."""
        p, q = self._above
        place = np.clip(np.searchsorted(q, alpha, side="right") - 1, 0, len(self._p) - 1)
        mass = self._q[place]
        share = np.where(mass > 0, (alpha - q[place]) / np.where(mass > 0, mass, 1.0), 1.0)
        share = np.clip(share, 0.0, 1.0)
        power = p[place] + share * self._p[place]
        rest = self._below[0][place + 1] + (1 - share) * self._p[place]
        edge = (np.abs(alpha[:, None] - q).min(axis=1) < 1e-12) & (alpha > 0) & (alpha < 1)
        first = np.where((rest < 1e-9) | (power < 1e-9) | edge, math.nan, 0.0)
        return Share(np.log(power) + first, np.log(rest) + first)

    def tail_of_p(self, loss: Floats) -> Share:
        """Return P(L > l) = Σ p over the losses above l."""
        above = loss[:, None] < self._losses
        edge = np.abs(loss[:, None] - self._losses).min(axis=1) < 1e-12 * (1 + np.abs(loss))
        first = np.where(edge, math.nan, 0.0)
        p, rest = (above * self._p).sum(axis=1), (~above * self._p).sum(axis=1)
        return Share(np.log(p) + first, np.log(rest) + first)


QUICK = Fraction(1, 10**6)
"""Relative width of enclosures of compositions whose midpoints are used as estimates."""
CLOSED = Fraction(1, 10**13)
"""The same for closed forms, which are as fast at any width."""
_ERROR = 1e-11
"""Relative error stated for the float engine; comparisons with enclosures show about 1e-12."""
_LEAST_KNOWN = Fraction(1, 1000)
"""Largest relative half width of an enclosure whose midpoint is used as an estimate."""
_ROUNDING = 2.0**-53
"""Relative rounding error of a midpoint as a float."""
_PRECISION = 160
"""Precision in bits of e^log_delta, of which 40 digits are kept."""


@final
class Estimate(float):
    """A float estimate, without proof, with an estimate of its absolute error."""

    error: float
    """Estimated absolute error; for the midpoint of an enclosure, half its width."""

    def __new__(cls, value: float, error: float) -> Estimate:
        """Return a float with an error."""
        found = super().__new__(cls, value)
        found.error = error
        return found

    @staticmethod
    def by_floats(value: float) -> Estimate:
        """Return an estimate with the error of the float engine."""
        return Estimate(value, _ERROR * abs(value) if math.isfinite(value) else 0.0)

    def through(self, function: Callable[[float], float]) -> Estimate:
        """Return a monotone function of the number, with the error at the ends of its range."""
        value = function(float(self))
        ends = [function(float(self) + side * self.error) for side in (-1, 1)]
        return Estimate(value, max((abs(end - value) for end in ends), default=0.0))


class Asked(TypedDict, total=False):
    """Keyword arguments of every estimate."""

    adjacency: Adjacency | str | None
    """As for `dpassay.accountant.questions.profile.delta`."""
    direction: Direction | None
    """As for `dpassay.accountant.questions.profile.delta`."""
    count: ArrayLike
    """Number of runs of the mechanism, 1 by default. An array of integers is broadcast with the
    points. Different counts of one release share almost all of the work."""
    method: str
    """ "auto"; for δ, ε and β also "mpmath", which evaluates the definitions
    (`dpassay.accountant.reference`)."""


def estimate_delta(mechanism: Mechanism, epsilon: Points, **asked: Unpack[Asked]) -> Estimates:
    """Estimate δ(ε); 0 if it is below the smallest float.

    Parameters
    ----------
    mechanism
        Any mechanism.
    epsilon
        A real number or an array of them.
    asked
        `adjacency`, `direction`, `count` and `method`: see `Asked`.
    """
    return _estimates(
        mechanism,
        _read("epsilon", epsilon),
        asked,
        lambda curves, at: np.exp(_log_delta(curves, at)),
        lambda known, at: known.of(profile.delta, _exactly(at)),
        lambda known, at: known.delta(_exactly(at)),
    )


def estimate_log_delta(mechanism: Mechanism, epsilon: Points, **asked: Unpack[Asked]) -> Estimates:
    """Estimate ln δ(ε), also below −1e5; −∞ if δ(ε) = 0. Arguments as for `estimate_delta`."""
    return _estimates(
        mechanism,
        _read("epsilon", epsilon),
        asked,
        _log_delta,
        lambda known, at: known.of(profile.log_delta, _exactly(at)),
    )


def estimate_slope(mechanism: Mechanism, epsilon: Points, **asked: Unpack[Asked]) -> Estimates:
    """Estimate d ln δ/dε = −e^ε Q(L > ε)/δ(ε) for the pair with the largest δ.

    At a kink it is the right derivative; it is −∞ if δ = 0. Arguments as for `estimate_delta`.
    """
    return _estimates(mechanism, _read("epsilon", epsilon), asked, _slope, _Enclosures.slope)


def estimate_epsilon(
    mechanism: Mechanism,
    delta: Points | None = None,
    *,
    log_delta: Points | None = None,
    **asked: Unpack[Asked],
) -> Estimates:
    """Estimate ε(δ) for δ in [0, 1], or given ln δ ≤ 0, which may be below that of any float.

    It is +∞, 0 or the largest loss in the same cases as
    `dpassay.accountant.questions.profile.epsilon`. Other arguments as for `estimate_delta`.
    """
    if (delta is None) == (log_delta is None):
        raise InvalidInputError("Expected either delta or log_delta. Give one of them.")
    known_delta: dict[float, Any] = {}
    if delta is not None:
        points, given = _read("delta", delta, 0.0, 1.0), np.asarray(delta)
        with np.errstate(divide="ignore"):
            logs = np.asarray(np.log(points))
        # as written: ε jumps at the probability of an infinite loss
        written = given if given.dtype.kind in "OU" else points
        known_delta = dict(zip(logs.ravel().tolist(), written.ravel().tolist(), strict=True))
    else:
        logs = _read("log_delta", log_delta, -math.inf, 0.0)

    def at_delta(log: float) -> ExactReal:
        return exact(known_delta[log]) if log in known_delta else _exponential(log)

    return _estimates(
        mechanism,
        logs,
        asked,
        lambda curves, at: np.maximum(0.0, _largest([curve.epsilon(at) for curve in curves])),
        lambda known, at: known.of(profile.epsilon, at_delta(at)).through(
            functools.partial(max, 0.0)
        ),
        lambda known, at: known.epsilon(at_delta(at)),
    )


def estimate_beta(mechanism: Mechanism, alpha: Points, **asked: Unpack[Asked]) -> Estimates:
    """Estimate β(α), the least type II error at type I error α in [0, 1].

    It is P(L ≤ ε) at the ε with Q(L > ε) = α. Other arguments as for `estimate_delta`.
    """
    return _estimates(
        mechanism,
        _read("alpha", alpha, 0.0, 1.0),
        asked,
        lambda curves, at: np.exp(-_largest([-curve.power(at).complement for curve in curves])),
        lambda known, at: known.of(tradeoff.beta, _exactly(at)),
        lambda known, at: known.beta(_exactly(at)),
    )


def estimate_power(mechanism: Mechanism, alpha: Points, **asked: Unpack[Asked]) -> Estimates:
    """Estimate 1 − β(α), the largest true positive rate at the false positive rate α in [0, 1]."""
    return _estimates(
        mechanism,
        _read("alpha", alpha, 0.0, 1.0),
        asked,
        lambda curves, at: np.exp(_largest([curve.power(at).log for curve in curves])),
        lambda known, at: known.of(tradeoff.power, _exactly(at)),
    )


def estimate_log_loss_survival(
    mechanism: Mechanism, loss: Points, **asked: Unpack[Asked]
) -> Estimates:
    """Estimate ln P(L > loss), the logarithm of `guarantees.loss_survival`.

    The direction is REMOVE by default.
    """
    asked.setdefault("direction", Direction.REMOVE)
    return _estimates(
        mechanism,
        _read("loss", loss),
        asked,
        lambda curves, at: _largest([curve.tail_of_p(at).log for curve in curves]),
        lambda known, at: known.of(guarantees.loss_survival, _exactly(at)).through(_log),
    )


def estimate_log_loss_cdf(mechanism: Mechanism, loss: Points, **asked: Unpack[Asked]) -> Estimates:
    """Estimate ln P(L ≤ loss), the logarithm of `guarantees.loss_cdf`.

    The direction is REMOVE by default.
    """
    asked.setdefault("direction", Direction.REMOVE)
    return _estimates(
        mechanism,
        _read("loss", loss),
        asked,
        lambda curves, at: -_largest([-curve.tail_of_p(at).complement for curve in curves]),
        lambda known, at: known.of(guarantees.loss_cdf, _exactly(at)).through(_log),
    )


@final
class _Enclosures:
    """Estimates for one mechanism by midpoints of enclosures, and its float curves."""

    def __init__(
        self,
        mechanism: Mechanism,
        adjacency: Adjacency | str | None = None,
        direction: Direction | None = None,
    ) -> None:
        self.mechanism, self._adjacency, self._direction = mechanism, adjacency, direction

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """The worst pairs."""
        return profile.worst_pairs(self.mechanism, self._adjacency, self._direction)

    @cached_property
    def curves(self) -> list[FloatCurve]:
        """The float curves of the worst pairs, or [] if some pair has none."""
        products = [product for product in map(smooth, self.pairs) if product is not None]
        return [curve(each) for each in products] if len(products) == len(self.pairs) else []

    @cached_property
    def _width(self) -> Fraction:
        return QUICK if usual(self.pairs) > CLOSED else CLOSED

    def runs(self, count: int) -> _Enclosures:
        """Return the estimates for `count` runs."""
        return _Enclosures(Composed(self.mechanism, count), self._adjacency, self._direction)

    def forms(self, counts: NDArray[np.int64], of: int = 1) -> Sequence[Forms | Runs]:
        """Return functions of arrays for numbers of runs of which this is `of`, or [].

        Closed forms are of this number only.
        """
        found: list[Forms | Runs | None] = [each.runs(counts, of) for each in self.curves]
        if not found and (counts == of).all():
            found = [forms(each) for each in self.pairs]
        return [] if None in found else [each for each in found if each is not None]

    def of(self, question: Callable[..., Interval], at: ExactReal) -> Estimate:
        """Return the midpoint of the enclosure that a question gives, or of what it reached."""
        known = {"adjacency": self._adjacency, "direction": self._direction}
        try:
            found = question(self.mechanism, at, relative_width=self._width, **known)
        except UndecidedError as refusal:
            bounds = reached(refusal)
            if bounds is None:
                raise
            found = bounds
        return _middle(found)

    def slope(self, epsilon: float) -> Estimate:
        """Return d ln δ/dε for the pair with the largest δ."""
        eps = _exactly(epsilon)

        def ratio(asked: Sequence[Pair]) -> arb:
            worst = max(asked, key=lambda pair: float(pair.hockey_stick(eps).mid()))
            value = worst.hockey_stick(eps)
            if value.is_zero():
                return arb.neg_inf()
            slope: arb = -eps.ball().exp() * worst.tails(eps).q_above / value
            return slope

        whole = Interval.between(arb.neg_inf(), arb(0))
        return _middle(enclosed(ratio, None, self.pairs, lambda: whole, whole, finest=self._width))


def _middle(found: Interval) -> Estimate:
    """Return the midpoint of an enclosure, or its finite end if the other end is infinite.

    Raises UndecidedError if less than three digits of it are known.
    """
    low, high, width = found.lower, found.upper, found.relative_width
    if float(low) != float(high) and (width is None or width > 2 * _LEAST_KNOWN):
        raise UndecidedError(
            f"No estimate: the number lies in [{low:.6g}, {high:.6g}], and less than three digits "
            "of it are known. Ask for the enclosure: the same question without estimate_.",
            interval=found,
        )
    if low.is_finite() and high.is_finite():
        digits = decimal_context(100, ROUND_HALF_EVEN)  # avoids writing out 1e-1000000000
        value = float(digits.divide(digits.add(low, high), 2))
        half = float(digits.divide(digits.subtract(high, low), 2))
        return Estimate(value, half + _ROUNDING * abs(value))
    value = float(low if low == high or low.is_finite() else high)
    return Estimate(value, 0.0 if low == high else math.inf)


def _estimates(  # noqa: PLR0917  # the last three are one question in three ways
    mechanism: Mechanism,
    points: Floats,
    asked: Asked,
    by_floats: Callable[[Sequence[Any], Any], Any],
    by_enclosures: Callable[[_Enclosures, float], Estimate],
    by_definition: Callable[[Reference, float], float] | None = None,
) -> Estimates:
    """Return an estimate at a point, or floats at an array of points.

    The values come from the float engine if it has them to enough digits, else from enclosures. On
    arrays, closed forms are evaluated for all points at once. Contour integrals are evaluated in
    increasing order of the points, so that neighbours share a line, as different counts do.
    `by_definition` is used for method="mpmath".
    """
    method, count = asked.get("method", "auto"), asked.get("count")
    relation, direction = asked.get("adjacency"), asked.get("direction")
    if method not in ("auto", "mpmath") or (method == "mpmath" and by_definition is None):
        serves = "mpmath, for delta, epsilon and beta" if by_definition is None else "mpmath"
        raise expected("method", method, f"to be auto or {serves}")

    def ask(known: _Enclosures, at: Floats) -> Estimates:
        if method == "mpmath" and by_definition is not None:
            from dpassay.accountant.reference import Reference

            profile.worst_pairs(known.mechanism, relation, direction)  # checks the relation
            exactly = Reference.of(known.mechanism, relation, direction)
            found = [by_definition(exactly, float(each)) for each in at.ravel()]
            return np.reshape(found, at.shape) if at.ndim else Estimate.by_floats(found[0])
        return _estimated(known, at, by_floats, by_enclosures)

    first = _Enclosures(mechanism, relation, direction)
    if count is None:
        return ask(first, points)
    counts = _counts(count)
    if not points.ndim and not counts.ndim:
        return ask(first.runs(int(counts)), points)
    try:
        points, counts = np.broadcast_arrays(points, counts)
    except ValueError:
        shapes = f"to fit the shape {points.shape} of the numbers that are asked about"
        raise expected("count", f"an array of shape {counts.shape}", shapes) from None
    values = np.full(points.shape, math.nan)
    several = counts > 1  # one run may have a closed form
    if method == "auto" and several.any():
        of = int(counts[several].min())
        values[several] = _by_forms(
            first.runs(of).forms(counts[several], of), points[several], by_floats
        )
    for n in np.unique(counts[np.isnan(values)]).tolist():
        missing = np.isnan(values) & (counts == n)
        values[missing] = ask(first.runs(n), points[missing])
    return values


def _by_forms(
    found: Sequence[Forms | Runs],
    points: Floats,
    by_floats: Callable[[Sequence[Any], Any], Any],
) -> Floats:
    """Return the values of functions of arrays at points; NaN where there are none."""
    if not found:
        return np.full(points.shape, math.nan)
    with np.errstate(all="ignore"):
        return np.array(by_floats(found, points), float)


def _estimated(
    known: _Enclosures,
    points: Floats,
    by_floats: Callable[[Sequence[Any], Any], Any],
    by_enclosures: Callable[[_Enclosures, float], Estimate],
) -> Estimates:
    """Return the values for one mechanism, at a point or an array of points."""

    def ask(at: float) -> Estimate:
        if known.curves:
            with contextlib.suppress(UndecidedError, ArithmeticError):
                return Estimate.by_floats(float(by_floats(known.curves, at)))
        return by_enclosures(known, at)

    if points.ndim == 0:
        return ask(float(points))
    flat = points.ravel()
    values = _by_forms(known.forms(np.ones(flat.shape, np.int64)), flat, by_floats)
    missing = np.flatnonzero(np.isnan(values))
    for i in missing[np.argsort(flat[missing], kind="stable")]:
        values[i] = ask(float(flat[i]))
    return values.reshape(points.shape)


def _counts(given: ArrayLike) -> NDArray[np.int64]:
    """Return the numbers of runs; raise InvalidInputError unless all are integers ≥ 1."""
    counts = np.asarray(given)
    if counts.dtype.kind not in "iu" or not (counts >= 1).all() or (counts >> 63).any():
        raise expected("count", given, "to be a whole number in 1 … 2^63 - 1, or an array")
    return counts.astype(np.int64)


def _largest(values: Sequence[Any]) -> Any:
    return functools.reduce(np.maximum, values)


def _log_delta(curves: Sequence[Any], epsilon: Any) -> Any:
    return _largest([curve.delta(epsilon).log for curve in curves])


def _slope(curves: Sequence[Any], epsilon: Any) -> Any:
    found = [curve.delta(epsilon) for curve in curves]
    best = _largest([share.log for share in found])
    slopes = [np.where(share.log == best, share.slope, -math.inf) for share in found]
    return np.where(np.isnan(best), math.nan, _largest(slopes))


def _read(
    name: str, value: Points | None, least: float = -math.inf, largest: float = math.inf
) -> Floats:
    """Return the points as floats; raise InvalidInputError if one is outside [least, largest].

    Without limits all points must be finite.
    """
    given = np.asarray(value)
    if given.dtype.kind in "OU":  # strings, fractions, decimals
        given = np.array([_number(name, entry) for entry in given.ravel().tolist()]).reshape(
            given.shape
        )
    if given.dtype.kind not in "fiu":
        raise expected(name, value, "to be a number, or an array of numbers")
    points = given.astype(np.float64)
    allowed = (points >= least) & (points <= largest)
    if (least, largest) == (-math.inf, math.inf):
        allowed &= np.isfinite(points)
    if not allowed.all():
        wrong = float(points[~allowed].flat[0]) if points.ndim else float(points)
        ends = "finite" if math.isinf(largest) else f"in [{least:g}, {largest:g}]"
        raise expected(name, wrong, ends)
    return points


def _exactly(value: float) -> ExactReal:
    return ExactReal.of_rational(Fraction(value))


def _exponential(log_delta: float) -> ExactReal:
    """Return a rational number that is e^log_delta to 40 digits."""
    if log_delta == -math.inf:
        return ExactReal.of_rational(0)
    with ctx.workprec(_PRECISION):
        return ExactReal.of_rational(Fraction(Interval.of_ball(arb(log_delta).exp(), 40).lower))


def _number(name: str, value: object) -> float:
    """Return a number in any notation as a float."""
    try:
        number = exact(value, name)  # type: ignore[arg-type]  # it refuses what is no number
    except TypeError:
        raise expected(name, value, "to be a number, or an array of numbers") from None
    found = float(number)
    if name == "delta" and found == 0 != number.sign:  # ε at δ = 0 is another number
        raise expected(name, value, "to be 0 or ≥ 5e-324", "Give its logarithm: log_delta.")
    return found


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf

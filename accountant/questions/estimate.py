"""Estimates in floats: profiles of composed releases in about a millisecond. Nothing is proved.

No verdict, certificate or calibration rests on a number from here: they ask
`dpassay.accountant.questions.profile`.
Every function takes one number, in any notation, and returns an `Estimate`, or takes an array of
numbers, and returns floats of the same shape.

For compositions of subsampled Gaussian releases the engine is that of
`dpassay.accountant.composition.fourier.estimates`. With L the loss and M(z) = E_P[e^{zL}],

    δ(ε) = (1/2πi) ∫ M(z) e^{−zε} / (z(z + 1)) dz,   Re z = c > 0,

is summed by the trapezoidal rule on the line through the saddle point of the integrand. The rule's
error falls exponentially with the number of nodes and is relative to the integral, so that digits
survive at any δ; its cost does not depend on the count. Other lines give 1 − δ and δ − 1 + e^ε, the
kernels 1/z and 1/(z + 1) the tails of L under P and Q: whichever is small is summed. Inverses are
roots of the logarithm of the odds, by Newton's method in a bracket.

*Accuracy.* The rules are chosen for e^−34 ≈ 1e-15; logarithms of δ and of the tails have a relative
error of about 1e-13, and ε has one of about 1e-12, as far as comparisons with enclosures tell.

Closed forms (Gaussian, Laplace, finite laws) of arrays are asked at all points at once, with an
error of ln δ and ε of 1e-12 (`dpassay.accountant.questions.float_forms`): 10⁵ ε take 0.02 s.

Where floats lose digits to cancellation (few releases, or a phase in which one rare loss matters),
and for every other mechanism, the middle of a quick enclosure is returned, of relative width 1e-6
or what is reached; `Estimate.error` says how good it is. Where less than three digits are known
there is no estimate: UndecidedError carries the enclosure.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, final

import numpy as np
from flint import arb

from dpassay.accountant.composition.choose import smooth
from dpassay.accountant.composition.fourier.engine import curve
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import InvalidInputError, UndecidedError, expected
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval, decimal_context
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import guarantees, profile, tradeoff
from dpassay.accountant.questions.answer import enclosed, reached, usual
from dpassay.accountant.questions.float_forms import forms

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = "Estimate | NDArray[np.float64]"
    Points: TypeAlias = ArrayLike | Number

QUICK = Fraction(1, 10**6)
"""Relative width of the enclosures of compositions whose middles are estimates."""
CLOSED = Fraction(1, 10**13)
"""The same of closed forms, which are as fast at any width."""
_ERROR = 1e-11
"""Relative error of the float engine, with room: comparisons with enclosures show 1e-12."""
_LEAST_KNOWN = Fraction(1, 1000)
"""Largest half width of an enclosure, relative to its middle, whose middle is an estimate."""
_ROUNDING = 2.0**-53
"""Relative rounding of a middle to a float."""
_PRECISION = 160
"""Bits of e^log_delta, of which 40 digits are kept."""


@final
class Estimate(float):
    """A number without proof, and about how far it is from the true one."""

    error: float
    """An estimate of the absolute error; of the middle of an enclosure, half its width."""

    def __new__(cls, value: float, error: float) -> Estimate:
        """Return a float that carries an error."""
        found = super().__new__(cls, value)
        found.error = error
        return found

    @staticmethod
    def by_floats(value: float) -> Estimate:
        """Return a number of the float engine."""
        return Estimate(value, _ERROR * abs(value) if math.isfinite(value) else 0.0)

    @staticmethod
    def middle(found: Interval) -> Estimate:
        """Return the middle of an enclosure; an end of it where the other one is infinite."""
        low, high = found.lower, found.upper
        if low.is_finite() and high.is_finite():
            digits = decimal_context(100, ROUND_HALF_EVEN)  # 1e-1000000000 is not written out
            value = float(digits.divide(digits.add(low, high), 2))
            half = float(digits.divide(digits.subtract(high, low), 2))
            return Estimate(value, half + _ROUNDING * abs(value))
        value = float(low if low == high or low.is_finite() else high)
        return Estimate(value, 0.0 if low == high else math.inf)

    def through(self, function: Callable[[float], float]) -> Estimate:
        """Return a monotone function of the number; its error from those of both ends."""
        value = function(float(self))
        ends = [function(float(self) + side * self.error) for side in (-1, 1)]
        return Estimate(value, max((abs(end - value) for end in ends), default=0.0))


class Asked(TypedDict, total=False):
    """What every estimate takes, by name."""

    adjacency: Adjacency | str | None
    """As for `dpassay.accountant.questions.profile.delta`."""
    direction: Direction | None
    """As for `dpassay.accountant.questions.profile.delta`."""


def estimate_delta(mechanism: Mechanism, epsilon: Points, **asked: Unpack[Asked]) -> Floats:
    """Estimate δ(ε); 0 where it is below the smallest float.

    Parameters
    ----------
    mechanism
        Any mechanism.
    epsilon
        Real numbers.
    asked
        `adjacency` and `direction`: see `Asked`.
    """
    return _estimates(
        mechanism,
        _read("epsilon", epsilon),
        asked,
        lambda curves, at: np.exp(_log_delta(curves, at)),
        lambda known, at: known.of(profile.delta, _exactly(at)),
    )


def estimate_log_delta(mechanism: Mechanism, epsilon: Points, **asked: Unpack[Asked]) -> Floats:
    """Estimate ln δ(ε), to −1e5 and beyond; −∞ where δ(ε) = 0. Else as for `estimate_delta`."""
    return _estimates(
        mechanism,
        _read("epsilon", epsilon),
        asked,
        _log_delta,
        lambda known, at: known.of(profile.log_delta, _exactly(at)),
    )


def estimate_slope(mechanism: Mechanism, epsilon: Points, **asked: Unpack[Asked]) -> Floats:
    """Estimate d ln δ/dε = −e^ε Q(L > ε)/δ(ε) of the pair with the largest δ.

    At a kink it is the slope to the right, and −∞ where δ = 0. Else as for `estimate_delta`.
    """
    return _estimates(mechanism, _read("epsilon", epsilon), asked, _slope, _Enclosures.slope)


def estimate_epsilon(
    mechanism: Mechanism,
    delta: Points | None = None,
    *,
    log_delta: Points | None = None,
    **asked: Unpack[Asked],
) -> Floats:
    """Estimate ε(δ) for δ in [0, 1], or for ln δ ≤ 0 where δ is below the smallest float.

    +∞, 0 and the largest loss where `dpassay.accountant.questions.profile.epsilon` has them. Else
    as for `estimate_delta`.
    """
    if (delta is None) == (log_delta is None):
        raise InvalidInputError("Expected either delta or log_delta. Give one of them.")
    if delta is not None:
        points = _read("delta", delta, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            logs = np.asarray(np.log(points))
    else:
        logs = _read("log_delta", log_delta, -math.inf, 0.0)
    return _estimates(
        mechanism,
        logs,
        asked,
        lambda curves, at: np.maximum(0.0, _largest([curve.epsilon(at) for curve in curves])),
        lambda known, at: known.of(profile.epsilon, _exponential(at)),
    )


def estimate_beta(mechanism: Mechanism, alpha: Points, **asked: Unpack[Asked]) -> Floats:
    """Estimate β(α), the least type II error at type I error α in [0, 1].

    It is P(L ≤ ε) at the ε with Q(L > ε) = α. Else as for `estimate_delta`.
    """
    return _estimates(
        mechanism,
        _read("alpha", alpha, 0.0, 1.0),
        asked,
        lambda curves, at: np.exp(-_largest([-curve.power(at).complement for curve in curves])),
        lambda known, at: known.of(tradeoff.beta, _exactly(at)),
    )


def estimate_power(mechanism: Mechanism, alpha: Points, **asked: Unpack[Asked]) -> Floats:
    """Estimate 1 − β(α), the largest true positive rate at the false positive rate α."""
    return _estimates(
        mechanism,
        _read("alpha", alpha, 0.0, 1.0),
        asked,
        lambda curves, at: np.exp(_largest([curve.power(at).log for curve in curves])),
        lambda known, at: known.of(tradeoff.power, _exactly(at)),
    )


def estimate_log_loss_survival(
    mechanism: Mechanism, loss: Points, **asked: Unpack[Asked]
) -> Floats:
    """Estimate the logarithm of what `guarantees.loss_survival` encloses.

    Of REMOVE, unless another direction is asked for.
    """
    asked.setdefault("direction", Direction.REMOVE)
    return _estimates(
        mechanism,
        _read("loss", loss),
        asked,
        lambda curves, at: _largest([curve.tail_of_p(at).log for curve in curves]),
        lambda known, at: known.of(guarantees.loss_survival, _exactly(at)).through(_log),
    )


def estimate_log_loss_cdf(mechanism: Mechanism, loss: Points, **asked: Unpack[Asked]) -> Floats:
    """Estimate the logarithm of what `dpassay.accountant.questions.guarantees.loss_cdf` encloses.

    Of REMOVE, unless another direction is asked for.
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
    """The middles of enclosures."""

    def __init__(
        self,
        mechanism: Mechanism,
        adjacency: Adjacency | str | None = None,
        direction: Direction | None = None,
    ) -> None:
        self._mechanism, self._adjacency, self._direction = mechanism, adjacency, direction
        self.pairs = profile.worst_pairs(mechanism, adjacency, direction)
        self._width = QUICK if usual(self.pairs) > CLOSED else CLOSED

    def of(self, question: Callable[..., Interval], at: ExactReal) -> Estimate:
        """Return the middle of the answer of a question."""
        known = {"adjacency": self._adjacency, "direction": self._direction}
        try:
            found = question(self._mechanism, at, relative_width=self._width, **known)
        except UndecidedError as refusal:
            bounds = reached(refusal)
            if bounds is None:
                raise
            found = bounds
        return _middle(found)

    def slope(self, epsilon: float) -> Estimate:
        """Return that of ln δ of the pair with the largest δ."""
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
    """Return the middle of an enclosure; UndecidedError where it is known to less than 3 digits."""
    low, high, width = found.lower, found.upper, found.relative_width
    if float(low) != float(high) and (width is None or width > 2 * _LEAST_KNOWN):
        raise UndecidedError(
            f"No estimate: the number lies in [{low:.6g}, {high:.6g}], and less than three digits "
            "of it are known. Ask for the enclosure: the same question without estimate_.",
            interval=found,
        )
    return Estimate.middle(found)


def _estimates(
    mechanism: Mechanism,
    points: NDArray[np.float64],
    asked: Asked,
    by_floats: Callable[[Sequence[Any], Any], Any],
    by_enclosures: Callable[[_Enclosures, float], Estimate],
) -> Floats:
    """Return the values, of floats where there are any and their digits are not lost.

    Else those of enclosures. A single point has an estimate. Of arrays, closed forms are asked at
    all points at once; contours go through them in order, so that neighbours share a line.
    """
    enclosures = _Enclosures(mechanism, **asked)
    flat = points.ravel()
    values = np.full(flat.shape, math.nan)
    if points.ndim and flat.size:
        closed = [each for each in map(forms, enclosures.pairs) if each is not None]
        if len(closed) == len(enclosures.pairs):
            with np.errstate(all="ignore"):
                values = np.array(by_floats(closed, flat), float)
    known = [product for product in map(smooth, enclosures.pairs) if product is not None]
    curves = list(map(curve, known)) if len(known) == len(enclosures.pairs) else []

    def ask(at: float) -> Estimate:
        if curves:
            with contextlib.suppress(UndecidedError, ArithmeticError):
                return Estimate.by_floats(float(by_floats(curves, at)))
        return by_enclosures(enclosures, at)

    if points.ndim == 0:
        return ask(float(points))
    missing = np.flatnonzero(np.isnan(values))
    for i in missing[np.argsort(flat[missing], kind="stable")]:
        values[i] = ask(float(flat[i]))
    return values.reshape(points.shape)


def _largest(values: Sequence[Any]) -> Any:
    return functools.reduce(np.maximum, values)


def _log_delta(curves: Sequence[Any], epsilon: Any) -> Any:
    return _largest([curve.delta(epsilon).log for curve in curves])


def _slope(curves: Sequence[Any], epsilon: Any) -> Any:
    found = [curve.delta(epsilon) for curve in curves]
    best = _largest([share.log for share in found])
    return _largest([np.where(share.log == best, share.slope, -math.inf) for share in found])


def _read(
    name: str, value: Points | None, least: float = -math.inf, largest: float = math.inf
) -> NDArray[np.float64]:
    """Require numbers between two ends; an end that is infinite is allowed where it is named."""
    given = np.asarray(value)
    if given.dtype.kind in "OU":  # texts, fractions, decimals
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
        return float(exact(value, name))  # type: ignore[arg-type]  # exact refuses what is no number
    except TypeError:
        raise expected(name, value, "to be a number, or an array of numbers") from None


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf

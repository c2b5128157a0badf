"""Estimates in floats: profiles of composed releases in about a millisecond. Nothing is proved.

No verdict, certificate or calibration rests on a number from here: they ask `accountant.profile`.
Every function takes one number, or a numpy array of numbers, and returns floats of the same shape.

For compositions of subsampled Gaussian releases the engine is that of
`accountant.composition.saddle`. With L the loss and M(z) = E_P[e^{zL}],

    δ(ε) = (1/2πi) ∫ M(z) e^{−zε} / (z(z + 1)) dz,   Re z = c > 0,

is summed by the trapezoidal rule on the line through the saddle point of the integrand. The rule's
error falls exponentially with the number of nodes and is relative to the integral, so that digits
survive at any δ; its cost does not depend on the count. Other lines give 1 − δ and δ − 1 + e^ε, the
kernels 1/z and 1/(z + 1) the tails of L under P and Q: whichever is small is summed. Inverses are
roots of the logarithm of the odds, by Newton's method in a bracket.

*Accuracy.* The rules are chosen for e^−34 ≈ 1e-15; logarithms of δ and of the tails have a relative
error of about 1e-13, and ε has one of about 1e-12, as far as comparisons with enclosures tell.

Where floats lose digits to cancellation (few releases, or a phase in which one rare loss matters),
and for every other mechanism, the middle of an enclosure of relative width 1e-12 is returned: in
seconds instead of milliseconds.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict, Unpack, final

import numpy as np
from flint import arb

from accountant import guarantees, profile, tradeoff
from accountant.adjacency import Adjacency, Direction
from accountant.composition.float_curve import FloatCurve
from accountant.composition.saddle_pair import SmoothPair
from accountant.errors import InvalidInputError, NotApplicableError, UndecidedError, expected
from accountant.interval import Interval, enclose
from accountant.mechanism import Mechanism
from accountant.number import ExactReal
from accountant.precision import ctx

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = float | NDArray[np.float64]

WIDTH = Fraction(1, 10**12)
"""Relative width of the enclosures whose middles stand for a mechanism without a float engine."""

_PRECISION = 160


class Asked(TypedDict, total=False):
    """What every estimate takes, by name."""

    adjacency: Adjacency | str | None
    """As for `accountant.profile.delta`."""
    direction: Direction | None
    """As for `accountant.profile.delta`."""
    compiled: bool
    """Run the inner loops compiled by numba (`dpassay[fast]`): faster after the first call."""


def estimate_delta(
    mechanism: Mechanism,
    epsilon: ArrayLike,
    **asked: Unpack[Asked],
) -> Floats:
    """Estimate δ(ε); 0 where it is below the smallest float.

    Parameters
    ----------
    mechanism
        Any mechanism.
    epsilon
        Real numbers.
    asked
        `adjacency`, `direction` and `compiled`: see `Asked`.

    Raises
    ------
    UndecidedError
        Where floats lose the digits, and no enclosure is as narrow.
    NotApplicableError
        If `compiled` and numba is not installed.
    """
    sources = _sources(mechanism, **asked)
    points = _read("epsilon", epsilon)
    return _each(sources, lambda source, at: math.exp(source.log_delta(at)), points)


def estimate_log_delta(
    mechanism: Mechanism,
    epsilon: ArrayLike,
    **asked: Unpack[Asked],
) -> Floats:
    """Estimate ln δ(ε), to −1e5 and beyond; −∞ where δ(ε) = 0. Else as for `estimate_delta`."""
    points = _read("epsilon", epsilon)
    return _each(_sources(mechanism, **asked), lambda source, at: source.log_delta(at), points)


def estimate_slope(
    mechanism: Mechanism,
    epsilon: ArrayLike,
    **asked: Unpack[Asked],
) -> Floats:
    """Estimate d ln δ/dε = −e^ε Q(L > ε)/δ(ε) of the pair with the largest δ.

    At a kink it is the slope to the right, and −∞ where δ = 0. Else as for `estimate_delta`.
    """
    points = _read("epsilon", epsilon)
    return _each(_sources(mechanism, **asked), lambda source, at: source.slope(at), points)


def estimate_epsilon(
    mechanism: Mechanism,
    delta: ArrayLike | None = None,
    *,
    log_delta: ArrayLike | None = None,
    **asked: Unpack[Asked],
) -> Floats:
    """Estimate ε(δ) for δ in [0, 1], or for ln δ ≤ 0 where δ is below the smallest float.

    +∞, −∞ and the largest loss where `accountant.profile.epsilon` has them. Else as for
    `estimate_delta`.
    """
    if (delta is None) == (log_delta is None):
        raise InvalidInputError("Expected either delta or log_delta. Give one of them.")
    if delta is not None:
        points = _read("delta", delta, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            logs = np.asarray(np.log(points))
    else:
        logs = _read("log_delta", log_delta, -math.inf, 0.0)
    return _each(_sources(mechanism, **asked), lambda source, at: source.epsilon(at), logs)


def estimate_beta(
    mechanism: Mechanism,
    alpha: ArrayLike,
    **asked: Unpack[Asked],
) -> Floats:
    """Estimate β(α), the least type II error at type I error α in [0, 1].

    It is P(L ≤ ε) at the ε with Q(L > ε) = α. Else as for `estimate_delta`.
    """
    points = _read("alpha", alpha, 0.0, 1.0)
    return _each(_sources(mechanism, **asked), lambda source, at: source.beta(at), points)


def estimate_power(
    mechanism: Mechanism,
    alpha: ArrayLike,
    **asked: Unpack[Asked],
) -> Floats:
    """Estimate 1 − β(α), the largest true positive rate at the false positive rate α."""
    points = _read("alpha", alpha, 0.0, 1.0)
    return _each(_sources(mechanism, **asked), lambda source, at: source.power(at), points)


def estimate_log_loss_survival(
    mechanism: Mechanism,
    loss: ArrayLike,
    **asked: Unpack[Asked],
) -> Floats:
    """Estimate the logarithm of what `accountant.guarantees.loss_survival` encloses.

    Of REMOVE, unless another direction is asked for.
    """
    asked.setdefault("direction", Direction.REMOVE)
    points = _read("loss", loss)
    return _each(_sources(mechanism, **asked), lambda source, at: source.log_survival(at), points)


def estimate_log_loss_cdf(
    mechanism: Mechanism,
    loss: ArrayLike,
    **asked: Unpack[Asked],
) -> Floats:
    """Estimate the logarithm of what `accountant.guarantees.loss_cdf` encloses.

    Of REMOVE, unless another direction is asked for.
    """
    asked.setdefault("direction", Direction.REMOVE)
    points = _read("loss", loss)
    return _each(_sources(mechanism, **asked), lambda source, at: source.log_cdf(at), points)


class _Source(Protocol):
    """What estimates come from."""

    def log_delta(self, epsilon: float) -> float: ...
    def slope(self, epsilon: float) -> float: ...
    def epsilon(self, log_delta: float) -> float: ...
    def beta(self, alpha: float) -> float: ...
    def power(self, alpha: float) -> float: ...
    def log_survival(self, loss: float) -> float: ...
    def log_cdf(self, loss: float) -> float: ...


def _sources(
    mechanism: Mechanism,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    compiled: bool = False,
) -> tuple[_Source, ...]:
    """Return the float engine if there is one, and enclosures where its digits are lost."""
    pairs = profile.worst_pairs(mechanism, adjacency, direction)
    smooth = [pair for pair in pairs if isinstance(pair, SmoothPair)]
    enclosures = _Enclosures(mechanism, Adjacency.read(adjacency), direction)
    if len(smooth) < len(pairs):
        return (enclosures,)
    try:
        curves = _Curves([FloatCurve(pair, compiled=compiled) for pair in smooth])
    except ImportError as error:
        raise NotApplicableError(
            "Compiled estimates need numba. Install dpassay[fast], or ask with compiled=False."
        ) from error
    return curves, enclosures


@final
class _Curves:
    """The float engine."""

    def __init__(self, curves: Sequence[FloatCurve]) -> None:
        self._curves = curves

    def log_delta(self, epsilon: float) -> float:
        return max(curve.delta(epsilon).log for curve in self._curves)

    def slope(self, epsilon: float) -> float:
        found = [curve.delta(epsilon) for curve in self._curves]
        return max(found, key=lambda share: share.log).slope

    def epsilon(self, log_delta: float) -> float:
        return max(curve.epsilon(log_delta) for curve in self._curves)

    def beta(self, alpha: float) -> float:
        return min(math.exp(curve.power(alpha).complement) for curve in self._curves)

    def power(self, alpha: float) -> float:
        return max(math.exp(curve.power(alpha).log) for curve in self._curves)

    def log_survival(self, loss: float) -> float:
        return max(curve.tail_of_p(loss).log for curve in self._curves)

    def log_cdf(self, loss: float) -> float:
        return min(curve.tail_of_p(loss).complement for curve in self._curves)


@final
class _Enclosures:
    """The middles of enclosures."""

    def __init__(
        self, mechanism: Mechanism, adjacency: Adjacency | None, direction: Direction | None
    ) -> None:
        self._mechanism, self._adjacency, self._direction = mechanism, adjacency, direction

    def _ask(self, question: Callable[..., Interval], at: ExactReal) -> Interval:
        return question(
            self._mechanism,
            at,
            adjacency=self._adjacency,
            direction=self._direction,
            relative_width=WIDTH,
        )

    def log_delta(self, epsilon: float) -> float:
        return _middle(self._ask(profile.log_delta, _exactly(epsilon)))

    def slope(self, epsilon: float) -> float:
        eps = _exactly(epsilon)
        pairs = profile.worst_pairs(self._mechanism, self._adjacency, self._direction)

        def ratio() -> arb:
            best = max(pairs, key=lambda pair: float(pair.hockey_stick(eps).mid()))
            value = best.hockey_stick(eps)
            if value.is_zero():
                return arb.neg_inf()
            return -eps.ball().exp() * best.tails(eps).q_above / value

        return _middle(enclose(ratio, relative_width=WIDTH))

    def epsilon(self, log_delta: float) -> float:
        return _middle(self._ask(profile.epsilon, _exponential(log_delta)))

    def beta(self, alpha: float) -> float:
        return _middle(self._ask(tradeoff.beta, _exactly(alpha)))

    def power(self, alpha: float) -> float:
        return _middle(self._ask(tradeoff.power, _exactly(alpha)))

    def log_survival(self, loss: float) -> float:
        return _log(self._ask(guarantees.loss_survival, _exactly(loss)))

    def log_cdf(self, loss: float) -> float:
        return _log(self._ask(guarantees.loss_cdf, _exactly(loss)))


def _each(
    sources: Sequence[_Source],
    question: Callable[[_Source, float], float],
    points: NDArray[np.float64],
) -> Floats:
    """Return the values, of the first source that has each; a float for a single point."""

    def ask(at: float) -> float:
        for source in sources[:-1]:
            with contextlib.suppress(UndecidedError):
                return question(source, at)
        return question(sources[-1], at)

    values = [ask(float(at)) for at in points.flat]
    return values[0] if points.ndim == 0 else np.array(values, float).reshape(points.shape)


def _read(
    name: str, value: ArrayLike | None, least: float = -math.inf, largest: float = math.inf
) -> NDArray[np.float64]:
    """Require numbers between two ends; an end that is infinite is allowed where it is named."""
    if np.asarray(value).dtype == bool:
        raise expected(name, value, "to be a number, or an array of numbers")
    try:
        points = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise expected(name, value, "to be a number, or an array of numbers") from None
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


def _middle(value: Interval) -> float:
    """Return the middle of an enclosure, as a float."""
    if not value.lower.is_finite() or not value.upper.is_finite():
        return float(value.lower if value.lower == value.upper else value.upper)
    return float((Fraction(value.lower) + Fraction(value.upper)) / 2)


def _log(value: Interval) -> float:
    if not value.upper:
        return -math.inf
    if value.lower <= 0:
        raise UndecidedError("The probability was not told from 0.")
    return float(value.ball().log().mid())

"""Calibration: the least noise with which a mechanism satisfies a privacy guarantee.

The returned noise is certified; an enclosure of the least noise shows how close it is.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, ROUND_UP, Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, final

from flint import arb

from dpassay.accountant import notation
from dpassay.accountant.aliases import translated
from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho, Target
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, only_bounded
from dpassay.accountant.core.validate import exact_list, integer, probability, rational
from dpassay.accountant.errors import (
    DpassayError,
    InvalidInputError,
    NotApplicableError,
    UndecidedError,
    expected,
    no_attribute,
    suggestion,
)
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, Number, floats_in_short
from dpassay.accountant.numbers.interval import (
    COMPOSED_WIDTH,
    MAX_PRECISION,
    Interval,
    decimal_context,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions.accuracy import mean_squared_error
from dpassay.accountant.questions.profile import usual
from dpassay.accountant.questions.threshold import threshold

__all__ = ["Calibration", "EpsilonDelta", "Mu", "Rho", "Target", "calibrate"]


# --- The question and the answer of a calibration -------------------------------------------------


@final
@dataclass(frozen=True, slots=True, repr=False)
class Calibration:
    """The result of a calibration."""

    mechanism: Mechanism
    """One release, with its noise argument rounded to more noise."""
    whole: Mechanism
    """The composition of all releases, subsampled if requested; it satisfies the target."""
    argument: str
    """The name of the noise argument."""
    least: Interval
    """An enclosure of the noise argument with the least noise that satisfies the target."""
    achieved: dict[str, Interval]
    """The guarantee of `whole`, in the quantities of the target, by name."""
    target: Target
    """The guarantee that was requested."""
    reason: str = ""
    """Why this kind of noise was chosen, if the mechanism has two kinds, or why a counter releases
    its measurements."""

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name: str) -> Any:
            """Delegate to the mechanism: `found.release` is `found.mechanism.release`."""
            if name.startswith("_") or name == "mechanism":  # not set yet while being copied
                raise no_attribute(self, name)
            return getattr(self.mechanism, name)

    def __str__(self) -> str:
        """Return the mechanism, the target, the least noise and the achieved guarantee."""
        rows = [("target", str(self.target)), (f"least {self.argument}", str(self.least))]
        rows += [("chosen by", self.reason)] * bool(self.reason)
        rows += [(f"its {name}", str(value)) for name, value in self.achieved.items()]
        width = max(len(name) for name, _ in rows)
        lines = [f"  {name:{width}}  {value}" for name, value in rows]
        return floats_in_short("\n".join([repr(self.mechanism), *lines]))

    def __repr__(self) -> str:
        """Return the mechanism and the target."""
        return floats_in_short(f"<Calibration: {self.mechanism!r} for {self.target}>")

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "mechanism": repr(self.mechanism),
            "whole": repr(self.whole),
            "argument": self.argument,
            "least": self.least.to_json(),
            "achieved": {name: value.to_json() for name, value in self.achieved.items()},
            "target": str(self.target),
            **({"reason": self.reason} if self.reason else {}),
        }


def best(found: Sequence[Calibration]) -> Calibration:
    """Return the calibration with the least mean squared error, with the comparison as reason."""
    errors = [mean_squared_error(each.mechanism) for each in found]
    order = sorted(range(len(found)), key=lambda i: errors[i].upper)
    said = ", ".join(f"{errors[i]} with {found[i].argument}" for i in order)
    first = found[order[0]]
    more = f"; {first.reason}" if first.reason else ""
    return replace(first, reason=f"mean squared error {said}{more}")


def class_of(name: str | type[Mechanism]) -> type[Mechanism]:
    """Return the class of a mechanism, or raise if it has no single noise argument."""
    if isinstance(name, Mechanism) or (isinstance(name, str) and "(" in name):
        outer = str(name).partition("(")[0]
        remedy = f"Calibration finds the noise: give {outer!r}, and its other arguments by name."
        if outer in ("Composed", "PoissonSubsampled"):
            remedy = "Name the inner mechanism, such as 'Gaussian', with count=…, sampling_prob=…."
        remedy += " For the number of releases that fit: dpassay calibrate --find count."
        raise expected("name", name, "to be the name of a mechanism", remedy)
    if isinstance(name, str):
        if name not in DESCRIPTIONS:
            raise InvalidInputError(f"Unknown mechanism {name!r}. {suggestion(name, DESCRIPTIONS)}")
        name = DESCRIPTIONS[name]
    if not isinstance(name, type):
        raise expected("name", name, "to be the name of a mechanism, or its class")
    if not issubclass(name, Mechanism):
        raise InvalidInputError(f"{name.__name__} is not a mechanism; it has no noise.")
    if name.noise_argument is None:
        raise NotApplicableError(
            f"{name.__name__} has no single argument that sets its noise, so there is nothing to "
            "calibrate. For compositions and sampling name the inner mechanism, such as Gaussian, "
            "with count=… and sampling_prob=… (--count, --sampling-prob)."
        )
    return name


def schedule_factors(schedule: Sequence[Number]) -> tuple[ExactReal, ...]:
    """Validate the factors of a schedule; an empty schedule is the single factor 1."""
    factors = exact_list("schedule", schedule) if schedule else (ExactReal.of_rational(1),)
    for index, factor in enumerate(factors):
        if factor.sign <= 0:
            raise expected(f"schedule[{index}]", factor, "> 0")
    return factors


def with_adjacency(name: str, fixed: dict[str, Any], relation: Adjacency | None) -> dict[str, Any]:
    """Add the adjacency to the arguments of a mechanism that has a parameter for it."""
    asked = relation is not None and "adjacency" in notation.argument_names(name)
    return {"adjacency": relation, **fixed} if asked else fixed


def noise_arguments(kind: type[Mechanism], target: Target, argument: str | None) -> list[str]:
    """Return the noise arguments to calibrate: one, or two of which the better is chosen."""
    known = [name for name in (kind.noise_argument, kind.gaussian_noise_argument) if name]
    if argument is not None:
        if argument not in known:
            raise expected("argument", argument, f"in {known}")
        return [argument]
    if isinstance(target, EpsilonDelta) and target.delta.sign == 0:
        return known[:1]
    return known[-1:] if isinstance(target, Mu) else known


CALIBRATION_WIDTHS = tuple(Fraction(1, 10**digits) for digits in (12, 9, 6, 4, 2))
"""Relative widths of the enclosure of the least noise that are tried in turn by default."""
_COARSE = Fraction(1, 10**3)
"""Relative width of a first enclosure, if a narrower one is requested."""
DIGITS = 12
"""Default number of significant digits of the certified noise."""
_MOST_DIGITS = 1000
"""Maximal number of significant digits of the certified noise."""
_SEARCH_PRECISION = 128
"""Bits for values that only steer the search and are converted to floats."""
_MAX_STEPS = 4096
"""Maximal number of doublings or halvings of the noise."""
_STALLED_STEPS = 24
"""If the excess does not change over this number of steps, more noise is considered useless."""
_STALLED = 1e-6
"""Relative change of the excess below which it counts as unchanged."""
_SHARE_OF_WIDTH, _WIDEST = 16, Fraction(1, 16)
"""The excess is evaluated to 1/16 of the requested width of the noise, and to 1/16 at least, so
that its sign is determined."""
_MAX_ULPS = 1000
"""Maximal number of candidates, in units of the last digit, for the certified noise."""
_SUMS = "all measured sums, because the profile of the outputs is known only between two bounds"
"""Reason why a counter is calibrated with its measurements released."""
_VARIANCES = ("parameter", "sigma_star")
"""Noise arguments that scale as the square of the noise."""


def calibrate(
    name: str | type[Mechanism],
    target: Target,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | str | None = None,
    digits: int = DIGITS,
    relative_width: Number | None = None,
    argument: str | None = None,
    count: int = 1,
    sampling_prob: Number = 1,
    schedule: Sequence[Number] = (),
    **fixed: Any,
) -> Calibration:
    """Find the least noise with which a mechanism, or a composition of it, satisfies a guarantee.

    For a counter whose outputs have no exact profile the guarantee is required of all measured sums
    (and thus of the outputs); the returned mechanism then has `released="measurements"`.

    Parameters
    ----------
    name
        The mechanism: its name in the notation, or its class.
    target
        `EpsilonDelta`, `Mu` or `Rho`.
    adjacency
        The neighbouring relation; required if the guarantee depends on it. It is also passed to a
        mechanism that has a parameter of this name.
    direction
        For (ε, δ), the direction to consider; None requires the guarantee in both.
    digits
        Significant digits of the returned noise, at most 1000. It is rounded to more noise and
        certified.
    relative_width
        Relative width of the enclosure of the least noise. None aims at 1e-12 and returns what is
        reached; for more than 12 digits it stands for 10^-digits.
    argument
        The noise argument to find, if the mechanism has one for Laplace and one for Gaussian noise.
        None selects `mu` for a target of μ, and else the one with the smaller mean squared error.
    count
        Number of releases, all with the same noise, that satisfy the guarantee together.
    sampling_prob
        Probability that a record takes part in a release; each release is `PoissonSubsampled`.
    schedule
        Factors f > 0 for releases of unequal noise. Each factor adds a release with f times the
        noise of the returned mechanism (f² times its `parameter` or `sigma_star`; 1/f times its ε
        or μ). The whole schedule is repeated `count` times.
    fixed
        The other arguments of the mechanism.

    Raises
    ------
    InvalidInputError
        If the mechanism or an argument is unknown, or the target is met by every mechanism or by
        none.
    NotApplicableError
        If the mechanism has no single noise argument, or no value of it meets the target.
    UndecidedError
        If the requested width is not reached, or not even two digits can be certified.

    Examples
    --------
    >>> print(calibrate("Laplace", EpsilonDelta(epsilon="0.1")).mechanism)
    Laplace(scale=10)
    """
    if (one := Direction.read(direction)) is not None:
        if not isinstance(target, EpsilonDelta):
            raise expected("direction", one.value, "only with epsilon and delta")
        target = replace(target, direction=one)
    if objection := target.objection():
        raise InvalidInputError(objection)
    digits = integer("digits", digits, least=1)
    if digits > _MOST_DIGITS:
        raise expected("digits", digits, f"≤ {_MOST_DIGITS}")
    kind, relation = class_of(name), Adjacency.read(adjacency)
    fixed = translated(fixed, inspect.signature(kind).parameters.keys())
    count = integer("count", count, least=1)
    families = [
        _Family(
            kind,
            each,
            with_adjacency(kind.__name__, fixed, relation),
            target,
            relation,
            count,
            probability("sampling_prob", sampling_prob),
            schedule_factors(schedule),
        )
        for each in noise_arguments(kind, target, argument)
    ]
    width = None if digits <= DIGITS else Fraction(1, 10**digits)
    if relative_width is not None:
        width = rational("relative_width", relative_width)
    found: list[Calibration] = []
    refusals: list[DpassayError] = []
    for family in families:
        for each in (family, *family.showing_more()):
            try:
                known = _calibrated(each, width, digits)
                found.append(known if each is family else replace(known, reason=_SUMS))
                break
            except (NotApplicableError, UndecidedError) as refusal:
                refusals.append(refusal)
    if not found:
        raise families[0].explained(refusals[0])
    return best(found) if len(families) > 1 else found[0]


def _calibrated(family: _Family, width: Fraction | None, digits: int) -> Calibration:
    """Calibrate to a relative width, or by default to the narrowest of several that is reached.

    A floating-point estimate is tried first: the signs of the excess on both sides of it prove the
    width at once. Otherwise the root is enclosed by a search. If the profile is costly, the search
    starts with a coarse width, so that expensive evaluations are made only near the root.
    """
    widths = CALIBRATION_WIDTHS if width is None else (width,)
    for each in widths:
        with contextlib.suppress(UndecidedError):
            if found := family.near_estimates(each, min(digits, _digits(each))):
                return found
    usual = family.usual_width()
    if usual < COMPOSED_WIDTH:
        with contextlib.suppress(UndecidedError):
            return family.searched(widths[0], None, min(digits, _digits(widths[0])))
    found = None
    for each in (max(_COARSE, width), width) if width else reversed(widths):
        if found and COMPOSED_WIDTH < usual > each != width:
            break
        try:
            found = family.searched(each, found, min(digits, _digits(each)))
        except UndecidedError:
            if found is None or each == width:
                raise
            break
    assert found is not None
    return found


def _digits(width: Fraction) -> int:
    """Return the number of digits that a relative width corresponds to."""
    return max(1, len(str(width.denominator // width.numerator)) - 1)


def _width(relative_width: Fraction) -> Fraction:
    """Return the relative width of the excess for a requested relative width of the noise."""
    return min(relative_width / _SHARE_OF_WIDTH, _WIDEST)


def _ends(known: Calibration) -> solve.Bracket:
    """Return the ends of the enclosure of the least noise."""
    return Fraction(known.least.lower), Fraction(known.least.upper)


@final
@dataclass(frozen=True)
class _Family:
    """The mechanisms that differ only in their noise argument, and the target."""

    kind: type[Mechanism]
    argument: str
    fixed: dict[str, Any]
    target: Target
    relation: Adjacency | None
    count: int
    sampling_prob: ExactReal
    factors: tuple[ExactReal, ...]

    def __post_init__(self) -> None:
        if self.argument in self.fixed:
            raise InvalidInputError(
                f"Calibration finds {self.argument} of {self.kind.__name__}: leave it out."
            )

    def showing_more(self) -> list[_Family]:
        """Return the family of the same counter with its measurements released, if it is one."""
        known = {*notation.argument_names(self.kind.__name__)} - {*self.fixed}
        more = {**self.fixed, "released": "measurements"}
        return [replace(self, fixed=more)] if "released" in known else []

    def explained(self, refusal: DpassayError) -> DpassayError:
        """Return a refusal, or what to ask for instead if only bounds are known."""
        if not isinstance(refusal, UndecidedError):
            return refusal
        pairs = self.pairs(self.whole(ExactReal.of_rational(self._first_guess())))
        if not any(only_bounded(pair) for pair in pairs):
            return refusal
        remedy, target = "Ask for a larger relative_width, such as 1.", self.target
        pure = all(pair.max_loss().is_finite() for pair in pairs)
        if pure and isinstance(target, EpsilonDelta) and target.delta.sign:
            remedy = f"Calibrate to delta=0: what it finds meets {target} too."
        least = f" It lies in {refusal.interval}." if refusal.interval else ""
        return UndecidedError(
            f"The least {self.argument} of {self.kind.__name__} was not found, as only bounds of "
            f"its privacy profile are known.{least} {remedy}",
            reached=refusal.reached,
            interval=refusal.interval,
        )

    def usual_width(self) -> Fraction:
        """Return the default relative width of answers about such a mechanism."""
        first = ExactReal.of_rational(self._first_guess())
        return usual(self.pairs(self.whole(first)))

    def near_estimates(self, relative_width: Fraction, digits: int) -> Calibration | None:
        """Enclose the least noise around a floating-point estimate; None if the proof fails."""
        target = self.target
        if not (self.kind.noise_grows and isinstance(target, EpsilonDelta) and target.delta.sign):
            return None

        def pairs(value: ExactReal) -> Sequence[Pair]:
            return self.pairs(self.whole(value))

        given, first = (target.epsilon, target.delta), self._first_guess()
        found = threshold(pairs, *given, first, relative_width=relative_width)
        if found is None:
            return None
        above = _decimal(Fraction(found.least.upper), digits, ROUND_UP)  # meets the target
        point = ExactReal.of_rational(Fraction(above))
        whole = self.whole(point)
        return self._calibration(
            found.least, point, whole, target.met_from(found, self.pairs(whole))
        )

    def searched(
        self, relative_width: Fraction, coarser: Calibration | None, digits: int
    ) -> Calibration:
        """Enclose the least noise by a search, within a coarser enclosure if there is one.

        The returned noise has `digits` significant digits and is certified.
        """
        width = _width(relative_width)
        excess = partial(self.signed_excess, width=width)
        between = self.bracket(width) if coarser is None else _ends(coarser)
        enclosure = solve.root(excess, between, relative_width=relative_width)
        point = self.rounded(enclosure, digits, width)
        whole = self.whole(point)
        return self._calibration(enclosure, point, whole, self.target.met(whole, self.relation))

    def _calibration(
        self, least: Interval, point: ExactReal, whole: Mechanism, achieved: dict[str, Interval]
    ) -> Calibration:
        return Calibration(
            mechanism=self.at(point),
            whole=whole,
            argument=self.argument,
            least=self.clipped(least, point),
            achieved=achieved,
            target=self.target,
        )

    def pairs(self, whole: Mechanism) -> Sequence[Pair]:
        """Return the worst pairs in the directions of the target."""
        return whole.worst_case(self.relation).pairs(getattr(self.target, "direction", None))

    def at(self, value: ExactReal) -> Mechanism:
        """Return one release with this noise argument."""
        built = notation.build(self.kind.__name__, {self.argument: value, **self.fixed})
        assert isinstance(built, Mechanism)
        return built

    def whole(self, value: ExactReal) -> Mechanism:
        """Return the composition of all releases with this noise argument."""
        counts = Counter(self.factors)
        parts = [
            self._composed(self._sampled(self.at(self._scaled(value, factor))), number)
            for factor, number in counts.items()
        ]
        return self._composed(parts[0] if len(parts) == 1 else Composed(parts), self.count)

    def _sampled(self, release: Mechanism) -> Mechanism:
        if self.sampling_prob.rational == 1:
            return release
        return PoissonSubsampled(release, self.sampling_prob)

    @staticmethod
    def _composed(release: Mechanism, count: int) -> Mechanism:
        return release if count == 1 else Composed(release, count)

    def _scaled(self, value: ExactReal, factor: ExactReal) -> ExactReal:
        """Return the noise argument of a release with `factor` times the noise."""
        if not self.kind.noise_grows:
            return value / factor
        return value * (factor * factor if self.argument in _VARIANCES else factor)

    def signed_excess(self, value: ExactReal, width: Fraction) -> arb:
        """Return the excess, with the sign for which it is non-increasing in the argument.

        At very large or small noise δ may suffer complete cancellation, which leaves its logarithm
        unknown. The precision is then doubled.
        """
        mechanism = self.whole(value)
        precision = ctx.prec
        while True:
            with ctx.workprec(precision):
                excess = self.target.excess(mechanism, self.relation, width)
            if excess.is_finite() or precision >= MAX_PRECISION:
                return excess if self.kind.noise_grows else -excess
            precision *= 2

    def bracket(self, width: Fraction) -> solve.Bracket:
        """Return two arguments that bracket the root, by doubling or halving a first guess.

        Raises NotApplicableError if the excess stops changing.
        """
        near = self._first_guess()
        values = [self._middle(near, width)]
        up = values[0] > 0
        for _ in range(_MAX_STEPS):
            far = 2 * near if up else near / 2
            values.append(self._middle(far, width))
            if (values[-1] <= 0) == up or values[-1] == 0:
                return (near, far) if up else (far, near)
            last = values[-_STALLED_STEPS:]
            level = max(last) - min(last) <= _STALLED * abs(last[-1])
            if len(values) > _STALLED_STEPS and level:
                raise self._unreachable(far, failing=up == self.kind.noise_grows)
            near = far
        raise UndecidedError(
            f"No {self.argument} was found within 2^{_MAX_STEPS} of {self._first_guess()}."
        )

    def _first_guess(self) -> Fraction:
        """Return a starting value: 1, or for n releases noise that grows like q·√n.

        A composition of many releases would be expensive to evaluate at the noise of one.
        """
        releases = math.isqrt(self.count * len(self.factors))
        root = max(Fraction(1), Fraction(math.floor(releases * float(self.sampling_prob))))
        if not self.kind.noise_grows:
            return 1 / root
        return root**2 if self.argument in _VARIANCES else root

    def _middle(self, value: Fraction, width: Fraction) -> float:
        """Return the excess as a float, for the unproved search of a bracket."""
        with ctx.workprec(_SEARCH_PRECISION):
            excess = float(self.signed_excess(ExactReal.of_rational(value), width).mid())
        if math.isnan(excess):
            raise UndecidedError(
                f"{self.kind.__name__} could not be evaluated at {self.argument}={float(value):g}."
            )
        return excess

    def _unreachable(self, at: Fraction, *, failing: bool) -> NotApplicableError:
        name = self.kind.__name__
        if not failing:
            return NotApplicableError(
                f"{name} meets {self.target} however little noise it adds: there is no least. "
                "Give a smaller target."
            )
        obstacle = self.target.obstacle(self.whole(ExactReal.of_rational(at)), self.relation)
        return NotApplicableError(
            f"No {self.argument} makes {name} meet {self.target}: {obstacle}."
        )

    def rounded(self, enclosure: Interval, digits: int, width: Fraction) -> ExactReal:
        """Return the number of `digits` digits nearest to the root that provably meets the target.

        The search starts at the rounded midpoint and proceeds towards more noise.
        """
        middle = (Fraction(enclosure.lower) + Fraction(enclosure.upper)) / 2
        context = decimal_context(digits, ROUND_HALF_EVEN)
        step = context.next_plus if self.kind.noise_grows else context.next_minus
        candidate = _decimal(middle, digits, ROUND_HALF_EVEN)
        for _ in range(_MAX_ULPS):
            value = ExactReal.of_rational(Fraction(candidate))
            if self.target.holds(self.whole(value), self.relation, width):
                return value
            candidate = step(candidate)
        raise UndecidedError(
            f"No {self.argument} near {enclosure} could be certified. Ask for fewer digits."
        )

    def clipped(self, enclosure: Interval, point: ExactReal) -> Interval:
        """Return the enclosure, intersected with the fact that a point meets the target."""
        assert point.rational is not None
        at = Interval.of_exact(point.rational)
        if self.kind.noise_grows:
            return Interval(min(enclosure.lower, at.upper), min(enclosure.upper, at.upper))
        return Interval(max(enclosure.lower, at.lower), max(enclosure.upper, at.lower))


def _decimal(value: Fraction, digits: int, rounding: str) -> Decimal:
    context = decimal_context(digits, rounding)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))

"""Calibration: the least noise with which a mechanism has a guarantee, certified from above."""

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
from dpassay.accountant.core.pair import Pair
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
    """One release, its noise argument rounded to the safe side."""
    whole: Mechanism
    """All releases together, subsampled if asked for; it has the guarantee."""
    argument: str
    """The noise argument."""
    least: Interval
    """Encloses the value of the noise argument at which the noise is least."""
    achieved: dict[str, Interval]
    """The guarantee that `whole` has, in the terms of the target, by name."""
    target: Target
    """What was asked for."""
    reason: str = ""
    """Why this kind of noise, of a mechanism that has two, or why a counter's measured sums."""

    if not TYPE_CHECKING:  # which knows the names of the mechanism

        def __getattr__(self, name: str) -> Any:
            """Return what the mechanism has: `found.release` is `found.mechanism.release`."""
            if name.startswith("_") or name == "mechanism":  # not yet made, where it is copied
                raise no_attribute(self, name)
            return getattr(self.mechanism, name)

    def __str__(self) -> str:
        """Return the mechanism, and below it what was asked for and what it has."""
        rows = [("target", str(self.target)), (f"least {self.argument}", str(self.least))]
        rows += [("chosen by", self.reason)] * bool(self.reason)
        rows += [(f"its {name}", str(value)) for name, value in self.achieved.items()]
        width = max(len(name) for name, _ in rows)
        lines = [f"  {name:{width}}  {value}" for name, value in rows]
        return floats_in_short("\n".join([repr(self.mechanism), *lines]))

    def __repr__(self) -> str:
        """Return the mechanism and what was asked for."""
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
    """Return the calibration with the smaller mean squared error, saying so."""
    errors = [mean_squared_error(each.mechanism) for each in found]
    order = sorted(range(len(found)), key=lambda i: errors[i].upper)
    said = ", ".join(f"{errors[i]} with {found[i].argument}" for i in order)
    first = found[order[0]]
    more = f"; {first.reason}" if first.reason else ""
    return replace(first, reason=f"mean squared error {said}{more}")


def class_of(name: str | type[Mechanism]) -> type[Mechanism]:
    """Return the class of a mechanism that has a noise argument."""
    if isinstance(name, Mechanism) or (isinstance(name, str) and "(" in name):
        outer = str(name).partition("(")[0]
        remedy = f"Its noise is to be found: give {outer!r}, and its other arguments by name."
        if outer in ("Composed", "PoissonSubsampled"):
            remedy = "Name what has the noise, such as 'Gaussian', with count=…, sampling_prob=…."
        remedy += " For how often this one fits: dpassay calibrate --find count."
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
            "calibrate. For several releases, or samples, name what is inside, such as Gaussian, "
            "with count=… and sampling_prob=… (--count, --sampling-prob)."
        )
    return name


def schedule_factors(schedule: Sequence[Number]) -> tuple[ExactReal, ...]:
    """Return the factors of a schedule, one for no schedule."""
    factors = exact_list("schedule", schedule) if schedule else (ExactReal.of_rational(1),)
    for index, factor in enumerate(factors):
        if factor.sign <= 0:
            raise expected(f"schedule[{index}]", factor, "> 0")
    return factors


def with_adjacency(name: str, fixed: dict[str, Any], relation: Adjacency | None) -> dict[str, Any]:
    """Pass the relation on to a mechanism that is made for one."""
    asked = relation is not None and "adjacency" in notation.argument_names(name)
    return {"adjacency": relation, **fixed} if asked else fixed


def noise_arguments(kind: type[Mechanism], target: Target, argument: str | None) -> list[str]:
    """Return the noise arguments to calibrate: one, or two to choose from."""
    known = [name for name in (kind.noise_argument, kind.gaussian_noise_argument) if name]
    if argument is not None:
        if argument not in known:
            raise expected("argument", argument, f"in {known}")
        return [argument]
    if isinstance(target, EpsilonDelta) and target.delta.sign == 0:
        return known[:1]
    return known[-1:] if isinstance(target, Mu) else known


CALIBRATION_WIDTHS = tuple(Fraction(1, 10**digits) for digits in (12, 9, 6, 4, 2))
"""Relative widths of the least noise that are tried in turn where none is named."""
_COARSE = Fraction(1, 10**3)
"""A width to begin with, where a finer one is asked for."""
DIGITS = 12
"""Decimal digits of noise that is certified: what reports print, and floats hold."""
_SEARCH_PRECISION = 128
"""Bits of values that choose where to look, and become floats."""
_MAX_STEPS = 4096
"""Doublings or halvings of the noise until a refusal: nobody needs noise beyond 2^4096."""
_STALLED_STEPS = 24
"""Steps over which the excess must change, or more noise is taken to be of no use."""
_STALLED = 1e-6
"""Relative change of the excess below which it has not changed: some tend to a limit."""
_SHARE_OF_WIDTH, _WIDEST = 16, Fraction(1, 16)
"""How much finer than it changes the excess is asked for, and the least: then its sign is clear."""
_MAX_ULPS = 1000
"""Units in the last digit that are tried: an enclosure of the root is seldom that wide."""
_SUMS = "all measured sums, as what the outputs tell has two ends"
"""Why a counter shows more than it was asked for."""
_VARIANCES = ("parameter", "sigma_star")
"""Noise arguments that are squares of a spread."""


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
    """Find the least noise with which a mechanism, or many releases of it, have a guarantee.

    For a counter whose outputs have no exact profile it is the noise with which all measured sums,
    and so the outputs too, have the guarantee: the returned mechanism says
    `released="measurements"`.

    Parameters
    ----------
    name
        The mechanism, by its name in the notation or its class.
    target
        `EpsilonDelta`, `Mu` or `Rho`.
    adjacency
        The neighbouring relation, where it matters; an argument of this name is the same one.
    direction
        One direction, for (ε, δ); None takes the worse one.
    digits
        Significant digits of the returned noise, which is rounded to more noise and certified.
    relative_width
        Relative width of the enclosure of the least noise. None asks for 1e-12, or what is reached.
    argument
        The noise argument to find, where there are two, for Laplace and for Gaussian noise. None
        takes `mu` for a target of μ, and otherwise the one with the smaller mean squared error.
    count
        How many releases, all with the same noise, have the guarantee together.
    sampling_prob
        The probability with which a record takes part in a release: each is `PoissonSubsampled`.
    schedule
        Releases of unequal noise: each f > 0 is one with f times the spread of the one that is
        returned (f² times its `parameter` or `sigma_star`, 1/f of its ε or μ). All, `count` times.
    fixed
        The other arguments of the mechanism.

    Raises
    ------
    InvalidInputError
        For an unknown mechanism or argument, or a target that no mechanism, or every one, meets.
    NotApplicableError
        If the mechanism has no single noise argument, or does not reach the target at any.
    UndecidedError
        If a given width is not reached, or not even two digits can be certified.

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
    width = None if relative_width is None else rational("relative_width", relative_width)
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
        raise refusals[0]
    return best(found) if len(families) > 1 else found[0]


def _calibrated(family: _Family, width: Fraction | None, digits: int) -> Calibration:
    """Calibrate to a width, or to the finest of some that is reached.

    Beside estimates two signs prove a width at once. Else the root is searched, where the profile
    is costly first to few digits: the fine evaluations are then made next to it.
    """
    widths = CALIBRATION_WIDTHS if width is None else (width,)
    for each in widths:
        with contextlib.suppress(UndecidedError):
            if found := family.beside_estimates(each, min(digits, _digits(each))):
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
    """Return the digits that a relative width leaves."""
    return max(1, len(str(width.denominator // width.numerator)) - 1)


def _width(relative_width: Fraction) -> Fraction:
    """Return how finely an excess is asked for where the noise is asked for to this width."""
    return min(relative_width / _SHARE_OF_WIDTH, _WIDEST)


def _ends(known: Calibration) -> solve.Bracket:
    """Return the ends of the least noise, which were proved to be on both sides of it."""
    return Fraction(known.least.lower), Fraction(known.least.upper)


@final
@dataclass(frozen=True)
class _Family:
    """The mechanisms that differ in one argument only."""

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
                f"{self.argument} is what calibration finds for {self.kind.__name__}; leave it out."
            )

    def showing_more(self) -> list[_Family]:
        """Return counters that show all measured sums, where their outputs may have two ends."""
        known = {*notation.argument_names(self.kind.__name__)} - {*self.fixed}
        more = {**self.fixed, "released": "measurements"}
        return [replace(self, fixed=more)] if "released" in known else []

    def usual_width(self) -> Fraction:
        """Return the relative width that answers about such a mechanism usually have."""
        first = ExactReal.of_rational(self._first_guess())
        return usual(self.pairs(self.whole(first)))

    def beside_estimates(self, relative_width: Fraction, digits: int) -> Calibration | None:
        """Enclose the least noise beside estimates, proved at both ends; None where that fails."""
        target = self.target
        if not (self.kind.noise_grows and isinstance(target, EpsilonDelta) and target.delta.sign):
            return None

        def pairs(value: ExactReal) -> Sequence[Pair]:
            return self.pairs(self.whole(value))

        given, first = (target.epsilon, target.delta), self._first_guess()
        found = threshold(pairs, *given, first, relative_width=relative_width)
        if found is None:
            return None
        above = _decimal(Fraction(found.least.upper), digits, ROUND_UP)  # proved to do
        point = ExactReal.of_rational(Fraction(above))
        whole = self.whole(point)
        return self._calibration(
            found.least, point, whole, target.met_from(found, self.pairs(whole))
        )

    def searched(
        self, relative_width: Fraction, coarser: Calibration | None, digits: int
    ) -> Calibration:
        """Enclose the least noise, inside what is known of it, and certify so many digits."""
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
        """Return the pairs that the target is about."""
        return whole.worst_case(self.relation).pairs(getattr(self.target, "direction", None))

    def at(self, value: ExactReal) -> Mechanism:
        """Return the mechanism with this noise argument."""
        built = notation.build(self.kind.__name__, {self.argument: value, **self.fixed})
        assert isinstance(built, Mechanism)
        return built

    def whole(self, value: ExactReal) -> Mechanism:
        """Return all releases of the mechanism with this noise argument."""
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
        """Return the noise argument of a release with `factor` times the spread."""
        if not self.kind.noise_grows:
            return value / factor
        return value * (factor * factor if self.argument in _VARIANCES else factor)

    def signed_excess(self, value: ExactReal, width: Fraction) -> arb:
        """Return the excess, with the sign that makes it non-increasing in the argument.

        Where the noise is very large or small a δ may cancel down to nothing at flint's current
        precision, so that its logarithm is unknown: then the precision is raised.
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
        """Return arguments with the root between them, by doubling or halving from a first guess.

        Raises NotApplicableError where the excess no longer changes.
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
        """Return 1 for one release; a standard deviation grows like q times the root of many.

        Many releases are hard to evaluate at the noise of one: their exact laws are long.
        """
        releases = math.isqrt(self.count * len(self.factors))
        root = max(Fraction(1), Fraction(math.floor(releases * float(self.sampling_prob))))
        if not self.kind.noise_grows:
            return 1 / root
        return root**2 if self.argument in _VARIANCES else root

    def _middle(self, value: Fraction, width: Fraction) -> float:
        """Return an approximate excess: the root is proved later."""
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
        """Return the first number of `digits` digits, from the nearest on, that is certified."""
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
        """Return the enclosure, cut at a point that is known to meet the target."""
        assert point.rational is not None
        at = Interval.of_exact(point.rational)
        if self.kind.noise_grows:
            return Interval(min(enclosure.lower, at.upper), min(enclosure.upper, at.upper))
        return Interval(max(enclosure.lower, at.lower), max(enclosure.upper, at.lower))


def _decimal(value: Fraction, digits: int, rounding: str) -> Decimal:
    context = decimal_context(digits, rounding)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))

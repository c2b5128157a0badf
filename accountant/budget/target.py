"""What a calibration aims at: a guarantee, and by how much a mechanism misses it."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.core.validate import Positive, Probability, Real
from dpassay.accountant.errors import (
    InvalidInputError,
    NotApplicableError,
    UndecidedError,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.numbers.dominance import largest_ratio
from dpassay.accountant.numbers.exact import ExactReal, in_short
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, ball, enclose, sign
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs import invert
from dpassay.accountant.questions import guarantees, profile
from dpassay.accountant.questions.threshold import Threshold

Width: TypeAlias = Fraction | None
"""The relative width that a δ is asked for; None for flint's precision."""

ACHIEVED_WIDTH = Fraction(1, 10**15)
_MET_DIGITS = 20
"""Digits of a ratio that says how far a budget is met."""
_RHO_WIDTHS = tuple(Fraction(1, 10**digits) for digits in (4, 6, 8, 10, 12, 15))
_RHO_MARGIN = 1000
"""Widths by which ρ must miss the budget for a coarser width to do."""
_TIE_PRECISION = 2048
"""Bits after which a budget counts as met exactly where no exact number is known."""
_FAR_ABOVE = 16
"""A ratio of profiles that need not be known any better."""
MOST_RELEASES = 10**12
"""Most releases of one kind, and most that are counted: what costs nothing has no end."""
_FIRST_COUNT, _LEAP = 1024, 8
"""Where a search for a count begins, and the factor by which it goes on: few samples are slow."""
_WIDTHS = tuple(Fraction(1, 10**digits) for digits in (3, 6, 9, 12))
"""Relative widths of δ by which a mechanism is told from a budget, the fastest first."""
_UNBOUNDED = 10**9
"""Stands for an infinite excess: roots are searched among finite numbers."""


class Target(ABC):
    """A guarantee that a mechanism satisfies or not."""

    @abstractmethod
    def excess(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> arb:
        """Return a finite ball, > 0 where the guarantee fails and < 0 where there is room.

        It never increases when noise is added.
        """

    @abstractmethod
    def achieved(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Enclose what the mechanism has of what the guarantee is about, by name."""

    def met(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Enclose the same of a mechanism that is proved to have the guarantee."""
        return self.achieved(mechanism, adjacency)

    def holds(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> bool:
        """Whether the guarantee is proved."""
        found = sign(lambda: self.excess(mechanism, adjacency, width), max_precision=_TIE_PRECISION)
        return found in (-1, 0)

    def objection(self) -> str:
        """Say why no mechanism, or every mechanism, has the guarantee; "" if neither is so."""
        return ""

    def obstacle(self, mechanism: Mechanism, adjacency: Adjacency | None) -> str:
        """Say why a mechanism stays above the guarantee however much noise it adds."""
        (name, value), *_ = self.achieved(mechanism, adjacency).items()
        return f"its {name} is still {value}"


@final
@dataclass(frozen=True)
class EpsilonDelta(Target):
    """(ε, δ)-DP; δ = 0 is pure ε-DP. ε may be any real number.

    With a direction it is asked of that order of two neighbours only.
    """

    epsilon: Real = Real()
    delta: Probability = Probability(0)
    direction: Direction | None = None

    def objection(self) -> str:
        """Object to δ = 1, to ε = δ = 0, and to δ ≤ 1 − e^ε, which the certain event exceeds."""
        if self.delta.rational == 1:
            return "Expected delta < 1. Every mechanism has delta = 1; there is no least noise."
        if self.epsilon.sign == self.delta.sign == 0:
            return (
                "Expected epsilon=0 > 0 with delta = 0: only what does not depend on the data at "
                "all is (0, 0)-DP. Give a larger epsilon or delta."
            )
        if self.epsilon.sign < 0:
            room = sign(lambda: self.delta.ball() + self.epsilon.ball().expm1())
            if room is not None and room <= 0:
                return (
                    f"Expected delta={self.delta} > 1 - e^epsilon at epsilon={self.epsilon} < 0. "
                    "The event of all outcomes has probability 1 under both laws, so no "
                    "mechanism reaches this. Give a larger epsilon or delta."
                )
        return ""

    def excess(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> arb:
        """Return ln(δ(ε)/δ), or (δ = 0) the largest privacy loss minus ε."""
        pairs = mechanism.worst_case(adjacency).pairs(self.direction)
        if self.delta.sign == 0:
            return finite(invert.most([p.max_loss() for p in pairs]) - self.epsilon.ball())
        try:
            value = invert.hockey_stick(invert.to_width(pairs, width), self.epsilon)
        except UndecidedError as refusal:  # far from δ a wide enclosure decides as well
            if not refusal.reached < 1:
                raise
            wider = invert.to_width(pairs, 2 * Fraction(refusal.reached))
            value = invert.hockey_stick(wider, self.epsilon)
        return log_ratio(value, self.delta.ball())

    def holds(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> bool:
        """Compare exactly where the largest loss is an exact number."""
        pairs = mechanism.worst_case(adjacency).pairs(self.direction)
        losses = [pair.known.max_loss() for pair in pairs]
        if self.delta.sign == 0 and all(loss is not None for loss in losses):
            return all(loss is not None and loss <= self.epsilon for loss in losses)
        return super().holds(mechanism, adjacency, width)

    def met_from(self, found: Threshold, pairs: Sequence[Pair]) -> dict[str, Interval]:
        """Enclose the δ(ε) ≤ δ of pairs at or beyond a threshold, about as finely as it was."""
        pairs = invert.to_width(pairs, found.width)
        with ctx.workprec(START_PRECISION):
            value = pairs[found.worst].hockey_stick(self.epsilon)
            if not value > found.others:
                value = invert.hockey_stick(pairs, self.epsilon)
            limit = Interval.of_ball(self.delta.ball()).upper
        enclosure = Interval.of_ball(value, _MET_DIGITS)
        return {"delta": Interval(max(enclosure.lower, Decimal(0)), min(enclosure.upper, limit))}

    def achieved(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Enclose δ(ε), or (δ = 0) the largest privacy loss."""
        if self.delta.sign == 0:
            found = profile.epsilon(mechanism, 0, adjacency=adjacency, direction=self.direction)
            return {"epsilon": found}
        given = mechanism, self.epsilon
        return {"delta": profile.delta(*given, adjacency=adjacency, direction=self.direction)}

    def met(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Cut what it has at δ, or at ε."""
        limit = self.delta if self.delta.sign else self.epsilon
        return _cut(self.achieved(mechanism, adjacency), limit)

    def obstacle(self, mechanism: Mechanism, adjacency: Adjacency | None) -> str:
        """Name the unbounded privacy loss, where that is it."""
        if self.delta.sign == 0:
            loss = self.achieved(mechanism, adjacency)["epsilon"]
            if not loss.lower.is_finite():
                return (
                    "its privacy loss is unbounded at every amount of noise, so delta = 0 is "
                    "impossible; give a delta > 0"
                )
        return super().obstacle(mechanism, adjacency)

    def __str__(self) -> str:
        only = f", {self.direction.value} only" if self.direction else ""
        return f"epsilon={in_short(self.epsilon)}, delta={in_short(self.delta)}{only}"


@final
@dataclass(frozen=True)
class Mu(Target):
    """μ-Gaussian DP: the trade-off function is at least that of N(μ, 1) against N(0, 1)."""

    mu: Positive = Positive()

    def excess(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> arb:
        """Return ln(μ'/μ) for a mechanism with a known least μ'.

        Else ln of the largest δ(ε)/δ_μ(ε), or of another ratio beside 1.
        """
        value = _least_mu(mechanism, adjacency)
        if value is None:
            return log_ratio(self._ratio(mechanism, adjacency, width), arb(1))
        return log_ratio(value, self.mu.ball())

    def holds(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> bool:
        """Compare exactly where the mechanism's μ is an exact number."""
        value = mechanism.exact_gaussian_mu(adjacency)
        return value <= self.mu if value is not None else super().holds(mechanism, adjacency, width)

    def achieved(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Enclose μ', or the largest ratio of the profiles."""
        if _least_mu(mechanism, adjacency) is None:
            width = ACHIEVED_WIDTH
            ratio = enclose(
                lambda: self.excess(mechanism, adjacency, width).exp(), relative_width=width
            )
            return {"ratio": ratio}
        return {"mu": enclose(lambda: _least_mu(mechanism, adjacency) or arb(0))}  # 0 is false

    def _curve(self, epsilon: ExactReal) -> arb:
        """Return δ_μ(ε)."""
        gaussian = Gaussian(standard_deviation=1, l2_sensitivity=self.mu)
        return invert.hockey_stick(gaussian.worst_case(None).pairs(None), epsilon)

    def _ratio(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width) -> arb:
        """Return the largest δ(ε)/δ_μ(ε); far above 1 a lower bound stands for it."""
        pairs = invert.to_width(mechanism.worst_case(adjacency).pairs(None), width)
        end = invert.most([pair.max_loss() for pair in pairs])
        if not end.is_finite():
            raise NotApplicableError(
                f"The privacy loss of {type(mechanism).__name__} is unbounded, and its least mu is "
                "not known: its profile cannot be compared with a Gaussian one over all epsilon. "
                "Calibrate it to (epsilon, delta) or rho."
            )
        stop = Fraction(Interval.of_ball(end, 30).upper)
        return largest_ratio(
            lambda at: invert.hockey_stick(pairs, at), self._curve, stop, enough=_FAR_ABOVE
        )

    def __str__(self) -> str:
        return f"mu={in_short(self.mu)}"


@final
@dataclass(frozen=True)
class Rho(Target):
    """ρ-zCDP: every Rényi divergence D_a ≤ ρ a, a > 1."""

    rho: Positive = Positive()

    def excess(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> arb:
        """Return ln(ρ'/ρ), the more sharply the nearer to 0 it is."""
        for finer in _RHO_WIDTHS:
            value = guarantees.rho(mechanism, adjacency=adjacency, relative_width=finer)
            excess = log_ratio(value.ball(), self.rho.ball())
            if abs(excess) > _RHO_MARGIN * ball(finer):
                break
        return excess

    def holds(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> bool:
        """Compare exactly where the mechanism's ρ is an exact number."""
        value = mechanism.exact_rho(adjacency)
        return (
            value <= self.rho if value is not None else super().holds(mechanism, adjacency, width)
        )

    def achieved(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Enclose ρ'."""
        return {"rho": guarantees.rho(mechanism, adjacency=adjacency)}

    def met(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Cut what it has at ρ."""
        return _cut(self.achieved(mechanism, adjacency), self.rho)

    def __str__(self) -> str:
        return f"rho={in_short(self.rho)}"


def decided(target: Target, whole: Mechanism, adjacency: Adjacency | None) -> bool | None:
    """Whether a mechanism has a guarantee, with as few digits as tell; None where none do."""
    if not isinstance(target, EpsilonDelta) or not target.delta.sign:
        try:
            return target.holds(whole, adjacency)
        except UndecidedError:
            return None
    pairs, limit = whole.worst_case(adjacency).pairs(target.direction), target.delta.ball()
    for width in _WIDTHS:
        with contextlib.suppress(UndecidedError), ctx.workprec(START_PRECISION):
            value = invert.hockey_stick(invert.to_width(pairs, width), target.epsilon)
            if value < limit or value > limit:
                return bool(value < limit)
    if all(pair.known.width() <= _WIDTHS[-1] for pair in pairs):  # it may be met exactly
        return target.holds(whole, adjacency)
    return None


def largest_count(keeps: Callable[[int], bool], known: int = 0) -> int:
    """Return the largest count, up to 10^12, that is proved to keep a budget.

    `known` does; whoever keeps it with more also keeps it with fewer.
    """
    low, high = known, min(max(_FIRST_COUNT, 2 * known + 1), MOST_RELEASES)
    while keeps(high):
        if high == MOST_RELEASES:
            return high
        low, high = high, min(_LEAP * high, MOST_RELEASES)
    while high // _LEAP > low and not keeps(high // _LEAP):
        high //= _LEAP
    while high - low > 1:
        tried = (low + high) // 2
        low, high = (tried, high) if keeps(tried) else (low, tried)
    return low


def _least_mu(mechanism: Mechanism, adjacency: Adjacency | None) -> arb | None:
    """Return the least μ for which a mechanism is μ-GDP, where it is known without a search."""
    try:
        return mechanism.gaussian_mu(adjacency)
    except NotApplicableError:
        from dpassay.accountant.questions.least_mu import closed_mu  # slow to import

        return closed_mu(mechanism.worst_case(adjacency).pairs(None))


def _cut(achieved: dict[str, Interval], limit: ExactReal) -> dict[str, Interval]:
    """Cut an enclosure of a number that is known to be at most a limit."""
    ((name, found),) = achieved.items()
    if limit.rational is None:
        with ctx.workprec(START_PRECISION):
            most = Interval.of_ball(limit.ball()).upper
    else:
        most = Interval.of_exact(limit.rational, _MET_DIGITS).upper
    return {name: Interval(min(found.lower, most), min(found.upper, most))}


def log_ratio(value: arb, limit: arb) -> arb:
    """Return ln(value/limit), made finite."""
    return finite((value / limit).log() if not value.is_zero() else arb.neg_inf())


def finite(value: arb) -> arb:
    """Return the ball itself, or a large number in place of ±∞."""
    if value.is_finite() or value.is_nan():
        return value
    if value > 0:
        return arb(_UNBOUNDED)
    return arb(-_UNBOUNDED) if value < 0 else arb(0, _UNBOUNDED)


def read_target(given: Mapping[str, Any]) -> Target:
    """Return the one guarantee that epsilon (and delta), mu or rho name."""
    names = [name for name in ("epsilon", "mu", "rho") if given.get(name) is not None]
    has_delta = given.get("delta") is not None
    if len(names) != 1 or (has_delta and names != ["epsilon"]):
        said = ", ".join([*names, *["delta"] * has_delta]) or "none"
        raise InvalidInputError(
            f"Expected one target: epsilon (with delta, else 0), mu or rho; given: "
            f"{said}. Write epsilon=1, delta=1e-5 (--epsilon 1 --delta 1e-5)."
        )
    if names == ["epsilon"]:
        delta = given.get("delta")
        return EpsilonDelta(given["epsilon"], 0 if delta is None else delta)
    return Mu(given["mu"]) if names == ["mu"] else Rho(given["rho"])

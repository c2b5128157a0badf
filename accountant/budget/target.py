"""Privacy guarantees as targets: whether, and by how much, a mechanism exceeds them."""

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
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal, in_short
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, ball, enclose, sign
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs import invert
from dpassay.accountant.questions import guarantees, profile
from dpassay.accountant.questions.threshold import Threshold

Width: TypeAlias = Fraction | None
"""The relative width to which δ is enclosed; None for the current precision."""

ACHIEVED_WIDTH = Fraction(1, 10**15)
_MET_DIGITS = 20
"""Digits of the enclosures that `met` returns."""
_RHO_WIDTHS = tuple(Fraction(1, 10**digits) for digits in (4, 6, 8, 10, 12, 15))
_RHO_MARGIN = 1000
"""A width of ρ is fine enough if ρ differs from the budget by this many widths."""
_TIE_PRECISION = 2048
"""Maximal precision, in bits, at which the sign of an excess is sought; beyond it is undecided."""
MOST_RELEASES = 10**12
"""Maximal number of releases of one kind, at which searches for a count stop."""
_FIRST_COUNT, _LEAP = 1024, 8
"""First count in a search, and the factor between counts; compositions of few samples are slow."""
_WIDTHS = tuple(Fraction(1, 10**digits) for digits in (3, 6, 9, 12))
"""Relative widths of δ that are tried in turn to decide whether a budget is kept."""
_UNBOUNDED = 10**9
"""Stands for an infinite excess, because root finding needs finite numbers."""


class Target(ABC):
    """A privacy guarantee that a mechanism may satisfy."""

    @abstractmethod
    def excess(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> arb:
        """Return a finite ball that is > 0 if the guarantee is violated and < 0 if it has slack.

        The excess does not increase when noise is added.
        """

    @abstractmethod
    def achieved(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Enclose the mechanism's own value of the guaranteed quantity, by name."""

    def met(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Return `achieved` for a mechanism that provably satisfies the guarantee."""
        return self.achieved(mechanism, adjacency)

    def holds(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> bool:
        """Whether the mechanism provably satisfies the guarantee."""
        found = sign(lambda: self.excess(mechanism, adjacency, width), max_precision=_TIE_PRECISION)
        return found in (-1, 0)

    def objection(self) -> str:
        """Return why no mechanism, or every mechanism, satisfies the guarantee; "" otherwise."""
        return ""

    def obstacle(self, mechanism: Mechanism, adjacency: Adjacency | None) -> str:
        """Return why a mechanism violates the guarantee however much noise it adds."""
        (name, value), *_ = self.achieved(mechanism, adjacency).items()
        return f"its {name} is still {value}"


@final
@dataclass(frozen=True)
class EpsilonDelta(Target):
    """(ε, δ)-DP, with δ = 0 for pure ε-DP. ε may be any real number.

    With a direction the guarantee is required in that direction only.
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
        except UndecidedError as refusal:  # far from δ the wider enclosure suffices
            if not refusal.reached < 1:
                raise
            wider = invert.to_width(pairs, 2 * Fraction(refusal.reached))
            value = invert.hockey_stick(wider, self.epsilon)
        return log_ratio(value, self.delta.ball())

    def holds(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> bool:
        """Whether the guarantee is proved; exact if δ = 0 and the largest loss is known exactly."""
        pairs = mechanism.worst_case(adjacency).pairs(self.direction)
        losses = [pair.known.max_loss() for pair in pairs]
        if self.delta.sign == 0 and all(loss is not None for loss in losses):
            return all(loss is not None and loss <= self.epsilon for loss in losses)
        return super().holds(mechanism, adjacency, width)

    def met_from(self, found: Threshold, pairs: Sequence[Pair]) -> dict[str, Interval]:
        """Enclose δ(ε) ≤ δ for pairs at or beyond a threshold, to about the threshold's width."""
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
        """Return `achieved`, intersected with the proved bound δ (or ε, if δ = 0)."""
        limit = self.delta if self.delta.sign else self.epsilon
        return _cut(self.achieved(mechanism, adjacency), limit)

    def obstacle(self, mechanism: Mechanism, adjacency: Adjacency | None) -> str:
        """Return the reason; for δ = 0 it may be an unbounded privacy loss."""
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
        """Return ln(μ′/μ) for the least μ′ of the mechanism."""
        return log_ratio(_least_mu(mechanism, adjacency, width), self.mu.ball())

    def holds(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> bool:
        """Whether the guarantee is proved; exact if the mechanism's μ is known exactly."""
        value = mechanism.exact_gaussian_mu(adjacency)
        return value <= self.mu if value is not None else super().holds(mechanism, adjacency, width)

    def achieved(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Enclose μ′."""
        return {"mu": enclose(lambda: _least_mu(mechanism, adjacency), relative_width=_WIDTHS[-1])}

    def __str__(self) -> str:
        return f"mu={in_short(self.mu)}"


@final
@dataclass(frozen=True)
class Rho(Target):
    """ρ-zCDP: every Rényi divergence D_a ≤ ρ a, a > 1."""

    rho: Positive = Positive()

    def excess(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> arb:
        """Return ln(ρ'/ρ), where ρ' is the mechanism's; it is narrower the closer it is to 0."""
        for finer in _RHO_WIDTHS:
            value = guarantees.rho(mechanism, adjacency=adjacency, relative_width=finer)
            excess = log_ratio(value.ball(), self.rho.ball())
            if abs(excess) > _RHO_MARGIN * ball(finer):
                break
        return excess

    def holds(self, mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> bool:
        """Whether the guarantee is proved; exact if the mechanism's ρ is known exactly."""
        value = mechanism.exact_rho(adjacency)
        return (
            value <= self.rho if value is not None else super().holds(mechanism, adjacency, width)
        )

    def achieved(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Enclose ρ'."""
        return {"rho": guarantees.rho(mechanism, adjacency=adjacency)}

    def met(self, mechanism: Mechanism, adjacency: Adjacency | None) -> dict[str, Interval]:
        """Return `achieved`, intersected with the proved bound ρ."""
        return _cut(self.achieved(mechanism, adjacency), self.rho)

    def __str__(self) -> str:
        return f"rho={in_short(self.rho)}"


def decided(target: Target, whole: Mechanism, adjacency: Adjacency | None) -> bool | None:
    """Whether a mechanism satisfies a guarantee, decided at the least sufficient precision.

    Returns None if it cannot be decided.
    """
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
    """Return the largest count, up to 10^12, for which `keeps` is true.

    `keeps` must be non-increasing in the count, and true for `known`.
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


def _least_mu(mechanism: Mechanism, adjacency: Adjacency | None, width: Width = None) -> arb:
    """Return the least μ for which a mechanism is μ-GDP, to a relative width where it is searched.

    Raises NotApplicableError where no μ is known to be enough.
    """
    try:
        return mechanism.gaussian_mu(adjacency)
    except NotApplicableError:
        from dpassay.accountant.questions.least_mu import least_mu  # slow to import

        pairs = mechanism.worst_case(adjacency).pairs(None)
        return least_mu(pairs, width or ACHIEVED_WIDTH).ball()


def _cut(achieved: dict[str, Interval], limit: ExactReal) -> dict[str, Interval]:
    """Intersect an enclosure with the knowledge that the number is at most a limit."""
    ((name, found),) = achieved.items()
    if limit.rational is None:
        with ctx.workprec(START_PRECISION):
            most = Interval.of_ball(limit.ball()).upper
    else:
        most = Interval.of_exact(limit.rational, _MET_DIGITS).upper
    return {name: Interval(min(found.lower, most), min(found.upper, most))}


def log_ratio(value: arb, limit: arb) -> arb:
    """Return ln(value/limit), with ±∞ replaced by large numbers."""
    return finite((value / limit).log() if not value.is_zero() else arb.neg_inf())


def finite(value: arb) -> arb:
    """Return the ball, with ±∞ replaced by ±10^9."""
    if value.is_finite() or value.is_nan():
        return value
    if value > 0:
        return arb(_UNBOUNDED)
    return arb(-_UNBOUNDED) if value < 0 else arb(0, _UNBOUNDED)


def read_target(given: Mapping[str, Any]) -> Target:
    """Return the guarantee that is given by epsilon (and delta), mu or rho."""
    names = [name for name in ("epsilon", "mu", "rho") if given.get(name) is not None]
    has_delta = given.get("delta") is not None
    if len(names) != 1 or (has_delta and names != ["epsilon"]):
        said = ", ".join([*names, *["delta"] * has_delta]) or "none"
        raise InvalidInputError(
            f"Expected one target: epsilon (with an optional delta), mu or rho; given: "
            f"{said}. Write epsilon=1, delta=1e-5 (--epsilon 1 --delta 1e-5)."
        )
    if names == ["epsilon"]:
        delta = given.get("delta")
        return EpsilonDelta(given["epsilon"], 0 if delta is None else delta)
    return Mu(given["mu"]) if names == ["mu"] else Rho(given["rho"])

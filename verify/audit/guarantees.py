"""What an audit tests: a privacy guarantee as a curve of points (ε, δ) that must all hold.

A guarantee says P(E) ≤ e^ε Q(E) + δ for every event E, both orders of every neighbouring pair,
and every point (ε, δ) of its curve. (ε, δ)-DP has one point; μ-GDP has the curve
δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ); a mechanism or a callable has its whole profile, and an
audit may choose the point at which a violation shows best.
"""

from __future__ import annotations

import functools
import math
import numbers
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, expected, shortened
from dpassay.accountant.numbers.exact import ExactReal, Number, exact

if TYPE_CHECKING:
    from dpassay.verifier.verdict import Finding

Claim: TypeAlias = (
    "Guarantee | Mechanism | Callable[[float], float] | Mapping[str, Any] | Number | "
    "tuple[Number, Number] | Sequence[tuple[Number, Number]]"
)
"""ε, (ε, δ), {"mu": μ}, {"epsilon": ε, "delta": δ}, a mechanism, δ(·), or a list of points.

{"rho": ρ} and {"order": a, "renyi": D} represent the curve δ(ε) that they imply.
"""

_DIGITS = 12
"""Decimals of a number that is rounded up: what is tested is weaker by some 1e-10 of itself."""
_LARGEST_EPSILON = 20.0
"""The largest ε that is tried: no audit has the runs to show more."""
_GRID = 48
"""Points of a curve that are tried, in steps of a factor 2^{1/6}; each tests every event."""


@final
@dataclass(frozen=True, slots=True)
class Point:
    """One inequality P(E) ≤ e^ε Q(E) + δ, with both numbers exact."""

    epsilon: Fraction
    delta: Fraction

    @staticmethod
    def read(epsilon: str, delta: str) -> Point:
        """Return the point with these numbers."""
        return Point(Fraction(epsilon), Fraction(delta))

    def to_json(self) -> dict[str, str]:
        """Return both numbers as exact text."""
        return {"epsilon": _text(self.epsilon), "delta": _text(self.delta)}


@final
@dataclass(frozen=True)
class Guarantee:
    """A claimed guarantee, read by `guarantee`."""

    kind: str
    """epsilon-delta, gaussian, profile or mechanism."""
    description: str
    points: tuple[Point, ...]
    """The claimed points; empty if the whole curve is claimed."""
    profile: Callable[[float], float] | None = None
    """An upper bound of the claimed δ(ε), for curves."""
    parameter: str = ""
    """μ, or the notation of the mechanism whose profile is claimed."""
    words: tuple[Mapping[str, str], ...] = ()
    """The exact claim as `claims.guarantee` reads it, one entry a point; none for a profile."""

    def delta_at(self, epsilon: float) -> float:
        """Return the claimed δ(ε), or an upper bound of it: +∞ where nothing is claimed.

        (ε₀, δ₀)-DP implies (ε, δ₀)-DP for every ε ≥ ε₀ and nothing below.
        """
        if self.profile is not None:
            return min(1.0, float(self.profile(epsilon)))
        deltas = [float(p.delta) for p in self.points if float(p.epsilon) <= epsilon]
        return min(deltas, default=math.inf)

    def candidates(self, largest: float = _LARGEST_EPSILON) -> tuple[Point, ...]:
        """Return the points at which a test may be made: some fifty at most."""
        if self.profile is None:
            return self.points
        found = []
        for epsilon in _grid(largest):
            delta = self.delta_at(float(epsilon))
            if not 0 <= delta <= 1:
                raise expected("profile", delta, f"in [0, 1] at epsilon={float(epsilon):.6g}")
            if delta < 1:
                found.append(Point(epsilon, _above(delta)))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "description": self.description,
            "points": [point.to_json() for point in self.points],
            "parameter": self.parameter,
        }


@functools.cache
def _grid(largest: float) -> tuple[Fraction, ...]:
    """Return the ε that are tried, as short decimals: 0, and some up to the largest."""
    steps = (largest * 2.0 ** (-(_GRID - 1 - i) / 6) for i in range(_GRID))
    return (Fraction(0), *(Fraction(f"{step:.6g}") for step in steps))


def guarantee(claim: Claim, *, adjacency: Adjacency | str | None = None) -> Guarantee:
    """Read a claim in any of its forms.

    Raises InvalidInputError for any other form, and for numbers out of range.
    """
    if isinstance(claim, Guarantee):
        return claim
    if isinstance(claim, Mechanism):
        return _of_mechanism(claim, adjacency)
    if isinstance(claim, Mapping):
        return _of_mapping(claim, adjacency)
    if callable(claim):
        return Guarantee("profile", getattr(claim, "__name__", "a profile"), (), claim)
    if isinstance(claim, (list, tuple)):
        entries: list[Any] = list(claim)
        if len(entries) == 2 and not isinstance(entries[0], (list, tuple)):
            return epsilon_delta(*entries)
        return _of_points(entries)
    number: Any = claim
    return epsilon_delta(number, 0)


def epsilon_delta(epsilon: Number, delta: Number = 0) -> Guarantee:
    """Return the guarantee of (ε, δ)-DP."""
    return _of_points([(epsilon, delta)])


def gaussian(mu: Number) -> Guarantee:
    """Return the guarantee of μ-Gaussian DP (Dong, Roth and Su 2022, Corollary 1)."""
    from dpassay.accountant.mechanisms import Gaussian

    number = exact(mu, "mu")
    if number.sign <= 0:
        raise expected("mu", mu, "> 0")
    noise = Gaussian(ExactReal.of_rational(1) / number)
    profile, words = _profile_of(noise, None), ({"mu": str(number)},)
    return Guarantee("gaussian", f"{number}-GDP", (), profile, str(number), words)


def zcdp(rho: Number) -> Guarantee:
    """Return what ρ-zCDP implies: (ε, δ(ε))-DP at every ε, by a proved conversion.

    To refute a point of that curve is to refute ρ-zCDP. The converse fails: the curve may hold
    where ρ-zCDP does not.
    """
    from dpassay.accountant.questions.notions import delta_of_zcdp

    number = exact(rho, "rho")
    if number.sign <= 0:
        raise expected("rho", rho, "> 0")
    said = f"the (epsilon, delta)-curve that {number}-zCDP implies"
    curve = _up(lambda eps: delta_of_zcdp(rho, eps).upper)
    return Guarantee("profile", said, (), curve, words=({"rho": str(number)},))


def renyi(order: Number, divergence: Number) -> Guarantee:
    """Return what a bound of a Rényi divergence implies at every ε, by the best conversion.

    To refute a point of that curve is to refute the bound; the converse fails.
    """
    from dpassay.accountant.questions.notions import delta_of_renyi

    delta_of_renyi(order, divergence, 1)  # says what is wrong with the numbers
    said = f"the (epsilon, delta)-curve that Rényi divergence {divergence} at order {order} implies"
    curve = _up(lambda eps: delta_of_renyi(order, divergence, eps).upper)
    words = {"order": str(exact(order)), "renyi": str(exact(divergence))}
    return Guarantee("profile", said, (), curve, words=(words,))


def _up(upper: Callable[[float], Any]) -> Callable[[float], float]:
    """Return a curve as doubles, rounded up."""

    @functools.cache
    def curve(epsilon: float) -> float:
        value = upper(epsilon)
        return math.nextafter(float(value), math.inf) if value else 0.0

    return curve


def _of_mechanism(mechanism: Mechanism, adjacency: Adjacency | str | None) -> Guarantee:
    profile = _profile_of(mechanism, adjacency)
    return Guarantee("mechanism", f"the profile of {mechanism!r}", (), profile, str(mechanism))


def _profile_of(
    mechanism: Mechanism, adjacency: Adjacency | str | None
) -> Callable[[float], float]:
    from dpassay.accountant.questions.profile import delta

    relation = Adjacency.read(adjacency)

    width = Fraction(1, 10**12)
    return _up(lambda eps: delta(mechanism, eps, adjacency=relation, relative_width=width).upper)


def _of_mapping(claim: Mapping[str, Any], adjacency: Adjacency | str | None) -> Guarantee:
    keys = set(claim)
    if keys in ({"epsilon"}, {"epsilon", "delta"}):
        return epsilon_delta(claim["epsilon"], claim.get("delta", 0))
    if keys == {"mu"}:
        return gaussian(claim["mu"])
    if keys == {"rho"}:
        return zcdp(claim["rho"])
    if keys == {"order", "renyi"}:
        return renyi(claim["order"], claim["renyi"])
    if keys == {"profile"}:
        return guarantee(claim["profile"], adjacency=adjacency)
    raise InvalidInputError(
        f"Expected a claim with epsilon (and delta), mu, rho, order and renyi, or profile, not "
        f"{sorted(keys)}. Write 1,1e-5 or mu=0.5 or rho=0.1 or order=8,renyi=0.5."
    )


def _of_points(entries: Sequence[tuple[Number, Number]]) -> Guarantee:
    if not entries:
        raise InvalidInputError("Expected a claim with at least one point (epsilon, delta).")
    points = tuple(_point(*entry) for entry in entries)
    shown = ", ".join(f"({_text(p.epsilon)}, {_text(p.delta)})" for p in points)
    words = tuple({"epsilon": str(exact(e)), "delta": str(exact(d))} for e, d in entries)
    return Guarantee("epsilon-delta", f"{shown}-DP", points, words=words)


def _point(epsilon: Number, delta: Number) -> Point:
    eps, bound = exact(epsilon, "epsilon"), exact(delta, "delta")
    if eps.sign < 0:
        raise expected("epsilon", epsilon, "≥ 0")
    if bound.rational is None or not 0 <= bound.rational < 1:
        raise expected("delta", delta, "in [0, 1)", "At delta = 1 every mechanism is private.")
    if eps.rational is None:  # the next rational above: a weaker claim, refuted all the more
        return Point(_above(float(eps)), bound.rational)
    return Point(eps.rational, bound.rational)


@functools.lru_cache(maxsize=1024)  # an audit asks for the same fifty again and again
def _above(value: float) -> Fraction:
    """Return a short decimal ≥ value."""
    text = Fraction(f"{value:.{_DIGITS}e}")
    return text if text >= Fraction(value) else text * (1 + Fraction(1, 10**10))


def _text(value: Fraction) -> str:
    return str(ExactReal.of_rational(value))


# --- The verdict of a statistical test, its arguments, and a dataset in one line ------------------


class Outcome(StrEnum):
    """The verdict of a statistical test."""

    REFUTED = "REFUTED"
    """The claim is false, or something of probability ≤ significance happened."""
    NOT_REFUTED = "NOT_REFUTED"
    """These runs do not refute the claim; no number of runs can prove it."""

    @staticmethod
    def of(p_value: float, significance: float) -> Outcome:
        """Return what a p-value says at a significance."""
        return Outcome.REFUTED if p_value <= significance else Outcome.NOT_REFUTED


def decided(outcome: Outcome | None, finding: Finding | None) -> Outcome | None:
    """Return the outcome of the runs, or REFUTED if the claim is known exactly to be false."""
    return Outcome.REFUTED if finding is not None and finding.refuted else outcome


def read_significance(value: Any) -> float:
    """Return a significance; raise InvalidInputError for anything else."""
    if isinstance(value, numbers.Real) and 0 < (level := float(value)) < 1:
        return level
    raise expected("significance", value, "in (0, 1)", "Write 0.05, or 1e-6 for a proof.")


def read_count(value: Any, name: str = "samples") -> int:
    """Return a whole number; raise InvalidInputError for anything else."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and (number := float(value)).is_integer():
        return int(number)
    raise expected(name, value, "to be a whole number")


def read_seed(value: Any) -> int:
    """Return a seed, which is drawn if it is None; raise InvalidInputError for anything else."""
    if value is None:
        return secrets.randbits(63)
    if (seed := read_count(value, "seed")) >= 0:
        return seed
    raise expected("seed", value, "≥ 0")


def in_one_line(dataset: Any) -> str:
    """Return a dataset as one line of text, shortened."""
    text = repr(dataset.tolist()) if hasattr(dataset, "tolist") else repr(dataset)
    if "\n" in text:  # a table of pandas
        text = " ".join(text.split())
    return shortened(text)

"""Products of laws for the checker: compositions, subsampled or not, as plain data.

A law is taken apart into independent losses (`parts`), whose joint answers are enclosed by the
first route that there is:

- a contour integral where a factor is Gaussian, subsampled or not, or where Laplace noise is
  released so often that its atoms do not count (`compositions.contour`);
- an exact sum over the circle where all losses lie on one lattice (`compositions.circle`);
- all sums of losses on other lists (`compositions.lists`);
- where that would take too long, or gives nothing, for few releases two laws on a grid
  (`compositions.grid`), which enclose H(ε) to a few digits;
- else Chernoff's bound: H(ε), P(L > ε) and e^ε Q(L > ε) are
  at most M(s) e^{−sε} for every s ≥ 0. It is an upper bound only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, final

from mpmath import iv, mp

from accountant.numbers.precision import ctx
from verify.checker.arithmetic import (
    AGREEMENT,
    FewDigitsError,
    UnknownError,
    agree,
    compare,
    interval_digits,
    largest,
    rounded,
    total,
)
from verify.checker.compositions.circle import invert as sum_on_circle
from verify.checker.compositions.circle import lattice
from verify.checker.compositions.contour import Answers, bounded, infinite_mass, log_upper, nothing
from verify.checker.compositions.contour import invert as integrate
from verify.checker.compositions.grid import enclose as on_grid
from verify.checker.compositions.lists import add_up
from verify.checker.compositions.mixtures import Mixture
from verify.checker.compositions.moments import DiscreteNormal, Factor, Laplace, Listed, Normal
from verify.checker.compositions.samples import of_large_losses
from verify.checker.declared import BY_LAW
from verify.checker.integrals import laplace_work
from verify.checker.masses import masses, mixed
from verify.checker.reals import INFINITE, Real, exp, log

Law: TypeAlias = dict[str, Any]


_MOST_TERMS = 4_000_000
"""Most terms of Laplace laws that are added up exactly: about a hundred equal ones."""
DIGITS = 100
"""Working precision, which numbers in a law need, too."""
_MOST_PARTS = 200
"""Different parts of a composition: more take too long to add up."""
_NEEDED_BITS = 330
"""Bits to which masses must be known for losses to be told apart."""
_ROUNDED_DIGITS = 60
"""Digits that the numbers of an answer keep beyond all errors that it has bounds of."""
_RENYI_DIGITS = 60
"""Digits of M beyond which its bound is above it; five are allowed for."""


def composite(law: Law) -> bool:
    """Whether a law is a product that has intervals for answers."""
    if law["law"] == "laplace-product":
        return laplace_work(law["distances"]) > _MOST_TERMS
    if law["law"] == "gaussian-mixture":
        return not two_sided(law)
    return law["law"] in ("product", "discrete-gaussian-product")


def two_sided(law: Law) -> bool:
    """Whether a law compares two mixtures, whose tails are looked up."""
    return law["law"] == "gaussian-mixture" and min(len(law["p"]), len(law["q"])) > 1


def intervals(law: Law) -> bool:
    """Whether a law has intervals for all, or for some of its answers."""
    return composite(law) or law["law"] == "subsampled"


def nested(law: Mapping[str, Any]) -> dict[str, Any]:
    """Read the laws within a law, which are JSON texts."""
    found = dict(law)
    if isinstance(found.get("pair"), str):
        found["pair"] = json.loads(found["pair"])
    if "factors" in found:
        found["factors"] = [json.loads(text) for text in found["factors"]]
    if found.get("law") == "gaussian-mixture":
        found |= {side: json.loads(found[side]) for side in ("p", "q")}
    return found


def answers(law: Law, epsilon: Any) -> Answers:
    """Enclose H(ε), P(L > ε) and Q(L > ε) of a product.

    Raises FewDigitsError for numbers that are known to fewer digits than a product needs.
    """
    with mp.workdps(DIGITS), interval_digits(DIGITS):
        _require_digits([law, epsilon])
        factors = _losses(law)
        if compare(epsilon, ">=", largest_loss(law, finite=True)):
            return _widened(nothing(factors), Fraction(0))
        apart = sum(n for factor, n in factors if isinstance(factor, (Listed, DiscreteNormal)))
        return _widened(_answers(factors, _plain(epsilon)), apart * AGREEMENT * 10)


def _widened(found: Answers, moved: Fraction) -> Answers:
    """Allow for the rounding of parameters and masses, and for losses that may be moved so far.

    H(ε) has the slope −e^ε Q(L > ε), which is at most P(L > ε) in size. The two tails are those of
    the event {L > ε'} for an ε' that is so near to ε: every event bounds H(ε) from below.
    """
    rounding = iv.mpf([-1, 1]) * mp.mpf(10) ** -_ROUNDED_DIGITS

    def around(value: Any, more: Any = 0) -> Any:
        wide = value + value.b * rounding + iv.mpf([-1, 1]) * more
        return iv.mpf([max(wide.a, mp.zero), wide.b])

    stick = around(found.hockey_stick, rounded(moved) * found.above_p.b)
    return Answers(stick, around(found.above_p), around(found.above_q))


def _plain(value: Any) -> Any:
    """Return a parameter of a law as it is if it is rational, else rounded by mpmath."""
    return rounded(value) if isinstance(value, Real) else value


def _require_digits(value: Any) -> None:
    """Raise FewDigitsError where a number is known to fewer digits than a product needs."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for entry in value:
            _require_digits(entry)
    elif isinstance(value, Real):
        with ctx.workprec(max(ctx.prec, 2 * _NEEDED_BITS)):
            if value.ball.rel_accuracy_bits() < _NEEDED_BITS:
                raise FewDigitsError("the law of a composition with irrational parameters")


def largest_loss(law: Law, *, finite: bool = False) -> Any:
    """Return the supremum of the loss of a pair, or of its finite values alone."""
    if law["law"] in BY_LAW:
        return BY_LAW[law["law"]].largest_loss(law)
    match law["law"]:
        case "product":
            pieces = zip(law["factors"], law["counts"], strict=True)
            found = [(largest_loss(factor, finite=finite), int(n)) for factor, n in pieces]
            if not any(loss is INFINITE for loss, _ in found):
                return total([n * loss for loss, n in found])
        case "laplace":
            return law["distance"]
        case "laplace-product" | "several-positions":
            return sum(law["distances"], start=Fraction(0))
        case "discrete-laplace":
            return law["shift"] / law["scale"]
        case "finite":
            charged = [(p, q) for p, q in masses(law) if p and (q or not finite)]
            if all(q for _, q in charged):
                return log(largest([p / q for p, q in charged]))
        case "subsampled":  # as Q the mixture has mass wherever P has
            q, first = law["sampling_prob"], law["mixture"] == "P"
            inner = largest_loss(law["pair"], finite=finite and first)
            if inner is INFINITE:
                return inner if first else -log(1 - q)
            moved = log(1 + q * (exp(inner if first else -inner) - 1))
            return moved if first else -moved
        case "gaussian-mixture" if len(law["p"]) == 1 < len(law["q"]):
            return -log(sum((w for w, mean in law["q"] if not mean), start=Fraction(0)))
        case "gaussian" if not law["mu"]:
            return Fraction(0)
    return INFINITE


@final
@dataclass(frozen=True)
class TwoMixtures:
    """The loss between two mixtures of normal laws, weights and means; products are not known."""

    p: tuple[tuple[Any, Any], ...]
    q: tuple[tuple[Any, Any], ...]


def _losses(law: Law) -> tuple[tuple[Factor, int], ...]:
    """Take apart a law whose parts all have a transform."""
    found = []
    for factor, count in parts(law):
        if isinstance(factor, TwoMixtures):
            raise UnknownError("the law of this mixture")
        found.append((factor, count))
    return tuple(found)


@lru_cache(maxsize=256)
def _answers(factors: tuple[tuple[Factor, int], ...], epsilon: Any) -> Answers:
    try:
        if any(isinstance(factor, (Normal, Mixture, Laplace)) for factor, _ in factors):
            return integrate(factors, epsilon)
        grid = lattice(factors)
        if grid is not None:
            return sum_on_circle(factors, grid, epsilon)
        return add_up(factors, epsilon)
    except (UnknownError, OverflowError):  # too long, or beyond the range of floats
        pass
    try:
        return on_grid(factors, epsilon)
    except (UnknownError, OverflowError):
        return bounded(factors, epsilon)


def renyi(law: Law, order: Any) -> Any:
    """Enclose the Rényi divergence of an order above 1: ln M(order − 1)/(order − 1).

    None stands for infinity.
    """
    if order <= 1:
        raise UnknownError("the Kullback–Leibler divergence of a composition")
    with mp.workdps(DIGITS), interval_digits(DIGITS):
        _require_digits(law)
        return _renyi(_losses(law), order)


@lru_cache(maxsize=64)
def _renyi(factors: tuple[tuple[Factor, int], ...], order: Fraction) -> Any:
    if infinite_mass(factors):
        return None
    if [count for _, count in factors] == [1] and isinstance(factors[0][0], Mixture):
        mixture = factors[0][0]
        extreme = of_large_losses(list(mixture.parts), order) if mixture.first else None
        if extreme is not None:
            return extreme
    line = mp.mpf(order.numerator) / order.denominator - 1
    above = log_upper(factors, line, _RENYI_DIGITS)
    width = sum(count for _, count in factors) * mp.mpf(10) ** (5 - _RENYI_DIGITS)
    return iv.mpf([above - width, above]) / iv.mpf(line)


def parts(law: Law) -> list[tuple[Factor | TwoMixtures, int]]:
    """Take a law apart; equal parts are counted, Gaussian ones become one."""
    found: list[tuple[Factor | TwoMixtures, int]] = []
    for factor, count in map(_one_normal, _factors(law)):
        for index, (known, times) in enumerate(found):
            if isinstance(known, Normal) and isinstance(factor, Normal):
                squares = mp.mpf(known.mu) ** 2 + mp.mpf(factor.mu) ** 2
                found[index] = (Normal(mp.sqrt(squares)), 1)
                break
            if _equal(known, factor):
                found[index] = (known, times + count)
                break
        else:
            found.append((factor, count))
            if len(found) > _MOST_PARTS:
                raise UnknownError(f"the law of a composition of over {_MOST_PARTS} different ones")
    return found


def _one_normal(part: tuple[Factor | TwoMixtures, int]) -> tuple[Factor | TwoMixtures, int]:
    """Return several Gaussian laws of one μ as one law."""
    factor, count = part
    if not isinstance(factor, Normal) or count == 1:
        return part
    return Normal(mp.sqrt(count) * mp.mpf(factor.mu)), 1


def alike(one: Law, other: Law) -> bool:
    """Whether two laws have the same parts, in any order, to 38 digits."""
    with mp.workdps(DIGITS):
        left, right = parts(one), parts(other)
        matches = [
            [
                j
                for j, (candidate, times) in enumerate(right)
                if times == count and _equal(factor, candidate)
            ]
            for factor, count in left
        ]
    return len(left) == len(right) and sorted(j for row in matches for j in row) == [
        *range(len(right))
    ]


def _equal(one: Factor | TwoMixtures, other: Factor | TwoMixtures) -> bool:
    def same(left: Any, right: Any) -> bool:
        if isinstance(left, tuple):
            return len(left) == len(right) and all(map(same, left, right))
        return left == right or agree(left, right)

    return type(one) is type(other) and same((*vars(one).values(),), (*vars(other).values(),))


def _factors(law: Law) -> list[tuple[Factor | TwoMixtures, int]]:
    match law["law"]:
        case "product":
            pieces = zip(law["factors"], law["counts"], strict=True)
            return [(f, n * int(count)) for piece, count in pieces for f, n in _factors(piece)]
        case "gaussian":
            mu = _plain(law["mu"])
            whole = Fraction(1), Fraction(1)
            return [(Normal(mu), 1)] if mu else [(Listed((whole,)), 1)]
        case "laplace":
            return [(Laplace(_plain(law["distance"])), 1)]
        case "laplace-product":
            return [(Laplace(_plain(distance)), 1) for distance in law["distances"]]
        case "discrete-gaussian":
            return [(DiscreteNormal(_plain(law["parameter"]), int(law["shift"])), 1)]
        case "discrete-gaussian-product":
            v, q = _plain(law["parameter"]), law["scale"]
            found: list[tuple[Factor | TwoMixtures, int]] = [
                (DiscreteNormal(v, int(law["shift"])), int(law["count"]))
            ]
            if law["last_shift"]:
                last = _plain(law["parameter"] * q * q)
                found.append((DiscreteNormal(last, int(law["last_shift"])), 1))
            return found
        case "gaussian-mixture":
            return [(_mixture(law), 1)]
        case "subsampled":
            return [(_subsampled(law), 1)]
        case "finite" | "discrete-laplace":
            return [(_listed(masses(law)), 1)]
    raise UnknownError(f"probabilities of the law {law['law']!r}")


def _subsampled(law: Law) -> Factor:
    """Return the loss of one subsampled release."""
    q, inner = law["sampling_prob"], law["pair"]
    if not 0 < q < 1 or law["mixture"] not in ("P", "Q"):
        raise ValueError("the law of a subsampled release is malformed")
    if inner["law"] == "gaussian":
        parts = (_plain(1 - q), Fraction(0)), (_plain(q), _plain(inner["mu"]))
        return Mixture(parts, law["mixture"] == "P")
    return _listed(_mixed(law))


def _mixed(law: Law) -> list[tuple[Any, Any]]:
    q, first = law["sampling_prob"], law["mixture"] == "P"
    return [mixed(a, b, q, first=first) for a, b in masses(law["pair"])]


def _mixture(law: Law) -> Factor | TwoMixtures:
    """Return the loss of a mixture of shifted normal laws and N(0, 1), in either order, or both."""
    if two_sided(law):
        sides = (law[side] for side in ("p", "q"))
        return TwoMixtures(*(tuple((_plain(w), _plain(m)) for w, m in side) for side in sides))
    first = len(law["q"]) == 1
    shifted, plain = (law["p"], law["q"]) if first else (law["q"], law["p"])
    sign = -1 if any(mean < 0 for _, mean in shifted) else 1  # x → −x changes nothing
    entries = sorted((sign * mean, weight) for weight, mean in shifted)
    if [[Fraction(1), Fraction(0)]] != plain or entries[0][0] != 0 or len(entries) < 2:
        raise UnknownError("the law of this mixture")
    return Mixture(tuple((_plain(weight), _plain(mean)) for mean, weight in entries), first)


def _listed(pairs: list[tuple[Any, Any]]) -> Factor:
    """Return the loss of a law on a list, outcomes of one loss together."""
    infinite = mp.fsum(rounded(p) for p, q in pairs if p and not q)
    plain = [(_plain(p), _plain(q)) for p, q in pairs if p and q]
    charged = sorted((mp.mpf(p) / q, p, q) for p, q in plain)
    found: list[tuple[Any, Any]] = []
    last = None
    for ratio, p, q in charged:
        if last is not None and agree(ratio, last):
            found[-1] = (found[-1][0] + p, found[-1][1] + q)
        else:
            found.append((p, q))
        last = ratio
    if not found:
        raise UnknownError("a law without finite losses")
    return replace(Listed(tuple(found)), infinite=infinite)

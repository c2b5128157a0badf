"""Products of laws for the checker: compositions, subsampled or not, as plain data.

A law is taken apart into independent losses (`parts`), whose joint answers are enclosed by the
first route that there is:

- a contour integral where a factor is Gaussian, subsampled or not, or where Laplace noise is
  released so often that its atoms do not count (`compositions.contour`);
- the same, which has no end there, where all losses lie on one lattice;
- all sums of losses on other lists (`compositions.lists`);
- where that would take too long, or gives nothing, for few releases two laws on a grid
  (`compositions.grid`), which enclose H(ε) to a few digits;
- else Chernoff's bound: H(ε), P(L > ε) and e^ε Q(L > ε) are at most M(s) e^{−sε} for every s ≥ 0.
  It is an upper bound only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, final

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.arithmetic import AGREEMENT, largest, total
from dpassay.verifier.checker.compositions.allocation import Allocation
from dpassay.verifier.checker.compositions.contour import (
    Answers,
    bounded,
    infinite_mass,
    log_moments,
    on_lattice,
)
from dpassay.verifier.checker.compositions.contour import invert as integrate
from dpassay.verifier.checker.compositions.grid import enclose as on_grid
from dpassay.verifier.checker.compositions.lists import add_up
from dpassay.verifier.checker.compositions.losses import (
    BITS,
    Factor,
    Factors,
    Laplace,
    Listed,
    Normal,
    discrete_normal,
    is_known,
    text,
)
from dpassay.verifier.checker.compositions.mixtures import Mixture
from dpassay.verifier.checker.compositions.samples import of_large_losses
from dpassay.verifier.checker.declared import BY_LAW
from dpassay.verifier.checker.integrals import laplace_work
from dpassay.verifier.checker.masses import masses, mixed
from dpassay.verifier.checker.reals import (
    INFINITE,
    FewDigitsError,
    Real,
    UnknownError,
    ball,
    compare,
    exp,
    log,
)

Law: TypeAlias = dict[str, Any]

_CONTINUOUS = (Allocation, Laplace, Mixture, Normal)
"""Losses that are no list."""
_MOST_TERMS = 4_000_000
"""Most terms of Laplace laws that are added up exactly: about a hundred equal ones."""
_MOST_PARTS = 200
"""Different parts of a composition: more take too long to add up."""
_LISTS = ("finite", "discrete-laplace")
"""Laws of which the masses are listed."""
_SEVERAL = 2
"""Gaussian releases from which on they are added up."""
_RENYI_DIGITS = 60
"""Digits to which M is known."""


def composite(law: Law) -> bool:
    """Whether a law is a product that has intervals for answers."""
    if law["law"] == "laplace-product":
        return laplace_work(law["distances"]) > _MOST_TERMS
    if law["law"] == "gaussian-mixture":
        return not two_sided(law)
    return law["law"] in ("product", "random-allocation")


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
    if compare(epsilon, ">=", largest_loss(law)):  # whatever the laws of the parts are
        return Answers(arb(0), arb(0), arb(0))
    factors = _losses(law)
    if compare(epsilon, ">=", largest_loss(law, finite=True)):
        mass = infinite_mass(factors)
        return Answers(mass, mass, arb(0))
    return _answers(factors, text(epsilon))


def _widened(found: Answers, factors: Factors, epsilon: str, moved: arb) -> Answers:
    """Allow for outcomes that are left out, and for losses that are moved so far.

    H(ε) has the slope −e^ε Q(L > ε), which is at most P(L > ε) in size: a loss that is moved from
    above ε to it adds at most so much of P(L > ε − m), for which there is Chernoff's bound. The two
    tails are those of the event {L > ε'} for an ε' that is so near to ε: every event bounds H(ε)
    from below. What is left out has at most e^{−ε} times as much of Q.
    """
    left_out = (count * arb(factor.missing) for factor, count in factors)
    lost, aside = arb(0).union(sum(left_out, arb(0))), arb(0, moved.upper())
    around = lost
    if not moved.is_zero():
        around += aside * bounded(factors, text(arb(epsilon) - moved.upper())).above_p.upper()
    stick = found.hockey_stick + around
    tail = found.above_q * aside.exp() + (-arb(epsilon)).exp() * lost
    return Answers(stick.max(arb(0)), found.above_p + lost, tail)


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
        case "laplace-product":
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
class Other:
    """The loss of a law of which no product is known: what it is called, and its numbers."""

    words: tuple[Any, ...]
    numbers: tuple[Any, ...]


Parts: TypeAlias = list[tuple[Factor | Other, int]]
"""Losses, and how often each is released."""


def _losses(law: Law) -> Factors:
    """Take apart a law whose parts all have a transform, and known numbers."""
    with ctx.workprec(max(ctx.prec, BITS)):
        found = parts(law)
        for factor, _ in found:
            if isinstance(factor, Other):
                raise UnknownError(f"probabilities of the law {factor.words[0]!r}")
            if not is_known(factor):
                raise FewDigitsError("the law of a composition with irrational parameters")
        return tuple(found)  # type: ignore[arg-type]  # none is of two mixtures


@lru_cache(maxsize=256)
def _answers(factors: Factors, epsilon: str) -> Answers:
    apart = sum(count for factor, count in factors if isinstance(factor, Listed))
    with ctx.workprec(BITS):
        found, moved = _enclosed(factors, epsilon)
        return _widened(found, factors, epsilon, moved + ball(apart * AGREEMENT * 10))


def _enclosed(factors: Factors, epsilon: str) -> tuple[Answers, arb]:
    """Return the answers, and how far losses were moved."""
    none = arb(0)
    try:
        if any(isinstance(factor, _CONTINUOUS) for factor, _ in factors):
            alone = [count for _, count in factors] == [1]
            if alone and not isinstance(factors[0][0], Allocation):
                p, q = factors[0][0].tails(arb(epsilon))
                return Answers(p - arb(epsilon).exp() * q, p, q), none
            return integrate(factors, epsilon), none
        return on_lattice(factors, epsilon) or (add_up(factors, epsilon), none)
    except (UnknownError, OverflowError):  # too long, or beyond the range of floats
        pass
    try:
        return on_grid(factors, epsilon), none
    except (UnknownError, OverflowError):
        return bounded(factors, epsilon), none


def renyi(law: Law, order: Any) -> Any:
    """Enclose the Rényi divergence of an order above 1: ln M(order − 1)/(order − 1).

    None stands for infinity.
    """
    if order <= 1:
        raise UnknownError("the Kullback–Leibler divergence of a composition")
    return _renyi(_losses(law), order)


@lru_cache(maxsize=64)
def _renyi(factors: Factors, order: Fraction) -> Any:
    with ctx.workprec(BITS):
        if not all(arb(factor.missing) == 0 for factor, _ in factors):
            raise UnknownError("the Rényi divergence of this composition")
        if not all(arb(factor.infinite) == 0 for factor, _ in factors):
            return None
        if [count for _, count in factors] == [1] and isinstance(factors[0][0], Mixture):
            mixture = factors[0][0]
            extreme = of_large_losses(mixture.exact(), ball(order)) if mixture.first else None
            if extreme is not None:
                return Real(extreme)
        less = ball(order - 1)
        if not all(factor.close(less) for factor, _ in factors):
            raise UnknownError("a Rényi divergence of this order of random allocation")
        return Real(log_moments(factors, less, _RENYI_DIGITS) / less)


def parts(law: Law) -> Parts:
    """Take a law apart; equal parts are counted, Gaussian ones become one.

    Parts are equal where all their numbers are the same balls, which enclose both of them: parts
    that are only nearly equal count on their own.
    """
    counts: dict[Factor | Other, int] = {}
    for factor, count in _factors(law):
        counts[factor] = counts.get(factor, 0) + count
        if len(counts) > _MOST_PARTS:
            raise UnknownError(f"the law of a composition of over {_MOST_PARTS} different ones")
    normal = {factor: n for factor, n in counts.items() if isinstance(factor, Normal)}
    if sum(normal.values()) < _SEVERAL:
        return list(counts.items())
    squares = sum((n * arb(factor.mu) ** 2 for factor, n in normal.items()), arb(0))
    rest = [(factor, n) for factor, n in counts.items() if factor not in normal]
    return [(Normal(text(squares.sqrt())), 1), *rest]


def alike(one: Law, other: Law) -> bool:
    """Whether two laws have the same parts, in any order, to 38 digits. It proves nothing."""
    with ctx.workprec(BITS):
        left, right = parts(one), parts(other)
        while left:
            own = left[0][0]
            same = [[part for part in side if _equal(part[0], own)] for side in (left, right)]
            if len({sum(count for _, count in side) for side in same}) > 1:
                return False
            left, right = (
                [part for part in side if part not in found]
                for side, found in zip((left, right), same, strict=True)
            )
    return not right


def _equal(one: Factor | Other, other: Factor | Other) -> bool:
    def same(left: Any, right: Any) -> bool:
        if isinstance(left, tuple):
            return len(left) == len(right) and all(map(same, left, right))
        return left == right or (isinstance(left, str) and _agree(arb(left), arb(right)))

    if isinstance(one, Other) and isinstance(other, Other):
        return one.words == other.words and same(one.numbers, other.numbers)
    return type(one) is type(other) and same((*vars(one).values(),), (*vars(other).values(),))


def _agree(one: arb, other: arb) -> bool:
    """Whether two numbers are the same to 38 digits."""
    return not abs(one - other) > ball(AGREEMENT) * abs(one).max(abs(other))


def _factors(law: Law) -> Parts:
    match law["law"]:
        case "product":
            pieces = zip(law["factors"], law["counts"], strict=True)
            return [(f, n * int(count)) for piece, count in pieces for f, n in _factors(piece)]
        case "gaussian":
            return [(Normal(text(law["mu"])) if law["mu"] else Listed((("1", "1"),)), 1)]
        case "laplace":
            return [(Laplace(text(law["distance"])), 1)]
        case "laplace-product":
            return [(Laplace(text(distance)), 1) for distance in law["distances"]]
        case "discrete-gaussian":
            return [(discrete_normal(law["parameter"], int(law["shift"])), 1)]
        case "discrete-gaussian-product":  # as it is written: what is derived is a product
            v, q, last = law["parameter"], law["scale"], int(law["last_shift"])
            size = [(discrete_normal(v * q * q, last), 1)] if last else []
            return [(discrete_normal(v, int(law["shift"])), int(law["count"])), *size]
        case "gaussian-mixture" if not two_sided(law):
            return [(_mixture(law), 1)]
        case "subsampled" if law["pair"]["law"] in ("gaussian", *_LISTS):
            return [(_subsampled(law), 1)]
        case "random-allocation":
            return [(Allocation(text(law["mu"]), int(law["steps"]), law["mixture"] == "P"), 1)]
        case name if name in _LISTS:
            return [(_listed(masses(law)), 1)]
    return [(_other(law), 1)]


def _other(law: Law) -> Other:
    """Return the loss of any law, by its name and its parameters in the order of their names."""
    words: list[Any] = [law["law"]]

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            inner = _other(value)
            words.append(inner.words)
            return inner.numbers
        if isinstance(value, list):
            return tuple(map(read, value))
        if isinstance(value, (Real, Fraction)):
            return text(value)
        words.append(value)
        return ()

    numbers = []
    for name in sorted(law.keys() - {"law"}):
        words.append(name)
        numbers.append(read(law[name]))
    return Other(tuple(words), tuple(numbers))


def _subsampled(law: Law) -> Factor:
    """Return the loss of one subsampled release."""
    q, inner = law["sampling_prob"], law["pair"]
    if not 0 < q < 1 or law["mixture"] not in ("P", "Q"):
        raise ValueError("the law of a subsampled release is malformed")
    if inner["law"] == "gaussian":
        parts = (text(1 - q), "0"), (text(q), text(inner["mu"]))
        return Mixture(parts, law["mixture"] == "P")
    return _listed([mixed(a, b, q, first=law["mixture"] == "P") for a, b in masses(inner)])


def _mixture(law: Law) -> Factor:
    """Return the loss of a mixture of shifted normal laws and N(0, 1), in either order."""
    first = len(law["q"]) == 1
    shifted, plain = (law["p"], law["q"]) if first else (law["q"], law["p"])
    sign = -1 if any(mean < 0 for _, mean in shifted) else 1  # x → −x changes nothing
    entries = sorted((sign * mean, weight) for weight, mean in shifted)
    if [[Fraction(1), Fraction(0)]] != plain or entries[0][0] != 0 or len(entries) < 2:
        raise UnknownError("the law of this mixture")
    return Mixture(tuple((text(weight), text(mean)) for mean, weight in entries), first)


def _listed(pairs: list[tuple[Any, Any]]) -> Factor:
    """Return the loss of a law on a list, outcomes of one loss together."""
    infinite = sum((ball(p) for p, q in pairs if p and not q), arb(0))
    charged = [(ball(p), ball(q)) for p, q in pairs if p and q]
    found: list[tuple[arb, arb]] = []
    last = None
    for p, q in sorted(charged, key=lambda pair: float((pair[0] / pair[1]).log())):
        if last is not None and _agree(p / q, last):
            found[-1] = (found[-1][0] + p, found[-1][1] + q)
        else:
            found.append((p, q))
        last = p / q
    if not found:
        raise UnknownError("a law without finite losses")
    return Listed(tuple((text(p), text(q)) for p, q in found), text(infinite))

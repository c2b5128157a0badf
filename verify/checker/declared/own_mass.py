"""Noise on the integers, of masses that are written as a formula.

A shift z is the pair of k + Z and Z; of several modes every k up to the sensitivity is listed, to
both sides. Finitely many masses are a list. Else masses are added up one by one, up to where f is
known to fall: Σ f(n) from a on lies between ∫ f and ∫ f + f(a). Whether the loss exceeds ε there
follows from −(ln f)′, of which it is k times a mean. Where that is not known (p − cq)⁺, c = e^ε, is
at most p − q + (1 − c)⁺q on the right, where p ≥ q, and (1 − c)⁺p on the left, where p ≤ q. At an
integer where two pieces meet one of them holds: no mass stands alone.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, final

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.declared import line
from dpassay.verifier.checker.declared.formula import Piece, at_point, mirrored, pieces, rational
from dpassay.verifier.checker.declared.law import DeclaredLaw, Pair, unknown
from dpassay.verifier.checker.kernel.expressions import ZERO, Node
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import Real, UnknownError, ball, exp

_MOST_SHIFTS = 1000
"""Sensitivity of masses, as their mechanism allows."""
_BITS = 256
"""Of masses and sums."""
_FEW, _MOST = 1 << 6, 1 << 12
"""Masses on one side that are added up at least, and if the rest counts, at most about."""
_FARTHEST = 1 << 16
"""Ends of finitely many masses, as their mechanism allows."""
_NEGLIGIBLE = arb(2) ** -140
"""Share of all that is listed below which a rest is not computed: of more than 38 digits."""
_HALF = Fraction(1, 2)


def shifts(noise: Noise) -> list[Pair]:
    """Return the shifts of masses, to both sides: the full one alone where there is one mode."""
    distance = noise["sensitivity"]
    if noise["scale"] != 1 or distance not in range(1, _MOST_SHIFTS + 1):
        raise ValueError("masses of scale 1, and an integer sensitivity up to 1000")
    text, last = noise["mass"], int(distance)
    _require_joined(text)
    listed = _listed(text)
    found: list[Pair] = []
    for k in [last] if line.one_mode(text) else range(1, last + 1):
        if listed is None:
            law = {"law": OWN_MASS.name, "mass": text, "shift": Fraction(k)}
            found += [{**law, "mirrored": side} for side in (False, True)]
        else:
            none: list[Any] = [Fraction(0)] * k
            both = [*none, *listed], [*listed, *none]
            found += [{"law": "finite", "p": p, "q": q} for p, q in (both, both[::-1])]
    return found


def _require_joined(text: str) -> None:
    """Require of every integer where two pieces meet that one of them holds there."""
    for before, after in pairwise(pieces(text)):
        z = before.high
        if z is not None and z.denominator == 1:
            sides = [part.at(z) for part in (before, after)]
            if at_point(text, z) not in sides:
                raise UnknownError("a mass that stands alone")


def _listed(text: str) -> list[Any] | None:
    """Return finitely many masses, None where there are infinitely many."""
    inside = [part for part in pieces(text) if part.formula != ZERO]
    if not inside or inside[0].low is None or inside[-1].high is None:
        return None
    low, high = math.ceil(inside[0].low), math.floor(inside[-1].high)
    if max(-low, high) > _FARTHEST:
        raise UnknownError(f"masses beyond {_FARTHEST}")
    nodes = [at_point(text, z) for z in range(low, high + 1)]
    found: list[Any] = [rational(node) for node in nodes]
    if None in found:
        found = [Real(_value(node, z)) for z, node in enumerate(nodes, low)]
    if any(ball(mass) < 0 for mass in found):
        raise ValueError("masses below 0")
    whole = sum(found, start=Fraction(0))
    return [mass / whole for mass in found]


def _value(node: Node, z: int) -> arb:
    found = line.compiled(node)(acb(z), False).real
    if not found.is_finite():
        raise UnknownError("the masses of noise that are written as a formula")
    if found < 0:
        raise ValueError("masses below 0")
    return found


@final
class _Law:
    """Infinitely many masses f(z), or f(−z): up to `last` on both sides, and the rest."""

    def __init__(self, text: str, mirrored_: bool, least: int) -> None:
        self._text, self._way, self._known = text, -1 if mirrored_ else 1, dict[int, arb]()
        self.parts = mirrored(pieces(text)) if mirrored_ else pieces(text)
        self._least, self.last = least, math.ceil(max(map(abs, line.cuts(self.parts)))) + least
        with ctx.workprec(_BITS):
            while None in (found := [self._beyond(side) for side in (1, -1)]):
                self.last *= 2
            self.beyond = [rest for rest in found if rest is not None]
            self.whole = self.sum(-self.last, self.last) + sum(self.beyond, arb(0))

    def __call__(self, z: int) -> arb:
        if z not in self._known:
            self._known[z] = _value(at_point(self._text, self._way * z), self._way * z)
        return self._known[z]

    def sum(self, low: int, high: int) -> arb:
        """Return the sum of masses from one integer to another."""
        return sum((self(z) for z in range(low, high + 1)), arb(0))

    def _beyond(self, side: int) -> arb | None:
        """Return what is beyond the last integer on one side; None if more are to be listed."""
        tail, a = line.tails(self.parts)[0 if side > 0 else 1], Fraction(self.last + 1)
        if tail.formula == ZERO:
            return arb(0)
        falls, first = line.falls(tail, a - self._least), self(side * int(a))
        rest = line.beyond(tail, a)
        if (
            falls
            and rest is not None
            and (rest + first <= _NEGLIGIBLE * self.sum(-self.last, self.last))
        ):
            return arb(0).union(rest + first)
        if self.last < _MOST:
            return None
        if not falls:
            raise UnknownError("the tails of masses that are written as a formula")
        outside = [Piece(None, a, ZERO), Piece(a, None, tail.formula)]
        return line.mass(outside) + arb(0).union(first)

    def side(self, k: int, epsilon: Any, low: Fraction | None, high: Fraction | None) -> int:
        """Return 1 where all losses between two points are above ε, −1 where none is, else 0."""
        least, most = line.losses(self.parts, None if low is None else low - k, high)
        if most is not None and k * most <= epsilon:
            return -1
        return int(least is not None and k * least > epsilon)


@lru_cache(maxsize=64)
def _law(text: str, mirrored_: bool, least: int) -> _Law:
    return _Law(text, mirrored_, least)


@lru_cache(maxsize=4096)
def _answers(text: str, k: int, mirrored_: bool, epsilon: Any) -> tuple[Real, Real, Real]:
    """Return P(L > ε), Q(L > ε) and H(ε)."""
    law = _law(text, mirrored_, _FEW if k <= _FEW else _MOST_SHIFTS)
    with ctx.workprec(_BITS):
        c, n, none = ball(exp(epsilon)), law.last, arb(0)
        if law.side(k, epsilon, None, None) < 0:
            return Real(none), Real(none), Real(none)
        right, left = law.beyond
        near, rest = law.sum(n + 1 - k, n), (1 - c).max(none)
        found = [
            (left, left + law.sum(-n, k - n - 1), left * rest,
             law.side(k, epsilon, None, Fraction(k - n - 1))),
            (right + near, right, near + right * rest,
             law.side(k, epsilon, Fraction(n + 1), None)),
        ]  # fmt: skip
        for z in range(k - n, n + 1):
            p, q = law(z - k), law(z)
            sign = 1 if p > c * q else -1 if p <= c * q else 0
            found.append((p, q, p - c * q, sign or law.side(k, epsilon, z - _HALF, z + _HALF)))
        sums = [none, none, none]
        for p, q, most, sign in found:
            for i, value in enumerate((p, q, p - c * q) if sign > 0 else (p, q, most)):
                sums[i] += value if sign > 0 else none.union(value.max(none)) if not sign else none
    return tuple(Real(each / law.whole) for each in sums)  # type: ignore[return-value]  # of three


def _asked(pair: Pair, epsilon: Any) -> tuple[Real, Real, Real]:
    return _answers(pair["mass"], int(pair["shift"]), pair["mirrored"], epsilon)


OWN_MASS = DeclaredLaw(
    name="own-mass",
    parameters=("mass", "shift", "mirrored"),
    tails=lambda pair, epsilon: _asked(pair, epsilon)[:2],
    largest_loss=unknown("the largest loss of masses that are written as a formula"),
    hockey_stick=lambda pair, epsilon: _asked(pair, epsilon)[2],
)

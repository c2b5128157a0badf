"""The sign of a polynomial in atoms over the domain of a proof.

A polynomial is split into factors. The sign of a factor comes from its range over the domain, or
from its coefficients: each atom with two ends a and b is written (a·u + b·t)/(u + t), one with one
end as a + t or b − t, with t, u ≥ 0. If then all coefficients are ≥ 0, so is the polynomial; it is
> 0 if at every corner some monomial does not vanish.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from dpassay.verifier.ranges.expressions import Budget, ProofError
from dpassay.verifier.ranges.polynomials import (
    ATOMS,
    GENERATORS,
    ONE,
    Polynomial,
    Ratio,
    coefficients,
    factors,
    homogeneous,
    rational,
    used,
    value_of,
)
from dpassay.verifier.ranges.ranges import Range, fraction

Sign: TypeAlias = tuple[int, bool] | None
"""(1, strict), (−1, strict), (0, False) for zero, or None where it is not known."""
_MOST_CORNERS: Final = 4096


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """The ends of an atom, as ratios in earlier atoms, and whether they are open."""

    low: Ratio | None
    high: Ratio | None
    low_open: bool = False
    high_open: bool = False


@final
@dataclass(slots=True)
class Signs:
    """Atoms in the order of their dependence, with ranges and ends."""

    budget: Budget
    ranges: dict[int, Range] = field(default_factory=dict)
    bounds: dict[int, Bounds] = field(default_factory=dict)
    _known: dict[str, Sign] = field(default_factory=dict)
    _learnt: dict[str, Sign] = field(default_factory=dict)

    def add(self, atom: int, found: Range, bounds: Bounds | None = None) -> None:
        """Take an atom, after every atom that its ends use."""
        if bounds is None:
            low = None if not found.low.is_finite() else Ratio.number(fraction(found.low))
            high = None if not found.high.is_finite() else Ratio.number(fraction(found.high))
            bounds = Bounds(low, high, found.low_open, found.high_open)
        self.ranges[atom] = found
        self.bounds[atom] = bounds

    def ratio(self, value: Ratio) -> Sign:
        """Return the sign of a ratio whose lower polynomial is known not to vanish."""
        return product([self.of(value.top), self.of(value.bottom)])

    def of(self, polynomial: Polynomial) -> Sign:
        """Return the sign of a polynomial over the domain."""
        if polynomial.is_constant():
            value = value_of(polynomial)
            return (0, False) if value == 0 else (1 if value > 0 else -1, True)
        key = str(polynomial)
        if key not in self._known:
            unit, parts = factors(polynomial)
            signs: list[Sign] = [(1 if unit > 0 else -1, True)]
            for part, exponent in parts:
                found = self._factor(part)
                if exponent % 2 == 0:
                    found = (1, found is not None and found[1])
                signs.append(found)
            self._known[key] = product(signs)
        return self._known[key]

    def learn(self, value: Ratio, sign: Sign) -> None:
        """Take the sign of a ratio that was found otherwise, where it tells that of one factor."""
        if sign is None or not sign[1]:
            return
        unit, top = factors(value.top)
        lower = self.of(value.bottom)
        unknown = []
        rest: list[Sign] = [sign, lower, (1 if unit > 0 else -1, True)]
        for part, exponent in top:
            found = self.of(part)
            if found is None or not found[1]:
                unknown.append((part, exponent))
            elif exponent % 2:
                rest.append(found)
        whole = product(rest)
        if len(unknown) == 1 and unknown[0][1] % 2 and whole is not None and whole[1]:
            self._known[str(unknown[0][0])] = whole
            self._learnt[str(unknown[0][0])] = whole
            self._known = dict(self._learnt)

    def _factor(self, part: Polynomial) -> Sign:
        self.budget.spend(len(part))
        if str(part) in self._learnt:
            return self._learnt[str(part)]
        found = self._by_range(part)
        if found is not None and found[1]:
            return found
        by_coefficients = self._by_coefficients(part)
        return found if by_coefficients is None else by_coefficients

    def range_of(self, polynomial: Polynomial) -> Range:
        """Return the range of a polynomial, monomial by monomial."""
        total = Range.exact(0)
        for monomial, coefficient in polynomial.terms():
            term = Range.exact(rational(coefficient))
            for atom, exponent in enumerate(monomial):
                if exponent:
                    term = term * self.ranges[atom] ** int(exponent)
            total = total + term
        return total

    def _by_range(self, part: Polynomial) -> Sign:
        try:
            return self.range_of(part).sign()
        except ProofError:
            return None

    def _by_coefficients(self, part: Polynomial) -> Sign:
        try:
            return self._slacks(part)
        except ProofError:
            return None

    def _slacks(self, part: Polynomial) -> Sign:
        """Replace every atom by its ends and slacks, the last one first, and look at the signs."""
        if any(atom not in self.ranges for atom in used(part)):
            return None
        slots = iter(range(ATOMS - 1, max(self.ranges, default=0), -1))
        corners: list[list[dict[int, bool]]] = []
        order = list(self.ranges)
        for atom in reversed(order):
            if part.degrees()[atom] <= 0:
                continue
            part, states = self._without(part, atom, slots)
            corners.append(states)
        if any(atom in self.ranges for atom in used(part)):
            return None  # an end uses an atom that comes after it
        remaining = [rational(c) for _, c in part.terms()]
        if not remaining:
            return (0, False)
        if min(remaining) < 0 < max(remaining):
            return None
        sign = 1 if remaining[0] > 0 else -1
        return sign, self._is_strict(part, corners)

    def _without(
        self, part: Polynomial, atom: int, slots: Iterable[int]
    ) -> tuple[Polynomial, list[dict[int, bool]]]:
        """Return a positive multiple with slacks in the place of an atom, and its corners.

        A corner says of each slack whether it is positive there.
        """
        ends, supply = self.bounds[atom], iter(slots)

        def slack() -> int:
            found = next(supply, None)
            if found is None:
                raise ProofError("too many atoms")
            return found

        for end in (ends.low, ends.high):
            if end is not None and self.of(end.bottom) != (1, True):
                raise ProofError("an end has a divisor of unknown sign")
        t = slack()
        if ends.low is not None and ends.high is not None:
            u = slack()
            low, high = ends.low, ends.high
            top = low.top * high.bottom * GENERATORS[u] + high.top * low.bottom * GENERATORS[t]
            bottom = low.bottom * high.bottom * (GENERATORS[u] + GENERATORS[t])
            states = [{t: True, u: True}] if ends.low_open and ends.high_open else []
            states += [] if ends.low_open else [{t: False, u: True}]
            states += [] if ends.high_open else [{t: True, u: False}]
        elif ends.low is not None:
            top = ends.low.top + ends.low.bottom * GENERATORS[t]
            bottom, states = ends.low.bottom, [{t: ends.low_open}]
        elif ends.high is not None:
            top = ends.high.top - ends.high.bottom * GENERATORS[t]
            bottom, states = ends.high.bottom, [{t: ends.high_open}]
        else:
            u = slack()
            top, bottom, states = GENERATORS[t] - GENERATORS[u], ONE, [{t: False, u: False}]
        return homogeneous(coefficients(part, atom), top, bottom), states

    def _is_strict(self, part: Polynomial, corners: list[list[dict[int, bool]]]) -> bool:
        """Whether at every corner some monomial does not vanish."""
        count = 1
        for states in corners:
            count *= len(states)
        if count > _MOST_CORNERS:
            return False
        supports = [
            frozenset(i for i, exponent in enumerate(monomial) if exponent)
            for monomial in part.monoms()
        ]
        for choice in itertools.product(*corners):
            zero = {slot for state in choice for slot, positive in state.items() if not positive}
            if not any(support.isdisjoint(zero) for support in supports):
                return False
        return True


def product(signs: Iterable[Sign]) -> Sign:
    """Return the sign of a product."""
    sign, strict = 1, True
    for found in list(signs):
        if found == (0, False):
            return (0, False)
        if found is None:
            return None
        sign, strict = sign * found[0], strict and found[1]
    return sign, strict

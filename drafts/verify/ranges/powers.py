"""Roots, powers, logarithms and factorials as rational functions in atoms."""

from __future__ import annotations

from fractions import Fraction
from math import floor, lcm
from typing import Any, Final

from flint import fmpz

from dpassay.verifier.ranges.atoms import Atom, Atoms, key_of
from dpassay.verifier.ranges.expressions import Apply, ProofError, number, show
from dpassay.verifier.ranges.polynomials import (
    ATOMS,
    GENERATORS,
    ONE,
    Ratio,
    coefficients,
    constant,
    factors,
    multiplied,
    rational,
    used,
)
from dpassay.verifier.ranges.signs import Sign

_MOST_BITS: Final = 160
"""Of a number that is split into primes."""
_POLYNOMIAL: Final = Ratio(ONE, ONE)


class Powers(Atoms):
    """What stands under roots, in exponents and in logarithms, split into factors."""

    def root(self, value: Ratio) -> Ratio:
        """Return √value: the squares that it contains are taken out."""
        value = self.reduced(value)
        known = value.value()
        if known is not None:
            return self._root_of_number(known)
        self.require(value, 1, "what stands under a root", strict=False)
        lower = self.signs.of(value.bottom)
        if lower is None:
            raise ProofError("a divisor under a root has no known sign")
        unit, parts = factors(multiplied(value.top, value.bottom))
        outside = Ratio(ONE, ONE) / Ratio.of(value.bottom * lower[0], ONE)
        inside: list[tuple[Ratio, Sign]] = []
        for part, exponent in parts:
            piece, found = Ratio(part, ONE), self.signs.of(part)
            if exponent // 2:
                if found is None and (exponent // 2) % 2:
                    piece_root = self.other("abs", [piece])
                    outside = outside * piece_root ** (exponent // 2)
                else:
                    side = piece if found is None or found[0] >= 0 else -piece
                    outside = outside * side ** (exponent // 2)
            if exponent % 2:
                inside.append((piece, found))
        flips = 1
        for piece, found in inside:
            if found is None:
                raise ProofError("a factor under a root has no known sign")
            flips = -flips if found[0] < 0 else flips
            outside = outside * self._root_atom(-piece if found[0] < 0 else piece, 2)
        return outside * self._root_of_number(unit * flips)

    def _root_of_number(self, value: Fraction) -> Ratio:
        if value < 0:
            raise ProofError(f"the root of the negative number {value}")
        if value == 0:
            return Ratio.number(0)
        result = Ratio.number(Fraction(1, value.denominator))
        for prime, exponent in _primes(value.numerator * value.denominator):
            result = result * prime ** (exponent // 2)
            if exponent % 2:
                result = result * self._root_atom(Ratio.number(prime), 2)
        return result

    def _is_positive_base(self, base: Ratio | None) -> bool:
        return base is None or self.sign(base) == (1, True)

    def _root_atom(self, radicand: Ratio, degree: int) -> Ratio:
        inner = self.node(radicand)
        node = Apply("sqrt", (inner,))
        if degree != 2:
            node = Apply("**", (inner, number(Fraction(1, degree))))
        made = Atom(node, radicand=radicand, degree=degree)
        return Ratio.atom(self.atom(("root", key_of(radicand), degree), made))

    def exponential(self, exponent: Ratio) -> Ratio:
        """Return e^exponent; e^(c log b) is b^c."""
        exponent = self.reduced(exponent)
        result = Ratio.number(1)
        if exponent.bottom == ONE:
            for atom in used(exponent.top):
                argument = self.atoms[atom].argument
                parts = coefficients(exponent.top, atom)
                if argument is None or len(parts) != 2:
                    continue
                result = result * self.power(argument, Ratio(parts[1], ONE))
                exponent = Ratio(parts[0], ONE)
        return result * self.power_of(None, exponent)

    def power(self, base: Ratio, exponent: Ratio) -> Ratio:
        """Return base**exponent."""
        base, exponent = self.reduced(base), self.reduced(exponent)
        known = exponent.value()
        if known is not None and known.denominator == 1:
            if known < 0:
                self.require(base, 0, "a divisor")
            return base ** int(known)
        if known is not None and known.denominator == 2:
            if known < 0:
                self.require(base, 1, "what stands under a root")
            return self.root(base) ** int(2 * known)
        whole = self.is_integer(exponent)
        if whole:
            self.require(base, 0, "the base of a power")
        else:
            self.require(base, 1, "the base of a power")
        unit_top, top = factors(base.top)
        unit_bottom, bottom = factors(base.bottom)
        pieces = [(Ratio(part, ONE), n) for part, n in top]
        pieces += [(Ratio(part, ONE), -n) for part, n in bottom]
        unit = unit_top / unit_bottom
        if not whole:
            signs = [self.signs.of(piece.top) for piece, _ in pieces]
            if not all(found is not None and found[1] for found in signs):
                return self.power_of(base, exponent)
            for i, found in enumerate(signs):
                if found is not None and found[0] < 0:
                    pieces[i] = (-pieces[i][0], pieces[i][1])
                    unit = -unit if pieces[i][1] % 2 else unit
        if unit < 0:
            return self.power_of(base, exponent)
        result = Ratio.number(1)
        for prime, n in _fraction_primes(unit):
            result = result * self.power_of(Ratio.number(prime), exponent * n)
        for piece, n in pieces:
            result = result * self.power_of(piece, exponent * n)
        return result

    def power_of(self, base: Ratio | None, exponent: Ratio) -> Ratio:
        """Return the product of base**(c·m) over the terms c·m of an exponent (base None: e)."""
        if base is not None:
            atoms = used(base.top)
            if base.bottom == ONE and len(atoms) == 1 and base.top == GENERATORS[atoms[0]]:
                atom = self.atoms[atoms[0]]
                if atom.exponent is not None and (
                    self._is_positive_base(atom.base)
                    or (self.is_integer(atom.exponent) and self.is_integer(exponent))
                ):
                    return self.power_of(atom.base, atom.exponent * exponent)
        if exponent.bottom != ONE:  # what is no proper fraction stands apart
            whole, rest = divmod(exponent.top, exponent.bottom)
            if not whole.is_zero():
                proper = self.power_of(base, Ratio.of(rest, exponent.bottom))
                if base is None:
                    return self.exponential(Ratio.of(whole, ONE)) * proper
                return self.power_of(base, Ratio.of(whole, ONE)) * proper
        result = Ratio.number(1)
        positive = self._is_positive_base(base)
        for monomial, coefficient in exponent.top.terms():
            term = constant(1)
            for atom_number, power in enumerate(monomial):
                if power:
                    term = term * GENERATORS[atom_number] ** int(power)
            piece = Ratio.of(term, exponent.bottom)
            if not positive and not (
                rational(coefficient).denominator == 1 and self.is_integer(piece)
            ):
                raise ProofError("a power whose base was not shown to be > 0")
            result = result * self._monomial(base, piece, coefficient)
        return result

    def _monomial(self, base: Ratio | None, monomial: Ratio, coefficient: Any) -> Ratio:
        share = rational(coefficient)
        scale = monomial.value()
        if scale is not None:
            share, monomial = share * scale, _POLYNOMIAL
            if base is not None:
                if share.denominator == 1:
                    return base ** int(share)
                root = self._root_atom(base, share.denominator)
                return root ** int(share.numerator)
        key = ("power", None if base is None else key_of(base), key_of(monomial))
        lasting = ("" if base is None else show(self.node(base)), show(self.node(monomial)))
        unit = self.memory.units.get(lasting, 1)
        if share.denominator > 1 and unit % share.denominator:
            self.memory.units[lasting] = lcm(unit, share.denominator)
            raise self.memory.restart()
        exponent = monomial * Fraction(1, unit)
        inner = self.node(exponent)
        node = Apply("exp", (inner,)) if base is None else Apply("**", (self.node(base), inner))
        whole = (
            base is not None
            and self.is_integer(base)
            and self.is_integer(exponent)
            and (self.sign(exponent) or (-1,))[0] >= 0
        )
        atom = self.atom(key, Atom(node, base=base, exponent=exponent, integer=whole))
        return Ratio.atom(atom) ** int(share * unit)

    def logarithm(self, value: Ratio) -> Ratio:
        """Return log(value) as a sum over primes and irreducible factors."""
        value = self.reduced(value)
        self.require(value, 1, "the argument of a logarithm")
        unit_top, top = factors(value.top)
        unit_bottom, bottom = factors(value.bottom)
        unit = unit_top / unit_bottom
        result = Ratio.number(0)
        for part, n in [*top, *((part, -n) for part, n in bottom)]:
            found = self.signs.of(part)
            if found is None or not found[1]:
                return self._log_atom(value)
            unit = unit * found[0] if n % 2 else unit
            result = result + self._log_of_factor(Ratio(part * found[0], ONE)) * n
        for prime, n in _fraction_primes(unit):
            result = result + self._log_atom(Ratio.number(prime)) * n
        return result

    def _log_of_factor(self, piece: Ratio) -> Ratio:
        atoms = used(piece.top)
        if len(atoms) == 1 and piece.top == GENERATORS[atoms[0]]:
            atom = self.atoms[atoms[0]]
            if atom.exponent is not None and self._is_positive_base(atom.base):
                inner = Ratio.number(1) if atom.base is None else self.logarithm(atom.base)
                return inner * atom.exponent
            if atom.radicand is not None:
                return self.logarithm(atom.radicand) / atom.degree
        return self._log_atom(piece)

    def _log_atom(self, value: Ratio) -> Ratio:
        made = Atom(Apply("log", (self.node(value),)), argument=value)
        return Ratio.atom(self.atom(("log", key_of(value)), made))

    def factorial(self, value: Ratio) -> Ratio:
        """Return value! for an integer ≥ 0, with the constant part of value taken out."""
        known = value.value()
        if known is not None:
            if known.denominator != 1 or not 0 <= known <= 1000:
                raise ProofError("a factorial of no small integer >= 0")
            result = Ratio.number(1)
            for factor in range(2, int(known) + 1):
                result = result * factor
            return result
        if not self.is_integer(value):
            raise ProofError("a factorial of what is no integer")
        self.require(value, 1, "the argument of a factorial", strict=False)
        shift = shift_of(value)
        base = value - shift
        if shift > 0:
            found = self.sign(base)
            if found is None or found[0] < 0:
                base, shift = value, 0
        result = self._factorial_atom(base)
        for step in range(1, shift + 1):
            result = result * (base + step)
        for step in range(shift + 1, 1):
            result = result / (base + step)
        return result

    def _factorial_atom(self, base: Ratio) -> Ratio:
        node = Apply("gamma", (self.node(base + 1),))
        return Ratio.atom(self.atom(("factorial", key_of(base)), Atom(node, integer=True)))


def constant_term(value: Ratio) -> Fraction:
    """Return the constant term of a polynomial."""
    found = dict(value.top.terms()).get((0,) * ATOMS)
    return Fraction(0) if found is None or value.bottom != ONE else rational(found)


def shift_of(value: Ratio) -> int:
    """Return the integer part of the constant term of a polynomial."""
    return floor(constant_term(value))


def _primes(value: int) -> list[tuple[int, int]]:
    if value.bit_length() > _MOST_BITS:
        raise ProofError("a number is too large to be split into primes")
    return [(int(prime), int(n)) for prime, n in fmpz(value).factor()]


def _fraction_primes(value: Fraction) -> list[tuple[int, int]]:
    lower = [(prime, -n) for prime, n in _primes(value.denominator)]
    return [*_primes(value.numerator), *lower]

"""Write an expression as a rational function over Q in atoms, with the relations between them.

Atoms are variables, roots (with s² = e), powers and exponentials b^m (b > 0, or m an integer and
b ≠ 0), logarithms of irreducible numbers and polynomials, factorials, sums without a closed form,
and values of other functions. Every division, root, logarithm and power is shown to be defined
over the whole domain before it is used: so a ratio that is 0 here is 0 at each point. Sums and
products over an index have a closed form, or are atoms with a common end.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, floor
from typing import Final, final

from dpassay.verifier.ranges.atoms import Atom, Puncture, key_of
from dpassay.verifier.ranges.domain import Variable
from dpassay.verifier.ranges.expressions import (
    Apply,
    Fold,
    Name,
    Node,
    Number,
    ProofError,
    free,
    show,
    substitute,
)
from dpassay.verifier.ranges.polynomials import (
    GENERATORS,
    ONE,
    Ratio,
    coefficients,
    constant,
    factors,
    rational,
    used,
)
from dpassay.verifier.ranges.powers import Powers, constant_term, shift_of
from dpassay.verifier.ranges.ranges import REALS, Range
from dpassay.verifier.ranges.signs import Sign
from dpassay.verifier.ranges.sweep import box_of

_LONGEST_SUM: Final = 100
_LARGEST_SHIFT: Final = 50


@final
@dataclass(frozen=True, slots=True)
class Span:
    """The index of a sum, the atoms that depend on it, and its ends."""

    index: str
    atom: int
    dependent: frozenset[int]
    low: Ratio
    high: Ratio


class Sums(Powers):
    """Sums of rational functions of an index."""

    def other_than_one(self, ratio: Ratio) -> None:
        """Require the ratio of a sum to differ from 1; ask to leave out a point where it is 1."""
        value, what = ratio - 1, "the ratio of a geometric sum, less 1,"
        found = self.sign(value)
        if found is not None and found[1]:
            return
        atoms = used(value.top)
        names = {n: r for n, r in self.names.items() if r.atoms() == set(atoms)}
        if len(atoms) == 1 and len(names) == 1 and found != (0, False):
            name, inner = next(iter(names.items()))
            variable = self.domain.variable(name)
            if variable is not None and not variable.integer and inner.top == GENERATORS[atoms[0]]:
                for part, _ in factors(value.top)[1]:
                    linear = coefficients(part, atoms[0])
                    if len(linear) == 2:
                        root = -(Ratio.of(linear[0], linear[1]))
                        point = root.value()
                        if point is not None and self._within(atoms[0], point):
                            raise Puncture(name, point)
        self.require(value, 0, what)

    def _within(self, atom: int, point: Fraction) -> bool:
        found = self.signs.ranges[atom]
        at = Range.exact(point)
        return not (at.high < found.low or at.low > found.high)

    def fold(self, node: Fold) -> Ratio:
        """Return a sum or a product as a ratio."""
        low, high = self.reduced(self.normal(node.low)), self.reduced(self.normal(node.high))
        for end in (low, high):
            if not self.is_integer(end):
                raise ProofError("an end of a sum was not shown to be an integer")
        count = (high - low + 1).value()
        first = low.value()
        if count is not None and count <= _LONGEST_SUM:
            return self._written_out(node, low, int(count))
        if first is not None and high.value() is not None:
            raise ProofError("a sum is too long to be written out")
        self.require(high - low + 1, 1, "the number of terms", strict=False)
        term, index = self._term(node, low, high)
        if node.name == "product":
            return self._opened("product", term, index, low, high)
        inner = self.names[index]
        number_of_index = used(inner.top)[0]
        moving = (i for i, atom in enumerate(self.atoms) if index in free(atom.node))
        span = Span(index, number_of_index, frozenset([number_of_index, *moving]), low, high)
        result = self._linear(term, span)
        found = self.sign(term)
        if found is not None and found[1] and self.sign(high - low + 1) == (1, True):
            self.signs.learn(self.reduced(result), found)
        return result

    def _written_out(self, node: Fold, low: Ratio, count: int) -> Ratio:
        total = Ratio.number(0 if node.name == "sum" else 1)
        for step in range(count):
            at = self.node(low + step)
            value = self.normal(substitute(node.term, {node.index: at}))
            total = total + value if node.name == "sum" else total * value
        return total

    def _term(self, node: Fold, low: Ratio, high: Ratio) -> tuple[Ratio, str]:
        """Return the term as a ratio in a new variable for the index."""
        depth = node.index.rsplit("#", 1)[-1]
        key = (depth, key_of(low), key_of(high))
        if key not in self._indices:
            name = f"{node.index.split('#')[0]}#{depth}#{len(self._indices)}"
            self._indices[key] = name
            variable = Variable(name, self.node(low), self.node(high), integer=True)
            self.domain = self.domain.add(variable)
            try:
                self.box[name] = box_of(self.domain, self.budget)[name]
            except ProofError:
                self.box[name] = REALS
            self.declare(variable)
        index = self._indices[key]
        if index in free(node.term):
            raise ProofError("a sum inside another one of the same range")
        return self.reduced(self.normal(substitute(node.term, {node.index: Name(index)}))), index

    def _linear(self, term: Ratio, span: Span) -> Ratio:
        """Sum a term monomial by monomial in what depends on the index."""
        unit, parts = factors(term.bottom)
        dependent, fixed, moving = span.dependent, constant(unit), ONE
        for part, exponent in parts:
            if dependent.intersection(used(part)):
                moving = moving * part**exponent
            else:
                fixed = fixed * part**exponent
        groups: dict[tuple[tuple[int, int], ...], Ratio] = {}
        for monomial, coefficient in term.top.terms():
            own = tuple((i, int(e)) for i, e in enumerate(monomial) if e and i in dependent)
            rest = constant(rational(coefficient))
            for i, e in enumerate(monomial):
                if e and i not in dependent:
                    rest = rest * GENERATORS[i] ** int(e)
            groups[own] = groups.get(own, Ratio.number(0)) + Ratio.of(rest, fixed)
        total = Ratio.number(0)
        for own, weight in groups.items():
            top = ONE
            for i, e in own:
                top = top * GENERATORS[i] ** e
            piece = Ratio.of(top, moving)
            total = total + weight * self._summed(piece, span)
        return total

    def _summed(self, term: Ratio, span: Span) -> Ratio:
        """Return Σ term: in closed form for i^p·Πb^(c·i), else as an atom."""
        exponents: dict[int, int] = {}
        for side, polynomial in ((1, term.top), (-1, term.bottom)):
            if len(polynomial) != 1:
                return self._opened("sum", term, span.index, span.low, span.high)
            for i in used(polynomial):
                exponents[i] = exponents.get(i, 0) + side * int(polynomial.degrees()[i])
        degree = exponents.pop(span.atom, 0)
        bases: list[tuple[Ratio | None, Ratio]] = []
        for i, e in exponents.items():
            rate = self._rate(i, span)
            if rate is None or degree < 0:
                return self._opened("sum", term, span.index, span.low, span.high)
            bases.append((self.atoms[i].base, rate * e))
        if degree < 0:
            return self._opened("sum", term, span.index, span.low, span.high)
        return self._closed(degree, bases, span.low, span.high)

    def _rate(self, number_of_power: int, span: Span) -> Ratio | None:
        """Return r where an atom is base**(r·i), None where it is something else."""
        found = self.atoms[number_of_power]
        if found.exponent is None or (found.base and span.dependent & found.base.atoms()):
            return None
        rate = found.exponent / Ratio.atom(span.atom)
        return None if span.dependent & rate.atoms() else rate

    def _closed(
        self, degree: int, bases: list[tuple[Ratio | None, Ratio]], low: Ratio, high: Ratio
    ) -> Ratio:
        """Return Σ_{i=low}^{high} i^degree·ratio^i = F(high + 1) − F(low).

        F(i) = q(i)·ratio^i with ratio·q(i + 1) − q(i) = i^degree, which is checked.
        """
        if degree > 12:
            raise ProofError("a sum of too high a degree")

        def powers(at: Ratio) -> Ratio:
            result = Ratio.number(1)
            for base, rate in bases:
                result = result * self.power_of(base, self.reduced(rate * at))
            return result

        one = Ratio.number(1)
        ratio = self.reduced(powers(one))
        if (ratio - one).is_zero():
            antidifference = _antidifference(degree)
        else:
            self.other_than_one(ratio)
            antidifference = _geometric(degree, ratio)
        _check_antidifference(antidifference, degree, ratio)
        after = high + one
        return _at(antidifference, after) * powers(after) - _at(antidifference, low) * powers(low)

    def _opened(self, name: str, term: Ratio, index: str, low: Ratio, high: Ratio) -> Ratio:
        """Return a sum or product as an atom, its last terms split off to a common end."""
        shift = shift_of(high)
        base = high - shift
        inner = self.node(term)
        key = (name, self._signature(term, index), key_of(low), key_of(base))
        # the numbers of the atoms may change with a restart, what they stand for does not
        lasting = (name, key[1], show(self.node(low)), show(self.node(base)))
        least = self.memory.shifts.setdefault(lasting, shift)
        if shift < least:
            self.memory.shifts[lasting] = shift
            raise self.memory.restart()
        if shift - least > _LARGEST_SHIFT:
            raise ProofError("two sums whose ends are too far apart")
        end = base + least
        self.require(end - low + 1, 1, "the number of terms", strict=False)
        node = Fold(name, index, self.node(low), self.node(end), inner)
        result = Ratio.atom(self.atom(key, Atom(node)))
        for step in range(least + 1, shift + 1):
            at = self.node(base + step)
            value = self.normal(substitute(inner, {index: at}))
            result = result + value if name == "sum" else result * value
        return result

    def _signature(self, term: Ratio, index: str) -> str:
        """Return a text that is the same for the same term, whatever its index is called."""
        sides = []
        for polynomial in (term.top, term.bottom):
            terms = []
            for monomial, coefficient in polynomial.terms():
                parts = sorted(
                    (repr(substitute(self.atoms[i].node, {index: Name("#")})), int(e))
                    for i, e in enumerate(monomial)
                    if e
                )
                terms.append((parts, str(coefficient)))
            sides.append(sorted(terms))
        return repr(sides)


def _antidifference(degree: int) -> list[Ratio]:
    """Return the coefficients of the polynomial q with q(i + 1) − q(i) = i^degree, q(0) = 0."""
    found = [Fraction(0)] * (degree + 2)
    for k in range(degree, -1, -1):
        known = sum((comb(n, k) * found[n] for n in range(k + 2, degree + 2)), Fraction(0))
        found[k + 1] = ((k == degree) - known) / (k + 1)
    return [Ratio.number(value) for value in found]


def _geometric(degree: int, ratio: Ratio) -> list[Ratio]:
    """Return the coefficients of q with ratio·q(i + 1) − q(i) = i^degree."""
    one = Ratio.number(1)
    found = [Ratio.number(0)] * (degree + 1)
    for k in range(degree, -1, -1):
        known = Ratio.number(1 if k == degree else 0)
        for n in range(k + 1, degree + 1):
            known = known - ratio * found[n] * comb(n, k)
        found[k] = known / (ratio - one)
    return found


def _check_antidifference(found: list[Ratio], degree: int, ratio: Ratio) -> None:
    """Check ratio·q(i + 1) − q(i) = i^degree, coefficient by coefficient."""
    for k in range(len(found)):
        upper = Ratio.number(0)
        for n in range(k, len(found)):
            upper = upper + found[n] * comb(n, k)
        if not (ratio * upper - found[k] - int(k == degree)).is_zero():
            raise ProofError("a telescoping sum does not check")


def _at(polynomial: list[Ratio], value: Ratio) -> Ratio:
    total = Ratio.number(0)
    for coefficient in reversed(polynomial):
        total = total * value + coefficient
    return total


@final
class Normaliser(Sums):
    """Rational functions in atoms over one domain."""

    def normal(self, node: Node) -> Ratio:
        """Return an expression as a ratio; raise ProofError where it may be undefined."""
        found = self._known.get(node)
        if found is None:
            self.budget.spend()
            found = self._normal(node)
            self._known[node] = found
        return found

    def _normal(self, node: Node) -> Ratio:
        match node:
            case Number(value=value):
                return Ratio.number(value)
            case Name(name=name):
                if name not in self.names:
                    raise ProofError(f"{name.split('#')[0]} is not a variable of the domain")
                return self.names[name]
            case Apply(name="+", arguments=(left, right)):
                return self.normal(left) + self.normal(right)
            case Apply(name="-", arguments=(left, right)):
                return self.normal(left) - self.normal(right)
            case Apply(name="*", arguments=(left, right)):
                return self.normal(left) * self.normal(right)
            case Apply(name="/", arguments=(left, right)):
                divisor = self.reduced(self.normal(right))
                if self.sign(divisor) is None:
                    self.signs.learn(divisor, self.node_sign(right))
                self.require(divisor, 0, "a divisor")
                return self.normal(left) / divisor
            case Apply(name="**", arguments=(base, exponent)):
                return self.power(self.normal(base), self.normal(exponent))
            case Apply(name=name, arguments=arguments, named=()):
                return self._function(name, [self.normal(argument) for argument in arguments])
            case Fold():
                return self.fold(node)
        raise ProofError(f"{show(node)[:60]} is not understood by the kernel")

    def node_sign(self, node: Node) -> Sign:
        """Return the sign of an expression from the signs of its parts."""
        match node:
            case Apply(name="+", arguments=(left, right)):
                signs = [self.node_sign(left), self.node_sign(right)]
                if None not in signs and (0, False) not in signs:
                    (one, strict), (other, also) = (found or (0, False) for found in signs)
                    if one == other:
                        return one, strict or also
        return self.sign(self.normal(node))

    def _function(self, name: str, values: list[Ratio]) -> Ratio:
        one = Ratio.number(1)
        match name, values:
            case "sqrt", [x]:
                return self.root(x)
            case "exp", [x]:
                return self.exponential(x)
            case "expm1", [x]:
                return self.exponential(x) - one
            case "tanh", [x]:
                square = self.exponential(x + x)
                return (square - one) / (square + one)
            case "log", [x]:
                return self.logarithm(x)
            case "log2", [x]:
                return self.logarithm(x) / self.logarithm(Ratio.number(2))
            case "log1p", [x]:
                return self.logarithm(x + one)
            case "Phi", [x]:
                if x.is_zero():
                    return Ratio.number(Fraction(1, 2))
                if rational(x.top.leading_coefficient()) < 0:
                    return one - self.other("Phi", [-x])
            case "mills", [x]:  # Φ(−x)/φ(x)
                scale = self.root(self.other("pi", []) * 2)
                tail = self._function("Phi", [-x])
                return tail * scale * self.exponential(x * x / 2)
            case "abs", [x]:
                found = self.sign(x)
                if found is not None:
                    return x if found[0] >= 0 else -x
            case (("min" | "max"), [first, *rest]):
                return self._extreme(name, [first, *rest])
            case "binomial", [n, k]:
                for part in (n, k, n - k):
                    self.require(part, 1, "a number of a binomial coefficient", strict=False)
                return self.factorial(n) / (self.factorial(k) * self.factorial(n - k))
            case (("floor" | "ceil"), [x]):
                if self.is_integer(x):
                    return x
                share = constant_term(self.powers_opened(x, used(x.top)))
                base = x - share
                if self.is_integer(base):  # floor(n + c) = n + floor(c)
                    return base + (floor(share) if name == "floor" else -floor(-share))
            case (("gamma" | "lgamma"), [x]):
                self.require(x, 1, "the argument of gamma")
                if name == "gamma" and self.is_integer(x):
                    return self.factorial(x - one)
            case "Phi_inverse", [x]:
                self.require(x, 1, "the argument of Phi_inverse")
                self.require(one - x, 1, "1 - the argument of Phi_inverse")
            case (("sin" | "cos" | "erf" | "erfc" | "round_up" | "round_down"), [_]):
                pass
            case "pi", []:
                pass
            case _:
                raise ProofError(f"{name} is not understood by the kernel")
        return self.other(name, values)

    def _extreme(self, name: str, values: list[Ratio]) -> Ratio:
        """Return min or max: what is known to lose is left out."""
        side = 1 if name == "max" else -1
        kept: list[Ratio] = []
        for value in values:
            beaten = False
            for other in list(kept):
                found = self.sign(other - value)
                if found is not None and found[0] * side >= 0:
                    beaten = True
                    break
                if found is not None:
                    kept.remove(other)
            if not beaten:
                kept.append(value)
        return kept[0] if len(kept) == 1 else self.other(name, sorted(kept, key=key_of))

"""Write an expression as a rational function over Q in atoms, with the relations between them.

Atoms are variables, roots (with s² = e), powers and exponentials b^m (b > 0, or m an integer and
b ≠ 0), logarithms of irreducible numbers and polynomials, factorials, sums without a closed form,
and values of other functions. Every division, root, logarithm and power is shown to be defined
over the whole domain before it is used: so a ratio that is 0 here is 0 at each point.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, floor, lcm
from typing import Any, Final, final

from flint import arb, fmpz

from verify.checker.kernel.domain import Domain, Goal, Variable
from verify.checker.kernel.expressions import (
    Apply,
    Budget,
    Fold,
    Name,
    Node,
    Number,
    ProofError,
    free,
    number,
    show,
    substitute,
)
from verify.checker.kernel.extended import evaluate
from verify.checker.kernel.polynomials import (
    ATOMS,
    GENERATORS,
    ONE,
    Polynomial,
    Ratio,
    coefficients,
    constant,
    factors,
    multiplied,
    rational,
    replaced,
    used,
)
from verify.checker.kernel.ranges import INFINITY, REALS, Range
from verify.checker.kernel.signs import Bounds, Sign, Signs, product
from verify.checker.kernel.sweep import box_of, sweep

_MOST_BITS: Final = 160
"""Of a number that is split into primes."""
_LONGEST_SUM: Final = 100
_LARGEST_SHIFT: Final = 50
_PIECES: Final = 200
"""Of a sweep that shows a divisor, say, to differ from 0."""
_POLYNOMIAL: Final = Ratio(ONE, ONE)


class Restart(Exception):  # noqa: N818 - not an error: the same work is done again, knowing more
    """A finer scale or another base of a sum is needed: start again."""


class Puncture(Exception):  # noqa: N818 - not an error: the domain is to be split at a point
    """A variable has to leave out one point, at which the same is proved on its own."""

    def __init__(self, variable: str, point: Fraction) -> None:
        super().__init__(variable, point)
        self.variable, self.point = variable, point


@final
class Memory:
    """What is kept over restarts: units of exponents and first ends of sums."""

    def __init__(self) -> None:
        self.units: dict[tuple[str, str], int] = {}
        self.shifts: dict[tuple[str, str, str, str], int] = {}
        self.restarts = 0

    def restart(self) -> Restart:
        """Return the request to start again; raise ProofError where that has no end."""
        self.restarts += 1
        if self.restarts > 50:
            raise ProofError("the units of the exponents do not settle")
        return Restart()


@final
@dataclass(frozen=True, slots=True)
class Atom:
    """What an atom stands for.

    `base` and `exponent` belong to a power (base None is e), `radicand` and `degree` to a root.
    """

    node: Node
    base: Ratio | None = None
    exponent: Ratio | None = None
    radicand: Ratio | None = None
    degree: int = 0
    argument: Ratio | None = None
    """Of a logarithm."""
    integer: bool = False


@final
@dataclass(frozen=True, slots=True)
class Span:
    """The index of a sum, the atoms that depend on it, and its ends."""

    index: str
    atom: int
    dependent: frozenset[int]
    low: Ratio
    high: Ratio


@final
class Normaliser:
    """Rational functions in atoms over one domain."""

    def __init__(
        self, domain: Domain, budget: Budget, memory: Memory, roots: frozenset[str] = frozenset()
    ) -> None:
        self.domain, self.budget, self.memory = domain, budget, memory
        self.box = box_of(domain, budget)
        self.signs = Signs(budget)
        self.atoms: list[Atom] = []
        self._numbers: dict[Any, int] = {}
        self._variables: dict[str, Ratio] = {}
        self._known: dict[Node, Ratio] = {}
        self._indices: dict[Any, str] = {}
        for variable in domain.variables:
            self._declare(variable, variable.name in roots)

    # ------------------------------------------------------------------ atoms

    def _declare(self, variable: Variable, as_root: bool = False) -> None:
        """Take a variable x, or √x where x ≥ 0 and its root occurs."""
        name, node = variable.name, Name(variable.name)
        ends = [None if end is None else self.normal(end) for end in (variable.low, variable.high)]
        values = self.box[name]
        root: Node = node
        if as_root and ends[0] is not None and values.low >= 0:
            root = Apply("sqrt", (node,))
            try:
                ends = [None if end is None else self.root(end) for end in ends]
                values = evaluate(root, {name: values}, self.budget)
            except ProofError:
                root = node
        low, high = ends
        bounds = Bounds(low, high, variable.low_open, variable.high_open)
        if variable.integer and root is node:
            bounds = self._whole_ends(bounds, values)
        atom = self._atom(("variable", name), Atom(root, integer=variable.integer), values, bounds)
        self._variables[name] = Ratio.atom(atom) if root is node else Ratio.atom(atom) ** 2

    def _whole_ends(self, bounds: Bounds, values: Range) -> Bounds:
        """Close the ends of an integer variable that are numbers: n > 1 is n ≥ 2."""
        low, high = bounds.low, bounds.high
        low_open, high_open = bounds.low_open, bounds.high_open
        if low is not None and low.value() is not None and values.low.is_finite():
            low, low_open = Ratio.number(_integer_end(values.low)), False
        if high is not None and high.value() is not None and values.high.is_finite():
            high, high_open = Ratio.number(_integer_end(values.high)), False
        return Bounds(low, high, low_open, high_open)

    def _atom(
        self, key: Any, atom: Atom, found: Range | None = None, bounds: Bounds | None = None
    ) -> int:
        if key in self._numbers:
            return self._numbers[key]
        self.budget.spend(10)
        index = len(self.atoms)
        if index >= ATOMS - 16:
            raise ProofError("a proof needs too many atoms")
        if found is None:
            try:
                found = evaluate(atom.node, self.box, self.budget)
            except ProofError:
                even = atom.radicand is not None and atom.degree % 2 == 0
                found = Range(arb(0), INFINITY) if even else REALS
        self.atoms.append(atom)
        self._numbers[key] = index
        self.signs.add(index, found, bounds)
        return index

    def node(self, value: Ratio) -> Node:
        """Write a ratio as an expression."""
        top = self._sum_node(value.top)
        return top if value.bottom == ONE else Apply("/", (top, self._sum_node(value.bottom)))

    def _sum_node(self, polynomial: Polynomial) -> Node:
        result: Node | None = None
        for monomial, coefficient in polynomial.terms():
            term: Node = number(rational(coefficient))
            for atom, exponent in enumerate(monomial):
                if exponent:
                    part = self.atoms[atom].node
                    if exponent > 1:
                        part = Apply("**", (part, number(int(exponent))))
                    term = part if term == number(1) else Apply("*", (term, part))
            result = term if result is None else Apply("+", (result, term))
        return number(0) if result is None else result

    def sign(self, value: Ratio) -> Sign:
        """Return the sign of a ratio, of A + s·B with s² = e by that of A² − e·B²."""
        value = self.reduced(value)
        found = self.signs.ratio(value)
        if found is not None and found[1]:
            return found
        squared = self._sign_by_square(value.top)
        if squared is None or self.signs.of(value.bottom) is None:
            return found
        whole = product([squared, self.signs.of(value.bottom)])
        return found if whole is None or (found is not None and not whole[1]) else whole

    def _sign_by_square(self, polynomial: Polynomial) -> Sign:
        """Return the sign of A + s·B for opposite signs of A and B: that of A·(A² − s²·B²)."""
        for index in sorted(used(polynomial), reverse=True):
            atom, parts = self.atoms[index], coefficients(polynomial, index)
            if atom.radicand is None or atom.degree != 2 or len(parts) != 2:
                continue
            plain, rooted = (Ratio.of(part, ONE) for part in parts)
            first, second = self.sign(plain), self.sign(rooted)
            if first is None or second is None or first[0] * second[0] >= 0:
                continue
            difference = self.sign(plain * plain - rooted * rooted * atom.radicand)
            if difference is not None:
                return first[0] * difference[0], difference[1]
        return None

    def is_integer(self, value: Ratio) -> bool:
        """Whether a ratio is a polynomial with integer values over the domain."""
        if value.bottom != ONE:
            return False
        atoms = used(value.top)
        whole = [self._root_free(atom) for atom in atoms]
        if not all(self.atoms[atom].integer for atom in atoms):
            return False
        if not all(whole):  # √n occurs: only its even powers are integers
            for monomial in value.top.monoms():
                if any(monomial[a] % 2 for a, w in zip(atoms, whole, strict=True) if not w):
                    return False
            return all(rational(c).denominator == 1 for c in value.top.coeffs())
        if all(rational(c).denominator == 1 for c in value.top.coeffs()):
            return True
        opened = self._powers_opened(value, atoms)
        if all(rational(c).denominator == 1 for c in opened.top.coeffs()):
            return True
        degrees = [int(value.top.degrees()[atom]) for atom in atoms]
        if not 0 < len(atoms) <= 3 or max(degrees) > 8:
            return False
        for point in itertools.product(*(range(degree + 1) for degree in degrees)):
            at = value  # integers at 0, …, n in each variable make an integer-valued polynomial
            for atom, place in zip(atoms, point, strict=True):
                at = replaced(at, atom, Ratio.number(place))
            known = at.value()
            if known is None or known.denominator != 1:
                return False
        return True

    def _powers_opened(self, value: Ratio, atoms: list[int]) -> Ratio:
        """Return a polynomial with 1 + (b − 1)·m, m an integer, in the place of every b^n."""
        slot = ATOMS
        for index in atoms:
            base = self.atoms[index].base
            if base is not None and base.bottom == ONE and slot > len(self.atoms):
                slot -= 1
                one = Ratio.number(1)
                value = replaced(value, index, one + (base - one) * Ratio.atom(slot))
        return value

    def _root_free(self, atom: int) -> bool:
        node = self.atoms[atom].node
        return not (isinstance(node, Apply) and node.name == "sqrt")

    def require(self, value: Ratio, sign: int, what: str, *, strict: bool = True) -> None:
        """Raise ProofError unless a ratio has a sign (0: any, but not 0)."""
        found = self.sign(value)
        fits = found is not None and (sign in (0, found[0]) or found == (0, False))
        if fits and found is not None and (found[1] or not strict):
            return
        relation = {1: ">" if strict else ">=", -1: "<", 0: "!="}[sign]
        try:
            node = self.node(self.reduced(value))
            goal = Goal(node, relation, number(0), self._domain_about(node))
            sweep(goal, self.budget, pieces=_PIECES)
            return
        except ProofError:
            pass
        wanted = {1: "> 0" if strict else ">= 0", -1: "< 0", 0: "different from 0"}[sign]
        raise ProofError(f"{what} was not shown to be {wanted}: {show(self.node(value))[:80]}")

    def _domain_about(self, node: Node) -> Domain:
        """Return the domain with the indices of sums only where an expression depends on them.

        The range of an index may be empty for some values of the other variables, and these must
        not be left out.
        """
        needed, kept = free(node), []
        for variable in reversed(self.domain.variables):
            if "#" not in variable.name or variable.name in needed:
                kept.append(variable)
                needed = needed.union(*(free(end) for end in variable.ends()))
        return Domain(tuple(reversed(kept)), self.domain.assumptions)

    def other_than_one(self, ratio: Ratio) -> None:
        """Require the ratio of a sum to differ from 1; ask to leave out a point where it is 1."""
        value, what = ratio - Ratio.number(1), "the ratio of a geometric sum, less 1,"
        found = self.sign(value)
        if found is not None and found[1]:
            return
        atoms = used(value.top)
        names = {n: r for n, r in self._variables.items() if r.atoms() == set(atoms)}
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

    # ------------------------------------------------------------------ expressions

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
                if name not in self._variables:
                    raise ProofError(f"{name.split('#')[0]} is not a variable of the domain")
                return self._variables[name]
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
                return self._fold(node)
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
                if _is_negative(x):
                    return one - self._other("Phi", [-x])
            case "mills", [x]:  # Φ(−x)/φ(x)
                scale = self.root(self._other("pi", []) * Ratio.number(2))
                tail = self._function("Phi", [-x])
                return tail * scale * self.exponential(x * x / Ratio.number(2))
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
                share = _constant_term(self._powers_opened(x, used(x.top)))
                base = x - Ratio.number(share)
                if self.is_integer(base):  # floor(n + c) = n + floor(c)
                    return base + Ratio.number(floor(share) if name == "floor" else -floor(-share))
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
        return self._other(name, values)

    def _other(self, name: str, values: Sequence[Ratio]) -> Ratio:
        """Return the value of a function as an atom."""
        values = [self.reduced(value) for value in values]
        node = Apply(name, tuple(self.node(value) for value in values))
        whole = name in ("floor", "ceil")
        return Ratio.atom(self._atom((name, *map(_key, values)), Atom(node, integer=whole)))

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
        return kept[0] if len(kept) == 1 else self._other(name, sorted(kept, key=_key))

    # ------------------------------------------------------------------ roots, powers, logarithms

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
                    piece_root = self._function("abs", [piece])
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
            result = result * Ratio.number(prime ** (exponent // 2))
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
        return Ratio.atom(self._atom(("root", _key(radicand), degree), made))

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
        return result * self._power_of(None, exponent)

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
                return self._power_of(base, exponent)
            for i, found in enumerate(signs):
                if found is not None and found[0] < 0:
                    pieces[i] = (-pieces[i][0], pieces[i][1])
                    unit = -unit if pieces[i][1] % 2 else unit
        if unit < 0:
            return self._power_of(base, exponent)
        result = Ratio.number(1)
        for prime, n in _fraction_primes(unit):
            result = result * self._power_of(Ratio.number(prime), exponent * Ratio.number(n))
        for piece, n in pieces:
            result = result * self._power_of(piece, exponent * Ratio.number(n))
        return result

    def _power_of(self, base: Ratio | None, exponent: Ratio) -> Ratio:
        """Return the product of base**(c·m) over the terms c·m of an exponent (base None: e)."""
        if base is not None:
            atoms = used(base.top)
            if base.bottom == ONE and len(atoms) == 1 and base.top == GENERATORS[atoms[0]]:
                atom = self.atoms[atoms[0]]
                if atom.exponent is not None and (
                    self._is_positive_base(atom.base)
                    or (self.is_integer(atom.exponent) and self.is_integer(exponent))
                ):
                    return self._power_of(atom.base, atom.exponent * exponent)
        if exponent.bottom != ONE:  # what is no proper fraction stands apart
            whole, rest = divmod(exponent.top, exponent.bottom)
            if not whole.is_zero():
                proper = self._power_of(base, Ratio.of(rest, exponent.bottom))
                if base is None:
                    return self.exponential(Ratio.of(whole, ONE)) * proper
                return self._power_of(base, Ratio.of(whole, ONE)) * proper
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
        key = ("power", None if base is None else _key(base), _key(monomial))
        lasting = ("" if base is None else show(self.node(base)), show(self.node(monomial)))
        unit = self.memory.units.get(lasting, 1)
        if share.denominator > 1 and unit % share.denominator:
            self.memory.units[lasting] = lcm(unit, share.denominator)
            raise self.memory.restart()
        exponent = monomial * Ratio.number(Fraction(1, unit))
        inner = self.node(exponent)
        node = Apply("exp", (inner,)) if base is None else Apply("**", (self.node(base), inner))
        whole = (
            base is not None
            and self.is_integer(base)
            and self.is_integer(exponent)
            and (self.sign(exponent) or (-1,))[0] >= 0
        )
        atom = self._atom(key, Atom(node, base=base, exponent=exponent, integer=whole))
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
            result = result + self._log_of_factor(Ratio(part * found[0], ONE)) * Ratio.number(n)
        for prime, n in _fraction_primes(unit):
            result = result + self._log_atom(Ratio.number(prime)) * Ratio.number(n)
        return result

    def _log_of_factor(self, piece: Ratio) -> Ratio:
        atoms = used(piece.top)
        if len(atoms) == 1 and piece.top == GENERATORS[atoms[0]]:
            atom = self.atoms[atoms[0]]
            if atom.exponent is not None and self._is_positive_base(atom.base):
                inner = Ratio.number(1) if atom.base is None else self.logarithm(atom.base)
                return inner * atom.exponent
            if atom.radicand is not None:
                return self.logarithm(atom.radicand) / Ratio.number(atom.degree)
        return self._log_atom(piece)

    def _log_atom(self, value: Ratio) -> Ratio:
        made = Atom(Apply("log", (self.node(value),)), argument=value)
        return Ratio.atom(self._atom(("log", _key(value)), made))

    def factorial(self, value: Ratio) -> Ratio:
        """Return value! for an integer ≥ 0, with the constant part of value taken out."""
        known = value.value()
        if known is not None:
            if known.denominator != 1 or not 0 <= known <= 1000:
                raise ProofError("a factorial of no small integer >= 0")
            result = Ratio.number(1)
            for factor in range(2, int(known) + 1):
                result = result * Ratio.number(factor)
            return result
        if not self.is_integer(value):
            raise ProofError("a factorial of what is no integer")
        self.require(value, 1, "the argument of a factorial", strict=False)
        shift = _shift(value)
        base = value - Ratio.number(shift)
        if shift > 0:
            found = self.sign(base)
            if found is None or found[0] < 0:
                base, shift = value, 0
        result = self._factorial_atom(base)
        for step in range(1, shift + 1):
            result = result * (base + Ratio.number(step))
        for step in range(shift + 1, 1):
            result = result / (base + Ratio.number(step))
        return result

    def _factorial_atom(self, base: Ratio) -> Ratio:
        node = Apply("gamma", (self.node(base + Ratio.number(1)),))
        return Ratio.atom(self._atom(("factorial", _key(base)), Atom(node, integer=True)))

    # ------------------------------------------------------------------ relations

    def reduced(self, value: Ratio) -> Ratio:
        """Use s² = e (or sᵍ = e) for every root, the last one first."""
        for index in sorted(value.atoms(), reverse=True):
            atom = self.atoms[index]
            if atom.radicand is not None:
                value = self._reduce(value.top, index, atom) / self._reduce(
                    value.bottom, index, atom
                )
        return value

    def _reduce(self, polynomial: Polynomial, index: int, atom: Atom) -> Ratio:
        parts = coefficients(polynomial, index)
        if atom.radicand is None or len(parts) <= atom.degree:
            return Ratio.of(polynomial, ONE)
        total = Ratio.number(0)
        for exponent, part in enumerate(parts):
            high, low = divmod(exponent, atom.degree)
            term = Ratio.of(part * GENERATORS[index] ** low, ONE)
            total = total + term * atom.radicand**high
        return self.reduced(total)

    # ------------------------------------------------------------------ sums

    def _fold(self, node: Fold) -> Ratio:
        low, high = self.reduced(self.normal(node.low)), self.reduced(self.normal(node.high))
        for end in (low, high):
            if not self.is_integer(end):
                raise ProofError("an end of a sum was not shown to be an integer")
        count = (high - low + Ratio.number(1)).value()
        first = low.value()
        if count is not None and count <= _LONGEST_SUM:
            return self._written_out(node, low, int(count))
        if first is not None and high.value() is not None:
            raise ProofError("a sum is too long to be written out")
        self.require(high - low + Ratio.number(1), 1, "the number of terms", strict=False)
        term, index = self._term(node, low, high)
        if node.name == "product":
            return self._opened("product", term, index, low, high)
        inner = self._variables[index]
        number_of_index = used(inner.top)[0]
        moving = (i for i, atom in enumerate(self.atoms) if index in free(atom.node))
        span = Span(index, number_of_index, frozenset([number_of_index, *moving]), low, high)
        result = self._linear(term, span)
        found = self.sign(term)
        if found is not None and found[1] and self.sign(high - low + Ratio.number(1)) == (1, True):
            self.signs.learn(self.reduced(result), found)
        return result

    def _written_out(self, node: Fold, low: Ratio, count: int) -> Ratio:
        total = Ratio.number(0 if node.name == "sum" else 1)
        for step in range(count):
            at = self.node(low + Ratio.number(step))
            value = self.normal(substitute(node.term, {node.index: at}))
            total = total + value if node.name == "sum" else total * value
        return total

    def _term(self, node: Fold, low: Ratio, high: Ratio) -> tuple[Ratio, str]:
        """Return the term as a ratio in a new variable for the index."""
        depth = node.index.rsplit("#", 1)[-1]
        key = (depth, _key(low), _key(high))
        if key not in self._indices:
            name = f"{node.index.split('#')[0]}#{depth}#{len(self._indices)}"
            self._indices[key] = name
            variable = Variable(name, self.node(low), self.node(high), integer=True)
            self.domain = self.domain.add(variable)
            try:
                self.box[name] = box_of(self.domain, self.budget)[name]
            except ProofError:
                self.box[name] = REALS
            self._declare(variable)
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
            bases.append((self.atoms[i].base, rate * Ratio.number(e)))
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
                result = result * self._power_of(base, self.reduced(rate * at))
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
        shift = _shift(high)
        base = high - Ratio.number(shift)
        inner = self.node(term)
        key = (name, self._signature(term, index), _key(low), _key(base))
        # the numbers of the atoms may change with a restart, what they stand for does not
        lasting = (name, key[1], show(self.node(low)), show(self.node(base)))
        least = self.memory.shifts.setdefault(lasting, shift)
        if shift < least:
            self.memory.shifts[lasting] = shift
            raise self.memory.restart()
        if shift - least > _LARGEST_SHIFT:
            raise ProofError("two sums whose ends are too far apart")
        end = base + Ratio.number(least)
        self.require(end - low + Ratio.number(1), 1, "the number of terms", strict=False)
        node = Fold(name, index, self.node(low), self.node(end), inner)
        result = Ratio.atom(self._atom(key, Atom(node)))
        for step in range(least + 1, shift + 1):
            at = self.node(base + Ratio.number(step))
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


def _key(value: Ratio) -> str:
    return f"{value.top}|{value.bottom}"


def _integer_end(end: Any) -> int:
    found = end.unique_fmpz()
    if found is None:
        raise ProofError("the end of an integer range is no integer")
    return int(found)


def _is_negative(value: Ratio) -> bool:
    return not value.is_zero() and rational(value.top.leading_coefficient()) < 0


def _constant_term(value: Ratio) -> Fraction:
    """Return the constant term of a polynomial."""
    found = dict(value.top.terms()).get((0,) * ATOMS)
    return Fraction(0) if found is None or value.bottom != ONE else rational(found)


def _shift(value: Ratio) -> int:
    """Return the integer part of the constant term of a polynomial."""
    return floor(_constant_term(value))


def _primes(value: int) -> list[tuple[int, int]]:
    if value.bit_length() > _MOST_BITS:
        raise ProofError("a number is too large to be split into primes")
    return [(int(prime), int(n)) for prime, n in fmpz(value).factor()]


def _fraction_primes(value: Fraction) -> list[tuple[int, int]]:
    lower = [(prime, -n) for prime, n in _primes(value.denominator)]
    return [*_primes(value.numerator), *lower]


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
            known = known - ratio * found[n] * Ratio.number(comb(n, k))
        found[k] = known / (ratio - one)
    return found


def _check_antidifference(found: list[Ratio], degree: int, ratio: Ratio) -> None:
    """Check ratio·q(i + 1) − q(i) = i^degree, coefficient by coefficient."""
    for k in range(len(found)):
        upper = Ratio.number(0)
        for n in range(k, len(found)):
            upper = upper + found[n] * Ratio.number(comb(n, k))
        if not (ratio * upper - found[k] - Ratio.number(1 if k == degree else 0)).is_zero():
            raise ProofError("a telescoping sum does not check")


def _at(polynomial: list[Ratio], value: Ratio) -> Ratio:
    total = Ratio.number(0)
    for coefficient in reversed(polynomial):
        total = total * value + coefficient
    return total

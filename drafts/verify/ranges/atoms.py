"""What a rational function of the kernel is made of: atoms over a domain, with their signs.

What they stand for, and why, is said in `dpassay.verifier.ranges.normal`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from flint import arb

from dpassay.verifier.ranges.domain import Domain, Goal, Variable
from dpassay.verifier.ranges.expressions import (
    Apply,
    Budget,
    Name,
    Node,
    ProofError,
    free,
    number,
    show,
)
from dpassay.verifier.ranges.extended import evaluate
from dpassay.verifier.ranges.polynomials import (
    ATOMS,
    GENERATORS,
    ONE,
    Polynomial,
    Ratio,
    coefficients,
    rational,
    replaced,
    used,
)
from dpassay.verifier.ranges.ranges import INFINITY, REALS, Range
from dpassay.verifier.ranges.signs import Bounds, Sign, Signs, product
from dpassay.verifier.ranges.sweep import box_of, sweep

_PIECES: Final = 200
"""Of a sweep that shows a divisor, say, to differ from 0."""


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


class Atoms(ABC):
    """The atoms of one domain: their ranges, signs and relations."""

    def __init__(
        self, domain: Domain, budget: Budget, memory: Memory, roots: frozenset[str] = frozenset()
    ) -> None:
        self.domain, self.budget, self.memory = domain, budget, memory
        self.box = box_of(domain, budget)
        self.signs = Signs(budget)
        self.atoms: list[Atom] = []
        self._numbers: dict[Any, int] = {}
        self.names: dict[str, Ratio] = {}
        self._known: dict[Node, Ratio] = {}
        self._indices: dict[Any, str] = {}
        for variable in domain.variables:
            self.declare(variable, variable.name in roots)

    @abstractmethod
    def normal(self, node: Node) -> Ratio:
        """Return an expression as a ratio; raise ProofError where it may be undefined."""

    @abstractmethod
    def root(self, value: Ratio) -> Ratio:
        """Return √value."""

    def declare(self, variable: Variable, as_root: bool = False) -> None:
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
        atom = self.atom(("variable", name), Atom(root, integer=variable.integer), values, bounds)
        self.names[name] = Ratio.atom(atom) if root is node else Ratio.atom(atom) ** 2

    def _whole_ends(self, bounds: Bounds, values: Range) -> Bounds:
        """Close the ends of an integer variable that are numbers: n > 1 is n ≥ 2."""
        low, high = bounds.low, bounds.high
        low_open, high_open = bounds.low_open, bounds.high_open
        if low is not None and low.value() is not None and values.low.is_finite():
            low, low_open = Ratio.number(_integer_end(values.low)), False
        if high is not None and high.value() is not None and values.high.is_finite():
            high, high_open = Ratio.number(_integer_end(values.high)), False
        return Bounds(low, high, low_open, high_open)

    def atom(
        self, key: Any, atom: Atom, found: Range | None = None, bounds: Bounds | None = None
    ) -> int:
        """Return the number of an atom, a new one for what has not been met."""
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
        opened = self.powers_opened(value, atoms)
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

    def powers_opened(self, value: Ratio, atoms: list[int]) -> Ratio:
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

    def other(self, name: str, values: Sequence[Ratio]) -> Ratio:
        """Return the value of a function as an atom."""
        values = [self.reduced(value) for value in values]
        node = Apply(name, tuple(self.node(value) for value in values))
        whole = name in ("floor", "ceil")
        return Ratio.atom(self.atom((name, *map(key_of, values)), Atom(node, integer=whole)))

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


def key_of(value: Ratio) -> str:
    """Return a text that is the same for the same ratio."""
    return f"{value.top}|{value.bottom}"


def _integer_end(end: Any) -> int:
    found = end.unique_fmpz()
    if found is None:
        raise ProofError("the end of an integer range is no integer")
    return int(found)

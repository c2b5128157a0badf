"""Formulas as rational functions of atoms, and the signs of their polynomials.

An atom is a variable, or what no arithmetic makes: a root, an exponential, a logarithm, a power
with a variable exponent, a sum with variable ends. Roots of polynomials are reduced by s² = p;
exponentials and powers of sums become products; sums of polynomials times powers get their closed
form by T(j + 1) − T(j) = term(j). So equal numerators prove an identity.

A sign: every variable between a and b is (a + bt)/(1 + t) with t ≥ 0, one above a is a + t, every
other atom is its least value + t. A polynomial whose coefficients then have one sign has it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from math import comb, isqrt
from typing import Any, Protocol

from flint import Ordering, fmpq, fmpq_mpoly_ctx

from .expressions import FOLDS, ONE, ZERO, Node, make, number, substitute, variable
from .numbers import Budget, NotProved

MOST_ATOMS = 40
MOST_TERMS = 20_000
Poly = Any


class Signs(Protocol):
    """What an algebra asks about the domain: the sign of a formula, its least value."""

    budget: Budget

    def sign(self, node: Node) -> tuple[int, bool] | None:
        """Return (1 or −1, strictly), (0, False), or None."""

    def least(self, node: Node) -> fmpq | None:
        """Return a rational lower bound, or None."""

    def ends(self, name: str) -> tuple[Node | None, bool, Node | None, bool] | None:
        """Return low, whether it is excluded, high, whether it is excluded."""

    def order(self, name: str) -> int:
        """Return the place of a variable: its ends use earlier ones only."""

    def binding(self, index: str, low: Node, high: Node) -> AbstractContextManager[None]:
        """Let a bound variable range over the integers between two ends, for a while."""

    def around(self, node: Node) -> None:
        """Require that a formula is 0 only where others are the limit of the rest."""


class Ratio:
    """A quotient of two polynomials in lowest terms."""

    __slots__ = ("low", "top")

    def __init__(self, top: Poly, low: Poly) -> None:
        if low.is_constant():
            self.top, self.low = top / low.leading_coefficient(), low.context().constant(1)
            return
        common = top.gcd(low)
        self.top, self.low = (top, low) if common.is_one() else (top / common, low / common)

    @property
    def key(self) -> tuple[str, str]:
        """A text of the ratio."""
        return str(self.top), str(self.low)

    def constant(self) -> fmpq | None:
        """Return the number that the ratio is, if it is one."""
        if self.top.is_constant() and self.low.is_constant():
            return self.top.leading_coefficient() / self.low.leading_coefficient()
        return None


class Algebra:
    """Formulas over one domain as ratios of the same atoms."""

    def __init__(self, signs: Signs, *, closed: bool = True) -> None:
        names = tuple(f"a{i}" for i in range(MOST_ATOMS))
        self.ctx = fmpq_mpoly_ctx.get(names, Ordering.lex)
        self.signs, self.closed = signs, closed
        self.one = self.ctx.constant(1)
        self.atoms: list[Node] = []
        self._index: dict[Any, int] = {}
        self._roots: dict[int, Poly] = {}
        self._powers: dict[int, tuple[Ratio, int]] = {}
        self._memo: dict[Node, Ratio] = {}

    # --- arithmetic
    def constant(self, x: Any) -> Ratio:
        """Return a number as a ratio."""
        return Ratio(self.ctx.constant(fmpq(x)), self.one)

    def ratio(self, top: Poly, low: Poly) -> Ratio:
        """Return top/low with roots reduced."""
        self.signs.budget.check()
        top, low = self._reduced(top), self._reduced(low)
        if low.is_zero():
            raise NotProved("a formula divides by 0")
        if len(top) + len(low) > MOST_TERMS:
            raise NotProved("a polynomial in it has too many terms")
        return Ratio(top, low)

    def add(self, a: Ratio, b: Ratio, sign: int = 1) -> Ratio:
        """Return a + b, or a − b for sign −1."""
        if a.low == b.low:
            return self.ratio(a.top + sign * b.top, a.low)
        return self.ratio(a.top * b.low + sign * b.top * a.low, a.low * b.low)

    def mul(self, a: Ratio, b: Ratio) -> Ratio:
        """Return a·b."""
        return self.ratio(a.top * b.top, a.low * b.low)

    def div(self, a: Ratio, b: Ratio) -> Ratio:
        """Return a/b."""
        return self.ratio(a.top * b.low, a.low * b.top)

    def pow(self, a: Ratio, n: int) -> Ratio:
        """Return aⁿ, expanded."""
        if abs(n) > 400 or (len(a.top) + len(a.low)) ** min(abs(n), 20) > 10**9:
            raise NotProved("a power in it is too large to be expanded")
        return self.ratio(a.top**n, a.low**n) if n >= 0 else self.ratio(a.low**-n, a.top**-n)

    def _reduced(self, p: Poly) -> Poly:
        for i in sorted(self._roots, reverse=True):
            if p.degrees()[i] >= 2:
                root, square = self.ctx.gen(i), self._roots[i]
                parts = self.split(p, i)
                p = sum((c * square ** (k // 2) * root ** (k % 2) for k, c in parts.items()), 0)
                p = p if not isinstance(p, int) else self.ctx.constant(p)
        return p

    def split(self, p: Poly, i: int) -> dict[int, Poly]:
        """Return the coefficients of the powers of one atom."""
        parts: dict[int, dict[tuple[int, ...], fmpq]] = {}
        for powers, c in p.terms():
            k = int(powers[i])
            parts.setdefault(k, {})[(*map(int, powers[:i]), 0, *map(int, powers[i + 1 :]))] = c
        return {k: self.ctx.from_dict(v) for k, v in parts.items()}

    def used(self, *polys: Poly) -> list[int]:
        """Return the atoms that occur."""
        return [i for i in range(len(self.atoms)) if any(p.degrees()[i] > 0 for p in polys)]

    def node(self, a: Ratio) -> Node:
        """Return a ratio as a formula."""
        return self._sum(a.top) / self._sum(a.low) if not a.low.is_one() else self._sum(a.top)

    def _sum(self, p: Poly) -> Node:
        total = ZERO
        for powers, c in p.terms():
            term = number(c)
            for i, k in enumerate(powers):
                if int(k):
                    term = term * self.atoms[i] ** number(int(k))
            total = total + term
        return total

    # --- reading
    def atom(self, key: Any, node: Node) -> int:
        """Return the index of an atom, a new one if it is not known."""
        if key not in self._index:
            if len(self.atoms) == MOST_ATOMS:
                raise NotProved("it has too many roots, powers and variables")
            self._index[key] = len(self.atoms)
            self.atoms.append(node)
        return self._index[key]

    def gen(self, key: Any, node: Node) -> Ratio:
        """Return an atom as a ratio."""
        return Ratio(self.ctx.gen(self.atom(key, node)), self.one)

    def normal(self, node: Node) -> Ratio:
        """Return a formula as a ratio."""
        if node not in self._memo:
            self.signs.budget.check()
            self._memo[node] = self._normal(node)
        return self._memo[node]

    def _normal(self, node: Node) -> Ratio:
        op, args = node.op, node.args
        if op == "num":
            return self.constant(args[0])
        if op == "var":
            return self.gen(args[0], node)
        if op in ("+", "-"):
            return self.add(self.normal(args[0]), self.normal(args[1]), 1 if op == "+" else -1)
        if op == "*":
            return self.mul(self.normal(args[0]), self.normal(args[1]))
        if op == "/":
            return self.div(self.normal(args[0]), self.normal(args[1]))
        if op == "**":
            return self.power(args[0], self.normal(args[1]))
        if op in FOLDS:
            return self._fold(node)
        if op in _REWRITTEN and len(args) == 1:
            return self.normal(_REWRITTEN[op](*args))
        if op == "log" and len(args) == 2:
            return self.normal(make("log", args[0]) / make("log", args[1]))
        if op == "sqrt":
            return self.root(self.normal(args[0]))
        if op == "exp":
            return self.exp(self.normal(args[0]))
        if op == "log":
            return self.log(self.normal(args[0]))
        if op == "abs":
            found = self.signs.sign(args[0])
            if found is not None:
                inner = self.normal(args[0])
                return inner if found[0] >= 0 else self.mul(self.constant(-1), inner)
        if all(isinstance(a, Node) for a in args) and op not in ("list", "text"):
            inside = [self.normal(a) for a in args]
            if op in ("max", "min"):
                inside = list({a.key: a for a in inside}.values())
                if len(inside) == 1:
                    return inside[0]
                inside.sort(key=lambda a: a.key)
            known = make(op, *(self.node(a) for a in inside))
            return self.gen((op, *(a.key for a in inside)), known)
        return self.gen(node, node)

    def root(self, a: Ratio) -> Ratio:
        """Return √a: what is a square is taken out of it."""
        inside = a.top * a.low
        if inside.is_zero():
            return self.constant(0)
        scale, factors = inside.factor()
        scale = fmpq(scale)
        outside, rest = self.one, self.ctx.constant(1)
        for factor, k in factors:
            half = self._sum(factor)
            sign = self.signs.sign(half) if int(k) > 1 else None
            if sign is None:
                if int(k) % 2 == 0 and int(k) > 1:
                    rest = rest * factor**k
                    continue
                rest = rest * factor**k
                continue
            outside = outside * (factor * (1 if sign[0] >= 0 else -1)) ** (int(k) // 2)
            rest = rest * factor ** (int(k) % 2)
        low = self._sum(a.low)
        sign = self.signs.sign(low)
        if sign is None:
            raise NotProved("a root of a quotient has a divisor without a sign")
        n, d = int(scale.p), int(scale.q)
        square, left = _square(abs(n) * d)
        rest = rest * (left if n > 0 else -left)
        outside = outside * fmpq(square, d)
        below = a.low * (1 if sign[0] > 0 else -1)
        if rest.is_constant() and rest.leading_coefficient() == 1:
            return self.ratio(outside, below)
        node = make("sqrt", self._sum(rest))
        index = self.atom(("sqrt", str(rest)), node)
        self._roots[index] = rest
        return self.ratio(outside * self.ctx.gen(index), below)

    def exp(self, a: Ratio) -> Ratio:
        """Return e^a as a product over the terms of a."""
        return self._product(a, self._exp_term)

    def _exp_term(self, unit: Ratio, c: fmpq) -> Ratio:
        if unit.constant() is None:
            node = self.node(unit)
            if node.op == "log" and c.q == 1:
                return self.pow(self.normal(node.args[0]), int(c.p))
        part = 8 if 8 % int(c.q) == 0 else int(c.q)
        node = make("exp", self.node(unit) / number(part))
        return self.pow(self.gen(("exp", unit.key, part), node), int((c * part).p))

    def _product(self, a: Ratio, of: Callable[[Ratio, fmpq], Ratio]) -> Ratio:
        total = self.constant(1)
        for powers, c in a.top.terms():
            scale = fmpq(a.low.leading_coefficient())
            unit = Ratio(self.ctx.from_dict({tuple(map(int, powers)): fmpq(1)}), a.low / scale)
            total = self.mul(total, of(unit, fmpq(c) / scale))
        return total

    def log(self, a: Ratio) -> Ratio:
        """Return ln a, as a sum over the factors that are known to be positive."""
        total, scale = self.constant(0), fmpq(1)
        for poly, side in ((a.top, 1), (a.low, -1)):
            content, factors = poly.factor()
            scale = scale * fmpq(content) if side > 0 else scale / fmpq(content)
            for factor, k in factors:
                sign = self.signs.sign(self._sum(factor))
                if sign is None or not sign[1]:
                    return self.gen(("log", a.key), make("log", self.node(a)))
                if sign[0] < 0 and int(k) % 2:
                    scale = -scale
                factor = factor * sign[0]
                atom = self._exponential(factor)
                powers = (
                    self.gen(("log", str(factor)), make("log", self._sum(factor)))
                    if atom is None
                    else self.normal(atom)
                )
                total = self.add(total, self.mul(self.constant(side * int(k)), powers))
        if scale <= 0:
            raise NotProved("it has the logarithm of a number that is not positive")
        for n, side in ((scale.p, 1), (scale.q, -1)):
            parts = n.factor() if int(n).bit_length() < 64 else [(n, 1)]
            for prime, k in parts:
                if int(prime) > 1:
                    one = self.gen(("log", str(prime)), make("log", number(int(prime))))
                    total = self.add(total, self.mul(self.constant(side * int(k)), one))
        return total

    def _exponential(self, p: Poly) -> Node | None:
        """Return x of a polynomial that is one atom e^x."""
        found = self.used(p)
        if len(found) == 1 and p == self.ctx.gen(found[0]) and self.atoms[found[0]].op == "exp":
            return self.atoms[found[0]].args[0]
        return None

    def power(self, base: Node, power: Ratio) -> Ratio:
        """Return base^power."""
        n = power.constant()
        if n is not None and n.q == 1:
            return self.pow(self.normal(base), int(n.p))
        if n is not None and n.q == 2:
            return self.pow(self.root(self.normal(base)), int(n.p))
        inner = self.normal(base)
        known = inner.constant()
        if known is not None and known > 0 and known.q == 1 and int(known.p).bit_length() < 64:
            total = self.constant(1)
            for prime, k in known.p.factor():
                whole = self.mul(self.constant(int(k)), power)
                total = self.mul(total, self._power(self.constant(int(prime)), whole))
            return total
        return self._power(inner, power)

    def _power(self, base: Ratio, power: Ratio) -> Ratio:
        if not power.low.is_one():
            node = self.node(base) ** self.node(power)
            return self.gen(("**", base.key, power.key), node)

        def term(unit: Ratio, c: fmpq) -> Ratio:
            if unit.constant() is not None:
                return self.power(self.node(base), self.constant(c))
            node = self.node(base) ** (self.node(unit) / number(int(c.q)))
            i = self.atom(("**", base.key, unit.key, int(c.q)), node)
            if c.q == 1 and unit.top.total_degree() == 1:
                self._powers[i] = base, self.used(unit.top)[0]
            return self.pow(Ratio(self.ctx.gen(i), self.one), int(c.p))

        return self._product(power, term)

    def _fold(self, node: Node) -> Ratio:
        index, low, high, term = node.args
        first, last = self.normal(low), self.normal(high)
        count = self.add(last, first, -1).constant()
        if count is not None and count.q == 1 and count < 200:
            total = self.constant(0 if node.op == "sum" else 1)
            start = low
            for i in range(int(count.p) + 1):
                one = self.normal(substitute(term, {index: start + number(i)}))
                total = self.add(total, one) if node.op == "sum" else self.mul(total, one)
            return total
        empty = self.signs.sign(high - low + ONE)
        if empty is None or empty[0] < 0:
            raise NotProved("a sum in it may end before it begins")
        with self.signs.binding(index, low, high):
            try:
                if node.op == "sum" and self.closed:
                    found = self._closed(index, first, last, term)
                    if found is not None:
                        return found
                return self._opened(node, last)
            finally:
                self._memo = {n: r for n, r in self._memo.items() if index not in n.free}

    def _opened(self, node: Node, last: Ratio) -> Ratio:
        """Return a sum or product to n, and the terms from there, where its end is n + c."""
        index, low, high, term = node.args
        zero = (0,) * MOST_ATOMS
        shift = fmpq(last.top.to_dict().get(zero, 0)) if last.low.is_one() else fmpq(0)
        shift = fmpq(shift.floor())
        base = high - number(shift)
        found = self.signs.sign(base - low + ONE)
        if abs(shift) > 50 or found is None or found[0] < 0:
            base, shift = high, fmpq(0)
        end = self.normal(base)
        plain = self.node(end)
        key = (node.op, term, self.normal(low).key, end.key)
        total = self.gen(key, make(node.op, index, low, plain, term))
        for i in range(1, abs(int(shift.p)) + 1):
            at = plain + number(i if shift > 0 else 1 - i)
            one = self.normal(substitute(term, {index: at}))
            if node.op == "sum":
                total = self.add(total, one, 1 if shift > 0 else -1)
            else:
                total = self.mul(total, one) if shift > 0 else self.div(total, one)
        return total

    def _closed(self, index: str, first: Ratio, last: Ratio, term: Node) -> Ratio | None:
        inside = self.normal(term)
        own = self.atom(index, variable(index))
        bound = [i for i, atom in enumerate(self.atoms) if index in atom.free and i != own]
        powers = [i for i in bound if i in self._powers and self._powers[i][1] == own]
        if any(i not in powers for i in self.used(inside.top) if i in bound):
            return None
        if any(inside.low.degrees()[i] > 0 for i in [own, *bound]):
            return None
        groups: dict[tuple[int, ...], dict[int, dict[Any, fmpq]]] = {}
        for exponents, c in inside.top.terms():
            key = tuple(int(exponents[i]) for i in powers)
            rest = tuple(0 if i == own or i in powers else int(e) for i, e in enumerate(exponents))
            groups.setdefault(key, {}).setdefault(int(exponents[own]), {})[rest] = c
        total = self.constant(0)
        after = self.add(last, self.constant(1))
        for key, degrees in groups.items():
            p = {d: self.ratio(self.ctx.from_dict(v), inside.low) for d, v in degrees.items()}
            base = self.constant(1)
            for i, k in zip(powers, key, strict=True):
                base = self.mul(base, self.pow(self._powers[i][0], k))
            r = self._telescope(p, base)
            for end, sign in ((after, 1), (first, -1)):
                at = self.constant(0)
                for d, c in r.items():
                    at = self.add(at, self.mul(c, self.pow(end, d)))
                for i, k in zip(powers, key, strict=True):
                    own_base = self.node(self._powers[i][0])
                    at = self.mul(at, self.power(own_base, self.mul(self.constant(k), end)))
                total = self.add(total, at, sign)
        return total

    def _telescope(self, p: dict[int, Ratio], base: Ratio) -> dict[int, Ratio]:
        """Return r with base·r(j + 1) − r(j) = p(j)."""
        top, zero = max(p), self.constant(0)
        r: dict[int, Ratio] = {}
        flat = base.constant() == 1
        if not flat:
            self.signs.around(self.node(self.add(base, self.constant(1), -1)))
        for d in range(top + (1 if flat else 0), -1 if not flat else 0, -1):
            equation = d - 1 if flat else d
            rest = p.get(equation, zero)
            for e, c in r.items():
                if e > equation and e != d:
                    shift = self.mul(self.constant(comb(e, equation)), self.mul(base, c))
                    rest = self.add(rest, shift, -1)
            by = self.constant(d) if flat else self.add(base, self.constant(1), -1)
            r[d] = self.div(rest, by)
        return r

    def vanishes(self, a: Ratio) -> bool:
        """Whether a ratio is 0 over the domain: at once, or as A + s·B = 0 with A·B ≤ 0, A² = s²B²."""
        if a.top.is_zero():
            return True
        for i in sorted(self._roots, reverse=True):
            parts = self.split(a.top, i)
            if {*parts} != {0, 1}:
                continue
            plain, rooted = (Ratio(parts[k], self.one) for k in (0, 1))
            square = self.ratio(plain.top**2 - rooted.top**2 * self._roots[i], self.one)
            sign = self.signs.sign(self.node(self.mul(plain, rooted)))
            if sign is not None and sign[0] <= 0 and self.vanishes(square):
                return True
        return False

    # --- signs
    def sign(self, a: Ratio) -> tuple[int, bool] | None:
        """Return the sign of a ratio by the coefficients of its factors."""
        if a.top.is_zero():
            return 0, False
        total, strict = 1, True
        for poly, is_top in ((a.top, True), (a.low, False)):
            scale, factors = self._without_roots(poly)[1].factor()
            total = -total if fmpq(scale) < 0 else total
            for factor, k in factors:
                found = self._spread(factor)
                if found is None and int(k) % 2:
                    return None
                if found is None:
                    found = 1, False
                total *= found[0] if int(k) % 2 else 1
                strict = strict and (found[1] or not is_top)
        return total, strict

    def _spread(self, p: Poly) -> tuple[int, bool] | None:
        """Return the sign of a polynomial by its coefficients, atoms taken at t above their ends."""
        lifted, p = self._without_roots(p)
        plan: list[tuple[int, bool, bool, int]] = []
        done: set[int] = set()
        while waiting := [i for i in self.used(p) if i not in done]:
            places = {root: self.signs.order(self.atoms[x].args[0]) for x, root in lifted.items()}
            i = max(waiting, key=lambda i: places.get(i, _rank(self, i)))
            low, low_open, high, high_open = self._range(i, lifted)
            if low is None and high is None:
                return None
            most = max(self.split(p, i))
            if low is None and high is not None:
                p = self._put(p, i, high, None, negative=True)
                plan.append((i, high_open, True, most))
            else:
                p = self._put(p, i, low, high)
                plan.append((i, low_open, high_open or high is None, most))
            done.add(i)
            if p.is_zero():
                return 0, False
            if len(p) > MOST_TERMS:
                return None
        signs = {c > 0 for _, c in p.terms()}
        if len(signs) > 1:
            return None
        return (1 if True in signs else -1), self._strict(p, plan)

    def _strict(self, p: Poly, plan: list[tuple[int, bool, bool, int]]) -> bool:
        """Whether a polynomial with coefficients of one sign is nowhere 0."""
        if p.is_zero():
            return False
        if not plan:
            return True
        (i, low_open, high_open, most), rest = plan[-1], plan[:-1]
        parts = self.split(p, i)
        first = 0 in parts and self._strict(parts[0], rest)
        final = high_open or (most in parts and self._strict(parts[most], rest))
        inner = first or (low_open and any(self._strict(c, rest) for c in parts.values()))
        return inner and final

    def _without_roots(self, p: Poly) -> tuple[dict[int, int], Poly]:
        """Write s² for a variable whose root s occurs: return variable → root."""
        lifted: dict[int, int] = {}
        for i, square in self._roots.items():
            if p.degrees()[i] > 0 and square.total_degree() == 1 and len(square) == 1:
                (x,) = self.used(square)
                plain = square.leading_coefficient() == 1 and self.atoms[x].op == "var"
                if plain and x not in lifted:
                    parts = self.split(p, x)
                    p = sum((c * self.ctx.gen(i) ** (2 * k) for k, c in parts.items()), 0 * p)
                    lifted[x] = i
        return lifted, p

    def _range(
        self, i: int, lifted: dict[int, int]
    ) -> tuple[Ratio | None, bool, Ratio | None, bool]:
        node = self.atoms[i]
        for x, root in lifted.items():
            below = self.signs.ends(self.atoms[x].args[0]) if root == i else None
            if below is not None and below[0] is not None and below[0].op == "var":
                other = lifted.get(self._index.get(below[0].args[0], -1))
                if other is not None:
                    return Ratio(self.ctx.gen(other), self.one), below[1], None, True
        if node.op == "var" and (found := self.signs.ends(node.args[0])) is not None:
            low, low_open, high, high_open = found
            kept = [None if e is None else self.normal(e) for e in (low, high)]
            fine = [
                None if r is None or any(x in lifted for x in self.used(r.top, r.low)) else r
                for r in kept
            ]
            if fine[0] is None and kept[0] is not None and (least := self.signs.least(node)):
                fine[0], low_open = self.constant(least), False
            return fine[0], low_open, fine[1], high_open
        least = self.signs.least(node)
        sign = self.signs.sign(node)
        if least is None and sign is not None and sign[0] >= 0:
            least = fmpq(0)
        if least is None:
            return None, False, None, False
        strict = least == 0 and sign == (1, True)
        if node.op == "exp" and least == 1:
            strict = self.signs.sign(node.args[0]) == (1, True)
        return self.constant(least), strict, None, True

    def _put(
        self, p: Poly, i: int, low: Ratio | None, high: Ratio | None, *, negative: bool = False
    ) -> Poly:
        """Write (low + high t)/(1 + t), low + t or low − t for an atom; times a positive number."""
        assert low is not None
        t = self.ctx.gen(i)
        top, below = low.top, low.low
        if high is not None:
            top = low.top * high.low + high.top * low.low * t
            below = low.low * high.low * (1 + t)
        else:
            top = top - t * below if negative else top + t * below
        ends = (
            self.signs.sign(self._sum(low.low)),
            ((1, True) if high is None else self.signs.sign(self._sum(high.low))),
        )
        if any(s != (1, True) for s in ends):
            raise NotProved("an end of a variable has a divisor without a sign")
        parts = self.split(p, i)
        most = max(parts)
        zero = self.ctx.constant(0)
        return sum((c * top**k * below ** (most - k) for k, c in parts.items()), zero)


def _rank(algebra: Algebra, i: int) -> int:
    """Later variables first, as ends use earlier ones and roots; other atoms after all variables."""
    node = algebra.atoms[i]
    return algebra.signs.order(node.args[0]) if node.op == "var" else -1


def _square(n: int) -> tuple[int, int]:
    """Return (a, b) with n = a²·b, where a has the small primes of n's square part."""
    root = isqrt(n)
    if root * root == n:
        return root, 1
    a, p = 1, 2
    while p < 1000 and p * p <= n:
        while n % (p * p) == 0:
            n //= p * p
            a *= p
        p += 1
    return a, n


_REWRITTEN: dict[str, Callable[[Node], Node]] = {
    "log1p": lambda x: make("log", ONE + x),
    "expm1": lambda x: make("exp", x) - ONE,
    "log2": lambda x: make("log", x) / make("log", number(2)),
    "tanh": lambda x: ONE - number(2) / (make("exp", number(2) * x) + ONE),
    "mills": lambda x: (
        make("Phi", ZERO - x)
        * make("sqrt", number(2) * make("pi"))
        * make("exp", x * x / number(2))
    ),
    "erf": lambda x: ONE - make("erfc", x),
}

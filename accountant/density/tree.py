"""Expressions in x as trees: simplification, differentiation and logarithms.

If the structure of a + b shows that it is positive, its logarithm is logsum(ln a, ln b). This form
neither underflows nor overflows, and its derivative is a weighted mean of those of ln a and ln b.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, final

from flint import fmpq, fmpq_poly

from dpassay.accountant.numbers.exact import to_fmpq


@final
@dataclass(frozen=True, slots=True)
class Node:
    """One operation.

    `op` is num, pi, x, add, mul, pow (parts[0] to the rational power `number`), exp, log, logsum
    (ln(e^a + e^b)), sigmoid (1/(1 + e^{−a})), or if with parts (u, a, b): a where u > 0, else b. A
    join is an if whose branches agree where u = 0.
    """

    op: str
    parts: tuple[Node, ...] = ()
    number: Fraction = Fraction(0)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash once: subtrees are shared, and many paths lead to each."""
        object.__setattr__(self, "_hash", hash((self.op, self.parts, self.number)))

    def __hash__(self) -> int:
        """Return the stored hash."""
        return self._hash


X, PI = Node("x"), Node("pi")
_LARGEST_POWER = 64
"""Largest power of a number that is computed, and degree of a polynomial that is expanded."""
_HIGHEST_DEGREE = 400
"""Largest total degree of a quotient of polynomials; higher ones take long to factor."""
MOST_BITS = 1 << 14
"""Most bits of a computed number; longer ones take long to write."""


def bits(value: Fraction) -> int:
    """Return the bit length of the numerator or the denominator, whichever is longer."""
    return max(map(int.bit_length, value.as_integer_ratio()))


def num(value: Fraction | int) -> Node:
    """Return a constant."""
    return Node("num", (), Fraction(value))


ZERO, ONE = num(0), num(1)


def add(a: Node, b: Node) -> Node:
    """Return a + b."""
    if a.op == b.op == "num":
        return num(a.number + b.number)
    if a == ZERO:
        return b
    if b == ZERO:
        return a
    if a == negative(b):
        return ZERO
    if b.op == "num":
        a, b = b, a
    for one, other in ((a, b), (b, a)):  # constants are collected in front
        if other.op == "add" and other.parts[0].op == "num":
            if one.op == "num":
                return add(num(one.number + other.parts[0].number), other.parts[1])
            rest = (one, other.parts[1]) if one is a else (other.parts[1], one)
            return add(other.parts[0], add(*rest))
    return Node("add", (a, b))


def negative(a: Node) -> Node:
    """Return −a."""
    return mul(num(-1), a)


def less(a: Node, b: Node) -> Node:
    """Return a − b."""
    return add(a, negative(b))


def mul(a: Node, b: Node) -> Node:
    """Return ab, with a constant factor in front."""
    if a.op == b.op == "num":
        return num(a.number * b.number)
    if b.op == "num":
        a, b = b, a
    if a.op == "num":
        if a.number in (0, 1):
            return b if a.number else ZERO
        if b.op == "mul" and b.parts[0].op == "num":
            return mul(num(a.number * b.parts[0].number), b.parts[1])
        if b.op == "add" and all(_leads(part) for part in b.parts):
            return add(mul(a, b.parts[0]), mul(a, b.parts[1]))
        return Node("mul", (a, b))
    for one, other, swapped in ((a, b, False), (b, a, True)):
        if one.op == "mul" and one.parts[0].op == "num":
            rest = mul(other, one.parts[1]) if swapped else mul(one.parts[1], other)
            return mul(one.parts[0], rest)
    if a.op == b.op == "exp":
        return exp(add(a.parts[0], b.parts[0]))
    (base, r), (other_base, s) = _power(a), _power(b)
    if base == other_base:
        return power(base, r + s)
    return Node("mul", (a, b))


def _leads(a: Node) -> bool:
    """Whether a constant times this is a single term, so that it is distributed over a sum."""
    return a.op in ("num", "x", "pow") or (a.op == "mul" and a.parts[0].op == "num")


def _power(a: Node) -> tuple[Node, Fraction]:
    return (a.parts[0], a.number) if a.op == "pow" else (a, Fraction(1))


def power(a: Node, r: Fraction) -> Node:
    """Return a to the rational power r."""
    if r == 0:
        return ONE
    if r == 1:
        return a
    whole = r.denominator == 1
    short = a.op == "num" and abs(r) <= _LARGEST_POWER and bits(a.number) * abs(r) <= MOST_BITS
    if a.op == "num" and (a == ONE or (whole and a.number and short)):
        return num(a.number**r.numerator) if whole else ONE
    if a == ZERO and r > 0:
        return ZERO
    if a.op == "exp":
        return exp(mul(num(r), a.parts[0]))
    if whole and a.op == "pow":
        return power(a.parts[0], a.number * r)
    if whole and a.op == "mul" and a.parts[0].op == "num":
        return mul(power(a.parts[0], r), power(a.parts[1], r))
    return Node("pow", (a,), r)


def exp(a: Node) -> Node:
    """Return e^a."""
    if a == ZERO:
        return ONE
    return a.parts[0] if a.op == "log" else Node("exp", (a,))


def log(a: Node) -> Node:
    """Return ln a."""
    if a == ONE:
        return ZERO
    return a.parts[0] if a.op == "exp" else Node("log", (a,))


def sigmoid(a: Node) -> Node:
    """Return 1/(1 + e^{−a})."""
    return num(Fraction(1, 2)) if a == ZERO else Node("sigmoid", (a,))


def logsum(a: Node, b: Node) -> Node:
    """Return ln(e^a + e^b)."""
    return add(a, log(num(2))) if a == b else Node("logsum", (a, b))


def branch(u: Node, a: Node, b: Node, *, joined: bool = False) -> Node:
    """Return a where u > 0, else b; `joined` means that both agree where u = 0."""
    if u.op == "num":
        return a if u.number > 0 else b
    return a if a == b else Node("join" if joined else "if", (u, a, b))


def rebuilt(a: Node, parts: tuple[Node, ...]) -> Node:
    """Return the same operation on other parts, simplified."""
    match a.op:
        case "add":
            return add(*parts)
        case "mul":
            return mul(*parts)
        case "pow":
            return power(parts[0], a.number)
        case "exp":
            return exp(parts[0])
        case "log":
            return log(parts[0])
        case "sigmoid":
            return sigmoid(parts[0])
        case "logsum":
            return logsum(*parts)
        case "if" | "join":
            return branch(*parts, joined=a.op == "join")
    return Node(a.op, parts, a.number)


def replaced(a: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return the tree with each node replaced by `change(node)`, unless that is None."""
    found: dict[Node, Node] = {}

    def walk(node: Node) -> Node:
        if node not in found:
            changed = change(node)
            if changed is None:
                parts = tuple(map(walk, node.parts))
                changed = node if parts == node.parts else rebuilt(node, parts)
            found[node] = changed
        return found[node]

    return walk(a)


@functools.lru_cache(maxsize=1 << 14)
def varies(a: Node) -> bool:
    """Whether the expression depends on x."""
    return a == X or any(map(varies, a.parts))


def at(a: Node, value: Node) -> Node:
    """Return the tree with an expression in place of x."""
    return replaced(a, lambda node: value if node == X else None)


def mirrored(a: Node, about: Fraction = Fraction(0)) -> Node:
    """Return the tree at 2c − x, where c = `about`."""
    return at(a, less(num(2 * about), X))


def polynomials(a: Node) -> dict[Node, fmpq_poly]:
    """Return the maximal subtrees that are polynomials in x with rational coefficients."""
    known: dict[Node, fmpq_poly | None] = {}

    def walk(node: Node) -> fmpq_poly | None:
        if node not in known:
            known[node] = _polynomial(node, [walk(part) for part in node.parts])
        return known[node]

    largest: dict[Node, fmpq_poly] = {}
    seen, rest = set(), [a]
    while rest:
        node = rest.pop()
        if node in seen:
            continue
        seen.add(node)
        found = walk(node)
        if found is None:
            rest += node.parts
        elif found.degree() > 0:
            largest[node] = found
    return largest


def _polynomial(a: Node, parts: list[fmpq_poly | None]) -> fmpq_poly | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or a.op not in ("x", "num", "add", "mul", "pow"):
        return None
    match a.op, known:
        case "add", (p, q):
            return p + q
        case "mul", (p, q) if p.degree() + q.degree() <= _LARGEST_POWER:
            return p * q
        case "pow", (p,) if a.number > 0 and a.number.denominator == 1:
            n = a.number.numerator
            return p**n if p.degree() * n <= _LARGEST_POWER else None
        case "x", _:
            return fmpq_poly([0, 1])
        case "num", _:
            return fmpq_poly([to_fmpq(a.number)])
    return None


Quotient: TypeAlias = "tuple[fmpq_poly, fmpq_poly, Node]"
"""p, q and g in p(x)/q(x)·e^{g(x)}."""


def quotient(a: Node) -> Quotient | None:
    """Write an expression as a quotient of polynomials times an exponential; None if impossible.

    The exponential cancels in (ln f)′ = f′/f, and the zeros of the remaining quotient are exact.
    """
    match a.op:
        case "num":
            return fmpq_poly([to_fmpq(a.number)]), fmpq_poly([1]), ZERO
        case "x":
            return fmpq_poly([0, 1]), fmpq_poly([1]), ZERO
        case "exp":
            return _quotient_of_exp(a.parts[0]) or (fmpq_poly([1]), fmpq_poly([1]), a.parts[0])
        case "sigmoid":
            found = _quotient_of_exp(a.parts[0])
            return found and (found[0], found[0] + found[1], ZERO)
        case "pow":
            found = quotient(a.parts[0])
            return None if found is None else _to_power(found, a.number)
        case "add" | "mul":
            one, other = (quotient(part) for part in a.parts)
            if one and other and a.op == "mul":
                return _reduced(one[0] * other[0], one[1] * other[1], add(one[2], other[2]))
            if one and other and (one[2] == other[2] or not one[0] or not other[0]):
                grown = (one if one[0] else other)[2]
                return _reduced(one[0] * other[1] + other[0] * one[1], one[1] * other[1], grown)
    return None


def _quotient_of_exp(a: Node) -> Quotient | None:
    """Return e^a as a quotient of polynomials, or None if it is not one."""
    match a.op:
        case "num" if a == ZERO:
            return quotient(ONE)
        case "log":
            found = quotient(a.parts[0])
            return found if found and found[2] == ZERO else None
        case "mul" if a.parts[0].op == "num":
            found = _quotient_of_exp(a.parts[1])
            return None if found is None else _to_power(found, a.parts[0].number)
        case "add" | "logsum":
            one, other = map(_quotient_of_exp, a.parts)
            if one and other:
                top = one[0] * other[0]
                if a.op == "logsum":
                    top = one[0] * other[1] + other[0] * one[1]
                return _reduced(top, one[1] * other[1], ZERO)
    return None


def _to_power(found: Quotient, r: Fraction) -> Quotient | None:
    p, q, grown = found
    if r < 0:
        p, q = q, p
    n = abs(r.numerator)
    if r.denominator != 1 or not q or (p.degree() + q.degree()) * n > _HIGHEST_DEGREE:
        return None
    return p**n, q**n, mul(num(r), grown)


def _reduced(p: fmpq_poly, q: fmpq_poly, grown: Node) -> Quotient | None:
    if p.degree() + q.degree() > _HIGHEST_DEGREE:
        return None
    common = p.gcd(q)
    return p // common, q // common, grown if p else ZERO


def sign_of(a: Node) -> Node | None:
    """Return a square-free product of polynomials with the sign of a; None if a is no quotient.

    Factors with even powers are dropped, since they do not change the sign.
    """
    found = quotient(a)
    if found is None:
        return None
    unit, factors = (found[0] * found[1]).factor() if found[0] else (0, [])
    sign = num((unit > 0) - (unit < 0))
    for each, times in factors:
        if times % 2:
            value = ZERO
            for c in reversed(each.coeffs()):
                value = add(mul(value, X), num(_fraction(c)))
            sign = mul(sign, value)
    return sign


def centres(a: Node) -> list[Fraction]:
    """Return the mean root of each polynomial; a reflection that preserves f preserves this set."""
    return [_fraction(-p[n - 1] / (n * p[n])) for p in polynomials(a).values() if (n := p.degree())]


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def ordered(a: Node) -> Node:
    """Return a canonical tree: polynomials expanded, terms sorted."""
    known = {
        node: Node("polynomial", tuple(num(_fraction(c)) for c in p.coeffs()))
        for node, p in polynomials(a).items()
    }

    def walk(node: Node) -> Node:
        if node not in known:
            parts = tuple(map(walk, node.parts))
            if node.op in ("add", "mul", "logsum"):
                parts = tuple(sorted(parts, key=hash))
            known[node] = Node(node.op, parts, node.number)
        return known[node]

    return walk(a)


def derivative(a: Node, *, quotients: bool = False) -> Node:
    """Return the derivative in x, that of each branch separately.

    With `quotients`, the derivative of a quotient is written as a single quotient.
    """
    known: dict[Node, Node] = {}

    def d(node: Node) -> Node:
        if node not in known:
            known[node] = (_of_quotient(node, d) if quotients else None) or _derivative(node, d)
        return known[node]

    return d(a)


def _of_quotient(a: Node, d: Callable[[Node], Node]) -> Node | None:
    """Return (u′v + r u v′) v^{r − 1}, the derivative of u v^r with r < 0; None for other nodes."""
    for u, v in (a.parts, a.parts[::-1]) if a.op == "mul" else ():
        if v.op == "pow" and v.number < 0:
            base = v.parts[0]
            grown = add(mul(d(u), base), mul(num(v.number), mul(u, d(base))))
            return mul(grown, power(base, v.number - 1))
    return None


def _derivative(a: Node, d: Callable[[Node], Node]) -> Node:
    match a.op:
        case "num" | "pi":
            return ZERO
        case "x":
            return ONE
        case "add":
            return add(*map(d, a.parts))
        case "mul":
            left, right = a.parts
            return add(mul(d(left), right), mul(left, d(right)))
        case "pow":
            return mul(mul(num(a.number), d(a.parts[0])), power(a.parts[0], a.number - 1))
        case "exp":
            return mul(d(a.parts[0]), a)
        case "log":
            return mul(d(a.parts[0]), power(a.parts[0], Fraction(-1)))
        case "logsum":
            left, right = a.parts
            rises = d(left), d(right)
            if rises[0].op == rises[1].op == "num":  # constant slopes: the larger, and the rest
                if rises[0].number < rises[1].number:
                    left, right, rises = right, left, rises[::-1]
                lost = num(rises[1].number - rises[0].number)
                return add(rises[0], mul(lost, sigmoid(less(right, left))))
            shares = (sigmoid(less(left, right)), sigmoid(less(right, left)))
            return add(mul(d(left), shares[0]), mul(d(right), shares[1]))
        case "sigmoid":
            return mul(d(a.parts[0]), mul(a, sigmoid(negative(a.parts[0]))))
        case "if" | "join":
            return branch(a.parts[0], d(a.parts[1]), d(a.parts[2]))
    raise ValueError(a.op)


def is_positive(a: Node, known: Mapping[Node, int] | None = None) -> bool:
    """Whether a > 0 wherever it is defined, by its structure and the known signs of terms."""
    if known and known.get(a) == 1:
        return True
    match a.op:
        case "num":
            return a.number > 0
        case "exp" | "pi" | "sigmoid":
            return True
        case "mul":
            return all(is_positive(part, known) for part in a.parts)
        case "pow":
            return is_positive(a.parts[0], known)
        case "add":
            some = any(is_positive(part, known) for part in a.parts)
            return some and all(_is_nonnegative(part, known) for part in a.parts)
    return False


def _is_nonnegative(a: Node, known: Mapping[Node, int] | None) -> bool:
    if a == ZERO or is_positive(a, known):
        return True
    if a.op == "pow":
        return a.number.denominator == 1 and a.number > 0 and a.number.numerator % 2 == 0
    return a.op in ("mul", "add") and all(_is_nonnegative(part, known) for part in a.parts)


def _has_exponential(a: Node) -> bool:
    return a.op in ("exp", "sigmoid") or any(_has_exponential(part) for part in a.parts)


def log_of(a: Node, known: Mapping[Node, int]) -> Node:
    """Return ln a, for an expression a > 0 without branches."""
    match a.op:
        case "mul" if all(is_positive(part, known) for part in a.parts):
            return add(*(log_of(part, known) for part in a.parts))
        case "pow" if is_positive(a.parts[0], known):
            return mul(num(a.number), log_of(a.parts[0], known))
        case "add" if _has_exponential(a) and all(is_positive(part, known) for part in a.parts):
            return logsum(*(log_of(part, known) for part in a.parts))
    return log(a)

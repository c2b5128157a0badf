"""Values of an expression in ball arithmetic, at real points and, for integrals, complex ones."""

from __future__ import annotations

from fractions import Fraction

from flint import acb, acb_poly, arb, fmpq, fmpq_poly

from dpassay.accountant.density.tree import Node, polynomials
from dpassay.accountant.numbers.interval import ball

_HALF = fmpq(1, 2)
_ZERO = acb(0)


def real(node: Node, x: arb) -> arb:
    """Return a ball that contains the value at every number in x; NaN if it is not known."""
    known: dict[Node, arb] = {}

    def of(node: Node) -> arb:
        found = known.get(node)
        if found is None:
            found = known[node] = _real(node, x, [of(part) for part in node.parts])
        return found

    return of(node)


def _real(node: Node, x: arb, parts: list[arb]) -> arb:
    match node.op:
        case "x":
            return x
        case "num":
            return ball(node.number)
        case "pi":
            return arb.pi()
        case "add":
            return parts[0] + parts[1]
        case "mul":
            return parts[0] * parts[1]
        case "pow":
            return _real_power(parts[0], node.number)
        case "exp":
            return parts[0].exp()
        case "log":
            return parts[0].log()
        case "logsum":
            large, small = parts if parts[0].mid() > parts[1].mid() else parts[::-1]
            return large + (small - large).exp().log1p()
        case "sigmoid":
            return 1 / (1 + (-parts[0]).exp())
        case "join":
            above, yes, no = parts
            return yes if above > 0 else no if above < 0 else yes.union(no)
    raise ValueError(node.op)


def _real_power(base: arb, r: Fraction) -> arb:
    if r.denominator == 1:
        return whole_power(base, int(r))
    if base.contains(0) and r > 0:  # the base is known to be ≥ 0
        most = base.upper()
        return arb(0) if most <= 0 else arb(0).union((ball(r) * most.log()).exp())
    return base.sqrt() if r == Fraction(1, 2) else (ball(r) * base.log()).exp()


def whole_power(base: arb, n: int) -> arb:
    """Return base^n by squaring; flint's own power is NaN for a ball that contains 0."""
    if n < 0:
        return 1 / whole_power(base, -n)
    value, square = arb(1), base
    while n:
        value = value * square if n & 1 else value
        square, n = square * square, n >> 1
    return value


class Holomorphic:
    """An expression as an integrand for flint: NaN if it must be analytic on a ball and is not.

    If a sum that is a polynomial cancels to a ball that contains 0, the polynomial is expanded
    about the midpoint instead. Near a narrow peak, as that of 1/(x² − 2x + 1.0001), the expansion
    excludes 0.
    """

    def __init__(self, node: Node) -> None:
        self._order: list[tuple[str, tuple[int, ...], fmpq]] = []
        self._place: dict[Node, int] = {}
        self._add(node)
        sums = {part: p for part, p in polynomials(node).items() if part.op == "add"}
        self._sums = {self._place[part]: p for part, p in sums.items() if p.degree() > 1}

    def _add(self, node: Node) -> int:
        if node not in self._place:
            parts = tuple(map(self._add, node.parts))
            number = fmpq(node.number.numerator, node.number.denominator)
            self._order.append((node.op, parts, number))
            self._place[node] = len(self._order) - 1
        return self._place[node]

    def __call__(self, x: acb, analytic: bool) -> acb:
        """Return the value at a complex ball."""
        values: list[acb] = []
        for op, parts, number in self._order:
            match op:
                case "x":
                    value = x
                case "num":
                    value = acb(arb(number))
                case "pi":
                    value = acb.pi()
                case "add":
                    value = values[parts[0]] + values[parts[1]]
                    if value.contains(_ZERO) and len(values) in self._sums:
                        value = _expanded(self._sums[len(values)], x)
                case "mul":
                    value = values[parts[0]] * values[parts[1]]
                case "pow":
                    value = _power(values[parts[0]], number, analytic)
                case "exp":
                    value = values[parts[0]].exp()
                case "log":
                    value = values[parts[0]].log(analytic=analytic)
                case "logsum":
                    large, small = (values[part] for part in parts)
                    if large.real.mid() < small.real.mid():
                        large, small = small, large
                    value = large + (1 + (small - large).exp()).log(analytic=analytic)
                case "sigmoid":
                    a = values[parts[0]]
                    rising = a.exp() if a.real.mid() < 0 else (-a).exp()  # at most about 1
                    value = (rising if a.real.mid() < 0 else 1) / (1 + rising)
                case _:
                    raise ValueError(op)
            values.append(value)
        return values[-1]


def _expanded(polynomial: fmpq_poly, x: acb) -> acb:
    middle = x.mid()
    terms = acb_poly(polynomial)(acb_poly([middle, 1]))
    return terms(x - middle)


def _power(base: acb, r: fmpq, analytic: bool) -> acb:
    if r.q == 1:
        return base ** int(r.p)
    if r > 0 and not analytic and base.contains(acb(0)):
        size = abs(base).upper()
        most = arb(0) if size <= 0 else (arb(r) * size.log()).exp().upper()
        around = arb(0, most)
        return acb(around, around)
    if r == _HALF:
        return base.sqrt(analytic=analytic)
    return (arb(r) * base.log(analytic=analytic)).exp()

"""Bounds on an expression that hold for all x ≥ A > 0 at once.

An expression without branches is written in one of two forms. A `Sum` is

    Σ c_p x^p + k ln x + r,  with rational p and k, and a number r(x) in a ball,

where every c_p is `Exact`, a polynomial in constants such as π. A `Product` is x^k m(x) e^{E(x)}
with m(x) in a ball and E = Σ c_p x^p over powers p > 0. Both forms are closed under products,
powers, exponentials and logarithms. In a sum of two products one dominates. Their quotient is again
of the form x^k m e^{E}. The leading term of E decides which one dominates, and the quotient without
m is monotone from A on if

    k + Σ p c_p x^p  has one sign for all x ≥ A.

If this fails for one A, a larger A may succeed; otherwise the expression has neither form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.density import tree
from dpassay.accountant.density.balls import real, whole_power
from dpassay.accountant.density.tree import Node, X, add, at, mul, num, varies
from dpassay.accountant.numbers.interval import ball

_MOST_TERMS = 40
"""Most terms of a sum; products of longer sums become balls."""
_MOST_POWER = 12
"""Largest power of a sum that is expanded."""
_ZERO = Fraction(0)


class TailError(Exception):
    """The forms do not decide the question for this A."""


@final
@dataclass(frozen=True)
class Exact:
    """A polynomial with rational coefficients in constants, which are formulas without x.

    Without terms it is 0. With terms it may be 0 too if the constants are dependent, as √2 and √8
    are. Its ball then contains 0 at every precision, and a question that needs its sign is refused.
    """

    terms: Mapping[tuple[Node, ...], Fraction]

    @staticmethod
    def of(node: Node) -> Exact:
        """Convert a formula without x."""
        match node.op:
            case "num":
                return Exact({(): node.number} if node.number else {})
            case "add":
                return Exact.of(node.parts[0]) + Exact.of(node.parts[1])
            case "mul":
                return Exact.of(node.parts[0]) * Exact.of(node.parts[1])
        return Exact({(node,): Fraction(1)})

    def __bool__(self) -> bool:
        """Whether there are any terms."""
        return bool(self.terms)

    def __add__(self, other: Exact) -> Exact:
        """Return the sum."""
        found = dict(self.terms)
        for factors, c in other.terms.items():
            found[factors] = found.get(factors, _ZERO) + c
        return Exact({factors: c for factors, c in found.items() if c})

    def __mul__(self, other: Exact | Fraction) -> Exact:
        """Return the product."""
        if isinstance(other, Fraction):
            return Exact({factors: c * other for factors, c in self.terms.items() if other})
        if len(self.terms) * len(other.terms) > _MOST_TERMS:
            raise TailError("a long number")
        found = Exact({})
        for one, c in self.terms.items():
            for more, d in other.terms.items():
                found += Exact({tuple(sorted(one + more, key=hash)): c * d})
        return found

    @property
    def rational(self) -> Fraction | None:
        """The rational value if there is no other constant, else None."""
        return self.terms.get((), _ZERO) if set(self.terms) <= {()} else None

    def ball(self) -> arb:
        """Return a ball that contains the value."""
        value = arb(0)
        for factors, c in self.terms.items():
            product = ball(c)
            for each in factors:
                product *= real(each, arb(0))
            value += product
        return value


Terms: TypeAlias = Mapping[Fraction, Exact]
_ONE = Exact({(): Fraction(1)})


@final
@dataclass(frozen=True)
class Sum:
    """Σ c_p x^p + k ln x + r."""

    terms: Terms
    logs: Fraction = _ZERO
    rest: arb = field(default_factory=lambda: arb(0))


@final
@dataclass(frozen=True)
class Product:
    """x^k m e^{E(x)}."""

    power: Fraction
    size: arb
    exponent: Terms

    @property
    def vanishes(self) -> bool:
        """Whether the product tends to 0 as x → ∞."""
        return _leading(self.exponent) < 0 if self.exponent else self.power < 0


Form: TypeAlias = Sum | Product


@final
class Tail:
    """The forms of expressions for x ≥ A; an expression without a form raises TailError."""

    def __init__(self, start: Fraction) -> None:
        self._start = start
        self._known: dict[Node, Form] = {}

    def sign(self, node: Node) -> int:
        """Return the sign for all x ≥ A; TailError if it is not decided."""
        return _sign(self.product(node).size)

    def values(self, node: Node) -> arb:
        """Return a ball that contains the values at all x ≥ A; TailError if they are unbounded."""
        return self._sum(self.product(node)).rest

    def product(self, node: Node) -> Product:
        """Return the expression as a product; TailError if it is not one."""
        return self._product(self._of(node))

    def _of(self, node: Node) -> Form:
        if node not in self._known:
            self._known[node] = self._made(node)
        return self._known[node]

    def _made(self, node: Node) -> Form:
        if node.op == "x":
            return Sum({Fraction(1): _ONE})
        if not varies(node):
            value = Exact.of(node)
            return Sum({_ZERO: value} if value else {})
        parts = [self._of(part) for part in node.parts]
        match node.op:
            case "add":
                return self._total(parts[0], parts[1])
            case "mul":
                return self._times(parts[0], parts[1])
            case "pow":
                return self._power(parts[0], node.number)
            case "exp":
                return self._exp(parts[0])
            case "log":
                return self._log(parts[0])
            case "logsum":
                return self._logsum(self._sum(parts[0]), self._sum(parts[1]))
            case "sigmoid":
                return self._sigmoid(parts[0])
        raise TailError(node.op)

    def _span(self, power: Fraction) -> arb:
        """Return the range of x^p over x ≥ A, for p ≤ 0."""
        if power == 0:
            return arb(1)
        return arb(0).union((ball(self._start).log() * ball(power)).exp())

    def _at_start(self, power: Fraction) -> arb:
        return (ball(self._start).log() * ball(power)).exp()

    def _product(self, form: Form) -> Product:
        if isinstance(form, Product):
            return form
        if form.logs:
            raise TailError("a logarithm")
        powers = [*form.terms, *([] if form.rest.is_zero() else [_ZERO])]
        if not powers:
            return Product(_ZERO, arb(0), {})
        first = max(powers)
        size = form.rest * self._span(-first)
        for power, c in form.terms.items():
            size += c.ball() * self._span(power - first)
        return Product(first, size, {})

    def _sum(self, form: Form) -> Sum:
        if isinstance(form, Sum):
            return form
        if form.exponent and _leading(form.exponent) > 0:
            raise TailError("an exponential")
        if form.exponent or form.power < 0:
            return Sum({}, rest=self._bounded(form))
        if form.power == 0:
            return Sum({}, rest=form.size)
        raise TailError("a power")

    def _bounded(self, form: Product) -> arb:
        """Return the range over x ≥ A of a product that tends to 0."""
        return form.size * arb(0).union(self._most(form))

    def _most(self, form: Product) -> arb:
        """Return the maximum of x^k e^{E} over x ≥ A, its value at A if it falls from A on."""
        if form.exponent:
            first = max(form.exponent)
            rise = ball(form.power) * self._span(-first)
            for power, c in form.exponent.items():
                rise += c.ball() * ball(power) * self._span(power - first)
            if not rise < 0:
                raise TailError("not yet falling")
        elif form.power > 0:
            raise TailError("a power")
        value = self._at_start(form.power)
        for power, c in form.exponent.items():
            value *= (c.ball() * self._at_start(power)).exp()
        return value

    def _total(self, a: Form, b: Form) -> Form:
        if isinstance(a, Sum) and isinstance(b, Sum):
            terms = _plus(a.terms, b.terms)
            return Sum(terms, a.logs + b.logs, a.rest + b.rest)
        one, other = self._product(a), self._product(b)
        if one.size.is_zero():
            return other
        if other.size.is_zero():
            return one
        difference = _plus(one.exponent, _negative(other.exponent))
        larger = _leading(difference) > 0 if difference else one.power >= other.power
        if not larger:
            one, other = other, one
        quotient = Product(
            other.power - one.power,
            other.size,
            _plus(other.exponent, _negative(one.exponent)),
        )
        if quotient.power == 0 and not quotient.exponent:
            return Product(one.power, one.size + other.size, one.exponent)
        return Product(one.power, one.size + self._bounded(quotient), one.exponent)

    def _times(self, a: Form, b: Form) -> Form:
        if isinstance(b, Sum) and _constant(b):
            a, b = b, a
        if isinstance(a, Sum) and _constant(a):
            c = a.terms.get(_ZERO)
            if c is None:
                return Sum({})
            if isinstance(b, Product):
                return Product(b.power, c.ball() * b.size, b.exponent)
            if not b.logs or c.rational is not None:
                logs = b.logs * (c.rational or _ZERO)
                return Sum({p: c * d for p, d in b.terms.items()}, logs, c.ball() * b.rest)
        if isinstance(a, Sum) and isinstance(b, Sum) and _exact(a) and _exact(b):
            terms: dict[Fraction, Exact] = {}
            for p, c in a.terms.items():
                terms = _plus(terms, {p + q: c * d for q, d in b.terms.items()})
            if len(terms) <= _MOST_TERMS:
                return Sum(terms)
        one, other = self._product(a), self._product(b)
        return Product(
            one.power + other.power,
            one.size * other.size,
            _plus(one.exponent, other.exponent),
        )

    def _power(self, a: Form, r: Fraction) -> Form:
        if isinstance(a, Sum) and _exact(a):
            if r.denominator == 1 and 0 < r <= _MOST_POWER:
                found: Form = a
                for _ in range(int(r) - 1):
                    found = self._times(found, a)
                return found
            if len(a.terms) == 1:
                ((p, c),) = a.terms.items()
                if c.rational == 1:
                    return Sum({p * r: _ONE})
        one = self._product(a)
        if r.denominator == 1:
            if r < 0:
                _sign(one.size)
            size = whole_power(one.size, int(r))
        else:
            if _sign(one.size) < 0:
                raise TailError("a root of a negative number")
            size = (one.size.log() * ball(r)).exp()
        return Product(one.power * r, size, {p: c * r for p, c in one.exponent.items()})

    def _exp(self, a: Form) -> Product:
        s = self._sum(a)
        rest = s.rest
        for power, c in s.terms.items():
            if power <= 0:
                rest += c.ball() * self._span(power)
        return Product(s.logs, rest.exp(), {p: c for p, c in s.terms.items() if p > 0})

    def _log(self, a: Form) -> Sum:
        one = self._product(a)
        if _sign(one.size) < 0:
            raise TailError("the logarithm of a negative number")
        return Sum(dict(one.exponent), one.power, one.size.log())

    def _logsum(self, a: Sum, b: Sum) -> Sum:
        z = Sum(_plus(b.terms, _negative(a.terms)), b.logs - a.logs, b.rest - a.rest)
        grown = self._exp(z)
        if not grown.exponent and not grown.power:
            return Sum(a.terms, a.logs, a.rest + grown.size.log1p())
        larger, small = (b, self._exp(self._negated(z))) if _grows(grown) else (a, grown)
        return Sum(larger.terms, larger.logs, larger.rest + self._bounded(small).log1p())

    def _sigmoid(self, a: Form) -> Product:
        z = self._sum(a)
        grown = self._exp(z)
        if not grown.exponent and not grown.power:
            return Product(_ZERO, grown.size / (1 + grown.size), {})
        if _grows(grown):
            small = self._bounded(self._exp(self._negated(z)))
            return Product(_ZERO, 1 / (1 + small), {})
        return Product(grown.power, grown.size / (1 + self._bounded(grown)), grown.exponent)

    @staticmethod
    def _negated(z: Sum) -> Sum:
        return Sum(_negative(z.terms), -z.logs, -z.rest)


@final
@dataclass(frozen=True)
class Decay:
    """−(ln f)'(x) lies in x^power·[low, high] with low > 0, for all x ≥ start."""

    start: Fraction
    power: Fraction
    low: arb
    high: arb

    def below(self, x: arb) -> arb:
        """Return an upper bound on ∫ f/f(x) over (x, ∞), for x ≥ start; +∞ if none is known.

        −y(ln f)'(y) ≥ α = low·x^{1 + power} for y ≥ x, hence f(y) ≤ f(x)(x/y)^α.
        """
        rate = self.low.lower() * (x.log() * ball(1 + self.power)).exp()
        return (x / (rate - 1)).upper() if rate > 1 else arb.pos_inf()

    def drift(self, x: arb, length: arb) -> tuple[arb, arb]:
        """Return bounds on the integral of −(ln f)′ over any interval of a length beyond x."""
        size = (x.log() * ball(self.power)).exp()
        low, high = self.low.lower() * length, self.high.upper() * length
        if self.power > 0:
            return (low * size).lower(), arb.pos_inf()
        if self.power < 0:
            return arb(0), (high * size).upper()
        return low.lower(), high.upper()

    def above(self, x: arb) -> arb:
        """Return a lower bound on ∫ f/f(x): that of the power law with the largest rate, or 0."""
        if self.power != -1:
            return arb(0)
        return (x / (self.high.upper() - 1)).lower()


def decay(slope: Node, start: Fraction) -> Decay:
    """Return the decay of f beyond A = `start`, from the slope (ln f)′.

    Raises TailError unless f is proved to fall, fast enough to be integrable, from this A on.
    """
    tail = Tail(start)
    found = tail.product(slope)
    if _sign(found.size) > 0:
        raise TailError("rising")
    size, power = -found.size, found.power
    if found.exponent:
        if _leading(found.exponent) < 0:
            raise TailError("hardly falling")
        least = tail._most(Product(-power, arb(1), _negative(found.exponent)))
        return Decay(start, _ZERO, size.lower() / least.upper(), arb.pos_inf())
    if power < -1 or (power == -1 and not size > 1):
        raise TailError("hardly falling")
    return Decay(start, power, size.lower(), size.upper())


def ratio(slope: Node, start: Fraction, by: Fraction) -> arb:
    """Return a ball that contains D(x + by)/D(x) for all x ≥ A, perhaps unbounded; or TailError.

    `slope` is −D. It must have its form beyond both A and A + by.
    """
    tail = Tail(start)
    form = tail.product(mul(at(slope, add(X, num(by))), tree.power(slope, Fraction(-1))))
    if not form.exponent and not form.power:
        return form.size
    if form.vanishes:
        return tail._bounded(form)
    inverse = Product(-form.power, 1 / form.size, _negative(form.exponent))
    return (1 / tail._bounded(inverse).upper()).union(arb.pos_inf())


def nearer(slope: Node, start: Fraction, known: Decay) -> Decay:
    """Return the decay of f from a farther start, with tighter bounds; else the known decay."""
    try:
        return decay(slope, start)
    except TailError:
        return known


def _sign(size: arb) -> int:
    if size > 0:
        return 1
    if size < 0:
        return -1
    raise TailError("a sign")


def _grows(form: Product) -> bool:
    return _leading(form.exponent) > 0 if form.exponent else form.power > 0


def _constant(form: Sum) -> bool:
    return _exact(form) and set(form.terms) <= {_ZERO}


def _exact(form: Sum) -> bool:
    return not form.logs and form.rest.is_zero()


def _leading(terms: Terms) -> arb:
    return terms[max(terms)].ball()


def _plus(a: Terms, b: Terms) -> dict[Fraction, Exact]:
    found = dict(a)
    for p, c in b.items():
        found[p] = found[p] + c if p in found else c
        if not found[p]:
            del found[p]
    return found


def _negative(terms: Terms) -> dict[Fraction, Exact]:
    return {p: c * Fraction(-1) for p, c in terms.items()}

"""Write an expression as a rational function over Q in atoms, with the relations between them.

Atoms are variables, roots (with s² = e), powers and exponentials b^m (b > 0, or m an integer and
b ≠ 0), logarithms of irreducible numbers and polynomials, factorials, sums without a closed form,
and values of other functions. Every division, root, logarithm and power is shown to be defined
over the whole domain before it is used: so a ratio that is 0 here is 0 at each point.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import final

from verify.checker.kernel.atoms import key_of
from verify.checker.kernel.expressions import Apply, Fold, Name, Node, Number, ProofError, show
from verify.checker.kernel.polynomials import Ratio, rational, used
from verify.checker.kernel.powers import constant_term
from verify.checker.kernel.signs import Sign
from verify.checker.kernel.sums import Sums


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
                if _is_negative(x):
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


def _is_negative(value: Ratio) -> bool:
    return not value.is_zero() and rational(value.top.leading_coefficient()) < 0

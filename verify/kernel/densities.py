"""Noise on the reals of a density of one's own: even, with a concave logarithm.

Let f > 0 be even on the reals, and ln f concave, but not constant: f'² ≥ f f'' and f' ≤ 0 on x > 0,
and f'(1) < 0. For the noise of density f/∫f, moved by s > 0, the loss at x, ln f(x − s) − ln f(x),
does not fall with x. So {x > c} is the best event, for a c at which the loss passes l,

    H(l) = S(c − s) − e^l S(c) = sup over all c,    S(x) = ∫_x^∞ f/∫f,

and each of these grows with s: of all moves of size at most s the move by s is the worst, and that
by −s is its mirror image. Beyond N > 0, where f'(N) < 0, f falls at least as fast as the
exponential function that touches it, so that ∫_N^∞ f ≤ −f(N)²/f'(N). On [0, N] the integral is
Arb's, of an analytic function.
"""

from __future__ import annotations

from dataclasses import replace

from flint import acb, arb, ctx, fmpq

from .boxes import Facts, Goal, rebuilt
from .cases import Variable
from .expressions import ZERO, Node, make, number, parse, substitute, value, variable
from .laws import INFINITE, Answer, Law, from_tails
from .lemmas import Arguments, Special, Worst, one
from .numbers import Budget, NotProved, Number, TooFewDigits, Wrong, ball, compare
from .proofs import Prover, derivative

_X, _SIZE = variable("x"), variable("size")
_FAR = 1 << 20
"""Units of the noise; beyond, nothing is looked for."""


def _own_density(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    shape, slope = _checked(str(args.noise["density"]), budget)
    survival, s = _Survival(shape, slope, budget), args["sensitivity"] / args["scale"]
    survival.beyond(arb(1))  # f falls, and has an integral
    law = replace(_law(survival, ball(s)), largest=s * _steepest(survival, budget))
    bounded = replace(law, largest=fmpq(0), is_pair=False)  # its largest loss is only a bound
    return Worst(one(law), one(law), {"own-density"}, one(bounded))


def _checked(text: str, budget: Budget) -> tuple[Node, Node]:
    """Return f and f' on x > 0, after it is proved that they are as they have to be."""
    try:
        whole = parse(text)
    except Wrong:
        raise NotProved("a density that is no formula of the kernel") from None
    if whole.free - {"x"}:
        raise NotProved("a density with parameters")
    sides = []
    for x in (_X, ZERO - _X):  # to the right of 0, and its mirror image

        def read(n: Node) -> Node:
            if n.op == "cosh" and len(n.args) == 1:
                return (make("exp", n.args[0]) + make("exp", ZERO - n.args[0])) / number(2)
            return _SIZE if n.op == "abs" and n.args[0] in (_X, ZERO - _X) else n

        sides.append(substitute(rebuilt(whole, read), {"x": x, "size": _X}))
    f, other = sides
    slope = derivative(f, "x")
    domain = Goal(f, "==", other, (Variable("x", ZERO),))
    prover, inside = Prover(budget, {}), domain.over(Variable("x", ZERO, True))
    Facts(domain, budget).defined(f)
    if f is not other:
        prover.attempt(domain)
    prover.attempt(domain.on(f, ">", ZERO))
    prover.attempt(inside.on(slope, "<=", ZERO))
    prover.attempt(inside.on(slope * slope, ">=", f * derivative(slope, "x")))
    return f, slope


class _Survival:
    """S(x), from integrals of f."""

    def __init__(self, shape: Node, slope: Node, budget: Budget) -> None:
        self.shape, self.slope, self.budget = shape, slope, budget
        self.kept: dict[int, tuple[arb, arb]] = {}

    def at(self, node: Node, x: arb) -> arb:
        """Return the value of f or f' at a number ≥ 0."""
        return ball(value(node, self.budget, at={"x": x}))

    def integral(self, low: arb, high: arb) -> arb:
        """Return ∫f from one number ≥ 0 to a larger one."""
        self.budget.check()
        return acb.integral(lambda z, strict: _complex(self.shape, z, strict), low, high).real

    def beyond(self, x: arb) -> arb:
        """Return a ball around ∫f from a number on."""
        height, slope = self.at(self.shape, x), self.at(self.slope, x)
        if not slope < 0:
            raise TooFewDigits("the tail of a density")
        return arb(0).union(-height * height / slope)

    def half(self) -> tuple[arb, arb]:
        """Return N, beyond which there is next to nothing, and ∫f from 0 on."""
        if ctx.prec not in self.kept:
            _complex(self.shape, acb(1), strict=False)  # raises what an integral may not
            far = arb(1)
            tiny = self.at(self.shape, arb(0)) * arb(2) ** (-ctx.prec)
            while not self.beyond(far) < tiny:
                far *= 2
                if far > _FAR:
                    raise NotProved("a density whose tail is too heavy")
            self.kept[ctx.prec] = far, self.integral(arb(0), far) + self.beyond(far)
        return self.kept[ctx.prec]

    def __call__(self, x: arb) -> arb:
        """Return S(x) at an exact number."""
        if x < 0:
            return 1 - self(-x)
        far, half = self.half()
        rest = self.beyond(x) if x >= far else self.integral(x, far) + self.beyond(far)
        return rest / (2 * half)


def _complex(node: Node, z: acb, strict: bool) -> acb:
    """Return the value of a formula, not finite where it may not be analytic if that is wanted."""
    if node.op == "num":
        return acb(arb(node.args[0]))
    if node.op == "var":
        return z
    given = [_complex(a, z, strict) for a in node.args if isinstance(a, Node)]
    match node.op:
        case "+":
            return given[0] + given[1]
        case "-":
            return given[0] - given[1]
        case "*":
            return given[0] * given[1]
        case "/":
            return given[0] / given[1]
        case "exp" | "tanh" | "sinh" | "cosh" | "erf" | "erfc":
            found: acb = getattr(given[0], node.op)()
            return found
        case "sqrt":
            return given[0].sqrt(analytic=strict)
        case "log" if len(given) == 1:
            return given[0].log(analytic=strict)
        case "**":
            power = node.args[1].args[0] if node.args[1].op == "num" else fmpq(1, 2)
            if power.q == 1 and abs(power) < 1000:
                return given[0] ** int(power.p)
            return given[0].pow(given[1], analytic=strict)
    raise NotProved(f"the kernel does not integrate {node.op[:40]}")


def _steepest(survival: _Survival, budget: Budget) -> Number:
    """Return a number that −f'/f nowhere exceeds: its limit, where that is simple, or infinity."""
    places = arb(64), arb(128)
    near, far = (-survival.at(survival.slope, x) / survival.at(survival.shape, x) for x in places)
    if not abs(near - far) < arb(2) ** -30:
        return INFINITE
    rate = number(fmpq(round(float(far.mid()) * 2**20), 2**20))
    goal = Goal(survival.slope + rate * survival.shape, ">=", ZERO, (Variable("x", ZERO, True),))
    try:
        Prover(budget, {}).attempt(goal)
    except NotProved:
        return INFINITE
    return fmpq(rate.args[0])


def _law(survival: _Survival, s: arb) -> Law:
    """Return the law of the noise moved by s; the loss passes l between two numbers."""

    def answer(loss: Number) -> Answer:
        def larger(x: arb) -> bool | None:
            here, moved = (survival.at(survival.shape, abs(y)) for y in (x, x - s))
            return compare((moved / here).log(), ">", loss)

        low, high = arb(-1), arb(1)
        while larger(high) is not True:
            if high > 2 * (survival.half()[0] + s):  # a larger loss is seldom, if there is one
                if larger(high) is not False:
                    raise TooFewDigits("a loss of a density so far out")
                p, q = (arb(0).union(survival(x.lower())) for x in (high - s, high))
                return p, q
            high *= 2
        while larger(low) is not False:
            low *= 2
            if low < -_FAR:
                raise TooFewDigits("a loss of a density so far out")
        for _ in range(2 * ctx.prec):
            tried = [(low + (high - low) * share).mid() for share in (arb(0.5), arb(0.4375))]
            told = [(x, side) for x in tried if (side := larger(x)) is not None]
            if not told:
                break
            low, high = (low, told[0][0]) if told[0][1] else (told[0][0], high)
        p, q = (
            survival((low - by).lower()).union(survival((high - by).upper())) for by in (s, arb(0))
        )
        return from_tails(loss, p, q)

    return Law("a density", answer, slow=True)


WORST: dict[str, Special] = {"AdditiveNoise": _own_density}

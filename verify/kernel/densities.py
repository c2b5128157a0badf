"""Additive noise with a user-defined density on the reals, even and log-concave.

Let f > 0 be even and ln f concave and not constant: f'² ≥ f f'' and f' ≤ 0 on x > 0, and f'(1) < 0.
For noise of density f/∫f shifted by s > 0, the loss ln f(x − s) − ln f(x) is nondecreasing in x. So
{x > c} is the best event, where c is a point at which the loss crosses l:

    H(l) = S(c − s) − e^l S(c) = sup over all c,    S(x) = ∫_x^∞ f/∫f.

For each c this increases with s, so among shifts of size at most s the shift by s is the worst, and
the shift by −s is its mirror image. For N > 0 with f'(N) < 0, ln f is below its tangent at N, so
∫_N^∞ f ≤ −f(N)²/f'(N). On [0, N] Arb integrates f, which is analytic there.
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
"""Limit of searches, in units of the noise."""


def _own_density(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    shape, slope = _checked(str(args.noise["density"]), budget)
    survival, s = _Survival(shape, slope, budget), args["sensitivity"] / args["scale"]
    survival.beyond(arb(1))  # f decreases, so its integral is finite
    law = replace(_law(survival, ball(s)), largest=s * _steepest(survival, budget))
    bounded = replace(law, largest=fmpq(0), is_pair=False)  # its largest loss is an upper bound
    return Worst(one(law), one(law), {"own-density"}, one(bounded))


def _checked(text: str, budget: Budget) -> tuple[Node, Node]:
    """Prove the conditions on f, and return f and f' on x > 0."""
    try:
        whole = parse(text)
    except Wrong:
        raise NotProved("the density is not a formula of the kernel") from None
    if whole.free - {"x"}:
        raise NotProved("the density has variables other than x")
    sides = []
    for x in (_X, ZERO - _X):  # f(x) and f(−x) for x ≥ 0

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
    """The survival function S(x)."""

    def __init__(self, shape: Node, slope: Node, budget: Budget) -> None:
        self.shape, self.slope, self.budget = shape, slope, budget
        self.kept: dict[int, tuple[arb, arb]] = {}

    def at(self, node: Node, x: arb) -> arb:
        """Return the value of f or f' at x ≥ 0."""
        return ball(value(node, self.budget, at={"x": x}))

    def integral(self, low: arb, high: arb) -> arb:
        """Return ∫f from `low` ≥ 0 to `high`."""
        self.budget.check()
        return acb.integral(lambda z, strict: _complex(self.shape, z, strict), low, high).real

    def beyond(self, x: arb) -> arb:
        """Return a ball that contains ∫f from x to infinity."""
        height, slope = self.at(self.shape, x), self.at(self.slope, x)
        if not slope < 0:
            raise TooFewDigits("the tail of a density")
        return arb(0).union(-height * height / slope)

    def half(self) -> tuple[arb, arb]:
        """Return an N with a negligible tail beyond it, and ∫f from 0 to infinity."""
        if ctx.prec not in self.kept:
            _complex(
                self.shape, acb(1), strict=False
            )  # raises errors that would be lost inside the integral
            far = arb(1)
            tiny = self.at(self.shape, arb(0)) * arb(2) ** (-ctx.prec)
            while not self.beyond(far) < tiny:
                far *= 2
                if far > _FAR:
                    raise NotProved("the tail of the density is too heavy")
            self.kept[ctx.prec] = far, self.integral(arb(0), far) + self.beyond(far)
        return self.kept[ctx.prec]

    def __call__(self, x: arb) -> arb:
        """Return S(x) for an exact x."""
        if x < 0:
            return 1 - self(-x)
        far, half = self.half()
        rest = self.beyond(x) if x >= far else self.integral(x, far) + self.beyond(far)
        return rest / (2 * half)


def _complex(node: Node, z: acb, strict: bool) -> acb:
    """Return the value of a formula; if `strict`, not finite where it may not be analytic."""
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
    """Return a bound of −f'/f: its limit if that is a simple number, or infinity."""
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
    """Return the law of the noise shifted by s; bisection brackets the crossing of l."""

    def answer(loss: Number) -> Answer:
        def larger(x: arb) -> bool | None:
            here, moved = (survival.at(survival.shape, abs(y)) for y in (x, x - s))
            return compare((moved / here).log(), ">", loss)

        low, high = arb(-1), arb(1)
        while larger(high) is not True:
            if high > 2 * (survival.half()[0] + s):  # a larger loss has tiny probability
                if larger(high) is not False:
                    raise TooFewDigits("a loss of a density is too far out")
                p, q = (arb(0).union(survival(x.lower())) for x in (high - s, high))
                return p, q
            high *= 2
        while larger(low) is not False:
            low *= 2
            if low < -_FAR:
                raise TooFewDigits("a loss of a density is too far out")
        for _ in range(2 * ctx.prec):
            tried = [(low + (high - low) * share).mid() for share in (arb(0.5), arb(0.4375))]
            decided = [(x, side) for x in tried if (side := larger(x)) is not None]
            if not decided:
                break
            low, high = (low, decided[0][0]) if decided[0][1] else (decided[0][0], high)
        p, q = (
            survival((low - by).lower()).union(survival((high - by).upper())) for by in (s, arb(0))
        )
        return from_tails(loss, p, q)

    return Law("a density", answer, slow=True)


WORST: dict[str, Special] = {"AdditiveNoise": _own_density}

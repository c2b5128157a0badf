"""Laws of the privacy loss: what a pair (P, Q) of neighbouring laws answers, in balls.

L = ln dP/dQ is the loss. A law answers, for a number l, with H(l) and Q(L > l), where

    H(l) = P(L > l) − e^l Q(L > l) = E_P[(1 − e^{l − L})⁺] = sup over events of P(E) − e^l Q(E),

the δ at ε = l. With x = e^l, H is convex and falls in x, from 1 at x = 0, and −Q(L > l) is a slope
of it. (P, Q) is (ε, δ)-private if and only if H(ε) ≤ δ; one event with P(E) − e^ε Q(E) > δ refutes.

Swap: the pair (Q, P) has H'(l) = 1 − e^l + e^l H(−l) and the slope −P(L < −l).
Rényi divergence of order a > 1: ln E_Q[e^{aL}]/(a − 1).

At an atom of L the slope may be that of either side, as both are slopes of a convex function.
Where a ball cannot tell on which side of an atom l lies, `TooFewDigits` asks for more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from flint import arb, ctx, fmpq

from .numbers import NotProved, Number, TooFewDigits, ball, compare, exactly, exp, log, maximum

INFINITE = arb("inf")
ZERO, ONE = fmpq(0), fmpq(1)
MOST_MASSES = 100_000
"""Of one law of integer noise."""
Answer: TypeAlias = tuple[Number, Number]
"""H(l) and Q(L > l)."""


@dataclass(frozen=True)
class Law:
    """The loss of one pair: `answer` gives H(l) and Q(L > l), `largest` the supremum of L under P.

    `symmetric`: (Q, P) has the same law; of others `reach` is a bound of |L|, where it is known.
    `mu` is set for N(μ, 1) against N(0, 1). `atoms` are the masses (p, q) of a table. `divergence`
    is the Rényi divergence of an order above 1, and `rho` a number with D_a ≤ ρa for all of them.
    `infinite` is at most P(L = ∞), and `last` at most the chance under Q of the largest loss.
    `only_alone`: it is attained by one release, not by several of them at once; `is_pair` is False
    for what is less than the law of a pair.
    A `slow` one is not put on a lattice. All finite losses of a table are multiples of `grid`, if
    given.
    """

    name: str
    answer: Callable[[Number], Answer]
    largest: Number = INFINITE
    symmetric: bool = True
    mu: Number | None = None
    atoms: Sequence[Answer] = ()
    divergence: Callable[[Number], Number] | None = None
    rho: Number | None = None
    infinite: Number = ZERO
    last: Number = ZERO
    only_alone: bool = False
    is_pair: bool = True
    slow: bool = False
    reach: Number | None = None
    grid: Number | None = None
    kept: dict[tuple[fmpq, int], tuple[arb, arb]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def at(self, loss: Number) -> tuple[arb, arb]:
        """Return H(loss) and Q(L > loss); those at rational losses are kept."""
        key = (loss, ctx.prec) if isinstance(loss, fmpq) else None
        if key is not None and key in self.kept:
            return self.kept[key]
        height, slope = self.answer(loss)
        found = ball(height), ball(slope)
        if key is not None:
            self.kept[key] = found
        return found

    def delta(self, loss: Number) -> Number:
        """Return H(loss), exact where it is."""
        return self.answer(loss)[0]


def told(a: Number, relation: str, b: Number) -> bool:
    """Return a comparison that the balls decide, or raise TooFewDigits."""
    found = compare(a, relation, b)
    if found is None:
        raise TooFewDigits("two numbers are too close to be told apart")
    return found


def from_tails(loss: Number, p: Number, q: Number) -> Answer:
    """Return H and the slope from P(L > l) and Q(L > l)."""
    return p - exp(loss) * q, q


def nothing(loss: Number) -> Answer:
    """Return H(l) and Q(L > l) below every loss."""
    return 1 - exp(loss), ONE


def between(t: Number, inside: Callable[[Number], Answer]) -> Callable[[Number], Answer]:
    """Return the answer of a law whose losses lie in [−t, t]."""

    def answer(loss: Number) -> Answer:
        if told(loss, ">=", t):
            return ZERO, ZERO
        return nothing(loss) if told(loss, "<", -t) else inside(loss)

    return answer


# --- laws with a formula ------------------------------------------------------------------------
def normal_above(x: Number) -> arb:
    """Return P(N(0, 1) > x)."""
    return (ball(x) / arb(2).sqrt()).erfc() / 2


def gaussian(mu: Number, square: Number | None = None) -> Law:
    """Return N(μ, 1) against N(0, 1): L ~ N(μ²/2, μ²) under P. The square may be exact."""
    if told(mu, "==", ZERO):
        return table([(ONE, ONE)])

    def answer(loss: Number) -> Answer:
        cut = ball(loss) / ball(mu)
        return from_tails(loss, normal_above(cut - mu / 2), normal_above(cut + mu / 2))

    half = (mu * mu if square is None else square) / 2
    return Law("Gaussian noise", answer, mu=mu, divergence=lambda a: a * half, rho=half)


def laplace(t: Number) -> Law:
    """Return Laplace laws of scale 1 at distance t: atoms at ±t, between them H = 1 − e^{(l−t)/2}.

    H is the largest of 0, 1 − e^l and that; near an atom its slope is one of both.
    """

    def answer(loss: Number) -> Answer:
        beyond, before = compare(loss, ">=", t), compare(loss, "<", -t)
        if beyond:
            return ZERO, ZERO
        if before:
            return nothing(loss)
        height, slope = 1 - exp((loss - t) / 2), exp(-(t + loss) / 2) / 2
        if before is None:
            return ball(height).union(ball(1 - exp(loss))), ball(slope).union(arb(1))
        if beyond is None:
            return maximum([height, ZERO]), ball(slope).union(arb(0))
        return height, slope

    def divergence(a: Number) -> Number:
        moment = (a * exp((a - 1) * t) + (a - 1) * exp(-a * t)) / (2 * a - 1)
        return log(moment) / (a - 1)

    return Law("Laplace noise", answer, t, divergence=divergence, last=exp(-t) / 2)


def reaching(largest: Number) -> Law:
    """Return a law of which only the supremum of the loss is known."""

    def answer(_: Number) -> Answer:
        raise NotProved("the curve of a mechanism of which the largest loss is known")

    return Law("a largest loss", answer, largest, is_pair=False)


def apart() -> Law:
    """Return a law of neighbours that are told apart."""
    return table([(ONE, ZERO), (ZERO, ONE)])


def event(p: Number, q: Number) -> Law:
    """Return whether one event happens, which has the probabilities p and q."""
    return table([(p, q), (1 - p, 1 - q)])


# --- tables -------------------------------------------------------------------------------------
def table(atoms: Sequence[Answer]) -> Law:
    """Return the law of outcomes with masses (p, q): H = Σ (p − e^l q)⁺."""
    rows = [(p, q) for p, q in atoms if not (compare(p, "==", 0) and compare(q, "==", 0))]
    losses: list[Number] = [
        INFINITE if compare(q, "==", 0) else log(p / q) for p, q in rows if not compare(p, "==", 0)
    ]

    def answer(loss: Number) -> Answer:
        factor = exp(loss)
        height: Number = ZERO
        slope: Number = ZERO
        for p, q in rows:
            gain = p - factor * q
            side = compare(gain, ">", ZERO)
            if side:
                height, slope = height + gain, slope + q
            elif side is None:
                height += maximum([gain, ZERO])
                slope += ball(q).union(arb(0))
        return height, slope

    def divergence(a: Number) -> Number:
        parts = [(ball(p), ball(q)) for p, q in rows if not compare(p, "==", 0)]
        if any(compare(q, "==", 0) for _, q in parts):
            return INFINITE
        return sum((p ** ball(a) * q ** ball(1 - a) for p, q in parts), arb(0)).log() / (a - 1)

    texts = [(exactly(p), exactly(q)) for p, q in rows]
    same = sorted(texts) == sorted((q, p) for p, q in texts)
    largest = maximum(losses) if losses else ZERO
    only = sum((p for p, q in rows if compare(q, "==", 0)), ZERO)
    return Law("a table", answer, largest, same, atoms=rows, divergence=divergence, infinite=only)


def response(a: Number, r: Number, b: Number) -> Law:
    """Return the masses (a, r, b) against (b, r, a), over their sum."""
    whole_sum = a + r + b
    first, none, last = a / whole_sum, r / whole_sum, b / whole_sum
    return replace(table([(first, last), (none, none), (last, first)]), symmetric=True)


def guaranteed(epsilon: Number, delta: Number) -> Law:
    """Return the pair that dominates whatever is (ε, δ)-private."""
    odds, rest = exp(epsilon), 1 - delta
    a, b = rest * odds / (1 + odds), rest / (1 + odds)
    law = table([(delta, ZERO), (a, b), (b, a), (ZERO, delta)])

    def answer(loss: Number) -> Answer:
        return (delta, ZERO) if compare(loss, ">=", epsilon) else law.answer(loss)

    largest = epsilon if compare(delta, "==", 0) else INFINITE
    return replace(law, symmetric=True, largest=largest, answer=answer, grid=epsilon)


# --- one law from another -----------------------------------------------------------------------


def derived_law(law: Law, how: str, answer: Callable[[Number], Answer], *most: Number) -> Law:
    """Return the law of another pair made of one's, with its largest loss and a bound of |L|."""
    largest, within = most
    found = Law(f"{law.name}, {how}", answer, largest, symmetric=False, reach=within)
    return replace(found, only_alone=law.only_alone, is_pair=law.is_pair, slow=law.slow)


def reach(law: Law) -> Number:
    """Return a number that neither the loss nor that of (Q, P) exceeds."""
    if law.reach is not None:
        return law.reach
    return law.largest if law.symmetric else maximum([law.largest, swapped(law).largest])


def swapped(law: Law) -> Law:
    """Return the law of (Q, P)."""
    if law.symmetric:
        return law
    if law.atoms:
        return table([(q, p) for p, q in law.atoms])

    def answer(loss: Number) -> Answer:
        factor = exp(loss)
        height, slope = law.at(-loss)
        return 1 - factor + factor * height, 1 - height - slope / factor

    return derived_law(law, "reversed", answer, INFINITE, INFINITE)

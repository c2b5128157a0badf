"""Laws of the privacy loss of a pair (P, Q) of output distributions, in balls.

Let L = ln dP/dQ be the loss. For a real number l, a `Law` computes Q(L > l) and

    H(l) = P(L > l) − e^l Q(L > l) = E_P[(1 − e^{l − L})⁺] = sup over events of P(E) − e^l Q(E),

which is δ at ε = l. As a function of x = e^l, H is convex and decreasing, H = 1 at x = 0, and
−Q(L > l) is a subgradient. P(E) ≤ e^ε Q(E) + δ holds for all events E if and only if H(ε) ≤ δ.

The reversed pair (Q, P) has H'(l) = 1 − e^l + e^l H(−l), with the subgradient −P(L < −l).
The Rényi divergence of order a > 1 is ln E_Q[e^{aL}]/(a − 1).

At an atom of L a law may return either one-sided slope. If a ball does not decide on which side of
an atom l lies, the law raises TooFewDigits.
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
"""Limit on the number of masses of one law of integer noise."""
Answer: TypeAlias = tuple[Number, Number]
"""H(l) and Q(L > l)."""


@dataclass(frozen=True)
class Law:
    """The loss of one pair (P, Q).

    * `answer(l)` returns H(l) and Q(L > l); `largest` is the supremum of L.
    * `symmetric`: (Q, P) has the same law. Otherwise `reach` bounds |L|, if known.
    * `mu`: the pair is N(μ, 1) against N(0, 1). `atoms`: the masses (p, q) of a finite table.
    * `divergence(a)`: Rényi divergence of order a > 1. `rho`: D_a ≤ ρa for all a > 1.
    * `infinite` ≤ P(L = ∞). `last` ≤ Q(L = `largest`).
    * `only_alone`: each H(l) is attained by some pair, but the pair may depend on l, so the law
      is exact for a single release only.
    * `is_pair` is False if H is only a lower bound, not the curve of one pair.
    * `slow`: too expensive for a lattice. `grid`: all finite losses are multiples of it.
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
        """Return H(loss) and Q(L > loss), cached at rational losses."""
        key = (loss, ctx.prec) if isinstance(loss, fmpq) else None
        if key is not None and key in self.kept:
            return self.kept[key]
        height, slope = self.answer(loss)
        found = ball(height), ball(slope)
        if key is not None:
            self.kept[key] = found
        return found

    def delta(self, loss: Number) -> Number:
        """Return H(loss), exact if it is rational by arithmetic."""
        return self.answer(loss)[0]


def resolve(a: Number, relation: str, b: Number) -> bool:
    """Return a comparison; raise TooFewDigits if the balls do not decide it."""
    found = compare(a, relation, b)
    if found is None:
        raise TooFewDigits("two numbers are too close to compare")
    return found


def from_tails(loss: Number, p: Number, q: Number) -> Answer:
    """Return H(l) and Q(L > l) from p = P(L > l) and q = Q(L > l)."""
    return p - exp(loss) * q, q


def below_all(loss: Number) -> Answer:
    """Return H(l) and Q(L > l) for l below all losses."""
    return 1 - exp(loss), ONE


def between(t: Number, inside: Callable[[Number], Answer]) -> Callable[[Number], Answer]:
    """Return `answer` of a law with losses in [−t, t], from its restriction to [−t, t)."""

    def answer(loss: Number) -> Answer:
        if resolve(loss, ">=", t):
            return ZERO, ZERO
        return below_all(loss) if resolve(loss, "<", -t) else inside(loss)

    return answer


# --- laws with a formula ------------------------------------------------------------------------
def normal_above(x: Number) -> arb:
    """Return P(N(0, 1) > x)."""
    return (ball(x) / arb(2).sqrt()).erfc() / 2


def gaussian(mu: Number, square: Number | None = None) -> Law:
    """Return N(μ, 1) against N(0, 1): L ~ N(μ²/2, μ²) under P. `square` is μ², if exact."""
    if resolve(mu, "==", ZERO):
        return table([(ONE, ONE)])

    def answer(loss: Number) -> Answer:
        cut = ball(loss) / ball(mu)
        return from_tails(loss, normal_above(cut - mu / 2), normal_above(cut + mu / 2))

    half = (mu * mu if square is None else square) / 2
    return Law("Gaussian noise", answer, mu=mu, divergence=lambda a: a * half, rho=half)


def laplace(t: Number) -> Law:
    """Return Laplace laws of scale 1 at distance t: L has atoms at ±t.

    H(l) = max(0, 1 − e^l, 1 − e^{(l−t)/2}) for −t ≤ l ≤ t.
    """

    def answer(loss: Number) -> Answer:
        beyond, before = compare(loss, ">=", t), compare(loss, "<", -t)
        if beyond:
            return ZERO, ZERO
        if before:
            return below_all(loss)
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
        raise NotProved("the kernel knows only the largest loss of the mechanism")

    return Law("a largest loss", answer, largest, is_pair=False)


def disjoint() -> Law:
    """Return the law of disjoint supports: δ = 1 for every ε."""
    return table([(ONE, ZERO), (ZERO, ONE)])


def event(p: Number, q: Number) -> Law:
    """Return the law of an event of probability p under P and q under Q."""
    return table([(p, q), (1 - p, 1 - q)])


# --- tables -------------------------------------------------------------------------------------
def table(atoms: Sequence[Answer]) -> Law:
    """Return the law of finitely many outcomes with masses (p, q): H(l) = Σ (p − e^l q)⁺."""
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
    """Return the law of masses (a, r, b) against (b, r, a), normalised."""
    whole_sum = a + r + b
    first, none, last = a / whole_sum, r / whole_sum, b / whole_sum
    return replace(table([(first, last), (none, none), (last, first)]), symmetric=True)


def guaranteed(epsilon: Number, delta: Number) -> Law:
    """Return the pair that dominates every (ε, δ)-DP mechanism (lemma guaranteed)."""
    odds, rest = exp(epsilon), 1 - delta
    a, b = rest * odds / (1 + odds), rest / (1 + odds)
    law = table([(delta, ZERO), (a, b), (b, a), (ZERO, delta)])

    def answer(loss: Number) -> Answer:
        return (delta, ZERO) if compare(loss, ">=", epsilon) else law.answer(loss)

    largest = epsilon if compare(delta, "==", 0) else INFINITE
    return replace(law, symmetric=True, largest=largest, answer=answer, grid=epsilon)


# --- one law from another -----------------------------------------------------------------------
def derived_law(law: Law, how: str, answer: Callable[[Number], Answer], *most: Number) -> Law:
    """Return a law derived from another one; `most` is its largest loss and a bound of |L|."""
    largest, within = most
    found = Law(f"{law.name}, {how}", answer, largest, symmetric=False, reach=within)
    return replace(found, only_alone=law.only_alone, is_pair=law.is_pair, slow=law.slow)


def reach(law: Law) -> Number:
    """Return a bound of |L|, or infinity."""
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

"""Worst pairs of compositions and of subsampled mechanisms.

With H the curve of (P, Q) and a sampling rate q:

* ((1 − q)Q + qP, Q) has H'(l) = q H(ln((e^l − 1 + q)/q)), or 1 − e^l if e^l ≤ 1 − q;
* (P, (1 − q)P + qQ) has H'(l) = (1 − (1 − q)e^l) H(ln(qe^l/(1 − (1 − q)e^l))), or 0 if
  (1 − q)e^l ≥ 1.

Both follow from expanding P'(E) − e^l Q'(E).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flint import fmpq

from . import laws, lemmas
from .laws import INFINITE, ONE, ZERO, Answer, Law, below_all, derived_law, reach, resolve, table
from .lemmas import Arguments, Special, Way, Worst, in_both_orders, merged, one, worst
from .notation import Noise
from .numbers import Budget, NotProved, Number, ball, compare, exp, log


def _composed(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    inside, count = args.noise["mechanism"], args.integer("count")
    parts = inside if isinstance(inside, list) else [inside]
    remove: Way = ()
    add: Way = ()
    rows, exact = {"composition"}, True
    below: list[list[Way]] = []
    if adjacency is None and (relations := _made_for(parts)):
        adjacency = relations.pop()
        if relations:
            raise NotProved("the composed mechanisms are for different relations: name one")
    for part in parts:
        budget.check(cases=1)
        found = worst(part, adjacency, args.value, budget)
        rows |= found.rows
        if len(parts) == count == 1:
            return replace(found, rows=rows)
        ways = [_joined(ways) for ways in (found.remove, found.add)]
        if any(law.slow for way in ways for laws_, _ in way for law in laws_):
            ways = [tuple((tuple(map(_quick, found)), n) for found, n in way) for way in ways]
            rows.add("pure")
        alone = any(law.only_alone for laws_, _ in ways[0] for law in laws_)
        exact = exact and found.lower is None and not alone
        below.append([_times(way, count) for way in _several(found)])
        remove, add = (
            sofar + _times(way, count) for sofar, way in zip((remove, add), ways, strict=True)
        )
    both = [remove], [remove] if remove == add else [add]
    if exact:
        return Worst(*both, rows)
    most = max(map(len, below)) if all(below) else 0
    lower = [sum((w[min(i, len(w) - 1)] for w in below), ()) for i in range(most)]
    ends = [attained(way) for way in lower]
    return Worst(*both, rows, ends[0] if most == 1 else [x[i % len(x)] for i, x in enumerate(ends)])


def _made_for(inside: Any) -> set[str]:
    """Return the relations that are fixed by mechanisms and by those inside them."""
    if isinstance(inside, list):
        return {relation for each in inside for relation in _made_for(each)}
    if not isinstance(inside, Noise):
        return set()
    own = lemmas.RELATION.get(inside.name), lemmas.relation_of(inside, None)
    return {relation for relation in own if relation} | _made_for([*inside.arguments.values()])


def _times(way: Way, count: int) -> Way:
    return tuple((found, n * count) for found, n in way)


def _several(found: Worst) -> list[Way]:
    """Return ways that some neighbours attain in each of several releases."""
    if found.lower is None:
        return [tuple((f[:1], n) for f, n in way) for way in found.remove[:1]]
    return [way for way in found.lower if all(law.is_pair for f, _ in way for law in f)]


def _joined(ways: Sequence[Way]) -> Way:
    """Return one way for several single releases: their laws become one factor."""
    if len(ways) == 1:
        return ways[0]
    if any(len(way) != 1 or way[0][1] != 1 for way in ways):
        raise NotProved("the kernel composes no mechanism with several products of worst pairs")
    return ((tuple(law for way in ways for law in way[0][0]), 1),)


def _quick(law: Law) -> Law:
    """Return a law, or the pair (ε, 0) above a slow one, with ε a bound of |L|."""
    if not law.slow:
        return law
    if not ball(reach(law)).is_finite():
        raise NotProved(f"the kernel composes no {law.name}")
    return laws.guaranteed(reach(law), ZERO)


def _sampled(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    inner, poisson = args.noise["mechanism"], args.noise.name == "PoissonSubsampled"
    if poisson:
        named(args, adjacency)
        q, row = args["sampling_prob"], "poisson"
        found = worst(inner, adjacency, args.value, budget)
        if adjacency == "replace-one":  # the two records shift the mean by ±μ
            mu = found.remove[0][0][0][0].mu
            if mu is None or not isinstance(inner, Noise) or inner.name != "Gaussian":
                raise NotProved("under replace-one the kernel samples Gaussian noise only")
            return in_both_orders("mixture", opposite([(ZERO, 1 - q), (mu, q)]))
        remove, add = _joined(found.remove), _joined(found.add)
    else:
        q, row = args["sample_size"] / args["population"], "without-replacement"
        if not _any_two(inner):
            raise NotProved("some records of the sample are not neighbours")
        if any(resolve(args.value(n), "!=", args["sample_size"]) for n in _populations(inner)):
            raise args.wrong("sample_size", "differs from the number of records of the mechanism")
        if resolve(q, ">", ONE):
            raise args.wrong("sample_size", "is above the population")
        found = worst(inner, "replace-one", args.value, budget)
        remove = add = _joined(found.ways)
    rows = {row, *found.rows}
    if resolve(q, "==", ZERO):
        trivial = one(table([(ONE, ONE)]))
        return Worst(trivial, trivial, rows)
    if resolve(q, "==", ONE):
        return replace(found, rows=rows)
    remove, add = (merged(way) for way in (remove, add))
    if [(len(way), way[0][1]) for way in (remove, add)] != [(1, 1), (1, 1)]:
        raise NotProved("the kernel samples no composition")
    one_way = tuple(sampled(law, q) for law in remove[0][0])
    other = tuple(diluted(law, q) for law in add[0][0])
    lower: list[Way] | None = None if found.lower is None else []
    if not poisson:
        both: list[Way] = [((one_way + other, 1),)]
        return Worst(both, both, rows, lower)
    return Worst([((one_way, 1),)], [((other, 1),)], rows, lower)


# --- samples ---
def _sampled_reach(law: Law, rate: Number) -> Number:
    """Return ln(1 − q + qe^t) for |L| ≤ t; by Cauchy–Schwarz it is ≥ −ln(1 − q + qe^−t)."""
    t = reach(law)
    return log(1 - rate + rate * exp(t)) if ball(t).is_finite() else INFINITE


def sampled(law: Law, rate: Number) -> Law:
    """Return the law of ((1 − q)Q + qP, Q), with q = `rate`."""
    if law.atoms:
        return table([((1 - rate) * q + rate * p, q) for p, q in law.atoms])

    def answer(loss: Number) -> Answer:
        inner = exp(loss) - 1 + rate
        if not resolve(inner, ">", ZERO):
            return below_all(loss)
        height, slope = law.at(_log(inner / rate, loss))
        return rate * height, slope

    largest = log(1 - rate + rate * exp(law.largest)) if ball(law.largest).is_finite() else INFINITE
    return derived_law(law, "sampled", answer, largest, _sampled_reach(law, rate))


def diluted(law: Law, rate: Number) -> Law:
    """Return the law of (P, (1 − q)P + qQ), with q = `rate`."""
    if law.atoms:
        return table([(p, (1 - rate) * p + rate * q) for p, q in law.atoms])

    def answer(loss: Number) -> Answer:
        factor = exp(loss)
        rest = 1 - (1 - rate) * factor
        if not resolve(rest, ">", ZERO):
            return ZERO, ZERO
        inner = _log(rate * factor / rest, loss)
        height, slope = law.at(inner)
        above = height + exp(inner) * slope
        return rest * height, (1 - rate) * above + rate * slope

    if ball(law.largest).is_finite():
        largest = -log(1 - rate + rate * exp(-law.largest))
    else:
        largest = INFINITE if resolve(rate, "==", ONE) else -log(1 - rate)
    return derived_law(law, "sampled in reverse", answer, largest, _sampled_reach(law, rate))


def _log(x: Number, loss: Number) -> Number:
    """Return ln x, which is exactly 0 at the loss 0."""
    return ZERO if isinstance(loss, fmpq) and not loss else log(x)


def _populations(tree: Any) -> list[str]:
    """Return the numbers of records that the mechanisms inside declare."""
    if not isinstance(tree, Noise):
        return [n for entry in tree for n in _populations(entry)] if isinstance(tree, list) else []
    own = [n for key, n in tree.arguments.items() if key in ("population", "users")]
    return own or _populations([*tree.arguments.values()])


def _any_two(tree: Any) -> bool:
    """Return whether any two records are neighbours: no channel inside restricts them."""
    inside = tree.arguments.values() if isinstance(tree, Noise) else tree
    if isinstance(inside, str):
        return True
    listed = isinstance(tree, Noise) and tree.arguments.get("neighbours", "None") != "None"
    return not listed and all(map(_any_two, inside))


def opposite(entries: Sequence[Answer]) -> Law:
    """Return Σ w N(m, 1) against Σ w N(−m, 1), for entries (m, w)."""
    entries = [(m, w) for m, w in entries if not compare(w, "==", 0)]
    if all(compare(m, "==", 0) for m, _ in entries):
        return table([(ONE, ONE)])
    from .noises import gaussian_mixture

    p, q = [(w, m) for m, w in entries], [(w, -m) for m, w in entries]
    return replace(gaussian_mixture(p, q), symmetric=True)


def named(args: Arguments, adjacency: str | None) -> None:
    """Require that the claim names a relation."""
    if adjacency is None:
        raise NotProved(f"{args.noise.name} needs its relation: add-remove or replace-one")


SHARES = [fmpq(i, 4) for i in range(-3, 4)]
"""Thresholds l of the events {L > l}, as shares of the largest loss."""


def attained(way: Way) -> list[Way]:
    """Return ways below a composition of laws that are exact for single releases only.

    Each such law is replaced with an event {L > l}, of probability H(l) + e^l Q(L > l) under P.
    """
    several = len(way) > 1 or way[0][1] > 1
    if not (several and any(f[0].only_alone for f, _ in way)):
        return [way]
    return [
        tuple(((_event(f[0], share),) if f[0].only_alone else f, n) for f, n in way)
        for share in SHARES
    ]


def _event(law: Law, share: fmpq) -> Law:
    loss = share * law.largest if ball(law.largest).is_finite() else share
    height, q = law.at(loss)
    return laws.event(height + exp(loss) * q, q)


WORST: dict[str, Special] = {
    "Composed": _composed,
    "PoissonSubsampled": _sampled,
    "SampledWithoutReplacement": _sampled,
}
"""Mechanism → its worst pairs."""

"""Mechanisms that are made of others: compositions, samples, shuffled reports, mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flint import fmpq

from . import laws
from .laws import ONE, ZERO, Answer, Law, table, told
from .lemmas import Arguments, Special, Way, Worst, attained, in_both_orders, merged, one, worst
from .notation import Noise
from .numbers import Budget, NotProved, ball, compare, exp, maximum, power


def _shuffled(args: Arguments, _: str | None, budget: Budget) -> Worst:
    inner, n = args.noise["mechanism"], args.integer("users")
    found, below = worst(inner, "replace-one", args.value, budget), list[Law]()
    if isinstance(inner, Noise) and inner.name == "RandomizedResponse":
        report = Arguments(inner, args.value)
        rest = exp(report["epsilon"]) + report["categories"] - 1
        all_alike = power(exp(report["epsilon"]) / rest, fmpq(n - 1))
        below.append(laws.event(all_alike * exp(report["epsilon"]) / rest, all_alike / rest))
    ways, t = found.ways, maximum([law.largest for way in found.ways for f, _ in way for law in f])
    local = isinstance(inner, Noise) and inner.name in LOCAL
    if local and ball(t).is_finite() and n > 1:
        from .noises import clones

        ways = one(clones(t, n - 1))
    return Worst(ways, ways, {"shuffled", *found.rows}, one(*below))


def _allocated(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    inner, k, steps = args.noise["mechanism"], args.integer("participations"), args["steps"]
    if told(args["participations"], ">", steps):
        raise args.wrong("participations", "is above steps")
    alone = worst(inner, adjacency, args.value, budget)
    whole_ = Noise("Composed", {"mechanism": inner, "count": str(k), "adaptive": "True"})
    found = worst(whole_, adjacency, args.value, budget)
    one_step = [merged(way) for way in (*alone.remove, *alone.add)]
    below: list[Law] = []
    if alone.lower is None and all(len(way) == 1 and way[0][1] == 1 for way in one_step):
        below += [laws.sampled(law, k / steps) for law in one_step[0][0][0]]
    return Worst(found.remove, found.add, {"allocation", *found.rows}, one(*below))


def _composed(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    inside, count = args.noise["mechanism"], args.integer("count")
    parts = inside if isinstance(inside, list) else [inside]
    remove: Way = ()
    add: Way = ()
    rows, exact = {"composition"}, True
    below: list[list[Way]] = []
    for part in parts:
        budget.check(cases=1)
        found = worst(part, adjacency, args.value, budget)
        rows |= found.rows
        if len(parts) == count == 1:
            return replace(found, rows=rows)
        if adjacency != "add-remove":
            found = replace(found, remove=found.ways, add=found.ways)
        ways = [_joined(ways) for ways in (found.remove, found.add)]
        if any(law.slow for way in ways for laws_, _ in way for law in laws_):
            ways = [tuple((tuple(map(_quick, found)), n) for found, n in way) for way in ways]
            rows.add("pure")
        alone = any(law.only_alone for laws_, _ in ways[0] for law in laws_)
        exact = exact and found.lower is None and not alone
        below.append([_times(way, count) for way in _several(found)])
        remove, add = (
            sofar + tuple((laws_, n * count) for laws_, n in way)
            for sofar, way in zip((remove, add), ways, strict=True)
        )
    both = [remove], [remove] if adjacency != "add-remove" else [add]
    if exact:
        return Worst(*both, rows)
    most = max(map(len, below)) if all(below) else 0
    lower = [sum((w[min(i, len(w) - 1)] for w in below), ()) for i in range(most)]
    ends = [attained(way) for way in lower]
    return Worst(*both, rows, ends[0] if most == 1 else [x[i % len(x)] for i, x in enumerate(ends)])


def _times(way: Way, count: int) -> Way:
    return tuple((found, n * count) for found, n in way)


def _several(found: Worst) -> list[Way]:
    """Return ways that some neighbours have in each of several releases: pairs, no mere bounds."""
    if found.lower is None:
        return [tuple((f[:1], n) for f, n in way) for way in found.remove[:1]]
    return [way for way in found.lower if all(law.is_pair for f, _ in way for law in f)]


def _joined(ways: Sequence[Way]) -> Way:
    """Return one way for any of several: the laws of single releases become one factor."""
    if len(ways) == 1:
        return ways[0]
    if any(len(way) != 1 or way[0][1] != 1 for way in ways):
        raise NotProved("a composition of a mechanism with several products of worst pairs")
    return ((tuple(law for way in ways for law in way[0][0]), 1),)


def _quick(law: Law) -> Law:
    """Return a law, or of a slow one what the largest of its losses and of (Q, P)'s says."""
    if not law.slow:
        return law
    if not ball(laws.reach(law)).is_finite():
        raise NotProved(f"a composition of {law.name}")
    return laws.guaranteed(laws.reach(law), ZERO)


def _sampled(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    inner, poisson = args.noise["mechanism"], args.noise.name == "PoissonSubsampled"
    if poisson:
        _named(args, adjacency)
        q, row = args["sampling_prob"], "poisson"
        found = worst(inner, adjacency, args.value, budget)
        if adjacency == "replace-one":  # before and after: means ±μ, for Gaussian noise
            mu = found.remove[0][0][0][0].mu
            if mu is None or not isinstance(inner, Noise) or inner.name != "Gaussian":
                raise NotProved("a sampled replacement of other than Gaussian noise")
            return in_both_orders("mixture", _opposite([(ZERO, 1 - q), (mu, q)]))
        remove, add = _joined(found.remove), _joined(found.add)
    else:
        q, row = args["sample_size"] / args["population"], "without-replacement"
        if not _any_two(inner):
            raise NotProved("a sample of records of which some are no neighbours")
        if any(told(args.value(n), "!=", args["sample_size"]) for n in _populations(inner)):
            raise args.wrong("sample_size", "is not how many records the mechanism has")
        if told(q, ">", ONE):
            raise args.wrong("sample_size", "is above the population")
        found = worst(inner, "replace-one", args.value, budget)
        remove = add = _joined(found.ways)
    rows = {row, *found.rows}
    if told(q, "==", ZERO):
        nothing = one(table([(ONE, ONE)]))
        return Worst(nothing, nothing, rows)
    if told(q, "==", ONE):
        return replace(found, rows=rows)
    remove, add = (merged(way) for way in (remove, add))
    if [(len(way), way[0][1]) for way in (remove, add)] != [(1, 1), (1, 1)]:
        raise NotProved("a sampled composition")
    one_way = tuple(laws.sampled(law, q) for law in remove[0][0])
    other = tuple(laws.diluted(law, q) for law in add[0][0])
    lower: list[Way] | None = None if found.lower is None else []
    if not poisson:
        both: list[Way] = [((one_way + other, 1),)]
        return Worst(both, both, rows, lower)
    return Worst([((one_way, 1),)], [((other, 1),)], rows, lower)


def _populations(tree: Any) -> list[str]:
    """Return how many records the mechanisms inside say that they have."""
    if not isinstance(tree, Noise):
        return [n for entry in tree for n in _populations(entry)] if isinstance(tree, list) else []
    own = [n for key, n in tree.arguments.items() if key in ("population", "users")]
    return own or _populations([*tree.arguments.values()])


def _any_two(tree: Any) -> bool:
    """Return whether any two records are neighbours: no channel inside lists those that are."""
    inside = tree.arguments.values() if isinstance(tree, Noise) else tree
    if isinstance(inside, str):
        return True
    listed = isinstance(tree, Noise) and tree.arguments.get("neighbours", "None") != "None"
    return not listed and all(map(_any_two, inside))


def _opposite(entries: Sequence[Answer]) -> Law:
    """Return the mixture of N(m, 1) by weights, as (m, w), against that of the opposite means."""
    entries = [(m, w) for m, w in entries if not compare(w, "==", 0)]
    if all(compare(m, "==", 0) for m, _ in entries):
        return table([(ONE, ONE)])
    from .noises import gaussian_mixture

    p, q = [(w, m) for m, w in entries], [(w, -m) for m, w in entries]
    return replace(gaussian_mixture(p, q), symmetric=True)


def _mixture(args: Arguments, adjacency: str | None, _: Budget) -> Worst:
    _named(args, adjacency)
    sizes, weights = args.numbers("sensitivities"), args.masses("sampling_probs")
    if len(sizes) != len(weights):
        raise args.wrong("sensitivities", "has another length than sampling_probs")
    entries = [(s / args["standard_deviation"], w) for s, w in zip(sizes, weights, strict=True)]
    moving = [(m, w) for m, w in entries if not compare(w, "==", 0)]
    if adjacency == "replace-one" or all(compare(m, "==", 0) for m, _ in moving):
        return in_both_orders("mixture", _opposite(moving))
    from .noises import gaussian_mixture

    p, plain = [(w, m) for m, w in moving], [(ONE, ZERO)]
    law = gaussian_mixture(p, plain)
    back = gaussian_mixture(plain, [(w, -m) for w, m in p])  # reflected
    return Worst(one(law), one(back), {"mixture"})


def _named(args: Arguments, adjacency: str | None) -> None:
    if adjacency is None:
        raise NotProved(f"{args.noise.name} needs its relation: add-remove or replace-one")


LOCAL = {"RandomizedResponse", "Rappor", "SubsetSelection",
         "UnaryEncoding", "Guaranteed"}  # fmt: skip
"""Reports of one record: any two records are neighbours, and their laws have one worst pair."""


WORST: dict[str, Special] = {
    "Composed": _composed,
    "MixtureOfGaussians": _mixture,
    "PoissonSubsampled": _sampled,
    "RandomAllocation": _allocated,
    "SampledWithoutReplacement": _sampled,
    "Shuffled": _shuffled,
}
"""Mechanism → its worst pairs."""

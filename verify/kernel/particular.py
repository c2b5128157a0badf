"""Worst pairs of mechanisms for which a line of the table of lemmas does not suffice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb, prod
from typing import Any

from flint import arb, fmpq, fmpq_mat

from . import expressions, functions, laws, noises
from .laws import ONE, ZERO, Law, resolve, table
from .lemmas import (
    Arguments,
    Special,
    Value,
    Way,
    Worst,
    by_lines,
    in_both_orders,
    merged,
    one,
    worst,
)
from .notation import Noise
from .numbers import (
    Budget,
    NotProved,
    Number,
    Wrong,
    ball,
    compare,
    exactly,
    exp,
    maximum,
    power,
    rational,
    sqrt,
    whole,
)


def square_on(noise: Noise) -> str | None:
    """Return the formula of sup v'Σ⁻¹v for independent noise over a simple space, or None."""
    covariance, space = noise["covariance"], noise["space"]
    while isinstance(space, Noise) and space.name == "DisjointGroups":
        space = space["space"]
    if not isinstance(covariance, Noise) or not isinstance(space, Noise):
        return None
    if covariance.name == "Diagonal" and space.name == "Box" and noise["space"] is space:
        pairs = zip(space["bounds"], covariance["variances"], strict=False)
        return f"({' + '.join(f'({b})**2/({v})' for b, v in pairs)})"
    squares = {
        "SparseBox": lambda: f"({space['sparsity']})*({space['bound']})**2",
        "L2Ball": lambda: f"({space['radius']})**2",
        "Box": lambda: " + ".join(f"({b})**2" for b in space["bounds"]),
    }.get(space.name)
    if covariance.name != "Isotropic" or squares is None:
        return None
    return f"(({squares()})/({covariance['variance']}))"


def _height(args: Arguments) -> int:
    """Return h, the number of measured sums of a tree that contain an input."""
    n = _steps(args) if args.noise.name != "BridgedTree" else 0
    match args.noise.name:
        case "BridgedTree":
            return len(args.numbers("arities", ">"))
        case "KaryTree":
            k, h, reach = args.integer("arity"), 0, 0
            low = (k - 1) // 2 if args["subtraction"] else 0
            while h == 0 or reach < n:
                h, reach = h + 1, reach * k + (k - 1 - low)
            return h
    return n.bit_length()


def _steps(args: Arguments) -> int:
    if (steps := args.integer("steps")) >= 1 << 256:
        raise NotProved("a tree of 2^256 steps or more")
    return steps


def _positions(args: Arguments) -> int:
    return min(args.integer("contributions"), args.integer("steps"))


def _sizes(args: Arguments) -> list[int]:
    """Return the sizes K_1, …, K_h = 1 of the cells of a BridgedTree."""
    arities = [whole(x) for x in args.numbers("arities", ">")]
    exact = all(ball(x) == k for x, k in zip(args.numbers("arities"), arities, strict=True))
    few = arities[0] < 1 or min(arities[1:], default=2) < 2
    if not exact or few or prod(arities) < args["steps"] or len(arities) > 200:
        raise args.wrong("arities", "expected whole numbers that have room for the steps")
    return [prod(arities[i:]) for i in range(1, len(arities) + 1)]


def _cells(args: Arguments, shown: fmpq) -> fmpq:
    """Return Σ s² over the cells of the first positions, or the part that outputs show."""
    sizes, c, total = _sizes(args), _positions(args), fmpq(0)
    for i, size in enumerate(sizes):
        rest = i + args.integer("pooled") + 1
        unseen = fmpq(sizes[rest], size) if rest < len(sizes) else 0
        total += (1 - shown * unseen) * ((c // size) * size**2 + (c % size) ** 2)
    return total


def _bridged(args: Arguments, adjacency: str | None, _: Budget) -> Worst:
    """Apply the lines of the table, and add a lower bound from the first positions."""
    sizes, c = _sizes(args), _positions(args)
    found = by_lines(args, adjacency)
    if found is None:
        raise NotProved("the table of lemmas has no row for BridgedTree, as it is given")
    if found.lower and args.noise["released"] == "measurements":
        unit = args["epsilon"] / (len(sizes) * args["contributions"])
        moved = [(size, c // size) for size in sizes] + [(c % size, 1) for size in sizes]
        found.lower.append(tuple(((laws.laplace(s * unit),), n) for s, n in moved if s and n))
    return found


_DERIVED: dict[str, Callable[[Arguments], Any]] = {
    "height": _height,
    "cells_square": lambda args: _cells(args, fmpq(0)),
    "shown_square": lambda args: _cells(args, fmpq(1)),
    "cells_end": lambda args: -(-_positions(args) // (size := _sizes(args)[0])) * size,
    "denominator": lambda args: int(args["c"].q) if isinstance(args["c"], fmpq) else _inexact(),
}
"""Name in formulas that is not an argument → its value."""


def derived(args: Arguments, key: str) -> Any:
    """Return the value of a name that is derived from the arguments."""
    return _DERIVED[key](args)


def _inexact() -> int:
    raise NotProved("c is not rational")


def _general(args: Arguments, _: str | None, budget: Budget) -> Worst:
    from .programs import dimension, is_positive, largest_square, symmetric

    covariance, space = (_exact(args.noise[key], args.value) for key in ("covariance", "space"))
    size, given = dimension(space), covariance.arguments
    if size > 1000:
        raise NotProved("the covariance has more than 1000 coordinates")
    inner = space
    while inner.name == "DisjointGroups":
        inner = inner["space"]
    if inner.name == "SparseBox" and int(inner["sparsity"]) > int(inner["dimension"]):
        raise Wrong("theorem.mechanism", "expected a sparsity of at most the dimension")
    if not (entries := given.get("rows")):
        on = given.get("variances")
        if not on and rational(given.get("dimension", "0")) == size:
            on = [given.get("variance") or given["diagonal"]] * size
        off = given.get("off_diagonal", "0")
        entries = [[x if i == j else off for j in range(size)] for i, x in enumerate(on or [])]
    rows = symmetric(entries, size, "theorem.mechanism")
    if not is_positive(rows, strictly=True):
        raise NotProved("the covariance is not positive definite")
    formula = square_on(Noise("GeneralGaussian", {"covariance": covariance, "space": space}))
    if formula:
        return _gaussian("gaussian-space", expressions.real(formula))
    if inner.name == "L2Ball":
        raise NotProved("the kernel has no largest norm of a ball under a matrix")
    inverse = fmpq_mat(rows).inv()
    listed = [[inverse[i, j] for j in range(size)] for i in range(size)]
    return _gaussian("gaussian-space", 1 * largest_square(space, listed, budget))


def _gaussian(row: str, square: Number) -> Worst:
    return in_both_orders(row, laws.gaussian(sqrt(square), square))


def _exact(tree: Any, value: Value) -> Noise:
    """Return a covariance or a space with its numbers as text of rationals."""

    def exact(entry: Any) -> Any:
        if isinstance(entry, list):
            return [exact(x) for x in entry]
        if isinstance(entry, Noise):
            return _exact(entry, value)
        if entry in ("True", "False"):
            return entry
        number = value(entry)
        if not isinstance(number, fmpq):
            raise NotProved("a number of a covariance or a space is not rational")
        return str(number)

    if not isinstance(tree, Noise):
        raise Wrong("theorem.mechanism", "expected a covariance and a space")
    return Noise(tree.name, {key: exact(entry) for key, entry in tree.arguments.items()})


def _matrix_variate(args: Arguments, *_: Any) -> Worst:
    square = args["l2_sensitivity"] ** 2
    for key in ("row_covariance", "column_covariance"):
        covariance = args.noise[key]
        name = covariance.name if isinstance(covariance, Noise) else ""
        if name not in ("Isotropic", "Diagonal"):
            raise NotProved("the kernel has no least eigenvalue of a matrix")
        given = covariance["variances"] if name == "Diagonal" else [covariance["variance"]]
        entries = Arguments(Noise(name, {"variances": given}), args.value).numbers("variances", ">")
        square = square / -maximum([-x for x in entries])
    return _gaussian("matrix-variate", square)


def _laplace_vector(args: Arguments, *_: Any) -> Worst:
    shifts = [maximum([x, -x]) for x in args.numbers("shifts", "")]
    counted: dict[str, tuple[Number, int]] = {}
    for x in shifts:
        if not compare(x, "==", 0):
            key = exactly(x)
            counted[key] = (x / args["scale"], counted.get(key, (x, 0))[1] + 1)
    way: Way = tuple(((laws.laplace(t),), n) for t, n in counted.values())
    ways = [way] if way else one(table([(ONE, ONE)]))
    return Worst(ways, ways, {"laplace"})


def shifted(masses: Sequence[Number], shift: int) -> Law:
    """Return a law on the integers, shifted up, against itself."""
    none = [ZERO] * shift
    return table(list(zip([*none, *masses], [*masses, *none], strict=True)))


def _integer_noise(args: Arguments, *_: Any) -> Worst:
    masses, most = args.masses("probabilities"), args.integer("sensitivity")
    if most > 200:
        raise NotProved("the sensitivity of integer noise exceeds 200")
    ups = tuple(shifted(masses, s) for s in range(1, most + 1))
    downs = tuple(laws.swapped(law) for law in ups if not law.symmetric)
    ways: list[Way] = [((ups + downs, 1),)]  # each may be that of any record, in any release
    return Worst(ways, ways, {"integer-noise"})


def count_noise(args: Arguments) -> list[Number]:
    """Return P(Z = −D), …, P(Z = D) of BoundedCountNoise as published (functions.py)."""
    d = args.integer("support")
    if d > 2000:
        raise NotProved("the support of count noise exceeds 2000")
    sums, best, _, masses = functions.count_noise(
        expressions.parse("ratio"), expressions.parse("eta"), d
    )
    at = {"ratio": exp(args["epsilon"]), "eta": args["eta"]}
    side = expressions.values([*sums, best, *masses], Budget(seconds=1e9), at)[-d - 1 :]
    return [*side[:0:-1], *side]


def _count_noise(args: Arguments, *_: Any) -> Worst:
    return in_both_orders("count-noise", replace(shifted(count_noise(args), 1), symmetric=True))


def _tabulated(args: Arguments, *_: Any) -> Worst:
    p, q = args.masses("p"), args.masses("q")
    if len(p) != len(q):
        raise args.wrong("p", "has another length than q")
    law = table(list(zip(p, q, strict=True)))
    return Worst(one(law), one(laws.swapped(law)), {"table"})


def _channel(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    matrix, listed = args.noise["matrix"], args.noise["neighbours"]
    if not isinstance(matrix, list) or not 2 <= len(matrix) <= 100:
        raise args.wrong("matrix", "expected 2 to 100 rows")
    rows = [Arguments(Noise("Channel", {"matrix": x}), args.value).masses("matrix") for x in matrix]
    if len({len(row) for row in rows}) > 1:
        raise args.wrong("matrix", "has rows of different lengths")
    pairs = [(i, j) for i in range(len(rows)) for j in range(i)]
    if listed != "None":
        if not all(isinstance(x, list) for x in (listed, *listed)):
            raise args.wrong("neighbours", "are not pairs of different inputs")
        found_at = [(args.value(i), args.value(j)) for i, j in listed]
        pairs = [(whole(i), whole(j)) for i, j in found_at]
        exact = pairs and all(
            compare(x, "==", k)
            for a, b in zip(found_at, pairs, strict=True)
            for x, k in zip(a, b, strict=True)
        )
        if not exact or any(
            i == j or not (0 <= i < len(rows) and 0 <= j < len(rows)) for i, j in pairs
        ):
            raise args.wrong("neighbours", "are not pairs of different inputs")
    elif adjacency == "add-remove":
        raise NotProved("Channel has a given number of records: its relation is replace-one")
    both = sorted({(i, j) for pair in pairs for i, j in (pair, pair[::-1])})
    budget.check(cases=len(both))
    found: dict[Any, Law] = {}
    for i, j in both:
        entries = list(zip(rows[i], rows[j], strict=True))
        found.setdefault(
            tuple(sorted((exactly(p), exactly(q)) for p, q in entries)), table(entries)
        )
    every: list[Way] = [((tuple(found.values()), 1),)]
    return Worst(every, every, {"channel"})


def _threshold(args: Arguments, *_: Any) -> Worst:
    k, away = args.integer("partitions"), args["threshold"] - args["sensitivity"]
    if k > 200:
        raise NotProved("a user is in more than 200 partitions")
    normal = args.noise.name == "GaussianThreshold"
    scale = args["standard_deviation" if normal else "scale"]
    moved, tail = args["sensitivity"] / scale, exp(-maximum([away, -away]) / scale) / 2
    shown = tail if resolve(away, ">=", ZERO) else 1 - tail
    hidden = 1 - (laws.normal_above(away / scale) if normal else shown)
    remove: list[Way] = []
    add: list[Way] = []
    for new in range(k, -1, -1):
        none = prod([hidden] * new, start=ONE)
        fresh = table([(1 - none, ZERO), (none, ONE)])
        rest: Way = ()
        if new < k and normal:
            rest = (((laws.gaussian(moved * sqrt(fmpq(k - new))),), 1),)
        elif new < k:
            rest = (((laws.laplace(moved),), k - new),)
        remove.append((*((((fresh,), 1),) if new else ()), *rest))
        add.append((*((((laws.swapped(fresh),), 1),) if new else ()), *rest))
    return Worst(remove, add, {"threshold"})


def _rank_one(args: Arguments, *_: Any) -> Worst:
    """Return lower bounds from the events that the output is within r of the first answer.

    For X ~ Beta(a, 1/2), P(X ≤ x) ≤ x^a/(a √(1 − x) B(a, 1/2)), as the last factor of its density
    is at most 1/√(1 − x) on [0, x].
    """
    a = ball(fmpq(args.integer("dimension") - 1, 2))
    unit = ball(sqrt(2 * args["sigma_star"]))
    least = ((a + fmpq(1, 2)).lgamma() - a.lgamma()).exp() / (a * arb.pi().sqrt())
    below = []
    for i in range(40):
        share = fmpq(9, 10) * fmpq(3, 4) ** i
        p, near, far = (
            (ball(x * args["l2_sensitivity"]) / unit).erf() for x in (share, 1 - share, 1 + share)
        )
        x = ball(share * share)
        below.append(noises.happening(p, least * x**a / (1 - x).sqrt() * (far - near) / 2))
    return Worst(one(laws.disjoint()), one(laws.disjoint()), {"rank-one"}, one(*below))


def _matrix(args: Arguments, *_: Any) -> Worst:
    n, noise = args.integer("steps"), args.noise
    gap = 1 if noise["separation"] == "None" else args.integer("separation")
    if n > 2000 or noise["step_sampling_prob"] != "None":
        raise NotProved("a matrix mechanism has more than 2000 steps, or samples its steps")
    places = -(-n // gap)
    root = [fmpq(comb(2 * j, j), 4**j) for j in range(n)]
    strategies: dict[str, list[Number]] = {"identity": [ONE], "square-root": [*root]}
    repeats = [noise["separation"], noise["participations"]] != ["None", "None"]
    if repeats and noise["participation"] == "single":
        raise args.wrong("participation", "is single: it has no separation and no participations")
    entries = strategies.get(str(noise["strategy"]))
    counts = {"single": 1, "cyclic": places, "min-separation": places}
    count = counts.get(str(noise["participation"]))
    if entries is None or count is None:
        raise NotProved("the kernel does not know the strategy or the participation")
    if noise["participations"] != "None":
        count = min(count, args.integer("participations"))
    width = len(entries) if noise["bands"] == "None" else min(len(entries), args.integer("bands"))
    if count > 1 and width > gap:
        raise NotProved("the steps of one record share noise of a matrix mechanism")
    square = sum((x * x for i in range(count) for x in entries[: min(width, n - i * gap)]), ZERO)
    return _gaussian("matrix", square / args["noise_multiplier"] ** 2)


# --- mixtures, and reports of many ---
def _mixture(args: Arguments, adjacency: str | None, _: Budget) -> Worst:
    from . import compositions

    compositions.named(args, adjacency)
    sizes, weights = args.numbers("sensitivities"), args.masses("sampling_probs")
    if len(sizes) != len(weights):
        raise args.wrong("sensitivities", "has another length than sampling_probs")
    entries = [(s / args["standard_deviation"], w) for s, w in zip(sizes, weights, strict=True)]
    moving = [(m, w) for m, w in entries if not compare(w, "==", 0)]
    if adjacency == "replace-one" or all(compare(m, "==", 0) for m, _ in moving):
        return in_both_orders("mixture", compositions.opposite(moving))
    p, plain = [(w, m) for m, w in moving], [(ONE, ZERO)]
    law = noises.gaussian_mixture(p, plain)
    back = noises.gaussian_mixture(plain, [(w, -m) for w, m in p])  # reflected
    return Worst(one(law), one(back), {"mixture"})


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
        ways = one(noises.clones(t, n - 1))
    return Worst(ways, ways, {"shuffled", *found.rows}, one(*below))


def _allocated(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    inner, k, steps = args.noise["mechanism"], args.integer("participations"), args["steps"]
    if resolve(args["participations"], ">", steps):
        raise args.wrong("participations", "is above steps")
    alone = worst(inner, adjacency, args.value, budget)
    whole_ = Noise("Composed", {"mechanism": inner, "count": str(k), "adaptive": "True"})
    found = worst(whole_, adjacency, args.value, budget)
    one_step = [merged(way) for way in (*alone.remove, *alone.add)]
    below: list[Law] = []
    if alone.lower is None and all(len(way) == 1 and way[0][1] == 1 for way in one_step):
        from .compositions import sampled

        below += [sampled(law, k / steps) for law in one_step[0][0][0]]
    return Worst(found.remove, found.add, {"allocation", *found.rows}, one(*below))


LOCAL = {"RandomizedResponse", "Rappor", "SubsetSelection",
         "UnaryEncoding", "Laplace", "Guaranteed"}  # fmt: skip
"""Reports of one record, for which any two records are neighbours."""


WORST: dict[str, Special] = {
    "BoundedCountNoise": _count_noise,
    "BridgedTree": _bridged,
    "Channel": _channel,
    "MixtureOfGaussians": _mixture,
    "RandomAllocation": _allocated,
    "Shuffled": _shuffled,
    "GaussianThreshold": _threshold,
    "GeneralGaussian": _general,
    "IntegerNoise": _integer_noise,
    "LaplaceThreshold": _threshold,
    "LaplaceVector": _laplace_vector,
    "MatrixMechanism": _matrix,
    "MatrixVariateGaussian": _matrix_variate,
    "RankOneGaussian": _rank_one,
    "Tabulated": _tabulated,
}
"""Mechanism → its worst pairs."""

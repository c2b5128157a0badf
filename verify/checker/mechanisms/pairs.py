"""The worst pairs of laws of every mechanism, derived from its arguments alone."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any, Final

from dpassay.verifier.checker.compositions.composed import Law, alike
from dpassay.verifier.checker.declared import BY_MECHANISM
from dpassay.verifier.checker.declared.law import pure
from dpassay.verifier.checker.declared.own_density import both_sides
from dpassay.verifier.checker.declared.tested_release import tested_pairs
from dpassay.verifier.checker.masses import masses, mixed
from dpassay.verifier.checker.mechanisms import local, matrices
from dpassay.verifier.checker.mechanisms.allocated import LISTS, allocated, allocated_columns
from dpassay.verifier.checker.mechanisms.arguments import WRAPPERS, only_enclosed
from dpassay.verifier.checker.mechanisms.counters import (
    COUNTERS,
    distances,
    has_exact_law,
    laplace_columns,
    normalized_columns,
    several_positions,
    square_root_column,
    sums_of_an_input,
    unit_variance,
)
from dpassay.verifier.checker.mechanisms.counts import count_noise
from dpassay.verifier.checker.mechanisms.gaussian import GAUSSIAN, gaussian_mu
from dpassay.verifier.checker.mechanisms.keys import KEYS, key_pairs
from dpassay.verifier.checker.mechanisms.neighbours import parts, releases, under
from dpassay.verifier.checker.mechanisms.products import enclosed, product, top
from dpassay.verifier.checker.mechanisms.shown import alone, hides, shown_squares
from dpassay.verifier.checker.mechanisms.shuffled import shuffled
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import UnknownError, exp, sqrt

BY_PARTS = (
    *(name for name in WRAPPERS if name != "RandomAllocation"),
    *KEYS,
    *COUNTERS,
    "AboveThreshold",
    "Channel",
    "DiscreteCorrelatedGaussian",
    "DiscreteKaryTree",
    "MatrixMechanism",
    "MixtureOfGaussians",
    "ProposeTestRelease",
    "ReportNoisyMax",
    "TopSelections",
)
"""Mechanisms whose law has no one form."""

_MOST_PARTS: Final = 1000
_MOST_SHIFTS: Final = 1000
_NOTHING: list[Law] = [{"law": "finite", "p": [Fraction(1)], "q": [Fraction(1)]}]
"""A release that says nothing."""


def pairs(noise: Noise) -> list[Law]:
    """Return the worst pairs of a mechanism, under the relation that is noted.

    Raises
    ------
    ValueError
        If the mechanism has no exact pair under this relation.
    UnknownError
        If the pair would take too long.
    """
    remove, add = _directions(noise)
    return remove + [law for law in add if law not in remove]


def _directions(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Return the worst pairs for removing a record, and for adding one."""
    if not fits(noise, noise.adjacency):
        raise ValueError(f"{noise.name} under {noise.adjacency or 'no relation'}")
    match noise.name:
        case "Composed":
            ways = [_directions(release) for release in releases(noise)]
            known = noise.adjacency == "add-remove"
            if not known and any(map(_one_way, releases(noise), ways)):
                raise UnknownError("the law of a composition of releases whose directions differ")
            return _composition(noise, ways)
        case "PoissonSubsampled" | "SampledWithoutReplacement":
            return _sample(noise)
        case "MixtureOfGaussians":
            return _mixture(noise)
        case "MatrixMechanism" if matrices.sampled(noise):
            return _sampled_columns(noise)
        case "MatrixMechanism" if matrices.allocated(noise):
            return allocated_columns(noise)
        case "RandomAllocation":
            return _allocation(noise)
        case "DiscreteKaryTree":
            return _discrete_tree(noise)
        case "ProposeTestRelease":
            tested: list[Law] = [*tested_pairs(noise)]
            return tested, tested
        case "TopSelections":
            return top(noise)
        case "NormalizedSquareRoot" if noise["mu"] is None and noise["contributions"] == 1:
            columns = laplace_columns(noise, normalized_columns(noise))
            return columns, columns
        case "Channel":
            return _channel(noise["matrix"], noise["neighbours"])
        case "Shuffled":
            listed: list[Law] = [*shuffled(noise)]
            return listed, listed
        case "Tabulated":
            return _both_ways((list(noise["p"]), list(noise["q"])))
        case "IntegerNoise":
            shifted = _shifted(list(noise["probabilities"]), int(noise["sensitivity"]))
            return shifted, shifted
    if noise.name in KEYS:
        return key_pairs(noise)
    if noise.name == "AdditiveNoise":
        sides = both_sides(noise)
        return sides, sides
    both = _with_lower_ends(_symmetric(noise))
    return both, both


def _with_lower_ends(law: Law) -> list[Law]:
    if law["law"] != "between":
        return [law]
    return [law, *itertools.chain(*map(_with_lower_ends, law["factors"][:-1]))]


def _symmetric(noise: Noise) -> Law:
    """Return the worst pair of a mechanism with one that is its own reverse, up to reflection."""
    if noise.name in GAUSSIAN:
        return {"law": "gaussian", "mu": gaussian_mu(noise)}
    if noise.name in COUNTERS:
        return _counter(noise)
    if noise.name in local.ARGUMENTS:
        p = local.response(noise)
        return {"law": "finite", "p": p, "q": p[::-1]}
    if noise.name in BY_MECHANISM:
        return BY_MECHANISM[noise.name].pair(noise)
    match noise.name:
        case "Laplace":
            return {"law": "laplace", "distance": noise["l1_sensitivity"] / noise["scale"]}
        case "LaplaceVector":
            found = sorted(abs(shift / noise["scale"]) for shift in noise["shifts"] if shift)
            return {"law": "laplace-product", "distances": found} if found else _NOTHING[0]
        case "DiscreteLaplace" | "TruncatedGeometric":
            # truncation merges outcomes y ≤ low ≤ n of one loss, and y ≥ high ≥ n + d of another
            law = {"law": "discrete-laplace", "scale": noise["scale"]}
            return {**law, "shift": noise["sensitivity"]}
        case "DiscreteGaussian":
            law = {"law": "discrete-gaussian", "parameter": noise["parameter"]}
            return {**law, "shift": noise["sensitivity"]}
        case "DiscreteCorrelatedGaussian":
            return _discrete_correlated(noise)
        case "BoundedCountNoise":
            # n ≥ D and n + 1: the same law, moved by 1, and a symmetric one
            listed = count_noise(noise["epsilon"], noise["eta"], noise["support"]).masses()
            return {"law": "finite", "p": [Fraction(0), *listed], "q": [*listed, Fraction(0)]}
        case "Staircase":
            return _staircase(noise)
        case "RandomizedResponse":
            return local.randomized_response(noise["epsilon"], noise["categories"])
        case "Guaranteed":
            return _guaranteed(noise)
        case "RankOneGaussian":
            # the ratio Δ/√σ_*: the density falls with the norm, so the full distance is worst
            ratio = noise["l2_sensitivity"] / sqrt(noise["sigma_star"])
            return {"law": "rank-one-gaussian", "dimension": noise["dimension"], "ratio": ratio}
    raise ValueError(f"{noise.name} is no mechanism")


def _counter(noise: Noise) -> Law:
    """Return the law of a counter: its noise is as large as ε or μ asks for.

    With Gaussian noise of the longest column of R over μ the pair is that of μ, with Laplace noise
    that of the worst column. Of several positions see `counters.several_positions`, and of outputs
    that show less than the measured sums `shown`.
    """
    if hides(noise):
        return _shown(noise)
    if noise["contributions"] > 1:
        moved, scale = several_positions(noise), sqrt(unit_variance(noise))
        if noise["mu"] is not None:
            square = sum((d * d for d in moved), Fraction(0)) / unit_variance(noise)
            return {"law": "gaussian", "mu": sqrt(square)}
        unit = scale / sqrt(Fraction(2))
        attaining: Law = {"law": "laplace-product", "distances": sorted(d / unit for d in moved)}
        most = pure(sum(attaining["distances"], start=Fraction(0)))
        return {"law": "between", "factors": [attaining, most]}
    if noise["mu"] is not None:
        return {"law": "gaussian", "mu": noise["mu"]}
    if noise.name == "SquareRootFactorization":  # the others are parts of the first column of √A
        return laplace_columns(noise, [square_root_column(noise)])[0]
    if noise.name == "KaryTree" and not has_exact_law(noise):
        raise ValueError("KaryTree has no exact pair at these steps")
    return {"law": "laplace-product", "distances": distances(noise)}


def _shown(noise: Noise) -> Law:
    """Return the Gaussian law of the outputs, or what the law of the outputs lies between."""
    if noise["mu"] is not None:
        ends = [sqrt(end / unit_variance(noise)) for end in shown_squares(noise)]
        laws: list[Law] = [{"law": "gaussian", "mu": mu} for mu in ends]
        return laws[0] if len(laws) == 1 else {"law": "between", "factors": laws}
    sums = _counter(Noise(noise.name, {**noise.arguments, "released": "measurements"}))
    unit = sqrt(unit_variance(noise) / 2)
    least = {"law": "laplace-product", "distances": [1 / unit]} if alone(noise) else _NOTHING[0]
    return {"law": "between", "factors": [least, sums]}


def _discrete_tree(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Return h discrete Laplace laws of scale h/ε at distance 1 (`sums_of_an_input`)."""
    if not has_exact_law(noise):
        raise ValueError("DiscreteKaryTree has no exact pair at these steps")
    h = Fraction(sums_of_an_input(noise))
    release = Noise("DiscreteLaplace", {"scale": h / noise["epsilon"], "sensitivity": Fraction(1)})
    return _composition(Noise("Composed", {"mechanism": release, "count": h}))


def _discrete_correlated(noise: Noise) -> Law:
    """Return the pair of g_i = 2f_i − n + Z_i, and of pn + W for C = p/q, all independent.

    Z_i has the parameter v = (d + C²)/μ² and W the parameter q²v. A record moves every g_i by ±1
    and the last by p: every record the same, up to reflection. A replacement moves a g_i by −2, 0
    or 2 and leaves n; to leave out a coordinate is post-processing.
    """
    d, c = noise["dimension"], noise["c"]
    v = (d + c * c) / (noise["mu"] * noise["mu"])
    replaced = noise.adjacency == "replace-one"
    each = {"law": "discrete-gaussian", "parameter": v, "shift": Fraction(2 if replaced else 1)}
    if replaced:
        return product([each], int(d))
    size = {
        "law": "discrete-gaussian",
        "parameter": v * c.denominator**2,
        "shift": Fraction(c.numerator),
    }
    return {"law": "product", "factors": [each, size], "counts": [int(d), 1]}


def _staircase(noise: Noise) -> Law:
    """Return the masses by loss ε, 0 and −ε of the density a·b^n at distance Δ, b = e^{−ε}.

    For a shift s ≤ Δ the loss is one of the three, and the profile grows with P(L = ε), that is
    with the total variation P(|noise| ≤ s/2) of a symmetric unimodal density: s = Δ is worst.
    """
    gamma, decay = noise["gamma"], exp(-noise["epsilon"])
    rest, half = 1 - gamma, Fraction(1, 2)
    fall = 1 - decay
    height = fall / (2 * (gamma + decay * rest))
    side = half + height * min(gamma, rest)
    middle = height * abs(1 - 2 * gamma) * (decay if 2 * gamma < 1 else 1)
    p = [side, middle, decay * side]
    return {"law": "finite", "p": p, "q": p[::-1]}


def _guaranteed(noise: Noise) -> Law:
    """Return (δ, (1 − δ)e^ε/(1 + e^ε), (1 − δ)/(1 + e^ε), 0), worst of what is (ε, δ)-DP."""
    odds, rest = exp(noise["epsilon"]), 1 - noise["delta"]
    likely, rare = (rest * x / (1 + odds) for x in (odds, Fraction(1)))
    p = [noise["delta"], likely, rare, Fraction(0)]
    return {"law": "finite", "p": p, "q": p[::-1]}


def _shifted(listed: list[Fraction], sensitivity: int) -> list[Law]:
    """Return a law moved by ±1, …, ±s against itself: without a shape, each may be the worst."""
    if sensitivity > _MOST_SHIFTS:
        raise UnknownError(f"the worst of {sensitivity} shifts")
    found = []
    for shift in range(1, sensitivity + 1):
        padding = [Fraction(0)] * shift
        up, down = padding + listed, listed + padding
        found.append({"law": "finite", "p": up, "q": down})
        if listed != listed[::-1]:
            found.append({"law": "finite", "p": down, "q": up})
    return found


def _channel(rows: list[list[Any]], listed: Any) -> tuple[list[Law], list[Law]]:
    """Return the ordered pairs of rows; the first of those that have the same outcomes, sorted."""
    found: dict[Any, Law] = {}
    names: dict[Any, int] = {}
    named = [[names.setdefault(entry, len(names)) for entry in row] for row in rows]
    edges = listed or itertools.combinations(range(len(rows)), 2)
    for i, j in sorted({way for a, b in edges for way in ((int(a), int(b)), (int(b), int(a)))}):
        outcomes = tuple(sorted(zip(named[i], named[j], strict=True)))
        found.setdefault(outcomes, {"law": "finite", "p": rows[i], "q": rows[j]})
    laws = list(found.values())
    return laws, laws


def _sample(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Mix the pairs of a release (A, B): (1 − q)B + qA and B, or A and (1 − q)A + qB.

    A replaced record of a Poisson sample of Gaussian noise is there with probability q, before and
    after, and moves the answer by ±μ: the two laws are reflections of each other.
    """
    if noise.name == "PoissonSubsampled":
        remove, add = _directions(noise["mechanism"])
        q = noise["sampling_prob"]
        if noise.adjacency == "replace-one":
            cases = ((Fraction(0), 1 - q), (remove[0]["mu"], q))
            found = _replaced([(mean, weight) for mean, weight in cases if weight])
            return found, found
    else:  # the worse of both mixtures of every pair
        q = noise["sample_size"] / noise["population"]
        remove = add = pairs(under(noise["mechanism"], "replace-one"))
    if q == 0:
        return _NOTHING, _NOTHING
    if q == 1:
        return remove, add
    return [_mixed(law, q, first=True) for law in remove], [
        _mixed(law, q, first=False) for law in add
    ]


def _replaced(entries: list[tuple[Any, Any]]) -> list[Law]:
    """Return the mixture of means, by their weights, against that of the opposite ones."""
    if len(entries) == 1:
        mean = entries[0][0]
        return [{"law": "gaussian", "mu": 2 * mean}] if mean else _NOTHING
    there = [[w, mean] for mean, w in entries]
    return [{"law": "gaussian-mixture", "p": there, "q": [[w, -m] for w, m in reversed(there)]}]


def _mixed(law: Law, q: Any, *, first: bool) -> Law:
    """Mix one side of a pair, of a list outcome by outcome."""
    if law["law"] not in LISTS:
        side = "P" if first else "Q"
        return {"law": "subsampled", "sampling_prob": q, "mixture": side, "pair": law}
    both = [mixed(a, b, q, first=first) for a, b in masses(law)]
    return {"law": "finite", "p": [p for p, _ in both], "q": [q for _, q in both]}


def _mixture(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Return the mixture of shifted normal laws against N(0, 1), and the reverse.

    Of a record that is replaced, the mixtures of opposite shifts: reflections of each other.
    """
    sizes, weights = noise["sensitivities"], noise["sampling_probs"]
    joint: dict[Any, Any] = {}
    for size, weight in zip(sizes, weights, strict=True):
        mean = size / noise["standard_deviation"]
        joint[mean] = joint.get(mean, 0) + weight
    entries = sorted((mean, weight) for mean, weight in joint.items() if weight)
    if entries[-1][0] == 0:
        return _NOTHING, _NOTHING
    if noise.adjacency == "replace-one":
        both = _replaced(entries)
        return both, both
    largest = {"law": "gaussian", "mu": entries[-1][0]}
    if len(entries) == 1:
        return [largest], [largest]
    if len(entries) == 2 and entries[0][0] == 0:
        q = entries[-1][1]
        return [_mixed(largest, q, first=True)], [_mixed(largest, q, first=False)]
    shifted, plain = [[w, mean] for mean, w in entries], [[Fraction(1), Fraction(0)]]
    return (
        [{"law": "gaussian-mixture", "p": shifted, "q": plain}],
        [{"law": "gaussian-mixture", "p": plain, "q": shifted}],
    )


def _sampled_columns(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Return a composition of sampled Gaussian releases for every worst record (`matrices`)."""
    sigma, q = noise["noise_multiplier"], noise["step_sampling_prob"]
    if q == 0:
        return _NOTHING, _NOTHING
    both: tuple[list[Law], list[Law]] = ([], [])
    for squares in matrices.sampled_squares(noise):
        counts = Counter(squares)
        laws = [{"law": "gaussian", "mu": sqrt(square) / sigma} for square in counts]
        for found, first in zip(both, (True, False), strict=True):
            factors = [_mixed(law, q, first=first) for law in laws]
            whole = {"law": "product", "factors": factors, "counts": list(counts.values())}
            found.append(factors[0] if len(squares) == 1 else whole)
    return both


def _composition(
    noise: Noise, ways: list[tuple[list[Law], list[Law]]] | None = None
) -> tuple[list[Law], list[Law]]:
    """Multiply the pairs of all releases, in each direction."""
    count = int(noise["count"])
    ways = ways or [_directions(release) for release in releases(noise)]
    if len(ways) == count == 1:
        return ways[0]
    if only_enclosed(noise):
        return _enclosed(noise)
    if any(len(laws) != 1 for way in ways for laws in way):
        raise UnknownError("the worst pair of this composition")
    remove, add = ([way[side][0] for way in ways] for side in (0, 1))
    first = [product(remove, count)]
    return first, first if remove == add else [product(add, count)]


def _enclosed(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Return what a composition lies between, without those inside it."""
    known = parts(noise)
    count = math.gcd(*(n for _, n in known))
    if sum(n for _, n in known) // count > _MOST_PARTS:
        raise UnknownError("a composition of so many parts")
    ways = [way for release, n in known for way in [_directions(release)] * (n // count)]
    return enclosed(ways, count)


def _allocation(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Return the mixture over the steps against none, and the reverse; all steps are a composition.

    Of other numbers of steps two ends: the sum of all steps, events of means of powers of the
    likelihood ratios, and k allocations to ⌊t/k⌋ steps each. Of noise that is not Gaussian a step
    with few outcomes is known.
    """
    inner, t, k = noise["mechanism"], noise["steps"], noise["participations"]
    if k == t:
        return _composition(Noise("Composed", {"mechanism": inner, "count": t}))
    if inner.name not in GAUSSIAN:
        return allocated(pairs(inner), int(t), int(k))
    mu, few = gaussian_mu(inner), t // k
    found = []
    for side in "PQ":
        law = {"law": "random-allocation", "mu": mu, "steps": t, "mixture": side}
        if k > 1:
            most = product([{**law, "steps": few}], k)
            if few == 1:
                most = product([{"law": "gaussian", "mu": mu}], k)
            together = {"law": "gaussian", "mu": k * mu / sqrt(t)}
            law = {**law, "law": "allocation-event", "participations": k}
            found.append([{"law": "between", "factors": [together, law, most]}, together, law])
        else:
            found.append([law])
    return found[0], found[1]


def _both_ways(*found: tuple[list[Any], list[Any]]) -> tuple[list[Law], list[Law]]:
    remove = [{"law": "finite", "p": p, "q": q} for p, q in found]
    return remove, [{"law": "finite", "p": law["q"], "q": law["p"]} for law in remove]


_NAMED = (
    "CorrelatedGaussian",
    "CountEllipse",
    "DiscreteCorrelatedGaussian",
    "KnownSizeGaussian",
    "MixtureOfGaussians",
    "OptimalEllipse",
)
"""Mechanisms whose guarantee differs between the relations: one must be named."""


_ADDED = (*KEYS, "RandomAllocation")
"""Mechanisms that are known for records that are added or removed."""


def fits(noise: Noise, adjacency: str | None) -> bool:
    """Whether a relation is one for which the worst pairs are known.

    Sensitivities that are arguments are those of any relation. A sample needs replace-one if its
    size is fixed; if every record takes part by chance it needs one of both relations, and
    Gaussian noise under replace-one. The mechanism has been asked for what it is `under` it.
    """
    match noise.name:
        case "RandomizedResponse" | "Shuffled":  # a given number of records
            return adjacency != "add-remove"
        case "Channel" if noise["neighbours"] is None:
            return adjacency != "add-remove"
        case _ if noise.name in local.ARGUMENTS:
            return adjacency != "add-remove"
        case "SampledWithoutReplacement":
            return adjacency != "add-remove" and fits(noise["mechanism"], "replace-one")
        case "PoissonSubsampled":
            if adjacency == "replace-one":
                return _plain_gaussian(noise["mechanism"])
            return adjacency == "add-remove" and fits(noise["mechanism"], adjacency)
        case _ if noise.name in _ADDED or matrices.sampled(noise) or matrices.allocated(noise):
            return adjacency == "add-remove"
        case "Composed":
            return all(fits(release, adjacency) for release in releases(noise))
    return noise.name not in _NAMED or adjacency is not None


def _plain_gaussian(noise: Noise) -> bool:
    """Whether a mechanism is Gaussian noise of given sensitivity, once or several times."""
    if noise.name == "Composed":
        return all(map(_plain_gaussian, releases(noise)))
    return noise.name == "Gaussian"


def _one_way(noise: Noise, way: tuple[list[Law], list[Law]]) -> bool:
    """Whether the worst pairs for adding a record are others than for removing it."""
    if noise.name == "Tabulated":
        return False
    try:
        remove, add = way
        return len(remove) != len(add) or not all(map(alike, remove, add))
    except UnknownError:
        return False

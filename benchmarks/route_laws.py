"""Worst pairs of all classes of mechanisms with random parameters, as arrays of floats.

They are derived from the definitions, independently of what the classes say about their worst case.
For Gaussian noise of any shape the covariance is taken from the mechanism, and the worst neighbours
are searched among all corners; likewise the matrix of a counter's measured sums.
"""

# ruff: noqa: D103, N802 (a function makes the mechanism of its name)
from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from routes import Law, allocation, gaussian, laplace, lattice, line
from scipy.stats import binom, norm

Pairs = list[list[tuple[Law, int]]]
"""Alternatives, one of which is worst: a product of pairs each."""
Made = tuple[str, Any]


@dataclass(frozen=True)
class Kind:
    """A mechanism, its worst pairs, and how they were found."""

    text: str
    pairs: Pairs
    route: str
    adjacency: str = ""
    never: tuple[str, ...] = ()  # questions that the route cannot judge
    least: float = -50.0  # the least decimal logarithm of a δ that is asked about
    error: float = 0.0  # relative, of the route
    floor: float = 0.0  # absolute
    envelope: bool = False  # releases may choose among the pairs, one after the other

    def sampled(self, rate: str) -> Kind:
        """Return the mechanism on a Poisson sample."""
        law = self.pairs[0][0][0]
        shifts = [law] if law.mirrored else [law, law.swapped()]  # a record may raise or lower
        pairs = [[(each.sampled(float(rate)), 1)] for each in shifts]
        text, several = f"PoissonSubsampled({self.text}, '{rate}')", len(pairs) > 1
        return replace(self, text=text, pairs=pairs, adjacency="add-remove", envelope=several)


KINDS: dict[str, Callable[[random.Random, float], Kind]] = {}


def kind(route: str, **more: Any) -> Callable[[Callable[[random.Random, float], Made]], None]:
    """Register a function of a generator and a strength (about μ), returning text and pairs."""

    def listed(make: Callable[[random.Random, float], Made]) -> None:
        def made(rng: random.Random, strength: float) -> Kind:
            text, pairs = make(rng, strength)
            products = [[(pairs, 1)]] if isinstance(pairs, Law) else pairs
            return Kind(text, products, route, **{"envelope": len(products) > 1, **more})

        KINDS[make.__name__] = made

    return listed


def decimal(x: float) -> str:
    """Return a number of four digits, without an exponent."""
    return str(np.format_float_positional(float(f"{x:.4g}"), trim="-"))


def scaled(s: float) -> tuple[str, float]:
    """Return the scale of noise, and the shift in its units."""
    text = decimal(1 / s)
    return text, 1 / float(text)


def mu_of(covariance: Any, corners: Any) -> float:
    """Return the largest √(v'Σ⁻¹v)."""
    inverse = np.linalg.pinv(np.array(covariance, float), rcond=1e-12, hermitian=True)
    return math.sqrt(max(float(np.array(v) @ inverse @ np.array(v)) for v in corners))


def released(text: str) -> Any:
    """Return the covariance of the noise of a mechanism."""
    import dpassay

    rows = dpassay.parse(text).covariance_matrix()
    return [[float(x) for x in row] for row in rows]


def corners(bounds: list[float], least: int = 0, most: int = 99) -> list[tuple[float, ...]]:
    """Return the corners of a box from 0 that have so many entries."""
    found = itertools.product(*((0.0, b) for b in bounds))
    return [v for v in found if least <= sum(map(bool, v)) <= most]


def sums(matrix: Any, strength: str) -> Pairs:
    """Return the Laplace releases that each input of a counter is in."""
    columns = np.abs(np.array(matrix, float)).T
    unit = float(strength) / max(columns.sum(1))
    different = {tuple(np.round(np.sort(c[c > 0]), 12)) for c in columns}
    return [[(laplace(float(x) * unit), 1) for x in c] for c in different]


MASSES, CELLS, CORNERS = "masses", "cells of the density", "cells, μ by all corners"
ALTERNATIVES = ("beta", "renyi", "rho")
ADD, REPLACED = "add-remove", "replace-one"


@kind(CELLS)
def Gaussian(rng: random.Random, s: float) -> Made:
    b, shift = scaled(s)
    return f"Gaussian(standard_deviation='{b}')", gaussian(shift)


@kind(CELLS)
def Laplace(rng: random.Random, s: float) -> Made:
    b, shift = scaled(s)
    return f"Laplace(scale='{b}')", laplace(shift)


@kind(CELLS)
def Logistic(rng: random.Random, s: float) -> Made:
    b, shift = scaled(s)
    law = line(lambda x: -np.abs(x) - 2 * np.log1p(np.exp(-np.abs(x))), shift, 160.0)
    return f"Logistic(scale='{b}')", law


@kind(CELLS)
def AdditiveNoise(rng: random.Random, s: float) -> Made:
    text, log, reach = rng.choice(
        [
            ("exp(-abs(x)**3)", lambda x: -(np.abs(x) ** 3), 6.5),
            ("exp(-x**4)", lambda x: -(x**4), 4.2),
            ("1/cosh(x)", lambda x: -np.log(np.cosh(x)), 250.0),
            ("exp(-x**2/2-abs(x))", lambda x: -x * x / 2 - np.abs(x), 26.0),
        ]
    )
    b, shift = scaled(s)
    return f"AdditiveNoise('{text}', scale='{b}')", line(log, shift, reach, 0.0)


@kind(MASSES)
def Staircase(rng: random.Random, s: float) -> Made:
    e, gamma = decimal(min(s, 3)), rng.choice(("0.2", "0.5", "0.371"))
    n = min(3000, int(120 / float(e)) + 1)
    own = np.concatenate(
        [k := np.arange(-n, n + 2), np.where(k < 0, k - float(gamma) + 1, k + float(gamma))]
    )
    edges = np.unique(np.round(np.concatenate([own, own + 1, -own]), 12))
    x, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)

    def height(y: NDArray[Any]) -> NDArray[Any]:
        y = np.abs(y)
        return np.exp(-float(e) * (np.floor(y) + (y - np.floor(y) >= float(gamma))))

    p, q = height(x - 1) * width, height(x) * width
    return f"Staircase(epsilon='{e}', gamma='{gamma}')", Law(p / p.sum(), q / q.sum())


@kind(CELLS)
def TruncatedLaplace(rng: random.Random, s: float) -> Made:
    b, shift = scaled(s)
    bound = decimal(rng.uniform(2, 40) / shift)
    reach = float(bound) * shift

    def density(x: NDArray[Any]) -> NDArray[Any]:
        return np.where(np.abs(x) <= reach, -np.abs(x), -np.inf)

    return f"TruncatedLaplace(scale='{b}', bound='{bound}')", line(
        density, shift, reach, -reach, reach, 0.0
    )


@kind(MASSES)
def DiscreteGaussian(rng: random.Random, s: float) -> Made:
    k = rng.randrange(1, 4)
    v = decimal(max(0.3, min((k / s) ** 2, 3e8)))
    law = lattice(lambda x: -x * x / (2 * float(v)), k, math.ceil(27 * math.sqrt(float(v))) + 2)
    return f"DiscreteGaussian(parameter='{v}', sensitivity={k})", law


@kind(MASSES)
def DiscreteLaplace(rng: random.Random, s: float) -> Made:
    k = rng.randrange(1, 4)
    b = decimal(k / s)
    law = lattice(lambda x: -np.abs(x) / float(b), k, math.ceil(60 * float(b)) + 5)
    return f"DiscreteLaplace(scale='{b}', sensitivity={k})", law


@kind(MASSES)
def TruncatedGeometric(rng: random.Random, s: float) -> Made:
    b, high = decimal(1 / s), rng.randrange(3, 12)
    noise = np.arange(-(m := math.ceil(60 * float(b)) + 20), m + 1)
    mass = np.exp(-np.abs(noise) / float(b))
    q, p = (np.bincount(np.clip(n + noise, 0, high), mass / mass.sum()) for n in (1, 2))
    return f"TruncatedGeometric(scale='{b}', low=0, high={high})", Law(p, q)


@kind(MASSES, adjacency=ADD)
def IntegerNoise(rng: random.Random, s: float) -> Made:
    n = rng.randrange(3, 9)
    share = [
        math.ceil(999 * math.exp(-s * abs(i) - s * rng.random() / 3)) for i in range(-n, n + 1)
    ]
    mass, zero = np.array(share) / sum(share), [0.0]
    text = ", ".join(f"'{x}/{sum(share)}'" for x in share)
    law = Law(np.concatenate([zero, mass]), np.concatenate([mass, zero]))
    return f"IntegerNoise(probabilities=[{text}], lowest={-n})", law


@kind("masses, as released", adjacency=ADD)
def BoundedCountNoise(rng: random.Random, s: float) -> Made:
    import dpassay

    eta, n = rng.choice(("1/3", "0.2", "1/9")), rng.randrange(1, 9)
    text = f"BoundedCountNoise(epsilon='{decimal(min(s, 2))}', eta='{eta}', support={n})"
    mass, zero = np.array([float(x) for x in dpassay.parse(text).masses(0)[0]]), [0.0]
    return text, Law(np.concatenate([zero, mass]), np.concatenate([mass, zero]))


@kind("cells, a product")
def LaplaceVector(rng: random.Random, s: float) -> Made:
    (b, unit), shifts = scaled(s / 2), [rng.randrange(1, 5) for _ in range(rng.randrange(1, 5))]
    return f"LaplaceVector(scale='{b}', shifts={shifts})", [
        [(laplace(x * unit), 1) for x in shifts]
    ]


@kind("cells, mixed", adjacency=ADD)
def MixtureOfGaussians(rng: random.Random, s: float) -> Made:
    (b, shift), n = scaled(s), rng.randrange(10, 200)
    shares = [n - 3, 2, 1]
    x = np.linspace(-28, 28 + 2 * shift, 1 << 16)
    q = cut(x, 0)
    p = sum(w / n * cut(x, k * shift) for k, w in enumerate(shares))
    text = ", ".join(f"'{w}/{n}'" for w in shares)
    return f"MixtureOfGaussians('{b}', [0, 1, 2], [{text}])", Law(p, q, True)


def cut(edges: NDArray[Any], mean: float) -> NDArray[Any]:
    """Return the masses of a normal law between edges, without cancellation in the tails."""
    x = edges - mean
    return np.where(x[1:] > 0, -np.diff(norm.sf(x)), np.diff(norm.cdf(x)))


@kind("cells, both mixed", adjacency=REPLACED)
def PoissonSubsampled(rng: random.Random, s: float) -> Made:
    (b, shift), q = scaled(s), decimal(math.exp(rng.uniform(-8, -0.5)))
    x, rate = np.linspace(-28 - shift, 28 + shift, 1 << 16), float(q)
    laws = [(1 - rate) * cut(x, 0) + rate * cut(x, side * shift) for side in (1, -1)]
    return f"PoissonSubsampled(Gaussian(standard_deviation='{b}'), '{q}')", Law(*laws, True)


@kind(
    "cells, a sum of lognormal ratios",
    adjacency=ADD,
    never=("renyi", "rho"),  # of which few orders are known, in one direction
    least=-10.0,
    error=1e-5,
    floor=3e-12,
)
def RandomAllocation(rng: random.Random, s: float) -> Made:
    steps = rng.randrange(5, 40)
    b, shift = scaled(min(s * 2, 0.9))
    text = f"RandomAllocation(Gaussian(standard_deviation='{b}'), steps={steps})"
    return text, allocation(shift, steps)


@kind("cells, mixed", adjacency=REPLACED, envelope=True, never=ALTERNATIVES)
def SampledWithoutReplacement(rng: random.Random, s: float) -> Made:
    (b, shift), n = scaled(s), rng.randrange(10, 2000)
    name, law = rng.choice([("Gaussian(standard_deviation", gaussian), ("Laplace(scale", laplace)])
    text = f"SampledWithoutReplacement({name}='{b}'), sample_size=3, population={n})"
    return text, law(shift).sampled(3 / n)


@kind(MASSES, adjacency=REPLACED)
def RandomizedResponse(rng: random.Random, s: float) -> Made:
    e, k = decimal(s), rng.randrange(2, 7)
    mass = np.ones(k)
    mass[0] = math.exp(float(e))
    return f"RandomizedResponse(epsilon='{e}', categories={k})", Law(
        mass / mass.sum(), np.roll(mass, 1) / mass.sum()
    )


def rows(rng: random.Random, s: float, inputs: int) -> tuple[str, list[NDArray[Any]]]:
    """Return random laws on four outcomes, as text and as masses."""
    shares = [
        [round(300 * math.exp(s * rng.gauss(0, 1) / 2)) + 1 for _ in range(4)]
        for _ in range(inputs)
    ]
    texts = [", ".join(f"'{x}/{sum(row)}'" for x in row) for row in shares]
    return ", ".join(f"[{text}]" for text in texts), [np.array(r) / sum(r) for r in shares]


@kind(MASSES)
def Tabulated(rng: random.Random, s: float) -> Made:
    text, (p, q) = rows(rng, s, 2)
    return "Tabulated(p={}, q={})".format(*text.replace("], [", "]|[").split("|")), Law(p, q)


@kind("cells, mixed, little noise and rare samples", adjacency=ADD, never=("renyi", "rho"))
def LittleNoise(rng: random.Random, s: float) -> Made:
    b = decimal(rng.uniform(0.1, 0.3))
    rate = decimal(math.exp(rng.uniform(math.log(1e-7), math.log(0.02))))
    law = gaussian(1 / float(b)).sampled(float(rate))
    return f"PoissonSubsampled(Gaussian(standard_deviation='{b}'), '{rate}')", law


@kind(
    "cells, mixed, losses beyond floats",  # they count as infinite, which a small ε does not see
    adjacency=ADD,
    never=("epsilon", "beta", "renyi", "rho"),
)
def HardlyAnyNoise(rng: random.Random, s: float) -> Made:
    b = decimal(math.exp(rng.uniform(math.log(0.002), math.log(0.02))))
    rate = decimal(math.exp(rng.uniform(math.log(1e-7), math.log(0.02))))
    law = gaussian(1 / float(b)).sampled(float(rate))
    return f"PoissonSubsampled(Gaussian(standard_deviation='{b}'), '{rate}')", law


@kind(CELLS)
def IrrationalScale(rng: random.Random, s: float) -> Made:
    b, factor = decimal(1 / s), rng.choice(("sqrt(2)", "pi", "exp(1)", "log(3)"))
    size = {"sqrt(2)": math.sqrt(2), "pi": math.pi, "exp(1)": math.e, "log(3)": math.log(3)}
    name, law = rng.choice([("Gaussian(standard_deviation", gaussian), ("Laplace(scale", laplace)])
    return f"{name}='{b}*{factor}')", law(1 / (float(b) * size[factor]))


@kind(CELLS)
def IrrationalDensity(rng: random.Random, s: float) -> Made:
    b, shift = scaled(s)
    text, rate = rng.choice([("1/cosh(pi*x/2)", math.pi / 2), ("1/cosh(sqrt(2)*x)", math.sqrt(2))])
    law = line(lambda x: -np.logaddexp(rate * x, -rate * x), shift, 200.0)
    return f"AdditiveNoise('{text}', scale='{b}')", law


def with_zeros(rng: random.Random, s: float, inputs: int) -> tuple[str, list[NDArray[Any]]]:
    """Return laws of which some outcomes have probability 0."""
    shares = [
        [round(9999 * math.exp(s * rng.gauss(0, 1) / 2)) for _ in range(3)] for _ in range(inputs)
    ]
    for row in shares:
        row.append(rng.choice((0, 0, 1, 2)))
    texts = [", ".join(f"'{x}/{sum(row)}'" for x in row) for row in shares]
    return ", ".join(f"[{text}]" for text in texts), [np.array(r) / sum(r) for r in shares]


@kind("masses, some 0", never=("renyi", "rho"))
def TabulatedZeros(rng: random.Random, s: float) -> Made:
    text, (p, q) = with_zeros(rng, s, 2)
    return "Tabulated(p={}, q={})".format(*text.replace("], [", "]|[").split("|")), Law(p, q)


@kind("masses, some 0, all pairs of rows", adjacency=REPLACED, envelope=True, never=ALTERNATIVES)
def ChannelZeros(rng: random.Random, s: float) -> Made:
    text, laws = with_zeros(rng, s, rng.choice((2, 3)))
    return f"Channel(matrix=[{text}])", [
        [(Law(p, q), 1)] for p, q in itertools.combinations(laws, 2)
    ]


@kind("masses, all pairs of rows", adjacency=REPLACED, envelope=True)
def Channel(rng: random.Random, s: float) -> Made:
    text, laws = rows(rng, s, rng.choice((2, 3)))
    return f"Channel(matrix=[{text}])", [
        [(Law(p, q), 1)] for p, q in itertools.combinations(laws, 2)
    ]


@kind(MASSES)
def Guaranteed(rng: random.Random, s: float) -> Made:
    e, delta = decimal(s), f"1e-{rng.randrange(4, 12)}"
    rest = (1 - float(delta)) / (1 + math.exp(float(e)))
    p = np.array([float(delta), 0, rest * math.exp(float(e)), rest])
    return f"Guaranteed(epsilon='{e}', delta='{delta}')", Law(p, p[[1, 0, 3, 2]])


@kind("masses, all other records", adjacency=REPLACED)
def Shuffled(rng: random.Random, s: float) -> Made:
    e, n = decimal(s), rng.randrange(2, 40)
    truth = 1 / (1 + math.exp(-float(e)))
    pairs = []
    for m in range(n):
        others = np.convolve(
            binom.pmf(range(m + 1), m, truth), binom.pmf(range(n - m), n - 1 - m, 1 - truth)
        )
        pairs.append([(Law(*(np.convolve(others, [1 - x, x]) for x in (truth, 1 - truth))), 1)])
    return f"Shuffled(RandomizedResponse(epsilon='{e}'), users={n})", pairs


def choices(e: float, law: Callable[[Any], Any]) -> Law:
    """Return all laws of a candidate that rises by ε against another one, as rows."""
    near = np.geomspace(1e-16, 1, 8000)  # of the ends, where the best ones lie for ε near the loss
    x = np.concatenate([np.linspace(-30 - e, 30, 20001), near, -near, near - e, -near - e])
    p, q = law(x + e), law(x)
    return Law(np.stack([p, law(-x - e)], 1), np.stack([q, law(-x)], 1))


@kind("numeric optimum of two candidates", never=ALTERNATIVES, error=2e-5)
def ExponentialMechanism(rng: random.Random, s: float) -> Made:
    e = decimal(s)
    return f"ExponentialMechanism(epsilon='{e}')", choices(float(e), lambda x: 1 / (1 + np.exp(-x)))


@kind("numeric optimum of two candidates", never=ALTERNATIVES, error=2e-5)
def PermuteAndFlip(rng: random.Random, s: float) -> Made:
    e = decimal(s)
    law = choices(
        float(e), lambda x: np.where(x > 0, 1 - np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x)) / 2)
    )
    return f"PermuteAndFlip(epsilon='{e}')", law


def keys(law: Law, appears: float, most: int) -> Pairs:
    """Return so many keys of one user alone, and the other ones frequent."""
    new = Law(np.array([appears, 1 - appears]), np.array([0.0, 1.0]))
    return [[(x, n) for x, n in ((new, j), (law, most - j)) if n] for j in range(most + 1)]


@kind("cells, all numbers of new keys", adjacency=ADD, never=ALTERNATIVES)
def GaussianThreshold(rng: random.Random, s: float) -> Made:
    (b, shift), tau, k = scaled(s), decimal(rng.uniform(2, 8) / s), rng.randrange(1, 4)
    pairs = keys(gaussian(shift), float(norm.sf((float(tau) - 1) * shift)), k)
    return f"GaussianThreshold('{b}', threshold='{tau}', partitions={k})", pairs


@kind("cells, all numbers of new keys", adjacency=ADD, never=ALTERNATIVES)
def LaplaceThreshold(rng: random.Random, s: float) -> Made:
    (b, shift), tau, k = scaled(s), decimal(1 + rng.uniform(2, 30) / s), rng.randrange(1, 4)
    pairs = keys(laplace(shift), math.exp(-(float(tau) - 1) * shift) / 2, k)
    return f"LaplaceThreshold('{b}', threshold='{tau}', partitions={k})", pairs


@kind("masses, all numbers of users", adjacency=ADD, never=ALTERNATIVES)
def PartitionSelection(rng: random.Random, s: float) -> Made:
    e, delta, kept = decimal(min(s, 3)), f"1e-{rng.randrange(3, 12)}", [0.0]
    up, d = math.exp(float(e)), float(delta)
    while kept[-1] < 1:
        kept.append(min(up * kept[-1] + d, 1 - (1 - kept[-1] - d) / up, 1.0))
    p = np.array(kept)
    both = np.stack([p, 1 - p], 1)
    return f"PartitionSelection(epsilon='{e}', delta='{delta}')", Law(both[1:], both[:-1])


def shape(text: str, where: list[tuple[float, ...]], number: bool = False) -> Made:
    """Return a Gaussian mechanism with the worst of all corners; a number of records moves by 1."""
    return text, gaussian(mu_of(released(text), [v + (1.0,) * number for v in where]))


@kind(CORNERS, adjacency=ADD)
def CorrelatedGaussian(rng: random.Random, s: float) -> Made:
    d = rng.randrange(1, 8)
    return shape(f"CorrelatedGaussian({d}, mu='{decimal(s)}')", corners([1.0] * d), True)


@kind(CORNERS, adjacency=ADD)
def KnownSizeGaussian(rng: random.Random, s: float) -> Made:
    d = rng.randrange(1, 8)
    where = [tuple(x - 0.5 for x in v) for v in corners([1.0] * d)]
    return shape(f"KnownSizeGaussian({d}, mu='{decimal(s)}')", where)


@kind(CORNERS, adjacency=ADD)
def CountEllipse(rng: random.Random, s: float) -> Made:
    d = rng.randrange(2, 10)
    k = rng.randrange(1, max(1, d // 2) + 1)
    return shape(f"CountEllipse({d}, {k}, mu='{decimal(s)}')", corners([1.0] * d, 1, k))


@kind(CORNERS, adjacency=ADD)
def OptimalEllipse(rng: random.Random, s: float) -> Made:
    d = rng.randrange(1, 10)
    k = rng.randrange(1, d + 1)
    return shape(f"OptimalEllipse({d}, {k}, mu='{decimal(s)}')", corners([1.0] * d, 1, k))


@kind(CORNERS)
def EllipticalGaussian(rng: random.Random, s: float) -> Made:
    bounds = [rng.randrange(1, 9) for _ in range(rng.randrange(1, 6))]
    text = f"EllipticalGaussian({bounds}, mu='{decimal(s)}')"
    return shape(text, corners([float(x) for x in bounds]))


@kind(CORNERS, adjacency=ADD)
def OneSidedGaussian(rng: random.Random, s: float) -> Made:
    bounds = [rng.randrange(1, 9) for _ in range(rng.randrange(1, 6))]
    text = f"OneSidedGaussian({bounds}, mu='{decimal(s)}')"
    return shape(text, corners([float(x) for x in bounds]), True)


@kind("four million draws", never=ALTERNATIVES, least=-2.5, error=0.06)  # 4 deviations at 1e-3
def RankOneGaussian(rng: random.Random, s: float) -> Made:
    d, star = rng.randrange(3, 7), decimal(rng.uniform(20, 2000))
    chance = np.random.default_rng(rng.randrange(10**9))
    size = 1 << 22
    radius = np.abs(chance.standard_normal(size)) * math.sqrt(float(star))
    side = 2 * chance.beta((d - 1) / 2, (d - 1) / 2, size) - 1  # one coordinate of a direction
    other = np.sqrt(radius**2 + 2 * radius * side + 1)  # the norm from the other true answer
    logs = (d - 1) * np.log(other / radius) + (other**2 - radius**2) / (2 * float(star))
    p = np.full(size, 1 / size)
    return f"RankOneGaussian({d}, sigma_star='{star}')", Law(p, p * np.exp(-logs), drawn=True)


@kind("cells, μ by hand")
def GeneralGaussian(rng: random.Random, s: float) -> Made:
    d = rng.randrange(1, 5)
    bounds = [rng.randrange(1, 5) for _ in range(d)]
    variances = [decimal((rng.randrange(1, 9) / s) ** 2) for _ in range(d)]
    text = f"GeneralGaussian(Diagonal(variances={variances}), Box(bounds={bounds}))"
    return text, gaussian(
        math.sqrt(sum(b * b / float(v) for b, v in zip(bounds, variances, strict=True)))
    )


@kind("cells, μ by hand")
def MatrixVariateGaussian(rng: random.Random, s: float) -> Made:
    v, w = decimal(s**-2), rng.randrange(2, 9)
    text = (
        f"MatrixVariateGaussian(Diagonal(variances=['{v}', 900000000000]), Exchangeable(3, {w}, 1))"
    )
    return text, gaussian(1 / math.sqrt(float(v) * (w - 1)))


@kind("cells, μ by hand", adjacency=ADD)
def DisjointGroupsGaussian(rng: random.Random, s: float) -> Made:
    d, mu = rng.randrange(1, 12), decimal(s)
    square = d / (d + math.sqrt(d)) + 1 / (math.sqrt(d) + 1)  # d/(4 Var z) + 1/(4 Var η)
    text = f"DisjointGroupsGaussian(3, {d}, mu='{mu}', adjacency='add-remove')"
    return text, gaussian(float(mu) * math.sqrt(square))


@kind(CORNERS, adjacency=ADD)
def OptimalGroups(rng: random.Random, s: float) -> Made:
    m, d = rng.randrange(1, 6), rng.randrange(1, 9)
    text = f"OptimalGroups({m}, {d}, mu='{decimal(s)}', adjacency='replace-one')"
    return shape(text, [(1.0,) * j + (0.0,) * (m * d - j) for j in range(1, d + 1)])


@kind("masses, a product", adjacency=ADD)
def DiscreteCorrelatedGaussian(rng: random.Random, s: float) -> Made:
    d, mu = rng.randrange(1, 5), decimal(max(s, 0.01))
    v = (d + 2.25) / float(mu) ** 2
    laws = [
        (lattice(lambda x, w=w: -x * x / (2 * w), k, math.ceil(27 * math.sqrt(w)) + 4), n)
        for w, k, n in ((v, 1, d), (4 * v, 3, 1))
    ]
    return f"DiscreteCorrelatedGaussian({d}, mu='{mu}', c='3/2')", [laws]


def counter(name: str, more: Callable[[random.Random, int], str] = lambda rng, n: "") -> None:
    """List a counter: the sums with Laplace noise (all columns), or the outputs with Gaussian."""

    def make(rng: random.Random, s: float) -> Made:
        import dpassay

        known = name == "BridgedTree"  # of steps that fill a cell of its first level
        n, level = rng.choice((7, 12, 16) if known else (1, 3, 7, 12, 16)), decimal(s)
        laplacian = name != "SquareRootFactorization" and rng.random() < 0.6
        text = f"{name}(steps={n}{more(rng, n)}, {'epsilon' if laplacian else 'mu'}='{level}'"
        if laplacian and name == "BridgedTree":
            text += ", released='measurements'"
        matrix: Any = dpassay.parse(text + ")")
        left, right = (np.array(rows, float) for rows in matrix.factorisation())
        if laplacian:
            return text + ")", sums(right.tolist(), level)
        prefixes = np.tri(n)
        shown = np.diag(prefixes.T @ np.linalg.solve(left @ left.T, prefixes)).max()
        longest = np.linalg.norm(right, axis=0).max()
        return text + ")", gaussian(float(level) * float(math.sqrt(shown) / longest))

    make.__name__ = name
    kind("cells, all columns of the sums")(make)


counter("BinaryTree")
counter("SquareRootFactorization")
counter("BridgedTree", lambda rng, n: ", arities=[4, 4]")


def digits(rng: random.Random) -> tuple[int, int, bool]:
    """Return arity, height and subtraction of a tree with k^h − 1 or (k^h − 1)/2 steps."""
    return rng.choice((2, 3, 5)), rng.randrange(1, 4), rng.random() < 0.5


def tree(name: str, noise: Callable[[float], Law]) -> None:
    """List a tree of any arity: so many releases as it has levels."""

    def make(rng: random.Random, s: float) -> Made:
        (k, h, subtraction), e = digits(rng), decimal(s)
        steps = k ** (h - 1)
        while subtraction and sum(k // 2 * k**i for i in range(h - 1)) >= steps:
            h -= 1  # fewer digits write so many steps
        text = f"{name}(steps={steps}, arity={k}, epsilon='{e}', subtraction={subtraction})"
        return text, [[(noise(float(e) / h), h)]]

    make.__name__ = name
    kind("cells, one release a level")(make)


tree("KaryTree", laplace)


@kind("cells, μ by all patterns")
def MatrixMechanism(rng: random.Random, s: float) -> Made:
    n, b, (sigma, shift) = rng.randrange(4, 10), rng.randrange(2, 4), scaled(s / 2)
    root = [math.comb(2 * j, j) / 4**j for j in range(n)]
    c = np.array([[root[i - j] if i >= j else 0 for j in range(n)] for i in range(n)])
    patterns = [
        x
        for k in range(1, n // b + 2)
        for x in itertools.combinations(range(n), k)
        if all(j - i >= b for i, j in itertools.pairwise(x))
    ]
    text = f"MatrixMechanism('square-root', '{sigma}', {n}, 'min-separation', separation={b})"
    return text, gaussian(max(float(np.linalg.norm(c[:, x].sum(1))) for x in patterns) * shift)


ALONE = {
    "ExponentialMechanism", "GaussianThreshold", "LaplaceThreshold", "PartitionSelection",
    "PermuteAndFlip", "RankOneGaussian", "Shuffled",
}  # fmt: skip
SAMPLED = {
    "AdditiveNoise", "BoundedCountNoise", "CorrelatedGaussian", "DiscreteGaussian",
    "DiscreteLaplace", "EllipticalGaussian", "Gaussian", "IntegerNoise", "Laplace", "Logistic",
    "Staircase", "TruncatedLaplace",
}  # fmt: skip
"""Classes that are asked about on samples too."""

"""Broken mechanisms from the literature and from practice, and private controls.

A row is a mechanism, its claim, neighbouring datasets, and what is true of it: they measure an
auditor, and show what it finds. Sources are named above the rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.mechanisms import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomizedResponse,
    TruncatedGeometric,
)
from dpassay.accountant.release.lattice import LatticeSampler
from dpassay.verifier.audit.guarantees import Claim

Generator: TypeAlias = np.random.Generator
Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = "int | tuple[int, ...]"
Block: TypeAlias = Callable[[Any, int, Generator], Any]
"""Draws the outputs of so many runs on a dataset."""
Pair: TypeAlias = "tuple[Any, Any]"


@final
@dataclass(frozen=True)
class Case:
    """A mechanism with a claim that is false or, of a control, true."""

    name: str
    claim: Claim
    pairs: tuple[Pair, ...]
    """Neighbouring datasets; on the first pair a broken mechanism breaks its claim."""
    draw: Block
    true_epsilon: float | None
    """The least ε for which the claim, with its δ, would be true on these pairs (∞ for none);
    for a control a value at most that of the claim. None where there is no closed form."""
    broken: bool = True
    samples: int = 20_000
    """Runs a side with which the audit is to find it."""

    def __call__(self, dataset: Any, rng: Generator) -> Any:
        """Run it once."""
        return self.draw(dataset, 1, rng)[0]

    def sample(self, dataset: Any, size: int, rng: Generator) -> Any:
        """Run it `size` times."""
        return self.draw(dataset, size, rng)


def control(
    name: str, claim: Claim, pairs: tuple[Pair, ...], draw: Block, true: float | None = None
) -> Case:
    """Return a mechanism whose claim is true."""
    return Case(name, claim, pairs, draw, true, broken=False)


# Noise of the zoo: exact, on a lattice, so that a case shows its own flaw and no other.


@functools.lru_cache(maxsize=64)
def _sampler(kind: str, scale: float) -> LatticeSampler:
    noise = Laplace(scale) if kind == "laplace" else Gaussian(scale)
    return noise.lattice_sampler()


def _drawn(kind: str, rng: Generator, scale: float, shape: Shape) -> Array:
    size = int(np.prod(shape))
    return _sampler(kind, scale).noise(size, rng=rng).reshape(shape)


def laplace(rng: Generator, scale: float, shape: Shape) -> Array:
    """Draw Laplace noise of a scale: multiples of a power of two."""
    return _drawn("laplace", rng, scale, shape)


def normal(rng: Generator, scale: float, shape: Shape) -> Array:
    """Draw normal noise of a standard deviation: multiples of a power of two."""
    return _drawn("normal", rng, scale, shape)


def geometric(rng: Generator, scale: float, size: int) -> Array:
    """Draw integers with P(z) ∝ e^{−|z|/scale}."""
    return DiscreteLaplace(scale).sample(size, rng=rng)


def row(dataset: Any) -> Array:
    """Return a dataset that is a list of numbers."""
    return np.asarray(dataset, dtype=np.float64)


# Mechanisms that take more than a line.


def sparse_vector(
    d: Any, n: int, rng: Generator, *, threshold: float, query: float, limit: int | None
) -> Any:
    """Return 1 and 0, and −1 after the limit-th answer above, with noise of these scales."""
    level = laplace(rng, threshold, (n, 1)) if threshold else np.array([[0.5]])
    noise = laplace(rng, query, (n, len(d))) if query else np.zeros((n, len(d)))
    above: Array = row(d) + noise >= level
    found = above.astype(np.int8)
    if limit is not None:
        before = np.cumsum(above, axis=1) - above
        found[before >= limit] = -1
    return found


def sparse_vector_values(d: Any, n: int, rng: Generator) -> Any:
    """Return the noisy value of an answer above, which bounds the threshold's noise (c = 1)."""
    threshold = laplace(rng, 1.0, (n, 1))
    noisy = row(d) + laplace(rng, 1.0, (n, len(d)))
    above = noisy >= threshold
    stopped = np.cumsum(above, axis=1) - above >= 1
    return np.where(stopped, -2000.0, np.where(above, noisy, -1000.0))


def scored(d: Any, n: int, rng: Generator) -> Any:
    """Return scores of sensitivity 1 with the noise of a 1-DP maximum."""
    return row(d) + laplace(rng, 2.0, (n, len(d)))


def max_with_gap(d: Any, n: int, rng: Generator) -> Any:
    """Return the place of the largest score and its lead over the second: the lead is free."""
    noisy = scored(d, n, rng)
    ordered = np.sort(noisy, axis=1)
    return np.column_stack([np.argmax(noisy, axis=1), ordered[:, -1] - ordered[:, -2]])


def weighted(d: Any, n: int, rng: Generator, epsilon: float) -> Any:
    """Choose i with probability ∝ e^{ε u_i}."""
    limits = np.cumsum(np.exp(epsilon * row(d)))
    return np.searchsorted((limits / limits[-1])[:-1], rng.random(n), side="right")


def permute_and_flip(d: Any, n: int, rng: Generator) -> Any:
    """In random order, accept i with probability e^{(u_i − max u)/2}."""
    scores = row(d)
    accepted = rng.random((n, len(scores))) < np.exp((scores - scores.max()) / 2)
    order = np.argsort(rng.random((n, len(scores))), axis=1)
    first = np.argmax(np.take_along_axis(accepted, order, axis=1), axis=1)
    return np.take_along_axis(order, first[:, np.newaxis], axis=1)[:, 0]


def tie_break_by_truth(d: Any, n: int, rng: Generator) -> Any:
    """Say whether a noisy count reaches 5; a tie goes to the true answer. e^{2ε}."""
    noisy = d + geometric(rng, 1.0, n)
    return ((noisy > 5) | ((noisy == 5) & (d >= 5))).astype(np.int8)


def truncated(d: Any, n: int, rng: Generator) -> Any:
    """Draw noise again until it lies in [−3, 3]: the ends of the range tell the answer."""
    noise = laplace(rng, 1.0, n)
    while (far := np.abs(noise) > 3).any():
        noise[far] = laplace(rng, 1.0, int(far.sum()))
    return d + noise


def one_without_noise(d: Any, n: int, rng: Generator) -> Any:
    """Release the last coordinate as it is."""
    released = np.tile(row(d), (n, 1))
    released[:, 0] += laplace(rng, 1.0, n)
    return released


def lying(d: Any, n: int, rng: Generator, truth: float, categories: int) -> Any:
    """Report a category, the true one with this probability."""
    lie = rng.random(n) >= truth
    other = rng.integers(1, categories, n) if categories > 2 else 1
    return np.where(lie, (d + other) % categories, d)


def unary(d: Any, n: int, rng: Generator) -> Any:
    """Flip each of four bits as for the whole ε."""
    flip = rng.random((n, 4)) >= math.e / (1 + math.e)
    return ((np.arange(4) == d) ^ flip).astype(np.int8)


def histogram(d: Any, n: int, rng: Generator, threshold: float) -> Any:
    """Return noisy counts of the keys that occur, of those that reach a threshold."""
    keys = sorted(set(d))
    noise = geometric(rng, 1.0, n * len(keys)).reshape(n, -1)
    noisy = noise + [d.count(key) for key in keys]
    return [
        tuple((key, int(n)) for key, n in zip(keys, row, strict=True) if n >= threshold)
        for row in noisy
    ]


def tree(d: Any, n: int, rng: Generator, levels: int) -> Any:
    """Return every sum of a binary tree above four inputs, with noise for so many levels."""
    x = row(d)
    sums = np.concatenate([x, x[0::2] + x[1::2], [x.sum()]])
    return sums + laplace(rng, levels, (n, len(sums)))


def subsampled(d: Any, n: int, rng: Generator) -> Any:
    """Take each record with probability 0.2, then add 2-DP noise: ln(1 + 0.2(e² − 1))-DP."""
    taken = rng.random((n, len(d))) < 0.2
    return (taken * row(d)).sum(axis=1) + geometric(rng, 0.5, n)


def inverse(d: Any, n: int, rng: Generator) -> Any:
    """Textbook inversion: −sign(u) ln(1 − 2|u|)."""
    u = rng.random(n) - 0.5
    return d - np.sign(u) * np.log1p(-2 * np.abs(u))


def polar(d: Any, n: int, rng: Generator) -> Any:
    """Box and Muller."""
    radius = np.sqrt(-2 * np.log1p(-rng.random(n)))
    return d + radius * np.cos(2 * np.pi * rng.random(n))


def coarse(d: Any, n: int, rng: Generator) -> Any:
    """Inversion of 10-bit uniform numbers: the noise has 2048 values."""
    u = (rng.integers(0, 1024, n) + 0.5) / 1024
    return d + np.where(rng.random(n) < 0.5, np.log(u), -np.log(u))


def snapping(d: Any, n: int, rng: Generator) -> Any:
    """Clamp to ±50, add noise by inversion, round to the power of two Λ = 1 ≥ 1/ε, clamp."""
    sign = 2 * rng.integers(0, 2, n) - 1
    noisy = np.clip(d, -50.0, 50.0) + sign * np.log1p(-rng.random(n))
    return np.clip(np.round(noisy), -50.0, 50.0)


def one_answer(d: Any, n: int, rng: Generator) -> Any:
    """Doubles with all their bits, and two datasets with the same answers: nothing to learn."""
    eta, z = rng.normal(0.0, _SHARED, (n, 1)), rng.normal(0.0, _OWN, (n, _WIDE))
    return (row(d) + eta) + z


def _seen(release: Callable[[Any], float], inputs: Any) -> list[Any]:
    """Return outputs or, for a run that raises, the name of the error: users see that it fails."""
    found: list[Any] = []
    for each in inputs:
        try:
            found.append(release(each))
        except (ArithmeticError, ValueError) as error:
            found.append(type(error).__name__)
    return found


def without_records(d: Any, n: int, rng: Generator) -> Any:
    """Divide a sum of records of [0, 1] by their number, then add noise: none is an error."""
    return _seen(lambda z: sum(d) / len(d) + z, laplace(rng, 1.0, n))


def sampled_record(d: Any, n: int, rng: Generator) -> Any:
    """Count a sample of 1 %, with each record read as a byte first: 300 is none, once in 100."""

    def release(drawn: Any) -> float:
        sampled, noise = drawn
        return len(bytes([d[1]] if sampled else [])) + float(noise)

    return _seen(release, zip(rng.random(n) < 0.01, laplace(rng, 1.0, n), strict=True))


_UP = (tuple([0] * 6), tuple([1] * 6))
_CROSSED = ((1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1))
_LAST = ((0, 0, 0, 0, 0, 1), (1, 1, 1, 1, 1, 0))
_CROSS = ((0, 1, 0, 0, 0), (1, 0, 1, 1, 1))
_SCORES = (((1, 1, 1, 1, 1), (2, 0, 0, 0, 0)), ((2, 0, 0, 0, 0), (1, 1, 1, 1, 1)), _CROSS)
_COUNTS, _BACK, _BITS = (5, 6), (6, 5), (0, 1)
_ENTRY = ((5, 5), (5, 6))
_A, _AB, _MANY = ("a",), ("a", "b"), ("a",) * 5
_STREAM = ((0, 0, 0, 0), (1, 0, 0, 0))
_AMPLIFIED = math.log1p(0.2 * math.expm1(2.0))
_RECORDS = ((0,) * 10, (1,) + (0,) * 9)
_ZERO, _TENTH, _THIRD = (0.0, 1.0), (0.1, 1.1), (1 / 3, 4 / 3)
_WIDE = 100
"""Entries of a wide output."""
_ONES, _TWOS = (1.0,) * _WIDE, (2.0,) * _WIDE
_SHARED, _OWN = math.sqrt(0.5), math.sqrt(50.0)
"""Standard deviations with which 100 answers that all move by 1 are 1-GDP: μ² is the number of
entries over own variance plus that number times the shared one, 100/(50 + 100/2)."""

_CASES = [
    # Sparse vector: the algorithms compared by Lyu, Su and Li 2017, Figure 1. The sixth, and one
    # without noise on the threshold, pay for every query.
    control("sparse-vector-1", 1, (_CROSSED, _UP, _LAST),
            functools.partial(sparse_vector, threshold=2.0, query=8.0, limit=2)),
    Case("sparse-vector-3", 2, (((0, 0, 0, 1), (1, 1, 1, 0)),), sparse_vector_values, None,
         samples=80_000),
    Case("sparse-vector-5", 1, (_CROSSED,),
         functools.partial(sparse_vector, threshold=2.0, query=0.0, limit=None), math.inf),
    Case("sparse-vector-6", 1, (_CROSSED,),
         functools.partial(sparse_vector, threshold=2.0, query=2.0, limit=None), None),
    Case("sparse-vector-no-threshold-noise", 1, (_UP,),
         functools.partial(sparse_vector, threshold=0.0, query=2.0, limit=None), None),

    # Selection. Dwork, Roth 2014, 3.3; Ding et al., VLDB 2019 (gap) and CCS 2018 (value); McSherry,
    # Talwar 2007; McKenna, Sheldon 2020.
    control("noisy-max", 1, _SCORES, lambda d, n, rng: np.argmax(scored(d, n, rng), axis=1)),
    control("noisy-max-with-gap", 1, _SCORES, max_with_gap),
    Case("noisy-max-value", 1, (((0,) * 5, (1,) * 5),),
         lambda d, n, rng: np.max(scored(d, n, rng), axis=1), None),
    Case("tie-break-by-truth", 1, ((5, 4),), tie_break_by_truth, 2.0),
    control("tie-break-by-rule", 1, ((5, 4), (4, 5), (6, 5)),
            lambda d, n, rng: (d + geometric(rng, 1.0, n) >= 5).astype(np.int8), 1.0),
    control("exponential-mechanism", 1, _SCORES, functools.partial(weighted, epsilon=0.5)),
    # the factor 2 of the normaliser is missing
    Case("exponential-mechanism-no-half", 1, (_CROSS,), functools.partial(weighted, epsilon=1.0),
         math.log(math.e * (1 + 4 * math.e) / (math.e + 4))),
    control("permute-and-flip", 1, _SCORES, permute_and_flip),

    # Noise on numbers: Dwork et al. 2006, Ghosh et al. 2009, and folklore. Of a wrong scale, …
    control("laplace", 1, (_COUNTS,), lambda d, n, rng: d + laplace(rng, 1.0, n), 1.0),
    Case("laplace-sensitivity-two", 1, ((5, 7),), lambda d, n, rng: d + laplace(rng, 1.0, n), 2.0),
    Case("laplace-inverted-scale", 0.5, (_COUNTS,), lambda d, n, rng: d + laplace(rng, 0.5, n),
         2.0),
    Case("laplace-vector-largest-change", 1, (((0,) * 3, (1,) * 3),),
         lambda d, n, rng: row(d) + laplace(rng, 1.0, (n, 3)), 3.0),
    control("geometric", 1, (_COUNTS,), lambda d, n, rng: d + geometric(rng, 1.0, n), 1.0),
    # the ratio 1 − ε, the first terms of e^{−ε}
    Case("geometric-wrong-ratio", "0.7", (_COUNTS,),
         lambda d, n, rng: d + rng.geometric(0.7, n) - rng.geometric(0.7, n), -math.log(1 - 0.7)),
    # … of a wrong shape, …
    Case("laplace-truncated", 1, (_COUNTS, _BACK), truncated, math.inf),
    Case("laplace-absolute", 1, (_COUNTS,), lambda d, n, rng: d + np.abs(laplace(rng, 1.0, n)),
         math.inf),
    Case("laplace-sometimes-skipped", 1, (_COUNTS,),
         lambda d, n, rng: d + np.where(rng.random(n) < 0.02, 0.0, laplace(rng, 1.0, n)), math.inf),
    control("truncated-geometric", 1, ((0, 1), (4, 5), (9, 10)),
            lambda d, n, rng: TruncatedGeometric(1, 0, 10).release(d, n, rng=rng)),
    # … in a wrong place. Casacuberta et al. 2022: rounding, and a signed byte that wraps
    control("rounding-after-noise", 1, (_COUNTS,),
            lambda d, n, rng: np.round((d + laplace(rng, 1.0, n)) / 10) * 10, 1.0),
    Case("rounding-before-noise", 1, (_COUNTS,),
         lambda d, n, rng: 10 * ((d + 4) // 10) + laplace(rng, 1.0, n), 10.0),
    Case("wrap-before-noise", 1, ((127, 128),),
         lambda d, n, rng: (d + 128) % 256 - 128 + geometric(rng, 1.0, n), 255.0),
    Case("one-coordinate-without-noise", 1, (_ENTRY,), one_without_noise, math.inf),
    # both coordinates get the same draw: their difference is exact
    Case("seed-reused-across-coordinates", 1, (_ENTRY,),
         lambda d, n, rng: row(d) + laplace(rng, 2.0, (n, 1)), math.inf),
    control("ignores-the-data", "0.01", (_COUNTS,), lambda d, n, rng: rng.random(n), 0.0),

    # Gaussian noise: with its exact profile as the claim; the classical σ, proved for ε < 1; a
    # standard deviation of 2 passed as a variance; and called ε-DP.
    control("gaussian-analytic", {"mu": 1}, (_COUNTS,), lambda d, n, rng: d + normal(rng, 1.0, n)),
    Case("gaussian-classic-large-epsilon", (6, "0.5"), (_COUNTS,),
         lambda d, n, rng: d + normal(rng, math.sqrt(2 * math.log(1.25 / 0.5)) / 6, n), None,
         samples=80_000),
    Case("gaussian-variance-for-deviation", {"mu": "0.5"}, (_COUNTS,),
         lambda d, n, rng: d + normal(rng, math.sqrt(2.0), n), None),
    Case("gaussian-claimed-pure", 3, (_COUNTS,), lambda d, n, rng: d + normal(rng, 0.4, n),
         math.inf),

    # Reports of categories: Warner 1965; the truth with probability (1 + ε)/2; ten categories with
    # the probability of two; each bit flipped as for ε.
    control("randomized-response", 1, (_BITS,),
            lambda d, n, rng: RandomizedResponse(1).release(np.full(n, d), rng=rng), 1.0),
    control("randomized-response-many", 1, (_BITS, (3, 9)),
            lambda d, n, rng: RandomizedResponse(1, 10).release(np.full(n, d), rng=rng), 1.0),
    Case("randomized-response-linear", "0.8", (_BITS,),
         functools.partial(lying, truth=(1 + 0.8) / 2, categories=2), math.log(0.9 / 0.1)),
    Case("randomized-response-binary-formula", 1, (_BITS,),
         functools.partial(lying, truth=math.e / (1 + math.e), categories=10), 1 + math.log(9)),
    Case("unary-encoding-whole-epsilon", 1, (_BITS,), unary, 2.0),

    # Histograms: Korolova et al. 2009. Which keys occur is exact; a new key passes a threshold of 6
    # with probability e^{−5}/(1 + e^{−1}) < δ, and one of 3 with 0.099.
    Case("histogram-keys-present", 1, ((_A, _AB),),
         functools.partial(histogram, threshold=-math.inf), math.inf),
    control("histogram-threshold", (1, math.exp(-4.0)),
            ((_MANY, (*_MANY, "b")), (_MANY, (*_MANY, "a"))),
            functools.partial(histogram, threshold=6)),
    Case("histogram-low-threshold", (1, "0.01"), ((_MANY, (*_MANY, "b")),),
         functools.partial(histogram, threshold=3), math.inf),
    Case("output-length-from-data", 1, (((1, 1), (1, 1, 1)),),
         lambda d, n, rng: list(np.asarray(d) + laplace(rng, 1.0, (n, len(d)))), math.inf),

    # Trees (Dwork et al. 2010; Chan et al. 2011), composition, samples (Balle et al. 2018): log2 of
    # the inputs for the number of levels; the first fifth of the records, which is no chance; a sum
    # that is clipped to 12, and not each record to 1.
    control("tree", 1, (_STREAM, ((0, 0, 0, 0), (0, 0, 1, 0))), functools.partial(tree, levels=3),
            1.0),
    Case("tree-off-by-one", 1, (_STREAM,), functools.partial(tree, levels=2), 1.5),
    control("composed", 1, (_COUNTS,), lambda d, n, rng: d + laplace(rng, 2.0, (n, 2)), 1.0),
    control("subsampled", _AMPLIFIED, (_RECORDS,), subsampled, _AMPLIFIED),
    Case("subsampled-first-records", _AMPLIFIED, (_RECORDS,),
         lambda d, n, rng: row(d)[:2].sum() + geometric(rng, 0.5, n), 2.0),
    Case("clip-the-sum", 1, (((4, 4, 0), (4, 4, 4)),),
         lambda d, n, rng: min(float(sum(d)), 12.0) + laplace(rng, 1.0, n), 4.0),

    # Leaks of floating-point arithmetic (Mironov 2012; Jin et al. 2022), and samplers without any.
    # A naive sum is divided by seven records; one Gumbel variate is added, another subtracted, and
    # hides much of the first; integers leave the fraction of an answer.
    Case("float-laplace", 1, (_ZERO, _TENTH), lambda d, n, rng: d + rng.laplace(0.0, 1.0, n),
         math.inf),
    Case("float-laplace-inverse", 1, (_ZERO, _TENTH), inverse, math.inf),
    Case("mean-of-naive-sum", {"mu": 1}, (_TENTH, _ZERO),
         lambda d, n, rng: (d + rng.normal(0.0, 1.0, n)) / 7, None, samples=60_000),
    Case("noise-in-two-steps", 1, ((1.0, 2.0), _THIRD),
         lambda d, n, rng: (d + rng.gumbel(0.0, 1.0, n)) - rng.gumbel(0.0, 1.0, n), None,
         samples=40_000),
    Case("float-normal", {"mu": 1}, (_ZERO, _TENTH), lambda d, n, rng: d + rng.normal(0.0, 1.0, n),
         None),
    Case("float-normal-polar", {"mu": 1}, (_ZERO, _TENTH), polar, None),
    Case("integer-noise-on-a-fraction", 1, ((0.0, 0.5),),
         lambda d, n, rng: d + rng.geometric(1 - math.exp(-1), n)
         - rng.geometric(1 - math.exp(-1), n), math.inf),
    Case("coarse-generator", 1, (_ZERO,), coarse, math.inf),
    control("lattice-laplace", 1, (_ZERO, _TENTH, _THIRD),
            lambda d, n, rng: Laplace(1).release(d, n, rng=rng), 1.0),
    control("lattice-normal", {"mu": 1}, (_ZERO, _TENTH, _THIRD),
            lambda d, n, rng: Gaussian(1).release(d, n, rng=rng)),
    control("snapping", ("1.3", 0), (_ZERO, _TENTH), snapping),  # Mironov 2012, Section 5.2

    # Vectors whose entries share noise on lattices, of which no entry and no difference tells
    # (after Lebeda 2024, Algorithm 1).
    control("lattice-shared-then-own", {"mu": 1}, ((_ONES, _TWOS),),
            lambda d, n, rng: (row(d) + normal(rng, _SHARED, (n, 1)))
            + normal(rng, _OWN, (n, _WIDE))),
    # one variate makes 20 copies 1-DP; what is added to them then is free
    control("lattice-noisy-then-copied", 1, (((1.0,) * 20, (2.0,) * 20),),
            lambda d, n, rng: row(d) + laplace(rng, 1.0, (n, 1)) + normal(rng, 1.0, (n, len(d))),
            1.0),
    control("float-vector-of-one-answer", "0.01", ((_ONES, _ONES),), one_answer, 0.0),

    # Programs that fail; after the noise, whether they do is a function of what is private.
    Case("fails-without-records", 1, (((), (0.5,)),), without_records, math.inf),
    Case("fails-on-a-sampled-record", 1, (((1, 2), (1, 300)),), sampled_record, math.inf),
    control("fails-after-noise", 1, ((1, 2),),
            lambda d, n, rng: _seen(math.log, d + laplace(rng, 1.0, n)), 1.0),
]  # fmt: skip
_BY_NAME = {case.name: case for case in _CASES}


def cases(*, broken: bool | None = None) -> list[Case]:
    """Return all cases, or those that are broken or not."""
    return [case for case in _CASES if broken is None or case.broken == broken]


def case(name: str) -> Case:
    """Return a case by its name."""
    return _BY_NAME[name]

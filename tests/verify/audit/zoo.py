"""Broken mechanisms from the literature and from practice, and private controls.

Each case is a mechanism that draws the outputs of many runs, its neighbouring datasets, its claim,
and what is true of it: they measure an auditor, and show what it finds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomizedResponse,
    TruncatedGeometric,
)
from dpassay.accountant.release.lattice import LatticeSampler
from dpassay.verifier.audit.guarantees import Claim

EPSILON = 1.0
"""What most cases claim."""
Block: TypeAlias = Callable[[Any, int, np.random.Generator], Any]
"""Draws the outputs of so many runs on a dataset."""


@final
@dataclass(frozen=True)
class Case:
    """A mechanism with a claim that is true (a control) or false (a broken mechanism)."""

    name: str
    draw: Block
    pairs: tuple[tuple[Any, Any], ...]
    """Neighbouring datasets; on the first pair a broken mechanism breaks its claim."""
    claim: Claim
    broken: bool
    true_epsilon: float | None
    """The least ε for which the claim, with its δ, would be true on these pairs (∞ for none);
    for a control a value at most that of the claim. None where there is no closed form."""
    source: str
    samples: int = 20_000
    """Runs a side with which the audit is to find it."""

    @property
    def description(self) -> str:
        """What it does, and what is wrong with it."""
        return (self.draw.__doc__ or "").strip()

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Any:
        """Run it once."""
        return self.draw(dataset, 1, rng)[0]

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Run it `size` times."""
        return self.draw(dataset, size, rng)


_CASES: dict[str, Case] = {}


def cases(*, broken: bool | None = None) -> list[Case]:
    """Return all cases, or those that are broken or not."""
    return [case for case in _CASES.values() if broken is None or case.broken == broken]


def case(name: str) -> Case:
    """Return a case by its name."""
    return _CASES[name]


def broken(
    name: str,
    claim: Claim,
    *pairs: tuple[Any, Any],
    true: float | None,
    source: str,
    samples: int = 20_000,
) -> Callable[[Block], Block]:
    """Register a mechanism whose claim is false; `true` is the ε that it reaches."""
    return _register(Case(name, _unset, pairs, claim, True, true, source, samples))


def control(
    name: str, claim: Claim, *pairs: tuple[Any, Any], true: float | None = None, source: str
) -> Callable[[Block], Block]:
    """Register a mechanism whose claim is true."""
    return _register(Case(name, _unset, pairs, claim, False, true, source))


def _register(described: Case) -> Callable[[Block], Block]:
    def note(draw: Block) -> Block:
        if described.name in _CASES:
            raise InvalidInputError(f"Two cases are named {described.name!r}.")
        _CASES[described.name] = replace(described, draw=draw)
        return draw

    return note


def _unset(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    raise NotImplementedError


# Noise of the zoo: exact, on a lattice, so that a case shows its own flaw and no other.


Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = "int | tuple[int, ...]"


@functools.lru_cache(maxsize=64)
def _sampler(kind: str, scale: float) -> LatticeSampler:
    noise = Laplace(scale) if kind == "laplace" else Gaussian(scale)
    return noise.lattice_sampler()


def laplace(rng: np.random.Generator, scale: float, shape: Shape) -> Array:
    """Draw Laplace noise of a scale: multiples of a power of two."""
    return _drawn("laplace", rng, scale, shape)


def normal(rng: np.random.Generator, scale: float, shape: Shape) -> Array:
    """Draw normal noise of a standard deviation: multiples of a power of two."""
    return _drawn("normal", rng, scale, shape)


def _drawn(kind: str, rng: np.random.Generator, scale: float, shape: Shape) -> Array:
    size = int(np.prod(shape))
    return _sampler(kind, scale).noise(size, rng=rng).reshape(shape)


def exponential(rng: np.random.Generator, scale: float, shape: Shape) -> Array:
    """Draw exponential noise of a scale."""
    return np.abs(laplace(rng, scale, shape))


def geometric(rng: np.random.Generator, scale: float, size: int) -> Array:
    """Draw integers with P(z) ∝ e^{−|z|/scale}."""
    return DiscreteLaplace(scale).sample(size, rng=rng)


def row(dataset: Any) -> Array:
    """Return a dataset that is a list of numbers."""
    return np.asarray(dataset, dtype=np.float64)


# Sparse vector: the six algorithms compared by Lyu, Su and Li.


_SOURCE = "Lyu, Su, Li 2017, Figure 1, Algorithm {}"
_UP = (tuple([0] * 6), tuple([1] * 6))
_CROSSED = ((1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1))
_LAST = ((0, 0, 0, 0, 0, 1), (1, 1, 1, 1, 1, 0))


def _answers(above: Array, limit: int | None) -> Array:
    """Return 1 and 0, and −1 after the limit-th answer above."""
    found = above.astype(np.int8)
    if limit is not None:
        before = np.cumsum(above, axis=1) - above
        found[before >= limit] = -1
    return found


@control("sparse-vector-1", EPSILON, _CROSSED, _UP, _LAST, source=_SOURCE.format(1))
def algorithm_1(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Threshold noise Lap(2/ε), query noise Lap(4c/ε), stop after c = 2 answers above."""
    queries, limit = row(dataset), 2
    threshold = laplace(rng, 2 / EPSILON, (size, 1))
    noisy = queries + laplace(rng, 4 * limit / EPSILON, (size, len(queries)))
    return _answers(noisy >= threshold, limit)


@broken(
    "sparse-vector-3",
    2,
    ((0, 0, 0, 1), (1, 1, 1, 0)),
    true=None,
    source=_SOURCE.format(3),
    samples=80_000,
)
def algorithm_3(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Return the noisy value of an answer above, which bounds the threshold's noise (c = 1, ε = 2).

    Roth's notes. The loss is unbounded with the number of queries, but in rare outputs.
    """
    queries = row(dataset)
    threshold = laplace(rng, 1.0, (size, 1))
    noisy = queries + laplace(rng, 1.0, (size, len(queries)))
    answers = _answers(noisy >= threshold, 1)
    return np.where(answers == 1, noisy, np.where(answers == 0, -1000.0, -2000.0))


@broken("sparse-vector-5", EPSILON, _CROSSED, true=np.inf, source=_SOURCE.format(5))
def algorithm_5(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Stoddard et al.: no noise on the queries, no stop."""
    queries = row(dataset)
    threshold = laplace(rng, 2 / EPSILON, (size, 1))
    return _answers(np.broadcast_to(queries, (size, len(queries))) >= threshold, None)


@broken("sparse-vector-6", EPSILON, _CROSSED, true=None, source=_SOURCE.format(6))
def algorithm_6(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Chen et al.: query noise Lap(2/ε), no stop. Unbounded with the number of queries."""
    queries = row(dataset)
    threshold = laplace(rng, 2 / EPSILON, (size, 1))
    noisy = queries + laplace(rng, 2 / EPSILON, (size, len(queries)))
    return _answers(noisy >= threshold, None)


@broken("sparse-vector-no-threshold-noise", EPSILON, _UP, true=None, source="folklore")
def no_threshold_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Threshold without noise: every query pays. Six queries of ε/2 each: up to 3ε."""
    queries = row(dataset)
    noisy = queries + laplace(rng, 2 / EPSILON, (size, len(queries)))
    return _answers(noisy >= 0.5, None)


# Selection: the largest of some scores. A dataset is the list of scores, of sensitivity 1.


_PAIRS = (((1, 1, 1, 1, 1), (2, 0, 0, 0, 0)), ((2, 0, 0, 0, 0), (1, 1, 1, 1, 1)))
_CROSS = ((0, 1, 0, 0, 0), (1, 0, 1, 1, 1))
_STATDP = "Ding, Wang, Wang, Zhang, Kifer, Detecting violations of differential privacy, CCS 2018"
_DPBOOK = "Dwork, Roth 2014, Section 3.3"


def _spread(dataset: Any, size: int) -> Array:
    scores = row(dataset)
    return np.broadcast_to(scores, (size, len(scores)))


@control("noisy-max", EPSILON, *_PAIRS, _CROSS, source=_DPBOOK)
def noisy_max(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Place of the largest score with Lap(2/ε)."""
    scores = _spread(dataset, size)
    return np.argmax(scores + laplace(rng, 2 / EPSILON, scores.shape), axis=1)


@control(
    "noisy-max-with-gap",
    EPSILON,
    *_PAIRS,
    _CROSS,
    source="Ding, Wang, Xiao, Kifer, Free gap information from noisy max, VLDB 2019",
)
def noisy_max_with_gap(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Place of the largest score with Lap(2/ε), and its lead over the second: the lead is free."""
    scores = _spread(dataset, size)
    noisy = scores + laplace(rng, 2 / EPSILON, scores.shape)
    ordered = np.sort(noisy, axis=1)
    return np.column_stack([np.argmax(noisy, axis=1), ordered[:, -1] - ordered[:, -2]])


@broken("noisy-max-value", EPSILON, ((0,) * 5, (1,) * 5), true=None, source=_STATDP)
def noisy_max_value(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Return the noisy value of the largest score instead of its place. Up to 5ε/2."""
    scores = _spread(dataset, size)
    return np.max(scores + laplace(rng, 2 / EPSILON, scores.shape), axis=1)


@broken("tie-break-by-truth", EPSILON, (5, 4), true=2 * EPSILON, source="folklore")
def tie_break_by_truth(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Whether a count with integer noise reaches 5; a tie goes to the true answer. e^{2ε}."""
    noisy = dataset + geometric(rng, 1 / EPSILON, size)
    return ((noisy > 5) | ((noisy == 5) & (dataset >= 5))).astype(np.int8)


@control("tie-break-by-rule", EPSILON, (5, 4), (4, 5), (6, 5), true=EPSILON, source="folklore")
def tie_break_by_rule(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Whether a count with integer noise reaches 5."""
    return (dataset + geometric(rng, 1 / EPSILON, size) >= 5).astype(np.int8)


@control("exponential-mechanism", EPSILON, *_PAIRS, _CROSS, source="McSherry, Talwar, FOCS 2007")
def exponential_mechanism(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Choose i with probability ∝ e^{ε u_i/2}."""
    return _weighted(np.exp(EPSILON * row(dataset) / 2), size, rng)


@broken(
    "exponential-mechanism-no-half",
    EPSILON,
    _CROSS,
    true=math.log(math.e * (1 + 4 * math.e) / (math.e + 4)),
    source="folklore",
)
def exponential_mechanism_no_half(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Choose i with probability ∝ e^{ε u_i}: the factor 2 of the normaliser is missing."""
    return _weighted(np.exp(EPSILON * row(dataset)), size, rng)


@control("permute-and-flip", EPSILON, *_PAIRS, _CROSS, source="McKenna, Sheldon, NeurIPS 2020")
def permute_and_flip(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """In random order, accept i with probability e^{ε(u_i − max u)/2}."""
    scores = row(dataset)
    accepted = rng.random((size, len(scores))) < np.exp(EPSILON * (scores - scores.max()) / 2)
    order = np.argsort(rng.random((size, len(scores))), axis=1)
    first = np.argmax(np.take_along_axis(accepted, order, axis=1), axis=1)
    chosen: Array = np.take_along_axis(order, first[:, np.newaxis], axis=1)[:, 0]
    return chosen


def _weighted(weights: Array, size: int, rng: np.random.Generator) -> Array:
    limits = np.cumsum(weights) / weights.sum()
    return np.searchsorted(limits[:-1], rng.random(size), side="right")


# Additive noise on numbers: wrong scale, wrong shape, wrong place. A dataset is a true answer.


_COUNTS = (5, 6)
_BACK = (6, 5)
_DMNS = "Dwork, McSherry, Nissim, Smith, TCC 2006"
_FOLKLORE = "folklore"


@control("laplace", EPSILON, _COUNTS, true=EPSILON, source=_DMNS)
def laplace_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Lap(1/ε) on a count."""
    return dataset + laplace(rng, 1 / EPSILON, size)


@broken("laplace-sensitivity-two", EPSILON, (5, 7), true=2 * EPSILON, source=_FOLKLORE)
def laplace_sensitivity_two(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Lap(1/ε) on an answer that one replaced record moves by two."""
    return dataset + laplace(rng, 1 / EPSILON, size)


@broken("laplace-inverted-scale", 0.5, _COUNTS, true=2.0, source=_FOLKLORE)
def laplace_inverted_scale(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Lap(ε) where Lap(1/ε) was meant."""
    return dataset + laplace(rng, 0.5, size)


@broken("laplace-truncated", EPSILON, _COUNTS, _BACK, true=math.inf, source=_FOLKLORE)
def laplace_truncated(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Noise drawn again until it lies in [−3, 3]: the ends of the range tell the answer."""
    noise = laplace(rng, 1 / EPSILON, size)
    while (far := np.abs(noise) > 3).any():
        noise[far] = laplace(rng, 1 / EPSILON, int(far.sum()))
    return dataset + noise


@broken("laplace-absolute", EPSILON, _COUNTS, true=math.inf, source=_FOLKLORE)
def laplace_absolute(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Lose the sign of the noise."""
    return dataset + np.abs(laplace(rng, 1 / EPSILON, size))


@broken("laplace-sometimes-skipped", EPSILON, _COUNTS, true=math.inf, source=_FOLKLORE)
def laplace_sometimes_skipped(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """In one run of fifty the noise is forgotten."""
    return dataset + np.where(rng.random(size) < 0.02, 0.0, laplace(rng, 1 / EPSILON, size))


@control("geometric", EPSILON, _COUNTS, true=EPSILON, source="Ghosh et al., STOC 2009")
def geometric_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Integer noise with P(z) ∝ e^{−ε|z|}."""
    return dataset + geometric(rng, 1 / EPSILON, size)


@broken("geometric-wrong-ratio", "0.7", _COUNTS, true=-math.log(1 - 0.7), source=_FOLKLORE)
def geometric_wrong_ratio(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Use the ratio 1 − ε, the first terms of e^{−ε}."""
    return dataset + rng.geometric(0.7, size) - rng.geometric(0.7, size)


@control("truncated-geometric", EPSILON, (0, 1), (4, 5), (9, 10), source="Ghosh et al. 2009")
def truncated_geometric(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Clamped to 0..10, which does not depend on the data, after the noise."""
    return TruncatedGeometric(1, 0, 10).release(dataset, size, rng=rng)


@control("rounding-after-noise", EPSILON, _COUNTS, true=EPSILON, source="post-processing")
def rounding_after_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Round to tens after the noise."""
    return np.round((dataset + laplace(rng, 1 / EPSILON, size)) / 10) * 10


@broken(
    "rounding-before-noise", EPSILON, (5, 6), true=10 * EPSILON, source="Casacuberta et al. 2022"
)
def rounding_before_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Round to tens before the noise: neighbours move apart by ten."""
    return 10 * ((dataset + 4) // 10) + laplace(rng, 1 / EPSILON, size)


@broken("wrap-before-noise", EPSILON, (127, 128), true=255.0, source="Casacuberta et al. 2022")
def wrap_before_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Keep the count in a signed byte, which wraps from 127 to −128, before the noise."""
    wrapped = (dataset + 128) % 256 - 128
    return wrapped + geometric(rng, 1 / EPSILON, size)


@broken("laplace-vector-largest-change", EPSILON, ((0,) * 3, (1,) * 3), true=3.0, source=_FOLKLORE)
def laplace_vector_largest(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Three answers that all move by 1, noised for the largest change instead of their sum."""
    return row(dataset) + laplace(rng, 1 / EPSILON, (size, 3))


@broken("one-coordinate-without-noise", EPSILON, ((5, 5), (5, 6)), true=math.inf, source=_FOLKLORE)
def one_coordinate_without_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Release the last coordinate as it is."""
    released = np.tile(row(dataset), (size, 1))
    released[:, 0] += laplace(rng, 1 / EPSILON, size)
    return released


@broken(
    "seed-reused-across-coordinates", EPSILON, ((5, 5), (5, 6)), true=math.inf, source=_FOLKLORE
)
def seed_reused(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Both coordinates get the same draw: their difference is exact."""
    return row(dataset) + laplace(rng, 2 / EPSILON, (size, 1))


@control("gaussian-analytic", {"mu": 1}, _COUNTS, source="Balle, Wang, ICML 2018")
def gaussian(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """N(0, 1) on a count, with its exact profile as the claim."""
    return dataset + normal(rng, 1.0, size)


@broken(
    "gaussian-classic-large-epsilon",
    (6, "0.5"),
    _COUNTS,
    true=None,
    source="Dwork, Roth 2014, Theorem A.1",
    samples=80_000,
)
def gaussian_classic(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """σ = √(2 ln(1.25/δ))/ε, proved for ε < 1, used at ε = 6 and δ = 1/2."""
    return dataset + normal(rng, math.sqrt(2 * math.log(1.25 / 0.5)) / 6, size)


@broken("gaussian-variance-for-deviation", {"mu": "0.5"}, _COUNTS, true=None, source=_FOLKLORE)
def gaussian_variance(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Pass the standard deviation 2 where a variance is meant: √2 is used."""
    return dataset + normal(rng, math.sqrt(2.0), size)


@broken("gaussian-claimed-pure", 3, _COUNTS, true=math.inf, source=_FOLKLORE)
def gaussian_claimed_pure(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """N(0, 0.16) is called 3-DP: no Gaussian noise is ε-DP."""
    return dataset + normal(rng, 0.4, size)


@control("ignores-the-data", "0.01", _COUNTS, true=0.0, source="nothing is released")
def ignores_the_data(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Draw a random number."""
    return rng.random(size)


# Histograms, votes and reports of categories.


_WARNER = "Warner 1965"
_KEYS = "Korolova, Kenthapadi, Mishra, Ntoulas, WWW 2009"


@control("randomized-response", EPSILON, (0, 1), true=EPSILON, source=_WARNER)
def randomized_response(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Report a bit, true with probability e^ε/(1 + e^ε)."""
    return RandomizedResponse(1).release(np.full(size, dataset), rng=rng)


@control("randomized-response-many", EPSILON, (0, 1), (3, 9), true=EPSILON, source=_WARNER)
def randomized_response_many(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """One of ten categories, true with probability e^ε/(9 + e^ε)."""
    return RandomizedResponse(1, 10).release(np.full(size, dataset), rng=rng)


@broken("randomized-response-linear", "0.8", (0, 1), true=math.log(0.9 / 0.1), source="folklore")
def randomized_response_linear(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Report a bit, true with probability (1 + ε)/2."""
    lie = rng.random(size) >= (1 + 0.8) / 2
    return np.where(lie, 1 - dataset, dataset)


@broken(
    "randomized-response-binary-formula",
    EPSILON,
    (0, 1),
    true=EPSILON + math.log(9),
    source="folklore",
)
def randomized_response_binary(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Ten categories with the probability e^ε/(1 + e^ε) of two."""
    lie = rng.random(size) >= math.exp(EPSILON) / (1 + math.exp(EPSILON))
    return np.where(lie, (dataset + rng.integers(1, 10, size)) % 10, dataset)


@broken("unary-encoding-whole-epsilon", EPSILON, (0, 1), true=2 * EPSILON, source="folklore")
def unary_encoding_whole(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Each bit flipped as for ε."""
    return _unary(dataset, EPSILON, size, rng)


def _unary(category: int, epsilon: float, size: int, rng: np.random.Generator) -> Array:
    truth = np.arange(4) == category
    flip = rng.random((size, 4)) >= math.exp(epsilon) / (1 + math.exp(epsilon))
    bits: Array = (truth ^ flip).astype(np.int8)
    return bits


@broken("histogram-keys-present", EPSILON, (("a",), ("a", "b")), true=math.inf, source=_KEYS)
def histogram_keys_present(dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """Noisy counts of the keys that occur: which occur is exact."""
    keys = sorted(set(dataset))
    noise = geometric(rng, 1 / EPSILON, size * len(keys)).reshape(size, -1)
    counts = [dataset.count(key) for key in keys]
    return [tuple(zip(keys, (counts + row).tolist(), strict=True)) for row in noise]


@control(
    "histogram-threshold",
    (EPSILON, math.exp(-4.0)),
    (("a",) * 5, ("a",) * 5 + ("b",)),
    (("a",) * 5, ("a",) * 6),
    source=_KEYS,
)
def histogram_threshold(dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """Publish keys with noisy counts ≥ 6: a new one passes with probability e^{−5}/(1 + e^{−1})."""
    return _thresholded(dataset, 6, size, rng)


@broken(
    "histogram-low-threshold",
    (EPSILON, "0.01"),
    (("a",) * 5, ("a",) * 5 + ("b",)),
    true=math.inf,
    source=_KEYS,
)
def histogram_low_threshold(dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """Threshold 3 for δ = 0.01: a new key passes with probability e^{−2ε}/(1+e^{−ε}) = 0.099."""
    return _thresholded(dataset, 3, size, rng)


def _thresholded(dataset: Any, threshold: int, size: int, rng: np.random.Generator) -> list[Any]:
    keys = sorted(set(dataset))
    noise = geometric(rng, 1 / EPSILON, size * len(keys)).reshape(size, -1)
    noisy = noise + [dataset.count(key) for key in keys]
    return [
        tuple((key, int(n)) for key, n in zip(keys, row, strict=True) if n >= threshold)
        for row in noisy
    ]


@broken("output-length-from-data", EPSILON, ((1, 1), (1, 1, 1)), true=math.inf, source="folklore")
def output_length(dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """One noisy number per record: their number is the number of records."""
    noise = laplace(rng, 1 / EPSILON, (size, len(dataset)))
    return list(np.asarray(dataset) + noise)


# Trees, composition and subsampling.


_TREE = "Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011"
_STREAMS = ((0, 0, 0, 0), (1, 0, 0, 0))


@control("tree", EPSILON, _STREAMS, ((0, 0, 0, 0), (0, 0, 1, 0)), true=EPSILON, source=_TREE)
def tree(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Every sum of a binary tree above four inputs, with three levels' share of the noise."""
    return _tree(dataset, 3, size, rng)


@broken("tree-off-by-one", EPSILON, _STREAMS, true=1.5 * EPSILON, source=_TREE)
def tree_off_by_one(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """log2 of the inputs for the number of levels: the root, or the leaves, are forgotten."""
    return _tree(dataset, 2, size, rng)


def _tree(dataset: Any, levels: int, size: int, rng: np.random.Generator) -> Array:
    x = row(dataset)
    sums = np.concatenate([x, x[0::2] + x[1::2], [x.sum()]])
    return sums + laplace(rng, levels / EPSILON, (size, len(sums)))


@control("composed", EPSILON, (5, 6), true=EPSILON, source="composition")
def composed(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Two releases of a count with ε/2 each."""
    return dataset + laplace(rng, 2 / EPSILON, (size, 2))


_AMPLIFIED = math.log1p(0.2 * math.expm1(2.0))
_RECORDS = ((0,) * 10, (1,) + (0,) * 9)


@control("subsampled", _AMPLIFIED, _RECORDS, true=_AMPLIFIED, source="Balle, Barthe, Gaboardi 2018")
def subsampled(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Each record taken with probability 0.2, then 2-DP noise: ln(1 + 0.2(e² − 1))-DP."""
    taken = rng.random((size, len(dataset))) < 0.2
    return (taken * row(dataset)).sum(axis=1) + geometric(rng, 0.5, size)


@broken("subsampled-first-records", _AMPLIFIED, _RECORDS, true=2.0, source="folklore")
def subsampled_first(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Take the first fifth of the records: no chance, no amplification."""
    return row(dataset)[:2].sum() + geometric(rng, 0.5, size)


@broken("clip-the-sum", EPSILON, ((4, 4, 0), (4, 4, 4)), true=4.0, source="folklore on DP-SGD")
def clip_the_sum(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Clip the sum of a batch to 12 and not each record to 1, with Lap(1/ε)."""
    return min(float(sum(dataset)), 12.0) + laplace(rng, 1 / EPSILON, size)


# Leaks of floating-point arithmetic, and the samplers that have none. A dataset is an answer.


_ZERO = (0.0, 1.0)
_TENTH = (0.1, 1.1)
_MIRONOV = "Mironov, CCS 2012"
_JIN = "Jin, McMurtry, Rubinstein, Ohrimenko, S&P 2022"


@broken("float-laplace", EPSILON, _ZERO, _TENTH, true=math.inf, source=_MIRONOV)
def float_laplace(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Add numpy's Laplace noise in doubles."""
    return dataset + rng.laplace(0.0, 1 / EPSILON, size)


@broken("float-laplace-inverse", EPSILON, _ZERO, _TENTH, true=math.inf, source=_MIRONOV)
def float_laplace_inverse(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Textbook inversion: −sign(u) ln(1 − 2|u|)."""
    u = rng.random(size) - 0.5
    return dataset - np.sign(u) * np.log1p(-2 * np.abs(u)) / EPSILON


@broken(
    "mean-of-naive-sum",
    {"mu": 1},
    _TENTH,
    _ZERO,
    true=None,
    source="after Mironov 2012",
    samples=60_000,
)
def mean_of_naive_sum(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Divide a naive sum by the number of records, seven."""
    return (dataset + rng.normal(0.0, 1.0, size)) / 7


@broken(
    "noise-in-two-steps",
    EPSILON,
    (1.0, 2.0),
    (1 / 3, 4 / 3),
    true=None,
    source="after Mironov 2012",
    samples=40_000,
)
def noise_in_two_steps(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Add one Gumbel variate, then subtract another: the second step hides much of the first."""
    return (dataset + rng.gumbel(0.0, 1.0, size)) - rng.gumbel(0.0, 1.0, size)


@broken("float-normal", {"mu": 1}, _ZERO, _TENTH, true=None, source=_JIN)
def float_normal(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Add numpy's normal noise (a ziggurat) in doubles."""
    return dataset + rng.normal(0.0, 1.0, size)


@broken("float-normal-polar", {"mu": 1}, _ZERO, _TENTH, true=None, source=_JIN)
def float_normal_polar(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Box and Muller."""
    radius = np.sqrt(-2 * np.log1p(-rng.random(size)))
    return dataset + radius * np.cos(2 * np.pi * rng.random(size))


@broken("integer-noise-on-a-fraction", EPSILON, (0.0, 0.5), true=math.inf, source="folklore")
def integer_noise_on_a_fraction(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Integer noise on an answer that is no integer: its fraction stays."""
    return dataset + rng.geometric(1 - math.exp(-1), size) - rng.geometric(1 - math.exp(-1), size)


@broken("coarse-generator", EPSILON, _ZERO, true=math.inf, source=_MIRONOV)
def coarse_generator(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Inversion of 10-bit uniform numbers: the noise has 2048 values."""
    u = (rng.integers(0, 1024, size) + 0.5) / 1024
    return dataset + np.where(rng.random(size) < 0.5, np.log(u), -np.log(u)) / EPSILON


@control(
    "lattice-laplace",
    EPSILON,
    _ZERO,
    _TENTH,
    (1 / 3, 4 / 3),
    true=EPSILON,
    source="dpassay.accountant.release.lattice",
)
def lattice_laplace(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Real Laplace noise rounded to a fixed lattice."""
    return Laplace(1).release(dataset, size, rng=rng)


@control(
    "lattice-normal",
    {"mu": 1},
    _ZERO,
    _TENTH,
    (1 / 3, 4 / 3),
    source="dpassay.accountant.release.lattice",
)
def lattice_normal(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Real normal noise rounded to a fixed lattice."""
    return Gaussian(1).release(dataset, size, rng=rng)


@control("snapping", ("1.3", 0), _ZERO, _TENTH, source="Mironov 2012, Section 5.2")
def snapping(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Clamp to ±50, add noise by inversion, round to the power of two Λ = 1 ≥ 1/ε, clamp."""
    sign = 2 * rng.integers(0, 2, size) - 1
    noisy = np.clip(dataset, -50.0, 50.0) + sign * np.log1p(-rng.random(size)) / EPSILON
    return np.clip(np.round(noisy), -50.0, 50.0)


# Vectors whose entries share noise on lattices, of which no entry and no difference tells.


_WIDE = 100
"""Entries of a wide output."""
_ONES, _TWOS = (1.0,) * _WIDE, (2.0,) * _WIDE
_FEW_ONES, _FEW_TWOS = (1.0,) * 20, (2.0,) * 20
_SHARED, _OWN = math.sqrt(0.5), math.sqrt(50.0)
"""Standard deviations with which 100 answers that all move by 1 are 1-GDP: μ² is the number of
entries over own variance plus that number times the shared one, 100/(50 + 100/2)."""
_LEBEDA = "after Lebeda 2024, Algorithm 1"


@control("lattice-shared-then-own", {"mu": 1}, (_ONES, _TWOS), source=_LEBEDA)
def lattice_shared_then_own(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Add both kinds of noise on lattices: no entry tells, nor do all together."""
    return (row(dataset) + normal(rng, _SHARED, (size, 1))) + normal(rng, _OWN, (size, _WIDE))


@control("lattice-noisy-then-copied", EPSILON, (_FEW_ONES, _FEW_TWOS), true=EPSILON, source=_LEBEDA)
def lattice_noisy_then_copied(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """One variate on a lattice makes 20 copies 1-DP; what is added to them then is free."""
    shared = row(dataset) + laplace(rng, 1 / EPSILON, (size, 1))
    return shared + normal(rng, 1.0, (size, len(dataset)))


@control("float-vector-of-one-answer", "0.01", (_ONES, _ONES), true=0.0, source="nothing differs")
def vector_of_one_answer(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Doubles with all their bits, and two datasets with the same answers: nothing to learn."""
    eta, z = rng.normal(0.0, _SHARED, (size, 1)), rng.normal(0.0, _OWN, (size, _WIDE))
    return (row(dataset) + eta) + z


# Programs that fail: whether they do is seen by whoever runs them. A failure is its name.


def _seen(release: Callable[[Any], float], inputs: Any) -> list[Any]:
    """Return outputs or, for a run that raises, the name of the error."""
    found: list[Any] = []
    for each in inputs:
        try:
            found.append(release(each))
        except (ArithmeticError, ValueError) as error:
            found.append(type(error).__name__)
    return found


@broken("fails-without-records", EPSILON, ((), (0.5,)), true=math.inf, source=_FOLKLORE)
def fails_without_records(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Divide a sum of records of [0, 1] by their number, then add noise: none is an error."""
    noise = laplace(rng, 1 / EPSILON, size)
    return _seen(lambda z: sum(dataset) / len(dataset) + z, noise)


@broken("fails-on-a-sampled-record", EPSILON, ((1, 2), (1, 300)), true=math.inf, source=_FOLKLORE)
def fails_on_a_sampled_record(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Count a sample of 1 %, with each record read as a byte first: 300 is none, once in 100."""

    def release(drawn: Any) -> float:
        sampled, noise = drawn
        return len(bytes([dataset[1]] if sampled else [])) + float(noise)

    return _seen(
        release, zip(rng.random(size) < 0.01, laplace(rng, 1 / EPSILON, size), strict=True)
    )


@control("fails-after-noise", EPSILON, (1, 2), true=EPSILON, source="post-processing")
def fails_after_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Take the logarithm of a noisy count: whether that fails is a function of what is private."""
    return _seen(math.log, dataset + laplace(rng, 1 / EPSILON, size))

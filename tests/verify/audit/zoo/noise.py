"""Additive noise on numbers: wrong scale, wrong shape, wrong place. A dataset is a true answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpassay.accountant.mechanisms import TruncatedGeometric
from tests.verify.audit.zoo.case import EPSILON, broken, control
from tests.verify.audit.zoo.draws import geometric, laplace, normal, row

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

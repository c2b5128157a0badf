"""The independent route for products and samples: sums and integrals in mpmath."""

from __future__ import annotations

from dpassay.accountant.composition.choose import Conditional, Ladder
from dpassay.accountant.composition.exact.convolution import SUMS, Sums, of_finite
from dpassay.accountant.composition.exact.laplace_product import LaplaceSums
from dpassay.accountant.composition.fourier.engine import Fourier
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.discrete import DiscreteGaussianProductPair
from dpassay.accountant.pairs.subsampled import SubsampledPair
from tests.accountant.composition.mpmath_laplace import LaplaceProductReference
from tests.accountant.composition.mpmath_lines import SmoothReference
from tests.accountant.composition.mpmath_products import (
    Mixed,
    Subsampled,
    discrete_gaussians,
    multisets,
)
from tests.accountant.mpmath_reference import Reference
from tests.accountant.pairs.mpmath_single import single


def by_mpmath(pair: Pair) -> Reference:
    """Return the densities or masses of a pair, or its transform, in mpmath."""
    match pair:
        case DiscreteGaussianProductPair():
            return discrete_gaussians(pair)
        case SubsampledPair():
            return Subsampled(by_mpmath(pair.inner), pair.sampling_prob, pair.mixed_first)
        case Product(factors, Conditional()):
            return Mixed(by_mpmath(factors[0][0]), by_mpmath(Product(factors[1:], SUMS)))
        case Product(factors, Sums()):
            return multisets(of_finite(factors))
        case Product(_, LaplaceSums()):
            law = pair.law()
            assert isinstance(law["multiples"], list)
            return LaplaceProductReference(exact(str(law["unit"])), tuple(law["multiples"]))
        case Product(_, Ladder(rungs)):
            return by_mpmath(rungs[0])
        case Product(factors, Fourier()):
            return SmoothReference(factors)
    return single(pair)

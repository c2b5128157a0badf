"""The independent route for products and samples: sums and integrals in mpmath."""

from __future__ import annotations

from accountant.composition.choose import LadderPair
from accountant.composition.conditional import MixedPair
from accountant.composition.exact.convolution import ConvolvedPair
from accountant.composition.exact.laplace_product import LaplaceProductPair
from accountant.composition.fourier.pair import SmoothPair
from accountant.composition.subsampling import SubsampledPair
from accountant.core.pair import Pair
from accountant.numbers.reference import Reference
from tests.accountant.composition.mpmath_laplace import LaplaceProductReference
from tests.accountant.composition.mpmath_lines import SmoothReference
from tests.accountant.composition.mpmath_products import Mixed, Subsampled, multisets


def by_mpmath(pair: Pair) -> Reference:
    """Return the densities or masses of a pair, or its transform, in mpmath."""
    match pair:
        case SubsampledPair():
            return Subsampled(by_mpmath(pair.inner), pair.sampling_prob, pair.mixed_first)
        case MixedPair(first, ConvolvedPair() as second):
            return Mixed(by_mpmath(first), by_mpmath(second))
        case ConvolvedPair():
            return multisets(pair.finite_factors)
        case LaplaceProductPair():
            return LaplaceProductReference(pair.unit, pair.multiples)
        case LadderPair():
            return by_mpmath(pair.rungs[0])
        case SmoothPair():
            return SmoothReference(pair.any_factors)
    return pair.reference()

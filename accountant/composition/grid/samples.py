"""Which products the grid bounds by the sum of what a sample releases (`grid.sums`)."""

from __future__ import annotations

from dpassay.accountant.composition.product import Product
from dpassay.accountant.pairs.subsampled import SubsampledPair


def samples_sums(product: Product) -> bool:
    """Whether there are samples of several releases."""
    samples = (pair.inner for pair in product.pairs if isinstance(pair, SubsampledPair))
    return any(isinstance(inner, Product) for inner in samples)

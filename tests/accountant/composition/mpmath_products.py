"""The independent route for products and for subsampling."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from mpmath import mp, mpf

from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.discrete import DiscreteGaussianProductPair
from dpassay.accountant.pairs.finite import FinitePair
from tests.accountant.mpmath_reference import Discrete, Reference
from tests.accountant.pairs.mpmath_single import single

_MOST_MULTISETS = 50_000


def multisets(factors: Sequence[tuple[FinitePair, int]]) -> Discrete:
    """Return the product, one outcome for each choice of multisets of outcomes.

    No losses are merged, and no polynomials formed: each mass is a plain product.
    """
    choices: list[list[Counter[int]]] = []
    size = 1
    for pair, count in factors:
        outcomes = range(len(pair.source.outcomes(pair.index)))
        size *= math.comb(count + len(outcomes) - 1, count)
        if size > _MOST_MULTISETS:
            raise NotApplicableError(
                f"The mpmath route lists at most {_MOST_MULTISETS} multisets of outcomes."
            )
        drawn = itertools.combinations_with_replacement(outcomes, count)
        choices.append([Counter(draw) for draw in drawn])
    rows = list(itertools.product(*choices))
    references = [single(pair) for pair, _ in factors]

    def masses(number: int) -> tuple[Any, Any]:
        p, q = mpf(1), mpf(1)
        for chosen, (_, count), reference in zip(rows[number], factors, references, strict=True):
            assert isinstance(reference, Discrete)
            ways = math.factorial(count)
            for outcome, times in chosen.items():
                ways //= math.factorial(times)
                a, b = reference.masses(outcome)
                p, q = p * a**times, q * b**times
            p, q = p * ways, q * ways
        return p, q

    return Discrete(masses, 0, len(rows) - 1)


@final
@dataclass(frozen=True)
class Subsampled(Reference):
    """One side of a pair mixed with the other one; the outcomes are those of the pair."""

    inner: Reference
    sampling_prob: ExactReal
    mixed_first: bool

    def integrate(self, integrand: Callable[[Any, Any], Any], epsilon: Any | None) -> Any:
        """Integrate over the outcomes with p' > e^ε q', as a set {L > c} of the inner pair."""
        share = self.sampling_prob.mpf()

        def mixed(p: Any, q: Any) -> Any:
            if self.mixed_first:
                return integrand((1 - share) * q + share * p, q)
            return integrand(p, (1 - share) * p + share * q)

        if epsilon is None:
            return self.inner.integrate(mixed, None)
        if self.mixed_first:
            numerator, denominator = mp.exp(epsilon) - 1 + share, share
        else:
            numerator, denominator = share * mp.exp(epsilon), 1 - (1 - share) * mp.exp(epsilon)
        if numerator <= 0:
            return self.inner.integrate(mixed, None)
        if denominator <= 0:
            return mpf(0)
        return self.inner.integrate(mixed, mp.log(numerator / denominator))


@final
@dataclass(frozen=True)
class Mixed(Reference):
    """A pair times finitely many outcomes."""

    first: Reference
    second: Reference

    def integrate(self, integrand: Callable[[Any, Any], Any], epsilon: Any | None) -> Any:
        """Integrate over the first pair for every outcome of the second."""

        def given(a: Any, b: Any) -> Any:
            def weighted(p: Any, q: Any) -> Any:
                return integrand(p * a, q * b)

            if epsilon is None:
                return self.first.integrate(weighted, None)
            if a == 0:
                return mpf(0)
            if b == 0:
                return self.first.integrate(weighted, None)
            return self.first.integrate(weighted, epsilon - mp.log(a / b))

        return self.second.integrate(given, None)


def discrete_gaussians(pair: DiscreteGaussianProductPair) -> Discrete:
    """Return the two laws of U, by plain convolution."""
    laws: dict[int, dict[int, Any]] = {}
    distance = pair.scale**2 * pair.count * pair.shift**2 + pair.last_shift**2

    def coordinate(parameter: Fraction, factor: int) -> dict[int, Any]:
        v = mpf(parameter.numerator) / parameter.denominator
        reach = int(mp.sqrt(6 * v * mp.prec)) + 2
        weights = {z: mp.exp(-(z**2) / (2 * v)) for z in range(-reach, reach + 1)}
        total = mp.fsum(weights.values())
        return {factor * z: weight / total for z, weight in weights.items()}

    def plain_law() -> dict[int, Any]:
        """Return the masses of U₀ above about 2^−3·precision."""
        factors = [coordinate(pair.parameter, pair.scale**2 * pair.shift)] * pair.count
        if pair.last_shift:
            factors.append(coordinate(pair.scale**2 * pair.parameter, pair.last_shift))
        law = {0: mpf(1)}
        for factor in factors:
            convolved: dict[int, Any] = {}
            for a, x in law.items():
                for b, y in factor.items():
                    convolved[a + b] = convolved.get(a + b, 0) + x * y
            law = convolved
        return law

    def masses(z: int) -> tuple[Any, Any]:
        if mp.prec not in laws:
            laws[mp.prec] = plain_law()
        law = laws[mp.prec]
        return law.get(z - distance, mpf(0)), law.get(z, mpf(0))

    return Discrete(masses, None, None, centre=distance // 2)

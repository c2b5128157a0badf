"""Random allocation of steps with few outcomes, and of columns of a matrix."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from dpassay.verifier.checker.compositions.composed import Law
from dpassay.verifier.checker.masses import masses
from dpassay.verifier.checker.mechanisms import matrices
from dpassay.verifier.checker.mechanisms.products import product
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import UnknownError, sqrt

LISTS: Final = ("finite", "discrete-laplace")
"""Laws of which all outcomes are listed."""
_MOST_ALLOCATED: Final = 1 << 12
"""Numbers of steps with each outcome: more take long in a sum."""
_MOST_SUMS: Final = 1 << 18
"""Sums of two such numbers: a few seconds."""


def allocated(laws: list[Law], t: int, k: int) -> tuple[list[Law], list[Law]]:
    """Return the laws of the numbers of steps with each outcome, of a step with few of them.

    Without the record they are multinomial, with it the sum of two such numbers, of k and of t − k
    steps. Raises UnknownError where the outcomes are not listed, or are many.
    """
    known = len(laws) == 1 and laws[0]["law"] in LISTS
    size = len(masses(laws[0])) if known else 0
    shapes = [math.comb(n + size - 1, size - 1) if known else 0 for n in (t, k, t - k)]
    if not known or shapes[0] > _MOST_ALLOCATED or shapes[1] * shapes[2] > _MOST_SUMS:
        raise UnknownError("the worst pair of a random allocation of this noise")
    p, q = zip(*masses(laws[0]), strict=True)
    alone, taken, rest = _multinomial(q, t), _multinomial(p, k), _multinomial(q, t - k)
    together = dict.fromkeys(alone, Fraction(0))
    for (one, a), (other, b) in itertools.product(taken.items(), rest.items()):
        together[tuple(map(sum, zip(one, other, strict=True)))] += a * b
    first, second = [*together.values()], [*alone.values()]
    return (
        [{"law": "finite", "p": first, "q": second}],
        [{"law": "finite", "p": second, "q": first}],
    )


def _multinomial(shares: Sequence[Any], number: int) -> dict[tuple[int, ...], Any]:
    """Return the probabilities of the numbers with each outcome, the first one least at first."""
    if len(shares) == 1:
        return {(number,): shares[0] ** number}
    found = {}
    for first in range(number + 1):
        share = math.comb(number, first) * shares[0] ** first
        for others, mass in _multinomial(shares[1:], number - first).items():
            found[first, *others] = share * mass
    return found


def allocated_columns(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Return a Gaussian release and a random allocation, or both ends of these (`matrices`)."""
    sigma, both = noise["noise_multiplier"], matrices.even_columns(noise)

    def law(even: matrices.Even, side: str) -> Law:
        common, whole, steps = even
        if steps == 1 or common == whole:
            return {"law": "gaussian", "mu": sqrt(whole) / sigma}
        mu = sqrt(whole - common) / sigma
        apart = {"law": "random-allocation", "mu": mu, "steps": Fraction(steps), "mixture": side}
        together = {"law": "gaussian", "mu": sqrt(common) / sigma}
        return product([together, apart], 1) if common else apart

    found = []
    for side in "PQ":
        least, most = (law(even, side) for even in both)
        ends: list[Law] = [{"law": "between", "factors": [least, most]}, least]
        found.append([most] if both[0] == both[1] else ends)
    return found[0], found[1]

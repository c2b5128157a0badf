"""The largest noisy score, and which it is: what neighbours have, and what bounds all of them.

It is below all noisy scores, each moved by the sensitivity, and above the index, and one score far
above the others. With Laplace noise, also discrete, every distribution function is a multiple of
e^x up to 0. So where k equal scores fall by d to 0, that none is above 0 has a loss of kd.

With exponential noise let scores u and u' differ by at most d, and c be the higher ones. A density
that starts at c_i is at most e^d times one that starts lower, and its distribution function is
smaller. So the density of index and value is under both laws at least e^{-d} times that of the
scores c: they share e^{-d}, and H(0) <= 1 - e^{-d}. One candidate alone attains that at every
epsilon >= 0, and, the other way round, 1 - e^{epsilon - d} below.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpassay.verifier.checker.declared.law import DeclaredLaw, Pair, unknown
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import INFINITE, exp, sqrt


def moved_noise(pair: Pair) -> Pair:
    """Return the discrete Laplace noise of one score that is moved."""
    scale = pair["shift"] / pair["distance"]
    return {"law": "discrete-laplace", "scale": scale, "shift": pair["shift"]}


def value_pair(noise: Noise, below: Pair) -> Pair:
    """Return what a value lies between, `below` the index, or its exact law."""
    law, each, k = noise["noise"], noise["sensitivity"] / noise["scale"], int(noise["candidates"])
    match law:
        case "Gumbel":
            return {"law": "gumbel-value", "distance": each, "monotone": noise["monotone"]}
        case "Exponential":
            return {"law": "exponential-value", "distance": each}
        case "Gaussian":
            laws = [{"law": "gaussian", "mu": each * sqrt(n)} for n in (Fraction(1), Fraction(k))]
            return {"law": "between", "factors": [below, *laws]}
        case "Laplace":
            one: Pair = {"law": "laplace", "distance": each}
            most: Pair = {"law": "laplace-product", "distances": [each] * k}
            odds: Any = Fraction(1)
        case _:
            one = moved_noise({"shift": noise["sensitivity"], "distance": each})
            most = {"law": "product", "factors": [one], "counts": [k]}
            odds = exp(-1 / noise["scale"])
    p = 1 / (1 + odds) ** k
    q = p * exp(-k * each)
    nothing: Pair = {"law": "finite", "p": [p, 1 - p], "q": [q, 1 - q]}
    return {"law": "between", "factors": [below, one, nothing, most]}


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    """Return those of the masses 1 - e^{-d}, e^{-d} and 0, and their reverse."""
    shared = exp(-pair["distance"])
    return (Fraction(1), shared) if epsilon < 0 else (1 - shared, Fraction(0))


def _ends(pair: Pair) -> tuple[list[Pair], Pair]:
    """Return one candidate whose score rises, or falls, and what is (0, 1 - e^{-d})-DP."""
    shared = exp(-pair["distance"])
    here: Pair = {"law": "finite", "p": [1 - shared, shared], "q": [Fraction(0), Fraction(1)]}
    p = [1 - shared, shared / 2, shared / 2, Fraction(0)]
    return [here, {**here, "p": here["q"], "q": here["p"]}], {"law": "finite", "p": p, "q": p[::-1]}


EXPONENTIAL_VALUE = DeclaredLaw(
    name="exponential-value",
    parameters=("distance",),
    tails=_tails,
    largest_loss=lambda _: INFINITE,
    renyi=unknown("a divergence of a value with exponential noise"),
    only_alone=True,
    ends=_ends,
)

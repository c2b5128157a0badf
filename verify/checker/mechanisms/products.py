"""Products of worst pairs, and both ends of compositions whose worst neighbours are not known."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dpassay.verifier.checker.arithmetic import total
from dpassay.verifier.checker.compositions.composed import Law
from dpassay.verifier.checker.declared import BY_LAW
from dpassay.verifier.checker.declared.exponential import MOST_RELEASES, selection
from dpassay.verifier.checker.declared.law import pure
from dpassay.verifier.checker.declared.report_noisy_max import laplace_pair
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import UnknownError, sqrt

_MOST: Final = 100_000
"""Laplace laws that are listed."""
_SHARES: Final = 25
"""Shares of a move between two scores, which are tried."""
_INDICES: Final = (
    "bounded-range",
    "discrete-maxima",
    "laplace-maxima",
    "noisy-maxima",
    "noisy-maximum",
)
"""Laws of an index, with which a number may come: what bounds both is the last of `factors`."""
_TABLED: Final = {"falling-noise", "radial-noise", "round-noise"}
"""Laws of which several releases are only enclosed, between tables."""
_MANY: Final = 1000
"""Candidates that stand for any number: bounds of more are the same."""


def product(laws: list[Law], count: int) -> Law:
    """Return a Gaussian law (the μ² add up), Laplace laws, or a product."""
    kinds = {law["law"] for law in laws}
    if count * len(laws) > 1 and kinds & _TABLED:
        raise UnknownError("tables of losses above and below noise that falls with a norm")
    if kinds == {"gaussian"}:
        if len(laws) == count == 1:
            return laws[0]
        squares = total([law["mu"] * law["mu"] for law in laws])
        return {"law": "gaussian", "mu": sqrt(count * squares)}
    if kinds <= {"laplace", "laplace-product"}:
        distances = [d for law in laws for d in law.get("distances", [law.get("distance")])]
        if count * len(distances) <= _MOST:
            return {"law": "laplace-product", "distances": sorted(count * distances)}
    return {"law": "product", "factors": laws, "counts": [count] * len(laws)}


def enclosed(ways: list[tuple[list[Law], list[Law]]], count: int) -> tuple[list[Law], list[Law]]:
    """Return what several releases lie between, and the pairs of the lower end.

    Independent releases, each with one pair of neighbours, are there; a pair that dominates every
    release on every history dominates all in a product. Exponential mechanisms of one ε have a law,
    where all compositions inside are `adaptive`, and one where none is.
    """
    singles = [remove[0] for remove, _ in ways]
    k = count * len(singles)
    same = all(law["law"] == "bounded-range" and law == singles[0] for law in singles)
    if same and k <= MOST_RELEASES:
        whole = {**singles[0], "law": "bounded-range-product", "count": Fraction(k)}
        return [whole], [whole]
    listed, most = [], []
    for remove, add in ways:
        between = remove[0]["law"] == "between"
        law = remove[0]
        while law["law"] == "between":
            law = law["factors"][0]
        ends = BY_LAW[law["law"]].ends if law["law"] in BY_LAW else None
        pairs_of_one, above = ([law], law) if ends is None else ends(law)
        most_of_one = remove[0]["factors"][-1] if between else above
        if most_of_one["law"] == "unequal-maxima":  # of several releases the noise of one bounds it
            most_of_one = {"law": "laplace", "distance": most_of_one["distance"]}
        known = above == most_of_one or law["law"] in _INDICES if between else len(remove) == 1
        if remove != add or not known:
            raise UnknownError("both ends of this composition")
        listed.append(pairs_of_one)
        most.append(most_of_one)
    longest = max(map(len, listed))
    least = [product([own[i % len(own)] for own in listed], count) for i in range(longest)]
    found = [{"law": "between", "factors": [*least, product(most, count)]}, *least]
    return found, found


def top(noise: Noise) -> tuple[list[Law], list[Law]]:
    """Return what k selections without repetition lie between: both ends are of exponential ones.

    Each is an exponential mechanism among the candidates that are left. Where very many candidates
    have one of two scores, to leave out k of them changes nothing. Above all scores Laplace and
    exponential noise have the same tail, so that this limit is theirs too. With y_i the k largest
    noisy scores, all y move up by the sensitivity: then the others are below them as before, and
    each density falls by a factor of e^eps at most. With exponential noise the first selection is
    permute-and-flip.
    """
    t, k, gumbel = noise["epsilon"], int(noise["selected"]), noise["noise"] == "Gumbel"
    exponential: Law = {"law": "bounded-range", "length": t}
    one: Law = exponential if gumbel else {"law": "noisy-maximum", "distance": t}
    if noise["noise"] == "Laplace":
        one = laplace_pair(_MANY, t)
    if k == 1:
        both = [one, *one["factors"][:-1]] if one["law"] == "between" else [one]
        return both, both
    shares = (Fraction(2 * i + 1, 2 * _SHARES) for i in range(_SHARES))
    least = [product([selection(t, share)], k) for share in shares]
    if noise["noise"] == "Exponential":
        least.append(one)
    most = {**exponential, "law": "bounded-range-product", "count": noise["selected"]}
    if not gumbel:
        most = pure(k * t)
    found = [{"law": "between", "factors": [*least, most]}, *least]
    return found, found

"""Reports of one person's category, a second time: the chances of what is said of two categories.

A report is a set; it says of two categories whether it has the first alone, the second alone, or
both or none, and it is worth e^ε more under a category that it has. So the pair is (a, r, b)
against (b, r, a) with a = e^ε b. `contains` has the chances of the true and of another category.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.notation import (
    Argument,
    Noise,
    both,
    integer,
    optional,
    positive,
    rational,
    share,
    switch,
)
from dpassay.verifier.checker.reals import UnknownError, ball, exp

_BITS = 512
"""At which a number is rounded to a whole one."""
_BASE = {"epsilon": Argument(positive), "categories": Argument(integer(2))}
ARGUMENTS: Mapping[str, Mapping[str, Argument]] = {
    "HadamardResponse": _BASE,
    "LocalHashing": {**_BASE, "buckets": Argument(optional(integer(2)), None)},
    "Rappor": {"flip": Argument(both(rational, share)), "categories": Argument(integer(2))},
    "SubsetSelection": {**_BASE, "size": Argument(optional(integer(1)), None)},
    "UnaryEncoding": {**_BASE, "optimised": Argument(switch, False)},
}
"""The arguments of each of these mechanisms."""


def misfit(noise: Noise) -> str:
    """Say what is wrong with the arguments together; empty if nothing is."""
    size = noise["size"]
    return "a size of all categories" if size is not None and size >= noise["categories"] else ""


def _nearest(value: Callable[[], Any]) -> int:
    with ctx.workprec(_BITS):
        found = (ball(value() + Fraction(1, 2))).floor().unique_fmpz()
    if found is None:
        raise UnknownError("a whole number that is too large")
    return int(found)


def response(noise: Noise) -> list[Any]:
    """Return a, r and b.

    Of all sets of d out of k, C(k − 2, d − 1) have the first category alone, and as many the
    second, C(k − 2, d − 2) both and C(k − 2, d) none: in shares of C(k − 2, d − 1) these are 1, 1,
    (d − 1)/(k − d) and (k − d − 1)/d. Of the columns of a Hadamard matrix a quarter each. A hash
    function puts both in one bucket with chance 1/g; else one of them may be in the reported one.
    """
    if noise.name == "SubsetSelection":
        k, d = noise["categories"], _subset(noise)
        odds, one, none = exp(noise["epsilon"]), (d - 1) / (k - d), (k - d - 1) / d
        parts = [odds, odds * one + none, Fraction(1)]
    elif noise.name == "HadamardResponse":
        odds = exp(noise["epsilon"])
        parts = [odds, odds + 1, Fraction(1)]
    elif noise.name == "LocalHashing":
        odds, g = exp(noise["epsilon"]), _buckets(noise)
        total = odds + g - 1
        parts = [(g - 1) * odds, (g - 1) * (g - 2) + total, g - 1]
    else:
        p, q = contains(noise)
        parts = [p * (1 - q), p * q + (1 - p) * (1 - q), (1 - p) * q]
    whole = sum(parts, Fraction(0))
    return [part / whole for part in parts]


def contains(noise: Noise) -> tuple[Any, Any]:
    """Return the chances that a report has the true category, and another one."""
    if noise.name == "Rappor":
        return 1 - noise["flip"] / 2, noise["flip"] / 2
    odds = exp(noise["epsilon"])
    match noise.name:
        case "SubsetSelection":
            k, d = noise["categories"], _subset(noise)
            p = d * odds / (d * odds + k - d)
            return p, (d - p) / (k - 1)
        case "HadamardResponse":
            return odds / (odds + 1), Fraction(1, 2)
        case "LocalHashing":
            g = _buckets(noise)
            return odds / (odds + g - 1), 1 / g
    if noise["optimised"]:
        return Fraction(1, 2), 1 / (1 + odds)
    root = exp(noise["epsilon"] / 2)
    return root / (1 + root), 1 / (1 + root)


def _subset(noise: Noise) -> Fraction:
    k, d = noise["categories"], noise["size"]
    best = d or max(1, _nearest(lambda: k / (exp(noise["epsilon"]) + 1)))
    return Fraction(best)


def _buckets(noise: Noise) -> Fraction:
    return Fraction(noise["buckets"] or _nearest(lambda: exp(noise["epsilon"]) + 1))


def variance(noise: Noise) -> Any:
    """Return what one who does not hold a category adds to the variance of its estimated count."""
    p, q = contains(noise)
    return q * (1 - q) / ((p - q) * (p - q))


def mean_squared_error(noise: Noise) -> Any:
    """Return the mean over the categories, of which one is held."""
    k, (p, q) = noise["categories"], contains(noise)
    return (p * (1 - p) + (k - 1) * q * (1 - q)) / (k * (p - q) * (p - q))


def randomized_response(epsilon: Any, categories: Fraction) -> dict[str, Any]:
    """Return the reports on two categories: either one, or one of the k − 2 others."""
    odds, rest = exp(epsilon), categories - 2
    p = [entry / (odds + rest + 1) for entry in (odds, rest, Fraction(1))]
    return {"law": "finite", "p": p, "q": p[::-1]}

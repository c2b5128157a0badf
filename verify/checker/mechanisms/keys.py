"""Which keys are released: the optimal choice, and noisy counts of at least a threshold.

A user who is added or removed is in at most k keys. A key that nobody holds never appears.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.arithmetic import least, total
from dpassay.verifier.checker.masses import Bounded
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import Real, UnknownError, apply, ball, exp, sqrt

KEYS = (
    "DiscreteLaplaceThreshold",
    "GaussianThreshold",
    "LaplaceThreshold",
    "PartitionSelection",
)
_MOST_USERS: Final = 400
_NONE, _ALL = Fraction(0), Fraction(1)


def key_pairs(noise: Noise) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the worst pairs for removing a user, and for adding one."""
    if noise.name == "PartitionSelection":
        found = _selection(noise)
        return [*found], [Bounded({**law, "p": law["q"], "q": law["p"]}, law.most) for law in found]
    k = int(noise["partitions"])
    remove: list[dict[str, Any]] = []
    add: list[dict[str, Any]] = []
    for new in range(k, -1, -1):
        shown, hidden = _one_user(noise)
        none = [math.prod([hidden] * i, start=_ALL) for i in range(new + 1)]
        fresh = {"law": "finite", "p": [shown * total(none[:-1]), none[-1]], "q": [_NONE, _ALL]}
        other = {**fresh, "p": fresh["q"], "q": fresh["p"]}
        for laws, first in ((remove, fresh), (add, other)):
            parts = ([first] if new else []) + _moved(noise, k - new)
            laws.append(
                parts[0]
                if len(parts) == 1
                else {"law": "product", "factors": parts, "counts": [1] * len(parts)}
            )
    return remove, add


def _selection(noise: Noise) -> list[Bounded]:
    """Return the pair of every number of users and one more.

    By the four inequalities H(ε) ≤ δ for each, in both directions: the curve does not fall, so only
    "kept" with a user more, and "dropped" with a user less, can be the larger ones.
    """
    epsilon, delta = noise["epsilon"], noise["delta"]
    kept = _curve(epsilon, delta, ctx.prec)
    laws = [[a, 1 - a] for a in kept]
    most = (epsilon, delta)
    return [Bounded({"law": "finite", "p": p, "q": q}, most) for q, p in pairwise(laws)]


@lru_cache(maxsize=8)
def _curve(epsilon: Any, delta: Any, precision: int) -> list[Any]:
    """Follow the curve user by user: the largest chance that four inequalities leave.

    With a the chance of n users, the next may be at most e^ε a + δ, and its complement at least
    e^{−ε}(1 − a − δ).
    """
    rise = exp(epsilon)
    kept: list[Any] = [_NONE]
    while kept[-1] < 1:
        if len(kept) > _MOST_USERS:
            raise UnknownError(f"a key of more than {_MOST_USERS} users")
        one = rise * kept[-1] + delta
        other = 1 - (1 - kept[-1] - delta) / rise
        after = least([one, other, _ALL])
        kept.append(after if isinstance(after, Fraction) else Real(ball(after)))
    return kept


def _one_user(noise: Noise) -> tuple[Any, Any]:
    """Return the chance that the noise is at least τ − Δ, and that it is not."""
    away = noise["threshold"] - noise["sensitivity"]
    if noise.name == "GaussianThreshold":
        score = away / noise["standard_deviation"]
        return apply("Phi", -score), apply("Phi", score)
    if noise.name == "DiscreteLaplaceThreshold":
        beyond = math.ceil(noise["threshold"]) - int(noise["sensitivity"])
        r = exp(-1 / noise["scale"])
        tail = exp(-Fraction(max(beyond, 1 - beyond)) / noise["scale"]) / (1 + r)
        return (tail, 1 - tail) if beyond >= 0 else (1 - tail, tail)
    tail = exp(-(abs(away) / noise["scale"])) / 2
    found = tail, 1 - tail
    return found if away >= 0 else found[::-1]


def _moved(noise: Noise, old: int) -> list[dict[str, Any]]:
    """Return the noise of counts that all move by Δ."""
    if not old:
        return []
    if noise.name == "GaussianThreshold":
        mu = noise["sensitivity"] / noise["standard_deviation"]
        return [{"law": "gaussian", "mu": mu * sqrt(Fraction(old))}]
    if noise.name == "DiscreteLaplaceThreshold":
        law = {"law": "discrete-laplace", "scale": noise["scale"]}
        return [{**law, "shift": noise["sensitivity"]}] * old
    distance = noise["sensitivity"] / noise["scale"]
    if old == 1:
        return [{"law": "laplace", "distance": distance}]
    return [{"law": "laplace-product", "distances": [distance] * old}]

"""Laplace noise cut off at ±A, density e^{−|x|/b}/(2b(1 − e^{−A/b})).

In scales, with a = A/b and Q moved by t ≤ a: on [−a, t − a) there is only P. From there to 0 the
ratio of the densities is e^t, then it falls as e^{t−2x} to e^{−t} at x = t, and stays so. So L > ε
left of x = (t − ε)/2 for −t ≤ ε < t, and for ε ≥ t where there is only P.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpassay.verifier.checker.declared.law import DeclaredLaw, Pair
from dpassay.verifier.checker.notation import Argument, Noise, positive
from dpassay.verifier.checker.reals import INFINITE, exp, log


def _pair(noise: Noise) -> Pair:
    """Return the pair at the full distance: of a log-concave density it is worst."""
    scale = noise["scale"]
    if noise["bound"] < noise["sensitivity"]:
        raise ValueError("noise that does not reach as far as the answers differ")
    return {
        "law": "truncated-laplace",
        "distance": noise["sensitivity"] / scale,
        "end": noise["bound"] / scale,
    }


def _below(x: Any, a: Any) -> Any:
    """Return the distribution function of the noise at −a ≤ x ≤ a."""
    part = exp(-abs(x)) - exp(-a)
    share = part / (2 * (1 - exp(-a)))
    return share if x <= 0 else 1 - share


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    t, a = pair["distance"], pair["end"]
    if epsilon >= t:
        return _below(t - a, a), Fraction(0)
    if epsilon < -t:
        return Fraction(1), 1 - _below(t - a, a)
    x = (t - epsilon) / 2
    return _below(x, a), _below(x - t, a)


def _variance(noise: Noise) -> Any:
    b, most = noise["scale"], noise["bound"]
    lost = most * (most + 2 * b) / (exp(most / b) - 1)
    return 2 * b * b - lost


def _quantile(noise: Noise, probability: Any) -> Any:
    """Solve (e^{−|x|} − e^{−a})/(2(1 − e^{−a})) = min(p, 1 − p) for |x|."""
    end = exp(-(noise["bound"] / noise["scale"]))
    upper = probability > Fraction(1, 2)
    tail = 1 - probability if upper else probability
    size = -noise["scale"] * log(end + 2 * tail * (1 - end))
    return size if upper else -size


TRUNCATED_LAPLACE = DeclaredLaw(
    mechanism="TruncatedLaplace",
    arguments={
        "scale": Argument(positive),
        "bound": Argument(positive),
        "sensitivity": Argument(positive, Fraction(1)),
    },
    name="truncated-laplace",
    parameters=("distance", "end"),
    pair=_pair,
    tails=_tails,
    renyi=lambda pair, order: INFINITE,
    largest_loss=lambda pair: INFINITE,
    variance=_variance,
    quantile=_quantile,
)

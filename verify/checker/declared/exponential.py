"""The exponential mechanism: probabilities in proportion to e^{exponent}.

Exponents of neighbours differ by amounts in an interval of length t. Over all events S with
Q(S) = p, P(S) is at most r(p) = p e^t/(1 + p(e^t - 1)): the weight of S rises by e^t at most more
than the rest. It is that for two candidates of which one rises, and every p in (0, 1) is that of
some scores. So the profile is max over p of r(p) - e^ε p. r is concave, r'(p) = e^ε where
(1 + p(e^t - 1))² = e^{t-ε}: that p and r(p) are what `tails` returns, as those of the best event.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from verify.checker.declared.law import ALL, NONE, DeclaredLaw, Pair
from verify.checker.notation import Argument, Noise, positive, switch
from verify.checker.reals import exp, log


def _pair(noise: Noise) -> Pair:
    """Return the length of the interval: score differences of 2Δ, or of Δ, count as ε."""
    return {"law": "bounded-range", "length": noise["epsilon"]}


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    t = pair["length"]
    if epsilon >= t:
        return NONE
    if epsilon <= -t:
        return ALL
    root = exp((t - epsilon) / 2)
    q = (root - 1) / (exp(t) - 1)
    return q * exp(t) / root, q


def _renyi(pair: Pair, order: Any) -> Any:
    """Return the largest over the chance p that the exponent rises by t; else it rises by 0.

    Given the mean of Y = e^x in [1, e^t], the mean of the convex Y^a, or of Y ln Y, is largest
    where Y is at an end. With m = 1 + p(e^t - 1) the mean of Y^a is 1 + (m - 1)s, s the slope of
    the chord of y^a from 1 to e^t. (1 + (m - 1)s)/m^a is stationary at m = a(s - 1)/((a - 1)s). The
    mean of Y ln Y is (m - 1)c, c = t e^t/(e^t - 1), and (m - 1)c/m - ln m is stationary at m = c.
    """
    t = pair["length"]
    rise = exp(t) - 1
    if order == 1:
        c = t * exp(t) / rise
        return c - 1 - log(c)
    s = (exp(order * t) - 1) / rise
    m = order * (s - 1) / ((order - 1) * s)
    mean = 1 + (m - 1) * s
    return (log(mean) - order * log(m)) / (order - 1)


def selection(t: Any, share: Fraction) -> Pair:
    """Return a candidate that rises by s = t share, against one that falls by t - s."""
    s = t * share
    rises, falls = (1 - exp(s - t)) / (1 - exp(-t)), (exp(s) - 1) / (exp(t) - 1)
    return {"law": "finite", "p": [rises, falls], "q": [rises * exp(-s), falls * exp(t - s)]}


EXPONENTIAL = DeclaredLaw(
    mechanism="ExponentialMechanism",
    arguments={
        "epsilon": Argument(positive),
        "sensitivity": Argument(positive, Fraction(1)),
        "monotone": Argument(switch, False),
    },
    name="bounded-range",
    parameters=("length",),
    pair=_pair,
    tails=_tails,
    renyi=_renyi,
    largest_loss=lambda pair: pair["length"],
    only_alone=True,
    ends=lambda pair: (
        [selection(pair["length"], Fraction(2 * i + 1, 18)) for i in range(9)],
        {"law": "logistic", "distance": pair["length"]},
    ),
)

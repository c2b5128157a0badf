"""Logistic noise, density e^{−x/s}/(s(1 + e^{−x/s})²).

With y = e^{−x/s} the densities of P, moved by t scales, and Q have the ratio
e^t ((1 + y)/(1 + e^t y))², which falls with y from e^t to e^{−t}. So L > ε where
(1 + y)/(1 + e^t y) > r = e^{(ε−t)/2}, that is, for −t < ε < t, where y < (1 − r)/(e^t r − 1).
The probability of y < c is c/(1 + c) under Q, and that of e^t y < e^t c under P.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpassay.verifier.checker.declared.law import ALL, NONE, DeclaredLaw, Pair
from dpassay.verifier.checker.notation import Argument, Noise, positive
from dpassay.verifier.checker.reals import PI, exp, log


def _pair(noise: Noise) -> Pair:
    """Return the pair at the full distance: of a log-concave density it is worst.

    The best event against a shift is a half-line, whose probability grows with the shift.
    """
    return {"law": "logistic", "distance": noise["sensitivity"] / noise["scale"]}


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    t = pair["distance"]
    if epsilon >= t:
        return NONE
    if epsilon <= -t:
        return ALL
    r, most = exp((epsilon - t) / 2), exp(t)
    above = (1 - r) / (most - 1)
    return above * most, above / r


def _renyi(pair: Pair, order: Any) -> Any:
    """Return ln M/(a − 1), M = (e^{at} − e^{(1−a)t})/((2a − 1)(e^t − 1)), and t coth(t/2) − 2.

    V = e^{(t−L)/2} = (1 + e^t y)/(1 + y) is uniform on [1, e^t] under Q, where 1/(1 + y) is uniform
    on [0, 1]. So M is the mean of e^{at} V^{−2a}, and D_1 the derivative of ln M at a = 1.
    """
    t = pair["distance"]
    if order == 1:
        return t * (exp(t) + 1) / (exp(t) - 1) - 2
    moment = exp(order * t) - exp((1 - order) * t)
    return log(moment / ((2 * order - 1) * (exp(t) - 1))) / (order - 1)


LOGISTIC = DeclaredLaw(
    mechanism="Logistic",
    arguments={"scale": Argument(positive), "sensitivity": Argument(positive, Fraction(1))},
    name="logistic",
    parameters=("distance",),
    pair=_pair,
    tails=_tails,
    renyi=_renyi,
    largest_loss=lambda pair: pair["distance"],
    variance=lambda noise: PI * PI * noise["scale"] * noise["scale"] / 3,
    quantile=lambda noise, p: noise["scale"] * log(p / (1 - p)),
)

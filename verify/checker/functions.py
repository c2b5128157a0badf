"""The functions of the expression language a second time, in mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from mpmath import iv, mp

from verify.checker import trees
from verify.checker.arithmetic import UnknownError, agree, interval
from verify.checker.laws import (
    Law,
    enveloped_trade_off,
    hockey_stick,
    largest,
    least_epsilon,
    renyi,
    tails,
    trade_off,
)
from verify.checker.mechanisms import Noise, enveloped, mean_squared_error, pairs, variance


def root(x: Any) -> Any:
    """Return √x, a Fraction where it is rational."""
    if isinstance(x, Fraction) and x >= 0:
        root = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
        return root if root**2 == x else mp.sqrt(x)
    return mp.sqrt(x)


def over_intervals(name: str, *values: Any) -> Any:
    """Evaluate a function over intervals: in mpmath's own form, or at the ends if monotone."""
    if name in ("exp", "log", "sqrt", "sin", "cos", "gamma", "expm1", "log1p") and not values[1:]:
        return getattr(iv, name)(values[0])
    if name == "lgamma":
        return iv.loggamma(values[0])
    if name == "abs":
        return abs(values[0])
    if name in ("erf", "erfc", "tanh", "Phi", "Phi_inverse"):
        ends = [interval(FUNCTIONS[name](mp.mpf(end))) for end in (values[0].a, values[0].b)]
        return iv.mpf([min(end.a for end in ends), max(end.b for end in ends)])
    if name in ("min", "max"):
        choose, boxes = (min if name == "min" else max), [interval(value) for value in values]
        return iv.mpf([choose(box.a for box in boxes), choose(box.b for box in boxes)])
    raise UnknownError(f"{name} over an interval")


def _rounded(x: Any, digits: Any, up: int) -> Fraction:
    """Round to significant digits, up for up = 1; what is not dyadic lies inside a ball."""
    with mp.workdps(max(mp.dps, int(digits) + 40)):
        exact = isinstance(x, Fraction) and x.denominator & (x.denominator - 1) == 0
        nudged = mp.mpf(x) * (1 + (0 if exact else up * mp.sign(x) * mp.mpf(10) ** -(digits + 30)))
        unit = Fraction(10) ** (int(mp.floor(mp.log10(abs(nudged)))) + 1 - int(digits))
        return up * int(mp.ceil(up * nudged / unit)) * unit


def _whole(x: Any, rounding: Callable[[Any], Any]) -> Fraction:
    if not isinstance(x, Fraction) and abs(x - mp.nint(x)) < mp.mpf(10) ** (-mp.dps // 2):
        raise UnknownError("the integer part of a number too near an integer")
    return Fraction(int(rounding(x)))


def _r1smg_sigma_star(epsilon: Any, delta: Any, dimension: Any, sensitivity: Any) -> Any:
    """Return 2Δ²/(εψ), ψ = (δ Γ((M−1)/2)/(√π Γ(M/2)))^{2/(M−2)}."""
    half = mp.mpf(dimension) / 2
    gammas = mp.loggamma(half) - mp.loggamma(half - mp.mpf(1) / 2) + mp.log(mp.pi) / 2
    return 2 * sensitivity**2 / epsilon * mp.exp((gammas - mp.log(delta)) / (half - 1))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(mp, name) for name in ("exp", "expm1", "log1p", "sin", "cos", "gamma")},
    **{name: getattr(mp, name) for name in ("tanh", "erf", "erfc")},
    "sqrt": root,
    "log": lambda x, base=None: mp.log(x) if base is None else mp.log(x) / mp.log(base),
    "log2": lambda x: mp.log(x) / mp.log(2),
    "lgamma": mp.loggamma,
    "Phi": mp.ncdf,
    "mills": lambda x: mp.sqrt(mp.pi / 2) * mp.exp(mp.mpf(x) ** 2 / 2) * mp.erfc(x / mp.sqrt(2)),
    "Phi_inverse": lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
    "gamma_upper": lambda shape, x: mp.gammainc(shape, x, regularized=True),
    "beta_lower": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "lambert_w": mp.lambertw,
    "pi": lambda: +mp.pi,
    "abs": abs,
    "min": min,
    "max": max,
    "floor": lambda x: _whole(x, math.floor if isinstance(x, Fraction) else mp.floor),
    "ceil": lambda x: _whole(x, math.ceil if isinstance(x, Fraction) else mp.ceil),
    "round_up": lambda x, digits=40: _rounded(x, digits, 1),
    "round_down": lambda x, digits=40: _rounded(x, digits, -1),
    "binomial": lambda n, k: Fraction(math.comb(int(n), int(k))),
    "r1smg_sigma_star": _r1smg_sigma_star,
    "harmonic": lambda n, order=1: mp.fsum(mp.mpf(i) ** -order for i in range(1, int(n) + 1)),
    "tree_mse": partial(trees.mean_squared_error, signed=False),
    "tree_height": partial(trees.height, signed=False),
    "signed_tree_mse": partial(trees.mean_squared_error, signed=True),
    "signed_tree_height": partial(trees.height, signed=True),
    "honaker_mse": trees.honaker,
}


def _mu(law: Law) -> Any:
    if law["law"] != "gaussian":
        raise UnknownError(f"mu of the law {law['law']!r}")
    return law["mu"]


def _largest(answer: Callable[..., Any], what: str = "") -> Callable[..., Any]:
    """Ask a question about each pair of a mechanism; the largest answer counts.

    `what` names what the pairs do not know of a mechanism that only the largest of their profiles
    dominates.
    """

    def ask(noise: Noise, *at: Any) -> Any:
        if what and enveloped(noise):
            raise UnknownError(f"{what} between the extremes of {noise.name}")
        return largest([answer(law, *at) for law in pairs(noise)])

    return ask


def _beta(noise: Noise, alpha: Any) -> Any:
    laws = pairs(noise)
    if not enveloped(noise):
        return min(trade_off(law, alpha) for law in laws)
    least, most = enveloped_trade_off(laws, alpha), min(trade_off(law, alpha) for law in laws)
    if not agree(least, most):
        raise UnknownError(f"the trade-off function between the extremes of {noise.name}")
    return least


NOT_RECOMPUTED = ("dimension", "max_loss", "quantile")
NOT_RECOMPUTED_FAMILIES = ("count_noise_", "ellipse_", "optimal_count_", "signed_tree_", "tree_")
"""Functions of the language whose values are taken from the certificate, and named as such."""


def recomputed(name: str) -> bool:
    """Whether the checker has its own form of a function of the language."""
    return name in FUNCTIONS or (
        name not in NOT_RECOMPUTED and not name.startswith(NOT_RECOMPUTED_FAMILIES)
    )


QUESTIONS: dict[str, Callable[..., Any]] = {
    "delta": _largest(hockey_stick),
    "renyi": _largest(renyi, "a Rényi divergence"),
    "mu": _largest(_mu),
    "rho": _largest(lambda law: _mu(law) ** 2 / 2, "rho"),
    "loss_above": _largest(lambda law, loss: tails(law, loss)[0]),
    "total_variation": _largest(lambda law: hockey_stick(law, Fraction(0))),
    "beta": _beta,
    "epsilon": lambda noise, delta: least_epsilon(pairs(noise), delta),
    "variance": variance,
    "mse": mean_squared_error,
}
"""Questions about a mechanism."""

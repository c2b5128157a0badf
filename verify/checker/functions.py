"""The functions of the expression language a second time: exact numbers, or balls."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker import trees
from dpassay.verifier.checker.arithmetic import largest, least
from dpassay.verifier.checker.compositions.composed import largest_loss
from dpassay.verifier.checker.laws import (
    Law,
    enveloped_trade_off,
    hockey_stick,
    least_epsilon,
    loss_tails,
    renyi,
    trade_off,
    whole_part,
)
from dpassay.verifier.checker.mechanisms.counts import CountNoise, exactly
from dpassay.verifier.checker.mechanisms.ellipse import optimal
from dpassay.verifier.checker.mechanisms.neighbours import curves_between, enveloped
from dpassay.verifier.checker.mechanisms.pairs import pairs
from dpassay.verifier.checker.mechanisms.utility import (
    dimension,
    mean_squared_error,
    quantile,
    score,
    variance,
)
from dpassay.verifier.checker.notation import Noise, nearest_float
from dpassay.verifier.checker.reals import PI, Real, UnknownError, apply, ball, exp, hull, log, sqrt

_SPARE_BITS = 64
"""Bits for rounding, besides four for each digit."""
_MOST_DIGITS = 1000
"""Digits, or arguments, up to which a function is written out."""
_LONGEST = 1_000_000
"""Decimal exponent up to which a number is rounded: it is written out."""
_LARGEST_BINOMIAL = 100_000
"""Largest argument of a binomial coefficient: the number has 30,000 digits."""
_MOST_TERMS = 100_000
"""Terms of a sum."""
_LARGEST_DIMENSION = 10**18
"""Largest dimension: formulas take any, counts end here."""


def _rounded(x: Any, digits: Any, up: int) -> Fraction:
    """Round to significant digits, up for up = 1; what is not dyadic lies inside a ball."""
    figures = _integer(digits, _MOST_DIGITS)
    with ctx.workprec(max(ctx.prec, 4 * figures + _SPARE_BITS)):
        if x == 0:
            return Fraction(0)
        if not (isinstance(x, Fraction) and x.denominator & (x.denominator - 1) == 0):
            x = x * (1 + Fraction(up if x > 0 else -up) / Fraction(10) ** (figures + 30))
        size = Real(ball(abs(x)).log() / arb(10).log()) if isinstance(x, Real) else _size(x)
        if not abs(size) < _LONGEST:
            raise UnknownError("the digits of a number that is so large or small")
        unit = Fraction(10) ** (int(whole_part(size)) + 1 - figures)
        return -up * whole_part(-up * x / unit) * unit


def _size(x: Fraction) -> Fraction:
    """Return ⌊log₁₀ |x|⌋."""
    found = len(str(abs(x.numerator))) - len(str(x.denominator))
    return Fraction(found if abs(x) >= Fraction(10) ** found else found - 1)


def _integer(value: Any, most: int) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1 or abs(value) > most:
        raise ValueError(f"expected an integer of at most {most} in size")
    return int(value)


def _r1smg_sigma_star(epsilon: Any, delta: Any, dimension: Any, sensitivity: Any) -> Any:
    """Return 2Δ²/(εψ), ψ = (δ Γ((M−1)/2)/(√π Γ(M/2)))^{2/(M−2)}."""
    half = dimension / 2
    gammas = apply("lgamma", half) - apply("lgamma", half - Fraction(1, 2)) + log(PI) / 2
    return 2 * sensitivity**2 / epsilon * exp((gammas - log(delta)) / (half - 1))


def _harmonic(n: Any, order: Any = Fraction(1)) -> Any:
    """Return Σ i^{−order} over i = 1, …, n."""
    last = _integer(n, _MOST_TERMS)
    if isinstance(order, Fraction) and order.denominator == 1 and last <= _MOST_DIGITS:
        return sum((Fraction(i) ** -int(order) for i in range(1, last + 1)), start=Fraction(0))
    power = -ball(order)
    return Real(sum((arb(i) ** power for i in range(1, last + 1)), start=arb(0)))


def _gamma(x: Any) -> Any:
    """Return Γ(x): exactly for small whole and half numbers."""
    if isinstance(x, Fraction) and 0 < x <= _MOST_DIGITS and x.denominator <= 2:
        start = x - math.ceil(x) + 1  # 1, or 1/2
        whole = math.prod((start + i for i in range(int(x - start))), start=Fraction(1))
        return whole * (sqrt(PI) if x.denominator == 2 else 1)
    return apply("gamma", x)


def _of(name: str) -> Callable[[Any], Any]:
    return lambda x: apply(name, x)


def _on_trees(prefix: str, *, signed: bool) -> dict[str, Callable[..., Any]]:
    """Return the functions of arity and steps."""
    found: dict[str, Callable[..., Any]] = {
        "mse": partial(trees.mean_squared_error, signed=signed),
        "height": partial(trees.height, signed=signed),
    }
    for question in trees.WALKED:
        found[question] = partial(trees.walked, question=question, signed=signed)
    return {f"{prefix}{name}": function for name, function in found.items()}


def _ellipse_defects(dimension: Any, sparsity: Any) -> Fraction:
    """Return 0 where an ellipse is proved to be the best; raise UnknownError elsewhere."""
    d, k = (_integer(value, _LARGEST_DIMENSION) for value in (dimension, sparsity))
    if not 1 <= k <= d:
        raise ValueError(f"a sparsity outside 1 to {d}")
    optimal(d, k)
    return Fraction(0)


def _count_noise(question: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of (…, E, eta, D)."""

    def asked(*values: Any) -> Any:
        *indices, ratio, eta, support = values
        rational = isinstance(ratio, Fraction) and isinstance(eta, Fraction)
        return question((exactly if rational else CountNoise)(ratio, eta, support), *indices)

    return asked


def _optimal_count_delta(ratio: Any, eta: Any, support: Any, *counts: Any) -> Any:
    """Return the optimum for one law, which has a proof; laws that differ by count have not."""
    if counts:
        raise UnknownError("optimal_count_delta(…) of laws that differ by count")
    return _count_noise(lambda law: law.optimal_delta)(ratio, eta, support)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _of(name) for name in ("sin", "cos", "lgamma", "tanh", "erf", "erfc")},
    "exp": exp,
    "gamma": _gamma,
    "expm1": lambda x: exp(x) - 1,
    "log1p": lambda x: log(1 + x),
    "sqrt": sqrt,
    "log": lambda x, base=None: log(x) if base is None else log(x) / log(base),
    "log2": lambda x: log(x) / log(Fraction(2)),
    "Phi": lambda x: apply("Phi", x) if x != 0 else Fraction(1, 2),
    "mills": lambda x: sqrt(PI / 2) * exp(x * x / 2) * apply("erfc", x / sqrt(Fraction(2))),
    "Phi_inverse": score,
    "gamma_upper": lambda shape, x: apply("gamma_upper", shape, x),
    "beta_lower": lambda a, b, x: apply("beta_lower", a, b, x),
    "lambert_w": _of("lambert_w"),
    "pi": lambda: PI,
    "float": nearest_float,
    "abs": abs,
    "min": lambda *values: least(values),
    "max": lambda *values: largest(values),
    "floor": whole_part,
    "ceil": lambda x: -whole_part(-x),
    "round_up": lambda x, digits=Fraction(40): _rounded(x, digits, 1),
    "round_down": lambda x, digits=Fraction(40): _rounded(x, digits, -1),
    "binomial": lambda n, k: Fraction(
        math.comb(_integer(n, _LARGEST_BINOMIAL), _integer(k, _LARGEST_BINOMIAL))
    ),
    "r1smg_sigma_star": _r1smg_sigma_star,
    "harmonic": _harmonic,
    **_on_trees("tree_", signed=False),
    **_on_trees("signed_tree_", signed=True),
    "honaker_mse": trees.honaker,
    "ellipse_defects": _ellipse_defects,
    "count_noise_delta": _count_noise(lambda law: law.delta),
    "count_noise_optimal_delta": _count_noise(lambda law: law.optimal_delta),
    "optimal_count_delta": _optimal_count_delta,
    "count_noise_weight": _count_noise(CountNoise.weight),
    "count_noise_mass": _count_noise(CountNoise.mass),
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
    most = least([trade_off(law, alpha) for law in laws])
    return hull(enveloped_trade_off(laws, alpha), most) if curves_between(noise) else most


NOT_RECOMPUTED = ("optimal_count_true_delta",)
"""Functions of the language whose values are taken from the certificate, and named as such."""


def recomputed(name: str) -> bool:
    """Whether the checker has its own form of a function of the language."""
    return name not in NOT_RECOMPUTED


QUESTIONS: dict[str, Callable[..., Any]] = {
    "delta": _largest(hockey_stick),
    "renyi": _largest(renyi, "a Rényi divergence"),
    "mu": _largest(_mu),
    "rho": _largest(lambda law: _mu(law) ** 2 / 2, "rho"),
    "loss_above": _largest(lambda law, loss: loss_tails(law, loss)[0]),
    "total_variation": _largest(lambda law: hockey_stick(law, Fraction(0))),
    "beta": _beta,
    "epsilon": lambda noise, delta: least_epsilon(pairs(noise), delta),
    "variance": variance,
    "mse": mean_squared_error,
    "quantile": quantile,
    "dimension": dimension,
    "max_loss": _largest(largest_loss),
}
"""Questions about a mechanism."""

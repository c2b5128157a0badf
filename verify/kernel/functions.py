"""Less common functions of formulas: special functions, bounded count noise, counting trees.

Bounded count noise on −D..D has P(Z = 0) = η and E = e^ε. Let P_m = Σ E^j, S_m = Σ (j + 1)E^j and
A_m = Σ (m − j)E^j, each over 0 ≤ j < m, B = 2/(1 − η) and C = 2η/(1 − η). The published optimal δ
is the maximum of (C·P_k − E^k)/(B·S_k) for k = 1..D, and 1/(B·A_D). The true optimum has, in the
place of 1/(B·A_D), the maximum of (1 − C(E + … + E^m))/(B(A_m + A_{D−m})) for 0 ≤ m ≤ D/2.

A counting tree of arity k and height h writes a time step in h digits d_i, from 0..k−1 or signed.
Its output is a sum of |d_i| vertices of level i, each with noise of variance 2h².
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

from flint import arb, ctx, fmpq

from . import numbers
from .expressions import BASIC, MOST_TERMS, ONE, ZERO, Node, make, number
from .numbers import NotProved, Number, TooFewDigits, Wrong, ball, whole

NOTHING = arb("nan")
"""Value of a function outside its domain."""
MOST = 60
"""Largest support with formulas for its masses."""


def _count(x: Number, most: int = MOST_TERMS) -> int:
    if not isinstance(x, fmpq) or x.q != 1 or not 0 <= x <= most:
        raise NotProved(f"a count in it is not an integer from 0 to {most}")
    return int(x.p)


def _rounded(up: bool, x: Number, digits: Number | None = None) -> Number:
    """Round x up or down to so many significant decimal digits (default 40)."""
    places = 40 if digits is None else _count(digits)
    if not 1 <= places <= 10_000:
        raise NotProved("it rounds to too many digits")
    if isinstance(x, fmpq) and not x:
        return x
    size = abs(ball(x))
    if not size > 0 or abs(size.log()) > 1 << 20:
        raise TooFewDigits("a number to be rounded is too near 0")
    ten = fmpq(10) ** abs(shift := places - 1 - whole((size.log() / arb(10).log()).floor()))
    scaled = x * ten if shift >= 0 else x / ten
    n = fmpq(-whole(-scaled) if up else whole(scaled))
    return n / ten if shift >= 0 else n * ten


def _double(x: Number) -> Number:
    """Round a rational number to the nearest double, ties to even."""
    if not isinstance(x, fmpq) or max(abs(x.p), abs(x.q)) >> 2200:
        raise NotProved("float takes a rational number of at most 2200 bits")
    try:
        return fmpq(*(int(x.p) / int(x.q)).as_integer_ratio())
    except OverflowError:
        raise Wrong("theorem", "has a float that is infinite") from None


def _balls(function: Callable[..., arb]) -> Callable[..., Number]:
    return lambda *values: function(*map(ball, values))


def _harmonic(count: Number, order: Number | None = None) -> Number:
    power = ball(fmpq(1) if order is None else order)
    return sum((ball(i) ** -power for i in range(1, _count(count) + 1)), start=arb(0))


def normal_cdf(x: arb) -> arb:
    """Return Φ(x)."""
    return (-x / arb(2).sqrt()).erfc() / 2


def mills(x: arb) -> arb:
    """Return Φ(−x)/φ(x)."""
    half = x * x / 2
    return (arb.pi() / 2).sqrt() * half.exp() * (x / arb(2).sqrt()).erfc()


def quantile(p: arb) -> arb:
    """Return Φ⁻¹(p), by bisection."""
    if not (p > 0 and p < 1):
        raise TooFewDigits("the argument of Phi_inverse is not known to lie in (0, 1)")
    if p > arb("0.5"):
        return -quantile(1 - p)
    low, high = arb(-(1 << 16)), arb(1)
    if not normal_cdf(low) < p < normal_cdf(high):
        raise TooFewDigits("the argument of Phi_inverse is too near 0")
    for _ in range(2 * ctx.prec):
        middle = ((low + high) / 2).mid()
        side = numbers.compare(normal_cdf(middle), "<", p)
        if side is None:
            break
        low, high = (middle, high) if side else (low, middle)
    return low.union(high)


def _rank_one_scale(epsilon: arb, delta: arb, dimension: arb, moved: arb) -> arb:
    """Return 2Δ²/(εψ), ψ = (δΓ((M − 1)/2)/(√π Γ(M/2)))^(2/(M − 2)) (Ji and Li, Theorem 5)."""
    share = delta.log() + ((dimension - 1) / 2).lgamma() - (dimension / 2).lgamma()
    root = 2 * (share - arb.pi().log() / 2) / (dimension - 2)
    return 2 * moved * moved / epsilon * (-root).exp()


def _where(gap: Number, low: Number, high: Number) -> Number:
    """Return `low` if gap ≤ 0, else `high`."""
    found = numbers.compare(gap, "<=", fmpq(0))
    return ball(low).union(ball(high)) if found is None else low if found else high


FUNCTIONS: dict[str, Callable[..., Number]] = {
    **BASIC,
    "where": _where,
    "expm1": _balls(arb.expm1),
    "log1p": _balls(arb.log1p),
    "log2": lambda x: BASIC["log"](x, fmpq(2)),
    "sin": _balls(arb.sin),
    "cos": _balls(arb.cos),
    "sinh": _balls(arb.sinh),
    "tanh": _balls(arb.tanh),
    "gamma": _balls(arb.gamma),
    "lgamma": _balls(arb.lgamma),
    "erf": _balls(arb.erf),
    "erfc": _balls(arb.erfc),
    "Phi": _balls(normal_cdf),
    "Phi_inverse": _balls(quantile),
    "mills": _balls(mills),
    "gamma_upper": _balls(
        lambda a, x: x.gamma_upper(a, regularized=1) if a > 0 and x >= 0 else NOTHING
    ),
    "beta_lower": _balls(
        lambda a, b, x: (
            x.beta_lower(a, b, regularized=True)
            if a > 0 and b > 0 and x >= 0 and x <= 1
            else NOTHING
        )
    ),
    "r1smg_sigma_star": _balls(_rank_one_scale),
    "ceil": lambda x: fmpq(-whole(-x)),
    "float": _double,
    "round_up": lambda *x: _rounded(True, *x),
    "round_down": lambda *x: _rounded(False, *x),
    "binomial": lambda n, k: fmpq(comb(_count(n, 20_000), _count(k))),
    "harmonic": _harmonic,
}


# --- written out ---
def written(node: Node, holds: Callable[..., bool]) -> Node | None:
    """Return the formula of a function of count noise or trees with constant sizes, or None.

    `holds` decides the conditions on the other arguments.
    """
    name, sizes = node.op, [_integer(a) for a in node.args if isinstance(a, Node)]
    if name.startswith("count_noise_") and sizes and 0 < (sizes[-1] or 0) <= MOST:
        *_, e, eta, _size = node.args
        if not holds((e, ">=", ONE), (eta, ">", ZERO), (eta, "<", ONE)):
            raise NotProved("count noise needs a ratio of at least 1 and an eta in (0, 1)")
        return _count_noise(name.removeprefix("count_noise_"), node.args, sizes)
    if name.endswith(("tree_mse", "tree_height")) and len(sizes) == 2:
        k, n = sizes
        if k is None or n is None:
            return None
        if not (2 <= k <= 1000 and 1 <= n < 1 << 1024):
            raise NotProved("a tree needs an arity from 2 to 1000 and from 1 to 2^1024 steps")
        return _tree(k, n, signed=name.startswith("signed"), height=name.endswith("height"))
    return None


def _integer(node: Node) -> int | None:
    return int(node.args[0].p) if node.op == "num" and node.args[0].q == 1 else None


def count_noise(e: Node, eta: Node, d: int) -> tuple[list[Node], Node, Node, list[Node]]:
    """Return the sums, the published and the true optimal δ, and P(Z = 0), …, P(Z = D)."""
    powers, plain, rising, falling = [ONE], [ZERO], [ZERO], [ZERO]
    for m in range(d + 1):
        plain.append(plain[m] + powers[m])
        rising.append(rising[m] + number(m + 1) * powers[m])
        falling.append(falling[m] + plain[m + 1])
        powers.append(e ** number(m + 1))
    b, c = number(2) / (ONE - eta), number(2) * eta / (ONE - eta)
    first = [(c * plain[k] - powers[k]) / (b * rising[k]) for k in range(1, d + 1)]
    printed = make("max", *first, ONE / (b * falling[d]))
    others = [
        (ONE - c * (plain[m + 1] - ONE)) / (b * (falling[m] + falling[d - m]))
        for m in range(d // 2 + 1)
    ]
    masses = [eta]
    for z in range(1, d + 1):
        # α = P_{D+1−z}/A_D where C ≤ P_{D+1}/A_D; beyond, (C − Bδ·P_z)/E^z or 0
        high = make("max", ZERO, (c - b * printed * plain[z]) / powers[z])
        low = plain[d + 1 - z] / falling[d]
        masses.append(make("where", c - plain[d + 1] / falling[d], low, high) / b)
    return [*plain, *rising, *falling], printed, make("max", *first, *others), masses


def _count_noise(what: str, args: tuple[Node, ...], sizes: list[int | None]) -> Node | None:
    *index, e, eta, _ = args
    d, z = sizes[-1] or 1, sizes[0]
    _, printed, true, masses = count_noise(e, eta, d)
    if not index:
        return {"delta": printed, "optimal_delta": true}.get(what)
    if len(index) != 1 or z is None or not (what == "weight") <= z <= d:
        return None
    return {"mass": masses[z], "weight": number(2) / (ONE - eta) * masses[z]}.get(what)


def _tree(k: int, n: int, *, signed: bool, height: bool) -> Node:
    lowest, levels = (k - 1) // 2 if signed else 0, 1
    while (k - 1 - lowest) * ((k**levels - 1) // (k - 1)) < n:
        levels += 1
    if height:
        return number(levels)
    total = 0
    for level in range(
        levels
    ):  # signed digits of t are the plain digits of t + shift, less `lowest`
        unit = k**level
        shift = lowest * (unit * k - 1) // (k - 1)
        for plain in range(k):
            below = [_below(end, plain, unit, k) for end in (n + shift + 1, shift + 1)]
            total += abs(plain - lowest) * (below[0] - below[1])
    return number(2 * levels**2 * total) / number(n)


def _below(end: int, digit: int, unit: int, arity: int) -> int:
    """Return how many 0 ≤ u < end have the digit `digit` at weight `unit`."""
    periods, rest = divmod(end, unit * arity)
    return periods * unit + min(max(rest - digit * unit, 0), unit)

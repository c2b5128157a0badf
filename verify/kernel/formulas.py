"""Functions that claims ask for by name, written out: bounded count noise, and trees of counters.

Bounded count noise on −D..D with P(Z = 0) = η and E = e^ε: sums over j < m P_m = Σ E^j,
S_m = Σ (j + 1)E^j and A_m = Σ (m − j)E^j, B = 2/(1 − η), C = 2η/(1 − η). The printed optimum is the
largest of δ_k = (C·P_k − E^k)/(B·S_k), k = 1..D, and 1/(B·A_D); the true one replaces the last by
the largest of (1 − C(E + … + E^m))/(B(A_m + A_{D−m})), m = 0..D/2.

A tree of arity k writes a time step in digits, plain or signed, and its output adds |d_i| vertices
of level i, each with the noise of variance 2h², h the height.
"""

from __future__ import annotations

from collections.abc import Callable

from .expressions import ONE, ZERO, Node, make, number
from .numbers import NotProved

MOST = 60
"""Largest support that is written out."""


def written(node: Node, holds: Callable[..., bool]) -> Node | None:
    """Return the formula of a function whose sizes are numbers, None for what has none.

    `holds` says whether comparisons are true: those of the arguments that a function has.
    """
    name, sizes = node.op, [_integer(a) for a in node.args if isinstance(a, Node)]
    if name.startswith("count_noise_") and sizes and 0 < (sizes[-1] or 0) <= MOST:
        *_, e, eta, _size = node.args
        if not holds((e, ">=", ONE), (eta, ">", ZERO), (eta, "<", ONE)):
            raise NotProved("count noise has a ratio of at least 1 and an eta in (0, 1)")
        return _count_noise(name.removeprefix("count_noise_"), node.args, sizes)
    if name.endswith(("tree_mse", "tree_height")) and len(sizes) == 2:
        k, n = sizes
        if k is None or n is None:
            return None
        if not (2 <= k <= 1000 and 1 <= n < 1 << 1024):
            raise NotProved("a tree has an arity from 2 to 1000 and a step")
        return _tree(k, n, signed=name.startswith("signed"), height=name.endswith("height"))
    return None


def _integer(node: Node) -> int | None:
    return int(node.args[0].p) if node.op == "num" and node.args[0].q == 1 else None


def count_noise(e: Node, eta: Node, d: int) -> tuple[list[Node], Node, Node, list[Node]]:
    """Return the sums, the printed and the true least δ, and P(Z = 0), …, P(Z = D)."""
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
    for level in range(levels):  # adding `lowest` to each digit makes the digits of t + shift plain
        unit = k**level
        shift = lowest * (unit * k - 1) // (k - 1)
        for plain in range(k):
            below = [_below(end, plain, unit, k) for end in (n + shift + 1, shift + 1)]
            total += abs(plain - lowest) * (below[0] - below[1])
    return number(2 * levels**2 * total) / number(n)


def _below(end: int, digit: int, unit: int, arity: int) -> int:
    """Count 0 ≤ u < end whose digit of weight `unit` is `digit`."""
    periods, rest = divmod(end, unit * arity)
    return periods * unit + min(max(rest - digit * unit, 0), unit)

"""Errors of counting trees a second time: by splitting off the last digit of every time step.

With t = ku + d and digits −low..k−1−low, the vertices of all t ≤ n are those of all u, once for
each d that keeps 1 ≤ ku + d ≤ n, and |d| for each. The other path counts digits level by level.
"""

from __future__ import annotations

from fractions import Fraction


def _vertices(arity: int, steps: int, low: int) -> int:
    """Sum |d| over the digits of 1..steps, from the shortest time steps up."""
    digits = range(-low, arity - low)
    needed, added = {steps}, {steps}
    while added:  # every (n − d)//k is below n
        added = {(n - d) // arity for n in added for d in digits}
        added = {n for n in added if n > 0}
        needed |= added
    totals = {0: 0}
    for n in sorted(needed):
        total = 0
        for digit in digits:
            first, last = (0 if digit > 0 else 1), (n - digit) // arity
            if last >= first:
                total += totals[last] + abs(digit) * (last - first + 1)
        totals[n] = total
    return totals[steps]


def _height(arity: int, steps: int, low: int) -> int:
    height, reach = 0, 0
    while height == 0 or reach < steps:
        height, reach = height + 1, reach * arity + (arity - 1 - low)
    return height


def height(arity: Fraction, steps: Fraction, *, signed: bool) -> Fraction:
    """Return the least number of digits that writes every time step."""
    k = int(arity)
    return Fraction(_height(k, int(steps), (k - 1) // 2 if signed else 0))


def mean_squared_error(arity: Fraction, steps: Fraction, *, signed: bool) -> Fraction:
    """Return 2h² times the average number of vertices of an output."""
    k, n = int(arity), int(steps)
    low = (k - 1) // 2 if signed else 0
    return Fraction(2 * _height(k, n, low) ** 2 * _vertices(k, n, low), n)


def honaker(steps: Fraction) -> Fraction:
    """Return 2h² times the average of Σ v_i over the binary digits, v_i by its recursion."""
    n, total, weight, level = int(steps), Fraction(0), Fraction(1), 0
    while n >> level:
        block = 1 << level
        full, rest = divmod(n + 1, 2 * block)
        total += weight * (full * block + max(0, rest - block))
        weight, level = 1 / (1 + 1 / (2 * weight)), level + 1
    return 2 * level**2 * total / n

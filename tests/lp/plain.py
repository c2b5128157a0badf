"""The programs of count noise written out, as a route of their own."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def by_linear_program(e: float, eta: float, support: int, counts: range, *, single: bool) -> float:
    """Variables p(z | n) and a slack for each outcome of each ordered pair, in floating point.

    With `single` the slack is δ itself, as in Proposition 2.
    """
    cells = [(n, z) for n in counts for z in range(-min(n, support), support + 1)]
    pairs = [(n, m) for n in counts for m in (n - 1, n + 1) if m in counts]
    slacks = [(n, m, y) for n, m in pairs for y in range(counts.stop + support)]
    index = {name: i for i, name in enumerate([*cells, *slacks])}
    size = len(index) + 1
    equal, right, above = [], [], []
    for n in counts:
        own = [(z, index[n, z]) for m, z in cells if m == n]
        for weights, value in (
            ({i: 1.0 for _, i in own}, 1.0),
            ({i: float(z) for z, i in own}, 0.0),
            ({index[n, 0]: 1.0}, eta),
        ):
            row = np.zeros(size)
            row[list(weights)] = list(weights.values())
            equal.append(row)
            right.append(value)
    for n, m, y in slacks:
        row = np.zeros(size)
        row[-1 if single else index[n, m, y]] = -1
        if (n, y - n) in index:
            row[index[n, y - n]] += 1
        if (m, y - m) in index:
            row[index[m, y - m]] -= e
        above.append(row)
    for pair in () if single else pairs:
        row = np.zeros(size)
        row[[index[slack] for slack in slacks if slack[:2] == pair]] = 1
        row[-1] = -1
        above.append(row)
    bounds = np.zeros(len(above))
    cost = np.zeros(size)
    cost[-1] = 1
    found = linprog(cost, A_ub=above, b_ub=bounds, A_eq=equal, b_eq=right, method="highs")
    assert found.success
    return float(found.fun or 0)

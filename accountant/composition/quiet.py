"""Proof that a characteristic function stays small over a long range of frequencies.

Beyond the nodes that are summed, |Φ| is asked for at few frequencies kη. Between them no factor
rises by more than E min(|l − m| η/2, 2), m any centre, so that

    |Φ(ω)| ≤ Π (|φ_i(kη)| + rise_i)^{n_i}   for |ω − kη| ≤ η/2.

As the losses of one release are small where the sum of many of them is asked for, η is often a
hundred steps of the nodes; where the losses of a release nearly are a lattice |Φ| returns, and the
sums say so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from flint import arb

from accountant.composition.laws import Law, ListedLaw
from accountant.composition.node_values import ROW

RISE = 0.04
"""What |φ| may rise between two frequencies."""
MOST_ROWS = 1 << 13
FEWEST = 20
"""Releases of one loss, below which nothing gets small."""
_LEFT_OUT = 0.01
_BATCH = 64
_SLACK = 1 + 1e-6


@final
@dataclass(frozen=True)
class Quiet:
    """Bounds of sums over the nodes between a frequency and `upto`."""

    upto: float
    whole: float
    """Of Σ |Φ|/ω²."""
    squares: float
    """Of Σ Π |φ_i|^{2⌊n_i/2⌋}."""


def quiet(laws: Sequence[Law], c: arb, step: float, start: float, upto: float) -> Quiet | None:
    """Bound the sums over the nodes kh > start; None where nothing would be small.

    Parameters
    ----------
    laws
        Those that are no lists, or of few releases, are bounded by 1.
    c
        The line.
    step
        The step h of the nodes.
    start, upto
        The frequencies to cover; fewer are if that takes too long.
    """
    lists = [law for law in laws if isinstance(law, ListedLaw) and law.count >= FEWEST]
    if not lists:
        return None
    spacing = min(law.spacing(c, RISE) for law in lists)
    rows = min(math.ceil(upto / spacing / ROW) + 1, MOST_ROWS)
    k_first = math.floor(start / spacing)
    if k_first < 1 or rows * ROW < 2 * k_first:
        return None
    factors = [law.factor(c, spacing, rows, left_out=_LEFT_OUT) for law in lists]
    rises = [law.rise(c, spacing / 2) for law in lists]
    nodes = spacing / step + 1
    whole, squares = 0.0, 0.0
    for row in range(k_first // ROW, rows, _BATCH):
        last = min(row + _BATCH, rows)
        k = np.arange(row * ROW, last * ROW)
        logs, even = np.zeros(len(k)), np.zeros(len(k))
        for law, factor, rise in zip(lists, factors, rises, strict=True):
            values, error = factor.rows(row, last)
            size = np.log(np.minimum(np.abs(values) * _SLACK + error + rise, 1.0))
            logs += law.count * size
            even += law.count // 2 * 2 * size
        used = k >= k_first
        low = (k[used] - 0.5) * spacing
        whole += float((np.exp(logs[used]) / low**2).sum()) * nodes * _SLACK
        squares += float(np.exp(even[used]).sum()) * nodes * _SLACK
    return Quiet((rows * ROW - 0.5) * spacing, whole, squares)

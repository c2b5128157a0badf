"""Multipliers of count-noise programs, made consistent along the chains.

In the dual program a comparison p(z | n) ≤ E p(z' | n') + δ carries a flow s ≥ 0, and the entry
(n, z) asks that

    (flows that leave it) ≥ E·(flows that enter it) + λ_n + μ_n z,

λ, μ being the multipliers of mass and mean. Seen from z = 0 outward each entry has one comparison
that leads further out, so that, for given λ, μ and the other flows, the least feasible flows
follow by recursion. A float solver's flows are off by an absolute error that the recursion would
multiply by E at each step; recomputed flows are off only by what λ and μ are off.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpq

from lp.build import CountProgram
from lp.certificate import Ratio, round_down
from lp.problem import Value


def consistent_flows(
    program: CountProgram, multipliers: Sequence[Value], ratio: Ratio, digits: int
) -> list[fmpq]:
    """Return multipliers with the outward flows recomputed.

    Parameters
    ----------
    program
        The program that the multipliers belong to.
    multipliers
        A guess, row by row.
    ratio
        Bounds of E.
    digits
        Decimal places to round to.
    """
    result = [round_down(value, digits) for value in multipliers]
    outward: dict[tuple[int, int], int] = {}
    entering: dict[tuple[int, int], list[int]] = {}
    leaving: dict[tuple[int, int], list[int]] = {}
    for row, (comparison, z) in enumerate(program.flows, start=program.equalities):
        entry, further = (comparison.first, z), (comparison.second, z - comparison.shift)
        result[row] = max(result[row], fmpq(0))
        entering.setdefault(further, []).append(row)
        if z != 0 and abs(further[1]) > abs(z):
            outward[entry] = row
            result[row] = fmpq(0)
        else:
            leaving.setdefault(entry, []).append(row)
    unit = fmpq(1) / fmpq(10) ** digits
    for law, z in sorted(program.entries, key=lambda entry: abs(entry[1])):
        row = outward.get((law, z), -1)
        if row < 0:
            continue
        need = result[2 * law] + result[2 * law + 1] * z
        need += ratio.upper * sum((result[i] for i in entering.get((law, z), ())), start=fmpq(0))
        need -= sum((result[i] for i in leaving.get((law, z), ())), start=fmpq(0))
        if need > 0:
            result[row] = round_down(need, digits) + unit
    return result

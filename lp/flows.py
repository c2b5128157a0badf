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
from dataclasses import dataclass
from typing import final

from flint import fmpq

from lp.build import CountProgram
from lp.certificate import Ratio, round_down
from lp.problem import Value

_ROUNDS = 6
"""Times that chains of multipliers are relieved: each leaves less to take back."""


def consistent_flows(
    program: CountProgram,
    multipliers: Sequence[Value],
    ratio: Ratio,
    digits: int,
    noise: Noise,
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
    noise
        What is too small to be followed.

    Notes
    -----
    A chain to the right of small outcomes y ends at the law of n = 1, which has to absorb what
    arrives. What it cannot absorb is taken back at the chain's far beginning, where λ_n has been
    multiplied by E^(n−1) on its way and lowering it costs the least.
    """
    rounded = [round_down(value, digits) for value in multipliers]
    chains = _Chains(program, rounded, ratio, digits, noise)
    for _ in range(_ROUNDS):
        chains.recompute()
        if not chains.relieve():
            break
    return chains.result


@final
@dataclass(frozen=True)
class Noise:
    """What a float solver's error looks like.

    A need below `share` of the largest multiplier of a mass, |z| < `steps` from the count, is
    met by lowering λ_n: its way to the end of the chain would cost more.
    """

    share: fmpq
    steps: int


class _Chains:
    def __init__(
        self,
        program: CountProgram,
        start: list[fmpq],
        ratio: Ratio,
        digits: int,
        noise: Noise,
    ) -> None:
        largest = max((abs(value) for value in start[: program.equalities]), default=fmpq(0))
        self._noise, self._steps = largest * noise.share, noise.steps
        self.result = start
        self._ratio, self._digits, self._laws = ratio, digits, program.equalities // 2
        self._unit = fmpq(1) / fmpq(10) ** digits
        self._outward: dict[tuple[int, int], int] = {}
        self._entering: dict[tuple[int, int], list[int]] = {}
        self._leaving: dict[tuple[int, int], list[int]] = {}
        for row, (comparison, z) in enumerate(program.flows, start=program.equalities):
            entry, further = (comparison.first, z), (comparison.second, z - comparison.shift)
            start[row] = max(start[row], fmpq(0))
            self._entering.setdefault(further, []).append(row)
            if z != 0 and abs(further[1]) > abs(z):
                self._outward[entry] = row
            else:
                self._leaving.setdefault(entry, []).append(row)
        self._order = sorted(program.entries, key=lambda entry: abs(entry[1]))

    def _need(self, law: int, z: int) -> fmpq:
        """Return what has to leave an entry outward."""
        need = self.result[2 * law] + self.result[2 * law + 1] * z
        for row in self._entering.get((law, z), ()):
            need += self._ratio.upper * self.result[row]
        for row in self._leaving.get((law, z), ()):
            need -= self.result[row]
        return need

    def recompute(self) -> None:
        """Set the outward flows to the least that is feasible, from z = 0 outward."""
        for law, z in self._order:
            row = self._outward.get((law, z))
            if row is not None:
                need = self._need(law, z)
                if 0 < need < self._noise and abs(z) < self._steps:
                    self.result[2 * law] -= need
                    need = fmpq(0)
                up = round_down(need, self._digits) + self._unit if need > 0 else fmpq(0)
                self.result[row] = up

    def relieve(self) -> bool:
        """Lower λ_n at the beginnings of the chains that end in n = 1; say if there was need."""
        lowered = False
        for law, z in self._order:
            if law != 0 or z < 1 or (law, z) in self._outward:
                continue
            excess = self._need(0, z)
            for first in range(min(z, self._laws) - 1, 0, -1):
                if excess <= 0:
                    break
                own = self.result[2 * first] + self.result[2 * first + 1] * (z - first)
                power = self._ratio.lower**first
                cut = min(max(own, fmpq(0)), excess / power)
                if cut > 0:
                    self.result[2 * first] -= round_down(cut, self._digits) + self._unit
                    excess -= cut * power
                    lowered = True
        return lowered

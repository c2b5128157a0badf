"""The largest δ(ε) of Laplace noise over all shifts of two norms, bounded on a line.

Let the sizes t_i > 0 in units of the scale have Σ t_i = T₁ and Σ t_i² = T₂² in any number of
coordinates, which is the worst case (`accountant.geometry.shifts.order`). With γ(t, z) of
`accountant.geometry.shifts.envelope`, M(z) = exp Σ t_i γ(t_i, z) is the transform of the loss.

*The sum.* Composition with a Gaussian release of standard deviation 1/s does not lower δ, and
multiplies M by e^{z(z+1)s²/2}. Let F(z) = M(z) e^{z(z+1)s²/2 − zε}/(z(z + 1)). By Poisson summation

    (h/π)(½F(c) + Σ_{k≥1} Re F(c + ikh)) = Σ_j δ_s(ε + 2πj/h) e^{2πjc/h} ≥ δ_s(ε) ≥ δ(ε)

for every c > 0 and h > 0, as all terms are ≥ 0. The nodes beyond the last add at most
Σ |F(c)| c(c + 1) e^{−(sy)²/2}/y², a geometric sum.

*The cells.* Let t* = T₂²/T₁, L = T₁ γ(t*, c) and A = L − ln M(c): A ≥ 0 by Jensen's inequality
(`accountant.geometry.worst_shift`). For each cell of A every node is bounded for all shifts whose
A is in
that cell, by exp of a linear function of A; the sum of these is convex in A, and its values at the
ends of the cell bound it. At c itself and where nothing better is known |M(z)| ≤ M(c) = e^{L−A}.

*A cut.* With θ the phase of F, Re F = |F| cos θ, and for x in (−π/2, π/2) and λ = tan x,

    ln cos θ ≤ ln cos x − λ(θ − x)

wherever cos θ > 0 and θ ≤ 3π/2 for λ ≥ 0 (θ ≥ −3π/2 for λ ≤ 0): in (−π/2, π/2) because ln cos is
concave; below that because the right side is at least its value at θ = −3π/2, which is 0 for x = 0
and grows with |x|. The same holds after a shift of θ and x by 2πm. So ln Re F is at most a constant
plus Σ t_i (Re γ − λ Im γ)(t_i, z). The t_i/T₁ are weights, of which the mean of t is t*: for all
real b and μ

    Σ t_i h(t_i) ≤ T₁ sup_t (h(t) − bt − μγ(t, c)) + bT₂² + μ(L − A),

and the supremum is one of `accountant.geometry.shifts.envelope`. The phase, that of the kernel and
Σ t_i Im γ(t_i, z), is kept on its side of 3π/2 by the same inequality.

Where many small coordinates make the loss, the first nodes carry all the weight, the best cuts
there touch at κ coordinates t*, and the bound is nearly their δ. Where few coordinates make it,
atoms show at every node, and the bound is above what any one shift has.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, final

from flint import arb

from accountant.geometry.shifts.envelope import Envelope
from accountant.geometry.shifts.plan import Cut, LinePlan, Support, plan
from accountant.numbers.exact import ExactReal
from accountant.numbers.precision import cached_property, ctx

_PRECISION = 96
"""Bits of the exponents, which become floats."""
_ACCURACY = 5e-5
"""Tolerance of an exponent: what δ is above its bound for it. It grows where the bound gains
nothing."""
_LEAST, _MOST = 3e-4, 0.5  # tolerances of an exponent
_PHASE_TOLERANCE = 0.02
"""The same of a phase, in radians, of which only a quarter turn matters."""

Linear: TypeAlias = tuple[arb, float]
"""The value at A = 0 of an exponent, and its slope in −A."""


@functools.lru_cache(maxsize=16)
def line_bound(first: ExactReal, second: ExactReal, epsilon: ExactReal) -> arb:
    """Return a number that δ(ε) of no shift with ‖t‖₁ ≤ T₁ and ‖t‖₂ ≤ T₂ exceeds.

    It is ∞ for ε very near T₁.

    Parameters
    ----------
    first, second
        T₁ > T₂ > 0; their ratio is best not very near 1, where one size is nearly all.
    epsilon
        0 ≤ ε < T₁.
    """
    chosen = plan(float(first), float(second), float(epsilon))
    if chosen is None:
        return arb.pos_inf()
    with ctx.workprec(_PRECISION):
        return Line(first.ball(), second.ball(), epsilon.ball(), chosen).bound()


@final
@dataclass(frozen=True)
class Line:
    """A plan to be proved, whatever it is, for T₁, T₂ and ε."""

    first: arb
    second: arb
    epsilon: arb
    plan: LinePlan

    @cached_property
    def top(self) -> arb:
        """L = T₁ γ(t*, c)."""
        c, mean = arb(self.plan.line), self.second**2 / self.first
        rise = (c + 1) * (c * mean).expm1() + c * (-(c + 1) * mean).expm1()
        return self.first / mean * (rise / (2 * c + 1)).log1p()

    def bound(self) -> arb:
        """Return the largest sum at an end of a cell, rounded up."""
        step, ends = arb(self.plan.step), self.plan.ends
        weight = step / arb.pi()
        at_first = self._kernel(arb(0))[0] + self.top
        cells = [[weight / 2 * (at_first - a).exp() for a in ends] for ends in pairwise(ends)]
        beyond = weight / 2 * (at_first - ends[-1]).exp()
        for number, cuts in enumerate(self.plan.cuts, 1):
            exponents = self.node(number * step, cuts)
            for sums, (value, slope), cell in zip(cells, exponents, pairwise(ends), strict=False):
                for side, a in enumerate(cell):
                    sums[side] += weight * (value - slope * a).exp()
            beyond += weight * (exponents[-1][0] - ends[-1]).exp()
        highest = functools.reduce(arb.max, (end for sums in cells for end in sums), beyond)
        whole = (highest + self._rest(weight * at_first.exp())).upper()
        return whole if whole.is_finite() else arb.pos_inf()

    def node(self, y: arb, cuts: tuple[Cut | None, ...]) -> list[Linear]:
        """Return the least exponents at c + iy that are proved in each cell, and for all A."""
        size, phase = self._kernel(y)
        plain: Linear = size + self.top, 1.0
        chosen = [cut for cut in dict.fromkeys(cuts) if cut is not None]
        if not chosen:
            return [plain] * (len(cuts) + 1)
        mean, highest = self.second**2 / self.first, float(self.second.upper())
        envelope = Envelope(self.plan.line, y, float(mean), math.nextafter(highest, math.inf))
        proved = [(cut, *self._cut(cut, envelope, size, phase)) for cut in chosen]
        found = []
        for cell in pairwise(self.plan.ends):
            lines = [plain]
            for cut, value, reach in proved:
                if reach is None or _is_on_its_side(cut, reach, cell):
                    lines.append((value, cut.support.moment))
            found.append(
                min(lines, key=lambda line: max(float(line[0].mid()) - line[1] * a for a in cell))
            )
        return [*found, plain]

    def _kernel(self, y: arb) -> tuple[arb, arb]:
        """Return the logarithm of the size of e^{z(z+1)s²/2 − zε}/(z(z + 1)), and its phase."""
        c, half = arb(self.plan.line), arb(self.plan.smoothing) ** 2 / 2
        size = half * (c * (c + 1) - y * y) - c * self.epsilon
        size -= ((c * c + y * y) * ((c + 1) ** 2 + y * y)).log() / 2
        phase = half * (2 * c + 1) * y - y * self.epsilon - arb.atan2(y, c) - arb.atan2(y, c + 1)
        return size, phase

    def _cut(self, cut: Cut, envelope: Envelope, size: arb, phase: arb) -> tuple[arb, arb | None]:
        """Return the exponent at A = 0, and the largest phase (times the sign of λ) there."""
        tolerance = min(max(_ACCURACY * math.exp(min(cut.gain - 1, 50.0)), _LEAST), _MOST)
        value = size + self._sum(envelope, cut.support, tolerance)
        if cut.phase is None:
            return value, None
        slope = arb(cut.slope)
        value += slope * (slope.atan() + 2 * cut.turns * arb.pi() - phase)
        value -= (1 + slope * slope).log() / 2
        side = math.copysign(1.0, cut.slope)
        return value, side * phase + self._sum(envelope, cut.phase, _PHASE_TOLERANCE)

    def _sum(self, envelope: Envelope, support: Support, tolerance: float) -> arb:
        """Return the bound of Σ t_i (p Re γ + q Im γ), at A = 0."""
        highest = arb(envelope.supremum(support, tolerance / float(self.first)))
        square = arb(support.square) * self.second**2
        return self.first * highest + square + arb(support.moment) * self.top

    def _rest(self, first: arb) -> arb:
        """Return the bound of the nodes that the plan leaves out, from |F(c)| h/π."""
        c, step = arb(self.plan.line), arb(self.plan.step)
        y, s = len(self.plan.cuts) * step, arb(self.plan.smoothing)
        ratio = (s * s * y * step).expm1()
        return first * c * (c + 1) * (-((s * y) ** 2) / 2).exp() / y**2 / ratio


def _is_on_its_side(cut: Cut, reach: arb, cell: tuple[float, float]) -> bool:
    """Whether the phase is below 3π/2 + 2πm in a cell (for λ < 0, above −3π/2 + 2πm)."""
    assert cut.phase is not None
    turns = cut.turns if cut.slope > 0 else -cut.turns
    limit = (3 + 4 * turns) * arb.pi() / 2
    moment = cut.phase.moment
    return all(bool(reach - moment * arb(a) <= limit) for a in cell)

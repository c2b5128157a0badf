"""How much of the measured sums R x + z the outputs A x + L z of a counter show, L R = A.

An input moves the outputs by A e. With Gaussian noise their law under both streams is that of the
shortest change of the noise that does the same:

    μ²σ² = (A e)ᵀ(L Lᵀ)⁻¹(A e) = min{‖v‖² : L v = A e},

at most ‖R e‖², as v = R e is one. Each function here returns its largest value over all inputs.
With x chosen after earlier outputs it stays: L Lᵀ = C Cᵀ for a lower triangular C, so that the
outputs tell as much as C⁻¹A x + N(0, σ²I), which is `MatrixMechanism`'s case.

**Bridged grids.** Where the first level has a whole cell, the outputs determine, and are a function
of, the estimates of all cells of the first level and the differences of those of the cells of a
parent from their mean. These are uncorrelated from level to level. With T_i the sum of K_l/K_i over
the pooled l, an estimate has 1/T_i units, so that a move s_i of the cells of level i adds
T_i(‖s_i‖² − ‖s_{i−1}‖²/k_i), s_{i−1} being the sums of its parents. As T_i − T_{i+1}/k_{i+1} is
1 − K_{i+r+1}/K_i, all levels together are Σ (1 − K_{i+r+1}/K_i)‖s_i‖², with K_i = 0 for
i > h. Fewer outputs than the grids hold show no more. Of n < K_1 outputs, those up to K_i ≤ n are
parts of the one at K_i, which the upper levels make up, and bridges of the lower levels.

**Honaker.** A left child's estimate is an output. That of a right child only comes with its
parent's E = w m + (1 − w)(E_l + E_r), m of variance 1. Given all outputs inside of a vertex, its
estimate has a variance V and is moved by d: V = w² + (1 − w)²V_r, d = w for an input on the left,
where E_l, once out, adds d²/V; and d = w + (1 − w)d_r for one on the right.

**Balanced leaves.** An output is a sum of noise along the ones to its leaf: with c_v the sum on the
way to a vertex v, c_{v0} = c_v and c_{v1} = c_v + z_v. The least ‖z‖² with c = 0 at leaves up to
that of the input and 1 at later ones is found from the leaves up: below a vertex it is a quadratic
in c_v, p c² − 2qc + r, whose p is the same for all inputs. Of two inputs below one vertex the one
with the larger quadratic at 0 and at 1 is worse: c_v clipped to [0, 1] makes no z_v larger.

**Laplace noise** of scale b. If some v = L'u, with no entry beyond ±1, has v·R e = Δ₁, the outputs
have the largest loss of the measured sums, Δ₁/b: u·y is v·z, moved by Δ₁, and P(v·z > t) falls as a
power of t times e^{−t/b}, so that the ratio of both tails tends to e^{Δ₁/b}. So it is for the first
input. *Balanced leaves*: for each vertex above the first leaf take one output that uses it; no two
have another in common, so that their sum has entries 0 and 1. *Bridged grids* whose first cell is
an output: of the estimates of the first cell of each level and of their differences from the mean
of their siblings take a_i so that all first cells have the entry 1. With the share K_l/S_i of level
l in level i, a_l = (S_l/K_l)(1 − Σ_{i<l} (K_l/S_i) a_i) ≥ 0, the sum being at most 1/k_l of that of
the level above, which is 1. Cells elsewhere have a part of that sum less at most 1. *Honaker*:
of the estimates of the first vertices take α_i so that each has the entry 1. The sum then gives the
estimate of a first vertex of level i the weight 1/w_i, and its right child (1 − w_i)/w_i ≤ 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from dpassay.accountant.counting.bridge import Grids
from dpassay.accountant.counting.tree import own_weight
from dpassay.accountant.numbers.precision import ctx

Quadratics = tuple[arb, list[tuple[arb, arb]]]
"""p, and (q, r) of the inputs that may be the worst."""


def bridged(grids: Grids, moved: Sequence[Sequence[Fraction]]) -> Fraction:
    """Return Σ (1 − K_{i+r+1}/K_i)‖s_i‖² of the moves of each level's cells."""
    sizes = (*grids.cell_sizes(), *(0 for _ in range(grids.pooled + 1)))
    return sum(
        (
            (1 - Fraction(sizes[level + grids.pooled + 1], sizes[level])) * sum(s * s for s in own)
            for level, own in enumerate(moved)
        ),
        Fraction(0),
    )


def bridged_at_least(grids: Grids) -> Fraction:
    """Return what the outputs up to the largest whole cell show of the first input."""
    sizes = grids.cell_sizes()
    first = next(level for level, size in enumerate(sizes) if size <= grids.steps)
    found = 1 / grids.output_units(sizes[first])
    for level in range(first + 1, grids.height):
        found += (1 - Fraction(1, grids.arities[level])) / grids.share(level, level)
    return found


def honaker(height: int) -> Fraction:
    """Return the largest square over the inputs of a tree of a height, for any number of steps.

    Outputs at the end of the first vertex of the last level show as much as there is.
    """
    variance, moves = Fraction(1), [(Fraction(0), Fraction(1))]
    for level in range(1, height):
        own = own_weight(level)
        left = max(out + d * d / variance for out, d in moves)
        moves = [(left, own), *((out, own + (1 - own) * d) for out, d in moves)]
        variance = own**2 + (1 - own) ** 2 * variance
    return max(out + d * d / variance for out, d in moves)


def smooth(steps: int, ones: int) -> arb:
    """Return the largest square over the inputs, at flint's precision; `ones` is h/2.

    The way to the first leaf has c = 0, so that what branches off from it adds up.
    """
    return _smooth(steps, ones, int(ctx.prec))


@functools.lru_cache(maxsize=64)
def _smooth(steps: int, ones: int, precision: int) -> arb:
    @functools.cache
    def below(zeros: int, ones: int, count: int) -> Quadratics:
        """Return p and the worst (q, r) of the first leaves below a vertex, with ones to come."""
        if not zeros:
            return 1 / arb(ones), [(arb(0), arb(0))]
        first = min(count, math.comb(zeros - 1 + ones, ones))
        p, moves = below(zeros - 1, ones, first)
        if first == count:
            return p, moves
        later, more = moved(zeros, ones - 1, count - first)
        return p + later, _worst([*((q + later, r + later) for q, r in moves), *more])

    def moved(zeros: int, ones: int, count: int) -> Quadratics:
        """Return the same below a child v1, in c of its parent: the least over z + c."""
        if not (zeros and ones):
            return 1 / arb(ones + 1), [(arb(0), arb(0))]
        p, moves = below(zeros, ones, count)
        return p / (1 + p), [(q / (1 + p), r - q * q / (1 + p)) for q, r in moves]

    found, after = arb(0), arb(0)
    for place in range(1, ones + 1):  # of the first 1
        passed, whole = (math.comb(2 * ones - place, k) for k in (ones, ones - 1))
        if steps + 1 > passed:
            p, moves = moved(ones - place + 1, ones - 1, min(steps + 1 - passed, whole))
            found = functools.reduce(arb.max, (after + r for _, r in moves), found)
            after += p
    return found.max(after)


def _worst(moves: list[tuple[arb, arb]]) -> list[tuple[arb, arb]]:
    """Leave out inputs that another one exceeds at c = 0 and at c = 1."""
    kept: list[tuple[arb, arb]] = []
    for q, r in sorted(moves, key=lambda move: -float(move[1].mid())):
        if not any(r <= s and r - 2 * q <= s - 2 * p for p, s in kept):
            kept.append((q, r))
    return kept

"""What no factorisation mechanism for prefix sums can beat: a bound by nuclear norms.

A = L R are the n prefix sums, and noise with independent entries N(0, σ²) is added to R x. With
the longest column ‖R‖ of R, μ = ‖R‖/σ, and the mean squared error is ‖L‖²‖R‖²/(nμ²), in the
Frobenius norm of L. For every vector w, W its diagonal matrix,

    ‖A W‖_* = ‖L (R W)‖_* ≤ ‖L‖ ‖R W‖ ≤ ‖L‖ ‖R‖ (Σ w_t²)^{1/2},

‖·‖_* being the sum of the singular values: so the error is at least ‖A W‖_*²/(n Σ w_t² μ²), for
any w. Some w attains the optimum (γ₂ duality). Here w_t = ln(6 n cot(πx/2)), x = (t + ½)/n, nearly
the diagonal of (A'A)^{1/2}, constant on blocks: at n = 10, 100 and 1000 within 0.5, 0.2 and 0.2 %
of the best w.

The noise of R x may be any with that law: columns of Laplace noise with ‖R_t‖₁ ≤ 1 have
‖R_t‖ ≤ 1, so their error is at least twice the same bound, over ε² in the place of μ². Where
neighbours differ in up to c positions, of signs at random, ‖R x‖² has the mean Σ‖R_t‖² over these;
choosing t with probability c w_t²/Σw² (at most 1) multiplies the bound by c.

*The sum, rigorously.* With B = A⁻¹ and K = W² + s²BB', Σ_k (1 + s²/σ_k²)⁻¹ = tr K⁻¹W² is the
derivative of ln det(τW² + s²BB') at τ = 1. The determinant is s²ⁿ v_n, where (u, v) begins at
(0, 1) and each step adds u/s² to v and then τw² times v to u: all numbers are positive, and a block
of equal weights is a power of a matrix. By Poisson summation, with s = e^{jH},

    (2H/π) Σ_j s Σ_k (1 + s²/σ_k²)⁻¹ = Σ_k σ_k (1 + 2 Σ_{i ≥ 1} cos(2πi ln σ_k/H) sech(π²i/H)),

so that any of the terms on the left, over 1 + 2 Σ_i sech(π²i/H), are a lower bound.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from itertools import pairwise

from flint import arb, arb_mat

from dpassay.accountant.core.validate import integer
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx

_BITS = 128
"""A block of 2ᵏ equal steps loses k of these."""
_STEP = Fraction(1, 2)
"""H: the sum over i, which the bound loses, is 1e-8."""
_FACTOR = 6
"""In the logarithm of the weights: from 4 to 12 nothing changes by more than 0.1 % at n = 100."""
_REACH = 16.0
"""By how much ln s goes beyond the logarithms of all singular values: e^-16 of them is lost."""
_GROWTH = 1.5
"""Of blocks, from both ends of the stream: twice as many would gain less than 0.01 %."""


def least_units(steps: int, contributions: int = 1) -> Fraction:
    """Return a lower bound of the mean squared error of Gaussian factorisations, times μ².

    Half of that of all Laplace factorisations, times ε². Rounded down, near the optimum for
    `contributions` = 1.

    Raises
    ------
    InvalidInputError
        Unless steps, contributions ≥ 1.
    """
    steps = integer("steps", steps, least=1)
    contributions = integer("contributions", contributions, least=1)
    bound, most = _bound(steps)
    return bound * min(Fraction(contributions), most)


@functools.lru_cache(maxsize=64)
def _bound(steps: int) -> tuple[Fraction, Fraction]:
    """Return the bound for c = 1, and the largest c with c·w_t² ≤ Σw²."""
    edges = _edges(steps)
    blocks = [(_weight((a + b) / 2 / steps, steps), b - a) for a, b in pairwise(edges)]
    squares = sum((w * w * size for w, size in blocks), Fraction(0))
    heaviest = max(w for w, _ in blocks)
    with ctx.workprec(_BITS):
        step = arb(_STEP.numerator) / _STEP.denominator
        low = math.log(float(min(w for w, _ in blocks)) / 2) - _REACH
        high = math.log(float(heaviest) * steps) + _REACH
        nodes = range(math.floor(low / float(_STEP)), math.ceil(high / float(_STEP)) + 1)
        total = sum((_term((j * step).exp(), blocks) for j in nodes), start=arb(0))
        base = arb.pi() ** 2 / step
        rest = sum((2 / (base * i).cosh() for i in range(1, 9)), start=arb(0))
        rest += 8 * (-9 * base).exp()  # sech(x) ≤ 2e^{−x}, and e^{−base} < ½
        norm = 2 * step / arb.pi() * total / (1 + rest)
        bound = norm**2 / (steps * arb(squares.numerator) / squares.denominator)
        return Fraction(Interval.of_ball(bound).lower), squares / (heaviest * heaviest)


def _term(s: arb, blocks: list[tuple[Fraction, int]]) -> arb:
    """Return s·tr K⁻¹W²."""
    inverse = 1 / (s * s)
    state = arb_mat([[0], [1], [0], [0]])  # u, v and their derivatives by τ
    for weight, size in blocks:
        square = (arb(weight.numerator) / weight.denominator) ** 2
        x = square * inverse
        step = arb_mat(
            [
                [1 + x, square, 0, 0],
                [inverse, 1, 0, 0],
                [x, square, 1 + x, square],
                [0, 0, inverse, 1],
            ]
        )
        state = step**size * state
    u, v, du, dv = (state[i, 0] for i in range(4))
    found: arb = s * (dv + du * inverse) / (v + u * inverse)
    return found


def _weight(x: float, steps: int) -> Fraction:
    """Return the weight at the part x of the stream, positive; any number would do."""
    value = math.log(_FACTOR * steps / math.tan(math.pi * x / 2))
    return Fraction(round(value * 1024), 1024)


def _edges(steps: int) -> list[int]:
    """Return where blocks begin, and the end: their lengths grow from both ends to the middle."""
    half, length, edges = (steps + 1) // 2, 1.0, [0]
    while edges[-1] < half:
        edges.append(min(half, edges[-1] + int(length)))
        length = max(length + 0.25, length * _GROWTH if length >= 4 else length)
    return sorted({*edges, *(steps - edge for edge in edges)})

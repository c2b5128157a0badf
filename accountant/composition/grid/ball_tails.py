"""Tails of the loss of noise e^{−‖x‖₂} in a few dimensions, in floats: sums of Gauss–Legendre.

With ψ from the end, L = t cos ψ, P has the density f(ψ) = (sin^d ψ + c sin^{d−2} ψ) e^{z cos ψ}/W
on [0, π] and Q that of −z (`dpassay.accountant.geometry.ball_loss`). Masses from 0 on are sums over
equal panels and one part of a panel. On a panel of half-width h the ellipse of ρ = 1/h has an
imaginary part below 1/2, where |sin| and |cos| are at most b = cosh(1/2), so that n nodes are off
by at most

    E = h (64/15) M h^{2n}/(1 − h²),  M = (b^d + c b^{d−2}) e^{bz}

(Trefethen, Approximation Theory and Approximation Practice, theorem 19.3). What lies before the
first end has at least c e^{−z} (4h/π)^{d−1}/(d − 1), and E falls faster than that with h < 1/2.

*Rounding.* |ψ f′/f| ≤ d + 2z up to π/2, so that a relative rounding of ψ is one of f. Beyond, sin ψ
is off by a few units at most, and f by (1 + c) d times that for P, e^z times as much for Q, against
the mass before π/2.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb

from dpassay.accountant.composition.grid.survival import UNIT, Array, Survival, Tail
from dpassay.accountant.geometry.ball_loss import shape
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.ball_noise import BallNoisePair

MOST_DIMENSIONS, MOST_DISTANCE = 8, ExactReal.of_rational(16)
"""What the bounds at the head allow: 2n + 1 exceeds d − 1 by far, and e^z is small."""
_PANELS, _NODES = 1 << 12, 6
"""E is below 1e-30 of what it is added to; a panel's end is looked up, its nodes are computed."""
_SIZE = 1.13
"""Above cosh(1/2)."""
_OPERATIONS = 64
"""Roundings of one value of f, and of a sum over nodes, at most."""
_ROOM = 8
"""The same of an argument."""


def ball_noise(pair: BallNoisePair) -> Survival:
    """Return the tails; the distance and the dimension are at most those above."""
    d, t = pair.dimension, float(pair.distance.ball().mid())
    c, whole = (float(each.mid()) for each in shape(pair.distance, d))
    z, h = t / 2, math.pi / (2 * _PANELS)
    roots = [arb.legendre_p_root(_NODES, k, weight=True) for k in range(_NODES)]
    nodes = np.array([float(((1 + x) / 2).mid()) for x, _ in roots])
    weights = np.array([float((w / 2).mid()) for _, w in roots])

    def between(a: Array, width: Array) -> tuple[Array, Array]:
        """Return ∫ f and ∫ f of −z over [a, a + width]."""
        p, q = np.zeros(len(a)), np.zeros(len(a))
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
            psi = a + width * node
            sine, growth = np.sin(psi), np.exp(z * np.cos(psi))
            size = weight * sine ** (d - 2) * (sine * sine + c)
            p += size * growth
            q += size / growth
        return p * width / whole, q * width / whole

    edges = np.arange(_PANELS + 1) * (math.pi / _PANELS)
    sums = [
        np.append(0.0, np.cumsum(each, dtype=np.longdouble)).astype(float)
        for each in between(edges[:-1], np.diff(edges))
    ]
    off_panel = h ** (2 * _NODES + 1) * 5 * (_SIZE**d + c * _SIZE ** (d - 2)) * math.exp(_SIZE * z)
    least = c * math.exp(-z) * (4 * h / math.pi) ** (d - 1) / (d - 1)
    beyond = _ROOM * UNIT * (1 + c) * d * math.pi / whole
    relative = UNIT * (_OPERATIONS + _ROOM * (d + 2 * z)) + (_PANELS + 1) * off_panel / least
    errors = [
        relative + beyond * most / float(each[_PANELS // 2])
        for each, most in zip(sums, (1.0, math.exp(z)), strict=True)
    ]

    def survival(l: Array) -> Tail:  # noqa: E741
        share = np.clip((t - l) / (2 * t), 0.0, 1.0)
        psi = 2 * np.arcsin(np.sqrt(share))
        at = np.minimum((psi * (_PANELS / math.pi)).astype(int), _PANELS)
        start = np.minimum(edges[at], psi)
        p, q = between(start, psi - start)
        growth = np.exp(np.minimum(l, t))  # nothing is above t
        before = l <= -t * (1 + _ROOM * UNIT)
        above_p = np.where(before, 1.0, np.minimum(sums[0][at] + p, 1.0))
        above_q = growth * np.where(before, 1.0, np.minimum(sums[1][at] + q, 1.0))
        # {L > l'} stands for {L > l}: ψ is off by at most 3√(|l' − l|/t), f at most (1 + c)e^z
        off = 2 * _ROOM * UNIT * t
        between_both = 3 * math.sqrt(off / t) * (1 + c) * math.exp(z) / whole
        error_p = errors[0] * above_p + off * between_both * (np.abs(l) < t * (1 + _ROOM * UNIT))
        error_q = (errors[1] + 4 * UNIT * (1 + np.abs(l))) * above_q
        return Tail(above_p, above_q, error_p, error_q)

    return survival

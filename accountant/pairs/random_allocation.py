"""A record in one of t Gaussian steps, chosen uniformly, against none.

W = dP/dQ = (1/t) Σ_j e^{μ Z_j − μ²/2} for P = (1/t) Σ_j N(μ e_j, I) and Q = N(0, I). With
X = e^{μZ − μ²/2}, ψ(λ) = E e^{−λX/t} and φ = ψ^t, the Laplace transform of W under Q, one has

    Q(W ≤ K) = I₁[φ],   P(W ≤ K) = I₁[φ₁],   E_Q(K − W)⁺ = I₂[φ],
    I_m[f] = (1/2πi) ∫ e^{λK} f(λ) λ^{−m} dλ,   φ₁ = E_Q W e^{−λW} = ψ(λ)^{t−1} ψ(λ e^{μ²}),

on any curve from below to above, right of 0. What is not small follows from what is by subtraction,
at as much more precision as that loses: E(W − K)⁺ = 1 − K + E(K − W)⁺.

The integrals are enclosed in `accountant.pairs.laplace_inversion`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, final

from flint import arb, arb_series

from accountant.core.pair import Pair, Tails
from accountant.errors import NotApplicableError, UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import (
    GRID_WIDTH,
    START_PRECISION,
    asked_width,
    bits_of,
    within,
)
from accountant.numbers.precision import ctx
from accountant.pairs.laplace_inversion import Sum, inverted

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG_2 = math.log(2)
_MOST_LOST = 4000
"""Bits that a subtraction may lose: δ down to about 1e-1200."""
_MOST_ORDER = 400
"""Largest order whose moment is a coefficient of a power series."""
_SPARE = 24
"""Bits by which values may be less accurate than the precision."""
_MARGIN = 40
"""Bits beyond a width that is asked for: ε is relatively less certain than δ near 0."""
_ROUGH = 34
"""Bits of an estimate, of which `_SPARE` are lost."""
_MOST_SECANTS = 20
"""Steps of an estimate: secants settle in half as many."""
_SETTLED = 1e-5
"""Relative step of a secant that ends the search: the next one would be of its square."""


@final
@dataclass(frozen=True)
class RandomAllocationPair(Pair):
    """P = (1/t) Σ N(μ e_j, I) against Q = N(0, I), t ≥ 2; or the reverse, with the mixture last."""

    mu: ExactReal
    steps: int
    mixed_first: bool = True

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return E(W − e^ε)⁺, or E(1 − e^ε W)⁺ with the mixture last, for any real ε."""
        width, wanted = asked_width.get(), ctx.prec
        if width is not None and wanted <= START_PRECISION:  # a raised precision is meant
            wanted = min(wanted, bits_of(width) + _MARGIN)
        with ctx.workprec(wanted):
            if not self.mixed_first:
                return self._below(2, -epsilon) * epsilon.ball().exp()
            return _complement(
                lambda: self._below(2, epsilon) - epsilon.ball().expm1(),
                epsilon.ball().exp().max(1),
            )

    def estimate_log_delta(self, epsilon: float) -> float | None:
        """Return ln H(ε) from few bits, or None where they are lost."""
        with ctx.workprec(_ROUGH), within():
            try:
                found = self.hockey_stick(ExactReal.of_rational(Fraction(epsilon))).log()
            except UndecidedError:
                return None
        return float(found.mid()) if found.is_finite() else None

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε ≥ 0 with ln H(ε) = log_delta from few bits, by secants of a concave ln H."""
        low, at_low = 0.0, self.estimate_log_delta(0.0)
        if at_low is None or at_low <= log_delta:
            return None
        step = float(self.mu) / 8
        for _ in range(_MOST_SECANTS):
            high = low + step
            at_high = self.estimate_log_delta(high)
            if at_high is None:
                return None
            slope = (at_high - at_low) / step
            if slope >= 0:
                return None
            off = (log_delta - at_high) / slope
            if abs(off) <= _SETTLED * high:
                return high + off
            low, at_low, step = high, at_high, min(max(off, -high / 2), 2 * high)
        return None

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return P(W > K), P(W ≤ K), Q(W > K) and Q(W ≤ K), as the loss is ±ln W.

        The former are 1 minus the latter: to the precision, but not relative to themselves.
        """
        at = epsilon if self.mixed_first else -epsilon
        if (far := self._far(at)) is not None:
            low_q, low_p, high_q, high_p = 1 - far, 1 - far, far, far
        else:
            low_q, low_p = self._below(1, at), self._below(1, at, biased=True)
            high_q, high_p = (1 - low_q).max(arb(0)), (1 - low_p).max(arb(0))
        if self.mixed_first:
            return Tails(high_p, low_p, high_q, low_q)
        return Tails(low_q, high_q, low_p, high_p)

    def _far(self, at: ExactReal) -> arb | None:
        """Return [0, b] where P(W > K) ≤ E W^a/K^{a−1} ≤ b = exp(−(ln K − μ²/2)²/2μ²) is tiny.

        E W^a ≤ E X^a = e^{a(a−1)μ²/2}, by Jensen's inequality; and Q(W > K) is less.
        """
        mu = self.mu.ball()
        away = at.ball() / mu - mu / 2
        bound = (-away * away / 2).exp()
        if away > 0 and bound < arb(2) ** (-ctx.prec):
            return arb(0).union(bound.upper())
        return None

    def _below(self, power: int, at: ExactReal, *, biased: bool = False) -> arb:
        """Return I_m[φ], or I_m[φ₁], at K = e^at: positive, as accurate as the precision says."""
        return inverted(Sum(self.mu, self.steps), power, at, biased=biased)

    def renyi(self, order: arb) -> arb:
        """Return ln E_Q W^a/(a − 1) at an integer a ≥ 2, mixture first: a!(Σ_k m_k x^k/k!)^t at x^a

        with m_k = E(X/t)^k = e^{k(k−1)μ²/2} t^{−k}. Raises NotApplicableError elsewhere.
        """
        whole = order.unique_fmpz() if order.is_exact() else None
        if not self.mixed_first or whole is None or not 2 <= whole <= _MOST_ORDER:
            raise NotApplicableError(
                "The Rényi divergence of a random allocation is computed at integer orders from 2 "
                f"to {_MOST_ORDER} in direction REMOVE. Ask for delta, epsilon or the trade-off "
                "function, which are known in both directions."
            )
        a, square, t = int(whole), self.mu.ball() ** 2, arb(self.steps)
        one = [
            (k * (k - 1) * square / 2).exp() / t**k / arb.gamma(arb(k + 1)) for k in range(a + 1)
        ]
        moment = (arb_series(one, prec=a + 1) ** arb_series([t], prec=a + 1))[a]
        return (moment * arb.gamma(arb(a + 1))).log() / (a - 1)

    def kullback_leibler(self) -> arb:
        """Raise NotApplicableError."""
        raise NotApplicableError(
            "The Kullback–Leibler divergence of a random allocation has no closed form. Ask for "
            "delta, epsilon, the trade-off function or a Rényi divergence of integer order."
        )

    def closed_rho(self) -> arb | None:
        """Return μ²/2, mixture first: t^{1−a} e^{a(a−1)μ²/2} ≤ E W^a ≤ e^{a(a−1)μ²/2}."""
        return self.rho_bound() if self.mixed_first else None

    def rho_bound(self) -> arb:
        """Return μ²/2, that of one step: Rényi divergences are jointly quasi-convex."""
        return self.mu.ball() ** 2 / 2

    grid_width: ClassVar[Fraction] = Fraction(1, 10**4)
    """That of several epochs: the width of the grid is paid for with all steps of an epoch."""

    @property
    def usual_width(self) -> Fraction:
        """Relative width of answers for which none is named: what comes within about a second."""
        return GRID_WIDTH

    def max_loss(self) -> arb:
        """Return infinity: W takes all positive values."""
        return arb.pos_inf()

    def reverse(self) -> RandomAllocationPair:
        """Return (Q, P)."""
        return RandomAllocationPair(self.mu, self.steps, not self.mixed_first)

    def law(self) -> dict[str, object]:
        """Return {"law": "random-allocation", "mu", "steps", "mixture"}, the mixture "P" or "Q"."""
        return {
            "law": "random-allocation",
            "mu": str(self.mu),
            "steps": self.steps,
            "mixture": "P" if self.mixed_first else "Q",
        }

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe {L > ε}."""
        sign = ">" if self.mixed_first else "<"
        at = epsilon if self.mixed_first else -epsilon
        return f"the outputs with (1/{self.steps})*sum(exp(mu*z_j - mu^2/2)) {sign} exp({at})"


def _complement(value: Callable[[], arb], scale: arb) -> arb:
    """Return a small difference of balls, at as much more precision as it loses."""
    wanted, lost = ctx.prec, 0
    while True:
        with ctx.workprec(wanted + lost):
            found = value()
        short = wanted - _SPARE - found.rel_accuracy_bits()
        if short <= 0 or lost > _MOST_LOST or found.is_zero():
            return found.max(arb(0))
        below = float((found.abs_upper() / scale).log().mid()) / _LOG_2
        lost += max(16, min(short, 2 * int(-below) + 64 if math.isfinite(below) else short))

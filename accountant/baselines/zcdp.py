"""Zero-concentrated differential privacy: ρ adds up (Bun and Steinke 2016)."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.validate import probability
from accountant.errors import expected
from accountant.mechanisms.wrappers.composed import Composed
from accountant.numbers.exact import Number
from accountant.numbers.interval import Interval, enclose
from accountant.questions import guarantees


def zcdp(
    mechanism: Mechanism, count: int, delta: Number, *, adjacency: Adjacency | str | None = None
) -> Interval:
    """Enclose ρ + 2√(ρ ln(1/δ)) (their Proposition 1.3) for the sum ρ of the parts' least ρ.

    `accountant.questions.notions.epsilon_of_zcdp` converts the same ρ better. +∞ where a part has
    no ρ.
    """
    target = probability("delta", delta)
    if target.sign == 0:
        raise expected("delta", delta, "> 0")
    rho = Fraction(0)
    for part, n in Composed(mechanism, count).parts():
        value = guarantees.rho(part, adjacency=adjacency).upper
        if math.isinf(value):
            return Interval.of_ball(arb.pos_inf())
        rho += n * Fraction(value)
    total = Interval.of_exact(rho)

    def epsilon() -> arb:
        ball = total.ball()
        return ball + 2 * (ball * -target.ball().log()).sqrt()

    found = enclose(epsilon, relative_width=Fraction(1, 10**25))
    return found

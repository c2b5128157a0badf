"""The central limit approximation of composition: no bound in either direction.

The loss of many releases is nearly normal, so that their trade-off function is near G_μ (Dong, Roth
and Su 2022, Theorem 5). Of Poisson-subsampled releases μ = q√(k χ²), of others μ² = k(D(P‖Q) +
D(Q‖P)), which agree to leading order (Bu, Dong, Long and Su 2020). It is often *below* the truth,
by far so where δ is small: the tails of the loss are not normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.composition import invert
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.subsampled import PoissonSubsampled
from dpassay.accountant.numbers.exact import Number
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.questions import profile

_WIDTH = Fraction(1, 10**15)
_ERROR_WIDTH = Fraction(1, 10**6)


@final
@dataclass(frozen=True, slots=True)
class CentralLimit:
    """An approximation, and by how much it is wrong where the exact value is known."""

    mu: Interval
    """Encloses the μ of the approximation (not one that the mechanism has)."""
    epsilon: Interval
    """Encloses the approximate ε: no bound of the true one."""
    error: Interval | None
    """Encloses approximate minus true ε; None where no engine gives the latter."""


def central_limit(
    mechanism: Mechanism,
    count: int,
    delta: Number,
    *,
    adjacency: Adjacency | str | None = None,
    with_error: bool = True,
) -> CentralLimit:
    """Return the central limit approximation of ε at δ, and its error.

    Raises
    ------
    NotApplicableError
        If a divergence that it needs is infinite or not known.
    """
    target, relation = probability("delta", delta), Adjacency.read(adjacency)
    whole = Composed(mechanism, count)

    def square() -> arb:
        return sum((n * _share(part, relation) for part, n in whole.parts()), start=arb(0))

    if not square().is_finite():
        raise NotApplicableError("The central limit approximation needs finite divergences.")
    mu = enclose(lambda: square().sqrt(), relative_width=_WIDTH)
    ends = [
        profile.epsilon(Gaussian(standard_deviation=1, l2_sensitivity=end), target)
        for end in (mu.lower, mu.upper)
    ]
    approximate = ends[0].hull(ends[1])
    error = None
    if with_error:
        try:
            true = profile.epsilon(whole, target, adjacency=relation, relative_width=_ERROR_WIDTH)
            error = Interval.of_ball(approximate.ball() - true.ball())
        except (NotApplicableError, UndecidedError):
            error = None
    return CentralLimit(mu, approximate, error)


def _share(part: Mechanism, relation: Adjacency | None) -> arb:
    """Return what one release adds to μ², by the worst pair of several."""
    if isinstance(part, PoissonSubsampled):
        rate, pairs = part.sampling_prob.ball(), part.mechanism.worst_case(relation).remove
        return rate**2 * invert.most([pair.renyi(arb(2)) for pair in pairs]).expm1()
    worst = part.worst_case(relation).pairs(None)
    losses = [pair.kullback_leibler() + pair.reverse().kullback_leibler() for pair in worst]
    return invert.most(losses)

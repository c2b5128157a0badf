"""The privacy profile and the law of the privacy loss of the rank-one Gaussian law.

Arguments are exact numbers; results are balls of about the ambient relative precision. The
arguments are turned into balls at a raised internal precision, and the boundary of the worst
event is integrated there; the precision rises until the result is accurate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from flint import arb

from dpassay.accountant.core.pair import Tails
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.rank_one.curve import GUARD_BITS, Curve, TouchingError
from dpassay.accountant.pairs.rank_one.integrals import Boundary

_ROUNDS = 4
"""Precisions that are tried: each has twice the extra bits of the last one."""
_NEAR_ONE = 0.75
"""P(L > ε) from which on its complement is computed by itself."""
_LARGEST_REACH = 4096
"""−ln of probabilities below which an upper bound is enough."""
_BOUND_PRECISION = 64
"""Bits of that bound."""

Question: TypeAlias = Callable[[Boundary], arb]


class Arguments(NamedTuple):
    """ε ≥ 0, the dimension M > 2 and the ratio κ = Δ/√σ_* > 0."""

    epsilon: ExactReal
    dimension: int
    ratio: ExactReal

    def boundary(self) -> Boundary:
        """Return the boundary of {L > ε}, at the ambient precision."""
        a = arb(self.dimension - 1) / 2
        return Boundary.of(Curve(self.epsilon.ball(), a, self.ratio.ball()))

    def at(self, epsilon: ExactReal) -> Arguments:
        """Return the same at another ε."""
        return self._replace(epsilon=epsilon)

    @property
    def reach(self) -> Fraction:
        """An upper bound on (ε − κ²/2)⁺/(M − 1): the worst event shrinks as e^{−reach}."""
        excess = math.floor(self.epsilon) + 1 - Fraction(math.floor(self.ratio.squared)) / 2
        return max(excess, Fraction(0)) / (self.dimension - 1)


def hockey_stick(epsilon: ExactReal, dimension: int, ratio: ExactReal) -> arb:
    """Return δ(ε) = sup_S P(S) − e^ε Q(S) for any real ε.

    The isometry x ↦ s − x exchanges P and Q, so this is the divergence in both directions, and
    δ(−ε) = 1 − e^{−ε} + e^{−ε} δ(ε) carries it to negative ε.
    """
    if epsilon.sign >= 0:
        return _hockey_stick(Arguments(epsilon, dimension, ratio), ctx.prec)
    positive = _hockey_stick(Arguments(-epsilon, dimension, ratio), ctx.prec)
    eps = epsilon.ball()
    return -eps.expm1() + eps.exp() * positive


def tails(epsilon: ExactReal, dimension: int, ratio: ExactReal) -> Tails:
    """Return P and Q of {L > ε} and {L ≤ ε} for any real ε.

    L has no atom, and has under P the law that −L has under Q: P(L > −ε) = Q(L ≤ ε).
    """
    size = epsilon if epsilon.sign >= 0 else -epsilon
    found = _tails(Arguments(size, dimension, ratio), ctx.prec)
    return found if epsilon.sign >= 0 else found.reflected


@functools.lru_cache(maxsize=512)
def _hockey_stick(arguments: Arguments, precision: int) -> arb:
    """δ(ε) for ε ≥ 0; a pure function, remembered because a verdict asks it several times."""
    return _accurate(Boundary.hockey_stick, arguments, precision)


@functools.lru_cache(maxsize=512)
def _tails(arguments: Arguments, precision: int) -> Tails:
    """Both tails for ε ≥ 0, where Q(L > ε) ≤ 1/2."""
    p_above = _accurate(Boundary.p_above, arguments, precision)
    q_above = _accurate(Boundary.q_above, arguments, precision)
    if p_above < _NEAR_ONE:
        p_below = 1 - p_above
    else:
        p_below = _accurate(Boundary.p_below, arguments, precision)
    return Tails(p_above, p_below, q_above, 1 - q_above)


def _accurate(question: Question, arguments: Arguments, precision: int) -> arb:
    """Answer to `precision` bits where a few rounds of rising internal precision reach that.

    Where the worst event is as small as e^{−reach} the curve is resolved with as many more
    bits. Beyond the largest reach (P(L > ε) < e^{−4000}, so P(L ≤ ε) is never asked) the answer,
    which falls with ε, is bounded by its value there.
    """
    if arguments.reach > _LARGEST_REACH:
        most_reach = _LARGEST_REACH * (arguments.dimension - 1)
        whole = Fraction(math.floor(arguments.ratio.squared))
        nearer = arguments.at(ExactReal.of_rational(whole / 2 + most_reach - 1))
        most = _raised(question, nearer, _BOUND_PRECISION)
        return arb(0).union(most if most is not None else arb(1))
    found = _raised(question, arguments, precision)
    if found is None:  # ε is, to all those bits, where the curve just touches the axis
        found = _beside(question, arguments, precision)
    return arb(0).union(arb(1)) if found is None else found


def _raised(question: Question, arguments: Arguments, precision: int) -> arb | None:
    """Answer at rising precision; None where the curve was never told from touching the axis."""
    extra = GUARD_BITS + arguments.dimension.bit_length() + 3 * math.ceil(arguments.reach)
    best: arb | None = None
    for _ in range(_ROUNDS):
        with ctx.workprec(precision + extra):
            try:
                best = question(arguments.boundary())
            except TouchingError:
                pass
            else:
                if best.is_finite() and best.rel_accuracy_bits() >= precision:
                    return best
        extra = 2 * extra + precision // 2
    return best


def _beside(question: Question, arguments: Arguments, precision: int) -> arb | None:
    """Enclose the answer, monotone in ε, by those at two neighbours of ε."""
    ends = []
    for sign in (-1, 1):
        share = ExactReal.of_rational(1 + Fraction(sign, 1 << precision))
        end = _raised(question, arguments.at(arguments.epsilon * share), precision)
        if end is None:
            return None
        ends.append(end)
    return ends[0].union(ends[1])

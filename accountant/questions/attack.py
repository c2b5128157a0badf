"""Success of attacks on a record: membership inference, posterior belief, reconstruction.

P is the law of the release if a record is in the data, and Q the law if it is not (or is another
one). The attacker knows both laws and everything except that record. All three numbers are suprema
over the neighbours, as δ(ε) and the power 1 − β(α) are, and the worst neighbours attain them.

**Membership.** The attacker believes in P with prior probability π and guesses which law was used.
Guessing P on an event S is right with probability π P(S) + (1 − π)(1 − Q(S)). So the best guess is
right with probability 1 − π + π H(ln((1 − π)/π)), H(ε) = sup P(S) − e^ε Q(S). With
m = min(π, 1 − π), and the less likely law in the role of P,

    success(π) = 1 − m + m δ(ln((1 − m)/m)).

Without a release the probability is 1 − m. At π = 1/2 it is (1 + δ(0))/2, so the advantage is the
total variation distance.

**Posterior.** Given an event S, the posterior probability of P is
π P(S)/(π P(S) + (1 − π) Q(S)), which increases with P(S)/Q(S). P(S) is at most the power at level
Q(S), and the ratio of power to level does not increase with the level, since β is convex and
β(0) ≤ 1. So over all events of probability at least α without the record, the largest posterior is

    posterior(π, α) = π w/(π w + (1 − π) α),   w = 1 − β(α).

For α = 0 (all events) it is π e^ε/(π e^ε + 1 − π) with the least pure ε, or 1 if there is no finite
one.

**Reconstruction.** The record is drawn from a law that the attacker knows. Any rule may define
which guesses are right. Suppose that without the release no guess is right with probability above
κ; for example κ = 1/n for the exact record among n equally likely ones. For each record let S be
the event that the attacker's guess is right. If the data do not contain the record, the average of
Q(S) over records is at most κ, because the guess is independent of the record. If they do, the
success is the average of P(S). It is at most the power at level κ, because P(S) is at most the
power at level Q(S), and the power is concave in the level (Hayes, Mahloujifar and Balle 2023,
"Bounding training data reconstruction in DP-SGD", Theorem 2; Kaissis et al. 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.exact import ExactReal, Number
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions.profile import delta, epsilon
from dpassay.accountant.questions.tradeoff import power

_ONE = ExactReal.of_rational(1)
_BITS = 192
"""Precision in bits of the final formula: more than the ends of an interval have."""


def membership(
    mechanism: Mechanism,
    prior: Number,
    *,
    adjacency: Adjacency | str | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the largest probability of guessing correctly whether the record is in the data.

    Parameters
    ----------
    mechanism, adjacency, method, relative_width
        As for `dpassay.accountant.questions.profile.delta`; the width is that of δ.
    prior
        Prior probability in (0, 1) that the record is in the data. A prior and 1 − prior have the
        same answer, because the worst neighbours are considered in both orders.

    Raises
    ------
    InvalidInputError
        If the prior is not in (0, 1).
    """
    p = _inside("prior", prior)
    less = min(p, _ONE - p)
    at = ((_ONE - less) / less).log()
    words: dict[str, Any] = {
        "adjacency": adjacency,
        "method": method,
        "relative_width": relative_width,
    }
    return _rising(delta(mechanism, at, **words), lambda gain: 1 - less.ball() * (1 - gain))


def posterior(
    mechanism: Mechanism,
    prior: Number,
    alpha: Number = 0,
    *,
    adjacency: Adjacency | str | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the largest posterior probability that the record is in the data, given an event.

    Parameters
    ----------
    mechanism, adjacency, method, relative_width
        As for `dpassay.accountant.questions.profile.delta`; the width is that of the power.
    prior
        The prior probability that the record is in the data, in (0, 1).
    alpha
        Only events whose probability without the record is at least alpha, in [0, 1], are
        considered. The default 0 considers all events.

    Raises
    ------
    InvalidInputError
        If the prior is not in (0, 1), or alpha not in [0, 1].
    """
    p, level = _inside("prior", prior), probability("alpha", alpha)
    words: dict[str, Any] = {
        "adjacency": adjacency,
        "method": method,
        "relative_width": relative_width,
    }
    if level.sign == 0:
        odds = ((_ONE - p) / p).log()
        most = epsilon(mechanism, 0, **words)
        return _rising(most, lambda loss: 1 / (1 + (odds.ball() - loss).exp()))
    against = (_ONE - p) * level / p
    return _rising(power(mechanism, level, **words), lambda w: 1 / (1 + against.ball() / w))


def reconstruction(
    mechanism: Mechanism,
    baseline: Number,
    *,
    adjacency: Adjacency | str | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose an upper bound on the probability of reconstructing a record.

    It is the largest power of a test at level `baseline`.

    Parameters
    ----------
    mechanism, adjacency, method, relative_width
        As for `dpassay.accountant.questions.tradeoff.power`.
    baseline
        Probability in [0, 1] that the best guess without the release is right, such as 1/n for n
        equally likely records.

    Raises
    ------
    InvalidInputError
        If the baseline is not in [0, 1].
    """
    return power(
        mechanism,
        probability("baseline", baseline),
        adjacency=adjacency,
        method=method,
        relative_width=relative_width,
    )


def _inside(name: str, value: Number) -> ExactReal:
    number = probability(name, value)
    if number.sign == 0 or number == _ONE:
        raise expected(name, value, "in (0, 1)", "Give a probability.")
    return number


def _rising(found: Interval, function: Callable[[arb], arb]) -> Interval:
    """Enclose the value of an increasing function at a number in an interval."""
    with ctx.workprec(_BITS):
        low, high = (
            arb.pos_inf() if end.is_infinite() else ball(Fraction(end))
            for end in (found.lower, found.upper)
        )
        return Interval.between(function(low), function(high))

"""What an attacker gains: membership, posterior belief, reconstruction.

P is the law of the release where a record is in the data, Q where it is not (or is another one);
the attacker knows both, and everything but that record. All three numbers are largest over the
neighbours, as δ(ε) and the power 1 − β(α) are, and the worst neighbours attain them.

**Membership.** The attacker holds P for true with probability π before the release, and guesses
which law it was. Guessing P on an event S is right with probability π P(S) + (1 − π)(1 − Q(S)), so
the best guess is right with probability 1 − π + π H(ln((1 − π)/π)), H(ε) = sup P(S) − e^ε Q(S).
With m = min(π, 1 − π), and the less likely law in the place of P,

    success(π) = 1 − m + m δ(ln((1 − m)/m)).

Without a release it is 1 − m. At π = 1/2 it is (1 + δ(0))/2: the advantage is the total variation.

**Posterior.** After an event S the attacker holds P for true with probability
π P(S)/(π P(S) + (1 − π) Q(S)), which rises with P(S)/Q(S). P(S) is at most the power at level Q(S),
and the power over the level never rises (β is convex and β(0) ≤ 1): of all events that happen with
probability α or more without the record, the largest posterior is

    posterior(π, α) = π w/(π w + (1 − π) α),   w = 1 − β(α).

For α = 0, all events, it is π e^ε/(π e^ε + 1 − π) with the least pure ε; 1 where there is none.

**Reconstruction.** The record is drawn from a law that the attacker knows, and a guess counts as
right by any rule. Say that without the release no guess is right with probability above κ: 1/n for
n records as likely as each other, guessed exactly. For the neighbour that does not depend on the
record, the guess is right with probability Q(S) ≤ κ given by the event S of each record; with the
release, with probability P(S). So it is right with probability at most the power at level κ, as the
power is concave in the level (Hayes, Mahloujifar and Balle 2023, "Bounding training data
reconstruction in DP-SGD", Theorem 2; Kaissis et al. 2023).
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
"""Of the last formula: more than the ends of an interval have."""


def membership(
    mechanism: Mechanism,
    prior: Number,
    *,
    adjacency: Adjacency | str | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the probability that the best guess of which neighbour was used is right.

    Parameters
    ----------
    mechanism, adjacency, method, relative_width
        As for `dpassay.accountant.questions.profile.delta`; the width is that of δ.
    prior
        Probability in (0, 1), before the release, that the record is in the data. A prior and
        1 − prior have the same answer: the worst neighbours are taken in both orders.

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
    """Enclose the largest probability of the record being in the data, after seeing an event.

    Parameters
    ----------
    mechanism, adjacency, method, relative_width
        As for `dpassay.accountant.questions.profile.delta`; the width is that of the power.
    prior
        The same probability before the release, in (0, 1).
    alpha
        Only events that have at least this probability, in [0, 1], without the record are
        considered; 0, the default, considers all of them.

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
    """Enclose a bound on the success of guessing a record: the largest power of a test at a level.

    Parameters
    ----------
    mechanism, adjacency, method, relative_width
        As for `dpassay.accountant.questions.tradeoff.power`.
    baseline
        Success in [0, 1] of the best guess without the release, such as 1/n for one of n records.

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
    """Enclose the value of a function that rises, at a number in an interval."""
    with ctx.workprec(_BITS):
        low, high = (
            arb.pos_inf() if end.is_infinite() else ball(Fraction(end))
            for end in (found.lower, found.upper)
        )
        return Interval.between(function(low), function(high))

"""Rows about events, compositions and conversions: what accountants of other libraries say."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.mechanisms import Composed, Gaussian, Guaranteed, PoissonSubsampled
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.pairs import invert
from dpassay.accountant.questions import guarantees, notions, profile, tradeoff
from dpassay.accountant.questions.least_mu import mu as least_mu
from dpassay.verifier.foreign import events
from tests.peers.rows import WIDTH, Row, event_of, narrowest, near

BOTH = Adjacency.ADD_REMOVE


def _event(row: Row) -> tuple[Mechanism, Adjacency]:
    relation = row.get("relation", "ADD_OR_REMOVE_ONE")
    read = event_of(row["event"])
    return events.mechanism_of(read, relation), events.neighbours(relation).adjacency


def _event_delta(row: Row) -> str | None:
    mechanism, relation = _event(row)
    found = narrowest(
        row,
        lambda width: profile.delta(mechanism, row["at"], adjacency=relation, relative_width=width),
    )
    return near(row, found, row["expected"], "delta")


def _event_epsilon(row: Row) -> str | None:
    mechanism, relation = _event(row)
    found = narrowest(
        row,
        lambda width: profile.epsilon(
            mechanism, row["at"], adjacency=relation, relative_width=width
        ),
    )
    zero = Interval.of_exact(0)
    if found.lower < 0:  # an accountant of theirs says no less than 0
        found = Interval(zero.lower, max(found.upper, zero.upper))
    return near(row, found, row["expected"], "epsilon")


def _event_power(row: Row) -> str | None:
    mechanism, relation = _event(row)
    return near(row, tradeoff.power(mechanism, row["at"], adjacency=relation), row["expected"])


def _event_mu(row: Row) -> str | None:
    mechanism, relation = _event(row)
    found = least_mu(mechanism, adjacency=relation)
    return near(row, found, row["expected"], "mu")


def _event_renyi(row: Row) -> str | None:
    mechanism, relation = _event(row)
    if math.isinf(float(row["at"])):
        pairs = mechanism.worst_case(relation).pairs(None)
        return near(row, enclose(lambda: invert.most([p.max_loss() for p in pairs])),
                     row["expected"])  # fmt: skip
    parts = Composed(mechanism).parts()
    values = [(_largest_renyi(part, relation, row["at"]), count) for part, count in parts]
    total = enclose(lambda: sum((n * value.ball() for value, n in values), start=arb(0)),
                    relative_width=WIDTH)  # fmt: skip
    return near(row, total, row["expected"], f"order {row['at']}")


def _largest_renyi(part: Mechanism, relation: Adjacency, order: Any) -> Interval:
    return guarantees.renyi(part, order, adjacency=relation, relative_width=WIDTH)


def _event_at_most(row: Row) -> str | None:
    mechanism, relation = _event(row)
    found = profile.epsilon(mechanism, row["at"], adjacency=relation, relative_width=WIDTH)
    return None if Fraction(found.upper) < Fraction(row["expected"]) else f"epsilon is {found}"


def _event_refused(row: Row) -> str | None:
    try:
        _event(row)
    except DpassayError:
        return None
    return "the event is accepted"


def _kairouz(row: Row, epsilon: Any) -> Interval:
    """Enclose the least ε of anything that is (ε, δ)-DP, composed (Kairouz, Oh, Viswanath 2015)."""
    whole = Composed(Guaranteed(epsilon, row["delta"]), row["count"])
    if exact(row["total_delta"]) == exact(1 - (1 - Fraction(str(row["delta"]))) ** row["count"]):
        return enclose(lambda: row["count"] * exact(epsilon).ball())
    return profile.epsilon(whole, row["total_delta"])


def _composition(row: Row) -> str | None:
    found = _kairouz(row, row["epsilon"])
    return near(row, found, row["expected"], "total epsilon")


def _share(row: Row) -> str | None:
    """The largest ε of each release is within the tolerance."""
    if math.isinf(float(row["expected"])):
        found = _kairouz(row, 0)
        return None if math.isinf(found.lower) else f"total epsilon {found} with releases of 0"
    middle, tolerance = Fraction(row["expected"]), Fraction(row["tolerance"])

    def total(epsilon: Fraction) -> Interval:
        return _kairouz(row, epsilon)

    low, high = total(middle - tolerance), total(middle + tolerance)
    target = Fraction(row["total_epsilon"])
    if Fraction(low.upper) <= target <= Fraction(high.lower):
        return None
    return f"the total is {low} to {high} within the tolerance, not {target}"


def _conversion(row: Row) -> str | None:
    found = notions.improved_epsilon_of_renyi(row["order"], row["divergence"], row["delta"])
    return near(row, found, row["expected"], "epsilon")


def _gaussian_round_trip(row: Row) -> str | None:
    """σ of (ε, δ), and ε of (σ, δ) again, as enclosures of the closed form."""
    epsilon, target = exact(row["epsilon"]), exact(row["delta"])

    def room(mu: ExactReal) -> arb:
        pair = Gaussian(1, mu).worst_case(None).remove[0]
        return (target.ball() / pair.hockey_stick(epsilon)).log()

    bracket = solve.bracket(room, Fraction(1), floor=Fraction(1, 10**12))
    mu = solve.root(room, bracket, relative_width=Fraction(1, 10**12))
    for end in (mu.lower, mu.upper):
        back = profile.epsilon(Gaussian(1, end), target, relative_width=WIDTH)
        message = near({"relative": row["relative"]}, back, row["epsilon"], "epsilon")
        if message is not None:
            return message
    return None


def _gaussian_delta(row: Row) -> str | None:
    """δ ≤ the conversion of its divergences ≤ the tail bound exp(−(ε − 1/2)²/2)."""
    epsilon = Fraction(row["epsilon"])
    true = profile.delta(Gaussian(1), epsilon)
    order = max(epsilon + Fraction(1, 2), Fraction(11, 10))
    bound = notions.delta_of_renyi(order, order / 2, epsilon)
    top = 1.0 if epsilon < Fraction(1, 2) else math.exp(-0.5 * (float(epsilon) - 0.5) ** 2)
    if true.upper <= bound.upper and float(bound.upper) <= top + 1e-300:
        return None
    return f"{true}, {bound} and {top} are not in order"


def _gaussian_conversion(row: Row) -> str | None:
    """ε of the best order of a Gaussian by the improved conversion, orders from 1 by 0.001."""
    rho = 1 / (2 * Fraction(row["noise"]) ** 2)

    def of(thousandths: int) -> Interval:
        order = Fraction(thousandths, 1000)
        return notions.improved_epsilon_of_renyi(order, rho * order, row["delta"])

    rough = min(range(10_000, 60_000, 100), key=lambda n: of(n).upper)
    best = min((of(n) for n in range(rough - 100, rough + 100)), key=lambda found: found.upper)
    true = profile.epsilon(Gaussian(row["noise"]), row["delta"])
    said = f"the conversion gives {best}, the exact epsilon is {true}"
    return None if near(row, best, row["expected"]) is None else said


def _gaussian_closed(row: Row) -> str | None:
    """δ of Gaussian releases lies at the closed form, to 20 digits."""
    mechanism, relation = _event(row)
    found = profile.delta(mechanism, row["at"], adjacency=relation)
    with ctx.workprec(400):
        mu, e = ball(Fraction(row["mu_square"])).sqrt(), ball(Fraction(row["at"]))

        def cdf(x: arb) -> arb:
            return (-x / arb(2).sqrt()).erfc() / 2

        closed = cdf(mu / 2 - e / mu) - e.exp() * cdf(-mu / 2 - e / mu)
    return None if found.overlaps(Interval.of_ball(closed, 60)) else f"{found}, {closed}"


def _noise_search(row: Row, epsilon: Callable[[Mechanism, Any], Interval]) -> str | None:
    """A search that ends within 0.01 of its target ε: that of its σ, ± the tolerance, is there.

    PRV's value may itself exceed the exact one by 0.02, twice its `eps_error`.
    """
    middle, tolerance = Fraction(row["noise"]), Fraction(row["tolerance"])
    low, high = (
        epsilon(
            Composed(PoissonSubsampled(Gaussian(noise), row["sampling_prob"]), row["count"]),
            row["delta"],
        )
        for noise in (middle + tolerance, middle - tolerance)
    )
    least, most = (Fraction(value) for value in row["epsilon"])
    inside = least <= Fraction(high.upper) and Fraction(low.lower) <= most
    return None if inside else f"epsilon is {low} to {high} within the tolerance"


def _exact_epsilon(whole: Mechanism, delta: Any) -> Interval:
    return profile.epsilon(whole, delta, adjacency=BOTH, relative_width=Fraction(1, 10**6))


QUESTIONS: dict[str, Callable[[Row], str | None]] = {
    "composition": _composition,
    "conversion": _conversion,
    "event-at-most": _event_at_most,
    "event-delta": _event_delta,
    "event-epsilon": _event_epsilon,
    "event-mu": _event_mu,
    "event-power": _event_power,
    "event-refused": _event_refused,
    "event-renyi": _event_renyi,
    "gaussian-closed": _gaussian_closed,
    "gaussian-conversion": _gaussian_conversion,
    "gaussian-delta": _gaussian_delta,
    "gaussian-round-trip": _gaussian_round_trip,
    "prv-noise": lambda row: _noise_search(row, _exact_epsilon),
    "share": _share,
}

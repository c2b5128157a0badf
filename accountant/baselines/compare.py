"""All baselines beside the exact ε, for one composition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

from dpassay.accountant.baselines.central_limit import central_limit
from dpassay.accountant.baselines.moments import CONVERSIONS, moments
from dpassay.accountant.baselines.theorems import advanced_epsilon, basic, kairouz, zcdp
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import (
    AdjacencyError,
    InvalidInputError,
    NotApplicableError,
    UndecidedError,
)
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.numbers.exact import ExactReal, Number
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile

WIDTH = Fraction(1, 10**9)


@final
@dataclass(frozen=True, slots=True)
class Row:
    """What one accountant says."""

    name: str
    epsilon: Interval | None
    """None where the accountant has no answer; `note` says why."""
    is_bound: bool
    """Whether it is a proved upper bound."""
    note: str
    error: Interval | None = None
    """Of an approximation: what it says minus the exact ε, where that is known."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        shown = {
            "name": self.name,
            "epsilon": None if self.epsilon is None else self.epsilon.to_json(),
            "is_bound": self.is_bound,
            "note": self.note,
        }
        return shown if self.error is None else {**shown, "error": self.error.to_json()}


def compare(
    mechanism: Mechanism,
    count: int,
    delta: Number,
    adjacency: Adjacency | str | None = None,
) -> list[Row]:
    """Return the exact ε of `count` runs at δ, and what every baseline says of it.

    Basic, advanced and optimal composition know of each release only (ε, δ): where its loss is
    bounded, (max loss, 0); else (ε(δ'), δ') with δ' = δ/(2k), half of δ over all k releases.
    """
    target, relation = probability("delta", delta), Adjacency.read(adjacency)
    whole = Composed(mechanism, count)
    releases, how = _releases(whole, target, relation)

    def ask(name: str, note: str, compute: Callable[[], Interval], *, bound: bool = True) -> Row:
        try:
            return Row(name, compute(), bound, note)
        except AdjacencyError:
            raise
        except (NotApplicableError, UndecidedError, InvalidInputError) as error:
            return Row(name, None, bound, str(error))

    def exact_epsilon() -> Interval:
        return profile.epsilon(whole, target, adjacency=relation, relative_width=WIDTH)

    rows = [ask("exact", "this accountant", exact_epsilon)]
    rows.append(ask("basic", how, lambda: basic(releases)[0]))
    rows.append(ask("advanced", how, lambda: advanced_epsilon(releases, target)))
    rows.append(ask("advanced-sharp", how, lambda: advanced_epsilon(releases, target, sharp=True)))
    rows.append(ask("kairouz-oh-viswanath", how, lambda: kairouz(releases, target)))
    rows += [_moments(whole, target, relation, conversion) for conversion in CONVERSIONS]
    rows.append(
        ask("zcdp", "rho + 2√(rho ln(1/delta))", lambda: zcdp(whole, 1, target, adjacency=relation))
    )
    limit = ask(
        "central-limit",
        "an approximation, not a bound",
        lambda: central_limit(whole, 1, target, adjacency=relation, with_error=False).epsilon,
        bound=False,
    )
    rows.append(_with_error(limit, rows[0].epsilon))
    return rows


def _with_error(row: Row, exact: Interval | None) -> Row:
    """Say by how much an approximation is off, where the exact value is known."""
    if row.epsilon is None or exact is None or not exact.upper.is_finite():
        return row
    error = Interval.of_ball(row.epsilon.ball() - exact.ball(), 12)
    side = "above" if error.lower > 0 else "below" if error.upper < 0 else "off"
    note = f"{row.note}; {max(abs(error.lower), abs(error.upper)):.3g} {side} the exact epsilon"
    return replace(row, note=note, error=error)


def _moments(
    whole: Composed, target: ExactReal, relation: Adjacency | None, conversion: str
) -> Row:
    name = f"renyi-{conversion}"
    try:
        found = moments(whole, 1, target, adjacency=relation, conversion=conversion)
    except (NotApplicableError, UndecidedError) as error:
        return Row(name, None, True, str(error))
    return Row(name, found.epsilon, True, f"order {found.order}")


def _releases(
    whole: Composed, target: ExactReal, relation: Adjacency | None
) -> tuple[list[tuple[Number, Number, int]], str]:
    """Return (ε, δ, count) of every part, and how δ was shared out."""
    parts = whole.parts()
    total = sum(n for _, n in parts)
    share = target / ExactReal.of_rational(2 * total)
    found: list[tuple[Number, Number, int]] = []
    pure = True
    for part, n in parts:
        loss = profile.epsilon(part, 0, adjacency=relation)
        if loss.upper.is_finite():
            found.append((_upper(part, relation, loss), 0, n))
        else:
            pure = False
            loss = profile.epsilon(part, share, adjacency=relation, relative_width=WIDTH)
            found.append((max(loss.upper, Interval.of_exact(0).upper), share, n))
    return found, "pure releases" if pure else "each release at delta/(2k)"


def _upper(part: Mechanism, relation: Adjacency | None, loss: Interval) -> Number:
    """Return the largest loss, exactly where it is an exact number."""
    known = [pair.exact_max_loss() for pair in part.worst_case(relation).pairs(None)]
    exact = [value for value in known if value is not None]
    return max(exact) if len(exact) == len(known) else loss.upper

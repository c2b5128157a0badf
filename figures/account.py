"""The plot of an account: ε against the number of releases, with the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dpassay.accountant.account import Account, Spend
from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.questions.estimate import estimate_epsilon
from dpassay.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 60
"""Maximal number of points; each is an estimate for a composition."""
_DELTA = 1e-6
"""δ of the curve if the budget has none."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """ε of an account after some of its entries."""

    title: str
    releases: tuple[int, ...]
    epsilons: tuple[float, ...]
    delta: float
    limit: float | None


def compute(account: Account) -> Table:
    """Estimate ε after some of the entries, including the first and the last."""
    if not len(account):
        raise NotApplicableError("The account is empty. Call account.spend(mechanism) first.")
    budget, delta, limit = account.budget, _DELTA, None
    if isinstance(budget, EpsilonDelta):
        delta, limit = float(budget.delta), float(budget.epsilon)
    history = account.history
    places = sorted({round(i * (len(history) - 1) / (_POINTS - 1)) for i in range(_POINTS)})
    releases = [sum(entry.count for entry in history[: place + 1]) for place in places]
    epsilons = [
        float(estimate_epsilon(_composed(history[: place + 1]), delta, adjacency=account.adjacency))
        for place in places
    ]
    return Table(repr(account)[1:-1], tuple(releases), tuple(epsilons), delta, limit)


def _composed(history: tuple[Spend, ...]) -> Mechanism:
    return Composed(tuple(Composed(entry.mechanism, entry.count) for entry in history))


def draw(table: Table, ax: Axes | None = None) -> Figure:
    """Draw the curve, and the budget as a dashed line."""
    with style.sheet(ax=ax) as (figure, axes):
        curve = style.CURVES[0]
        axes.plot(table.releases, table.epsilons, **curve.marked(len(table.releases)))
        if table.limit is not None:
            axes.axhline(table.limit, color="black", linestyle="--", linewidth=1, label="budget")
            axes.legend()
        axes.set(xlabel="releases", ylabel=f"ε at δ = {table.delta:g} (nats)", ylim=(0, None))
        axes.set_title(f"{table.title} (estimates)", fontsize=9, loc="left")
        return figure

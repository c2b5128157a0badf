"""`plot`: draw a mechanism or an answer, for notebooks and files."""

from __future__ import annotations

import math
from functools import singledispatch
from pathlib import Path
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpassay.accountant.account import Account
from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, forgiving
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.notation import read_mechanism
from dpassay.accountant.questions.estimate import estimate_epsilon
from dpassay.accountant.summary import Profile
from dpassay.accountant.training import Schemes, Training
from dpassay.figures import audit, profile, schemes, style, tradeoff
from dpassay.figures.comparison import page
from dpassay.figures.table import Table, columns_of
from dpassay.verifier.audit.result import AuditResult
from dpassay.verifier.cli.optimal import Laws
from dpassay.verifier.compare import Comparison
from dpassay.verifier.verdict import Finding

_MOST_MARKS = 3
"""Maximal number of labelled points; more would overlap."""
_POINTS = 60
"""Maximal number of points of an account's curve; each is an estimate for a composition."""
_DELTA = 1e-6
"""δ of an account's curve if its budget has none."""
_ROOM = 3.0
"""Factor between the least probability of a law and the lower end of the axis."""
_LEAST_SHOWN = 1e-300
"""Smaller probabilities, which are hardly normal floats, are not drawn."""


@forgiving
def plot(
    thing: Mechanism
    | str
    | Account
    | Profile
    | Training
    | Schemes
    | Finding
    | Comparison
    | AuditResult,
    path: Path | str | None = None,
    *,
    adjacency: Adjacency | str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a mechanism, as an object or as text, or an answer of `dpassay`.

    Parameters
    ----------
    thing
        A mechanism or a `Profile`: enclosures of δ against ε, with up to three of the points that
        were asked. An `Account`: estimates of ε against the number of releases. A `Training`:
        estimates of δ against ε. `Schemes`: ε against epochs, by sampling. A `Finding`: the
        trade-off function, and the one that the claim requires. A `Comparison`: the candidates by
        the first metric. An `AuditResult`: the histograms of both datasets, and the estimated,
        certified, exact and claimed trade-off function.
    path
        A .png, .pdf or .svg file to save the figure to.
    adjacency
        The neighbouring relation; required for a mechanism whose guarantee depends on it.
    ax
        matplotlib axes to draw into instead of a new figure. Of an `AuditResult` they show only the
        trade-off function.

    Returns
    -------
    Figure
        The matplotlib figure.

    Raises
    ------
    InvalidInputError
        If `thing` is none of these, or the suffix of `path` is unknown.
    NotApplicableError
        If a finding is not about a trade-off function.

    Examples
    --------
    >>> plot("Gaussian(2)").axes[0].get_ylabel()
    'δ(ε) (probability)'
    """
    figure = _drawn(thing, Adjacency.read(adjacency), ax)
    if path is not None:
        style.save(figure, Path(path))
    return figure


@singledispatch
def _drawn(thing: object, adjacency: Adjacency | None, ax: Axes | None) -> Figure:
    raise InvalidInputError(
        f"Expected a mechanism, or an answer of profile, dpsgd, verify or compare to draw, not "
        f'{type(thing).__name__}. Write dpassay.plot("Gaussian(1)").'
    )


_drawn.register(Schemes)(lambda thing, _, ax: schemes.draw(schemes.compute(thing), ax))
_drawn.register(Comparison)(lambda thing, _, ax: page.bars(thing, titled=ax is None, ax=ax))
_drawn.register(str)(lambda thing, relation, ax: _drawn(read_mechanism(thing), relation, ax))


@_drawn.register
def _(thing: Mechanism, adjacency: Adjacency | None, ax: Axes | None) -> Figure:
    return profile.draw(profile.compute(thing, adjacency=adjacency), ax)


@_drawn.register
def _(thing: Profile, adjacency: Adjacency | None, ax: Axes | None) -> Figure:
    marks = [
        (answer.at.removeprefix("at epsilon "), answer.value)
        for answer in thing.answers
        if answer.name == "delta"
    ]
    marks = marks if len(marks) <= _MOST_MARKS else []
    table = profile.compute(thing.mechanism, adjacency=thing.adjacency, marks=marks)
    return profile.draw(table, ax)


@_drawn.register
def _(thing: Training, adjacency: Adjacency | None, ax: Axes | None) -> Figure:
    figure = profile.draw(profile.estimate(thing.mechanism, adjacency=thing.adjacency), ax)
    said = f"ε = {thing.epsilon:.4g} at δ = {thing.delta}, {thing.steps} steps, {thing.sampling}"
    title = f"{said} sampling (curves are estimates)"
    (ax or figure.axes[0]).set_title(title, fontsize=9, loc="left")
    return figure


@_drawn.register
def _(thing: Finding, adjacency: Adjacency | None, ax: Axes | None) -> Figure:
    table = None
    if mechanism := thing.witness.get("mechanism"):
        table = tradeoff.compute(
            read_mechanism(str(mechanism)), thing.claimed, adjacency=thing.adjacency
        )
    if table is None:
        raise NotApplicableError(
            f"The claim {thing.id!r} is not about the trade-off function of one mechanism. "
            "print(finding) shows what was decided."
        )
    return tradeoff.draw(table, ax)


@_drawn.register
def _(thing: AuditResult, adjacency: Adjacency | None, ax: Axes | None) -> Figure:
    if ax is None:
        return audit.draw(audit.compute(thing))
    audit.into(audit.compute(thing), ax)
    return cast(Figure, ax.get_figure(root=True))


def account_table(account: Account) -> Table:
    """Estimate ε of an account after some of its entries, including the first and the last."""
    if not len(account):
        raise NotApplicableError("The account is empty. Call account.spend(mechanism) first.")
    budget, delta, limit = account.budget, _DELTA, None
    if isinstance(budget, EpsilonDelta):
        delta, limit = float(budget.delta), float(budget.epsilon)
    history, rows = account.history, []
    for end in sorted({1 + round(i * (len(history) - 1) / (_POINTS - 1)) for i in range(_POINTS)}):
        spent = history[:end]
        whole = Composed(tuple(Composed(entry.mechanism, entry.count) for entry in spent))
        epsilon = float(estimate_epsilon(whole, delta, adjacency=account.adjacency))
        rows.append((sum(e.count for e in spent), epsilon if math.isfinite(epsilon) else None))
    columns = columns_of(releases="1", epsilon="nats")
    return Table.of(columns, rows, title=repr(account)[1:-1], delta=delta, limit=limit)


@_drawn.register
def _(thing: Account, _: Adjacency | None, ax: Axes | None) -> Figure:
    table = account_table(thing)
    title, delta, limit = (table.parameters[name] for name in ("title", "delta", "limit"))
    with style.sheet(ax=ax) as (figure, axes):
        xs, ys = table.points("releases", "epsilon")
        axes.plot(xs, ys, **style.CURVES[0].marked(len(xs)))
        if limit is not None:
            axes.axhline(limit, color="black", linestyle="--", linewidth=1, label="budget")
            axes.legend()
        axes.set(xlabel="releases", ylabel=f"ε at δ = {delta:g} (nats)", ylim=(0, None))
        axes.set_title(f"{title} (estimates)", fontsize=9, loc="left")
        return figure


@_drawn.register
def _(thing: Laws, _: Adjacency | None, ax: Axes | None) -> Figure:
    with style.sheet(ax=ax) as (figure, axes):
        least = 1.0
        for index, (label, lowest, values) in enumerate(thing.laws):
            points = [point for point in enumerate(values, lowest) if point[1] >= _LEAST_SHOWN]
            least = min([least, *(y for _, y in points)])
            look = style.CURVES[index % len(style.CURVES)].dots()
            axes.plot([z for z, _ in points], [y for _, y in points], ms=4, label=label, **look)
        axes.set(yscale="log", ylim=(least / _ROOM, 1))
        if len(thing.laws) > 1:
            axes.legend()
        axes.set(xlabel="error z", ylabel="P(Z = z)")
        axes.set_title(thing.title, fontsize=9, loc="left")
        return figure

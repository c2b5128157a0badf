"""`plot`: draw a mechanism or an answer, for notebooks and files."""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpassay.accountant.account import Account
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, forgiving
from dpassay.accountant.notation import read_mechanism
from dpassay.accountant.summary import Profile
from dpassay.accountant.training import Schemes, Training
from dpassay.figures import account, audit, law, profile, schemes, style, tradeoff
from dpassay.figures.comparison import page
from dpassay.verifier.audit.result import AuditResult
from dpassay.verifier.cli.optimal import Laws
from dpassay.verifier.compare import Comparison
from dpassay.verifier.verdict import Finding

_MOST_MARKS = 3
"""Maximal number of labelled points; more would overlap."""


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
        * A mechanism or a `Profile`: enclosures of δ against ε, with up to three of the points that
          were asked.
        * An `Account`: estimates of ε against the number of releases.
        * A `Training`: estimates of δ against ε. `Schemes`: ε against epochs, by sampling.
        * A `Finding`: the trade-off function, and the one that the claim requires.
        * A `Comparison`: the candidates by the first metric.
        * An `AuditResult`: the histograms of both datasets, and the estimated, certified, exact and
          claimed trade-off function.
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


_drawn.register(Account)(lambda thing, _, ax: account.draw(account.compute(thing), ax))
_drawn.register(Laws)(lambda thing, _, ax: law.draw(thing, ax))
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

"""`plot`: the picture of a mechanism or of an answer, for notebooks and files."""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, cast

from matplotlib.figure import Figure

from dpassay.accountant.account import Account
from dpassay.accountant.ask import read_mechanism
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, forgiving
from dpassay.accountant.summary import Profile
from dpassay.accountant.training import Schemes, Training
from dpassay.figures import account, audit, profile, schemes, style, tradeoff
from dpassay.figures.comparison import page
from dpassay.verifier.audit.kinds.result import AuditResult
from dpassay.verifier.compare import Comparison
from dpassay.verifier.verdict import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_MARKS = 3
"""Points that can be read beside each other."""


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
    """Draw a mechanism, as an object or as text, or what `dpassay` has answered.

    Parameters
    ----------
    thing
        A mechanism or a `Profile`: δ against ε, from enclosures, with up to three points that were
        asked. An `Account`: its ε against the releases so far, from estimates. A `Training`: δ
        against ε, from estimates; `Schemes`: ε against epochs, by sampling. A `Finding`: the errors
        of the best attack beside what the claim allows. A `Comparison`: its candidates by the
        metric that ranks. An `AuditResult`: the histogram of both datasets, and the trade-off
        function, estimated, certified, exact and claimed.
    path
        Where to save it as .png, .pdf or .svg; not saved unless given.
    adjacency
        The neighbouring relation of a mechanism whose guarantee depends on it.
    ax
        Axes of matplotlib into which the trade-off function of an `AuditResult` is drawn.

    Raises
    ------
    InvalidInputError
        If it is none of these, or the file's ending is unknown.
    NotApplicableError
        If a finding is about no trade-off function.

    Examples
    --------
    >>> plot("Gaussian(2)").axes[0].get_ylabel()
    'δ(ε) (probability)'
    """
    if ax is None:
        figure = _drawn(thing, Adjacency.read(adjacency))
    elif isinstance(thing, AuditResult):
        audit.into(audit.compute(thing), ax)
        figure = cast(Figure, ax.get_figure(root=True))
    else:
        raise InvalidInputError("Expected ax for an AuditResult alone. Leave ax out.")
    if path is not None:
        style.save(figure, Path(path))
    return figure


@singledispatch
def _drawn(thing: object, adjacency: Adjacency | None) -> Figure:
    raise InvalidInputError(
        f"Expected a mechanism, or an answer of profile, dpsgd, verify or compare to draw, not "
        f'{type(thing).__name__}. Write dpassay.plot("Gaussian(1)").'
    )


_drawn.register(Account)(lambda thing, _: account.draw(account.compute(thing)))
_drawn.register(Schemes)(lambda thing, _: schemes.draw(schemes.compute(thing)))
_drawn.register(Comparison)(lambda thing, _: page.bars(thing))
_drawn.register(AuditResult)(lambda thing, _: audit.draw(audit.compute(thing)))
_drawn.register(str)(lambda thing, adjacency: _drawn(read_mechanism(thing), adjacency))


@_drawn.register
def _(thing: Mechanism, adjacency: Adjacency | None) -> Figure:
    return profile.draw(profile.compute(thing, adjacency=adjacency))


@_drawn.register
def _(thing: Profile, adjacency: Adjacency | None) -> Figure:
    marks = [
        (answer.at.removeprefix("at epsilon "), answer.value)
        for answer in thing.answers
        if answer.name == "delta"
    ]
    marks = marks if len(marks) <= _MOST_MARKS else []
    return profile.draw(profile.compute(thing.mechanism, adjacency=thing.adjacency, marks=marks))


@_drawn.register
def _(thing: Training, adjacency: Adjacency | None) -> Figure:
    figure = profile.draw(profile.estimate(thing.mechanism, adjacency=thing.adjacency))
    title = f"ε = {thing.epsilon:.4g} at δ = {thing.delta}, {thing.steps} steps, {thing.sampling}"
    figure.axes[0].set_title(f"{title} sampling (curves are estimates)", fontsize=9, loc="left")
    return figure


@_drawn.register
def _(thing: Finding, adjacency: Adjacency | None) -> Figure:
    table = None
    if mechanism := thing.witness.get("mechanism"):
        table = tradeoff.compute(
            read_mechanism(str(mechanism)), thing.claimed, adjacency=thing.adjacency
        )
    if table is None:
        raise NotApplicableError(
            f"The claim {thing.id!r} is about no trade-off function of one mechanism. "
            "print(finding) says what was decided."
        )
    return tradeoff.draw(table)

"""A running privacy account: it records each release and refuses one that exceeds the budget.

A *privacy filter* stops an analysis before it exceeds a budget fixed in advance; a *privacy
odometer* is a running bound on the privacy loss so far. Which composition theorem applies depends
on how the next release is chosen. A query may always depend on earlier outputs. The mechanism, its
noise and its count may not (`adaptive=False`) or may (`adaptive=True`).

*Non-adaptive mechanisms.* The product of the dominating pairs dominates all releases together
(Zhu, Dong and Wang 2022, Theorem 10), and stopping early only publishes less. The account is
therefore exact, both as a filter and as an odometer: it compares the profile, μ or ρ of the
composition of all releases with the budget.

*Adaptively chosen mechanisms.* Composing the mechanisms that happened to be chosen and stopping at
the budget is not a valid filter in general: an analyst can choose them so that (ε, δ) or the
trade-off function is exceeded. Additive bounds with a limit fixed in advance are valid filters:

| budget | quantity added up | proved by |
|---|---|---|
| ε, δ = 0 | largest privacy losses | Rogers, Roth, Ullman and Vadhan 2016 |
| ρ (zCDP) | the ρ of each release | Feldman and Zrnic 2021, at every order |
| μ (Gaussian DP) | the μ² of each release | Smith and Thakurta 2022 |
| (ε, δ), δ > 0 | Rényi divergences of one order | Feldman and Zrnic 2021 |

Proof of the last row. Given the earlier outputs, let L_i be the privacy loss of release i and d_i
an upper bound on its Rényi divergence D_a of order a. Then E_Q[e^{aL_i}] ≤ e^{(a − 1)d_i}, so the
product of the factors e^{aL_i − (a − 1)d_i} is a supermartingale under Q. Since Σ d_i ≤ D on every
path, E_Q[e^{aΣL_i}] ≤ e^{(a − 1)D}: the divergence of all releases together is at most D. Hence
δ(ε) ≤ e^{(a − 1)(D − ε)} (1 − 1/a)^{a − 1}/a (Canonne, Kamath and Steinke 2020, Proposition 12).
The order depends on the budget alone; it is the best one for Gaussian noise. Of these sums only the
sum of the largest losses is also an odometer, because it bounds the loss on every path. In all
other cases the guarantee of an adaptive account is its budget, however much has been spent.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import math
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, final

from flint import arb

from dpassay.accountant import notation
from dpassay.accountant.aliases import METHODS
from dpassay.accountant.budget.target import (
    MOST_RELEASES,
    EpsilonDelta,
    Mu,
    Rho,
    decided,
    largest_count,
)
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import integer
from dpassay.accountant.errors import (
    DpassayError,
    InvalidInputError,
    NotApplicableError,
    UndecidedError,
    expected,
    no_attribute,
    one_line,
    shortened,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed, Guaranteed
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import START_PRECISION, Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import guarantees, profile
from dpassay.accountant.questions.convert import convert

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

Budget: TypeAlias = EpsilonDelta | Mu | Rho
_NOTHING = Guaranteed(0, 0)
_ORDERS = (*range(2, 65), *(2**k for k in range(7, 21)))
"""Candidate Rényi orders for the filter of an (ε, δ) budget: integers, the fastest to compute."""
_FORMAT = "dpassay account 1"
_FIRST = f'{{"format": "{_FORMAT}", '.encode()
"""The first bytes of an account file."""
_INSTEAD = {
    "step": "Write .spend(dpassay.PoissonSubsampled(dpassay.Gaussian(noise_multiplier), "
    "sample_rate)).",
    "save": "Give file=… when the account is made: spend writes each entry to it.",
    "total": "Ask .epsilon(delta).",
    "spent": "Ask .epsilon(delta).",
}
"""Replacements for attributes that other libraries' accountants have."""
_SHOWN = 12
"""Number of most recent entries that are printed; a longer list would hide the totals."""


class BudgetError(DpassayError):
    """A release would exceed the budget, or cannot be proved to stay within it.

    Nothing was spent.
    """


@final
@dataclass(frozen=True, slots=True)
class Spend:
    """One entry of an account: `count` releases of a mechanism."""

    mechanism: Mechanism
    count: int
    name: str | None = None


@final
class Account(Drawable):
    """A running account of releases computed from the same data.

    Parameters
    ----------
    budget
        `EpsilonDelta(1, "1e-5")`, `Mu(…)`, `Rho(…)` or a pair (ε, δ). The next four arguments are
        an alternative. An account without a budget refuses nothing.
    epsilon, delta, mu, rho
        The budget as numbers.
    adjacency
        The neighbouring relation; required if the releases depend on it.
    adaptive
        Whether the mechanisms, their noise or their counts may depend on earlier outputs. The
        attribute `theorem` names the composition theorem that applies.
    order
        The Rényi order, an integer ≥ 2, used by an adaptive account with an (ε, δ) budget. None
        selects the best order for Gaussian noise; small sampling probabilities need a smaller one.
    file
        A file to which `spend` writes each entry before it returns. If the file holds an account
        with the same budget, that account is continued; any other file is refused and left
        unchanged. `Account.load` reads the budget from the file. Only one process can have the file
        open. A copy of the account, and an account that was closed, cannot spend. Because an entry
        is on disk before the release is made, a process that is killed in between has recorded a
        release that it did not make, never the reverse.

    Examples
    --------
    >>> account = Account(epsilon=1, delta="1e-5")
    >>> entry = account.spend("Gaussian(20)", count=10)
    >>> account.remaining("Gaussian(20)"), account.can_spend("Gaussian(1)")
    (18, False)
    """

    def __init__(
        self,
        budget: Budget | Sequence[Number] | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        mu: Number | None = None,
        rho: Number | None = None,
        adjacency: Adjacency | str | None = None,
        adaptive: bool = False,
        order: int | None = None,
        file: Path | str | None = None,
    ) -> None:
        """Open an account: empty, or with the entries of its file."""
        if not isinstance(adaptive, bool):
            raise expected("adaptive", adaptive, "to be True or False")
        self._budget = _read_budget(budget, epsilon, delta, mu, rho)
        self._adjacency = Adjacency.read(adjacency)
        self._adaptive = adaptive
        if adaptive and self._budget is None:
            raise InvalidInputError(
                "Expected a budget: adaptively chosen noise needs a privacy filter, whose limit is "
                'fixed in advance. Write Account(epsilon=1, delta="1e-5", adaptive=True).'
            )
        if order is not None:
            limited = isinstance(self._budget, EpsilonDelta) and self._budget.delta.sign > 0
            if not (adaptive and limited):
                raise expected("order", order, "with adaptive=True, epsilon and delta > 0 only")
            order = integer("order", order, least=2)
        self._order = order
        self._sum = _Sum.of(self._budget, self._adjacency, order)
        self._history: list[Spend] = []
        self._counts: dict[Mechanism, int] = {}
        self._names: dict[str, int] = {}
        self._spent: Fraction | None = Fraction(0)
        self._others: dict[Mechanism, int] = {}
        self._square = Fraction(0)
        self._lock = threading.RLock()
        self._file: _File | None = None
        if file is not None:
            header = self._header()
            self._file = _File(file, may_create=True)
            try:
                for entry in self._file.read(header):
                    self._add(entry)
            except BaseException:
                self.close()
                raise

    @classmethod
    def load(cls, file: Path | str) -> Account:
        """Open the account in a file and continue it.

        Raises InvalidInputError if the file holds no account, is open in another process, or is
        damaged. A last line that was not completely written is not damage; it is removed.
        """
        opened = _File(file, may_create=False)
        try:
            head = opened.header()
        finally:
            opened.close()
        given = head["budget"]
        return cls(
            None if given is None else _BUDGETS[given["kind"]](*given["numbers"]),
            adjacency=head["adjacency"],
            adaptive=head["adaptive"],
            order=head["order"],
            file=file,
        )

    @property
    def budget(self) -> Budget | None:
        """The budget, or None if there is no limit."""
        return self._budget

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbouring relation."""
        return self._adjacency

    @property
    def adaptive(self) -> bool:
        """Whether the mechanisms may depend on earlier outputs."""
        return self._adaptive

    @property
    def history(self) -> tuple[Spend, ...]:
        """All entries, in order."""
        return tuple(self._history)

    @property
    def theorem(self) -> str:
        """The composition theorem that the account relies on."""
        if not self._adaptive:
            return (
                "The mechanisms, their noise and counts do not depend on outputs (queries may): "
                "the product of dominating pairs dominates (Zhu, Dong and Wang 2022, Theorem 10)."
            )
        return f"The noise may depend on outputs: {self._sum.theorem}."

    @property
    def mechanism(self) -> Mechanism | None:
        """The composition of all releases, or None if there are none yet."""
        return _composed(self._counts) if self._counts else None

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name: str) -> Any:
            """Resolve a method's name in another library, or raise with what to write instead."""
            own = METHODS.get(name, "")
            if own in ("epsilon", "delta", "spend"):
                return getattr(self, own)
            raise no_attribute(self, name, _INSTEAD.get(name, ""))

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._history)

    def __contains__(self, name: object) -> bool:
        """Whether an entry has this name."""
        return name in self._names

    def __iter__(self) -> Iterator[Spend]:
        """Iterate over the entries."""
        return iter(self.history)

    def spend(
        self, mechanism: Mechanism | str, count: int = 1, *, name: str | None = None
    ) -> Spend:
        """Record `count` releases of a mechanism. Make the releases after this call returns.

        A name can be used only once, so that after a crash `name in account` tells whether the
        release was recorded.

        Raises
        ------
        BudgetError
            If the budget would be exceeded, or this cannot be ruled out.
        InvalidInputError
            If the name was used before, or the entry cannot be written to the account's file.
        """
        entry = Spend(notation.read_mechanism(mechanism), _count(count), _name(name))
        with self._lock:
            line = None if self._file is None else self._file.line(entry)
            if name in self._names:
                raise InvalidInputError(
                    f"{name!r} was spent before, as entry {self._names[name]}. A second release "
                    "costs again: give it another name."
                )
            if not self._fits(entry.mechanism, entry.count):
                raise BudgetError(
                    f"{_times(entry)} would exceed the budget {self._budget}: nothing was spent. "
                    "Do not make this release: remaining(mechanism) says how many are left."
                )
            if self._file is not None and line is not None:
                self._file.append(*line)
            self._add(entry)
        return entry

    def can_spend(self, mechanism: Mechanism | str, count: int = 1) -> bool:
        """Whether `spend` would succeed; nothing is spent."""
        release = notation.read_mechanism(mechanism)
        with self._lock:
            return self._fits(release, _count(count))

    def remaining(self, mechanism: Mechanism | str) -> int:
        """Return how many more releases of a mechanism provably stay within the budget.

        The result is capped at 10^12, which a release without privacy loss reaches. Raises
        NotApplicableError if the account has no budget.
        """
        if self._budget is None:
            raise NotApplicableError("Without a budget nothing is refused. Give Account a budget.")
        release = notation.read_mechanism(mechanism)
        with self._lock:
            self._worst(release)
            allowed = self._by_sum(release)
            if allowed == MOST_RELEASES or (self._adaptive and not self._sum.is_exact):
                return allowed
            return largest_count(lambda count: self._fits(release, count), allowed)

    def epsilon(self, delta: Number) -> Interval:
        """Enclose ε(δ) of all releases so far.

        For an adaptive account this is the ε(δ) that its budget guarantees. Exception: with a pure
        ε budget and δ = 0 it is the sum of the largest privacy losses so far.
        """
        return self._answer("epsilon", delta)

    def delta(self, epsilon: Number) -> Interval:
        """Enclose δ(ε) of all releases so far; for an adaptive account, that of its budget."""
        return self._answer("delta", epsilon)

    def close(self) -> None:
        """Close the file. A closed account cannot spend."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Account:
        """Return the account; the end of the `with` block closes its file."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the file closed: only one account can have it open."""
        with self._lock:
            copied = {k: v.copy() for k, v in self.__dict__.items() if isinstance(v, dict | list)}
            return self.__dict__ | copied | {"_lock": None, "_file": copy.copy(self._file)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state, with the file closed."""
        self.__dict__ |= state
        self._lock = threading.RLock()

    def __str__(self) -> str:
        """Return the budget, the theorem and the last entries."""
        lines = [repr(self)[1:-1], self.theorem]
        first = max(0, len(self._history) - _SHOWN)
        lines += [f"  … {first} entries before"] * bool(first)
        for index, entry in enumerate(self._history[first:], first):
            named = "" if entry.name is None else f"  ({one_line(entry.name)})"
            lines.append(f"  {index}  {_times(entry)}{named}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return the budget and the number of releases, on one line."""
        relation = f", {self._adjacency.value}" if self._adjacency else ""
        limit = "no budget" if self._budget is None else f"budget {self._budget}"
        adaptive = ", adaptive" if self._adaptive else ""
        releases = sum(self._counts.values())
        return f"<Account: {limit}{relation}{adaptive}; {releases} releases in {len(self)} entries>"

    def _repr_html_(self) -> str:
        """Return an HTML table of the last entries, for notebooks."""
        from dpassay.accountant.core import asking

        rows = [["entry", "mechanism", "count", "name"]]
        rows += [
            [str(i), repr(e.mechanism), str(e.count), e.name or ""]
            for i, e in enumerate(self._history)
        ][-_SHOWN:]
        return f"<p>{asking.escape(repr(self)[1:-1])}</p>" + asking.table(rows)

    def _header(self) -> dict[str, Any]:
        given = None
        if self._budget is not None:
            kind = type(self._budget).__name__
            named = [getattr(self._budget, name) for name in _NUMBERS[kind]]
            given = {"kind": kind, "numbers": [str(each) for each in named]}
        relation = self._adjacency.value if self._adjacency else None
        return {
            "budget": given,
            "adjacency": relation,
            "adaptive": self._adaptive,
            "order": self._order,
        }

    def _add(self, entry: Spend) -> None:
        if entry.name is not None:
            self._names[entry.name] = len(self._history)
        self._history.append(entry)
        self._counts[entry.mechanism] = self._counts.get(entry.mechanism, 0) + entry.count
        square = _square_of(entry.mechanism)
        if square is None:
            self._others[entry.mechanism] = self._counts[entry.mechanism]
        else:
            self._square += entry.count * square
        cost = self._sum.of_one(entry.mechanism) if self._budget is not None else None
        if self._spent is not None:
            self._spent = None if cost is None else self._spent + entry.count * cost

    def _whole(self, release: Mechanism = _NOTHING, count: int = 0) -> Mechanism:
        """Return the composition of all entries and `count` further releases.

        All Gaussian releases are replaced by a single one, whose μ² is the sum of theirs. The cost
        of another entry therefore does not grow with the number of Gaussian entries.
        """
        counts, square = dict(self._others), self._square
        if count and (own := _square_of(release)) is not None:
            square += count * own
        elif count:
            counts[release] = counts.get(release, 0) + count
        if square:
            counts[Gaussian(1, ExactReal.of_root(square))] = 1
        return _composed(counts) if counts else _NOTHING

    def _worst(self, release: Mechanism) -> None:
        """Raise AdjacencyError if the release needs a relation, or another one than is given."""
        if release not in self._counts:
            release.worst_case(self._adjacency)

    def _fits(self, release: Mechanism, count: int) -> bool:
        """Whether `count` more releases provably stay within the budget."""
        self._worst(release)
        if self._budget is None:
            return True
        if self._by_sum(release) >= count:
            return True
        if self._adaptive and not self._sum.is_exact:
            return False
        return bool(decided(self._budget, self._whole(release, count), self._adjacency))

    def _by_sum(self, release: Mechanism) -> int:
        """Return how many more releases the additive bound allows."""
        cost = self._sum.of_one(release)
        if cost is None and self._adaptive and not self._sum.is_exact:
            raise NotApplicableError(
                f"{shortened(repr(release))} has no finite {self._sum.name}, which this adaptive "
                "account adds up. Give a budget of another kind."
            )
        room = None if self._spent is None else self._sum.limit - self._spent
        if cost is None or room is None or room < 0:
            return 0
        return min(MOST_RELEASES, math.floor(room / cost)) if cost else MOST_RELEASES

    def _answer(self, name: str, at: Number) -> Interval:
        with self._lock:
            if self._adaptive and not (
                self._sum.is_exact and name == "epsilon" and exact(at, "delta").sign == 0
            ):
                asked = "delta" if name == "epsilon" else "epsilon"
                given: dict[str, Any] = {**self._sum.guarantee, asked: at}
                found = convert(**given)
                return self._capped(found, at) if name == "epsilon" else found
            whole = self._whole()
        question = profile.epsilon if name == "epsilon" else profile.delta
        return question(whole, at, adjacency=self._adjacency)

    def _capped(self, found: Interval, delta: Number) -> Interval:
        """Cap an ε at the budget's ε if δ is at least the budget's δ."""
        budget = self._budget
        if not isinstance(budget, EpsilonDelta) or exact(delta, "delta") < budget.delta:
            return found
        with ctx.workprec(START_PRECISION):
            most = Interval.of_ball(budget.epsilon.ball()).upper
        return Interval(min(found.lower, most), min(found.upper, most))


def _composed(counts: Mapping[Mechanism, int]) -> Mechanism:
    parts = [m if n == 1 else Composed(m, n) for m, n in counts.items()]
    return parts[0] if len(parts) == 1 else Composed(tuple(parts))


def _square_of(release: Mechanism) -> Fraction | None:
    """Return μ² of a Gaussian mechanism or a composition of them, None for any other mechanism."""
    if isinstance(release, Composed):
        squares = [(_square_of(part), n) for part, n in release.parts()]
        known = [n * square for square, n in squares if square is not None]
        return sum(known, start=Fraction(0)) if len(known) == len(squares) else None
    if not isinstance(release, Gaussian):
        return None
    return (release.l2_sensitivity / release.standard_deviation).signed_square


@final
@dataclass(frozen=True)
class _Sum:
    """An additive privacy bound: if the costs of the releases sum to ≤ limit, the budget holds."""

    name: str
    limit: Fraction
    theorem: str
    guarantee: Mapping[str, Any]
    """The budget as keyword arguments of `convert`."""
    adjacency: Adjacency | None
    order: int | None = None
    is_exact: bool = False
    """Whether the condition is also necessary, as it is for pure ε."""

    @staticmethod
    def of(budget: Budget | None, adjacency: Adjacency | None, order: int | None) -> _Sum:
        """Return the additive bound that fits a budget."""
        if isinstance(budget, Rho):
            theorem = "the ρ of zCDP add up (Feldman and Zrnic 2021)"
            at_most = _below(budget.rho)
            return _Sum("rho", at_most, theorem, {"zcdp": budget.rho}, adjacency)
        if isinstance(budget, Mu):
            theorem = "the μ² of Gaussian DP add up (Smith and Thakurta 2022)"
            return _Sum("mu", budget.mu.square, theorem, {"mu": budget.mu}, adjacency)
        if budget is None or budget.delta.sign == 0:
            limit = exact(0) if budget is None else budget.epsilon
            theorem = "largest losses add up (Rogers, Roth, Ullman and Vadhan 2016)"
            given = {"pure": limit}
            return _Sum("loss", _below(limit), theorem, given, adjacency, is_exact=True)
        order, limit_of_order = _order_for(budget, _ORDERS if order is None else (order,))
        if limit_of_order <= 0:
            raise expected("order", order, f"to leave room at {budget}", "Give a larger one.")
        return _Sum(
            "divergence",
            limit_of_order,
            f"Rényi divergences of order {order} add up (Feldman and Zrnic 2021)",
            {"renyi": (order, limit_of_order)},
            adjacency,
            order,
        )

    def of_one(self, release: Mechanism) -> Fraction | None:
        """Return an upper bound on the cost of one release, None if no finite one is known."""
        return _cost(self.name, self.order, release, self.adjacency)


@functools.lru_cache(maxsize=1 << 14)
def _cost(
    name: str, order: int | None, release: Mechanism, adjacency: Adjacency | None
) -> Fraction | None:
    if isinstance(release, Composed):
        parts = [(_cost(name, order, part, adjacency), n) for part, n in release.parts()]
        known = [n * cost for cost, n in parts if cost is not None]
        return sum(known, start=Fraction(0)) if len(known) == len(parts) else None
    try:
        if name == "rho":
            known_rho = release.exact_rho(adjacency)
            if known_rho is not None:
                return _above(known_rho)
            return _upper(guarantees.rho(release, adjacency=adjacency))
        if name == "mu":
            mu = release.exact_gaussian_mu(adjacency)
            if mu is not None:
                return _above(mu.squared)
            from dpassay.accountant.questions.least_mu import mu as least_mu

            bound = _upper(least_mu(release, adjacency=adjacency))
            return None if bound is None else bound**2
        pairs = release.worst_case(adjacency).pairs(None)
        with ctx.workprec(START_PRECISION):
            if name == "loss":
                return _upper_of([pair.max_loss() for pair in pairs])
            return _upper_of([pair.renyi(arb(order)) for pair in pairs])
    except (NotApplicableError, UndecidedError):
        return None


def _upper_of(balls: Sequence[arb]) -> Fraction | None:
    if not all(ball.is_finite() for ball in balls):
        return None
    return max(Fraction(Interval.of_ball(ball).upper) for ball in balls)


def _upper(found: Interval) -> Fraction | None:
    return Fraction(found.upper) if found.upper.is_finite() else None


def _below(value: ExactReal) -> Fraction:
    if value.rational is not None:
        return value.rational
    with ctx.workprec(START_PRECISION):
        return Fraction(Interval.of_ball(value.ball(), 30).lower)


def _above(value: ExactReal) -> Fraction:
    return -_below(-value)


def _order_for(budget: EpsilonDelta, orders: Sequence[int]) -> tuple[int, Fraction]:
    """Return the order a that allows most Gaussian releases, and its limit on the divergence.

    At order a the budget (ε, δ) allows divergence D = ε + ln(δa)/(a − 1) − ln(1 − 1/a), and a
    Gaussian release costs aμ²/2, so the best order maximises D/a.
    """

    def limit(order: int) -> arb:
        a = arb(order)
        log = budget.delta.ball().log() + a.log()
        return budget.epsilon.ball() + log / (a - 1) - (1 - 1 / a).log()

    with ctx.workprec(START_PRECISION):
        order = max(orders, key=lambda a: float(limit(a).mid()) / a)
        return order, Fraction(Interval.of_ball(limit(order), 30).lower)


def _times(entry: Spend) -> str:
    times = f" × {entry.count}" if entry.count > 1 else ""
    return f"{shortened(repr(entry.mechanism))}{times}"


_BUDGETS: dict[str, type[Budget]] = {"EpsilonDelta": EpsilonDelta, "Mu": Mu, "Rho": Rho}
_NUMBERS = {"EpsilonDelta": ("epsilon", "delta"), "Mu": ("mu",), "Rho": ("rho",)}


def _read_budget(
    budget: Budget | Sequence[Number] | None,
    epsilon: Number | None,
    delta: Number | None,
    mu: Number | None,
    rho: Number | None,
) -> Budget | None:
    named = [value for value in (epsilon, mu, rho) if value is not None]
    if (budget is not None) + len(named) > 1 or (delta is not None and epsilon is None):
        raise InvalidInputError(
            "Expected one budget: epsilon (with an optional delta), mu or rho. Write "
            'Account(epsilon=1, delta="1e-5"), or Account() for an account without a budget.'
        )
    if epsilon is not None:
        budget = EpsilonDelta(epsilon, 0 if delta is None else delta)
    elif mu is not None:
        budget = Mu(mu)
    elif rho is not None:
        budget = Rho(rho)
    elif isinstance(budget, Sequence) and not isinstance(budget, str) and len(budget) == 2:
        budget = EpsilonDelta(budget[0], budget[1])
    if budget is None:
        return None
    if not isinstance(budget, EpsilonDelta | Mu | Rho):
        raise expected(
            "budget",
            budget,
            "to be EpsilonDelta, Mu or Rho",
            'Write Account(epsilon=1, delta="1e-5").',
        )
    if isinstance(budget, EpsilonDelta) and (budget.direction or budget.epsilon.sign < 0):
        raise expected("budget", budget, "to have epsilon ≥ 0 and no direction")
    if objection := budget.objection():
        raise InvalidInputError(objection)
    return budget


def _count(given: int) -> int:
    count = integer("count", given, least=1)
    if count > MOST_RELEASES:
        raise expected("count", count, "≤ 10^12")
    return count


def _name(given: str | None) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise expected("name", given, "to be a text")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise expected("name", given, "to be a text without lone surrogates") from None
    return str(given)


def _line(body: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """Return a line of the file and its checksum, which covers all lines before it too."""
    text = before + json.dumps(body, sort_keys=True)
    check = hashlib.sha256(text.encode()).hexdigest()[:32]
    return json.dumps({**body, "check": check}, ensure_ascii=False).encode() + b"\n", check


@final
class _File:
    """The file of an account: JSON lines, a header with the budget and then one line per entry.

    Each line carries a checksum of itself and all lines before it. A line is written and synced
    before the entry counts. An incomplete last line was left by a process that died while writing,
    before it made the release; it is removed, unless only the newline is missing. A file that holds
    no account, or another account, is not modified.
    """

    def __init__(self, path: Path | str, *, may_create: bool) -> None:
        """Open and lock a file; its content is checked later, by `header` and `read`."""
        self._owner, self._opened, self._check, self._size = os.getpid(), -1, "", 0
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if may_create else 0)
        for name in ("O_CLOEXEC", "O_BINARY", "O_NONBLOCK"):
            flags |= getattr(os, name, 0)
        try:
            self._path = Path(path).absolute()
            if self._path.exists() and not self._path.is_file():
                raise OSError("it is not a regular file")
            self._opened = os.open(self._path, flags, 0o600)
            _lock_or_raise(self._opened)
        except BlockingIOError:
            self.close()
            raise InvalidInputError(
                f"{path} is already open. Only one process at a time can spend from an account."
            ) from None
        except (OSError, TypeError, ValueError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or error
            raise expected("file", path, f"to be readable and writable: {reason}") from None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a closed file: a copy cannot write."""
        return self.__dict__ | {"_opened": -1}

    def header(self) -> dict[str, Any]:
        """Return the first line, with its types checked; `Account` validates the values."""
        with open(self._path, "rb") as stream:
            if stream.read(len(_FIRST)) == _FIRST:
                stream.seek(0)
                header, _ = _body(stream.readline(), "")
                header.pop("format", None)
                if _is_header(header):
                    return header
        raise InvalidInputError(
            f"{self._path} is not an account file, or its first line is damaged. It was left "
            "unchanged. Choose another file for a new account."
        )

    def read(self, header: Mapping[str, Any]) -> list[Spend]:
        """Return the entries of the file; if the file is new, write its header."""
        first, self._check = _line({"format": _FORMAT, **header}, "")
        with open(self._path, "rb") as stream:
            begun = stream.read(len(first))
            if first.startswith(begun) and begun != first and begun[: len(_FIRST)] in (b"", _FIRST):
                os.ftruncate(self._opened, 0)
                self.append(first, self._check)
                _sync_folder(self._path.parent)
                return []
            found = self.header()
            if found != header:
                raise InvalidInputError(
                    f"{self._path} belongs to another account ({shortened(one_line(found))}). "
                    "Account.load(file) continues it."
                )
            *lines, last = stream.read().split(b"\n")
        entries, known = list[Spend](), dict[str, Mechanism]()
        self._size = len(first)
        for line in lines:
            entry = self._entry(line, known)
            if entry is None:
                raise InvalidInputError(
                    f"{self._path} is damaged in line {len(entries) + 2}: the checksum does not "
                    "match. Restore the file from a backup: the releases that it lists were made, "
                    "and perhaps more."
                )
            entries.append(entry)
        if last and (entry := self._entry(last, known)):
            os.write(self._opened, b"\n")
            entries.append(entry)
        elif last:
            os.ftruncate(self._opened, self._size)
        return entries

    def line(self, entry: Spend) -> tuple[bytes, str]:
        """Return the line of an entry and its checksum, after checking that it parses back."""
        if self._opened < 0:
            raise InvalidInputError(
                f"{self._path} is not open: this account was closed, or is a copy of the one that "
                "has the file open. Account.load(file) continues it."
            )
        if os.getpid() != self._owner:
            raise InvalidInputError(
                f"{self._path} is open in process {self._owner}. Only one process at a time can "
                "spend from an account."
            )
        text = repr(entry.mechanism)
        if notation.parse(text) != entry.mechanism:
            raise InvalidInputError(
                f"The notation {shortened(text)} does not parse back to the same mechanism, so the "
                "entry cannot be stored in a file."
            )
        return _line({"mechanism": text, "count": entry.count, "name": entry.name}, self._check)

    def append(self, line: bytes, check: str) -> None:
        """Append a line and sync it to disk; on failure restore the file and raise."""
        try:
            ours, named = os.fstat(self._opened), os.stat(self._path)
            if not os.path.samestat(ours, named) or ours.st_size != self._size:
                raise OSError("another program changed it")
            try:
                if os.write(self._opened, line) != len(line):
                    raise OSError("no space left")
                os.fsync(self._opened)
                self._check, self._size = check, self._size + len(line)
            except BaseException:
                os.ftruncate(self._opened, self._size)
                raise
        except OSError as error:
            raise InvalidInputError(
                f"Cannot write an entry to {self._path}: {error.strerror or error}. Nothing was "
                "spent."
            ) from error

    def close(self) -> None:
        """Close the file and release its lock."""
        if self._opened >= 0:
            os.close(self._opened)
            self._opened = -1

    def _entry(self, line: bytes, known: dict[str, Mechanism]) -> Spend | None:
        """Return the entry in the next line, or None if the line is not a valid entry."""
        body, check = _body(line + b"\n", self._check)
        match body:
            case {"mechanism": str(text), "count": int(count), "name": None | str() as name}:
                if len(body) != 3 or isinstance(count, bool) or not 1 <= count <= MOST_RELEASES:
                    return None
                if text not in known:
                    try:
                        known[text] = notation.parse(text)
                    except DpassayError:
                        return None
                self._check, self._size = check, self._size + len(line) + 1
                return Spend(known[text], count, name)
        return None


def _body(line: bytes, before: str) -> tuple[dict[str, Any], str]:
    """Return the content of a line and its checksum; ({}, "") unless `_line` would write it."""
    try:
        body = json.loads(line)
        del body["check"]
        same, check = _line(body, before)
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}, ""
    return (body, check) if same == line else ({}, "")


def _is_header(given: dict[str, Any]) -> bool:
    """Whether a header has the right keys and types; `Account` validates the values."""
    match given:
        case {"budget": None}:
            known = True
        case {"budget": {"kind": "EpsilonDelta" | "Mu" | "Rho" as kind, "numbers": [*numbers]}}:
            texts = [x for x in numbers if isinstance(x, str)]
            known = len(given["budget"]) == 2 and len(numbers) == len(texts) == len(_NUMBERS[kind])
        case _:
            return False
    match given:
        case {"adjacency": None | str(), "adaptive": bool(), "order": None | int()}:
            return known and len(given) == 4
    return False


def _lock_or_raise(opened: int) -> None:
    """Lock an open file, or raise BlockingIOError. The lock ends with the process."""
    if sys.platform == "win32":
        os.lseek(opened, 1 << 40, os.SEEK_SET)  # a byte far beyond the entries
        try:
            msvcrt.locking(opened, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error
    else:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every system syncs folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

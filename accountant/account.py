"""A running account: releases are spent one by one, and refused before they exceed a budget.

A *filter* is a rule that stops an analysis before a budget fixed in advance is exceeded; an
*odometer* is a running bound of what was spent. What may be added up depends on who chooses the
next release. Queries may always depend on what was released before. The mechanisms, their noise
and their counts either do not (`adaptive=False`) or do too (`adaptive=True`).

*Chosen without looking at outputs.* The product of the dominating pairs dominates all releases
together (Zhu, Dong and Wang 2022, Theorem 10), and stopping early publishes less. So the account is
exact, as filter and as odometer: a budget is kept when the profile, μ or ρ of the composition of
all releases keeps it.

*Chosen by earlier outputs.* To compose what happened to be chosen, and to stop at the budget, is
no valid filter in general: there are choices by which it exceeds (ε, δ) or a trade-off function.
Additive bounds are valid filters, whose limit is fixed in advance:

| budget | what is added up | proved by |
|---|---|---|
| ε, δ = 0 | largest privacy losses | Rogers, Roth, Ullman and Vadhan 2016 |
| ρ (zCDP) | the ρ of each release | Feldman and Zrnic 2021, at every order |
| μ (Gaussian DP) | the μ² of each release | Smith and Thakurta 2022 |
| (ε, δ), δ > 0 | Rényi divergences of one order | Feldman and Zrnic 2021 |

The proof of the last one: let L_i be the loss of release i and d_i ≥ its D_a, both given what was
released before. Then E_Q[e^{aL_i}] ≤ e^{(a − 1)d_i}, so the product of the e^{aL_i − (a − 1)d_i} is
a supermartingale under Q. As the d_i add up to at most D whatever happens, E_Q[e^{aΣL_i}] ≤
e^{(a − 1)D}: the divergence of all is at most D. Then
δ(ε) ≤ e^{(a − 1)(D − ε)} (1 − 1/a)^{a − 1}/a (Canonne, Kamath and Steinke 2020, Proposition 12).
The order is chosen by the budget alone, as for Gaussian noise. Of these sums only that of the
largest losses is an odometer too: it bounds the loss on every path. Otherwise the guarantee of an
adaptive account is that of its budget, at any time.
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
"""Orders of which the filter of an (ε, δ) budget takes one; whole ones are computed fastest."""
_FORMAT = "dpassay account 1"
_FIRST = f'{{"format": "{_FORMAT}", '.encode()
"""How the file of an account begins."""
_INSTEAD = {
    "step": "Write .spend(dpassay.PoissonSubsampled(dpassay.Gaussian(noise_multiplier), "
    "sample_rate)).",
    "total": "Ask .epsilon(delta).",
    "spent": "Ask .epsilon(delta).",
}
"""What to write for a method that other libraries have."""
_SHOWN = 12
"""Last releases that are printed: more hide the totals."""


class BudgetError(DpassayError):
    """A release would exceed the budget, or is not proved to keep it. Nothing was spent."""


@final
@dataclass(frozen=True, slots=True)
class Spend:
    """An entry of an account."""

    mechanism: Mechanism
    count: int
    name: str | None = None


@final
class Account(Drawable):
    """A running account of releases from the same data.

    Parameters
    ----------
    budget
        `EpsilonDelta(1, "1e-5")`, `Mu(…)`, `Rho(…)` or a pair (ε, δ); or give the next
        arguments. Without a budget nothing is refused.
    epsilon, delta, mu, rho
        The budget as numbers.
    adjacency
        The neighbouring relation, where the releases need one.
    adaptive
        Whether the mechanisms, their noise or counts may depend on earlier outputs. `theorem` names
        the theorem that then holds.
    order
        The order of the divergences that an adaptive account of an (ε, δ) budget adds up, an
        integer ≥ 2; None takes the best one for Gaussian noise. Rare samples need a smaller one.
    file
        Where every entry is written before `spend` returns. An account that is in the file already
        is continued if it has the same budget; any other file is refused, and not changed.
        `Account.load` takes the budget from the file. Only one process may have it open; a copy of
        the account, or the account once it is closed, cannot spend. An entry is on the disk before
        the release is made: a process that is killed between the two has spent what it did not
        release, never the reverse.

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
        """Open an account, with no releases or those of its file."""
        if not isinstance(adaptive, bool):
            raise expected("adaptive", adaptive, "to be True or False")
        self._budget = _read_budget(budget, epsilon, delta, mu, rho)
        self._adjacency = Adjacency.read(adjacency)
        self._adaptive = adaptive
        if adaptive and self._budget is None:
            raise InvalidInputError(
                "Expected a budget: for adaptively chosen noise only a filter with a limit that is "
                'fixed in advance is valid. Write Account(epsilon=1, delta="1e-5", adaptive=True).'
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
        """Open the account of a file, to go on with it.

        Raises InvalidInputError if there is none, if another process has it open, or if it is
        damaged anywhere but in an entry at its end that was not written to its end.
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
        """The budget, None where nothing is refused."""
        return self._budget

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbouring relation."""
        return self._adjacency

    @property
    def adaptive(self) -> bool:
        """Whether the noise may depend on earlier outputs."""
        return self._adaptive

    @property
    def history(self) -> tuple[Spend, ...]:
        """All that was spent, in order."""
        return tuple(self._history)

    @property
    def theorem(self) -> str:
        """What the account rests on."""
        if not self._adaptive:
            return (
                "The mechanisms, their noise and counts do not depend on outputs (queries may): "
                "the product of dominating pairs dominates (Zhu, Dong and Wang 2022, Theorem 10)."
            )
        return f"The noise may depend on outputs: {self._sum.theorem}."

    @property
    def mechanism(self) -> Mechanism | None:
        """The composition of all that was spent; None before the first."""
        return _composed(self._counts) if self._counts else None

    if not TYPE_CHECKING:  # which knows all names

        def __getattr__(self, name: str) -> Any:
            """Return a method that others name otherwise, or say what to write."""
            own = METHODS.get(name, "")
            if own in ("epsilon", "delta", "spend"):
                return getattr(self, own)
            raise no_attribute(self, name, _INSTEAD.get(name, ""))

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self._history)

    def __contains__(self, name: object) -> bool:
        """Whether an entry has a name."""
        return name in self._names

    def __iter__(self) -> Iterator[Spend]:
        """Iterate over the entries."""
        return iter(self.history)

    def spend(
        self, mechanism: Mechanism | str, count: int = 1, *, name: str | None = None
    ) -> Spend:
        """Spend a release, `count` times; make it after this returns.

        A name may be used once: after a crash `name in account` says whether that release was
        spent.

        Raises
        ------
        BudgetError
            If the budget would be exceeded, or cannot be proved to be kept.
        InvalidInputError
            If the name was used before, or the entry cannot be written to the file of the account.
        """
        entry = Spend(notation.read_mechanism(mechanism), _count(count), _name(name))
        with self._lock:
            line = None if self._file is None else self._file.line(entry)
            if name in self._names:
                raise InvalidInputError(
                    f"{name!r} was spent before, as entry {self._names[name]}. A second release "
                    "costs again: give it another name."
                )
            if not self._keeps(entry.mechanism, entry.count):
                raise BudgetError(
                    f"{_times(entry)} would exceed the budget {self._budget}: nothing was spent. "
                    "Do not make this release: remaining(mechanism) says how many are left."
                )
            if self._file is not None and line is not None:
                self._file.append(*line)
            self._add(entry)
        return entry

    def can_spend(self, mechanism: Mechanism | str, count: int = 1) -> bool:
        """Whether `spend` would be proved to keep the budget; nothing is spent."""
        release = notation.read_mechanism(mechanism)
        with self._lock:
            return self._keeps(release, _count(count))

    def remaining(self, mechanism: Mechanism | str) -> int:
        """Return how many more releases of a mechanism keep the budget, proved.

        10^12 means that at least so many do: a release that costs nothing has no limit. Raises
        NotApplicableError without a budget.
        """
        if self._budget is None:
            raise NotApplicableError("Without a budget nothing is refused. Give Account a budget.")
        release = notation.read_mechanism(mechanism)
        with self._lock:
            self._worst(release)
            sure = self._by_sum(release)
            if sure == MOST_RELEASES or (self._adaptive and not self._sum.is_exact):
                return sure
            return largest_count(lambda count: self._keeps(release, count), sure)

    def epsilon(self, delta: Number) -> Interval:
        """Enclose ε(δ) of all that was spent.

        Of an adaptive account it is what its budget guarantees, however it is used; with a budget
        of largest losses, and δ = 0, it is their sum so far.
        """
        return self._answer("epsilon", delta)

    def delta(self, epsilon: Number) -> Interval:
        """Enclose δ(ε) of all that was spent; of an adaptive account as for `epsilon`."""
        return self._answer("delta", epsilon)

    def close(self) -> None:
        """Close the file; nothing can be spent afterwards."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Account:
        """Close the file at the end of a `with`."""
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
        """Return the state without the open file, which only one account may have."""
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
        """Return the budget and how much was spent, on one line."""
        relation = f", {self._adjacency.value}" if self._adjacency else ""
        limit = "no budget" if self._budget is None else f"budget {self._budget}"
        adaptive = ", adaptive" if self._adaptive else ""
        releases = sum(self._counts.values())
        return f"<Account: {limit}{relation}{adaptive}; {releases} releases in {len(self)} entries>"

    def _repr_html_(self) -> str:
        """Return a table, for notebooks."""
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
        """Return all entries and one release as one mechanism, Gaussian ones as one.

        Gaussian releases compose to one whose μ² is the sum of theirs: an entry more costs as much
        after 10 as after 1000.
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
        """Raise AdjacencyError where the relation does not fit, or is needed and not named."""
        if release not in self._counts:
            release.worst_case(self._adjacency)

    def _keeps(self, release: Mechanism, count: int) -> bool:
        """Whether the budget is proved to be kept with one more release."""
        self._worst(release)
        if self._budget is None:
            return True
        if self._by_sum(release) >= count:
            return True
        if self._adaptive and not self._sum.is_exact:
            return False
        return bool(decided(self._budget, self._whole(release, count), self._adjacency))

    def _by_sum(self, release: Mechanism) -> int:
        """Return how many more the sum allows."""
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
                return self._promised(found, at) if name == "epsilon" else found
            whole = self._whole()
        question = profile.epsilon if name == "epsilon" else profile.delta
        return question(whole, at, adjacency=self._adjacency)

    def _promised(self, found: Interval, delta: Number) -> Interval:
        """Bound an ε by that of the budget, where the budget has one at this δ."""
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
    """Return μ² of Gaussian noise, or of its compositions; None of anything else."""
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
    """What is added up, release by release, and its limit: a sum within it keeps the budget."""

    name: str
    limit: Fraction
    theorem: str
    guarantee: Mapping[str, Any]
    """The budget as `convert` takes it."""
    adjacency: Adjacency | None
    order: int | None = None
    is_exact: bool = False
    """Whether the composition keeps the budget only where the sum does."""

    @staticmethod
    def of(budget: Budget | None, adjacency: Adjacency | None, order: int | None) -> _Sum:
        """Return it for a budget."""
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
        """Return an upper bound of what one release adds; None where none is finite or known."""
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
                return mu.square
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
    """Return the order with the most room for Gaussian noise, and the largest sum that keeps δ."""

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
            "Expected one budget: epsilon (with delta, else 0), mu or rho. Write "
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
        raise expected("budget", budget, "to be of both directions, with epsilon ≥ 0")
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
    """Return a line of a file, and the checksum of it and of all lines before."""
    text = before + json.dumps(body, sort_keys=True)
    check = hashlib.sha256(text.encode()).hexdigest()[:32]
    return json.dumps({**body, "check": check}, ensure_ascii=False).encode() + b"\n", check


@final
class _File:
    """One line of JSON for the budget and for each entry, each with a checksum of all before.

    A line is written and synced before the entry counts. A last line without its end is of a
    process that died while writing: nothing was released for it, and it is cut off, unless the
    line end alone is missing. A file that is of no account, or of another, is left as it is.
    """

    def __init__(self, path: Path | str, *, may_create: bool) -> None:
        """Open and lock a file; whether it is of an account is seen when it is read."""
        self._owner, self._opened, self._check, self._size = os.getpid(), -1, "", 0
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if may_create else 0)
        for name in ("O_CLOEXEC", "O_BINARY", "O_NONBLOCK"):
            flags |= getattr(os, name, 0)
        try:
            self._path = Path(path).absolute()
            if self._path.exists() and not self._path.is_file():
                raise OSError("it is no regular file")
            self._opened = os.open(self._path, flags, 0o600)
            _take(self._opened)
        except BlockingIOError:
            self.close()
            raise InvalidInputError(
                f"{path} is open already. One process at a time spends from an account."
            ) from None
        except (OSError, TypeError, ValueError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or error
            raise expected("file", path, f"to be a file to read and write: {reason}") from None

    def __getstate__(self) -> dict[str, Any]:
        """Return it closed: a copy does not write."""
        return self.__dict__ | {"_opened": -1}

    def header(self) -> dict[str, Any]:
        """Return what the first line says; its arguments are judged by Account."""
        with open(self._path, "rb") as stream:
            if stream.read(len(_FIRST)) == _FIRST:
                stream.seek(0)
                header, _ = _body(stream.readline(), "")
                header.pop("format", None)
                if _is_header(header):
                    return header
        raise InvalidInputError(
            f"{self._path} is not an account file, or its first line is damaged. It was not "
            "changed. Choose another file for a new account."
        )

    def read(self, header: Mapping[str, Any]) -> list[Spend]:
        """Return the entries of the file; write the header of a new one."""
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
                    f"{self._path} is damaged in line {len(entries) + 2}: the line does not "
                    "continue the entries before it. Restore the file: what it lists was spent, "
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
        """Return the line of an entry, and its checksum; it must be read back as the same."""
        if self._opened < 0:
            raise InvalidInputError(
                f"{self._path} is not open: the account was closed, or is a copy of the one that "
                "has the file. Account.load(file) continues it."
            )
        if os.getpid() != self._owner:
            raise InvalidInputError(
                f"{self._path} belongs to process {self._owner}. One process at a time spends from "
                "an account."
            )
        text = repr(entry.mechanism)
        if notation.parse(text) != entry.mechanism:
            raise InvalidInputError(
                f"{shortened(text)} has no notation that can be read back, so it cannot be stored "
                "in a file."
            )
        return _line({"mechanism": text, "count": entry.count, "name": entry.name}, self._check)

    def append(self, line: bytes, check: str) -> None:
        """Write a line, durably, or raise with the file as it was."""
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
        """Close it, which gives the lock back."""
        if self._opened >= 0:
            os.close(self._opened)
            self._opened = -1

    def _entry(self, line: bytes, known: dict[str, Mechanism]) -> Spend | None:
        """Return the entry of the next line; None if it is none."""
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
    """Return what a line says, and its checksum; nothing unless it is as `_line` writes it."""
    try:
        body = json.loads(line)
        del body["check"]
        same, check = _line(body, before)
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}, ""
    return (body, check) if same == line else ({}, "")


def _is_header(given: dict[str, Any]) -> bool:
    """Whether the types are right; Account judges the values."""
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


def _take(opened: int) -> None:
    """Lock an open file, or raise BlockingIOError; the system gives it back with the process."""
    if sys.platform == "win32":
        os.lseek(opened, 1 << 40, os.SEEK_SET)  # a byte far behind the entries
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

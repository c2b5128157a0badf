"""Accountants with the interfaces of Opacus and dp-accounting, which answer with our upper ends.

Neither library is imported: what is asked of an accountant is done by its methods. A number is the
upper end of an enclosure, rounded up to a float, under what `assumption` says. With Opacus,

    from dpassay.integrations.opacus import OpacusAccountant

    engine = PrivacyEngine(accountant="dpassay")

as importing that module registers the name; with dp-accounting, wherever a `PrivacyAccountant` is
asked; with jax-privacy, `DpsgdTrainingAccountant(JaxPrivacyConfig())`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any, final

from dpassay.accountant.account import Account
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import (
    AdjacencyError,
    InvalidInputError,
    NotApplicableError,
    expected,
)
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from dpassay.accountant.training.run import dpsgd
from dpassay.accountant.training.schemes import TruncatedBatches
from dpassay.verifier.foreign import events, opacus
from dpassay.verifier.foreign.events import count as whole


def _upward(found: Interval) -> float:
    """Return a float ≥ the upper end, and ≥ 0."""
    nearest = float(found.upper)
    if nearest < found.upper:
        nearest = math.nextafter(nearest, math.inf)
    return max(0.0, nearest)


@final
class OpacusAccountant:
    """An accountant of Opacus: steps, each a Poisson sample of which a Gaussian sum is released.

    Opacus does not tell an accountant how batches are drawn. The optimiser's hook therefore looks
    at their sizes, which vary under Poisson sampling: n batches of one size in a row have a
    probability of at most p^(n − 1), p the largest probability of a size. Where that is below 1e-6
    the loader is taken to be a shuffled one: there is a warning, and ε is that of shuffled batches.
    """

    assumption = (
        "Neighbours: one record is added or removed. Every step takes each record with probability "
        "sample_rate, independently, as poisson_sampling=True does; a shuffled loader does not."
    )

    def __init__(self) -> None:
        """Begin with no steps."""
        self.history: list[tuple[float, float, int]] = []
        self._account = Account(adjacency=Adjacency.ADD_REMOVE)
        self._spent: list[tuple[float, float, int]] = []
        self.shuffled_batch: int | None = None
        """Records in each batch, once the loader is known to shuffle; None before."""
        self._equal = (-1, 0)  # the size of the last batch, and how many in a row had it

    def __len__(self) -> int:
        """Return the number of entries in the history, as Opacus does."""
        return len(self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Return the name that Opacus stores beside the history."""
        return "dpassay"

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one step."""
        entry = (noise_multiplier, sample_rate, 1)
        if self.history and self.history[-1][:2] == entry[:2]:
            entry = (noise_multiplier, sample_rate, self.history.pop()[2] + 1)
        self.history.append(entry)

    @property
    def account(self) -> Account:
        """The steps so far as an account: what the history has gained since is spent."""
        before, now = self._spent, list(self.history)
        last = now[len(before) - 1] if 0 < len(before) <= len(now) else None
        more = [*now[len(before) :]]
        if before and last is not None:
            more.insert(0, (*last[:2], last[2] - before[-1][2]))
        grown = before[:-1] == now[: max(0, len(before) - 1)] and all(n >= 0 for *_, n in more[:1])
        if not grown or (before and (last is None or last[:2] != before[-1][:2])):
            self._account, more = Account(adjacency=Adjacency.ADD_REMOVE), now
        for entry in more:
            if entry[2]:
                self._account.spend(opacus.mechanism_of([(*entry[:2], 1)]), entry[2])
        self._spent = now
        return self._account

    def get_epsilon(self, delta: float, **options: Any) -> float:
        """Return an ε that the steps so far have at δ.

        Options of other accountants, such as alphas, are refused: the answer needs none.
        """
        if options:
            raise InvalidInputError(
                f"Expected no options such as {next(iter(options))!r}: only delta is needed."
            )
        if any(noise == 0 for noise, _, _ in self.history):
            return math.inf
        if self.shuffled_batch is not None:
            return self._epsilon_of_shuffles(delta, self.shuffled_batch)
        return _upward(self.account.epsilon(delta))

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return what Opacus' optimiser calls after each step."""

        def hook(optimizer: Any) -> None:
            rate = sample_rate * optimizer.accumulated_iterations
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=rate)
            if self.shuffled_batch is None:
                self._look_at(_batch_size(optimizer), rate)

        return hook

    def _look_at(self, size: int | None, rate: float) -> None:
        """Count equal batches in a row; warn when a Poisson sample would hardly give them."""
        if size is None or not 0 < rate < 1:
            return
        last, times = self._equal
        self._equal = size, times + 1 if size == last else 1
        variance = max(size, 1) * (1 - rate)
        largest = min(1.0, 1 / math.sqrt(2 * math.pi * variance) + 0.5 / variance)
        if (self._equal[1] - 1) * math.log(largest) < math.log(_CHANCE):
            self.shuffled_batch = size
            warnings.warn(
                f"{self._equal[1]} batches in a row had {size} records: the loader shuffles. "
                "epsilon will be that of shuffled batches; poisson_sampling=True has a smaller "
                "one for most runs.",
                UserWarning,
                stacklevel=3,
            )

    def _epsilon_of_shuffles(self, delta: float, batch: int) -> float:
        """Return an ε of the steps so far with shuffled batches of this size, and say so."""
        if len({entry[:2] for entry in self.history}) > 1:
            raise NotApplicableError(
                "The loader shuffles, and the noise or the batch size changed: no epsilon of "
                "such a run is known. Use poisson_sampling=True."
            )
        noise, rate, _ = self.history[0]
        run = dpsgd(
            noise, batch, batch * round(1 / rate), steps=sum(entry[2] for entry in self.history),
            delta=delta, sampling="shuffle",
        )  # fmt: skip
        found = _upward(run.epsilon)
        warnings.warn(
            f"The loader shuffles: epsilon = {found:.6g} is that of shuffled batches, for a "
            "gradient that is 0 in one of two neighbours. It is no guarantee by Poisson batches.",
            UserWarning,
            stacklevel=3,
        )
        return found

    def state_dict(self, destination: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the history and the name, for a checkpoint."""
        found = {} if destination is None else destination
        found["history"] = list(self.history)
        found["mechanism"] = self.mechanism()
        if self.shuffled_batch is not None:
            found["shuffled_batch"] = self.shuffled_batch
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the history of a checkpoint, of any accountant of Opacus."""
        if not state_dict or "history" not in state_dict:
            raise expected("state_dict", state_dict, "to have a history")
        entries = [tuple(entry) for entry in state_dict["history"]]
        opacus.mechanism_of([entry for entry in entries if entry[:1] != (0,)])
        self.history = entries
        self.shuffled_batch = state_dict.get("shuffled_batch")
        self._equal = (-1, 0)


def _batch_size(optimizer: Any) -> int | None:
    """Return how many records Opacus' optimiser has just summed, None if it does not say."""
    for parameter in getattr(optimizer, "params", ()):
        gradients = getattr(parameter, "grad_sample", None)
        if gradients is not None:
            parts = gradients if isinstance(gradients, list) else [gradients]
            return sum(map(len, parts))
    return None


_CHANCE = 1e-6
"""How often a Poisson loader may be taken for a shuffled one."""


@final
class EventAccountant:
    """A PrivacyAccountant of dp-accounting: events of version 0.6, composed."""

    def __init__(self, neighboring_relation: object = "ADD_OR_REMOVE_ONE") -> None:
        """Begin with nothing, for one of its relations, or the name of one."""
        self._given, self._relation = neighboring_relation, events.neighbours(neighboring_relation)
        self.account = Account(adjacency=self._relation.adjacency)
        """All that was composed but batches that are cut."""
        self._cut: list[TruncatedBatches] = []
        self._events: list[tuple[object, int]] = []

    @property
    def assumption(self) -> str:
        """What the numbers are for."""
        return (
            f"Neighbours: {self._relation.name}. Events happen as they are described; sampling "
            "by Poisson is none by shuffling."
        )

    @property
    def neighboring_relation(self) -> object:
        """The relation that was given."""
        return self._given

    def why_not(self, event: object) -> str | None:
        """Return in one line why an event cannot be taken, None if it can."""
        try:
            if not self._is_truncated(event):
                events.mechanism_of(event, self._relation.name)
        except (AdjacencyError, InvalidInputError, NotApplicableError) as error:
            return " ".join(str(error).split())
        return None

    def supports(self, event: object) -> bool:
        """Whether an event can be taken."""
        return self.why_not(event) is None

    def compose(self, event: object, count: int = 1) -> EventAccountant:
        """Take an event, `count` times; raise what says why not where it cannot be taken."""
        times = whole("count", count)
        if self._is_truncated(event):
            if times:
                self._cut.append(events.truncated(event, times))
        else:
            release = events.mechanism_of(event, self._relation.name)
            if times and release != events.NOTHING:
                self.account.spend(release, times)
        self._events.append((event, times))
        return self

    @property
    def ledger(self) -> Any:
        """All that was composed as one event of dp-accounting, which must be installed."""
        builder = import_module("dp_accounting.dp_event_builder").DpEventBuilder()
        for event, times in self._events:
            builder.compose(event, times)
        return builder.build()

    def _is_truncated(self, event: object) -> bool:
        """Whether an event is a batch that is cut, about an added or removed record."""
        adds = self._relation.adjacency is Adjacency.ADD_REMOVE
        return adds and type(event).__name__ == events.TRUNCATED

    @property
    def mechanism(self) -> Mechanism:
        """All that was composed; for batches that are cut, a run without cuts that is no better."""
        known = self.account.mechanism
        parts = [*([] if known is None else [known]), *(cut.worst() for cut in self._cut)]
        if len(parts) == 1:
            return parts[0]
        return Composed(tuple(parts)) if parts else events.NOTHING

    def get_epsilon(self, target_delta: float) -> float:
        """Return an ε that it has at δ."""
        if len(self._cut) == 1 and not len(self.account):
            upper = self._cut[0].upper(exact(target_delta))[0]
            return _upward(Interval.of_exact(Fraction(upper)))
        if not self._cut:
            return _upward(self.account.epsilon(target_delta))
        found = profile.epsilon(self.mechanism, target_delta, adjacency=self._relation.adjacency)
        return _upward(found)

    def get_delta(self, target_epsilon: float) -> float:
        """Return a δ that it has at ε; of truncated batches that of `mechanism`."""
        if not self._cut:
            return min(1.0, _upward(self.account.delta(target_epsilon)))
        found = profile.delta(self.mechanism, target_epsilon, adjacency=self._relation.adjacency)
        return min(1.0, _upward(found))


@final
class JaxPrivacyConfig:
    """The configuration of an accountant, as jax-privacy's training accountants take one."""

    def create_accountant(self) -> EventAccountant:
        """Return a new accountant, for neighbours that add or remove a record."""
        return EventAccountant("ADD_OR_REMOVE_ONE")

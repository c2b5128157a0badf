"""Both neighbours with the same noise: what a mechanism draws, and how far its outputs move.

A mechanism that takes all its noise from the generator it is given is run on two neighbours, with
equal seeds. It then sees the same random numbers, and what differs comes from the data:

- *The draws*: a run asks its generator for other methods, or other numbers of values, on either
  side. The control flow depends on the data. It may do so in a private mechanism (a sparse vector
  stops where the data say), but then the proof has to say why.
- *The parameters*: the same draws with other arguments, as a scale that was estimated from the
  data. A location that is the answer itself is harmless.
- *The outputs*: where M(x) = f(x) + Z and Z is the noise alone, the two outputs differ by
  f(x') − f(x), whatever the noise is. A difference that is the same in every run, up to rounding,
  is what such a mechanism shows; its norm is then at most the sensitivity of f, so that a larger
  one than claimed says that the claimed sensitivity is wrong. Where it varies from run to run, it
  says nothing of a sensitivity.

All of this is TESTED on the runs and the pairs that were tried, up to rounding: it says where to
look. It is no verdict, and the law of the outputs is not looked at (`audit` does that).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from dpassay.accountant.errors import InvalidInputError, expected, shortened
from dpassay.verifier.audit.kinds.result import shown
from dpassay.verifier.audit.learning.features import Values
from dpassay.verifier.audit.learning.outputs import numeric
from dpassay.verifier.audit.runs.blocks import Datasets, generator
from dpassay.verifier.audit.runs.target import NOT_REPEATABLE, PerBlock, PerRun, target

Draws: TypeAlias = list[tuple[str, int, str]]
"""The calls of a run: the method, how many values it gave, and the call in full."""

_SAME_NOISE = 906
"""The part of the seed that these runs have to themselves."""
_ROUNDINGS = 8
"""Last places of the outputs by which their difference may vary: four operations on either side."""


class Recorder(np.random.Generator):
    """A generator that writes down what it is asked for, in `draws`."""

    def __init__(self, bits: Any) -> None:
        """Take the same bits as the generator that is built on them."""
        super().__init__(bits)
        self.draws: Draws = []

    def __getattribute__(self, name: str) -> Any:
        """Return a method that is written down when it is called."""
        found = super().__getattribute__(name)
        if name.startswith("_") or name == "spawn" or not callable(found):
            return found

        def drawn(*given: Any, **named: Any) -> Any:
            said = [_written(each) for each in given]
            said += [f"{key}={_written(each)}" for key, each in named.items()]
            values = found(*given, **named)
            self.draws.append((name, int(np.size(values)), f"{name}({', '.join(said)})"))
            return values

        return drawn

    def spawn(self, n_children: int) -> Any:
        """Return generators that write into the same list."""
        children: list[Any] = super().spawn(n_children)
        for child in children:
            child.draws = self.draws
        return children


@final
@dataclass(frozen=True)
class SameNoisePair:
    """What differed between two neighbours that saw the same noise."""

    datasets: tuple[str, str]
    runs: int
    values_drawn: tuple[int, int]
    """The most values that a run drew on either side."""
    draws_differ: int
    """Runs that drew other numbers of values, or by other methods."""
    arguments_differ: int
    """Runs with the same draws but another argument."""
    example: str
    """The first draw that differed; empty where none did."""
    incomparable: int
    """Runs whose outputs differ and are not finite numbers of one shape."""
    l1: float
    l2: float
    linf: float
    """The largest norms of the difference of the other outputs."""
    constant: bool
    """Whether the difference is the same number or vector in all runs, up to rounding."""


@final
@dataclass(frozen=True)
class SameNoise:
    """What the same noise showed, over all pairs."""

    name: str
    called: str
    pairs: tuple[SameNoisePair, ...]
    seed: int

    def sensitivity(self, norm: str) -> float | None:
        """Return the largest change of the answer, up to rounding, in the norm l1, l2 or linf.

        It counts pairs whose difference does not depend on the noise; None where there is none.
        """
        if norm not in ("l1", "l2", "linf"):
            raise expected("norm", norm, "to be l1, l2 or linf")
        return max((getattr(pair, norm) for pair in self.pairs if pair.constant), default=None)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "status": "TESTED",
            "mechanism": self.name,
            "called": self.called,
            "pairs": [dataclasses.asdict(pair) for pair in self.pairs],
            "seed": self.seed,
        }

    def __str__(self) -> str:
        """Return a line about each pair."""
        lines = [f"TESTED (no verdict): {self.called}; equal seeds for both neighbours"]
        return "\n".join(lines + [_line(pair) for pair in self.pairs])


def same_noise(
    mechanism: Any,
    pairs: Iterable[Datasets],
    *,
    runs: int = 100,
    seed: int,
) -> SameNoise:
    """Run a mechanism on both neighbours of each pair with the same noise, and compare.

    Parameters
    ----------
    mechanism
        A callable that takes all its noise from a `numpy.random.Generator`: mechanism(dataset, rng)
        or mechanism(dataset, size, rng), which is called for one run at a time.
    pairs
        Pairs of neighbouring datasets, such as those of `neighbours`.
    runs
        Runs of each pair, at least 2.
    seed
        Of all draws.

    Raises
    ------
    InvalidInputError
        For no pair, fewer than 2 runs, a mechanism that takes no generator, draws nothing from it,
        or gives another output when it is run again on the same data with the same seed.
    MechanismError
        If the mechanism raises.
    """
    aim = target(mechanism)
    if not isinstance(aim, (PerRun, PerBlock)) or not aim.binding.takes_generator:
        raise InvalidInputError(
            f"Expected {aim.name} to take a generator, as in {aim.name}(dataset, rng): without it "
            "the noise of two runs cannot be made the same."
        )
    listed = list(pairs)
    if not listed:
        raise expected("pairs", listed, "to be at least one pair of neighbouring datasets")
    if runs < 2:
        raise expected("runs", runs, "≥ 2")
    found = [_pair(aim, pair, runs, seed, index) for index, pair in enumerate(listed)]
    return SameNoise(aim.name, aim.called, tuple(found), seed)


def _pair(
    aim: PerRun | PerBlock, pair: Datasets, runs: int, seed: int, index: int
) -> SameNoisePair:
    """Compare the runs of one pair."""

    def once(dataset: Any, run: int) -> tuple[Any, Draws]:
        recorder = Recorder(generator(seed, _SAME_NOISE, index, run).bit_generator)
        return aim.sample(dataset, 1, recorder)[0], recorder.draws

    again = [once(pair[0], 0) for _ in range(2)]
    if [_written(out) for out, _ in again] != 2 * [_written(again[0][0])] or (
        again[0][1] != again[1][1]
    ):
        raise InvalidInputError(f"Expected {aim.name} to repeat its outputs: {NOT_REPEATABLE}.")
    if not again[0][1] and not once(pair[1], 0)[1]:
        raise InvalidInputError(
            f"Expected {aim.name} to draw from the generator it is given; it asked for nothing."
        )
    differ = arguments = incomparable = 0
    most, example = [0, 0], ""
    apart: list[Values] = []
    places: list[float] = []
    for run in range(runs):
        (first, own), (second, other) = (once(side, run) for side in pair)
        most = [max(a, sum(n for _, n, _ in b)) for a, b in zip(most, (own, other), strict=True)]
        flow = [draw[:2] for draw in own] != [draw[:2] for draw in other]
        differ += flow
        arguments += not flow and own != other
        example = example or next(_differences(own, other), "")
        rows = numeric([first, second])
        if rows is None or not np.isfinite(rows).all():
            incomparable += _written(first) != _written(second)
        else:
            rows = rows.astype(np.float64)
            apart.append(rows[1] - rows[0])
            places.append(float(np.spacing(np.abs(rows).max(initial=0.0))))
    constant = not incomparable and not differ and _constant(apart, places)
    kept = [apart[int(np.argmin(places))]] if constant else apart
    l1, l2, linf = (
        float(max((np.linalg.norm(each, order) for each in kept), default=0.0))
        for order in (1, 2, np.inf)
    )
    return SameNoisePair(
        datasets=(shown(pair[0]), shown(pair[1])),
        runs=runs,
        values_drawn=(most[0], most[1]),
        draws_differ=differ,
        arguments_differ=arguments,
        example=example,
        incomparable=incomparable,
        l1=l1,
        l2=l2,
        linf=linf,
        constant=constant,
    )


def _constant(apart: list[Values], places: list[float]) -> bool:
    """Whether all differences equal the most exact one, up to rounding."""
    if len({each.shape for each in apart}) != 1:
        return False
    finest = int(np.argmin(places))
    return all(
        np.abs(each - apart[finest]).max(initial=0.0) <= _ROUNDINGS * (place + places[finest])
        for each, place in zip(apart, places, strict=True)
    )


def _differences(own: Draws, other: Draws) -> Iterator[str]:
    """Show the draws in which two runs differ."""
    for pair in itertools.zip_longest(own, other):
        if pair[0] != pair[1]:
            first, second = ("nothing" if draw is None else shortened(draw[2]) for draw in pair)
            yield f"{first} against {second}"


def _written(value: Any) -> str:
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)


def _line(pair: SameNoisePair) -> str:
    """Say what one pair showed."""
    said = []
    if pair.draws_differ:
        said.append(f"other draws in {pair.draws_differ} of {pair.runs} runs ({pair.example})")
    if pair.arguments_differ:
        said.append(f"other arguments in {pair.arguments_differ} ({pair.example})")
    if not said:
        said.append("the same draws")
    norms = f"l1 {pair.l1:.6g}, l2 {pair.l2:.6g}, linf {pair.linf:.6g}"
    if pair.constant and pair.l1:
        said.append(f"outputs differ by the same amount in every run: {norms}")
    elif pair.incomparable:
        said.append(
            f"outputs that are no finite numbers of one shape differ in {pair.incomparable}"
        )
    elif pair.l1:
        said.append(f"outputs differ by at most {norms}, which depends on the noise")
    else:
        said.append("the same outputs")
    return f"  {pair.datasets[0]} and {pair.datasets[1]}: {'; '.join(said)}"

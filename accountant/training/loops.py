"""The settings of a training loop, and what a run releases."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant import ask
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import integer
from dpassay.accountant.errors import InvalidInputError, UndecidedError, expected
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.precision import ctx

_PRECISION = 128
"""Bits of what is left of δ."""
_LARGE, _FEW = ExactReal.of_rational(Fraction(1, 2)), Fraction(1, 10**5)
"""A large δ, and the relative width of ε above it, hardly more than ln(1 − δ): ten digits take ten
seconds."""


@final
@dataclass(frozen=True, slots=True)
class Loop:
    """How long a training loop runs, on what."""

    batch: int
    size: int
    epochs: Fraction | None
    """None where the steps are counted."""
    given_steps: int | None
    group: int
    most: int | None = None
    """Records that a Poisson batch may have; None where there is no limit."""

    @classmethod
    def of(
        cls,
        batch_size: int,
        dataset_size: int,
        epochs: Number | None,
        steps: int | None,
        group: int = 1,
        *,
        most: int | None = None,
    ) -> Loop:
        """Return the loop of checked settings."""
        batch = integer("batch_size", batch_size, least=1)
        size = integer("dataset_size", dataset_size, least=1)
        people = integer("group", group, least=1)
        if people > size:
            raise expected("group", people, f"≤ dataset_size={size}", "Count the records.")
        if most is not None:
            most = integer("truncated_batch_size", most, least=1)
        if batch > size:
            raise expected("batch_size", batch, f"≤ dataset_size={size}", "Are the two swapped?")
        if (epochs is None) == (steps is None):
            raise InvalidInputError(
                "Expected the length of the run: epochs=30 or steps=7032, one of them."
            )
        if steps is not None:
            return cls(batch, size, None, integer("steps", steps, least=1), people, most)
        number = exact(epochs, "epochs").rational  # type: ignore[arg-type]  # it is given
        if number is None or number <= 0:
            raise expected("epochs", epochs, "to be a positive rational number")
        return cls(batch, size, number, None, people, most)

    @property
    def share(self) -> Fraction:
        """Share of the records in a batch."""
        return Fraction(self.batch, self.size)

    @property
    def share_in_words(self) -> str:
        """The share as both sizes; as a float where it was given as one."""
        nearest = float(self.share)
        is_float = self.size >= 1 << 32 and Fraction(nearest) == self.share
        return repr(nearest) if is_float else f"{self.batch}/{self.size}"

    @property
    def steps(self) -> int:
        """Steps of batches that are sampled anew."""
        if self.epochs is None:
            return self.given_steps or 0
        return math.ceil(self.epochs / self.share)

    @property
    def steps_in_words(self) -> str:
        """Where the number of steps comes from."""
        if self.epochs is None:
            return f"The run has {self.steps} step{'s' if self.steps > 1 else ''}."
        said = "One epoch is" if self.epochs == 1 else f"{self.epochs} epochs are"
        return f"{said} {self.steps} step{'s' * (self.steps > 1)} (rounded up)."

    @property
    def full_batches(self) -> int:
        """Batches of an epoch that are full: its least number of steps."""
        return self.size // self.batch

    @property
    def whole_epochs(self) -> tuple[int, int]:
        """How many epochs are run from end to end, and how many are begun, at most."""
        if self.epochs is None:
            done = self.steps // math.ceil(1 / self.share)
            return done, math.ceil(Fraction(self.steps, self.full_batches))
        return math.floor(self.epochs), math.ceil(self.epochs)

    @property
    def epochs_in_words(self) -> str:
        """How epochs are counted, and batches in them."""
        (done, begun), full = self.whole_epochs, self.full_batches
        counted = "" if done == begun else ", parts counted as whole ones"
        words = f"The run has {begun} epoch{'s' if begun > 1 else ''}{counted}"
        if self.size % self.batch == 0:
            return f"{words}, of {full} step{'s' if full > 1 else ''} each."
        return f"{words}, of {full} steps or more each ({self.size}/{self.batch} is not whole)."


@final
@dataclass(frozen=True, slots=True)
class Scheme:
    """What a run releases under one sampling."""

    mechanism: Mechanism
    """All steps together, or what is no better."""
    adjacency: Adjacency
    assumptions: tuple[str, ...]
    steps: int
    share: Fraction
    ends: Callable[[ExactReal], tuple[Interval, str]] | None = None
    """An enclosure of ε(δ) and what its ends rest on, where the mechanism is not all there is."""

    def epsilon(self, delta: ExactReal) -> tuple[Interval, str]:
        """Enclose ε(δ), and say what its ends rest on where they differ in kind."""
        if self.ends is not None:
            return self.ends(delta)
        return enclosed(self.mechanism, self.adjacency, delta), ""


def rational_below(delta: ExactReal) -> Fraction:
    """Return a rational number that is at most δ, and hardly less."""
    with ctx.workprec(_PRECISION):
        return Fraction(Interval.of_ball(delta.ball()).lower)


def least_epsilon(delta: ExactReal) -> Decimal:
    """Return a lower bound of every ε(δ): ln(1 − δ), as H(ε) ≥ 1 − e^ε for all P and Q."""
    if delta >= ExactReal.of_rational(1):
        return Decimal("-Infinity")
    return enclose(lambda: arb.log1p(-delta.ball())).lower


def enclosed(
    mechanism: Mechanism,
    adjacency: Adjacency,
    delta: ExactReal,
    relative_width: Fraction | None = None,
) -> Interval:
    """Return ε(δ), to a relative width where it is reached, else as it comes soon."""
    found: Interval
    if relative_width is None and delta > _LARGE:
        relative_width = _FEW
    with contextlib.suppress(UndecidedError):
        found = ask.epsilon(mechanism, delta, adjacency=adjacency, relative_width=relative_width)
        return found
    found = ask.epsilon(mechanism, delta, adjacency=adjacency)
    return found

"""Is every output on one fixed lattice that does not depend on the input? CERTIFIED or not.

A mechanism whose outputs are integers of a fixed step has no floating-point channel: what an
output tells is the integer, and that is audited like any value. Here the steps are learned from
training runs on several datasets (or given), and tested on fresh runs:

- every fresh output must lie on the lattice, which bounds the probability of one that does not;
- doubles must have had room for more: outputs whose last place is a thousandth of the step or less
  lie on it by chance with probability below 10^−3 each;
- on every dataset some outputs must be odd multiples of the step: a dataset that keeps to a
  coarser lattice is recognised by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NeitherTrueNorFalse, expected
from dpassay.verifier.audit.learning.bit_features import OF_ZERO, lowest_bit
from dpassay.verifier.audit.learning.features import Values
from dpassay.verifier.audit.learning.outputs import numeric
from dpassay.verifier.audit.runs.blocks import Datasets
from dpassay.verifier.audit.runs.plan import own_pairs
from dpassay.verifier.audit.runs.target import target

_ROOM = 1000
"""Places of a double for each step of a lattice: numbers of any law lie on it once in 1000."""
_LEAST_WITH_ROOM = 10
"""Outputs with such room: by chance they all lie on the lattice with probability 1e-30."""
_MOST_DECIMALS = 12
"""Decimals that a step may have: with more, doubles have little room."""
_LEAST_RUNS = 100
"""Runs on a dataset: fewer bound what is off the lattice by no better than 13 % at 1e-6."""
NASTY = (0.0, 1.0, 0.1, 1 / 3, -2.5, 1 - 2.0**-53, 255.999, 1e6 + 0.7)
"""True answers at which naive floating-point noise shows: zero, tenths, edges of a binade."""


@final
@dataclass(frozen=True)
class LatticeFinding(NeitherTrueNorFalse):
    """What was found about the lattice of a mechanism's outputs."""

    compare: ClassVar[str] = ".verdict, or ask .certified"
    certified: bool
    steps: tuple[str, ...]
    """The step of every coordinate, exact; empty where none was found."""
    off_lattice: float
    """Upper bound of the probability of an output off the lattice, on any of the datasets."""
    significance: float
    runs: int
    """Fresh runs on every dataset."""
    datasets: int
    seed: int
    reason: str

    @property
    def verdict(self) -> str:
        """CERTIFIED or NOT CERTIFIED."""
        return "CERTIFIED" if self.certified else "NOT CERTIFIED"

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "verdict": self.verdict,
            "statement": "every output lies on one fixed lattice that does not depend on the input",
            "steps": list(self.steps),
            "off_lattice_at_most": self.off_lattice,
            "significance": self.significance,
            "runs": self.runs,
            "datasets": self.datasets,
            "seed": self.seed,
            "reason": self.reason,
        }

    def __str__(self) -> str:
        """Return the verdict in one line."""
        return f"{self.verdict}: {self.reason}"


def lattice_datasets(mechanism: Any, pairs: Iterable[Datasets] | None = None) -> list[Any]:
    """Return datasets on which one lattice should hold: both sides of the pairs, and nasty answers.

    A mechanism of this package that adds real noise is also asked for answers in tenths, thirds and
    at the edges of binades; a foreign one only for what it is said to take.

    Raises InvalidInputError where pairs are needed and not given.
    """
    listed = [side for pair in (own_pairs(mechanism) if pairs is None else pairs) for side in pair]
    real = isinstance(mechanism, Mechanism) and (mechanism.adds_real_noise())
    if real:
        shape = np.shape(listed[0])
        listed += [np.full(shape, value) if shape else value for value in NASTY]
    distinct = {repr(np.asarray(side).tolist() if real else side): side for side in listed}
    return list(distinct.values())


def one_lattice(
    mechanism: Any,
    datasets: Sequence[Any] = NASTY,
    *,
    runs: int = 10_000,
    significance: float = 1e-6,
    seed: int,
    steps: Sequence[Fraction] | None = None,
) -> LatticeFinding:
    """Test whether all outputs lie on one fixed lattice.

    Parameters
    ----------
    mechanism
        Anything that `runs.target` knows.
    datasets
        True answers, or datasets, on which it is run; at least two.
    runs
        Fresh runs on every dataset; as many train where the steps are not given.
    significance
        The bound of the probability of an output off the lattice holds with confidence
        1 − significance, on all datasets at once.
    seed
        Of all draws.
    steps
        The step of every coordinate, where it is known beforehand.

    Raises
    ------
    InvalidInputError
        For fewer than two datasets, too few runs, or outputs that are no numbers.
    """
    if len(datasets) < 2:
        raise expected("datasets", len(datasets), "to be at least 2 datasets")
    if runs < _LEAST_RUNS:
        raise expected("runs", runs, f"≥ {_LEAST_RUNS}")
    aim = target(mechanism)
    generators = np.random.default_rng(seed).spawn(2 * len(datasets))

    def rows(index: int, part: int) -> Values:
        outputs = aim.sample(datasets[index], runs, generators[2 * index + part])
        matrix = numeric(outputs)
        if matrix is None:
            raise InvalidInputError(f"Expected the outputs of {aim.name} to be numbers.")
        return matrix.astype(np.float64)

    def found(certified: bool, own: Sequence[Fraction], reason: str) -> LatticeFinding:
        bound = -math.expm1(math.log(significance / len(datasets)) / runs) if certified else 1.0
        shown = tuple(str(step) for step in own)
        return LatticeFinding(
            certified, shown, bound, significance, runs, len(datasets), seed, reason
        )

    fixed = tuple(steps) if steps is not None else None
    if fixed is None:
        training = [rows(index, 0) for index in range(len(datasets))]
        if len({part.shape[1] for part in training}) > 1:
            return found(False, (), "the number of coordinates depends on the input")
        learned = [_step(column) for column in np.concatenate(training).T]
        if None in learned:
            where = learned.index(None)
            return found(
                False, (), f"output[{where}] uses every bit that a double has at some magnitude"
            )
        fixed = tuple(step for step in learned if step is not None)
    for index, dataset in enumerate(datasets):
        fresh = rows(index, 1)
        for place, step in enumerate(fixed):
            why = _objection(fresh[:, place], step)
            if why:
                return found(False, fixed, f"on dataset {dataset!r}, output[{place}] {why}")
    reason = (
        f"all {runs} fresh outputs on each of {len(datasets)} datasets are multiples of fixed steps"
    )
    return found(True, fixed, reason)


def _step(values: Values) -> Fraction | None:
    """Return the coarsest power of two or of ten, with room below, that divides all outputs."""
    finite = values[np.isfinite(values)]
    bits = lowest_bit(finite)
    least = int(bits[bits != OF_ZERO].min(initial=OF_ZERO))
    if least == OF_ZERO:  # every output is 0
        return Fraction(1)
    steps = [Fraction(2) ** least]
    for places in range(_MOST_DECIMALS + 1):
        if _on(finite, Fraction(1, 10**places)).all():
            steps.append(Fraction(1, 10**places))
            break
    step = max(steps)
    return step if _room(finite, float(step)) >= _LEAST_WITH_ROOM else None


def _room(values: Values, step: float) -> int:
    """Count the outputs, other than 0, whose last place is at most a thousandth of the step.

    Where single precision holds every output, its last place counts.
    """
    size = np.abs(values[values != 0])
    with np.errstate(over="ignore"):
        single = size.astype(np.float32)
    place = np.spacing(single if (single == size).all() else size).astype(np.float64)
    return int(np.sum(place * _ROOM <= step))


def _multiples(values: Values, step: Fraction) -> Values:
    """Return the nearest multiples."""
    if step.numerator == 1 and step.denominator % 10 == 0:
        return np.round(values * float(step.denominator))
    return np.round(values / float(step))


def _on(values: Values, step: Fraction) -> Any:
    """Whether each output is the double next to a multiple of the step."""
    whole = _multiples(values, step)
    if step.numerator == 1 and step.denominator % 10 == 0:
        return whole / float(step.denominator) == values
    return whole * float(step) == values


def _objection(values: Values, step: Fraction) -> str:
    """Say what is wrong with the fresh outputs of one coordinate, or nothing."""
    if not np.isfinite(values).all():
        return "is not always finite"
    on = _on(values, step)
    if not on.all():
        return f"is no multiple of {step} in {int((~on).sum())} of {len(values)} runs"
    if (values == values[0]).all():
        return ""
    whole = _multiples(values, step)
    near = np.abs(whole) < 2.0**53
    if near.any() and not (whole[near] % 2 == 1).any():
        return f"keeps to multiples of twice the step {step}, which other datasets do not"
    return ""

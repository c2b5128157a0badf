"""Outputs of a mechanism as one numeric matrix, one row per run.

Scalars and vectors stay what they are, in their own number format (a float leak lives in the last
bits); a complex number is two entries, its real and its imaginary part. Whatever else a mechanism
may return (strings, None, truth values, tuples of them, lists whose length changes) is written as a
row

    length, code₁, …, code_w, value₁, …, value_w

where an entry that is a number has code 0 and its value, any other entry the code of its text and
value 0, and a missing entry code −1. A number that is no double (a long integer, a fraction, a
decimal) is three entries, the nearest double, what is left, and its text. The row is a function of
the single output, so that an event on rows is an event on outputs; `Alphabet` remembers which text
a code stands for.
"""

from __future__ import annotations

import math
import numbers
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[Any]
"""Shape (runs, width), of a real number format."""
Sides: TypeAlias = tuple[Matrix, Matrix]
"""Runs on the first and on the second dataset."""

_WIDEST = 64
"""Entries of a mixed output that are kept; its length counts them all."""
_EXACT = 2**53
"""Integers up to here are doubles."""
_EXPONENTS = 300
"""Powers of ten of decimals that are read as numbers: beyond, doubles end."""
_MOST_NAMES = 10_000
"""Texts that are remembered for reports; further ones appear by their number."""


@final
@dataclass
class Alphabet:
    """How outputs that are no plain vectors are written; the same for both datasets."""

    width: int | None = None
    """Entries per row of the mixed form; None while every output was a vector of one length."""
    names: dict[int, str] = field(default_factory=dict)
    """The text that a code stands for."""

    def matrix(self, outputs: Any) -> Matrix:
        """Return the rows of a block of outputs.

        A numpy array is taken as one output per entry of its first axis; anything else as a
        sequence of outputs.
        """
        outputs = on_host(outputs)
        if isinstance(outputs, (list, tuple)):
            outputs = [on_host(output) for output in outputs]
        plain = numeric(outputs) if self.width is None else None
        if plain is not None:
            return plain
        flat = [_entries(output) for output in outputs]
        if self.width is None:
            self.width = min(_WIDEST, max((len(entries) for entries in flat), default=1) + 2)
        return np.array([self._row(entries) for entries in flat], dtype=np.float64).reshape(
            len(flat), 1 + 2 * self.width
        )

    def _row(self, entries: Sequence[Any]) -> list[float]:
        width = self.width or 1
        codes, values = [-1.0] * width, [0.0] * width
        for index, entry in enumerate(entries[:width]):
            if isinstance(entry, numbers.Real) and not isinstance(entry, bool):
                codes[index], values[index] = 0.0, float(entry)
            else:
                codes[index] = float(self._code(entry))
        return [float(len(entries)), *codes, *values]

    def _code(self, entry: Any) -> int:
        text = str(entry) if isinstance(entry, str) else repr(entry)
        code = 1 + zlib.crc32(text.encode(errors="surrogatepass"))
        if len(self.names) < _MOST_NAMES:
            self.names[code] = text
        return code


def on_host(thing: Any) -> Any:
    """Return a tensor as an array, off its device and out of its graph; anything else as it is.

    numpy has no bfloat16: such numbers become floats of 32 bits, which hold them exactly.
    """
    if not callable(getattr(thing, "detach", None)):
        return thing
    found = thing.detach().cpu()
    return np.asarray(found.float() if str(found.dtype) == "torch.bfloat16" else found)


def numeric(outputs: Any) -> Matrix | None:
    """Return outputs that are numbers or vectors of one length as a matrix, else None.

    Complex numbers become pairs of reals, in the order of the output.
    """
    if isinstance(outputs, np.ndarray):
        array = outputs
    else:
        outputs = list(outputs)
        if not all(_is_vector(output) for output in outputs):
            return None
        try:
            array = np.asarray(outputs)
        except (ValueError, OverflowError):  # lengths differ, or an integer of more than 64 bits
            return None
    if array.dtype == bool:
        array = array.astype(np.int8)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if array.dtype.kind not in "iuf" or array.ndim == 0:
        return None
    if (
        array.dtype.kind in "iu"
        and array.size
        and not -_EXACT <= array.min() <= array.max() <= _EXACT
    ):
        return None
    if array.dtype.itemsize > 8:  # more digits than a double has
        near = array.astype(np.float64)
        with np.errstate(invalid="ignore"):
            array = np.stack([near, (array - near).astype(np.float64)], axis=-1)
    return array.reshape(len(array), -1) if array.size else array.reshape(len(array), 0)


def _is_vector(output: Any) -> bool:
    """Whether an output is a number or made of numbers only."""
    if isinstance(output, (complex, float, int, np.inexact, np.integer)):
        return not isinstance(output, bool)
    if isinstance(output, np.ndarray):
        return output.dtype.kind in "iufc"
    return isinstance(output, (list, tuple)) and all(_is_vector(entry) for entry in output)


def _entries(output: Any) -> Sequence[Any]:
    """Return the entries of one output, nested ones in their order."""
    if isinstance(output, np.generic):  # np.True_ and True are one output
        output = output.item()
    if isinstance(output, np.ndarray):
        return [entry for part in output.reshape(-1).tolist() for entry in _entries(part)]
    if isinstance(output, (list, tuple)):
        return [entry for part in output for entry in _entries(part)]
    if isinstance(output, (set, frozenset)):
        return sorted(output, key=repr)
    if isinstance(output, dict):
        return [entry for item in output.items() for part in item for entry in _entries(part)]
    if isinstance(output, complex):
        return [output.real, output.imag]
    if isinstance(output, (int, Fraction, Decimal)) and not isinstance(output, bool):
        return _exact_entries(output)
    return [output]


def _exact_entries(number: int | Fraction | Decimal) -> Sequence[Any]:
    """Return a number as a double where it is one, else with what is left of it and as text."""
    if isinstance(number, Decimal):
        if not number.is_finite():
            return [str(number)] if number.is_nan() else [float(number)]
        if number and not -_EXPONENTS < number.adjusted() < _EXPONENTS:
            return [math.copysign(math.inf if number.adjusted() > 0 else 0.0, number), str(number)]
    try:
        near = float(number)
    except OverflowError:
        return [math.inf if number > 0 else -math.inf, str(number)]
    rest = Fraction(number) - Fraction(near)
    return [near, float(rest), str(number)] if rest else [near]


def stacked(blocks: Iterable[Matrix]) -> Matrix:
    """Put blocks of rows under each other."""
    return np.concatenate(list(blocks), axis=0)


def joined(before: Sides | None, more: Sides) -> Sides:
    """Return the runs of both sides, earlier ones first."""
    if before is None:
        return more
    first, second = (stacked(parts) for parts in zip(before, more, strict=True))
    return first, second

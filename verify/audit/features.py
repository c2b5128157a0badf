"""From outputs to events: outputs as rows of a matrix, features of rows, and rules on features.

*Rows.* Numbers and vectors keep their number format, since floats leak by their last bits; a
complex number becomes two entries, its real and its imaginary part. Anything else that a mechanism
returns (strings, None, truth values, tuples of them, lists of different lengths) becomes a row

    length, code₁, …, code_w, value₁, …, value_w

A number has code 0 and its value, any other entry the code of its text and value 0, and a missing
entry code −1. A number that is not a double (a long integer, a fraction, a decimal) becomes three
entries: the nearest double, the remainder, and its text. A row is a function of a single output, so
that an event on rows is an event on outputs. `Alphabet` keeps the text of each code.

*Features.* A feature is plain data that defines a function of a single output, so that
{feature ≥ t} and {feature in a set} are events. Proposers return features that they may have
learned from the training runs. The events are tested on fresh runs, so that no proposer can
invalidate a test.

*Vectors.* A linear score is best for Gaussian noise, and the l1 distances to the medians for
Laplace noise. Distances to the points where runs are densest show noise that is narrow in some
direction or has a spike at the true answer.

*Bits.* In floating point the sum of a value and noise is rounded to the grid of its magnitude, and
the noise lies on a grid of its own. Which bits of the sum can be set depends on the value
(Mironov, "On significance of the least significant bits for differential privacy", 2012; Jin et
al., "Are we there yet? Timing and floating-point attacks on differential privacy systems", 2022).
The features of this channel are the lowest set bit of an entry or of a difference of entries,
alone and together with the binade of the value, and the values that occur repeatedly.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.errors import shortened
from dpassay.verifier.audit.exact_test import Counts, Design
from dpassay.verifier.audit.guarantees import Point

Matrix: TypeAlias = NDArray[Any]
"""Shape (runs, width), of a real number format."""
Sides: TypeAlias = tuple[Matrix, Matrix]
"""Runs on the first and on the second dataset."""

_WIDEST = 64
"""Entries that are kept of a mixed output; its length counts all of them."""
_EXACT = 2**53
"""All integers up to this one are doubles."""
_EXPONENTS = 300
"""Largest exponent of ten of a decimal that is read as a number: doubles end near 10³⁰⁸."""
_MOST_NAMES = 10_000
"""Texts that are kept for reports; others appear by their codes."""


@final
@dataclass
class Alphabet:
    """How outputs that are not plain vectors are written; the same for both datasets."""

    width: int | None = None
    """Entries per row of the mixed form; None while every output was a vector of one length."""
    names: dict[int, str] = field(default_factory=dict)
    """The text that a code represents."""

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
    """Return a number as a double; if it is none, with the remainder and the text."""
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


Values: TypeAlias = NDArray[np.float64]

_MOST_COORDINATES = 24
"""Entries that are all examined; of more, the six that differ most."""
_ROWS_EXAMINED = 4000
"""Training runs on each side that show whether outputs repeat, and what wide outputs show."""
_ROWS_RANKED = 20_000
"""Training runs on each side that rank the entries of wide outputs: they show 0.03 deviations."""
_WIDE = 256
"""Rows with more entries are sorted and compared in part only."""


@final
@dataclass(frozen=True, eq=False)
class Feature:
    """A number for every output: plain data that workers are sent and certificates have."""

    kind: str
    """Which function of `_COMPUTED` it is."""
    name: str
    """What the report calls it, such as `output[0]`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What the function takes besides the outputs."""
    discrete: bool = False
    """Whether its values are categories, such as bits, rather than ordered."""

    def __call__(self, outputs: Matrix) -> Values:
        """Return one number per row; no NaN."""
        return _COMPUTED[self.kind](outputs, **self.arguments)

    def to_json(self) -> dict[str, Any]:
        """Return plain data that says how it is computed."""
        return {"feature": self.kind, **{key: _data(x) for key, x in self.arguments.items()}}


def _data(value: Any) -> Any:
    if isinstance(value, Feature):
        return value.to_json()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_data(entry) for entry in value] if isinstance(value, tuple) else value


Proposer: TypeAlias = Callable[[Matrix, Matrix], Iterable[Feature]]
"""Given the training outputs of both datasets, return features."""


def coordinate(index: int, *, discrete: bool = False) -> Feature:
    """Return one entry of the output; NaN counts as +∞."""
    return Feature("coordinate", f"output[{index}]", {"index": index}, discrete)


def whole_row() -> Feature:
    """Return the whole output as one category."""
    return Feature("row", "the whole output", discrete=True)


def _coordinate(outputs: Matrix, index: int) -> Values:
    return _no_nan(outputs[:, index])


def _row(outputs: Matrix) -> Values:
    """Return a checksum of each row (a single integer represents itself)."""
    if outputs.shape[1] == 1:
        return _no_nan(outputs[:, 0])
    rows = np.ascontiguousarray(_no_nan(outputs) + 0.0)
    codes, place = np.unique(rows, axis=0, return_inverse=True)
    sums = np.array([zlib.crc32(row.tobytes()) for row in codes], dtype=np.float64)
    values: Values = sums[place.reshape(-1)]
    return values


def _count(outputs: Matrix, of: str) -> Values:
    """Count the entries that are NaN, infinite, or negative zeros."""
    return np.asarray(_ODD[of](outputs).sum(axis=1), dtype=np.float64)


_ODD: dict[str, Callable[[Matrix], NDArray[np.bool_]]] = {
    "NaN or no number": np.isnan,
    "infinite": np.isinf,
    "-0.0": lambda outputs: (outputs == 0) & np.signbit(outputs),
}
"""Numbers that have no place of their own among ordered values."""


def _binned(outputs: Matrix, of: Feature, edges: tuple[float, ...]) -> Values:
    """Return the cell of another feature: an event may be any cells, as for laws with gaps."""
    return np.searchsorted(edges, of(outputs), side="right").astype(np.float64)


def plain(first: Matrix, second: Matrix, *, codes: range = range(0)) -> Iterable[Feature]:
    """Propose entries, cells, whole rows and special values; `codes` are categories."""
    width = first.shape[1]
    if width > _WIDE:
        first, second = (side[:_ROWS_EXAMINED] for side in (first, second))
    sides = (first, second)
    if any(np.issubdtype(side.dtype, np.floating) for side in sides):
        for of, is_odd in _ODD.items():
            if any(is_odd(side).any() for side in sides):
                name = f"number of entries that are {of}"
                yield Feature("count", name, {"of": of}, discrete=True)
    examined = np.concatenate([first[:_ROWS_EXAMINED], second[:_ROWS_EXAMINED]])
    if 1 < width <= _WIDE and len(np.unique(examined, axis=0)) <= len(examined) // 8:
        yield whole_row()
    for index in coordinates(first, second):
        entry = _no_nan(np.concatenate([side[:, index] for side in sides]))
        values = np.unique(entry)
        if len(values) < 2:
            continue
        if index not in codes:
            yield coordinate(index)
        if index in codes or len(values) <= len(entry) // 20:
            yield coordinate(index, discrete=True)
        if index in codes:
            continue
        cuts = np.unique(np.quantile(entry, np.arange(1, 24) / 24, method="lower"))
        if len(values) > len(cuts):
            inner, edges = coordinate(index), tuple(float(cut) for cut in cuts)
            cells = {"of": inner, "edges": edges}
            yield Feature("binned", f"cell of {inner.name}", cells, discrete=True)


def coordinates(first: Matrix, second: Matrix) -> Iterable[int]:
    """Return the entries that differ most between the datasets; all entries of a short output."""
    width = first.shape[1]
    return range(width) if width <= _MOST_COORDINATES else most_shifted(first, second)[:6]


def most_shifted(first: Matrix, second: Matrix) -> list[int]:
    """Return all entries, sorted by how many standard deviations their means differ."""
    a, b = (np.nan_to_num(side[:_ROWS_RANKED].astype(np.float64)) for side in (first, second))
    with np.errstate(over="ignore", invalid="ignore"):  # infinities became the largest doubles
        spread = np.sqrt(a.var(axis=0) + b.var(axis=0)) + 1e-300
        shift = np.abs(a.mean(axis=0) - b.mean(axis=0)) / spread
    return [int(i) for i in np.argsort(-shift, kind="stable")]


def _no_nan(values: Any) -> Values:
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(array), np.inf, array) if np.isnan(array).any() else array


_MOST_FOR_COVARIANCE = 400
"""Largest number of entries of which a covariance is learned: that takes its square in runs."""
_SPIKE_RUNS = 5_000
"""Training runs in which a densest point is searched: each step uses all of them."""
_SPIKE_STEPS = 25
"""Steps to a densest point, each of which reduces the distance by a factor."""
_PLACES = 30
"""Bits of a distance that differences keep: rounding errors are in the last dozen of the 53."""
_FEWEST = 20
"""Finite training runs on each side from which directions are learned."""


def linear(weights: Values, how: str, offset: float = 0.0) -> Feature:
    """Return the score w·output − offset, and say how it was found."""
    return Feature("linear", f"linear score ({how})", {"weights": weights, "offset": offset})


def _linear(outputs: Matrix, weights: Values, offset: float) -> Values:
    return np.nan_to_num(outputs @ weights - offset, nan=np.inf)


def _nearer(outputs: Matrix, centres: tuple[Values, Values], order: float, ratio: bool) -> Values:
    """Return how much closer the output is to the first centre than to the second, in a norm."""
    far, near = (_norm(outputs - centre, order) for centre in centres[::-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(far) - np.log(near) if ratio else _rounded(far - near, far)
    return np.nan_to_num(found, nan=np.inf)


def _size(outputs: Matrix, order: float) -> Values:
    """Return a norm of the output, or for order 0 its largest entry."""
    found = _norm(outputs, order) if order else outputs.max(axis=1)
    return np.nan_to_num(np.asarray(found, dtype=np.float64), nan=np.inf)


def _rounded(differences: Values, of: Values) -> Values:
    """Return differences without the digits that are rounding errors.

    Where two distances differ by a constant for many outputs, the last digits of the difference
    would show the last bits of the outputs, which are not part of their values.
    """
    places = np.frexp(np.where(np.isfinite(of), of, 1.0))[1] - _PLACES
    found: Values = np.ldexp(np.rint(np.ldexp(differences, -places)), places)
    return found


def _norm(rows: Matrix, order: float) -> Values:
    if order == 2:
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))
    size = np.abs(rows)
    return np.asarray(size.sum(axis=1) if order == 1 else size.max(axis=1))


def nearer(
    centres: tuple[Values, Values], label: str, order: float = 2, *, ratio: bool = False
) -> Feature:
    """Compare the distances to two centres in the norm of an order: their ratio or difference."""
    what = "log ratio" if ratio else "difference"
    name = f"{what} of the l{order:g} distances to {label}"
    return Feature("nearer", name, {"centres": centres, "order": order, "ratio": ratio})


def distances_to(pair: tuple[Any, Any]) -> Proposer:
    """Return a proposer that compares distances to both datasets, where these look like answers."""

    def propose(first: Matrix, _: Matrix) -> Iterable[Feature]:
        try:
            centres = [np.asarray(answer, dtype=np.float64).ravel() for answer in pair]
        except Exception:  # noqa: BLE001 (no numbers, or tensors on a device)
            return
        width = first.shape[1]
        if width < 2 or any(len(c) != width or not np.isfinite(c).all() for c in centres):
            return
        if (centres[0] != centres[1]).any():
            yield linear(centres[0] - centres[1], "difference of the datasets")
            both = centres[0], centres[1]
            yield nearer(both, "both datasets", ratio=True)
            yield from (nearer(both, "both datasets", order) for order in (1.0, 2.0, np.inf))

    return propose


def geometry(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose directions in which vectors differ, and distances from places."""
    if first.shape[1] < 2:
        return
    sides = (np.asarray(side, dtype=np.float64) for side in (first, second))
    a, b = (side[np.isfinite(side).all(axis=1)] for side in sides)
    if min(len(a), len(b)) < _FEWEST:
        return
    for how in (MEANS, DISCRIMINANT):
        found = direction(how, a, b)
        if found is not None:
            yield found
    spike_a, spike_b = spike(a), spike(b)
    yield linear(spike_a - spike_b, "difference of the densest points")
    yield nearer((spike_a, spike_b), "the densest points", ratio=True)
    yield nearer((np.median(a, axis=0), np.median(b, axis=0)), "the medians", 1)
    for order in (0, 1, 2, np.inf):
        name = f"l{order:g} norm of the output" if order else "largest entry of the output"
        yield Feature("size", name, {"order": order})


MEANS, DISCRIMINANT = "difference of means", "discriminant"


def direction(how: str, a: Matrix, b: Matrix) -> Feature | None:
    """Return a linear score of mean 0 and variance 1, learned from the runs of both datasets."""
    centre_a, centre_b = a.mean(axis=0), b.mean(axis=0)
    weights, width = centre_a - centre_b, a.shape[1]
    if how == DISCRIMINANT:
        if width > _MOST_FOR_COVARIANCE:
            return None
        covariance = (np.cov(a, rowvar=False) + np.cov(b, rowvar=False)) / 2
        ridge = 1e-9 * np.trace(covariance) / width + 1e-300
        weights = np.linalg.solve(covariance + ridge * np.eye(width), weights)
    scores = [side @ weights for side in (a, b)]
    spread = math.sqrt((scores[0].var() + scores[1].var()) / 2)
    if not 0 < spread < math.inf:
        return linear(weights, how)
    weights = weights / spread
    return linear(weights, how, float(weights @ (centre_a + centre_b)) / 2)


def spike(runs: Matrix) -> Values:
    """Return a point where many runs are close to each other.

    Each step is to the mean weighted by 1/distance², whose fixed points maximise Π 1/distance. For
    noise with a density that is infinite at the true answer this finds the answer with far fewer
    runs than a mean does.
    """
    runs = runs[:_SPIKE_RUNS]
    centre = runs.mean(axis=0)
    norms = np.einsum("ij,ij->i", runs, runs)
    for _ in range(_SPIKE_STEPS):
        square = norms - 2 * (runs @ centre) + centre @ centre
        weights = 1 / np.maximum(square, 1e-9 * max(1e-200, float(np.median(square))))
        centre = weights @ runs / weights.sum()
    found: Values = centre
    return found


Codes: TypeAlias = NDArray[np.int64]

OF_ZERO = 1200
"""Code of 0, which has no lowest set bit: beyond the exponents of doubles."""
OF_INFINITY = 1300
"""Code of ±∞."""
OF_NAN = 1301
"""Code of NaN."""
LEAST = -1100
"""Below the exponent −1074 of the least double, so that codes count from 0."""
CODES = 2500
"""The lowest set bit plus 1100 is below this."""
_STORED, _EXPONENT = 52, 0x7FF


class View(NamedTuple):
    """An entry, or an entry minus another one."""

    entry: int
    other: int | None = None

    @property
    def name(self) -> str:
        """What the report calls it."""
        entry = f"output[{self.entry}]"
        return entry if self.other is None else f"({entry} - output[{self.other}])"

    def __call__(self, outputs: Matrix) -> Values:
        """Return its value for each output; NaN where both entries are the same infinity."""
        entry = np.asarray(outputs[:, self.entry], dtype=np.float64)
        if self.other is None:
            return entry
        with np.errstate(invalid="ignore"):
            return np.asarray(entry - outputs[:, self.other], dtype=np.float64)


def lowest_bit(values: Any) -> Codes:
    """Return e where the number is an odd multiple of 2^e, and codes for 0, ±∞ and NaN."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    bits = array.view(np.int64)
    biased = (bits >> _STORED) & _EXPONENT
    lowest = (bits & -bits).astype(np.float64).view(np.int64) >> _STORED  # 1023 + its place
    # where no bit of the fraction is set it is the implicit one, before them
    codes: Codes = np.maximum(biased, 1) + np.minimum(lowest, 1023 + _STORED) - 2098
    odd = (biased == _EXPONENT) | (array == 0)
    if odd.any():
        named = np.where(np.isnan(array), OF_NAN, np.where(array == 0, OF_ZERO, OF_INFINITY))
        codes = np.where(odd, named, codes)
    return codes


def _bit_cell(outputs: Matrix, view: View, edges: Values) -> Values:
    """Return the lowest set bit of a view, with the cell of its value where there are several."""
    values = view(outputs)
    codes = lowest_bit(values)
    if len(edges):
        codes += np.searchsorted(edges, values, side="right") * CODES - LEAST
    return codes.astype(np.float64)


def _bit_cell_in_words(code: float, edges: Values) -> str:
    cell, above = divmod(int(code), CODES) if len(edges) else (0, int(code) - LEAST)
    lowest = above + LEAST
    odd = {OF_ZERO: "zero", OF_INFINITY: "infinite", OF_NAN: "NaN"}
    said = odd.get(lowest, f"2^{lowest}")
    if not len(edges):
        return said
    ends = (-np.inf, *edges.tolist(), np.inf)
    return f"{said} in [{ends[cell]:g}, {ends[cell + 1]:g})"


def _atom(outputs: Matrix, view: View, values: Values) -> Values:
    """Return the index of a view among the values that occurred repeatedly; −1 for any other."""
    found = view(outputs)
    place = np.minimum(np.searchsorted(values, found), len(values) - 1)
    return np.where(values[place] == found, place, -1).astype(np.float64)


OF_BITS = ("bit-cell", "atoms")
"""The kinds of features of last bits."""
_COMPUTED: dict[str, Callable[..., Values]] = {
    "coordinate": _coordinate,
    "row": _row,
    "count": _count,
    "binned": _binned,
    "linear": _linear,
    "nearer": _nearer,
    "size": _size,
    "bit-cell": _bit_cell,
    "atoms": _atom,
}
"""How features are computed from outputs and their arguments."""


def in_words(feature: Feature, code: float) -> str:
    """Say what a value of a feature of bits means."""
    if feature.kind == "bit-cell":
        return _bit_cell_in_words(code, feature.arguments["edges"])
    return "none of them" if code < 0 else repr(float(feature.arguments["values"][int(code)]))


_MOST_VIEWS = 128
"""Entries of wide outputs whose bits are examined: each costs a histogram."""
_MOST_DIFFERENCES = 64
"""Differences from the first and from the last entry: they double the cost of each entry."""
_MOST_ENTRIES, _LEAST_ROWS = 2_000_000, 2000
"""Entries, and the least rows, from which features of bits are learned: more adds little."""
_ENTRIES_IN_SHORT = 20_000
"""Entries of a side that are enough for bits that are not part of the claim."""
_LISTED = 12
"""Views that become features, those with the clearest contrast; each gives up to three."""
_BINADES = 12
"""Powers of two that separate cells, from the largest down: few outputs lie below."""
_LEAST_ATOM = 4
"""A value that occurs so often is one that repeats: doubles hardly ever do so by chance."""
_VALUES_EXAMINED = 4000
"""Entries of each side that show whether all are integers."""
_SMALL = 2.0**40
"""Doubles below this have at least twelve bits for the fraction."""


def bits_in_short(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose features of bits that are not part of the claim, learned from fewer runs."""
    rows = max(_LEAST_ROWS, _ENTRIES_IN_SHORT // max(1, first.shape[1]))
    return bits(first[:rows], second[:rows])


def bits(first: Matrix, second: Matrix) -> Iterable[Feature]:
    """Propose the lowest set bits and the repeated values of the views that differ most."""
    if not first.shape[1] or first.dtype.kind != "f":
        return
    first, second = (side[: _rows(first.shape[1])] for side in (first, second))
    views = [
        view
        for view in _views(first.shape[1])
        if not _are_whole(*(side[:, [view.entry]] for side in (first, second)))
    ]
    for view in sorted(views, key=lambda view: -_contrast(first, second, view))[:_LISTED]:
        for edges in (np.empty(0), _binades(first, second, view)):
            name = f"{'value and ' if len(edges) else ''}lowest set bit of {view.name}"
            yield Feature("bit-cell", name, {"view": view, "edges": edges}, discrete=True)
        atoms = _atoms(first, second, view)
        if len(atoms):
            name = f"{view.name}, of the values that repeat,"
            yield Feature("atoms", name, {"view": view, "values": atoms}, discrete=True)


def _rows(width: int) -> int:
    """Return how many runs on each side teach features of bits at most."""
    return max(_LEAST_ROWS, _MOST_ENTRIES // width)


def bounded(outputs: Matrix) -> str:
    """Say on which part of the training outputs bits were examined; nothing if on all of them."""
    runs, width = outputs.shape
    if not width or outputs.dtype.kind != "f" or (runs <= _rows(width) and width <= _MOST_VIEWS):
        return ""
    return (
        f"features of bits were learned from {min(runs, _rows(width))} of {runs} training runs "
        f"on each side and {min(width, _MOST_VIEWS)} of {width} entries"
    )


def _views(width: int) -> list[View]:
    """Return the entries, and their differences from the first and from the last one."""
    count = min(width, _MOST_VIEWS)
    views = [View(index) for index in range(count)]
    fewer = min(count, _MOST_DIFFERENCES)
    views += [View(index, 0) for index in range(1, fewer)]
    views += [View(index, width - 1) for index in range(1, fewer) if index != width - 1]
    return views


def _contrast(first: Matrix, second: Matrix, view: View) -> float:
    """Return how much the histograms of the lowest set bit differ, in standard deviations."""
    a, b = (
        np.bincount(lowest_bit(view(side)) - LEAST, minlength=CODES) for side in (first, second)
    )
    seen = a + b > 0
    scaled = (a / len(first) - b / len(second))[seen] ** 2 / (a + b)[seen]
    return float(scaled.sum())


def _atoms(first: Matrix, second: Matrix, view: View) -> Values:
    """Return the finite values that one dataset shows more often than chance allows, sorted."""
    found = []
    for side in (first, second):
        values, counts = np.unique(view(side), return_counts=True)
        often = np.isfinite(values) & (counts >= max(_LEAST_ATOM, len(side) // 1000))
        found.append(values[often])
    return np.unique(np.concatenate(found))


def _binades(first: Matrix, second: Matrix, view: View) -> Values:
    """Return the powers of two, of both signs, between which nearly all of a view lies."""
    size = np.abs(np.concatenate([view(first), view(second)]))
    size = size[np.isfinite(size) & (size > 0)]
    if not len(size):
        return np.empty(0)
    low, high = np.frexp(np.quantile(size, [0.01, 0.999], method="lower"))[1]
    top = min(int(high), np.finfo(np.float64).maxexp - 1)
    powers = np.ldexp(1.0, np.arange(max(int(low), top - _BINADES), top + 1))
    return np.concatenate([-powers[::-1], powers])


def _are_whole(first: Matrix, second: Matrix) -> bool:
    """Whether all outputs are integers so small that doubles have room for fractions."""
    both = np.concatenate([first[:_VALUES_EXAMINED], second[:_VALUES_EXAMINED]])
    both = both[np.isfinite(both)]
    return bool((both == np.rint(both)).all() and (np.abs(both) < _SMALL).all())


# --- Rules: a feature cut into cells, each of which favours one dataset, the other, or neither ----
# Everything that is tested or estimated is a function of the two histograms of the cells, so that
# runs are counted and forgotten: 10¹⁰ of them need no more memory than 10⁶.
#
# Events in words: what the numbers of an event represent, where outputs are no plain numbers.
#
# A rule counts numbers: codes of texts, checksums of rows. Which outputs they are is looked up in
# the training runs, once, for the report; what is counted does not change.

Histogram: TypeAlias = NDArray[np.int64]
"""Shape (2, cells): runs on the first and on the second dataset."""
_INFINITE = "inf, NaN or no number"
"""What features take for infinite."""


@final
@dataclass(frozen=True, eq=False)
class Partition:
    """Cells of the values of a feature.

    `edges`: cell i holds edges[i − 1] ≤ value < edges[i]. `values`: cell i holds values[i], and the
    last cell everything else.
    """

    edges: Values | None
    values: Values | None = None
    ends: tuple[float, float] = (-np.inf, np.inf)
    """The least and the largest value in training, for pictures."""

    @property
    def size(self) -> int:
        """How many cells."""
        entries = self.edges if self.edges is not None else self.values
        return 1 + (0 if entries is None else len(entries))

    def cell(self, values: Values) -> NDArray[np.intp]:
        """Return the cell of each value."""
        if self.edges is not None:
            return np.searchsorted(self.edges, values, side="right")
        listed = self.values if self.values is not None else np.empty(0)
        place = np.searchsorted(listed, values)
        found = listed[np.minimum(place, len(listed) - 1)] == values
        cells: NDArray[np.intp] = np.where(found, place, len(listed))
        return cells

    def describe(self, cells: Sequence[int], texts: Mapping[float, str]) -> str:
        """Say which values a set of cells holds, by the texts of those that have one."""
        if self.edges is not None and not texts:
            return " or ".join(_ranges(list(self.edges), sorted(cells)))
        if self.edges is not None:
            known = self.cell(np.array(list(texts)))
            shown = [
                text for text, cell in zip(texts.values(), known, strict=True) if cell in cells
            ]
        else:
            listed = [] if self.values is None else list(self.values)
            shown = [
                texts.get(float(listed[i]), _category(listed[i]))
                if i < len(listed)
                else "any other"
                for i in sorted(cells)
            ]
        rest = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
        return "{" + ", ".join(shown[:12]) + "}" + rest

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        if self.edges is not None:
            return {"edges": [float(edge) for edge in self.edges]}
        return {"values": [float(v) for v in ([] if self.values is None else self.values)]}


def _ranges(edges: list[float], cells: list[int]) -> list[str]:
    """Return runs of neighbouring cells as inequalities."""
    found = []
    start = previous = cells[0] if cells else 0
    for cell in [*cells[1:], None]:
        if cell is not None and cell == previous + 1:
            previous = cell
            continue
        low = _number(edges[start - 1]) if start > 0 else ""
        high = _number(edges[previous]) if previous < len(edges) else ""
        if low and high:
            found.append(f"in [{low}, {high})")
        elif low == "inf":
            found.append(f"is {_INFINITE}")
        else:
            found.append(f"≥ {low}" if low else f"< {high}" if high else "anything")
        if cell is not None:
            start = previous = cell
    return found


def _category(value: float) -> str:
    return _INFINITE if value == np.inf else _number(value)


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


@final
@dataclass(frozen=True, eq=False)
class Rule:
    """An event (or two) with what it is tested for.

    `marks` is +1 in the cells of the event E that favours the dataset `favoured`, −1 in those of
    the event F that favours the other one (guesses only), and 0 elsewhere.
    """

    feature: Feature
    partition: Partition
    marks: NDArray[np.int8]
    design: Design
    favoured: int
    """0: E is likelier on the first dataset; 1: on the second."""
    point: Point
    predicted: float
    """What the training runs promise: a lower bound of ε at δ, or standard deviations."""
    share: float = 1.0
    """The part of the significance that its test may use."""
    hedges: tuple[Rule, ...] = ()
    """Further events, tested with their own shares of it (see `learn`)."""
    texts: Mapping[float, str] = field(default_factory=dict)
    """What the values of the feature mean, where they are codes (`worded`)."""
    label: str = ""
    """What the report calls the feature, where that is not its name."""

    @property
    def name(self) -> str:
        """What the report calls the feature."""
        return self.label or self.feature.name

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return this event and its hedges."""
        return (self, *self.hedges)

    @property
    def size(self) -> int:
        """Return how many cells there are, those of the hedges too."""
        return sum(each.partition.size for each in self.rules)

    def histogram(self, outputs: Matrix) -> NDArray[np.int64]:
        """Count the cells of some outputs."""
        return counted([(self.feature, self.partition)], outputs)

    def counts(self, histogram: Histogram) -> Counts:
        """Return what the test is made on."""
        p, q = histogram[self.favoured], histogram[1 - self.favoured]
        event, other = self.marks == 1, self.marks == -1
        hits, misses = int(p[event].sum()), int(q[event].sum())
        n, m = int(p.sum()), int(q.sum())
        if self.design is Design.SIDES:
            return Counts(hits, n, misses, m)
        right, wrong = hits + int(q[other].sum()), misses + int(p[other].sum())
        return Counts(right, n + m, wrong, n + m, Design.GUESSES)

    def event(self) -> dict[str, Any]:
        """Say which outputs make up the events."""
        found: dict[str, Any] = {
            "feature": dict(self.feature.to_json()),
            "name": self.name,
            "favours": "first" if self.favoured == 0 else "second",
            "description": self._say(1),
        }
        if self.design is Design.GUESSES:
            found["opposite"] = self._say(-1)
        return found

    def digest(self) -> str:
        """Return a digest of what is counted and how it is tested."""
        counted = [self.event()["feature"], self.partition.to_json(), self.marks.tolist()]
        tested = [self.design.value, self.favoured, self.point.to_json()]
        hedges = [(self.share, each.digest()) for each in self.hedges]
        text = json.dumps([*counted, *tested, *hedges])
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def _say(self, mark: int) -> str:
        cells = [int(i) for i in np.flatnonzero(self.marks == mark)]
        if not cells:
            return "never"
        said = self.partition.describe(cells, self.texts)
        return f"{self.name} {'in ' * said.startswith('{')}{said}"


@final
@dataclass(frozen=True, eq=False)
class Ranked:
    """A feature whose cells are grouped: the later groups favour the first dataset."""

    feature: Feature
    partition: Partition
    group: NDArray[np.intp]
    """That of each cell."""

    def grouped(self, histogram: Histogram) -> Histogram:
        """Return the counts of the groups."""
        size = int(self.group.max()) + 1
        sums = [np.bincount(self.group, side, size) for side in histogram]
        return np.rint(sums).astype(np.int64)


@final
@dataclass(frozen=True, eq=False)
class Chosen:
    """All that is counted on the fresh runs of one pair of neighbours."""

    values: Rule
    """The event of the values of outputs."""
    bits: Rule | None
    """That of the last bits of floats; None where outputs have none, or they are left out."""
    ranked: Ranked
    """The feature whose groups bound the whole curve."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return all events that are tested."""
        return (*self.values.rules, *(() if self.bits is None else self.bits.rules))

    @property
    def design(self) -> Design:
        """Whether fair coins choose the dataset of every run: if one of the tests needs that."""
        fair = any(rule.design is Design.GUESSES for rule in self.rules)
        return Design.GUESSES if fair else Design.SIDES

    @property
    def size(self) -> int:
        """Return how many counts there are."""
        return sum(rule.partition.size for rule in self.rules) + self.ranked.partition.size

    def histograms(self, outputs: Matrix) -> NDArray[np.int64]:
        """Count the cells of all events and of the ranked feature, one after the other."""
        every: list[Rule | Ranked] = [*self.rules, self.ranked]
        return counted([(each.feature, each.partition) for each in every], outputs)

    def parted(self, histogram: Histogram) -> tuple[Histogram, Histogram | None, Histogram]:
        """Cut counts into those of the values, of the bits, and of the ranked feature in order."""
        first = self.values.size
        rest = 0 if self.bits is None else self.bits.size
        values, bits, ranked = np.split(histogram, [first, first + rest], axis=1)
        return values, bits if rest else None, self.ranked.grouped(ranked)


def counted(features: Sequence[tuple[Feature, Partition]], outputs: Matrix) -> NDArray[np.int64]:
    """Count the cells of some features, each of which is computed once."""
    found, known = [], dict[int, Values]()
    for feature, partition in features:
        if len(outputs) == 0:
            found.append(np.zeros(partition.size, dtype=np.int64))
            continue
        if id(feature) not in known:
            known[id(feature)] = feature(outputs)
        cells = partition.cell(known[id(feature)])
        found.append(np.bincount(cells, minlength=partition.size).astype(np.int64))
    return np.concatenate(found)


_ENTRY = re.compile(r"output\[(\d+)\]")


def all_worded(
    chosen: Chosen, runs: tuple[Matrix, Matrix], width: int | None, texts: Mapping[int, str]
) -> Chosen:
    """Return what was chosen with its events in words: see `worded`."""
    values, bits = (
        None if rule is None else worded(rule, runs, width, texts)
        for rule in (chosen.values, chosen.bits)
    )
    return replace(chosen, values=values or chosen.values, bits=bits)


def worded(
    rule: Rule, runs: tuple[Matrix, Matrix], width: int | None, texts: Mapping[int, str]
) -> Rule:
    """Return a rule that says its events in words, its hedges too.

    Parameters
    ----------
    rule
        What was learned.
    runs
        Training runs of both datasets, in which listed rows are looked up.
    width
        Entries of a row that is no plain vector (`outputs.Alphabet`), None for plain vectors.
    texts
        The text that a code represents.
    """
    known = (
        _row_texts(rule.feature, runs, width, texts)
        or _codes(rule.feature, width, texts)
        or _bits(rule)
    )
    hedges = tuple(worded(each, runs, width, texts) for each in rule.hedges)
    label = "" if width is None else _label(rule.feature.name, width)
    return replace(rule, hedges=hedges, texts=known, label=label)


def _label(name: str, width: int) -> str:
    """Return the name of a feature of mixed rows, by the entries that they represent."""

    def said(found: re.Match[str]) -> str:
        place = int(found[1])
        if place == 0:
            return "number of entries"
        return f"text of entry {place - 1}" if place <= width else f"entry {place - 1 - width}"

    return _ENTRY.sub(said, name)


def _codes(feature: Feature, width: int | None, texts: Mapping[int, str]) -> dict[float, str]:
    """Return what the codes of an entry represent."""
    is_code = feature.kind == "coordinate" and 0 < feature.arguments["index"] <= (width or 0)
    if not is_code:
        return {}
    shown = {float(code): shortened(repr(text)) for code, text in texts.items()}
    return {0.0: "a number", -1.0: "none", **shown}


def _bits(rule: Rule) -> dict[float, str]:
    """Return what the codes of bits mean, and which values repeat."""
    codes = rule.partition.values
    if codes is None or rule.feature.kind not in OF_BITS:
        return {}
    return {float(code): in_words(rule.feature, code) for code in codes}


def _row_texts(
    feature: Feature, runs: tuple[Matrix, Matrix], width: int | None, texts: Mapping[int, str]
) -> dict[float, str]:
    """Return which outputs the checksums of whole rows represent."""
    if feature.kind != "row" or runs[0].shape[1] == 1:
        return {}
    rows = np.unique(np.concatenate(runs), axis=0)
    return {
        float(value): shortened(repr(_output(row, width, texts)))
        for value, row in zip(feature(rows), rows, strict=True)
    }


def _output(row: Matrix, width: int | None, texts: Mapping[int, str]) -> object:
    """Return the output that a row represents."""
    if width is None:
        return tuple(_whole(value) for value in row.tolist())
    codes, values = row[1 : 1 + width], row[1 + width :]
    entries = [
        _whole(value) if code == 0 else texts.get(int(code), f"text {int(code)}")
        for code, value in zip(codes.tolist(), values.tolist(), strict=True)
        if code >= 0
    ]
    return entries[0] if len(entries) == 1 else tuple(entries)


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else value

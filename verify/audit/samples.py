"""Audits of outputs that are there already: rows of two files, or scores of a canary.

A random part of the rows of each side chooses the event; the other rows test it, once. That is the
test of `auditor` with rows in place of fresh runs. The rows must be independent runs on the two
datasets: copied rows are refused, and so are rows that depend on those before them.
"""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.numbers.exact import Number
from dpassay.accountant.numbers.interval import few
from dpassay.verifier.ask import Words, bounded, in_words, one_claim
from dpassay.verifier.audit import features
from dpassay.verifier.audit.exact_test import Design
from dpassay.verifier.audit.features import Alphabet, Matrix, Ranked, Rule, all_worded, on_host
from dpassay.verifier.audit.features import counted as cell_counts
from dpassay.verifier.audit.guarantees import Claim, guarantee, read_seed, read_significance
from dpassay.verifier.audit.learn import VALUES, bits_of, choose, shares_of
from dpassay.verifier.audit.result import AuditResult
from dpassay.verifier.audit.runs import GIVEN, Plan, generator, oddities, training_runs

_FEWEST = 20
"""Least rows on each side: a part chooses the event, and the others test it."""
_LONG = 40
"""A number whose mantissa has more bits is not repeated by chance."""
_MOST_COPIES = 10
"""Rows that may be repeated by mistake."""
_SHARE_OF_COPIES = 0.01
"""And the share of rows that may be: resampling recorded rows repeats four in ten."""
_DEPENDENT = 1e-9
"""The probability with which independent rows are refused as dependent."""
_LISTED = "Of an output that is one of a list of such numbers, give its index there."
"""What to do if rows are repeated on purpose."""
_NEAR = 1e-3
"""The share of a spacing by which numbers may miss its multiples."""
_ENTRIES_IN_CACHE = 1 << 16
"""Numbers that are examined at a time: half a megabyte."""
_COLUMNS, _MOST_ENTRIES = 16, 200_000
"""Columns that are tested for dependence, and entries of all of them."""
SCORES = ("included", "excluded")
"""The names of the sides of scores of a canary."""
_PLAIN: tuple[tuple[Any, str], ...] = (
    (str, "texts"),
    (bool, "truth values"),
    (numbers.Real, "numbers"),
    (numbers.Complex, "complex numbers"),
)


def matrices(
    first: Any, second: Any, names: tuple[str, str]
) -> tuple[tuple[Matrix, Matrix], Alphabet]:
    """Return both sides as matrices of one width, and how they are written.

    Raises
    ------
    InvalidInputError
        For anything but lists of outputs, too few of them, two sides of different kinds or shapes,
        rows that are all equal, copies, and rows that depend on those before them or on those of
        the other side.
    """
    sides = [_listed(rows, name) for rows, name in zip((first, second), names, strict=True)]
    kinds = [_kinds(rows) for rows in sides]
    if not kinds[0] & kinds[1]:
        shown = [" or ".join(sorted(found)) for found in kinds]
        raise InvalidInputError(
            f"Expected outputs of the same kind: those of {names[0]} are {shown[0]}, those of "
            f"{names[1]} are {shown[1]}. Give both sides as one mechanism returned them."
        )
    alphabet = Alphabet()
    found = [alphabet.matrix(rows) for rows in sides]
    if alphabet.width is not None:  # the first side may have been read as plain numbers
        found = [alphabet.matrix(rows) for rows in sides]
    one, other = found
    if _all_rows_are(one[:1], found):
        value = f"{one[0, 0]:g}" if one.shape[1] == 1 else "the same"
        what = "scores" if names == SCORES else "rows of both sides"
        raise InvalidInputError(
            f"All {what} are {value}: they carry no information. Give more runs, or other datasets."
        )
    codes = [_digests(side) for side in found]
    different = [_different(each) for each in codes]
    for rows, code, each, name in zip(found, codes, different, names, strict=True):
        _require_independent(rows, _repeated(code, each), len(each), name)
    common = np.intersect1d(different[0], different[1], assume_unique=True)
    shared = _long(one, _first(codes[0], common))
    if shared > max(_MOST_COPIES, _SHARE_OF_COPIES * (sum(map(len, different)) - len(common))):
        raise InvalidInputError(
            f"{shared} rows of {names[0]} are rows of {names[1]} too, though no law repeats such "
            f"numbers by chance. Give two files of runs that were made independently. {_LISTED}"
        )
    _require_unpaired(one, other, names)
    return (one, other), alphabet


def real_numbers(given: Any, what: str) -> NDArray[np.float64]:
    """Return an array of real numbers.

    Raises InvalidInputError, which says what was expected, for anything else.
    """
    try:
        parts = [on_host(part) for part in given] if isinstance(given, (list, tuple)) else given
        array = np.asarray(on_host(parts))
        if array.dtype.kind == "c":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"Expected {what}.") from None


def _listed(rows: Any, name: str) -> Any:
    """Return an array of plain values, or a list of outputs."""
    rows = [on_host(row) for row in rows] if isinstance(rows, list) else on_host(rows)
    if np.ma.is_masked(rows):
        raise InvalidInputError(
            f"Expected {name} without masked entries: what was the output of those runs?"
        )
    if hasattr(rows, "__array__"):  # frames too
        array = np.asarray(rows)
        rows = array.tolist() if array.dtype == object or not array.ndim else array
    if not isinstance(rows, (np.ndarray, Sequence)) or isinstance(rows, (str, bytes)):
        raise InvalidInputError(
            f"Expected {name} to be an array or a list of outputs, one for each run, not "
            f"{type(rows).__name__}."
        )
    if len(rows) < _FEWEST:
        raise InvalidInputError(
            f"Expected at least {_FEWEST} rows of {name}, not {len(rows)}: a part of them chooses "
            "the event, the others test it."
        )
    return rows


def _kinds(rows: Any) -> set[str]:
    """Return what outputs are, lists of several things by each of them."""
    some = rows[:1] if isinstance(rows, np.ndarray) else rows
    return {kind for output in some for kind in _kinds_of(output)}


def _kinds_of(output: Any) -> set[str]:
    if isinstance(output, (np.ndarray, np.generic)):
        output = output.tolist()
    if isinstance(output, (list, tuple)):
        if len(output) == 1:
            return _kinds_of(output[0])
        kinds = {kind for entry in output for kind in _kinds_of(entry)}
        return {f"lists of {len(output)} {kind}" for kind in kinds} or {"empty lists"}
    for types, kind in _PLAIN:
        if isinstance(output, types):
            return {kind}
    own: Any = type(output).__repr__
    if own is object.__repr__:
        raise InvalidInputError(
            f"Expected outputs that are numbers, texts or lists of them, not {output!r}."
        )
    return {type(output).__name__}


def _require_independent(
    rows: Matrix, repeated: NDArray[np.intp], different: int, name: str
) -> None:
    """Raise for copied rows, and for rows that depend on those before them."""
    copies = _long(rows, repeated)
    if copies > max(_MOST_COPIES, _SHARE_OF_COPIES * different):
        raise InvalidInputError(
            f"{copies} different rows of {name} occur more than once, though no law repeats "
            "such numbers by chance. Give every run once: drawing rows again from recorded "
            f"ones makes runs that are not independent. {_LISTED}"
        )
    worst = _dependence(rows[:-1], rows[1:])
    if worst < _DEPENDENT:
        raise InvalidInputError(
            f"The rows of {name} depend on the rows before them (p = {few(worst, 1)}): a chain or "
            "a sorted file, not independent runs. Shuffling would hide this, not remove it: give "
            "independent runs, in the order in which they were made."
        )


def _require_unpaired(first: Matrix, second: Matrix, names: tuple[str, str]) -> None:
    """Raise for runs of the second dataset that depend on those of the first."""
    rows = min(len(first), len(second))
    chance = _dependence(first[:rows], second[:rows])
    if chance < _DEPENDENT:
        raise InvalidInputError(
            f"Rows of {names[0]} and of {names[1]} are correlated (p = {chance:.1g}), as those of "
            "runs with the same seed are. Shuffling would hide this, not remove it: give the runs "
            "of each side seeds of their own."
        )


def _dependence(before: Matrix, after: Matrix) -> float:
    """Return a p-value of the independence of pairs of rows."""
    worst, width = 1.0, before.shape[1]
    columns = np.unique(np.linspace(0, width - 1, min(_COLUMNS, width)).astype(int))
    rows = _MOST_ENTRIES // len(columns) if width else 0
    for column in columns if width else ():
        x, y = before[:rows, column], after[:rows, column]
        if all(np.isfinite(column).all() and (column != column[0]).any() for column in (x, y)):
            worst = min(worst, _together(x, y))
    return float(worst * max(1, len(columns)))


def _together(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return a p-value of the independence of two columns.

    Without ties it is that of the rank correlation; its t law fails with ties, where a single pair
    of rare answers has p = 0. With ties it is that of the number of rows in which both are above
    their medians, which has a hypergeometric law.
    """
    if all(len(np.unique(column)) == len(column) for column in (x, y)):
        return float(stats.spearmanr(x, y).pvalue)
    one, other = (_above(column) for column in (x, y))
    law = stats.hypergeom(len(x), int(one.sum()), int(other.sum()))
    both = int((one & other).sum())
    return float(2 * min(law.cdf(both), law.sf(both - 1)))


def _above(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries are above the median, or where none is, those that are not below it."""
    middle = np.median(column)
    above: NDArray[np.bool_] = column > middle
    return above if above.any() else column >= middle


def _chunks(rows: Matrix) -> Iterator[Matrix]:
    """Yield rows in parts that fit the processor's cache."""
    step = max(1, _ENTRIES_IN_CACHE // max(1, rows.shape[1]))
    return (rows[start : start + step] for start in range(0, len(rows), step))


def _all_rows_are(row: Matrix, sides: Sequence[Matrix]) -> bool:
    """Whether every row of both sides is this one; NaN is NaN, and -0.0 is not 0.0."""
    return all(
        np.array_equal(part, np.broadcast_to(row, part.shape), equal_nan=True)
        and not ((part == 0) & (np.signbit(part) != np.signbit(row))).any()
        for side in sides
        for part in _chunks(side)
    )


def _digests(rows: Matrix) -> NDArray[np.uint64]:
    """Return a number for each row: different rows have the same with probability 2⁻⁶⁴ or so."""
    weights = np.random.default_rng(0).integers(1 << 64, size=rows.shape[1], dtype=np.uint64) | 1
    found = []
    for part in _chunks(rows):
        plain = np.ascontiguousarray(part, dtype=np.float64).view(np.uint64)
        mixed = (plain ^ (plain >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        found.append(((mixed ^ (mixed >> np.uint64(32))) * weights).sum(axis=1, dtype=np.uint64))
    return np.concatenate(found)


def _different(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each code once, sorted: faster than `np.unique`, which hashes."""
    ordered = np.sort(codes)
    found: NDArray[np.uint64] = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return found


def _repeated(codes: NDArray[np.uint64], different: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return a row of each code that occurs more than once."""
    if len(different) == len(codes):
        return np.empty(0, dtype=np.intp)
    _, places, counts = np.unique(codes, return_index=True, return_counts=True)
    return places[counts > 1]


def _first(codes: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the first row of each of some codes."""
    if not len(wanted):
        return np.empty(0, dtype=np.intp)
    return np.intersect1d(codes, wanted, return_indices=True)[1]


def _long(rows: Matrix, places: NDArray[np.intp]) -> int:
    """Count the listed rows that have a mantissa too long to be repeated by chance."""
    if not len(places) or not np.issubdtype(rows.dtype, np.floating):
        return 0
    listed = rows[places]
    parts = np.frexp(np.where(np.isfinite(listed), listed, 0.0))[0]
    fractions = parts.astype(np.float64) * 2.0**_LONG
    long = fractions != np.floor(fractions)
    if long.any():
        long &= ~np.array([_rounded(column) for column in rows.T])
    return int(long.any(axis=1).sum())


def _rounded(column: NDArray[Any]) -> bool:
    """Whether numbers are a constant plus multiples of one spacing, such as 1/10 or π."""
    points = np.unique(column[np.isfinite(column)]).astype(np.float64)
    gaps = np.diff(points)
    gaps = gaps[gaps > 2.0**-_LONG * np.abs(points).max(initial=0.0)]  # the others are rounding
    if not len(gaps):
        return True
    with np.errstate(over="ignore", invalid="ignore"):  # between the ends of all doubles
        steps = (points - points[0]) / gaps.min()
    return bool((np.abs(steps - np.rint(steps)) < _NEAR).all())


Array: TypeAlias = NDArray[Any]

_SPLIT, _COIN_KEY = 901, 902
_ENTRIES_AT_ONCE = 2_000_000
"""Numbers that are copied and counted at a time: 16 MB of doubles."""
_SPARE = 7.5
"""Standard deviations of fair coins for which there are rows: more are drawn with chance 1e-13."""


@in_words
def audit_samples(
    first: Any,
    second: Any,
    claim: Claim | str | None = None,
    *,
    significance: float = 0.05,
    bits: bool | None = None,
    seed: int | None = None,
    names: tuple[str, str] = ("first", "second"),
    **words: Unpack[Words],
) -> AuditResult:
    """Test a claim, or estimate ε and δ(ε), on given outputs.

    Parameters
    ----------
    first, second
        The outputs of independent runs on either dataset, one run a row: arrays whose first axis
        counts the runs, or lists of outputs of any kind. Their numbers may differ.
    seed
        The seed of the random choice of the rows that propose the event; None draws one and reports
        it.
    names
        What the two sides are called in the report.

    Other arguments as for `audit`.

    Raises
    ------
    InvalidInputError
        For too few rows, two sides of different kinds or shapes, rows that are all equal, copied
        rows, or rows that depend on those before them.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> p, q = rng.laplace(1, 1, 5000), rng.laplace(0, 1, 5000)
    >>> audit_samples(p, q, "0.5", seed=1).outcome.value
    'REFUTED'
    """
    started = time.perf_counter()
    asked, adjacency = one_claim(claim, {**words})
    claimed = asked is not None
    whole = guarantee(asked if claimed else bounded(words), adjacency=adjacency)
    level, fixed = read_significance(significance), read_seed(seed)
    if isinstance(names, str) or len(names) != 2:
        raise expected("names", names, "to be two words, one for each side")
    sides, form = matrices(first, second, names)
    least = min(map(len, sides))
    what = Named(" and ".join(names))
    plan = Plan(what, whole, (names,), least, level, fixed, None, claimed, bits)
    plan.require_enough()
    training = training_runs(plan, sides[0].shape[1])
    lots = [generator(fixed, _SPLIT, i).permutation(len(rows)) for i, rows in enumerate(sides)]
    learning = [rows[lot[:training]] for rows, lot in zip(sides, lots, strict=True)]
    fresh = [lot[training:] for lot in lots]
    rule = choose(
        learning[0],
        learning[1],
        whole,
        runs=least - training,
        significance=level,
        values=(features.plain,) if names == SCORES else VALUES,
        bits=bits_of(bits),
        shares=shares_of(bits, claimed=claimed),
        mixed=form.width is not None,
    )
    rule = all_worded(rule, (learning[0], learning[1]), form.width, form.names)
    groups: list[Sequence[Rule | Ranked]] = [rule.values.rules, (rule.ranked,)]
    if rule.bits is not None:
        groups.insert(1, (rule.bits,))
    histogram = np.hstack([_counted(sides, group, fresh, fixed) for group in groups])
    odd = oddities(learning[0], learning[1], mixed=False, with_bits=bits is not False)
    return AuditResult.of(
        plan,
        rule,
        histogram,
        training=training,
        samples=int(histogram[:, : rule.values.partition.size].sum(axis=1).min()),
        seconds=time.perf_counter() - started,
        notes=(GIVEN, *odd),
    )


def audit_scores(
    included: Any,
    excluded: Any = None,
    claim: Claim | None = None,
    *,
    delta: Number = "1e-5",
    significance: float = 0.05,
    seed: int | None = None,
) -> AuditResult:
    """Audit by the scores that one canary has in runs with it, and in runs without it.

    Each score is that of a run of its own; for many canaries in one run see `audit_one_run`. Events
    are scores beyond a threshold or between two.

    Parameters
    ----------
    included, excluded
        A number for each run with the canary, and for each run without it; or, as the one
        argument, a `CanaryScoreAuditor` of JAX-Privacy, whose scores are those of such runs.
    claim
        As for `audit_samples`.
    delta
        δ at which ε is bounded where nothing is claimed.

    Other parameters, errors and the result are those of `audit_samples`.
    """
    if excluded is None:
        included, excluded = _of_auditor(included)
    scores = []
    for name, given in zip(SCORES, (included, excluded), strict=True):
        values = real_numbers(given, f"{name} to be numbers, one for each run")
        if values.ndim != 1:
            raise expected(name, values.shape, "to be a list of numbers")
        if np.isnan(values).any():
            raise InvalidInputError(
                f"{int(np.isnan(values).sum())} of {len(values)} scores of {name} are NaN. Give a "
                "run without a score a number of its own, such as -inf."
            )
        scores.append(values)
    return audit_samples(
        scores[0],
        scores[1],
        claim,
        significance=significance,
        delta=str(delta),
        bits=False,
        seed=seed,
        names=SCORES,
    )


def _of_auditor(thing: Any) -> tuple[Any, Any]:
    """Return the scores that a `CanaryScoreAuditor` of JAX-Privacy keeps."""
    sides = [getattr(thing, f"_{side}_canary_scores", None) for side in ("in", "out")]
    if any(side is None for side in sides):
        raise InvalidInputError(
            "Expected audit_scores(included, excluded), the scores of runs with and without the "
            f"canary, or a CanaryScoreAuditor of JAX-Privacy, not {type(thing).__name__} alone."
        )
    return sides[0], sides[1]


class Named:
    """The target of an audit of given rows, which cannot be run."""

    def __init__(self, name: str) -> None:
        self.name = name

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Raise: there is nothing to run."""
        raise InvalidInputError("The rows were given; there is nothing to run.")


def _counted(
    sides: Sequence[Matrix], counted: Sequence[Rule | Ranked], lots: Sequence[Array], seed: int
) -> Array:
    """Count the cells of some features on the rows with given indices."""
    if any(isinstance(each, Rule) and each.design is Design.GUESSES for each in counted):
        lots = _side_sizes_by_coins(lots, seed)
    cells = [(each.feature, each.partition) for each in counted]
    chunk = max(1, _ENTRIES_AT_ONCE // max(1, sides[0].shape[1]))
    return np.array(
        [
            sum(
                cell_counts(cells, rows[lot[start : start + chunk]])
                for start in range(0, max(1, len(lot)), chunk)
            )
            for rows, lot in zip(sides, lots, strict=True)
        ]
    )


def _side_sizes_by_coins(sides: Sequence[Array], seed: int) -> list[Array]:
    """Return as many runs as fair coins give each side, so many that there are enough of both."""
    least = min(map(len, sides))
    root = (math.sqrt(_SPARE**2 + 8 * least) - _SPARE) / 2  # n/2 + s√n/2 ≤ least for √n up to it
    runs = max(2, int(root**2))
    heads = int(generator(seed, _COIN_KEY).binomial(runs, 0.5))
    heads = min(max(heads, runs - least), least)  # it is there already but with chance 1e-13
    return [sides[0][:heads], sides[1][: runs - heads]]

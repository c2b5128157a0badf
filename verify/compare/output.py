"""Comparisons as a table in the terminal, and the decision in a line."""

from __future__ import annotations

import io
import shutil
import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import TYPE_CHECKING, TextIO

from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho
from dpassay.accountant.counting.counters import KaryTree, LinearCounter
from dpassay.accountant.errors import NotApplicableError, printable
from dpassay.accountant.geometry.workload import Training
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise
from dpassay.accountant.numbers.exact import ExactReal, floats_in_short
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.verifier.compare.candidates import Calibrated, Layout, LeftOut
from dpassay.verifier.terminal import columns, fitted, is_pretty, styled

if TYPE_CHECKING:
    from dpassay.verifier.compare.comparison import Comparison, Metric, Row

_INTEGERS = ("DiscreteGaussian", "DiscreteLaplace", "IntegerNoise", "Skellam", "BoundedCountNoise")
_COMMON = (
    "Poisson batches",
    "Gaussian",
    "Laplace",
    "discrete Gaussian",
    "discrete Laplace",
    "exponential mechanism",
    "permute-and-flip",
)
"""Candidates that dp-accounting, OpenDP, Opacus or diffprivlib can run."""
_DIGITS = 5
"""Digits of noise in a table, rounded outward."""
_SYMBOLS = {"standard_deviation": "σ", "sigma_star": "σ_*", "parameter": "σ²", "mu": "μ"}
_SYMBOLS |= {"epsilon": "ε"}
_ALIKE = 1e-3
"""Relative difference of errors that does not matter."""
_GAIN = 0.02
"""Relative gain that is too small to leave the mechanisms of the usual libraries."""
_LONGEST = 120
"""Characters of a mechanism that fit into a line of advice."""
_LEAST_NAME = 10
"""Least number of columns for a name."""
_FEW_PERCENT = 10
"""Differences below so many percent are printed in percent."""


def need(row: Row) -> str:
    """Return what the data or the program must have."""
    if row.candidate.scheme is not None and row.candidate.scheme.loader:
        return row.candidate.scheme.loader
    if row.found.layout is Layout.STREAM:
        return "state"
    return "integers" if type(row.found.mechanism).__name__ in _INTEGERS else "secure noise"


def is_common(row: Row) -> bool:
    """Whether the usual libraries have it."""
    return row.candidate.name.startswith(_COMMON)


def noise(found: Calibrated) -> str:
    """Return the argument and its value, rounded to more noise; the range of a finite law."""
    mechanism = found.mechanism
    if isinstance(mechanism, IntegerNoise):
        return f"{len(mechanism.probabilities)} masses from {mechanism.lowest} on"
    argument = found.argument or mechanism.noise_argument or ""
    if isinstance(mechanism, LinearCounter) and not found.argument:
        argument = "epsilon" if mechanism.mu is None else "mu"
    value = getattr(mechanism, argument, None) if argument else None
    if isinstance(value, (int, Fraction)):
        value = ExactReal.of_rational(value)
    if isinstance(value, ExactReal):
        known = enclose(value.ball) if value.rational is None else Interval.of_exact(value.rational)
        more = mechanism.noise_grows
        outward = Context(prec=_DIGITS, rounding=ROUND_CEILING if more else ROUND_FLOOR)
        rounded = float(outward.plus(known.upper if more else known.lower))
        return f"{_SYMBOLS.get(argument, argument)} = {rounded:.{_DIGITS}g}"
    try:
        variances = list(mechanism.variances())
    except NotApplicableError:
        return "-"
    sizes = sorted(float(entry.mid()) ** 0.5 for entry in variances)
    few = [f"{size:.{_DIGITS}g}" for size in (sizes[0], sizes[-1])]
    return f"σ = {' to '.join(dict.fromkeys(few))}"


def headline(found: Comparison) -> str:
    """Say in one line what to use, its error, what is proved of it, and what comes next.

    What the usual libraries have is advised if it is within `_GAIN` of the best. Else, among rows
    that differ by less than `_ALIKE`, it is the first one that can be written in a line: a law of
    many masses is not worth a gain that nobody sees.
    """
    measure, best = found.ranked_by, advised(found)
    if best is None:
        return "No candidate is proved to keep the budget."
    typical = found.typical
    parts = [typical.advice.replace("{}", _plain(best.value(typical.name)))]
    if measure.name not in (typical.name, "variance"):
        parts.append(f"{measure.name} {number(best.metrics[measure.name])}")
    parts.append(f"proved {proved(found)}")
    own = found.ratio(best, measure.name)
    for other in found.ranked:
        ratio = found.ratio(other, measure.name)
        if own and ratio and abs(ratio / own - 1) >= _ALIKE:
            word = "best" if other is found.rows[0] else "next best"
            parts.append(f"{word} ({other.candidate.name}) {_worse(ratio / own)}")
            break
    else:
        if alike := [row for row in found.ranked if row is not best]:
            simplest = min(alike, key=_complexity)
            parts.append(f"{simplest.candidate.name} is as good to {100 * _ALIKE:g} %")
    what = _mechanism(best)
    if best.candidate.scheme is not None:
        what = f"{best.candidate.name} with {what} in every step"
    elif best.found.layout is Layout.EACH and found.workload.answers > 1:
        what = f"{what} on every answer"
    decision = "Use" if found.complete else "Interrupted; best so far:"
    return f"{decision} {what}: {'; '.join(parts)}"


def advised(found: Comparison) -> Row | None:
    """Return the row to use; None where none is proved to keep the budget."""
    if not found.ranked:
        return None
    off = [(row, found.ratio(row, found.ranked_by.name)) for row in found.ranked]
    for row, ratio in off:
        if is_common(row) and ratio and abs(ratio - 1) < _GAIN:
            return row
    close = [r for r, x in off if r is found.rows[0] or (x is not None and abs(x - 1) < _ALIKE)]
    return min(close, key=lambda row: len(repr(row.found.mechanism)) > _LONGEST, default=None)


def _complexity(row: Row) -> tuple[bool, int]:
    """Order mechanisms by how simple they are: the same noise on every answer, a short name."""
    return row.found.layout is not Layout.EACH, len(repr(row.found.mechanism))


def release_code(found: Comparison) -> str:
    """Return the line that releases the answers as advised, of Python or, for a stream, a command.

    It is empty where no one line does.
    """
    best = advised(found)
    if best is None or isinstance(found.workload, Training):  # its batches belong to its privacy
        return ""
    mechanism = best.found.mechanism
    if best.found.layout is Layout.STREAM:
        is_counter = isinstance(mechanism, (LinearCounter, KaryTree))
        return f'dpassay stream --mechanism "{mechanism!r}" < numbers' if is_counter else ""
    releases_more = best.found.layout is Layout.JOINT and (
        mechanism.dimension != found.workload.answers
    )
    if releases_more or len(repr(mechanism)) > _LONGEST:
        return ""
    return f'dpassay.parse("{mechanism!r}").release({found.workload.input})'


def facts(found: Comparison) -> list[tuple[str, str]]:
    """Return what the decision is about, and the line that releases: names and texts."""
    said = [("budget", str(found.budget)), ("workload", repr(found.workload))]
    more = [("run", _run(found)), ("release", release_code(found))]
    return said + [(name, code) for name, code in more if code]


def _run(found: Comparison) -> str:
    """Return the command that states the guarantee of a training run as advised; else empty."""
    best, target, workload = advised(found), found.budget.target, found.workload
    scheme = None if best is None else best.candidate.scheme
    if not isinstance(workload, Training) or not isinstance(target, EpsilonDelta):
        return ""
    if best is None or scheme is None or not scheme.sampling:
        return ""
    sigma = getattr(best.found.mechanism, "standard_deviation", "")
    batches = f"--batch {workload.batch_size} --size {workload.dataset_size}"
    length = f"--epochs {workload.epochs} --delta {target.delta}"
    other = "" if scheme.sampling == "poisson" else f" --sampling {scheme.sampling}"
    return f"dpassay training --noise-multiplier {sigma} {batches} {length}{other}"


def notes(found: Comparison, where: str, *, details: bool = False) -> list[str]:
    """Return what stands below the table: the best rows, what is struck out, what is left out.

    Why each candidate is left out is said of those of papers, with details of all; of others it is
    said `where` it is.
    """
    lines = best_lines(found)
    lines += [f"{row.candidate.name}: {row.why}" for row in found.rows if not row.is_private]
    shown_reasons = list(found.left_out) if details else of_papers(found)
    lines += [f"left out: {left.name}: {left.reason}" for left in shown_reasons]
    names = [left.name for left in found.left_out if left not in shown_reasons]
    return [*lines, f"left out: {'; '.join(names)} ({where})"] if names else lines


def text(found: Comparison, notes: Sequence[str]) -> str:
    """Return the decision, what it is about, the table and the notes."""
    stream = io.StringIO()
    show(found, notes, stream)
    return stream.getvalue().removesuffix("\n")


def of_papers(found: Comparison) -> list[LeftOut]:
    """Return the candidates of papers, which name their authors, that were not judged."""
    return [left for left in found.left_out if "(" in left.name]


def is_struck_out(found: Comparison) -> list[bool]:
    """Return for each line below the head of the table whether it is struck out."""
    return [not row.is_private for row, _ in collapsed(found)] + [True] * len(of_papers(found))


def _plain(value: Interval | None) -> str:
    """Return two digits, or all digits before the point."""
    size = 0.0 if value is None else float(value.upper)
    return f"{size:.2g}" if size < 10 else f"{size:.0f}"


def proved(found: Comparison) -> str:
    """Say the guarantee in the usual notation."""
    match found.budget.target:
        case EpsilonDelta(epsilon=epsilon, delta=delta):
            said = f"{epsilon}-DP" if delta.sign == 0 else f"({epsilon}, {delta})-DP"
        case Mu(mu=mu):
            said = f"{mu}-GDP"
        case Rho(rho=rho):
            said = f"{rho}-zCDP"
        case other:
            said = str(other)
    count = found.budget.releases
    return said if count == 1 else f"{said} for all {count} releases together"


def _mechanism(row: Row) -> str:
    text = repr(row.found.mechanism)
    if len(text) > _LONGEST:
        return f"{row.candidate.name} ({noise(row.found)}; --json writes all of it)"
    return f"`{text}`"


def _worse(ratio: float) -> str:
    if abs(ratio - 1) < 1:
        return f"{100 * abs(ratio - 1):.2g} % {'worse' if ratio > 1 else 'better'}"
    return f"has {ratio:.3g} times the error"


def collapsed(found: Comparison) -> list[tuple[Row, list[Row]]]:
    """Return the rows, each with the following ones whose numbers agree to five digits."""
    rows: list[tuple[Row, list[Row]]] = []
    for row in found.rows:
        if rows and row.is_private and _numbers(found, rows[-1][0]) == _numbers(found, row):
            rows[-1][1].append(row)
        else:
            rows.append((row, []))
    return rows


def _numbers(found: Comparison, row: Row) -> list[object]:
    """Return what two rows must share to be shown as one; an unknown value is shared with none."""
    values = (row.value(entry.name) for entry in _columns_of(found))
    return [row.is_private, *(id(row) if value is None else number(value) for value in values)]


def _columns_of(found: Comparison) -> tuple[Metric, ...]:
    return found.shown or (found.ranked_by,)


def table(found: Comparison) -> list[list[str]]:
    """Return the rows of the table; the best by each metric is marked with *.

    Last come the candidates of papers that were not judged: they are struck out.
    """
    metrics = _columns_of(found)
    header = ["mechanism", "verdict", "noise", "you need", *(entry.name for entry in metrics)]
    best = {entry.name: {id(row) for row in found.best(entry.name)} for entry in metrics}
    lines = [header]
    for row, _ in collapsed(found):
        cells = [row.candidate.name, row.verdict.value, noise(row.found), need(row)]
        cells += [number(row.metrics[name]) + "*" * (id(row) in best[name]) for name in best]
        lines.append(cells)
    dashes = ["-"] * (len(header) - 2)
    return lines + [[left.name, "left out", *dashes] for left in of_papers(found)]


def number(value: Interval | str | None) -> str:
    """Return a few digits of a metric, or a dash."""
    return f"{float(value.upper):.{_DIGITS}g}" if isinstance(value, Interval) else "-"


def best_lines(found: Comparison) -> list[str]:
    """Say in a line for each metric asked for which candidate is best, and what the next one costs.

    Then which rows are alike, and what no noise of a kind can go below. First, why the advice is
    not the first row, where it is not.
    """
    lines, use = [], advised(found)
    if use is not None and use is not found.rows[0]:
        near, why = (
            (_GAIN, "the usual libraries have it")
            if is_common(use)
            else (_ALIKE, "short enough to be written in one line")
        )
        lines.append(
            f"{use.candidate.name}: advised, as it is within {100 * near:g} % of the best "
            f"({found.rows[0].candidate.name}) and {why}"
        )
    lines += [line for entry in found.shown if (line := _best_line(found, entry))]
    for row, alike in collapsed(found):
        if alike:
            lines.append(f"{row.candidate.name}: the same to {_DIGITS} digits as {_few(alike)}")
    private = [row for row in found.rows if row.is_private]
    ranked = {id(row) for row in found.ranked}
    if unranked := [row for row in private if id(row) not in ranked]:
        lines.append(f"not ranked: {_few(unranked)}: other neighbours, another promise")
    for row in private:
        if (bound := row.found.bound) is not None:
            lines.append(f"no {row.found.bound_for} has a variance below {at_least(bound)}")
    return list(dict.fromkeys(lines))


def _best_line(found: Comparison, entry: Metric) -> str:
    """Say which candidate is best by a metric; nothing where a probability is 0 for all."""
    private = [row for row in found.rows if row.is_private]
    best = found.best(entry.name)
    if not best:
        unknown = [row for row in private if row.value(entry.name) is None]
        return f"{entry.name}: no best, as it is unknown for {_few(unknown)}" if unknown else ""
    others = sorted(
        (ratio, row.candidate.name)
        for row in private
        if all(row.found.mechanism != b.found.mechanism for b in best)
        for ratio in [found.ratio(row, entry.name)]
        if ratio is not None and ratio > 0
    )
    ratio, name = others[-1 if entry.more_is_better else 0] if others else (1.0, "")
    after = f"; next: {name}, {_times(ratio)}" if others else ""
    return f"{entry.name}: {' and '.join(row.candidate.name for row in best)}{after}"


def _few(rows: Sequence[Row]) -> str:
    """Return the names of the first three rows, and how many more there are."""
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return "; ".join(row.candidate.name for row in rows[:3]) + more


def at_least(bound: Interval) -> str:
    """Return twelve digits of a lower bound, rounded down."""
    return f"{Context(prec=12, rounding=ROUND_FLOOR).plus(bound.lower)}"


def _times(ratio: float) -> str:
    """Say by what factor values differ, or by how many percent if that is little."""
    percent = 100 * (ratio - 1)
    if abs(percent) < _FEW_PERCENT:
        return f"{abs(percent):.2g} % {'more' if percent > 0 else 'less'}"
    return f"{ratio:.4g} times that"


# --- A comparison as it is printed: on a terminal within its width, what is not private struck out


def show(found: Comparison, notes: Sequence[str], stream: TextIO) -> None:
    """Print the decision, what it is about, the table and the notes."""
    about = printable("\n".join(f"{name:8}  {said}" for name, said in facts(found)))
    head, foot = (fitted(printable(each), stream) for each in (headline(found), "\n".join(notes)))
    parts = [styled(head, "bold", stream), about, "\n".join(_lines(found, stream)), foot]
    stream.write(floats_in_short("\n\n".join(filter(None, parts))) + "\n")


def _lines(found: Comparison, stream: TextIO) -> list[str]:
    """Return the lines of the table; on a narrow terminal long names are wrapped."""
    rows = [[printable(cell) for cell in line] for line in table(found)]
    names = [line[0] for line in rows]
    rest = columns([line[1:] for line in rows], numbers_from=3).split("\n")
    room = max(map(len, names))
    if is_pretty(stream):
        left = shutil.get_terminal_size().columns - max(map(len, rest)) - 2
        room = max(min(room, left), _LEAST_NAME)
    styles = ["dim", *("dim strike" if wrong else "" for wrong in is_struck_out(found))]
    lines = []
    for name, cells, style in zip(names, rest, styles, strict=True):
        first, *more = textwrap.wrap(name, room)
        lines += [styled(f"{first:{room}}  {cells}", style, stream)]
        lines += [styled(part, style, stream) for part in more]
    return lines

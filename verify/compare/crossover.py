"""Sweeps over a parameter of the budget or the workload, and where the best candidate changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, final

from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho
from dpassay.accountant.errors import InvalidInputError, suggestion
from dpassay.accountant.geometry.workload import Workload
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.verifier.compare.candidate import Budget
from dpassay.verifier.compare.comparison import Comparison, compare

_STEPS = 12
"""Halvings of an interval in which the best candidate changes."""


@final
@dataclass(frozen=True)
class Crossover:
    """Between `below` and `above` the best candidate changes from `before` to `after`."""

    parameter: str
    below: str
    above: str
    before: str
    after: str

    def __str__(self) -> str:
        return (
            f"{self.after} wins instead of {self.before} from {self.parameter} between "
            f"{self.below} and {self.above} on"
        )


@final
@dataclass(frozen=True)
class Sweep:
    """Comparisons along values of one parameter."""

    parameter: str
    metric: str
    values: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    crossovers: tuple[Crossover, ...]

    def series(self) -> dict[str, list[Interval | None]]:
        """Return the metric of each candidate at every value; None where it is struck out."""
        names: dict[str, None] = {}
        for found in self.comparisons:
            names.update(dict.fromkeys(_family(row.candidate.name) for row in found.rows))
        series: dict[str, list[Interval | None]] = {name: [] for name in names}
        for found in self.comparisons:
            known = {
                _family(row.candidate.name): row.value(self.metric)
                for row in found.rows
                if row.is_private
            }
            for name, entries in series.items():
                entries.append(known.get(name))
        return series

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "parameter": self.parameter,
            "metric": self.metric,
            "values": list(self.values),
            "series": {
                name: [None if entry is None else entry.to_json() for entry in entries]
                for name, entries in self.series().items()
            },
            "crossovers": [asdict(entry) for entry in self.crossovers],
        }


def sweep(
    budget: Budget,
    workload: Workload,
    parameter: str,
    values: Sequence[str],
    *,
    metric: str = "variance",
    refine: bool = True,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Sweep:
    """Compare along a parameter, and enclose the values at which the best candidate changes.

    Parameters
    ----------
    parameter
        epsilon, delta, mu, rho, releases, sampling_prob, or an argument of the workload.
    values
        Increasing; decimals or integers.
    metric
        What "best" is.
    refine
        Whether to narrow each change down by halving (integers: to neighbours).
    options
        Of `compare`.

    Raises
    ------
    InvalidInputError
        For an unknown parameter, or values that do not increase.
    """
    numbers = [_number(value) for value in values]
    if any(after <= before for before, after in pairwise(numbers)):
        raise InvalidInputError(f"Expected the values of {parameter} to increase: {list(values)}.")

    def at(value: str) -> Comparison:
        if progress is not None:
            progress(f"{parameter} = {value}")
        spent, asked = changed(budget, workload, parameter, value)
        return compare(spent, asked, metrics=[metric], simulated=False, **options)

    found = [at(value) for value in values]
    crossovers = []
    for k in range(len(values) - 1):
        before, after = winner(found[k], metric), winner(found[k + 1], metric)
        if before == after:
            continue
        below, above = values[k], values[k + 1]
        for _ in range(_STEPS if refine else 0):
            middle = _between(below, above)
            if middle is None:
                break
            if winner(at(middle), metric) == before:
                below = middle
            else:
                above = middle
        final = winner(at(above), metric) if refine else after
        crossovers.append(Crossover(parameter, below, above, before, final))
    return Sweep(parameter, metric, tuple(values), tuple(found), tuple(crossovers))


def winner(found: Comparison, metric: str) -> str:
    """Return the names of the best candidates, without what depends on the parameter."""
    return " or ".join(sorted({_family(row.candidate.name) for row in found.best(metric)}))


def changed(
    budget: Budget, workload: Workload, parameter: str, value: str
) -> tuple[Budget, Workload]:
    """Return the budget and the workload with one parameter set."""
    target = budget.target
    own = [f.name for f in fields(target)] if isinstance(target, (EpsilonDelta, Mu, Rho)) else []
    if parameter in own:
        return replace(budget, target=replace(target, **{parameter: value})), workload  # type: ignore[type-var]
    if parameter == "releases":
        return replace(budget, releases=_integer(parameter, value)), workload
    if parameter == "sampling_prob":
        return replace(budget, sampling_prob=value), workload
    arguments = [field.name for field in fields(workload)]  # type: ignore[arg-type]
    if parameter in arguments:
        kind = getattr(workload, parameter)
        new = _integer(parameter, value) if isinstance(kind, int) else value
        return budget, replace(workload, **{parameter: new})  # type: ignore[type-var]
    known = [*own, "releases", "sampling_prob", *arguments]
    raise InvalidInputError(f"Unknown parameter {parameter!r}. {suggestion(parameter, known)}")


def _family(name: str) -> str:
    return name.partition(", k =")[0]


def _number(value: str) -> Fraction:
    number = exact(value).rational
    if number is None:
        raise InvalidInputError(f"Expected a rational value, not {value!r}.")
    return number


def _integer(name: str, value: str) -> int:
    number = _number(value)
    if number.denominator != 1:
        raise InvalidInputError(f"Expected {name}={value} to be an integer.")
    return int(number)


def _between(below: str, above: str) -> str | None:
    """Return a number between, geometrically, of few digits; None between neighbours."""
    low, high = _number(below), _number(above)
    if low.denominator == high.denominator == 1 and high > 1:
        middle = (low + high) // 2 if high < 4 * low else int(float(low * high) ** 0.5)
        return str(middle) if low < middle < high else None
    middle_text = f"{float(low * high) ** 0.5:.3g}" if low > 0 else f"{float(high) / 2:.3g}"
    return middle_text if low < _number(middle_text) < high else None

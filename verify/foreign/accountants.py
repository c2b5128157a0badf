"""Is an accountant right? Its ε for training runs, compared with the enclosed one.

Each setting is a run of `steps` Gaussian releases of a Poisson sample, neighbours by add-remove. An
accountant promises that the run is (ε, δ)-DP; that is false where its ε is below the lower end, and
proved where it is not below the upper end. A table of settings supports an accountant, and proves
nothing of other settings.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import importlib
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, final

from dpassay.accountant import ask
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import integer, probability
from dpassay.accountant.errors import (
    InvalidInputError,
    NeitherTrueNorFalse,
    UndecidedError,
    expected,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.verifier.verdict import Verdict

_SYNONYMS = {
    "noise_multiplier": ("noise_multiplier", "sigma", "noise", "noise_scale"),
    "sampling_prob": ("sampling_prob", "sampling_probability", "sample_rate", "sampling_rate", "q"),
    "steps": ("steps", "num_steps", "count", "T", "n"),
    "delta": ("delta", "target_delta"),
}
"""How a function may call what it is asked."""
_WANTED = (
    "Expected a function of (noise_multiplier, sampling_prob, steps, delta) that returns epsilon, "
    "or an accountant with get_epsilon and with compose (as in dp-accounting), or history (as in "
    "Opacus)"
)
_NARROW = Fraction(1, 10**12)
"""Relative width of the enclosures in which a reported ε lies: floats have sixteen digits."""
_MOST_SETTINGS = 10_000
"""Rows of a file: each takes some tenths of a second."""


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """A training run, and the δ at which its ε is asked."""

    noise_multiplier: str
    sampling_prob: str
    steps: int
    delta: str

    def __post_init__(self) -> None:
        if exact(self.noise_multiplier, "noise_multiplier").sign <= 0:
            raise expected("noise_multiplier", self.noise_multiplier, "> 0")
        if probability("sampling_prob", self.sampling_prob).sign == 0:
            raise expected("sampling_prob", self.sampling_prob, "> 0")
        if probability("delta", self.delta).sign == 0:
            raise expected("delta", self.delta, "> 0")
        integer("steps", self.steps, least=1)

    def epsilon(self, reported: float | None = None) -> Interval:
        """Enclose ε of what an accountant is told: of the floats, exactly.

        The enclosure is narrowed, as far as it soon can be, where `reported` lies in it.
        """
        found = self._epsilon()
        if reported is not None and found.lower <= reported < found.upper:
            with contextlib.suppress(UndecidedError):
                return self._epsilon(_NARROW)
        return found

    def _epsilon(self, relative_width: Fraction | None = None) -> Interval:
        told = self.floats()
        step: Mechanism = PoissonSubsampled(
            Gaussian(told["noise_multiplier"]), told["sampling_prob"]
        )
        found: Interval = ask.epsilon(
            Composed(step, self.steps),
            told["delta"],
            adjacency="add-remove",
            relative_width=relative_width,
        )
        return found

    def floats(self) -> dict[str, float | int]:
        """Return what an accountant is told."""
        return {
            "noise_multiplier": float(exact(self.noise_multiplier)),
            "sampling_prob": float(exact(self.sampling_prob)),
            "steps": self.steps,
            "delta": float(exact(self.delta)),
        }


SETTINGS = tuple(
    Setting(noise, rate, steps, delta)
    for noise, rate, steps, delta in (
        ("1.1", "256/60000", 7032, "1e-5"),  # MNIST, 30 epochs
        ("1.3", "250/60000", 3600, "1e-5"),
        ("0.7", "256/60000", 10548, "1e-5"),
        ("2.15", "256/60000", 14064, "1e-5"),
        ("1", "512/50000", 2930, "1e-5"),  # CIFAR-10, 30 epochs
        ("1.5", "4096/50000", 2400, "1e-5"),
        ("3", "16384/50000", 1000, "1e-5"),
        ("0.6", "1/1000", 1000, "1e-6"),
        ("0.4", "1/100", 100, "1e-5"),
        ("0.8", "1/100", 1, "1e-5"),  # few steps
        ("0.8", "1/100", 10, "1e-5"),
        ("1", "1/2", 5, "1e-5"),
        ("1", "1", 1, "1e-5"),  # no sampling
        ("10", "1", 100, "1e-5"),
        ("0.5", "1", 1, "1e-3"),
        ("4", "1/10", 10000, "1e-6"),  # many steps
        ("20", "1/100", 1000000, "1e-8"),
        ("1", "1/100000", 100000, "1e-7"),  # tiny rates
        ("2", "1/1000000", 1000, "1e-10"),
        ("1", "1/100", 1000, "1e-2"),  # large and tiny δ
        ("1", "1/100", 1000, "1e-12"),
        ("1", "1/100", 1000, "1e-30"),
        ("50", "1/100", 100, "1e-5"),  # tiny ε
        ("1", "1/10", 1000, "1e-5"),  # large ε
    )
)  # fmt: skip
"""Runs as tutorials have them, and what accountants find hard."""

Ask: TypeAlias = Callable[[Setting], float]


@final
@dataclass(frozen=True, slots=True)
class Row(NeitherTrueNorFalse):
    """One setting: what is true, and what the accountant says."""

    compare: ClassVar[str] = ".verdict: HOLDS, REFUTED and UNDECIDED are different"
    setting: Setting
    true: Interval
    reported: float | None
    problem: str = ""
    """Why there is no number."""

    @property
    def verdict(self) -> Verdict:
        """Whether the run has the ε that is reported."""
        if self.reported is None:
            return Verdict.PENDING
        if self.reported == math.inf:
            return Verdict.HOLDS
        said = Fraction(self.reported)
        if said < Fraction(self.true.lower):
            return Verdict.REFUTED
        return Verdict.HOLDS if said >= Fraction(self.true.upper) else Verdict.UNDECIDED

    @property
    def excess(self) -> Decimal | None:
        """Reported ε over the true one, less 1; below 0 where it is too small."""
        if self.reported in (None, math.inf) or not self.true.lower > 0:
            return None
        assert self.reported is not None
        return Decimal(self.reported) / self.true.upper - 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **asdict(self.setting),
            "true": self.true.to_json(),
            "reported": None if self.reported is None else str(self.reported),
            "verdict": self.verdict.value,
            "problem": self.problem,
        }


def check_accountant(
    accountant: object,
    settings: Iterable[Setting] = SETTINGS,
    *,
    progress: Callable[[str], None] | None = None,
) -> list[Row]:
    """Ask an accountant about every setting, and enclose the truth.

    The accountant is a function of noise_multiplier, sampling_prob, steps and delta (or the usual
    other names) that returns ε; or the class, or an instance without releases, of an accountant:
    with `compose` and `get_epsilon` (dp-accounting), or `history` and `get_epsilon` (Opacus).
    `progress` is called with the noise of every setting that is done.

    Raises InvalidInputError if the accountant is nothing that can be asked.
    """
    said = asker(accountant)
    rows = []
    for setting in settings:
        reported, problem = _number(said, setting)
        rows.append(Row(setting, setting.epsilon(reported), reported, problem))
        if progress is not None:
            progress(f"noise {setting.noise_multiplier}")
    return rows


def _number(said: Ask, setting: Setting) -> tuple[float | None, str]:
    """Return what an accountant says, or why it says nothing."""
    try:
        found = said(setting)
        number = float(found)
    except Exception as error:  # noqa: BLE001 (whatever a foreign accountant raises is its answer)
        return None, f"raised {type(error).__name__}: {str(error)[:80]}"
    if math.isnan(number) or number == -math.inf:
        return None, f"returned {number}"
    return number, ""


def asker(accountant: Any) -> Ask:
    """Return how to ask an accountant for the ε of a setting."""
    if hasattr(accountant, "get_epsilon"):
        fresh: Callable[[], Any] = (
            accountant if isinstance(accountant, type) else partial(copy.deepcopy, accountant)
        )
        if hasattr(accountant, "compose"):
            return lambda setting: _composed(fresh(), setting)
        return lambda setting: _with_history(fresh(), setting)
    if not callable(accountant):
        raise InvalidInputError(f"{_WANTED}; not {type(accountant).__name__}.")
    names = _names(accountant)
    return lambda setting: accountant(**{names[key]: v for key, v in setting.floats().items()})


def _names(function: Callable[..., Any]) -> dict[str, str]:
    """Return the parameter of a function for each thing that it is told."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise InvalidInputError(f"{_WANTED}; the parameters of this one cannot be seen.") from None
    found = {key: name for key, names in _SYNONYMS.items() for name in names if name in parameters}
    missing = [key for key in _SYNONYMS if key not in found]
    others = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in found.values()
    ]
    if missing or others:
        lacks = f"lacks {', '.join(missing)}" if missing else f"wants {', '.join(others)} too"
        raise InvalidInputError(f"{_WANTED}; this one {lacks}.")
    return found


def _composed(accountant: Any, setting: Setting) -> float:
    """Ask an accountant of dp-accounting."""
    events = importlib.import_module("dp_accounting.dp_event")
    told = setting.floats()
    step = events.GaussianDpEvent(told["noise_multiplier"])
    if told["sampling_prob"] < 1:
        step = events.PoissonSampledDpEvent(told["sampling_prob"], step)
    accountant.compose(step, setting.steps)
    return float(accountant.get_epsilon(told["delta"]))


def _with_history(accountant: Any, setting: Setting) -> float:
    """Ask an accountant of Opacus."""
    told = setting.floats()
    accountant.history = [(told["noise_multiplier"], told["sampling_prob"], setting.steps)]
    return float(accountant.get_epsilon(delta=told["delta"]))


def read_settings(path: Path) -> list[Setting]:
    """Read a CSV file with the columns noise_multiplier, sampling_prob, steps, delta.

    Raises InvalidInputError with the line that is wrong.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{path} is not a CSV file: {error}.") from None
    if not 0 < len(lines) <= _MOST_SETTINGS:
        raise InvalidInputError(f"Expected {path} to have 1 to {_MOST_SETTINGS} settings.")
    found = []
    for number, line in enumerate(lines, 2):
        try:
            found.append(_setting(line))
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}, line {number}: {error}") from None
    return found


def _setting(line: dict[str, str]) -> Setting:
    missing = [key for key in _SYNONYMS if not line.get(key)]
    if missing:
        raise InvalidInputError(
            f"Expected the columns {', '.join(_SYNONYMS)}; {missing[0]} is missing."
        )
    steps = exact(line["steps"], "steps").rational
    if steps is None or steps.denominator != 1:
        raise expected("steps", line["steps"], "to be a whole number")
    return Setting(line["noise_multiplier"], line["sampling_prob"], int(steps), line["delta"])


def verdict(rows: Sequence[Row]) -> Verdict:
    """Return REFUTED if some ε is too small, SUPPORTED if none is and all were answered."""
    found = {row.verdict for row in rows}
    if Verdict.REFUTED in found:
        return Verdict.REFUTED
    return Verdict.SUPPORTED if found == {Verdict.HOLDS} else Verdict.UNDECIDED

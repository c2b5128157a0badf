"""What a calibration is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from dpassay.accountant import notation
from dpassay.accountant.budget.target import EpsilonDelta, Mu, Target
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import exact_list
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected, suggestion
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.numbers.exact import ExactReal, Number, floats_in_short
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions.utility import mean_squared_error


@final
@dataclass(frozen=True, slots=True, repr=False)
class Calibration:
    """The result of a calibration."""

    mechanism: Mechanism
    """One release, its noise argument rounded to the safe side."""
    whole: Mechanism
    """All releases together, subsampled if asked for; it has the guarantee."""
    argument: str
    """The noise argument."""
    least: Interval
    """Encloses the value of the noise argument at which the noise is least."""
    achieved: dict[str, Interval]
    """What `whole` has of what the target is about, by name."""
    target: Target
    """What was asked for."""
    reason: str = ""
    """Why this kind of noise, of a mechanism that has two, or why a counter's measured sums."""

    def __str__(self) -> str:
        """Return the mechanism, and below it what was asked for and what it has."""
        rows = [("target", str(self.target)), (f"least {self.argument}", str(self.least))]
        rows += [("chosen by", self.reason)] * bool(self.reason)
        rows += [(f"its {name}", str(value)) for name, value in self.achieved.items()]
        width = max(len(name) for name, _ in rows)
        lines = [f"  {name:{width}}  {value}" for name, value in rows]
        return floats_in_short("\n".join([repr(self.mechanism), *lines]))

    def __repr__(self) -> str:
        """Return the mechanism and what was asked for."""
        return floats_in_short(f"<Calibration: {self.mechanism!r} for {self.target}>")

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "mechanism": repr(self.mechanism),
            "whole": repr(self.whole),
            "argument": self.argument,
            "least": self.least.to_json(),
            "achieved": {name: value.to_json() for name, value in self.achieved.items()},
            "target": str(self.target),
            **({"reason": self.reason} if self.reason else {}),
        }


def best(found: Sequence[Calibration]) -> Calibration:
    """Return the calibration with the smaller mean squared error, saying so."""
    errors = [mean_squared_error(each.mechanism) for each in found]
    order = sorted(range(len(found)), key=lambda i: errors[i].upper)
    said = ", ".join(f"{errors[i]} with {found[i].argument}" for i in order)
    first = found[order[0]]
    more = f"; {first.reason}" if first.reason else ""
    return replace(first, reason=f"mean squared error {said}{more}")


def class_of(name: str | type[Mechanism]) -> type[Mechanism]:
    """Return the class of a mechanism that has a noise argument."""
    if isinstance(name, Mechanism) or (isinstance(name, str) and "(" in name):
        outer = str(name).partition("(")[0]
        remedy = f"Its noise is to be found: give {outer!r}, and its other arguments by name."
        if outer in ("Composed", "PoissonSubsampled"):
            remedy = "Name what has the noise, such as 'Gaussian', with count=…, sampling_prob=…."
        remedy += " For how often this one fits: dpassay calibrate --find count."
        raise expected("name", name, "to be the name of a mechanism", remedy)
    if isinstance(name, str):
        if name not in DESCRIPTIONS:
            raise InvalidInputError(f"Unknown mechanism {name!r}. {suggestion(name, DESCRIPTIONS)}")
        name = DESCRIPTIONS[name]
    if not isinstance(name, type):
        raise expected("name", name, "to be the name of a mechanism, or its class")
    if not issubclass(name, Mechanism):
        raise InvalidInputError(f"{name.__name__} is not a mechanism; it has no noise.")
    if name.noise_argument is None:
        raise NotApplicableError(
            f"{name.__name__} has no single argument that sets its noise, so there is nothing to "
            "calibrate. For several releases, or samples, name what is inside, such as Gaussian, "
            "with count=… and sampling_prob=… (--count, --sampling-prob)."
        )
    return name


def schedule_factors(schedule: Sequence[Number]) -> tuple[ExactReal, ...]:
    """Return the factors of a schedule, one for no schedule."""
    factors = exact_list("schedule", schedule) if schedule else (ExactReal.of_rational(1),)
    for index, factor in enumerate(factors):
        if factor.sign <= 0:
            raise expected(f"schedule[{index}]", factor, "> 0")
    return factors


def with_adjacency(name: str, fixed: dict[str, Any], relation: Adjacency | None) -> dict[str, Any]:
    """Pass the relation on to a mechanism that is made for one."""
    asked = relation is not None and "adjacency" in notation.argument_names(name)
    return {"adjacency": relation, **fixed} if asked else fixed


def noise_arguments(kind: type[Mechanism], target: Target, argument: str | None) -> list[str]:
    """Return the noise arguments to calibrate: one, or two to choose from."""
    known = [name for name in (kind.noise_argument, kind.gaussian_noise_argument) if name]
    if argument is not None:
        if argument not in known:
            raise expected("argument", argument, f"in {known}")
        return [argument]
    if isinstance(target, EpsilonDelta) and target.delta.sign == 0:
        return known[:1]
    return known[-1:] if isinstance(target, Mu) else known

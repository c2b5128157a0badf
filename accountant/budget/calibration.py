"""What a calibration answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from accountant.budget.target import Target
from accountant.core.mechanism import Mechanism
from accountant.numbers.exact import floats_in_short
from accountant.numbers.interval import Interval
from accountant.questions.utility import mean_squared_error


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

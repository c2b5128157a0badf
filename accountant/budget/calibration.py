"""What a calibration answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from accountant.budget.target import Target
from accountant.core.mechanism import Mechanism
from accountant.numbers.exact import floats_in_short
from accountant.numbers.interval import Interval


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

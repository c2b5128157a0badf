"""A logarithmic scale in a few lines of text, with two numbers marked on it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from rich.text import Text

_WIDTH = 61
"""Characters of a ruler: it fits 80 columns with its labels."""
_LEAST_DECADES = Decimal("0.02")
_TICK_ROOM = 10
"""Characters between two labels."""


@final
@dataclass(frozen=True)
class Ruler:
    """Two positive numbers and the decades between them."""

    upper_name: str
    upper: Decimal
    """Marked above the axis."""
    lower_name: str
    lower: Decimal
    """Marked below the axis."""

    @staticmethod
    def of(upper_name: str, upper: Decimal, lower_name: str, lower: Decimal) -> Ruler | None:
        """Return the scale, or None where a number has no logarithm or both are the same."""
        if not all(number.is_finite() and number > 0 for number in (upper, lower)):
            return None
        if abs(upper.log10() - lower.log10()) < _LEAST_DECADES:
            return None
        return Ruler(upper_name, upper, lower_name, lower)

    def lines(self, style: str = "") -> list[Text]:
        """Return the mark above, the axis, the mark below, and the powers of ten."""
        from rich.text import Text

        return [
            Text(self._mark("▼", self.upper_name, self.upper), style=f"bold {style}".strip()),
            Text(self._axis()),
            Text(self._mark("▲", self.lower_name, self.lower), style="bold"),
            Text(self._labels(), style="bright_black"),
        ]

    @property
    def first(self) -> int:
        """The power of ten at the left end."""
        return _floor(min(self.upper.log10(), self.lower.log10()))

    @property
    def step(self) -> int:
        """Decades between two ticks."""
        decades = -_floor(-max(self.upper.log10(), self.lower.log10())) - self.first
        return max(1, -(-decades // (_WIDTH // _TICK_ROOM)))

    @property
    def ticks(self) -> list[int]:
        """The powers of ten that are marked."""
        end = max(self.upper.log10(), self.lower.log10())
        count = max(1, -_floor((self.first - end) / self.step))
        return [self.first + i * self.step for i in range(count + 1)]

    def column(self, exponent: Decimal | int) -> int:
        """Return where a power of ten stands."""
        whole = self.ticks[-1] - self.first
        return round((Decimal(exponent) - self.first) / whole * (_WIDTH - 1))

    def _axis(self) -> str:
        marks = {self.column(tick) for tick in self.ticks}
        line = ["┼" if at in marks else "─" for at in range(_WIDTH)]
        line[0], line[-1] = "├", "┤"
        return "".join(line)

    def _mark(self, mark: str, name: str, value: Decimal) -> str:
        at = self.column(value.log10())
        label = f"{name} {value:.4g}"
        if at + 2 + len(label) <= _WIDTH + _TICK_ROOM:
            return f"{' ' * at}{mark} {label}"
        return f"{label} {mark}".rjust(at + 1)

    def _labels(self) -> str:
        line = ""
        for tick in self.ticks:
            label = f"1e{tick}"
            line = line.ljust(max(0, self.column(tick) - len(label) // 2))
            line += label
        return line


def _floor(value: Decimal) -> int:
    return int(value.to_integral_value(rounding="ROUND_FLOOR"))

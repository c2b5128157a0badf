"""What a variable of a claim ranges over: an interval, of reals or of integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from dpassay.accountant.errors import InvalidInputError

Scalar: TypeAlias = int | str
INFINITE = ("inf", "-inf")
"""Ends that say in so many words that there is none."""


class Range(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
            omit_defaults=True):  # fmt: skip
    """An interval, its ends expressions in the variables before it; an absent end is infinite.

    One of the ends, or `integer`, makes the range formal; `above = "-inf"` says "all reals". A
    range with none of them is only words, over which nothing can be proved.
    """

    statement: str = ""
    """The range in words or symbols, as the claim has it: "M > 2 integer"."""
    low: str | None = None
    """The least value."""
    above: str | None = None
    """An open lower end."""
    high: str | None = None
    """The largest value."""
    below: str | None = None
    """An open upper end."""
    integer: bool = False

    def __post_init__(self) -> None:
        for closed, open_end in (("low", "above"), ("high", "below")):
            if getattr(self, closed) is not None and getattr(self, open_end) is not None:
                raise InvalidInputError(f"Expected one of {closed} and {open_end}, not both.")

    @property
    def is_formal(self) -> bool:
        """Whether the range is given by more than words."""
        return self.integer or any(True for _ in self._given())

    def ends(self) -> Iterator[tuple[str, str]]:
        """Yield the finite ends, each with the relation of a value to it."""
        return ((relation, end) for relation, end in self._given() if end not in INFINITE)

    @property
    def upper(self) -> str | None:
        """The upper end, None where it is infinite."""
        return next((end for relation, end in self.ends() if relation in ("<=", "<")), None)

    def words(self, name: str) -> str:
        """Say the range of a variable: "x in [0, 1)", "d ≥ 2 (integer)"."""
        kind = " (integer)" if self.integer else ""
        if not self.is_formal:
            return f"{name} (“{self.statement}”, in words only)"
        given = dict(self.ends())
        lower = next((r for r in (">=", ">") if r in given), None)
        upper = next((r for r in ("<=", "<") if r in given), None)
        if lower and upper:
            brackets = ("[" if lower == ">=" else "(", "]" if upper == "<=" else ")")
            return f"{name} in {brackets[0]}{given[lower]}, {given[upper]}{brackets[1]}{kind}"
        if lower or upper:
            (relation,) = given
            sign = {">=": "≥", "<=": "≤"}.get(relation, relation)
            return f"{name} {sign} {given[relation]}{kind}"
        return f"integer {name}" if self.integer else f"real {name}"

    def _given(self) -> Iterator[tuple[str, str]]:
        ends = ((">=", self.low), (">", self.above), ("<=", self.high), ("<", self.below))
        return ((relation, end) for relation, end in ends if end is not None)


class Domain(Range, frozen=True, kw_only=True):
    """What a universally quantified variable ranges over, and where it is looked at.

    A claim over a domain is refuted by one counterexample from the grid, and supported, never
    proved, by the grid alone: over the whole domain it needs a proof (`Claim.proof`).
    """

    grid: list[Scalar]
    """Values that are decided one by one."""

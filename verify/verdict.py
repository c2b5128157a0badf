"""Verdicts, rigour levels, and the finding that carries them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from decimal import ROUND_CEILING, Context, Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.errors import NeitherTrueNorFalse, no_attribute, one_line
from dpassay.accountant.numbers.exact import floats_in_short
from dpassay.accountant.numbers.interval import Interval

_SYMBOLS = {"epsilon": "ε", "delta": "δ", "mu": "μ", "rho": "ρ"}
_INSTEAD = {
    "certificate": "Write finding, certificate = dpassay.certify(…).",
    "to_html": "The command writes a page: dpassay verify … --html verdict.html.",
}
"""What to write for an attribute that one may expect."""
_DIGITS = 5
"""Digits of a printed bound, rounded up."""
_OF_EXCESS = 2
"""Digits of the difference from the claimed number."""


class Verdict(StrEnum):
    """What was decided about a claim."""

    HOLDS = "HOLDS"
    """Proved by the program, over everything that the formal claim ranges over."""
    ARGUED = "ARGUED"
    """The grid and the lemmas were proved; the step from them to the claim is a person's text."""
    SUPPORTED = "SUPPORTED"
    """Every case of a stated grid was proved; the claim ranges over more than the grid."""
    REFUTED = "REFUTED"
    """A counterexample was proved, or another limit, or a rival that does better."""
    SLIP = "SLIP"
    """Refuted as printed, a misprint or arithmetic; the corrected statement was proved."""
    UNDECIDED = "UNDECIDED"
    """Neither side was proved within the precision and time allowed."""
    PENDING = "PENDING"
    """Not a question about one release; the reason says what it needs."""

    @property
    def is_false(self) -> bool:
        """Whether the statement is false as it stands."""
        return self in (Verdict.REFUTED, Verdict.SLIP)


class Rigour(StrEnum):
    """How the numbers behind a verdict were obtained."""

    PROVED = "PROVED"
    """Ball arithmetic or exact rationals."""
    BOUNDED = "BOUNDED"
    """Floating point with a proved bound of all rounding errors."""
    TESTED = "TESTED"
    """Statistical, at a stated confidence."""
    ARGUED = "ARGUED"
    """A person's text; the lemmas that it names were proved."""
    NONE = "NONE"
    """No number supports it (pending claims)."""


STRICTER = ("/wording", "/finite", "/cited")
"""How the id of a claim ends that takes a statement at its word, or an asymptotic one at finite
arguments, where its authors mean less, or that is another paper's. It is never counted with the
refuted statements."""


class Finding(msgspec.Struct, NeitherTrueNorFalse, Drawable, frozen=True, kw_only=True):
    """One claim, decided. Enclosures are {"lower": "…", "upper": "…"} decimal strings."""

    compare: ClassVar[str] = ".verdict: HOLDS, ARGUED and SUPPORTED are different (or ask .holds)"
    id: str
    source: str
    formal: str = ""
    """What was decided, made from the claim's data: quantifiers, assumptions, comparison."""
    statement: str
    """What the author of the claim says, in words; the verdict is about `formal`."""
    note: str = ""
    """Where these words say more than was decided."""
    verdict: Verdict
    kind: str
    true: dict[str, Any]
    """What is true: enclosures by name (delta at the claimed epsilon, and so on)."""
    claimed: dict[str, str]
    margin: dict[str, Any]
    """`factor` = true/claimed and `difference` = true − claimed, where they make sense."""
    rigour: Rigour
    witness: dict[str, Any]
    """What can be checked by hand: the case, the pair and the event, or the two sides."""
    reason: str
    expected: str = ""
    """The verdict that the file expects, where it says so."""
    adjacency: str | None = None
    route: str = ""
    cause: str = ""
    """The likely cause of an error, where one is known."""
    error: str = ""
    """The error that makes the statement false, shared by all that it makes false."""
    correction: str = ""
    """The corrected statement, and the id of the claim that proves it."""
    cases: int = 1
    """How many cases were decided."""
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the program proved it, over everything that it ranges over."""
        return self.verdict is Verdict.HOLDS

    @property
    def refuted(self) -> bool:
        """Whether the statement is false as it stands."""
        return self.verdict.is_false

    @property
    def is_stricter(self) -> bool:
        """Whether the claim says more than its authors mean, or cites others."""
        return self.id.endswith(STRICTER)

    def __repr__(self) -> str:
        """Return the verdict, the claim and what is true, in short; `print` shows the reason."""
        true = ", ".join(f"true {name} {_short(value)}" for name, value in self.true.items())
        claimed = ", ".join(
            f"{name}={floats_in_short(value):.20}" for name, value in self.claimed.items()
        )
        parts = [
            f"{self.verdict.value} {one_line(self.id)}",
            f"claimed {claimed}" * bool(claimed),
            true,
        ]
        return f"<Finding: {'; '.join(part for part in parts if part)}>"

    def __str__(self) -> str:
        """Return the verdict, the claim and the reason; how to check a refutation."""
        text = f"{self.verdict.value}: {one_line(floats_in_short(self.formal))}\n"
        text += one_line(self.reason)
        if self.verdict is not Verdict.REFUTED:
            return text
        from dpassay.verifier.refutation import evidence, needed_noise

        noise, least = needed_noise(self), floats_in_short(self.true_from)
        remedy = "; ".join(part for part in (noise, least) if part)
        if remedy:
            text += f"\nIt {'' if noise else 'is '}{remedy}."
        shown = evidence(self)
        return f"{text}\n{shown}" if shown else text

    if not TYPE_CHECKING:  # which knows all names

        def __getattr__(self, name: str) -> Any:
            """Say where a certificate or a page comes from."""
            raise no_attribute(self, name, _INSTEAD.get(name, ""))

    @property
    def true_from(self) -> str:
        """Say from which ε, δ, μ or ρ on the claim is true; empty where that is not known."""
        claimed = [name for name in _SYMBOLS if name in self.claimed]
        found = []
        for name in claimed:
            least = _rounded_up(self.true.get(name), self.claimed[name])
            if least is None or not least.is_finite():
                continue
            others = [f"{_SYMBOLS[o]} = {_few(self.claimed[o])}" for o in claimed if o != name]
            at = f" ({', '.join(others)})" if others else ""
            found.append(f"{_SYMBOLS[name]} ≥ {least:{'f' if _is_plain(least) else 'g'}}{at}")
        return f"true at {' or '.join(found)}" if found else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return self.to_json()

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def _repr_html_(self) -> str:
        """Return the verdict as a badge, and what supports it, for notebooks."""
        from dpassay.accountant.core.asking import badge, escape, rows

        entries = [
            ("verdict", badge(self.verdict.value)),
            ("claim", escape(floats_in_short(self.formal))),
            ("in words", escape(f"“{self.statement}”" if self.statement else "")),
            ("note", escape(self.note)),
            ("reason", escape(self.reason)),
            *((f"claimed {name}", escape(value)) for name, value in self.claimed.items()),
            *((f"true {name}", _ends(value)) for name, value in self.true.items()),
            ("event", escape(str(self.witness.get("description", "")))),
            ("rigour", escape(self.rigour.value)),
        ]
        return rows(entries)

    def html_cells(self) -> dict[str, str]:
        """Return the verdict, the claim and what is true, as HTML: a row of `dpassay.Results`."""
        from dpassay.accountant.core.asking import badge, escape

        true = ", ".join(f"{name} {_short(value)}" for name, value in self.true.items())
        claim = escape(floats_in_short(self.formal))
        return {"verdict": badge(self.verdict.value), "claim": claim, "true": escape(true)}


def distinct_errors(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return the refuted statements by the error that makes them false.

    A statement that names no error counts as one by itself. Slips and stricter readings do not
    count.
    """
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.verdict is Verdict.REFUTED and not finding.is_stricter:
            found.setdefault(finding.error or finding.id, []).append(finding)
    return found


def _short(value: Any) -> str:
    """Return the digits that both ends share."""
    return str(Interval.of_json(value) if isinstance(value, dict) else value)


def _ends(value: Any) -> str:
    from dpassay.accountant.core.asking import escape

    return escape("[{lower}, {upper}]".format_map(value) if isinstance(value, dict) else str(value))


def _rounded_up(value: Any, claimed: str) -> Decimal | None:
    """Round a true number up, to the digits that tell it from the claimed one."""
    if not isinstance(value, dict):
        return None
    upper, digits = Decimal(value["upper"]), _DIGITS
    with suppress(ArithmeticError):  # a claimed root or ratio
        excess = upper - Decimal(claimed)
        digits = max(digits, upper.adjusted() - excess.adjusted() + _OF_EXCESS)
    return Context(prec=digits, rounding=ROUND_CEILING).create_decimal(upper)


def _is_plain(value: Decimal) -> bool:
    """Whether a number is readable without an exponent."""
    return -4 <= value.adjusted() < 6


def _few(text: str) -> str:
    """Shorten a long decimal: it is quoted, not claimed anew."""
    try:
        value = Decimal(text).normalize(Context(prec=_DIGITS))
    except ArithmeticError:
        return text
    if len(text) <= 2 * _DIGITS:
        return text
    return f"{value:f}" if _is_plain(value) else f"{value:e}"

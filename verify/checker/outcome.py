"""What the checker says: outcomes, theorems of checked fields alone, and foreign texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, final

from dpassay.verifier.kernel.theorem import LONGEST_FORMULA, Theorem, quoted, safe

__all__ = ["Checked", "Outcome", "Theorem", "formula", "quoted", "safe", "theorem"]


@final
class Outcome(StrEnum):
    """What a check ends with, the worst last."""

    VALID = "VALID"
    """All that the theorem rests on was recomputed."""
    CONDITIONAL = "CONDITIONAL"
    """What was recomputed is right; what the theorem rests on besides is listed."""
    NOT_CHECKED = "NOT CHECKED"
    """It would take more time, memory or text than it may, or another version wrote it."""
    INVALID = "INVALID"
    """Something is wrong."""

    @staticmethod
    def worst(outcomes: Iterable[Outcome]) -> Outcome:
        """Return the worst outcome; VALID for none."""
        return max(outcomes, key=[*Outcome].index, default=Outcome.VALID)


@final
@dataclass(frozen=True, repr=False)
class Checked:
    """What the checker found about one certificate."""

    id: str
    """The name that its author gave it: foreign text."""
    verdict: str
    problems: list[tuple[str, str]]
    """The field that is wrong, as a path such as `facts[0].p.lower`, and what is wrong."""
    taken_as_given: list[str]
    """What the checker could not recompute and took from the certificate."""
    seconds: float
    recomputed: list[str] = field(default_factory=list)
    """To how many digits the numbers of a product of laws were enclosed again."""
    theorem: Theorem | None = None
    """What was checked; None where nothing was."""
    not_checked: str = ""
    """Why the check was given up; empty where it was not."""

    @property
    def outcome(self) -> Outcome:
        """The outcome in one word."""
        if self.problems:
            return Outcome.INVALID
        if self.not_checked:
            return Outcome.NOT_CHECKED
        return Outcome.CONDITIONAL if self.taken_as_given else Outcome.VALID

    def __str__(self) -> str:
        """Return the outcome with the theorem, or with what is wrong."""
        wrong = "; ".join(f"{field}: {message}" for field, message in self.problems)
        said = self.theorem or safe(self.not_checked or wrong)
        given = "".join(f"\n  rests on: {safe(text)}" for text in self.taken_as_given)
        return f"{self.outcome.value}  {said}{given}"

    __repr__ = __str__

    def __bool__(self) -> bool:
        """Raise TypeError: `assert check(…)` must not pass for what is INVALID."""
        raise TypeError(
            "Checked is neither true nor false: compare .outcome: VALID, CONDITIONAL, NOT CHECKED "
            "and INVALID are different (or ask .valid)."
        )

    @property
    def valid(self) -> bool:
        """Whether all that the theorem rests on was recomputed, and nothing is wrong."""
        return self.outcome is Outcome.VALID


def formula(text: object) -> str:
    """Return a checked expression on one line."""
    return safe(" ".join(str(text).split()), LONGEST_FORMULA)


_MOST_VALUES = 12
"""Values of a parameter that are listed."""

_CLAIMED = {
    "approximate-dp": "({epsilon}, {delta})-DP",
    "pure-dp": "({epsilon}, 0)-DP",
    "gaussian-dp": "{mu}-GDP",
    "renyi-dp": "of Renyi divergence at most {epsilon} at order {order}",
    "zcdp": "{rho}-zCDP",
    "profile": "(epsilon, {bound})-DP for every epsilon in [{low}, {high}]",
    "tradeoff": "of trade-off function at least {bound} for every alpha in [{low}, {high}]",
    "relation": "{claim}",
    "printed-number": "{expression} rounds to {printed}",
    "monotone": "{expression} is {direction} in {variable}",
    "limit": "{expression} tends to {limit}",
    "minimiser": "{expression} is least at {variable} = {claimed}",
}


def theorem(claim: Mapping[str, Any], verdict: str, case: Mapping[str, str], cases: int) -> Theorem:
    """Say what was decided of a claim; `cases` is how many of them were listed.

    A refutation names the case `case`; a grid is said to be no more than that.
    """
    grid = {name: domain["grid"] for name, domain in claim.get("for_all", {}).items()}
    listed = {**claim.get("where", {}), **grid}
    shown = verdict
    if verdict == "REFUTED" and case:
        shown += " at " + ", ".join(f"{formula(k)} = {formula(v)}" for k, v in case.items())
    other = claim.get("proof", {}).get("limit")
    if verdict == "REFUTED" and claim["kind"] == "limit" and other:
        shown += f": it tends to {formula(other)}"
    if verdict == "SUPPORTED":
        points = [("the points", claim["variable"], claim["at"])] if claim.get("at") else []
        places = [*points, *(("the cases", name, values) for name, values in grid.items())]
        where = "; ".join(f"{what} {_listed(name, values)}" for what, name, values in places)
        many = f"{cases} listed cases" if cases > 1 else "one listed case"
        shown += f" in the {many}" + (f" ({where})" if where else "")
        shown += "; nothing is proved beyond"
    return Theorem(
        mechanism=formula(claim.get("mechanism", "")),
        adjacency=str(claim.get("adjacency") or ""),
        claimed=_claimed(claim) + _scope(claim, listed),
        verdict=shown,
    )


def _claimed(claim: Mapping[str, Any]) -> str:
    kind = claim["kind"]
    if kind == "optimality":
        value, slack = formula(claim["value"]), formula(claim.get("tolerance", "0"))
        below = value if slack == "0" else f"({value})/(1 + {slack})"
        if claim.get("among"):
            return f"{_family(claim['among'])} below {below}"
        if claim.get("competitor"):
            return f"no rival is below {below}, not {formula(claim['competitor'])}"
        return f"{value} <= ({formula(claim['lower_bound'])})*(1 + {slack})"
    words = {name: formula(text) for name, text in claim.items() if isinstance(text, str)}
    words |= {name: _bracketed(words[name]) for name in ("mu", "rho") if name in words}
    text = _CLAIMED[kind].format_map(words)
    if kind in ("monotone", "minimiser", "limit"):
        rate = claim.get("rate")
        off = f", and is off by at most {formula(rate)} on the way" if rate else ""
        return text + _ranging(claim) + off
    return text


def _bracketed(text: str) -> str:
    """Return a number as it stands before a hyphen: in brackets if it is longer than a word."""
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def _family(among: Mapping[str, Any]) -> str:
    """Say who the rivals are, and what they have."""
    if among["type"] == "IntegerNoise":
        ratio, eta, support = (formula(among[key]) for key in ("E", "eta", "support"))
        return (
            f"no integer noise on -({support}), ..., {support} with P(0) = {eta} has a delta at "
            f"exp(epsilon) = {ratio}"
        )
    space = among["space"]
    entries = {key: value for key, value in space.items() if key != "type"}
    bounds = entries.pop("bounds", None)
    inner = [f"{key}={formula(value)}" for key, value in entries.items()]
    inner += [] if bounds is None else [f"bounds=[{', '.join(map(formula, bounds))}]"]
    return (
        f"no Gaussian noise that is {_bracketed(formula(among['mu']))}-GDP over "
        f"{formula(space['type'])}({', '.join(inner)}) has a {among['objective']} variance"
    )


def _ranging(claim: Mapping[str, Any]) -> str:
    """Say what the claim's own variable ranges over."""
    name, over = claim["variable"], claim.get("over")
    if claim["kind"] == "limit":
        high = (over or {}).get("high") or (over or {}).get("below") or "infinity"
        return f" as {formula(name)} tends to {formula(high)}"
    if over is None:
        return f" among {_listed(name, claim['at'])}"
    return f" over {_domain(name, over)}"


def _scope(claim: Mapping[str, Any], listed: Mapping[str, Sequence[Any]]) -> str:
    """Say what the claim ranges over."""
    domains = claim.get("for_all", {})
    parts = [f"for every {_domain(name, domain)}" for name, domain in domains.items()]
    parts += [
        f"in the cases {_listed(name, values)}"
        for name, values in listed.items()
        if name not in domains
    ]
    parts += [f"if {formula(text)}" for text in claim.get("assume", [])]
    parts += [f"where {formula(k)} = {formula(v)}" for k, v in claim.get("let", {}).items()]
    return "".join(f", {part}" for part in parts)


def _domain(name: str, domain: Mapping[str, Any]) -> str:
    ends = {end: domain.get(end) for end in ("low", "above", "high", "below")}
    signs = {"low": ">=", "above": ">", "high": "<=", "below": "<"}
    texts = [f"{signs[end]} {formula(text)}" for end, text in ends.items() if text is not None]
    whole = " (integer)" if domain.get("integer") else ""
    if not texts and not whole:
        return f"{formula(name)} in a domain that is given in words: " + quoted(
            domain.get("statement", "")
        )
    return f"{formula(name)} {' and '.join(texts)}{whole}"


def _listed(name: str, values: Sequence[Any]) -> str:
    shown = [formula(value) for value in values[:_MOST_VALUES]]
    if len(values) == 1:
        return f"{formula(name)} = {shown[0]}"
    more = f", ... ({len(values)} values)" if len(values) > _MOST_VALUES else ""
    return f"{formula(name)} in {{{', '.join(shown)}{more}}}"

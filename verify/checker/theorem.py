"""The theorem that a certificate of a claim proves, made of the claim's checked fields alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verify.checker.outcome import Theorem
from verify.checker.printing import formula, quoted

_MOST_VALUES = 12

_CLAIMED = {
    "approximate-dp": "({epsilon}, {delta})-DP",
    "pure-dp": "({epsilon}, 0)-DP",
    "gaussian-dp": "({mu})-GDP",
    "renyi-dp": "of Renyi divergence at most {epsilon} at order {order}",
    "zcdp": "({rho})-zCDP",
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
    text = _CLAIMED[kind].format_map(words)
    if kind in ("monotone", "minimiser", "limit"):
        return text + _ranging(claim)
    return text


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
        f"no Gaussian noise that is ({formula(among['mu'])})-GDP over "
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

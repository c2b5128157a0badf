"""An entry of OpenDP's registry of deployments (YAML), as the data of a claim file.

An entry says what was deployed in words and a few numbers. What follows from the numbers is made a
claim; what is lacking becomes a pending claim with the question to ask. The claims come in the
order of NIST SP 800-226: unit, parameters, mechanism, composition, side channels. Free text is read
for three things only: sums that it writes out, parts of a budget that it labels (ε = 0.1), and the
scale of a noise with its sensitivity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, final

from dpassay.accountant.errors import InvalidInputError, NotApplicableError, suggestion

Claims: TypeAlias = Iterator[dict[str, Any]]
"""Claims as the tables of a claim file."""

_MOST_CHARACTERS = 100_000
"""Of an entry: YAML is read slowly. The longest entry of the registry has 16,000."""
_MOST_NUMBERS = 50
"""Sums, or parts of a budget, that are read in one entry."""
_MOST_QUOTED = 160
"""Characters that a claim quotes of a text of the entry."""
_DEPLOYED = "deployment"
_LOSS = f"{_DEPLOYED}.privacy_loss"
_DETAILS = f"{_LOSS}.privacy_parameters_details"
_PARAMETERS = f"{_LOSS}.privacy_parameters"
_VARIANTS = {
    "Pure DP": ("epsilon",),
    "Approximate DP": ("epsilon", "delta"),
    "Zero-concentrated DP": ("rho",),
    "Renyi DP": (),
    "Custom": (),
}
"""The numbers that a guarantee of each variant consists of."""
_KINDS = {("epsilon",): "pure-dp", ("epsilon", "delta"): "approximate-dp", ("rho",): "zcdp"}
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
_NUMBER = r"\d{1,20}(?:\.\d{1,40})?(?:[eE][-+]?\d{1,3})?"
_SUM = re.compile(
    rf"(?:^|[A-Za-z:] )(?P<terms>{_NUMBER}(?: ?[-+*×·x] ?{_NUMBER}){{1,20}}) ?= ?"
    rf"(?P<total>{_NUMBER})(?! ?[-+*×·x/^\w(]|\.\d)"
)
"""A sum or product written out, "0.11 * 2 + 0.22 = 0.44", after a word or at a beginning."""
_ADDRESS = r"https?://[^\s()<>,]{1,300}(?:\([^\s()]{1,99}\))?"
"""An address; Markdown may put it in brackets, and it may end with brackets of its own."""
_NOISES = {
    "Laplace": ("l1_sensitivity", "scale", "scale"),
    "Gaussian": ("l2_sensitivity", "standard_deviation", r"standard deviation|\\?sigma|σ"),
}
"""Noise of which a text may say all: its sensitivity, and the argument and words of its scale."""
_PERIOD = re.compile(r"\b(hour|quarter-day|day|week|month|quarter|year|event|trip|query)\b", re.I)
_NEIGHBOURS = re.compile(r"\b(add|remov|delet|symmetric dist|modif|replac|substitut|chang)", re.I)
_SAYS_NOTHING = re.compile(r"\bno (information|details)|not (specifically )?mention", re.I)


def claim_file(text: str, origin: str = "entry") -> dict[str, Any]:
    """Return an entry as the data of a claim file, which is still to be checked as one.

    Numbers are kept as written, and so are exact. Raises InvalidInputError for what is no entry,
    with the path of what is wrong.
    """
    entry = _Entry(_read_yaml(text, origin), origin)
    name = entry.text(f"{_DEPLOYED}.basic.name")
    if not name:
        raise entry.wrong(f"{_DEPLOYED}.basic.name", "a text, the name of what was deployed")
    sources = re.findall(_ADDRESS, entry.text(f"{_DEPLOYED}.administrative.sources"))
    parts = (_unit, _parameters, _mechanism, _composition, _side_channels)
    claims = [claim for part in parts for claim in part(entry)]
    return {
        "schema_version": 1,
        "name": entry.text("url_slug"),
        "title": name,
        "claims": [{"source": [*sources, name[:_MOST_QUOTED]][0], **claim} for claim in claims],
    }


@final
class _Entry:
    """The data of an entry, asked for by path."""

    def __init__(self, data: object, origin: str) -> None:
        self.data, self.origin = data, origin
        path = f"{_DEPLOYED}.dp_variant.variant_name"
        self.variant = self.text(path)
        if self.variant and self.variant not in _VARIANTS:
            raise self.wrong(path, f"a variant. {suggestion(self.variant, _VARIANTS)}")
        self.numbers: dict[str, str] = {}
        self.formula = ""
        """δ where it is no number but a formula, which the schema allows."""
        self._read_numbers()

    def _read_numbers(self) -> None:
        given = self._at(_PARAMETERS) or {}
        if not isinstance(given, Mapping):
            raise self.wrong(_PARAMETERS, "a table")
        for name in given:
            path = f"{_PARAMETERS}.{name:.40}"
            if name not in _SYMBOLS:
                raise self.wrong(path, f"another name. {suggestion(name, _SYMBOLS)}")
            text = re.sub(r"^(?=\.\d)", "0", self.text(path))
            ends = "in [0, 1)" if name == "delta" else "≥ 0"
            if re.fullmatch(_NUMBER, text) and (name != "delta" or Decimal(text) < 1):
                self.numbers[name] = text
            elif name == "delta" and re.search("[a-z]", text):
                self.formula = text
            elif text:
                raise self.wrong(path, f"a number {ends}, not {text[:40]!r}")

    def wrong(self, path: str, what: str) -> InvalidInputError:
        """Build the error that something at a path is not what it should be."""
        return InvalidInputError(f"{self.origin}: {path}: expected {what.rstrip('.')}.")

    def _at(self, path: str) -> object:
        """Return what stands at a path; "" where it is left out, empty or null."""
        found, above = self.data, "the file"
        for key in path.split("."):
            if not isinstance(found, Mapping):
                raise self.wrong(above, "a table")
            found, above = found.get(key, ""), key
            if found in ("", "null", "~"):
                return ""
        return found

    def text(self, path: str) -> str:
        """Return a text on one line."""
        return " ".join(self.lines(path))

    def lines(self, *paths: str) -> list[str]:
        r"""Return the lines of texts, without the marks \( \) and $ around formulas."""
        found = []
        for path in paths:
            text = self._at(path)
            if not isinstance(text, str):
                raise self.wrong(path, "a text")
            found += re.sub(r"\\+[()]|\$", " ", text).splitlines()
        return [" ".join(line.split()) for line in found if line.strip()]

    @property
    def said(self) -> str:
        """The variant with its numbers."""
        numbers = ", ".join(f"{_SYMBOLS[name]} = {value}" for name, value in self.numbers.items())
        return ": ".join(part for part in (self.variant, numbers) if part)


def _read_yaml(text: str, origin: str) -> object:
    """Return YAML as texts, lists and tables; tags mean nothing, and aliases are refused."""
    if len(text) > _MOST_CHARACTERS:
        raise InvalidInputError(f"Expected {origin} to be at most {_MOST_CHARACTERS} characters.")
    try:
        import yaml
    except ImportError:
        raise NotApplicableError(
            "Entries of the registry need the library PyYAML: pip install 'dpassay[registry]'."
        ) from None
    try:
        return _plain(yaml.compose(text, Loader=yaml.BaseLoader), origin, set())
    except RecursionError:
        raise InvalidInputError(f"{origin}: tables are nested too deeply.") from None
    except yaml.YAMLError as error:
        mark, problem = (getattr(error, name, None) for name in ("problem_mark", "problem"))
        line = f", line {mark.line + 1}" if mark else ""
        what = problem or "an unreadable character"
        raise InvalidInputError(f"{origin} is not a YAML file{line}: {what}.") from None


def _plain(node: Any, path: str, seen: set[int]) -> object:
    """Return what a node of YAML has; each node is visited once, so that no alias multiplies."""
    if node is None:
        return ""
    if id(node) in seen:
        raise InvalidInputError(f"{path}: an alias (*name). Write the text in both places.")
    seen.add(id(node))
    if node.id == "scalar":
        return node.value
    if node.id == "sequence":
        return [_plain(each, path, seen) for each in node.value]
    found: dict[str, object] = {}
    for key, value in node.value:
        if key.id != "scalar" or key.value in found:
            what = "is no text" if key.id != "scalar" else f"is given twice: {key.value[:40]!r}"
            raise InvalidInputError(f"{path}: a key {what}.")
        found[key.value] = _plain(value, f"{path}: {key.value[:40]}", seen)
    return found


def _ask(name: str, statement: str, question: str) -> dict[str, Any]:
    """Return the pending claim that asks what the entry does not say."""
    quoted = statement if len(statement) <= _MOST_QUOTED else statement[: _MOST_QUOTED - 1] + "…"
    about = {"id": name, "statement": quoted or "The entry does not say."}
    return {"kind": "pending", **about, "needs": "answer", "reason": question}


def _unit(entry: _Entry) -> Claims:
    """Ask whom the guarantee is about, for how long, and which datasets are neighbours."""
    unit, details = (entry.text(f"{_LOSS}.privacy_unit{end}") for end in ("", "_details"))
    if not unit:
        yield _ask("unit", "", "What is protected: a person, a device, a day of a person?")
    elif period := _PERIOD.search(unit):
        question = f"How often may one person be a unit? The unit is one {period[1].lower()}."
        if entry.variant == "Pure DP" and "epsilon" in entry.numbers:
            thirty = f"{(30 * Decimal(entry.numbers['epsilon'])).normalize():f}"
            question += f" For thirty of them together, {thirty}-DP is all that follows."
        yield _ask("unit/over-time", unit, question)
    if not _NEIGHBOURS.search(details):
        yield _ask(
            "unit/neighbours",
            details,
            "Is one unit added or removed, or replaced by another? A replacement is a removal and "
            "an addition, and may cost twice as much.",
        )


def _parameters(entry: _Entry) -> Claims:
    """Compare the numbers with the variant, and with one another."""
    epsilon, delta, rho = (entry.numbers.get(name) for name in _SYMBOLS)
    needed = _VARIANTS.get(entry.variant, ())
    lacking = " and ".join(_SYMBOLS[name] for name in needed if name not in entry.numbers)
    if not needed:
        which = {"Renyi DP": "orders and divergences", "Custom": "definition"}
        question = f"Which {which.get(entry.variant, 'variant, and which numbers')}?"
        yield _ask("parameters", entry.said, question)
    elif lacking and entry.formula:
        yield _ask("parameters", f"δ = {entry.formula}", "Which number is δ in the deployment?")
    elif lacking:
        yield _ask("parameters", entry.said, f"Which {lacking}?")
    elif entry.variant == "Pure DP" and delta is not None and Decimal(delta):
        yield {
            "kind": "pure-dp",
            "id": "parameters",
            "statement": entry.said,
            "mechanism": f"Guaranteed(epsilon={epsilon}, delta={delta})",
            "epsilon": epsilon,
            "cause": "Both may be right of different things: the variant of one report or one "
            "step, δ of the whole release.",
            "correction": f"As approximate DP, ({epsilon}, {delta})-DP contradicts nothing.",
        }
    if rho is not None and epsilon is not None:
        yield _conversion(entry.said, rho, epsilon, delta)


def _conversion(statement: str, rho: str, epsilon: str, delta: str | None) -> dict[str, Any]:
    """Claim that ρ-zCDP implies (ε, δ)-DP if it does, by the order a = (ε + ρ)/(2ρ) > 1.

    Rényi divergences of at most aρ give δ = e^{(a−1)(aρ−ε)} (1 − 1/a)^{a−1}/a (Canonne, Kamath
    and Steinke 2020, Proposition 12). Where that is not enough, nothing is refuted: the noise may
    have both.
    """
    r, e, d = float(rho), float(epsilon), float(delta or 0)
    if 0 < r < e and d > 0:
        a = (e + r) / (2 * r)
        if (a - 1) * (a * r - e + math.log1p(-1 / a)) - math.log(a) < math.log(d) - 1e-9:
            bound = "exp((a - 1)*(a*rho - epsilon + log(1 - 1/a)))/a"
            return {
                "kind": "relation",
                "id": "parameters/conversion",
                "statement": f"{statement}: ρ implies ε and δ.",
                "claim": f"{bound} <= {delta}",
                "let": {"rho": rho, "epsilon": epsilon, "a": "(epsilon + rho)/(2*rho)"},
            }
    question = (
        "Were ε and δ counted separately? From ρ alone they do not follow by the usual formula."
    )
    if delta is None:
        question = "At which δ does ρ give this ε?"
    return _ask("parameters/conversion", statement, question)


def _mechanism(entry: _Entry) -> Claims:
    """Claim the guarantee of the noise that is written out, or ask for the noise."""
    path = f"{_DEPLOYED}.implementation.mechanisms"
    text = " ".join(entry.lines(path, _DETAILS))
    needed = _VARIANTS.get(entry.variant, ())
    change = _only("sensitivity", text)
    named = [each for each in _NOISES if each.lower() in text.lower()]
    if len(named) == 1 and needed and {*needed} <= entry.numbers.keys():
        noise = named[0]
        sensitivity, argument, words = _NOISES[noise]
        scale = _only(words, text)
        if scale and change and "discrete" not in text.lower():
            yield {
                "kind": _KINDS[needed],
                "id": "mechanism",
                "statement": f"{entry.said}, by {noise} noise of {argument} {scale}.",
                "mechanism": f"{noise}({argument}={scale}, {sensitivity}={change})",
                **{name: entry.numbers[name] for name in needed},
                "cause": "The scale may be of one of several queries, or in other units.",
            }
            return
    question = "Which noise, of which scale, for which sensitivity? The guarantee is only stated."
    yield _ask("mechanism", entry.text(path), question)


def _only(words: str, text: str) -> str:
    """Return the number that stands after these words, "" where there is none, or several."""
    pattern = rf"\b(?:{words}) ?(?:=|of|is)? ?({_NUMBER})(?![\w^])"
    found = {each[1] for each in re.finditer(pattern, text, re.I)}
    return found.pop() if len(found) == 1 else ""


def _composition(entry: _Entry) -> Claims:
    """Check the sums of budgets, and ask how releases add up."""
    path = f"{_DEPLOYED}.accounting.composition"
    found = [each for line in entry.lines(_DETAILS, path) for each in _SUM.finditer(line)]
    sums = dict.fromkeys((each["terms"], each["total"]) for each in found)
    if len(sums) > _MOST_NUMBERS:
        raise entry.wrong(path, f"at most {_MOST_NUMBERS} sums")
    for index, (terms, total) in enumerate(sums, 1):
        yield {
            "kind": "printed-number",
            "id": f"composition/sum-{index}",
            "statement": f"{terms} = {total}",
            "expression": re.sub("[×·x]", "*", terms),
            "printed": total,
            "cause": "A number may be misprinted, or a part of the sum left out.",
        }
    yield from _parts(entry)
    composition = entry.text(path)
    if not composition or _SAYS_NOTHING.search(composition):
        many = entry.text(f"{_DEPLOYED}.deployment_model.release_type") == "Many releases"
        over = " Over how many releases is one unit protected?" * many
        question = f"Which queries are made, and how do their losses add up?{over}"
        yield _ask("composition", composition, question)


def _parts(entry: _Entry) -> Claims:
    """Compare the sum of the parts that the details of the parameters label with the total."""
    for name in (each for each in ("epsilon", "rho") if each in entry.numbers):
        label = rf"(?:\\?{name}|{_SYMBOLS[name]})[\w{{}}'′]{{0,20}} ?= ?({_NUMBER})"
        text, total = "\n".join(entry.lines(_DETAILS)), Fraction(entry.numbers[name])
        parts = [part for part in re.findall(label, text) if Fraction(part) != total]
        if len(parts) > _MOST_NUMBERS:
            raise entry.wrong(_DETAILS, f"at most {_MOST_NUMBERS} parts")
        if len(parts) > 1 and sum(map(Fraction, parts)) == total:
            yield {
                "kind": "relation",
                "id": f"composition/{name}",
                "statement": f"{entry.said} is the sum of its parts.",
                "claim": f"{' + '.join(parts)} == {entry.numbers[name]}",
            }
        elif len(parts) > 1:
            listed, added = ", ".join(parts), sum(map(Decimal, parts))
            question = f"Are {listed} the parts of the total? They add up to {added}."
            yield _ask(f"composition/{name}", entry.said, question)


def _side_channels(entry: _Entry) -> Claims:
    """Ask what lies outside the guarantee."""
    outside = entry.text(f"{_DEPLOYED}.dp_variant.unprotected_quantities")
    yield _ask(
        "side-channels",
        outside and f"Unprotected: {outside}",
        "Is the noise drawn exactly, or in floating point? What else is released, or can be timed?",
    )

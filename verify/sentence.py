"""Guarantees as people write them: "(1, 1e-5)-DP", "(ε, δ) = (1, 1e-5)", "ρ-zCDP with ρ=0.1"."""

from __future__ import annotations

import re
from typing import Any

from dpassay.accountant.errors import InvalidInputError

_WORDS = {"DP": ("epsilon", "delta"), "GDP": ("mu",), "zCDP": ("rho",), "RDP": ("order", "renyi")}
"""What the numbers before a kind of privacy are."""
_KINDS = {kind.casefold(): kind for kind in _WORDS}
_LABELS = {"ε": "epsilon", "eps": "epsilon", "δ": "delta", "ρ": "rho", "α": "alpha"}
_LABELS |= dict.fromkeys("μµ", "mu")
_NAMES = {name: name for names in _WORDS.values() for name in names}
_OF_RENYI = {**_NAMES, "alpha": "order", "epsilon": "renyi"}
"""What the names of numbers mean here, and before RDP."""
_SENTENCE = re.compile(
    r"(?P<mechanism>.+?)\s(?:is|satisfies|has|provides)\s(?P<guarantee>.+)", re.DOTALL
)
_VERB = re.compile(r"\b(?:is|are|satisfies|has|provides)\s")
_NEIGHBOURS = re.compile(
    r",?\s+(?:under|for neighbou?rs by)\s+(?P<relation>\w+(?:[-_/ ]+\w+)??)"
    r"(?:\s+(?:adjacency|neighbou?rs|neighbou?ring|DP))?$"
)
_KIND = re.compile(
    r"(?P<numbers>.*?)(?:^|-|\s+)"
    r"(?:(?P<kind>(?i:DP|GDP|zCDP|RDP))|differential(?:ly)?[ -]priva(?:te|cy))"
    r"(?:,?\s+(?:with|for|where)\s+(?P<rest>.+=.+))?",
    re.DOTALL,
)
_WORD = re.compile(r"[^\W\d]\s")
"""What is no number, such as "not "."""
_LOGARITHM = re.compile(r"\b(?:ln|log) (?=[0-9(])")
_FORMS = (
    'Write "Gaussian(3) is (1, 1e-5)-DP", "… is 0.1-zCDP", "… is 0.5-GDP" or "… is (10, 0.6)-RDP" '
    '(order, divergence), and nothing after it but ", for neighbours by add-remove" (or "under '
    'replace-one").'
)
_ELSEWHERE = {
    "LDP": " Local privacy is written -DP: any two inputs of a local mechanism are neighbours.",
    "are": ' Several releases are one mechanism: "Composed(Gaussian(3), 10) is …".',
}
"""Where what has no sentence is said."""


def read_sentence(text: str) -> tuple[str, dict[str, str]]:
    """Return the mechanism and the words of a claim; text that is no sentence has no words.

    >>> read_sentence("Gaussian(3) is (1, 1e-5)-DP")
    ('Gaussian(3)', {'epsilon': '1', 'delta': '1e-5'})
    >>> read_sentence("Laplace(2) satisfies 0.5-DP under add/remove")
    ('Laplace(2)', {'epsilon': '0.5', 'adjacency': 'add-remove'})
    """
    verb, found = _VERB.search(text), _SENTENCE.fullmatch(text.strip())
    if verb is None:
        if re.search(r"[\s-]\w*DP[.?]?$", text.strip()):
            raise InvalidInputError(f"Expected a mechanism, 'is' and a guarantee. {_FORMS}")
        return text, {}
    words = None if found is None else read_guarantee(found["guarantee"])
    if found is None or words is None:
        said, last = verb[0].strip(), text.rpartition("-")[2].rstrip(" .")
        raise InvalidInputError(
            f"Expected one guarantee after {said!r}, not {text[verb.end() :]!r}. "
            f"{_FORMS}{_ELSEWHERE.get(said, '')}{_ELSEWHERE.get(last, '')}"
        )
    return found["mechanism"].rstrip(), words


def read_guarantee(text: str) -> dict[str, str] | None:
    """Return the words of a guarantee, None for what is none.

    >>> read_guarantee("(10, 0.6)-RDP"), read_guarantee("(ε, δ) = (1, 1e-5)")
    ({'order': '10', 'renyi': '0.6'}, {'epsilon': '1', 'delta': '1e-5'})
    >>> read_guarantee("rho-zCDP with rho=0.1"), read_guarantee("(ε=1, δ=1e-5)-DP")
    ({'rho': '0.1'}, {'epsilon': '1', 'delta': '1e-5'})
    >>> read_guarantee("0.1-zcdp")
    {'rho': '0.1'}
    """
    text, near = re.sub(r"\bln(?= ?\()", "log", " ".join(text.split())).rstrip(".? "), {}
    if relation := _NEIGHBOURS.search(text):
        text = text[: relation.start()]
        near = {"adjacency": re.sub(r"[-_/ ]+", "-", relation["relation"])}
    named: set[str] = set()
    kind, numbers = "", text
    if found := _KIND.fullmatch(text):
        kind = _KINDS[(found["kind"] or "DP").casefold()]
        numbers = found["rest"] or found["numbers"]
        named = {*_labels(found["numbers"], kind)} if found["rest"] and found["numbers"] else named
    names, _, values = numbers.rpartition("=")
    if "=" not in names and names and len(_parts(values)) > 1:  # (ε, δ) = (1, 1e-5)
        labels, said = _labels(names, kind), _parts(values)
    elif names:  # ε=1, δ=1e-5
        split = [part.rpartition("=") for part in _parts(numbers)]
        labels = _labels(",".join(name for name, _, _ in split), kind)
        said = [value.strip() for _, _, value in split]
    elif kind and not _WORD.search(_LOGARITHM.sub("", numbers)):
        said = _parts(numbers)
        labels = list(_WORDS[kind][: len(said)])
        if "" in said:
            raise InvalidInputError(
                f"Expected numbers before -{kind}: a claim says how private. {_FORMS}"
            )
        if len(said) != len(labels) or (kind == "RDP" and len(said) == 1):
            raise InvalidInputError(
                f"Expected one number before -{kind} (or (ε, δ) before -DP, (order, divergence) "
                f"before -RDP), not {numbers!r}. Write a claim such as "
                '"Gaussian(3) is (1, 1e-5)-DP".'
            )
    else:
        return None
    known = _WORDS[kind] if kind else _OF_RENYI
    if len(said) != len(labels) or not set(labels) <= {*known} or len({*labels}) < len(labels):
        return None
    if named and named != {*labels}:
        return None
    return {**dict(zip(labels, said, strict=True)), **near}


def _parts(text: str) -> list[str]:
    """Return what stands between commas, without brackets around all of it."""
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return [part.strip() for part in re.split(r",|\band\b", text)]


def _labels(text: str, kind: str) -> list[str]:
    """Return the words that labels stand for, empty ones for what is no label."""
    names = [_LABELS.get(name, name) for name in _parts(text.lower())]
    known = _OF_RENYI if kind == "RDP" else _NAMES
    return [known.get(name, "") for name in names]


def said_once(said: dict[str, str], given: dict[str, Any]) -> dict[str, Any]:
    """Return the words of a sentence and those given as arguments.

    Raises InvalidInputError if one is in both.
    """
    for name in said:
        if given.get(name) is not None:
            raise InvalidInputError(f"The claim states its own {name}; leave {name} out.")
    return {**given, **said}

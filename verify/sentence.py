"""Guarantees as people write them: "(1, 1e-5)-DP", "(ε, δ) = (1, 1e-5)", "ρ-zCDP with ρ=0.1".

The same in arguments, epsilon=1, delta="1e-5", which every function takes that has a claim.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypedDict, TypeVar

from dpassay.accountant.ask import read_mechanism
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError, forgiving
from dpassay.accountant.numbers.exact import Number

Answer = TypeVar("Answer")
Parameters = ParamSpec("Parameters")

_WORDS = {"DP": ("epsilon", "delta"), "GDP": ("mu",), "zCDP": ("rho",), "RDP": ("order", "renyi")}
"""What the numbers before a kind of privacy are."""
_KINDS = {kind.casefold(): kind for kind in _WORDS}
_LABELS = {"ε": "epsilon", "eps": "epsilon", "δ": "delta", "ρ": "rho", "α": "alpha"}
_LABELS |= dict.fromkeys("μµ", "mu")
_NAMES = {name: name for names in _WORDS.values() for name in names}
_OF_RENYI = {**_NAMES, "alpha": "order", "epsilon": "renyi"}
"""What the names of numbers mean here, and before RDP."""
_NOTATION = re.compile(r"\s*[A-Z]\w*\(")
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


ONE_CLAIM = (
    "Name one claim: epsilon=1, delta=1e-5 (or epsilon=1 alone), mu=1, rho=0.5, or in words "
    '"(10, 0.6)-RDP".'
)
"""What to write for a claim."""


class Words(TypedDict, total=False):
    """A guarantee in words, and the neighbours that it is for.

    (ε, δ)-DP, ε-DP where δ is left out; μ-GDP; ρ-zCDP; or a Rényi divergence of an order.
    """

    epsilon: Number | None
    delta: Number | None
    mu: Number | None
    rho: Number | None
    order: Number | None
    renyi: Number | None
    adjacency: Adjacency | str | None


def in_words(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Return a function of `**words`, whose signature has each of the `Words`."""
    only = inspect.Parameter.KEYWORD_ONLY
    own = [*inspect.signature(function).parameters.values()][:-1]
    words = [
        inspect.Parameter(name, only, default=None, annotation=kind.__forward_arg__)
        for name, kind in Words.__annotations__.items()
    ]
    first, last = ([one for one in own if (one.kind is only) == late] for late in (False, True))
    signature = inspect.Signature([*first, *words, *last])
    function.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect` reads
    return forgiving(function)


def is_notation(text: str) -> bool:
    """Whether a text is written as a mechanism of this package."""
    return _NOTATION.match(text) is not None


def read_claim(text: str) -> Any:
    """Read `1`, `1,1e-5`, `(1, 1e-5)-DP`, `epsilon=1,delta=1e-5`, `mu=0.5` or a mechanism.

    >>> read_claim("1,1e-5"), read_claim("0.5-GDP")
    ({'epsilon': '1', 'delta': '1e-5'}, {'mu': '0.5'})
    """
    if is_notation(text):
        return read_mechanism(text)
    bare = re.fullmatch(r"[^,=]+(,[^,=]+)?", text)
    found = read_guarantee(text) or (bare and read_guarantee(f"{text}-DP"))
    if not found:
        raise InvalidInputError(
            f"Expected a claim such as 1, 1,1e-5, mu=0.5 or a mechanism, not {text!r}."
        )
    return found


def split_neighbours(claim: Any, adjacency: Any) -> tuple[Any, Any]:
    """Return a claim without its neighbours, and its neighbours or those named separately."""
    if not isinstance(claim, Mapping) or "adjacency" not in claim:
        return claim, adjacency
    words = said_once(dict(claim), {"adjacency": adjacency})
    relation = Adjacency.read(words.pop("adjacency"))
    return words, None if relation is None else relation.value


def one_claim(claim: Any, words: dict[str, Any]) -> tuple[Any, Any]:
    """Return the one claim of an audit and its neighbours; None for a claim that nobody names.

    δ alone claims nothing: it says where ε is bounded.
    """
    given = {key: value for key, value in words.items() if value is not None}
    adjacency = given.pop("adjacency", None)
    if set(given) == {"delta"}:
        given = {}
    incomplete = {"delta": "epsilon", "order": "renyi", "renyi": "order"}
    if len(given.keys() - {"delta", "renyi"}) > 1 or any(
        name in given and other not in given for name, other in incomplete.items()
    ):
        raise InvalidInputError(f"Expected one claim. {ONE_CLAIM}")
    if given and claim is not None:
        raise InvalidInputError(
            f"Expected one claim: leave claim={claim!r} or {next(iter(given))} out."
        )
    if isinstance(claim, str):
        claim = read_claim(claim)
    return split_neighbours(given or claim, adjacency)


def bounded(words: Words) -> tuple[Number, Number]:
    """Return (0, δ)-DP, in place of a claim: at that δ an estimate bounds ε best."""
    return 0, words.get("delta") or 0

"""`verify`, `certify`, `check` and `calibrate` in the words of the command line.

>>> from dpassay.verifier.ask import verify
>>> verify("Gaussian(1)", epsilon=1, delta="1e-5").verdict.value
'REFUTED'

A guarantee is a sentence as people write it, "(1, 1e-5)-DP", "(ε, δ) = (1, 1e-5)" or "ρ-zCDP with
ρ=0.1", or arguments, epsilon=1, delta="1e-5", which every function takes that has a claim.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.asking import Results
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, expected, forgiving, suggestion
from dpassay.accountant.notation import read_mechanism
from dpassay.accountant.numbers.exact import Number, exact, in_short
from dpassay.verifier.claims import Claim
from dpassay.verifier.decide import decide
from dpassay.verifier.document import Document
from dpassay.verifier.verdict import Finding

if TYPE_CHECKING:
    from dpassay.accountant.budget.calibrate import Calibration
    from dpassay.accountant.budget.target import Target
    from dpassay.verifier.kernel import Checked


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
    """Return the mechanism and the claim of a sentence; other text has no claim.

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
    """Return the parts of a guarantee, None for any other text.

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
    """Return the words that labels represent, empty ones for what is no label."""
    names = [_LABELS.get(name, name) for name in _parts(text.lower())]
    known = _OF_RENYI if kind == "RDP" else _NAMES
    return [known.get(name, "") for name in names]


def merged(said: dict[str, str], given: dict[str, Any]) -> dict[str, Any]:
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
    words = merged(dict(claim), {"adjacency": adjacency})
    relation = Adjacency.read(words.pop("adjacency"))
    return words, None if relation is None else relation.value


def one_claim(claim: Any, words: dict[str, Any]) -> tuple[Any, Any]:
    """Return the one claim of an audit and its neighbours; None if no claim is named.

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


def claims_about(mechanism: Mechanism, *, source: str = "", **words: Unpack[Words]) -> list[Claim]:
    """Return the claims that a mechanism has the guarantees that are named."""
    from dpassay.verifier.claims import guarantee

    epsilon, delta = words.get("epsilon"), words.get("delta")
    order, renyi = words.get("order"), words.get("renyi")
    if delta is not None and epsilon is None:
        raise InvalidInputError("delta needs epsilon: the claim is (epsilon, delta)-DP.")
    if (order is None) != (renyi is None):
        raise InvalidInputError("order needs renyi, its divergence: (order, renyi)-RDP.")
    if epsilon is not None and exact(delta or 0, "delta").rational == 1:
        turned = f" Epsilon comes first: (1, {in_short(epsilon)})-DP is a claim."
        small = 0 < exact(epsilon, "epsilon").ball() < 1
        remedy = "Everything is (epsilon, 1)-DP." + turned * small
        raise expected("delta", delta, "< 1", remedy)
    relation = Adjacency.read(words.get("adjacency"))
    near = None if relation is None else relation.value
    said: dict[str, Any] = {**words}
    given = [
        {name: said[name] for name in names if said.get(name) is not None}
        for names in (("epsilon", "delta"), ("mu",), ("rho",), ("order", "renyi"))
    ]
    return [
        guarantee(each, mechanism=str(mechanism), adjacency=near, source=source)
        for each in given
        if each
    ]


def _claim(about: Claim | Mechanism | str, words: dict[str, Any]) -> Claim:
    """Return the one claim that is meant."""
    if isinstance(about, Claim):
        given = [name for name, value in words.items() if value is not None]
        if given:
            raise InvalidInputError(f"A claim states its own {given[0]}; leave {given[0]} out.")
        return about
    if isinstance(about, Path) or (isinstance(about, str) and about.endswith((".toml", ".yaml"))):
        raise InvalidInputError(
            "Expected a claim or a mechanism, not a file. Read it first: "
            "dpassay.verify(dpassay.read_file(path))."
        )
    if isinstance(about, str):
        about, said = read_sentence(about)
        words = merged(said, words)
    claims = claims_about(read_mechanism(about), source="Python", **words)
    if len(claims) != 1:
        raise InvalidInputError(f"Expected one claim about the mechanism. {ONE_CLAIM}")
    return claims[0]


@overload
def verify(
    claim: Claim | Mechanism | str, *, lemmas: Iterable[Claim] = (), **words: Unpack[Words]
) -> Finding: ...


@overload
def verify(claim: Document | list[Any] | tuple[Any, ...]) -> Results[Finding]: ...


@in_words
def verify(
    claim: Claim | Mechanism | str | Document | list[Any] | tuple[Any, ...],
    *,
    lemmas: Iterable[Claim] = (),
    **words: Unpack[Words],
) -> Finding | Results[Finding]:
    """Decide a claim about a mechanism, or all claims of a file.

    Parameters
    ----------
    claim
        A claim, as an object or as text such as "Gaussian(3) is (1, 1e-5)-DP"; or a mechanism, with
        the claimed guarantee in the next arguments. Of a claim file that was read, or a list of
        claims, all are decided, and the answer is a list of findings.
    epsilon, delta
        Claim (ε, δ)-DP; ε-DP if δ is left out.
    mu, rho; order, renyi
        Claim μ-GDP or ρ-zCDP; or that the Rényi divergence of this order is at most `renyi`.
    adjacency
        The neighbouring relation, required where the guarantee depends on it.
    lemmas
        Further claims of the same file, which the proof may use.

    Raises
    ------
    InvalidInputError
        If there is not exactly one claim, or it cannot be evaluated.

    Examples
    --------
    >>> verify("Gaussian(standard_deviation=4)", epsilon=1, delta="1e-5").verdict.value
    'HOLDS'
    >>> verify("Laplace(scale=2) is 0.4-DP").verdict.value
    'REFUTED'
    """
    if not isinstance(claim, (Document, list, tuple)):
        return decide(_claim(claim, {**words}), lemmas).finding
    if any(value is not None for value in words.values()):
        raise InvalidInputError(
            "Several claims state their own numbers; leave the other arguments out."
        )
    listed = claim.claims if isinstance(claim, Document) else claim
    from dpassay.verifier.proof import conclude

    claims = [_claim(each, {}) for each in listed]
    return Results(conclude(claims, [decide(each, claims).finding for each in claims]))


@in_words
def certify(
    claim: Claim | Mechanism | str, lemmas: Sequence[Claim] = (), **words: Unpack[Words]
) -> tuple[Finding, dict[str, Any] | None]:
    """Decide as `verify` does; return the finding and its certificate (None if undecided)."""
    from dpassay.verifier.prover import decided

    return decided(_claim(claim, {**words}), lemmas)


def check(certificate: Mapping[str, Any]) -> Checked:
    """Check a certificate again, with a kernel that shares no code with what wrote it.

    The answer has an `outcome` (VALID, CONDITIONAL, INVALID), the `theorem` that was proved in the
    kernel's words, what it rests on (`assumptions`, `lemmas`) and what is wrong (`problems`). One
    certificate may take 48 s of processor time; for limits of memory too, which a stranger's file
    needs, take `dpassay check`.

    >>> finding, certificate = certify("Laplace(2)", epsilon="0.5")
    >>> print(check(certificate))
    VALID  HOLDS: Laplace(scale=2) is (0.5, 0)-DP
    """
    from dpassay.verifier import kernel

    if not isinstance(certificate, Mapping):
        raise InvalidInputError(
            f"Expected a certificate, not {type(certificate).__name__}. It is the second value of "
            "certify. For a file: dpassay check."
        )
    try:
        plain = json.loads(json.dumps(dict(certificate)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"Expected a certificate as JSON has it: {error}.") from None
    return kernel.check(plain)


@forgiving
def calibrate(
    name: str | type[Mechanism],
    target: Target | None = None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mu: Number | None = None,
    rho: Number | None = None,
    adjacency: Adjacency | str | None = None,
    **options: Any,
) -> Calibration:
    """Find the least noise with which a mechanism has a guarantee.

    Parameters
    ----------
    name
        The mechanism, by its name in the notation or its class.
    target
        A guarantee as an object (`EpsilonDelta`, `Mu`, `Rho`); or name it:
    epsilon, delta, mu, rho
        (ε, δ)-DP, ε-DP where δ is left out; μ-GDP; ρ-zCDP.
    adjacency
        The neighbouring relation, required where the guarantee depends on it.
    options
        `digits`, `count`, `sampling_prob`, `schedule`, and the other arguments of the mechanism:
        see `dpassay.accountant.budget.calibrate.calibrate`. With a `target`, `epsilon`, `delta`,
        `mu` and `rho` are arguments of the mechanism too.

    Examples
    --------
    >>> calibrate("Laplace", epsilon="0.1").mechanism
    Laplace(scale=10)
    """
    from dpassay.accountant.budget.calibrate import calibrate as least_noise
    from dpassay.accountant.budget.target import Target, read_target

    words = {"epsilon": epsilon, "delta": delta, "mu": mu, "rho": rho}
    if target is None:
        for word in options:
            if epsilon is mu is rho is None and (near := suggestion(word, words, listed=False)):
                raise InvalidInputError(f"calibrate() has no argument {word!r}. {near}")
        target = read_target(words)
    else:
        options.update((key, value) for key, value in words.items() if value is not None)
    if not isinstance(target, Target):
        raise expected("target", target, "to be a target", "Or name it: epsilon=1, delta=1e-5.")
    return least_noise(name, target, adjacency=adjacency, **options)

"""`verify`, `certify`, `calibrate`, `compare` and audits in the words of the command line.

>>> from verify.ask import verify
>>> verify("Gaussian(1)", epsilon=1, delta="1e-5").verdict.value
'REFUTED'
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accountant.ask import read_mechanism
from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.errors import InvalidInputError, forgiving, suggestion
from accountant.numbers.exact import Number, exact
from verify.claim import Claim

if TYPE_CHECKING:
    from accountant.budget.calibrate import Calibration
    from accountant.budget.target import Target
    from accountant.geometry.workload import Workload
    from verify.checker import Checked
    from verify.compare import Budget, Comparison
    from verify.verdict import Finding

_ONE_CLAIM = "Name one claim: epsilon=1, delta=1e-5 (or epsilon=1 alone), mu=1 or rho=0.5."
_ONE_TARGET = "Name one target: epsilon=1, delta=1e-5 (or epsilon=1 alone), mu=1 or rho=0.5."


_SENTENCE = re.compile(
    r"(?P<mechanism>.+?)\s+(?:is|satisfies)\s+(?P<numbers>.+?)(?:-|\s+)(?P<kind>DP|GDP|zCDP|RDP)"
    r"(?:,?\s+(?:under|for neighbours by) (?P<adjacency>[\w-]+))?\.?",
    re.DOTALL,
)
_VERB = re.compile(r"\b(?:is|are|satisfies)\s")
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
_WORDS = {"DP": ("epsilon", "delta"), "GDP": ("mu",), "zCDP": ("rho",), "RDP": ("order", "renyi")}
"""What the numbers before a kind of privacy are."""


def read_sentence(text: str) -> tuple[str, dict[str, str]]:
    """Return the mechanism and the words of a claim that is written as verdicts print it.

    Text that is no such sentence is a mechanism without words.

    >>> read_sentence("Gaussian(3) is (1, 1e-5)-DP")
    ('Gaussian(3)', {'epsilon': '1', 'delta': '1e-5'})
    >>> read_sentence("Gaussian(3) is (1, 1e-5) DP")
    ('Gaussian(3)', {'epsilon': '1', 'delta': '1e-5'})
    >>> read_sentence("Gaussian(3) is (10, 0.6)-RDP")
    ('Gaussian(3)', {'order': '10', 'renyi': '0.6'})
    >>> read_sentence("Laplace(2) is 0.5-DP, for neighbours by add-remove")
    ('Laplace(2)', {'epsilon': '0.5', 'adjacency': 'add-remove'})
    """
    found = _SENTENCE.fullmatch(text.strip())
    if found is None:
        if verb := _VERB.search(text):
            raise InvalidInputError(
                f"Expected one guarantee after {verb[0].strip()!r}, not {text[verb.end() :]!r}. "
                f"{_FORMS}{_ELSEWHERE.get(verb[0].strip(), '')}"
                f"{_ELSEWHERE.get(text.rpartition('-')[2].rstrip(' .'), '')}"
            )
        return text, {}
    numbers, kind = found["numbers"].strip(), found["kind"]
    bracketed = numbers.startswith("(") and numbers.endswith(")")
    parts = [part.strip() for part in (numbers[1:-1] if bracketed else numbers).split(",")]
    words = dict(zip(_WORDS[kind], parts, strict=False))
    if len(parts) > len(_WORDS[kind]) or (kind == "RDP" and len(parts) == 1):
        raise InvalidInputError(
            f"Expected one number before -{kind} (or (ε, δ) before -DP, (order, divergence) before "
            f'-RDP), not {numbers!r}. Write a claim such as "Gaussian(3) is (1, 1e-5)-DP".'
        )
    if found["adjacency"]:
        words["adjacency"] = found["adjacency"]
    return found["mechanism"], words


def claims_about(
    mechanism: Mechanism,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mu: Number | None = None,
    rho: Number | None = None,
    order: Number | None = None,
    renyi: Number | None = None,
    adjacency: Adjacency | str | None = None,
    source: str = "",
) -> list[Claim]:
    """Return the claims that a mechanism has the guarantees that are named.

    (ε, δ)-DP, μ-GDP, ρ-zCDP, or a Rényi divergence of an order.
    """
    from verify import claims

    relation = Adjacency.read(adjacency)
    shared: dict[str, Any] = {
        "mechanism": repr(mechanism),
        "adjacency": None if relation is None else relation.value,
        "source": source,
    }
    found: list[Claim] = []
    if delta is not None and epsilon is None:
        raise InvalidInputError("delta needs epsilon: the claim is (epsilon, delta)-DP.")
    if epsilon is not None:
        eps, most = str(exact(epsilon, "epsilon")), exact(delta or 0, "delta")
        if most.sign == 0:
            found.append(
                claims.PureDP(id="pure-dp", statement=f"It is {eps}-DP.", epsilon=eps, **shared)
            )
        else:
            shared_claim = {"epsilon": eps, "delta": str(most), **shared}
            said = f"It is ({eps}, {most})-DP."
            found.append(claims.ApproximateDP(id="approximate-dp", statement=said, **shared_claim))
    if mu is not None:
        least = str(exact(mu, "mu"))
        said = f"It is {least}-GDP."
        found.append(claims.GaussianDP(id="gaussian-dp", statement=said, mu=least, **shared))
    if rho is not None:
        least = str(exact(rho, "rho"))
        said = f"It is {least}-zCDP."
        found.append(claims.ZeroConcentratedDP(id="zcdp", statement=said, rho=least, **shared))
    if order is not None and renyi is not None:
        at, least = str(exact(order, "order")), str(exact(renyi, "renyi"))
        said = f"It is ({at}, {least})-RDP."
        found.append(
            claims.RenyiDP(id="renyi-dp", statement=said, order=at, epsilon=least, **shared)
        )
    return found


def _claim(about: Claim | Mechanism | str, words: dict[str, Any]) -> Claim:
    """Return the one claim that is meant."""
    if isinstance(about, Claim):
        given = [name for name, value in words.items() if value is not None]
        if given:
            raise InvalidInputError(f"A claim states its own {given[0]}; leave {given[0]} out.")
        return about
    if isinstance(about, Path) or (isinstance(about, str) and about.endswith(".toml")):
        raise InvalidInputError(
            "Expected a claim or a mechanism, not a file. Read it first: "
            "[dpassay.verify(claim) for claim in dpassay.read_file(path).claims]."
        )
    if isinstance(about, str):
        about, said = read_sentence(about)
        words = said_once(said, words)
    claims = claims_about(read_mechanism(about), **words)
    if len(claims) != 1:
        raise InvalidInputError(f"Expected one claim about the mechanism. {_ONE_CLAIM}")
    return claims[0]


def said_once(said: dict[str, str], given: dict[str, Any]) -> dict[str, Any]:
    """Return the words of a sentence and those beside it; InvalidInputError if one is in both."""
    for name in said:
        if given.get(name) is not None:
            raise InvalidInputError(f"The claim states its own {name}; leave {name} out.")
    return {**given, **said}


@forgiving
def verify(
    claim: Claim | Mechanism | str,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mu: Number | None = None,
    rho: Number | None = None,
    adjacency: Adjacency | str | None = None,
    lemmas: Iterable[Claim] = (),
) -> Finding:
    """Decide a claim, or what `epsilon` and `delta`, `mu` or `rho` claim about a mechanism.

    Parameters
    ----------
    claim
        A claim, as an object or as text such as "Gaussian(3) is (1, 1e-5)-DP"; or a mechanism that
        the following words are about.
    epsilon, delta
        The claim that it is (ε, δ)-DP; ε-DP where δ is left out.
    mu, rho
        The claim that it is μ-GDP, or ρ-zCDP.
    adjacency
        The neighbouring relation, required where the guarantee depends on it.
    lemmas
        The claims that the proof of a claim may name: those of the same file.

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
    from verify.exact import verify as decide

    words = {"epsilon": epsilon, "delta": delta, "mu": mu, "rho": rho, "adjacency": adjacency}
    return decide(_claim(claim, words), lemmas=lemmas)


@forgiving
def certify(
    claim: Claim | Mechanism | str,
    lemmas: Sequence[Claim] = (),
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mu: Number | None = None,
    rho: Number | None = None,
    adjacency: Adjacency | str | None = None,
) -> tuple[Finding, dict[str, Any] | None]:
    """Decide as `verify` does; return the finding and its certificate (None if undecided)."""
    from verify.certificate import certify as decide

    words = {"epsilon": epsilon, "delta": delta, "mu": mu, "rho": rho, "adjacency": adjacency}
    return decide(_claim(claim, words), lemmas)


def check(certificate: Mapping[str, Any]) -> Checked:
    """Check a certificate again, by a second program with code of its own for every number.

    The answer has an `outcome` (VALID, CONDITIONAL, INVALID), the `theorem` that was checked in
    the checker's words, what it rests on (`taken_as_given`) and what is wrong (`problems`). Time
    and memory are not limited, as they are by `dpassay check`: take that for a stranger's file.

    >>> finding, certificate = certify("Laplace(2)", epsilon="0.5")
    >>> print(check(certificate))
    VALID  HOLDS: Laplace(scale=2) is (0.5, 0)-DP
    """
    from verify import checker

    if not isinstance(certificate, Mapping):
        raise InvalidInputError(
            f"Expected a certificate, not {type(certificate).__name__}. For a file: dpassay check."
        )
    try:
        plain = json.loads(json.dumps(dict(certificate)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"Expected a certificate as JSON has it: {error}.") from None
    return checker.check(plain)


def _target(
    target: Target | None,
    epsilon: Number | None,
    delta: Number | None,
    mu: Number | None,
    rho: Number | None,
) -> Target:
    """Return the one guarantee that the words name."""
    from accountant.budget.target import EpsilonDelta, Mu, Rho, Target

    if target is not None and not isinstance(target, Target):
        raise InvalidInputError(
            f"Expected a target, not {type(target).__name__} {target!r}. {_ONE_TARGET}"
        )
    found: list[Target] = [] if target is None else [target]
    if epsilon is not None:
        found.append(EpsilonDelta(epsilon, 0 if delta is None else delta))
    if mu is not None:
        found.append(Mu(mu))
    if rho is not None:
        found.append(Rho(rho))
    if len(found) != 1 or (delta is not None and epsilon is None):
        raise InvalidInputError(f"Expected one target. {_ONE_TARGET}")
    return found[0]


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
        A guarantee as an object (`EpsilonDelta`, `Mu`, `Rho`, `ProfileBelow`); or name it:
    epsilon, delta, mu, rho
        (ε, δ)-DP, ε-DP where δ is left out; μ-GDP; ρ-zCDP.
    adjacency
        The neighbouring relation, required where the guarantee depends on it.
    options
        `digits`, `count`, `sampling_prob`, `schedule`, and the other arguments of the mechanism:
        see `accountant.budget.calibrate.calibrate`. With a `target`, `epsilon`, `delta`, `mu` and
        `rho` are arguments of the mechanism too.

    Examples
    --------
    >>> calibrate("Laplace", epsilon="0.1").mechanism
    Laplace(scale=10)
    """
    from accountant.budget.calibrate import calibrate as least_noise

    words = {"epsilon": epsilon, "delta": delta, "mu": mu, "rho": rho}
    if target is None:
        found = _target(None, **words)
    else:
        found = _target(target, None, None, None, None)
        options.update((key, value) for key, value in words.items() if value is not None)
    return least_noise(name, found, adjacency=adjacency, **options)


@forgiving
def compare(
    budget: Budget | Target | Workload | str | None = None,
    workload: Workload | str | None = None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mu: Number | None = None,
    rho: Number | None = None,
    adjacency: Adjacency | str | None = None,
    releases: int = 1,
    sampling_prob: Number = 1,
    schedule: Sequence[Number] = (),
    candidates: Sequence[object] = (),
    only: Sequence[str] = (),
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    simulated: bool = True,
    published: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Judge every candidate for a workload under a budget.

    Parameters
    ----------
    budget
        A `Budget` or a target; or leave it out, and name it by `epsilon` and `delta`, `mu` or
        `rho`, with `adjacency` (add-remove unless given), `releases`, `sampling_prob` and
        `schedule`.
    workload
        What is released, as an object or as text: `Count()`, "Counts(dimension=100, sparsity=5)".
        Where the budget is named by words it may come first.
    candidates, only, metrics, seed, simulated, published, progress
        As for `verify.compare.comparison.compare`; a candidate may be the text of a mechanism.
    """
    from accountant.geometry.workload import Workload
    from verify.compare import Budget
    from verify.compare.comparison import compare as judge
    from verify.compare.document import read_workload

    if workload is None and isinstance(budget, (str, Workload)):
        budget, workload = None, budget
    if workload is None:
        raise InvalidInputError(
            'Expected workload=… that says what is released, such as "Count()" or '
            '"Counts(dimension=1000, sparsity=10)".'
        )
    if not isinstance(budget, Budget):
        target = _target(
            budget,  # type: ignore[arg-type]  # anything else is refused there
            epsilon,
            delta,
            mu,
            rho,
        )
        budget = Budget(
            target,
            adjacency=adjacency or Adjacency.ADD_REMOVE,
            releases=releases,
            sampling_prob=sampling_prob,
            schedule=tuple(schedule),
        )
    elif any(value is not None for value in (epsilon, delta, mu, rho, adjacency)):
        raise InvalidInputError("A Budget states its own guarantee; leave the other words out.")
    asked = read_workload(workload) if isinstance(workload, str) else workload
    return judge(
        budget,
        asked,
        candidates=[
            read_mechanism(entry) if isinstance(entry, str) else entry for entry in candidates
        ],
        only=only,
        metrics=metrics,
        seed=seed,
        simulated=simulated,
        published=published,
        progress=progress,
    )


def _in_words(name: str) -> Callable[..., Any]:
    """Return an audit that takes its claim in words too, and a mechanism as text."""

    def asked(
        *given: Any,
        epsilon: Number | None = None,
        delta: Number | None = None,
        mu: Number | None = None,
        rho: Number | None = None,
        **options: Any,
    ) -> Any:
        import verify.audit
        from verify.audit.target import named

        claims: list[Any] = [] if epsilon is None else [(epsilon, 0 if delta is None else delta)]
        claims += [{key: value} for key, value in (("mu", mu), ("rho", rho)) if value is not None]
        if len(claims) > 1 or (delta is not None and epsilon is None):
            raise InvalidInputError(f"Expected one claim. {_ONE_CLAIM}")
        if claims:
            options["claim"] = claims[0]
        if given and isinstance(given[0], str):
            given = (named(given[0]), *given[1:])
        audited = getattr(verify.audit, name)
        signature = inspect.signature(audited)
        try:
            signature.bind(*given, **options)
        except TypeError as error:
            what = f"{name}(): {error}."
            if unknown := [word for word in options if word not in signature.parameters]:
                known = [*signature.parameters, "epsilon", "delta", "mu", "rho"]
                hint = suggestion(unknown[0], known)
                what = f"{name}() has no argument {unknown[0]!r}. {hint}"
            claim = "" if claims else f" {_ONE_CLAIM}"
            raise InvalidInputError(f"{what}{claim}") from None
        return audited(*given, **options)

    asked.__name__ = asked.__qualname__ = name
    asked.__doc__ = (
        f"Call `verify.audit.{name}`; its claim may be named by `epsilon` and `delta`, `mu` or "
        "`rho`, and a mechanism may be text."
    )
    return asked


audit = _in_words("audit")
audit_until_refuted = _in_words("audit_until_refuted")
audit_samples = _in_words("audit_samples")
assert_private = _in_words("assert_private")

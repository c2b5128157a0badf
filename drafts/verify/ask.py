"""`verify`, `certify`, `calibrate`, `compare` and audits in the words of the command line.

>>> from dpassay.verifier.ask import verify
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

from dpassay.accountant.ask import read_mechanism
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, expected, forgiving, suggestion
from dpassay.accountant.numbers.exact import Number, exact, in_short
from dpassay.verifier.claim import Claim
from dpassay.verifier.needed_noise import needed_noise
from dpassay.verifier.sentence import read_guarantee, read_sentence
from dpassay.verifier.verdict import Finding

if TYPE_CHECKING:
    from dpassay.accountant.budget.calibrate import Calibration
    from dpassay.accountant.budget.target import Target
    from dpassay.accountant.geometry.workload import Workload
    from dpassay.verifier.compare import Budget, Comparison
    from dpassay.verifier.kernel import Checked

Finding.adviser = staticmethod(needed_noise)  # which lies above the trusted kernel

_ONE_CLAIM = (
    "Name one claim: epsilon=1, delta=1e-5 (or epsilon=1 alone), mu=1, rho=0.5, or in words "
    '"(10, 0.6)-RDP".'
)


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
    from dpassay.verifier.claims.guarantee import guarantee

    if delta is not None and epsilon is None:
        raise InvalidInputError("delta needs epsilon: the claim is (epsilon, delta)-DP.")
    if (order is None) != (renyi is None):
        raise InvalidInputError("order needs renyi, its divergence: (order, renyi)-RDP.")
    if epsilon is not None and exact(delta or 0, "delta").rational == 1:
        turned = f" Epsilon comes first: (1, {in_short(epsilon)})-DP is a claim."
        small = 0 < exact(epsilon, "epsilon").ball() < 1
        remedy = "Everything is (epsilon, 1)-DP." + turned * small
        raise expected("delta", delta, "< 1", remedy)
    relation = Adjacency.read(adjacency)
    near = None if relation is None else relation.value
    together = ({"epsilon": epsilon, "delta": delta}, {"mu": mu}, {"rho": rho})
    words = [*together, {"order": order, "renyi": renyi}]
    given = [{name: value for name, value in each.items() if value is not None} for each in words]
    return [
        guarantee(each, mechanism=repr(mechanism), adjacency=near, source=source)
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
    if isinstance(about, Path) or (isinstance(about, str) and about.endswith(".toml")):
        raise InvalidInputError(
            "Expected a claim or a mechanism, not a file. Read it first: "
            "[dpassay.verify(claim) for claim in dpassay.read_file(path).claims]."
        )
    if isinstance(about, str):
        about, said = read_sentence(about)
        words = said_once(said, words)
    claims = claims_about(read_mechanism(about), source="Python", **words)
    if len(claims) != 1:
        raise InvalidInputError(f"Expected one claim about the mechanism. {_ONE_CLAIM}")
    return claims[0]


def said_once(said: dict[str, str], given: dict[str, Any]) -> dict[str, Any]:
    """Return the words of a sentence and those beside it; InvalidInputError if one is in both."""
    for name in said:
        if given.get(name) is not None:
            raise InvalidInputError(f"The claim states its own {name}; leave {name} out.")
    return {**given, **said}


def apart(claim: Any, adjacency: Any) -> tuple[Any, Any]:
    """Return a claim without its neighbours, and these, or else those that are named beside it."""
    if not isinstance(claim, Mapping) or "adjacency" not in claim:
        return claim, adjacency
    words = said_once(dict(claim), {"adjacency": adjacency})
    relation = Adjacency.read(words.pop("adjacency"))
    return words, None if relation is None else relation.value


@forgiving
def verify(
    claim: Claim | Mechanism | str,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mu: Number | None = None,
    rho: Number | None = None,
    order: Number | None = None,
    renyi: Number | None = None,
    adjacency: Adjacency | str | None = None,
    lemmas: Iterable[Claim] = (),
) -> Finding:
    """Decide a claim, or what the numbers claim about a mechanism.

    Parameters
    ----------
    claim
        A claim, as an object or as text such as "Gaussian(3) is (1, 1e-5)-DP"; or a mechanism that
        the following words are about.
    epsilon, delta
        The claim that it is (ε, δ)-DP; ε-DP where δ is left out.
    mu, rho; order, renyi
        The claim that it is μ-GDP, or ρ-zCDP; or that its Rényi divergence of an order is at most
        `renyi`.
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
    from dpassay.verifier.exact import verify as decide

    numbers = {"epsilon": epsilon, "delta": delta, "mu": mu, "rho": rho}
    words = {**numbers, "order": order, "renyi": renyi, "adjacency": adjacency}
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
    order: Number | None = None,
    renyi: Number | None = None,
    adjacency: Adjacency | str | None = None,
) -> tuple[Finding, dict[str, Any] | None]:
    """Decide as `verify` does; return the finding and its certificate (None if undecided)."""
    from dpassay.verifier.prover import decided

    numbers = {"epsilon": epsilon, "delta": delta, "mu": mu, "rho": rho}
    words = {**numbers, "order": order, "renyi": renyi, "adjacency": adjacency}
    return decided(_claim(claim, words), lemmas)


def check(certificate: Mapping[str, Any]) -> Checked:
    """Check a certificate again, with a kernel that shares no code with what wrote it.

    The answer has an `outcome` (VALID, CONDITIONAL, INVALID), the `theorem` that was proved in the
    kernel's words, what it rests on (`assumptions`, `lemmas`) and what is wrong (`problems`). One
    certificate may take so much time and no more; for limits of memory, which a stranger's file
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
        A guarantee as an object (`EpsilonDelta`, `Mu`, `Rho`, `ProfileBelow`); or name it:
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
        As for `dpassay.verifier.compare.comparison.compare`; a candidate may be the text of a
        mechanism.
    """
    from dpassay.accountant.budget.target import read_target
    from dpassay.accountant.geometry.workload import Workload
    from dpassay.verifier.compare import Budget
    from dpassay.verifier.compare.comparison import compare as judge
    from dpassay.verifier.compare.document import read_workload

    if workload is None and isinstance(budget, (str, Workload)):
        budget, workload = None, budget
    if workload is None:
        raise InvalidInputError(
            'Expected workload=… that says what is released, such as "Count()" or '
            '"Counts(dimension=1000, sparsity=10)".'
        )
    words = {"epsilon": epsilon, "delta": delta, "mu": mu, "rho": rho}
    if budget is not None and any(value is not None for value in words.values()):
        raise InvalidInputError("A budget states its own guarantee; leave the other words out.")
    if not isinstance(budget, Budget):
        budget = Budget(
            read_target(words) if budget is None else budget,  # type: ignore[arg-type]  # checked
            adjacency=adjacency or Adjacency.ADD_REMOVE,
            releases=releases,
            sampling_prob=sampling_prob,
            schedule=tuple(schedule),
        )
    elif adjacency is not None:
        raise InvalidInputError("A Budget states its own adjacency; leave adjacency out.")
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


def read_claim(text: str) -> Any:
    """Read `1`, `1,1e-5`, `(1, 1e-5)-DP`, `epsilon=1,delta=1e-5`, `mu=0.5` or a mechanism.

    >>> read_claim("1,1e-5"), read_claim("0.5-GDP")
    ({'epsilon': '1', 'delta': '1e-5'}, {'mu': '0.5'})
    """
    from dpassay.verifier.audit.runs.target import is_notation

    if is_notation(text):
        return read_mechanism(text)
    bare = re.fullmatch(r"[^,=]+(,[^,=]+)?", text)
    found = read_guarantee(text) or (bare and read_guarantee(f"{text}-DP"))
    if not found:
        raise InvalidInputError(
            f"Expected a claim such as 1, 1,1e-5, mu=0.5 or a mechanism, not {text!r}."
        )
    return found


_RUNS = {"pairs", "samples", "executor", "checkpoint", "device", "errors_are_outputs"}
"""Arguments of `audit` that ask for runs, also of a mechanism that is known exactly."""


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
        import dpassay.verifier.audit
        from dpassay.verifier.audit.runs.target import named

        words = {"epsilon": epsilon, "delta": delta, "mu": mu, "rho": rho}
        if given and isinstance(given[0], str):
            about, said = read_sentence(given[0])
            given, words = (named(about), *given[1:]), said_once(said, words)
        claim = {key: value for key, value in words.items() if value is not None}
        if len(claim.keys() - {"delta", "renyi", "adjacency"}) > 1 or (
            "delta" in claim and "epsilon" not in claim
        ):
            raise InvalidInputError(f"Expected one claim. {_ONE_CLAIM}")
        if claim:
            options["claim"] = claim
        audited = getattr(dpassay.verifier.audit, name)
        signature = inspect.signature(audited)
        if "pair" in options and "pairs" in signature.parameters:  # as --pair on the command line
            options["pairs"] = [*options.get("pairs", ()), options.pop("pair")]
        try:
            bound = signature.bind(*given, **options)
        except TypeError as error:
            what = f"{name}(): {error}."
            if unknown := [word for word in options if word not in signature.parameters]:
                hint = suggestion(unknown[0], [*signature.parameters, *words])
                what = f"{name}() has no argument {unknown[0]!r}. {hint}"
            raise InvalidInputError(f"{what}{'' if claim else f' {_ONE_CLAIM}'}") from None
        found = bound.arguments["claim"]
        found = read_claim(found) if isinstance(found, str) else found
        if "adjacency" in signature.parameters:
            relation = bound.arguments.get("adjacency")
            found, bound.arguments["adjacency"] = apart(found, relation)
        bound.arguments["claim"] = found
        if name == "audit" and not _RUNS & bound.arguments.keys():
            from dpassay.verifier.audit.kinds.known import known

            mechanism, relation = (bound.arguments.get(key) for key in ("mechanism", "adjacency"))
            if (finding := known(mechanism, found, relation)) is not None:
                return finding
        return audited(*bound.args, **bound.kwargs)

    asked.__name__ = asked.__qualname__ = name
    asked.__doc__ = (
        f"Call `dpassay.verifier.audit.{name}`; its claim may be named by `epsilon` and `delta`, "
        "`mu` or `rho`, and a mechanism may be text."
    )
    if name == "audit":
        asked.__doc__ += (
            " What is known exactly of a mechanism of this package is answered as `verify` does, "
            "unless an argument such as `samples` or `pairs` asks for runs."
        )
    return asked


audit = _in_words("audit")
audit_until_refuted = _in_words("audit_until_refuted")
audit_samples = _in_words("audit_samples")
assert_private = _in_words("assert_private")

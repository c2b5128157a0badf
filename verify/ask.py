"""`verify`, `certify`, `calibrate` and audits in the words of the command line.

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
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from dpassay.accountant.ask import read_mechanism
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.asking import Results
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, expected, forgiving, suggestion
from dpassay.accountant.numbers.exact import Number, exact, in_short
from dpassay.verifier.claim import Claim
from dpassay.verifier.decide import decide
from dpassay.verifier.document import Document
from dpassay.verifier.sentence import read_guarantee, read_sentence, said_once
from dpassay.verifier.verdict import Finding

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpassay.accountant.budget.calibrate import Calibration
    from dpassay.accountant.budget.target import Target
    from dpassay.verifier.audit import AuditResult
    from dpassay.verifier.audit.statistics.guarantee import Claim as AuditClaim
    from dpassay.verifier.kernel import Checked


Answer = TypeVar("Answer")
Parameters = ParamSpec("Parameters")
_ONE_CLAIM = (
    "Name one claim: epsilon=1, delta=1e-5 (or epsilon=1 alone), mu=1, rho=0.5, or in words "
    '"(10, 0.6)-RDP".'
)


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
        words = said_once(said, words)
    claims = claims_about(read_mechanism(about), source="Python", **words)
    if len(claims) != 1:
        raise InvalidInputError(f"Expected one claim about the mechanism. {_ONE_CLAIM}")
    return claims[0]


def split_neighbours(claim: Any, adjacency: Any) -> tuple[Any, Any]:
    """Return a claim without its neighbours, and its neighbours or those named separately."""
    if not isinstance(claim, Mapping) or "adjacency" not in claim:
        return claim, adjacency
    words = said_once(dict(claim), {"adjacency": adjacency})
    relation = Adjacency.read(words.pop("adjacency"))
    return words, None if relation is None else relation.value


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
    """Decide a claim, or what the numbers claim about a mechanism; or all claims of a file.

    Parameters
    ----------
    claim
        A claim, as an object or as text such as "Gaussian(3) is (1, 1e-5)-DP"; or a mechanism that
        the following words are about. A file of claims that was read, or a list of claims, has a
        list of findings, and takes no words.
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
    if not isinstance(claim, (Document, list, tuple)):
        return decide(_claim(claim, {**words}), lemmas).finding
    if any(value is not None for value in words.values()):
        raise InvalidInputError("Several claims state their own numbers; leave the words out.")
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


def _given_claim(claim: AuditClaim | str | None, words: dict[str, Any]) -> tuple[Any, Any]:
    """Return the one claim of an audit and its neighbours; no claim where none is named.

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
        raise InvalidInputError(f"Expected one claim. {_ONE_CLAIM}")
    if given and claim is not None:
        raise InvalidInputError(
            f"Expected one claim: leave claim={claim!r} or {next(iter(given))} out."
        )
    if isinstance(claim, str):
        claim = read_claim(claim)
    return split_neighbours(given or claim, adjacency)


def _target_in_words(mechanism: Any, words: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Read a mechanism or package.module:callable that is text, with what a sentence claims."""
    from dpassay.verifier.audit.runs.target import named

    if not isinstance(mechanism, str):
        return mechanism, words
    about, said = read_sentence(mechanism)
    return named(about), said_once(said, words)


def _delta(claim: Any, words: Words) -> Any:
    """Return where ε is bounded: a claim has a δ of its own."""
    return (words.get("delta") or 0) if claim is None else 0


def _pairs(
    pairs: Iterable[tuple[Any, Any]] | None, pair: tuple[Any, Any] | None
) -> Iterable[tuple[Any, Any]] | None:
    return pairs if pair is None else [*(pairs or ()), pair]


class Runs(Words, total=False):
    """What an audit of runs takes besides its claim."""

    pair: tuple[Any, Any] | None
    pairs: Iterable[tuple[Any, Any]] | None
    samples: int | None
    significance: float
    bits: bool | None
    seed: int | None
    executor: Executor | None
    timeout: float | None
    progress: Callable[[int, int], None] | None
    errors_are_outputs: bool


@overload
def audit(
    mechanism: Callable[..., Any], claim: AuditClaim | str | None = None, **runs: Unpack[Runs]
) -> AuditResult: ...


@overload
def audit(
    mechanism: Any, claim: AuditClaim | str | None = None, **runs: Unpack[Runs]
) -> AuditResult | Finding: ...


@in_words
def audit(
    mechanism: Any,
    claim: AuditClaim | str | None = None,
    *,
    pair: tuple[Any, Any] | None = None,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    samples: int | None = None,
    significance: float = 0.05,
    bits: bool | None = None,
    seed: int | None = None,
    executor: Executor | None = None,
    timeout: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    errors_are_outputs: bool = False,
    **words: Unpack[Words],
) -> AuditResult | Finding:
    """Run a mechanism on two neighbouring datasets: test a claim, or estimate ε and δ(ε).

    What is known exactly of a claim about a mechanism of this package is answered as `verify` does,
    unless an argument such as `samples` or `pairs` asks for runs.

    Parameters
    ----------
    mechanism
        A mechanism of this package, as an object or as text; a callable such as
        `mechanism(dataset, rng)` or `mechanism(dataset, size, rng)`, or "package.module:callable";
        an object with `sample(dataset, size, rng)`; a measurement of OpenDP, a mechanism of
        diffprivlib, a `dpassay.verifier.audit.Command`.
    claim
        ε, (ε, δ), {"mu": μ}, a profile δ(·), a mechanism whose profile is claimed, or text such as
        "(1, 1e-5)-DP". Without a claim the result is an estimate.
    epsilon, delta, mu, rho
        The claim in words instead; `delta` alone says where an estimate bounds ε best.
    pair, pairs
        Neighbouring datasets: one pair, or several of which the most promising one is tested; by
        default the worst pair of a mechanism of this package.
    samples
        Runs a side, training included; 100 000 unless given.
    significance
        The largest probability with which a private mechanism is accused, of all bounds together.
    bits
        Whether the last bits of floats are looked at: by default yes, with a verdict of their own;
        False leaves them out; True makes them part of the claim.
    seed
        Of everything that is drawn; None draws one and reports it.
    adjacency
        The neighbouring relation of a mechanism whose guarantee depends on it.
    executor, timeout, progress, errors_are_outputs
        As for `dpassay.verifier.audit.audit`.

    Raises
    ------
    InvalidInputError
        If an argument is out of range, or there are too few samples to refute anything.
    MechanismError
        If the mechanism raises, hangs or returns no output per run.

    Examples
    --------
    >>> found = audit("DiscreteLaplace(scale=2)", samples=2000, seed=1)
    >>> found.epsilon < 0.5
    True
    >>> audit("Laplace(1)", epsilon="0.9").verdict.value
    'REFUTED'
    """
    from dpassay.verifier.audit.kinds import auditor
    from dpassay.verifier.audit.kinds.auditor import known

    about, said = _target_in_words(mechanism, {**words})
    found, relation = _given_claim(claim, said)
    runs_wanted = (pair, pairs, samples, executor, errors_are_outputs or None)
    if found is not None and all(each is None for each in runs_wanted):
        finding = known(about, found, relation)
        if finding is not None:
            return finding
    return auditor.audit(
        about,
        found,
        pairs=_pairs(pairs, pair),
        samples=100_000 if samples is None else samples,
        significance=significance,
        delta=_delta(found, words),
        bits=bits,
        seed=seed,
        adjacency=relation,
        executor=executor,
        timeout=timeout,
        progress=progress,
        errors_are_outputs=errors_are_outputs,
    )


@in_words
def audit_until_refuted(
    mechanism: Any,
    claim: AuditClaim | str | None = None,
    *,
    pair: tuple[Any, Any] | None = None,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    samples: int = 1_000_000,
    significance: float = 0.05,
    bits: bool = False,
    seed: int | None = None,
    timeout: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    errors_are_outputs: bool = False,
    **words: Unpack[Words],
) -> AuditResult:
    """Audit with more and more runs, the last time with `samples` a side; stop once refuted.

    Each of a few audits has eight times the runs of the one before and an equal part of the
    significance. Arguments as for `audit`. With `bits` the last bits of floats are part of the
    claim; without, the values of outputs alone are looked at.
    """
    from dpassay.verifier.audit.kinds import auditor

    about, said = _target_in_words(mechanism, {**words})
    found, relation = _given_claim(claim, said)
    return auditor.audit_until_refuted(
        about,
        _required(found),
        pairs=_pairs(pairs, pair),
        samples=samples,
        significance=significance,
        bits=bits,
        seed=seed,
        adjacency=relation,
        timeout=timeout,
        progress=progress,
        errors_are_outputs=errors_are_outputs,
    )


@in_words
def audit_samples(
    first: Any,
    second: Any,
    claim: AuditClaim | str | None = None,
    *,
    significance: float = 0.05,
    bits: bool | None = None,
    seed: int | None = None,
    names: tuple[str, str] = ("first", "second"),
    **words: Unpack[Words],
) -> AuditResult:
    """Test a claim, or estimate ε and δ(ε), on outputs of runs that are there already.

    Parameters
    ----------
    first, second
        The outputs of independent runs on either dataset, one run a row: arrays whose first axis
        counts the runs, or lists of outputs of any kind. Their numbers may differ.
    seed
        Of the lots that decide which rows choose the event; None draws one and reports it.
    names
        What the two sides are called in the report.

    Other arguments as for `audit`.

    Raises
    ------
    InvalidInputError
        For too few rows, rows of another kind or shape on the other side, rows that are all the
        same, copies, or rows that depend on their order.
    """
    from dpassay.verifier.audit.kinds import samples

    found, relation = _given_claim(claim, {**words})
    return samples.audit_samples(
        first,
        second,
        found,
        significance=significance,
        delta=_delta(found, words),
        bits=bits,
        seed=seed,
        adjacency=relation,
        names=names,
    )


@in_words
def assert_private(
    mechanism: Any,
    claim: AuditClaim | str | None = None,
    *,
    pair: tuple[Any, Any] | None = None,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    alpha: float = 1e-6,
    seconds: float = 20.0,
    seed: int = 0,
    samples: int | None = None,
    bits: bool | None = None,
    **words: Unpack[Words],
) -> AuditResult | Finding:
    """Raise PrivacyError if a claim is refuted; return the finding or the audit otherwise.

    A claim about a mechanism of this package is decided exactly, without any run, wherever
    `verify` decides it; runs are drawn besides where `pairs` or `samples` ask for them.

    Parameters
    ----------
    mechanism, claim, epsilon, delta, mu, rho, pair, pairs, samples, adjacency, bits
        As for `audit`.
    alpha
        The largest probability with which a private mechanism fails the test.
    seconds
        What it may take, roughly: the number of runs is fixed from the speed of a few runs.
    seed
        The same runs every time, so that a test does not flicker; change it for fresh ones.
    """
    from dpassay.verifier.audit.kinds import auditor

    about, said = _target_in_words(mechanism, {**words})
    found, relation = _given_claim(claim, said)
    return auditor.assert_private(
        about,
        _required(found),
        pairs=_pairs(pairs, pair),
        alpha=alpha,
        seconds=seconds,
        seed=seed,
        samples=samples,
        adjacency=relation,
        bits=bits,
    )


def _required(claim: Any) -> Any:
    if claim is None:
        raise InvalidInputError(f"Expected a claim. {_ONE_CLAIM}")
    return claim

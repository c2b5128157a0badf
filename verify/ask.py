"""`verify`, `certify`, `check` and `calibrate` in the words of the command line.

>>> from dpassay.verifier.ask import verify
>>> verify("Gaussian(1)", epsilon=1, delta="1e-5").verdict.value
'REFUTED'
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from dpassay.accountant.ask import read_mechanism
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.asking import Results
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, expected, forgiving, suggestion
from dpassay.accountant.numbers.exact import Number, exact, in_short
from dpassay.verifier.claim import Claim
from dpassay.verifier.decide import decide
from dpassay.verifier.document import Document
from dpassay.verifier.sentence import ONE_CLAIM, Words, in_words, read_sentence, said_once
from dpassay.verifier.verdict import Finding

if TYPE_CHECKING:
    from dpassay.accountant.budget.calibrate import Calibration
    from dpassay.accountant.budget.target import Target
    from dpassay.verifier.kernel import Checked


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

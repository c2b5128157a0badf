"""Everything that the checker needs to know of one law of additive noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias, final

from dpassay.verifier.checker.notation import Argument, Noise
from dpassay.verifier.checker.reals import UnknownError, exp

Pair: TypeAlias = dict[str, Any]
"""The worst pair: its name under "law", and its parameters."""
NONE, ALL = (Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))
"""P and Q of the empty event, and of the whole."""


def unknown(what: str) -> Callable[..., NoReturn]:
    """Return the answer to what is not known: an UnknownError with these words."""

    def answer(*_: object) -> NoReturn:
        raise UnknownError(what)

    return answer


_UNKNOWN = unknown("this divergence, variance or quantile of the mechanism")


@final
@dataclass(frozen=True, kw_only=True)
class DeclaredLaw:
    """One mechanism with one worst pair, which is its own reverse up to reflection.

    Parameters
    ----------
    mechanism, arguments
        The name in the notation, and the arguments in their order; none for a pair alone.
    name, parameters
        The name of the worst pair in a certificate, and its parameters.
    pair
        Returns the worst pair of the mechanism, with a proof in its docstring.
    tails
        Returns P(L > ε) and Q(L > ε).
    renyi
        Returns D_a for a > 1, and D_1 at a = 1.
    largest_loss
        Returns the supremum of the loss.
    variance, quantile
        Of the noise; a quantile at 0 < p < 1.
    only_alone
        Whether the worst pair depends on the question, so that nothing is known of compositions.
    only_bounded
        Whether `hockey_stick` encloses two bounds, and `tails` are those of the event of the lower.
    hockey_stick
        Returns H(ε) where it is known better than P(L > ε) − e^ε Q(L > ε) from `tails`.
    ends
        Returns pairs that neighbours have, and one that dominates a release on every history.
    """

    name: str
    parameters: tuple[str, ...]
    tails: Callable[[Pair, Any], tuple[Any, Any]]
    largest_loss: Callable[[Pair], Any]
    mechanism: str = ""
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    pair: Callable[[Noise], Pair] = unknown("one pair of this mechanism")
    renyi: Callable[[Pair, Any], Any] = _UNKNOWN
    variance: Callable[[Noise], Any] = _UNKNOWN
    quantile: Callable[[Noise, Any], Any] = _UNKNOWN
    only_alone: bool = False
    only_bounded: bool = False
    hockey_stick: Callable[[Pair, Any], Any] | None = None
    ends: Callable[[Pair], tuple[list[Pair], Pair]] | None = None


def laplace_tails(t: Any, epsilon: Any) -> tuple[Any, Any]:
    """Return P(L > ε) and Q(L > ε) of Laplace laws t apart."""
    if epsilon >= t:
        return NONE
    if epsilon < -t:
        return ALL
    return 1 - exp((epsilon - t) / 2) / 2, exp(-(t + epsilon) / 2) / 2


def laplace_moment(t: Any, order: Any) -> Any:
    """Return E_P e^{(a − 1)L} of Laplace laws t apart."""
    less = order - 1
    return (order * exp(less * t) + less * exp(-order * t)) / (2 * order - 1)


def two_candidates(tail: Callable[[Any], Any], t: Any) -> list[Pair]:
    """Return which of two noisy scores is larger, the first it/8 behind, and then t nearer.

    `tail` is the chance that the difference of both noises is at least x ≥ 0.
    """
    found: list[Pair] = []
    for i in range(9):
        ahead, behind = tail(t * (8 - i) / 8), tail(t * Fraction(i) / 8)
        found.append({"law": "finite", "p": [1 - ahead, ahead], "q": [behind, 1 - behind]})
    return found


def pure(t: Any) -> Pair:
    """Return randomised response, which dominates every pair with losses in [−t, t]."""
    rare = 1 / (1 + exp(t))
    return {
        "law": "finite",
        "p": [Fraction(0), 1 - rare, rare, Fraction(0)],
        "q": [Fraction(0), rare, 1 - rare, Fraction(0)],
    }

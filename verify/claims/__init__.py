"""The kinds of claims: a file for each family, imported when a claim of it is met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpassay.verifier.claim import Claim
    from dpassay.verifier.claims.behaviour import Limit as Limit
    from dpassay.verifier.claims.behaviour import Minimiser as Minimiser
    from dpassay.verifier.claims.behaviour import Monotone as Monotone
    from dpassay.verifier.claims.curve import ProfileBound as ProfileBound
    from dpassay.verifier.claims.curve import TradeoffBound as TradeoffBound
    from dpassay.verifier.claims.divergence import RenyiDP as RenyiDP
    from dpassay.verifier.claims.divergence import ZeroConcentratedDP as ZeroConcentratedDP
    from dpassay.verifier.claims.gaussian_dp import GaussianDP as GaussianDP
    from dpassay.verifier.claims.optimality import Optimality as Optimality
    from dpassay.verifier.claims.privacy import ApproximateDP as ApproximateDP
    from dpassay.verifier.claims.privacy import PureDP as PureDP
    from dpassay.verifier.claims.relation import Pending as Pending
    from dpassay.verifier.claims.relation import PrintedNumber as PrintedNumber
    from dpassay.verifier.claims.relation import Relation as Relation

_CLASS = {
    "approximate-dp": ("privacy", "ApproximateDP"),
    "gaussian-dp": ("gaussian_dp", "GaussianDP"),
    "limit": ("behaviour", "Limit"),
    "minimiser": ("behaviour", "Minimiser"),
    "monotone": ("behaviour", "Monotone"),
    "optimality": ("optimality", "Optimality"),
    "pending": ("relation", "Pending"),
    "printed-number": ("relation", "PrintedNumber"),
    "profile": ("curve", "ProfileBound"),
    "pure-dp": ("privacy", "PureDP"),
    "relation": ("relation", "Relation"),
    "renyi-dp": ("divergence", "RenyiDP"),
    "tradeoff": ("curve", "TradeoffBound"),
    "zcdp": ("divergence", "ZeroConcentratedDP"),
}
"""Kind in a claim file → the module of its class, and the class."""
_HOME = {name: f"dpassay.verifier.claims.{module}" for module, name in _CLASS.values()}
__all__ = list(_HOME)


class _Kinds(Mapping[str, "type[Claim]"]):
    """Kind in a claim file → class; a class is imported when it is looked up."""

    def __getitem__(self, kind: str) -> type[Claim]:
        _, name = _CLASS[kind]
        found: type[Claim] = globals().get(name) or __getattr__(name)
        return found

    def __contains__(self, kind: object) -> bool:
        return kind in _CLASS

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASS)

    def __len__(self) -> int:
        return len(_CLASS)


KINDS: Mapping[str, Any] = _Kinds()
"""Kind → class; each class has fields of its own."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found

"""The kinds of claims: one small file for each family, imported when a claim of it is met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verify.claim import Claim
    from verify.claims.approximate_dp import ApproximateDP
    from verify.claims.behaviour import Limit, Minimiser, Monotone
    from verify.claims.curve import ProfileBound, TradeoffBound
    from verify.claims.divergence import RenyiDP, ZeroConcentratedDP
    from verify.claims.gaussian_dp import GaussianDP
    from verify.claims.optimality import Optimality
    from verify.claims.pending import Pending
    from verify.claims.pure_dp import PureDP
    from verify.claims.relation import PrintedNumber, Relation

__all__ = [
    "ApproximateDP",
    "GaussianDP",
    "Limit",
    "Minimiser",
    "Monotone",
    "Optimality",
    "Pending",
    "PrintedNumber",
    "ProfileBound",
    "PureDP",
    "Relation",
    "RenyiDP",
    "TradeoffBound",
    "ZeroConcentratedDP",
]

_HOME = {
    "ApproximateDP": "verify.claims.approximate_dp",
    "GaussianDP": "verify.claims.gaussian_dp",
    "Limit": "verify.claims.behaviour",
    "Minimiser": "verify.claims.behaviour",
    "Monotone": "verify.claims.behaviour",
    "Optimality": "verify.claims.optimality",
    "Pending": "verify.claims.pending",
    "PrintedNumber": "verify.claims.relation",
    "ProfileBound": "verify.claims.curve",
    "PureDP": "verify.claims.pure_dp",
    "Relation": "verify.claims.relation",
    "RenyiDP": "verify.claims.divergence",
    "TradeoffBound": "verify.claims.curve",
    "ZeroConcentratedDP": "verify.claims.divergence",
}
"""Class → the module that it is from."""

_CLASS = {
    "approximate-dp": "ApproximateDP",
    "gaussian-dp": "GaussianDP",
    "limit": "Limit",
    "minimiser": "Minimiser",
    "monotone": "Monotone",
    "optimality": "Optimality",
    "pending": "Pending",
    "printed-number": "PrintedNumber",
    "profile": "ProfileBound",
    "pure-dp": "PureDP",
    "relation": "Relation",
    "renyi-dp": "RenyiDP",
    "tradeoff": "TradeoffBound",
    "zcdp": "ZeroConcentratedDP",
}


class _Kinds(Mapping[str, "type[Claim]"]):
    """Kind in a claim file → class; a class is imported when it is looked up."""

    def __getitem__(self, kind: str) -> type[Claim]:
        name = _CLASS[kind]
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

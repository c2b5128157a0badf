"""The kinds of claims: one small file for each family."""

from __future__ import annotations

from typing import TypeAlias

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

AnyClaim: TypeAlias = (
    ApproximateDP
    | GaussianDP
    | Limit
    | Minimiser
    | Monotone
    | Optimality
    | Pending
    | PrintedNumber
    | ProfileBound
    | PureDP
    | Relation
    | RenyiDP
    | TradeoffBound
    | ZeroConcentratedDP
)
"""Every kind, for reading claim files."""

KINDS: dict[str, type] = {kind.kind: kind for kind in AnyClaim.__args__}
"""Kind in a claim file → class."""

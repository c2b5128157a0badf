"""The kinds of claims: a file for each family, imported when a claim of it is met."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpassay.accountant.numbers.exact import Number, exact

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


class _Kinds(dict[str, Any]):
    """Kind in a claim file → class, which is imported when it is looked up."""

    def __getitem__(self, kind: str) -> Any:
        module, name = super().__getitem__(kind)
        return getattr(import_module(f"{__name__}.{module}"), name)


KINDS: Mapping[str, Any] = _Kinds(_CLASS)
"""Kind → class; each class has fields of its own."""
_FORMS = {
    ("epsilon", "delta"): ("approximate-dp", "({epsilon}, {delta})-DP"),
    ("epsilon",): ("pure-dp", "{epsilon}-DP"),
    ("mu",): ("gaussian-dp", "{mu}-GDP"),
    ("rho",): ("zcdp", "{rho}-zCDP"),
    ("order", "renyi"): ("renyi-dp", "({order}, {renyi})-RDP"),
}


def guarantee(numbers: Mapping[str, Number], **fields: Any) -> Claim:
    """Return the claim of (ε, δ)-DP, ε-DP, μ-GDP, ρ-zCDP or of a Rényi divergence.

    >>> guarantee({"epsilon": 1, "delta": "1e-5"}, mechanism="Gaussian(3)").assertion()
    'Gaussian(3) is (1, 1e-5)-DP'
    """
    said = {name: str(exact(value, name)) for name, value in numbers.items()}
    if said.get("delta") == "0":
        del said["delta"]
    names = next(names for names in _FORMS if {*names} == said.keys())
    kind, form = _FORMS[names]
    usual = {"id": kind, "statement": f"It is {form.format(**said)}."}
    if "renyi" in said:
        said["epsilon"] = said.pop("renyi")
    claim: Claim = KINDS[kind](**{**usual, **said, **fields})
    return claim


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found

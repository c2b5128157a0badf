"""The claim that a mechanism has a guarantee, from the numbers of the guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpassay.accountant.numbers.exact import Number, exact
from dpassay.verifier.claim import Claim
from dpassay.verifier.claims import KINDS

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

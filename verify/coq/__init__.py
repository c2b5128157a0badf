"""Certificates as files that the proof assistant Coq checks.

`written` returns a file that stands alone: chapters from the folder of this module, with the
definitions and lemmas, and then one theorem, which is the privacy statement of the certificate.
What is chosen here (the event of a refutation, digits of e^ε) are hints: `coqc` accepts the file
only if they prove the theorem.

Nothing of a certificate is copied. Its numbers are read and written again, and names are those of
the chapters; so no text in it can say anything to Coq.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.coq.terms import UncoveredError
from dpassay.verifier.kernel import Checked, Outcome, check, schema

__all__ = ["proof", "written"]

COVERED = """(ε, δ)-DP or ε-DP of one release without variables: REFUTED for Gaussian, Laplace, \
Logistic, RandomizedResponse and rational IntegerNoise, Tabulated and Channel; HOLDS for Laplace \
with epsilon >= sensitivity/scale, and for the finite ones; and optimal count-noise and \
integer-noise."""


def proof(certificate: Mapping[str, Any]) -> str:
    """Return the Coq file of a certificate that the kernel calls VALID.

    Raises InvalidInputError for other certificates, and for theorems that are not covered.
    """
    return written(certificate, check(certificate))


def written(certificate: Mapping[str, Any], found: Checked) -> str:
    """Return the Coq file of a certificate of which the kernel has found this."""
    from dpassay.verifier.coq import optima, releases

    if found.outcome is not Outcome.VALID:
        why = "dpassay check says why"
        raise InvalidInputError(f"The certificate is {found.outcome}, not VALID; {why}.")
    data = schema.require(certificate)
    theorem, witness = data["theorem"], data["witness"]
    kinds = {
        **dict.fromkeys(("approximate-dp", "pure-dp"), releases.written),
        "integer-noise": optima.integer_noise,
        "count-noise": optima.count_noise,
    }
    try:
        if theorem["kind"] not in kinds:
            raise UncoveredError(f"the kind {theorem['kind']}")
        chapters, last = kinds[theorem["kind"]](theorem, witness)
    except UncoveredError as error:
        raise InvalidInputError(f"--coq does not cover {error}. It covers {COVERED}") from None
    here = resources.files(__package__)
    texts = [(here / f"{name}.v").read_text("utf-8") for name in ("privacy", *chapters)]
    return "\n".join([*texts, last])

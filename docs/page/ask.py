"""What the page asks dpassay. A stranger's text goes in; JSON comes out, to be shown as text."""

from __future__ import annotations

import json
from typing import Any


def check(content: bytes) -> str:
    """Check a file of certificates with the kernel, and nothing else of dpassay."""
    from dpassay_check import check
    from dpassay_check.numbers import Wrong
    from dpassay_check.schema import read
    from dpassay_check.theorem import safe

    try:
        found = [check(certificate) for certificate in read(content)]
    except Wrong as error:
        return json.dumps({"error": f"This is not a certificate: it {safe(error.reason)}."})
    checks = [{"outcome": str(one.outcome), "report": one.report()} for one in found]
    return json.dumps({"checks": checks})


def verify(words: str) -> str:
    """Decide the claim that a sentence makes; the kernel checks the certificate.

    The page of the verdict is that of `dpassay verify --html`, without pictures. If a library is
    not loaded, its name is all that is returned.
    """
    from dpassay.accountant.errors import DpassayError
    from dpassay.figures.pages.verdict import page
    from dpassay.verifier.ask import certify
    from dpassay.verifier.batch import Outcome

    try:
        finding, certificate = certify(words)
        made = page([Outcome(finding, certificate)], ["dpassay", "verify", words])
    except DpassayError as error:
        return json.dumps({"error": str(error)})
    except ModuleNotFoundError as error:
        return json.dumps({"missing": str(error.name).partition(".")[0]})
    answer: dict[str, Any] = {"verdict": finding.verdict.value, "page": made, "checks": []}
    if certificate is not None:
        answer |= json.loads(check(json.dumps(certificate).encode()))
    return json.dumps(answer)

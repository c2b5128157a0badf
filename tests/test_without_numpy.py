"""What is answered without numpy: single releases, closed forms, the kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MISSING = ["numpy", "scipy", "mpmath", "cvxpy", "highspy", "matplotlib", "rich", "sklearn"]
"""Libraries that a browser does not have at once."""
CLAIMS = {
    "Gaussian(3) is (1, 1e-5)-DP": "REFUTED VALID",
    "Gaussian(4) is (1, 1e-5)-DP": "HOLDS VALID",
    "Laplace(2) is 0.5-DP": "HOLDS VALID",
    "Laplace(2) is 0.4-DP": "REFUTED VALID",
    "Gaussian(1) is 1-GDP": "HOLDS VALID",
    "Gaussian(2) is 0.1-zCDP": "REFUTED VALID",
    "Gaussian(2) is (8, 0.5)-RDP": "REFUTED VALID",
    "DiscreteGaussian(10) is (1, 1e-6)-DP": "REFUTED VALID",
    "RandomizedResponse(1) is 1-DP": "HOLDS VALID",
    "PoissonSubsampled(Gaussian(1), 0.01) is (1, 1e-5)-DP under add/remove": "HOLDS VALID",
    "ExponentialMechanism(1) is 1-DP": "HOLDS VALID",
    "Shuffled(RandomizedResponse(1), 100) is (0.5, 1e-5)-DP": "HOLDS CONDITIONAL",
    "Composed(Gaussian(30), 100) is (1, 1e-5)-DP": "REFUTED VALID",
    "Composed(Laplace(10), 10) is (0.8, 1e-5)-DP": "REFUTED VALID",
    "Gausian(3) is 1-DP": "Unknown mechanism 'Gausian'. Did you mean 'Gaussian'?",
}
_PROGRAM = """
import json, sys
claims, missing = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(missing))  # their import fails
import dpassay
for claim in claims:
    try:
        finding, certificate = dpassay.certify(claim)
    except dpassay.DpassayError as error:
        print(error)
    else:
        str(finding)
        print(finding.verdict.value, dpassay.check(certificate).outcome)
"""


@pytest.mark.slow
def test_claims_about_single_releases_are_decided_and_checked() -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM, json.dumps([[*CLAIMS], MISSING])],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    assert dict(zip(CLAIMS, run.stdout.splitlines(), strict=True)) == CLAIMS

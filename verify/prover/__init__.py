"""What writes certificates of version 2, of audits and optima: a theorem and its witness."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpassay.verifier.kernel import canonical


def write(path: Path, certificate: Mapping[str, Any]) -> None:
    """Write a certificate in canonical form."""
    path.write_bytes(canonical(certificate) + b"\n")

"""What audits keep on disk: one file that says what was done, and arrays beside it.

Every file is whole at any time, so that a kill loses no more than what was running.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit.learning.outputs import Matrix


def begin(path: Path | None, digest: str, seed: int) -> None:
    """Put digest and seed of an audit on disk before its first run, unless they are there."""
    if path is not None and begun(path, digest) is None:
        write(path, {"audit": digest, "seed": str(seed)})


def begun(path: Path | None, digest: str) -> dict[str, Any] | None:
    """Return what an audit left in a checkpoint, None where there is none.

    Raises InvalidInputError where it belongs to another audit.
    """
    if path is None or not path.exists():
        return None
    try:
        data = json.loads(path.read_text("utf-8"))
        found = data["audit"]
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError(f"{path} is no checkpoint of an audit.") from None
    if found != digest:
        raise InvalidInputError(
            f"{path} belongs to another audit: another target, claim, seed or number of "
            "samples. Remove it, or name another checkpoint."
        )
    kept: dict[str, Any] = data
    return kept


def write(path: Path, data: dict[str, Any]) -> None:
    """Write a checkpoint, whole at any time."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(data), "utf-8")
    os.replace(part, path)


def beside(path: Path | None, name: str) -> Path:
    """Return the file of some arrays that belong to a checkpoint."""
    assert path is not None  # asked for where there is a checkpoint
    return path.with_name(f"{path.name}.{name}.npz")


def save(path: Path, **kept: Any) -> None:
    """Write arrays, whole or not at all."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, **kept)
    os.replace(part, path)


def arrays(path: Path, *keys: str) -> list[Matrix] | None:
    """Return arrays of a file beside a checkpoint; None where they are not there, or not whole."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            return [data[key] for key in keys]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def kept_seed(path: Path | None) -> int | None:
    """Return the seed of the audit that left a checkpoint, so that a call without one goes on."""
    if path is None or not path.exists():
        return None
    try:
        return int(json.loads(path.read_text("utf-8"))["seed"])
    except (ValueError, KeyError, TypeError):
        return None  # whoever reads the whole file says what is wrong with it


def digest(*parts: object) -> str:
    """Return a short digest of what an audit is about."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def whereabouts(path: Path | None, where: str = "in") -> str:
    """Say what became of runs that were drawn before an error."""
    if path is None:
        return "were discarded (name a checkpoint= to keep them)."
    return f"are {where} {path}; the same call continues there."

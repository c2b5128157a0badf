"""Programs of the repository that are no part of the package, imported by their files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def script(path: str) -> Any:
    """Import a program by its path in the repository."""
    location = ROOT / path
    specification = importlib.util.spec_from_file_location(location.stem, location)
    assert specification is not None
    assert specification.loader is not None
    found = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(found)
    return found


def importable(name: str, folder: Path) -> ModuleType:
    """Import a module of a folder under a name that worker processes can import too."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))

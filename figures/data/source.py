"""Where the data of a figure are from, and how its files are found and refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from dpassay.accountant.errors import InvalidInputError


@final
@dataclass(frozen=True, slots=True)
class Source:
    """What stands on the face of a figure about its data."""

    name: str
    is_original: bool

    def words(self) -> str:
        """Return the words for a title."""
        return self.name if self.is_original else f"{self.name} (stand-in data)"


def find(folder: Path | None, names: tuple[str, ...]) -> Path | None:
    """Return the first of some files that is in a folder or below it; None without a folder.

    Raises
    ------
    InvalidInputError
        If a folder is given and has none of them.
    """
    if folder is None:
        return None
    for name in names:
        if (folder / name).is_file():
            return folder / name
        below = sorted(path for path in folder.rglob(name) if path.is_file())
        if below:
            return below[0]
    raise InvalidInputError(
        f"Expected {' or '.join(names)} in the folder {folder}. Put the file there, or leave out "
        "--data for the stand-in."
    )


def wrong(path: Path, place: str, problem: str) -> InvalidInputError:
    """Return the error for a file that is not what it should be, with the place in it."""
    return InvalidInputError(f"{path}, {place}: {problem}")

"""What can be drawn has `plot`; the floor of figures draws, and `dpassay` lends its drawer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar


class Drawable:
    """A mechanism or an answer that a picture shows."""

    __slots__ = ()
    drawer: ClassVar[Callable[..., Any] | None] = None
    """What draws: this floor knows no figures."""

    def plot(self, path: Path | str | None = None, **options: Any) -> Any:
        """Return a matplotlib Figure, saved where `path` names a file: see `dpassay.plot`."""
        if Drawable.drawer is None:
            from dpassay.accountant.errors import (
                NotApplicableError,  # late: `import dpassay` is short
            )

            raise NotApplicableError("Nothing draws here. Write `import dpassay` first.")
        return Drawable.drawer(self, path, **options)

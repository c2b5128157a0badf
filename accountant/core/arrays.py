"""NumPy, imported on first use, and the types of arrays.

The import takes a tenth of a second, and few questions about a mechanism need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[Any]
else:
    Array = ArrayLike = NDArray = Any

    class _NumPy:
        def __getattr__(self, name: str) -> Any:
            """Return NumPy's attribute, and cache it."""
            import numpy

            found = self.__dict__[name] = getattr(numpy, name)
            return found

    np = _NumPy()

__all__ = ["Array", "ArrayLike", "NDArray", "np"]

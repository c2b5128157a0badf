"""NumPy, imported where it is first used, and the types of arrays.

Its import takes a tenth of a second, which a question about a mechanism seldom needs.
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
            """Take it from NumPy, and keep it."""
            import numpy

            found = self.__dict__[name] = getattr(numpy, name)
            return found

    np = _NumPy()

__all__ = ["Array", "ArrayLike", "NDArray", "np"]

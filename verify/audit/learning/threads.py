"""One thread for small matrices and trees: several only wait for each other there."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which numpy and scikit-learn use one thread, where that can be told.

    It can where threadpoolctl is installed, which comes with the `audit` extra. A controller knows
    the libraries that were there when it was made, and scikit-learn brings threads of its own.
    """
    found = _controller("sklearn.ensemble" in sys.modules)
    if found is None:
        return nullcontext()
    limited: AbstractContextManager[Any] = found.limit(limits=1)
    return limited


@cache
def _controller(trees: bool) -> Any:
    """Return a controller, made anew once the trees are there."""
    if find_spec("threadpoolctl") is None:
        return None
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()

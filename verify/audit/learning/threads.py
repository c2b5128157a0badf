"""One thread for small matrices and trees: several only wait for each other there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which numpy and scikit-learn use one thread, where that can be told.

    It can where threadpoolctl is installed, which comes with the `audit` extra.
    """
    found = _controller()
    if found is None:
        return nullcontext()
    limited: AbstractContextManager[Any] = found.limit(limits=1)
    return limited


@cache
def _controller() -> Any:
    if find_spec("threadpoolctl") is None:
        return None
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()

"""Comparison files: a budget, a workload, candidates and metrics as TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, final

import msgspec

from dpassay.accountant import notation
from dpassay.accountant.budget.target import read_target
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.geometry.workload import Workload
from dpassay.verifier.compare.candidate import Budget

Text = str | int
_WORKLOADS = (
    "Write one such as Count(), Counts(dimension=1000, sparsity=10), "
    "BoundedSum(bounds=[1, 2, 8]) or PrefixSums(steps=1000000)."
)


class BudgetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[budget]."""

    epsilon: Text | None = None
    delta: Text | None = None
    mu: Text | None = None
    rho: Text | None = None
    profile: str | None = None
    adjacency: str = "add-remove"
    releases: int = 1
    sampling_prob: Text = 1

    def read(self) -> Budget:
        """Return the budget."""
        target = read_target(msgspec.structs.asdict(self))
        return Budget(target, self.adjacency, self.releases, self.sampling_prob)


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A comparison file."""

    schema_version: int
    budget: BudgetTable
    workload: str
    candidates: list[str] = []
    only: list[str] = []
    metrics: list[str] | None = None

    def __post_init__(self) -> None:
        if self.schema_version != 1:
            raise ValueError(f"schema_version={self.schema_version} is not 1")


@final
class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be compared."""

    budget: Any
    workload: Any
    candidates: tuple[Any, ...] = ()
    only: tuple[str, ...] = ()
    metrics: tuple[str, ...] | None = None


def read_file(path: Path) -> Question:
    """Read a comparison file.

    Raises InvalidInputError naming the file and the field that is wrong.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"), parse_float=str)
        document = msgspec.convert(data, Document)
        return Question(
            budget=document.budget.read(),
            workload=read_workload(document.workload),
            candidates=tuple(notation.parse(text) for text in document.candidates),
            only=tuple(document.only),
            metrics=None if document.metrics is None else tuple(document.metrics),
        )
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InvalidInputError(f"{path}: {error}") from None
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error


def read_workload(text: str) -> Workload:
    """Read a workload in its notation."""
    found = notation.parse_description(text, noun="workload", remedy=_WORKLOADS)
    if isinstance(found, Mechanism) or not isinstance(found, Workload):
        raise InvalidInputError(f"Expected a workload, not {text!r}. {_WORKLOADS}")
    return found

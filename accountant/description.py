"""Frozen data with a notation: mechanisms, sensitivity spaces, covariances."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

from accountant.adjacency import Adjacency
from accountant.number import ExactReal


class Description:
    """A frozen dataclass whose fields are the arguments of its notation."""

    def __repr__(self) -> str:
        """Return the notation, which reads back as an equal object."""
        shown = []
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is not None and value != field.default:
                shown.append(f"{field.name}={notation(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """Return the notation and the law, for notebooks."""
        from accountant.notebook import describe_html

        return describe_html(self)

    def _repr_markdown_(self) -> str:
        """Return the same as Markdown."""
        from accountant.notebook import describe_markdown

        return describe_markdown(self)


def notation(value: object) -> str:
    """Print a field in the notation: nested lists in brackets, numbers exactly."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(notation(entry) for entry in value)}]"
    if isinstance(value, Adjacency):
        return repr(value.value)
    if isinstance(value, Fraction):
        return repr(ExactReal.of_rational(value))
    return repr(value)

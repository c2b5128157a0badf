"""Broken mechanisms from the literature and from practice, and private controls.

Each case is a mechanism that draws the outputs of many runs, its neighbouring datasets, its claim,
and what is true of it: they measure an auditor, and show what it finds.
"""

from tests.verify.audit.zoo import (
    counts,
    failures,
    floats,
    joint,
    noise,
    selection,
    sparse_vector,
    streams,
)
from tests.verify.audit.zoo.case import Case, case, cases

FAMILIES = (sparse_vector, selection, noise, counts, streams, floats, joint, failures)
"""The modules that register the cases."""

__all__ = ["FAMILIES", "Case", "case", "cases"]

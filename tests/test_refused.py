"""What is refused, through the public face: each error has one line, which names the remedy."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpassay
from dpassay.accountant.budget.allotment import shares_of_epsilon
from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.accountant.geometry.ellipse import count_ellipse, optimal_ellipse
from dpassay.accountant.mechanisms.additive.laplace import optimal_gamma
from dpassay.lp.solve import InfeasibleError
from dpassay.verifier.audit import PrivacyError
from tests.tables import rows

ERRORS: dict[str, type[Exception]] = {
    "Adjacency": dpassay.AdjacencyError,
    "Attribute": AttributeError,
    "Dpassay": dpassay.DpassayError,
    "Infeasible": InfeasibleError,
    "InvalidInput": dpassay.InvalidInputError,
    "NotApplicable": dpassay.NotApplicableError,
    "Privacy": PrivacyError,
    "Type": TypeError,
    "Undecided": dpassay.UndecidedError,
}
NAMES = {name: getattr(dpassay, name) for name in dpassay.__all__} | {  # type: ignore[attr-defined]
    kind.__name__: kind
    for kind in (CountNoise, Decimal, Fraction, count_ellipse, optimal_ellipse, optimal_gamma,
                 shares_of_epsilon)
} | {"dpassay": dpassay, "math": math, "np": np}  # fmt: skip
NAMES |= {
    "NOISE": dpassay.Gaussian("1.1"),
    "WIDE": dpassay.Interval(Decimal("0.0512"), Decimal("0.0559")),
    "WIDE_OPEN": dpassay.Interval(Decimal(0), Decimal(1)),
}
ROWS = rows(Path(__file__).with_name("refused.txt"))


@pytest.mark.parametrize(("written", "error", "said"), ROWS, ids=[row[0] for row in ROWS])
def test_what_is_refused_says_why_in_one_line(written: str, error: str, said: str) -> None:
    with pytest.raises(ERRORS[error]) as caught:
        eval(written, NAMES)
    message = str(caught.value)
    assert re.search(said, message), message
    assert "\n" not in message or error in {"Privacy", "Attribute"}

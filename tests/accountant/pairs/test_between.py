"""A pair with two ends: what one end alone says is no answer."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from flint import arb

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms import Gaussian
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs import between
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian import GaussianPair

LOW, HIGH = (GaussianPair(Gaussian(sigma), None) for sigma in (2, 1))


def test_a_lower_end_that_is_not_known_is_zero() -> None:
    unknown: Any = SimpleNamespace(renyi=lambda order: arb.nan())
    found = Between((unknown,), HIGH, "all").renyi(arb(2))
    assert found.contains(arb(0))
    assert found.contains(arb(1))


def test_infinite_ends_are_infinite() -> None:
    endless: Any = SimpleNamespace(renyi=lambda order: arb.pos_inf())
    assert Between((endless,), endless, "all").renyi(arb(2)) == arb.pos_inf()


def test_the_refusal_of_one_end_has_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UndecidedError("no", interval=Interval.of_ball(arb(0.5)))

    monkeypatch.setattr(between, "_value", refuse)
    with pytest.raises(UndecidedError) as refusal:
        Between((LOW, LOW), HIGH, "all").known.inverse(exact("1e-5"), Fraction(1))
    assert refusal.value.interval is None

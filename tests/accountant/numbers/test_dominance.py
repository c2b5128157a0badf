"""One profile below another one, by chords of functions convex in e^ε."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from accountant.numbers.dominance import proved_below
from accountant.numbers.exact import ExactReal


def test_a_limit_that_ends_first_is_not_kept() -> None:
    """On (1, 1.001) the limit is 0 and the value is not, although both are 0 at the end."""

    def value(at: ExactReal) -> arb:
        return ((1 - (at.ball() - arb("1.001")).exp()) / 10).max(arb(0))

    def limit(at: ExactReal) -> arb:
        return (1 - (at.ball() - 1).exp()).max(arb(0))

    with ctx.workprec(128):
        assert not proved_below(value, limit, Fraction(101, 100))
        assert proved_below(value, limit, Fraction(99, 100))
        assert proved_below(lambda at: limit(at) / 2, value_later, Fraction(101, 100))


def value_later(at: ExactReal) -> arb:
    """A limit that ends at 1.005, above half of one that ends at 1."""
    return (1 - (at.ball() - arb("1.005")).exp()).max(arb(0))

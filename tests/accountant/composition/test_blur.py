"""Bounds by noise that is added to the loss, compared with exact sums and with contours."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

import dpassay
from dpassay.accountant.composition.blur import BLURRED, applies
from dpassay.accountant.composition.exact.laplace_product import of_counts
from dpassay.accountant.composition.lattice import GRID
from dpassay.accountant.composition.product import Factor, Product
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.mechanisms.wrappers.channel import Tabulated
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair

WIDTHS = [Fraction(1, 2), Fraction(1, 10**4), Fraction(1, 10**7)]


def laplace(*distances: str | Fraction) -> tuple[Factor, ...]:
    return tuple((LaplacePair(exact(d)), n) for d, n in Counter(distances).items())


def gaussian(mu: str) -> Factor:
    pair = GaussianPair(dpassay.Gaussian(1, l2_sensitivity=mu), None)
    return pair, 1


def brute(tables: list[tuple[list[Fraction], list[Fraction]]], epsilon: Fraction) -> arb:
    """Return H(ε) as a sum over all outcomes."""
    total, growth = arb(0), arb(epsilon.numerator) / epsilon.denominator
    for outcome in itertools.product(*(zip(p, q, strict=True) for p, q in tables)):
        p, q = (math.prod(each) for each in zip(*outcome, strict=True))
        value = arb(p.numerator) / p.denominator - growth.exp() * q.numerator / q.denominator
        total += value.max(arb(0))
    return total


def encloses(found: arb, true: arb, width: Fraction) -> bool:
    """Whether a ball has a value in it, and the width that was asked for."""
    wide = (found.upper() - found.lower()) * width.denominator / width.numerator
    return bool(found.overlaps(true)) and bool(wide <= found.lower() * arb("1.000001"))


def integers(*laws: tuple[str, int]) -> tuple[Factor, ...]:
    """Discrete Gaussian laws, of a parameter and a shift."""
    return tuple((DiscreteGaussianPair(exact(v), shift), 1) for v, shift in laws)


@pytest.mark.parametrize("epsilon", ["-1/2", "0", "1/3", "2", "9"])
def test_discrete_gaussian_laws_as_sums_over_their_outcomes(epsilon: str) -> None:
    """What lies beyond ±60 has a mass below e^(−58²/(2·5))."""
    laws, at = ((Fraction(3), 1), (Fraction(5), 2)), exact(epsilon)
    product = Product(integers(*((str(v), s) for v, s in laws)), BLURRED)
    rows = []
    with ctx.workprec(128):
        for v, s in laws:
            half = arb(v.denominator) / v.numerator / 2
            size = {x: (-((x - s) ** 2) * half).exp() for x in range(-60, 61)}
            total = sum(size.values(), start=arb(0))
            rows.append([(size[x] / total, (2 * x * s - s * s) * half) for x in size])
        growth, true = at.ball(), arb(0)
        for (p, loss), (q, other) in itertools.product(*rows):
            true += p * q * (-(growth - loss - other).expm1()).max(arb(0))
        for width in (WIDTHS[0], Fraction(1, 1000)):
            assert encloses(product.to_width(width).hockey_stick(at), true, width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("epsilon", ["-1/2", "0", "1/3", "1", "2", "2.7"])
def test_laplace_laws_as_exact_sums(epsilon: str, width: Fraction) -> None:
    factors = laplace("1/3", "1/3", "2/5", "1/2", "1/7", "1")
    blurred = Product(factors, BLURRED).to_width(width)
    true = of_counts({pair.distance: n for pair, n in factors if isinstance(pair, LaplacePair)})
    eps = exact(epsilon)
    if eps > true.known.max_loss():  # type: ignore[operator]
        return
    try:
        found = blurred.hockey_stick(eps)
    except UndecidedError:
        assert epsilon == "2.7"  # so near the largest loss few terms are left: a line is too long
        return
    assert encloses(found, true.hockey_stick(eps), width)


@pytest.mark.parametrize("delta", ["1/20", "1e-3", "1e-9"])
def test_epsilon_of_laplace_laws_as_exact_sums(delta: str) -> None:
    factors = laplace(*(Fraction(1, 6 + i) for i in range(12)))
    true = of_counts({pair.distance: n for pair, n in factors if isinstance(pair, LaplacePair)})
    found = BLURRED.inverse(Product(factors, BLURRED), exact(delta), Fraction(1, 10**6))
    assert found is not None
    assert found.upper - found.lower <= found.upper / 10**6
    low, high = (true.hockey_stick(exact(str(end))) for end in (found.lower, found.upper))
    assert low >= exact(delta).ball() >= high


def test_lists_of_unrelated_losses_and_a_mass_at_infinity() -> None:
    shares = [[Fraction(k, 2 * k + 1), Fraction(k + 1, 2 * k + 1)] for k in range(2, 9)]
    tables = [(p, p[::-1]) for p in shares]
    tables.append(
        (
            [Fraction(1, 100), Fraction(99, 100), Fraction(0)],
            [Fraction(0), Fraction(9, 10), Fraction(1, 10)],
        )
    )
    factors = tuple((FinitePair(Tabulated(p, q), 0), 1) for p, q in tables)
    for epsilon in (Fraction(0), Fraction(1, 3), Fraction(1)):
        at = ExactReal.of_rational(epsilon)
        for width in WIDTHS:
            found = Product(factors, BLURRED).to_width(width).hockey_stick(at)
            assert encloses(found, brute(tables, epsilon), width)


@pytest.mark.parametrize("mu", ["1/10", "1/3", "2"])
def test_with_gaussian_noise_as_on_a_lattice(mu: str) -> None:
    """Much of it, or less than what is added: the bounds are two, or one."""
    factors = (*laplace("1/3", *(Fraction(1, 8 + i) for i in range(12))), gaussian(mu))
    on_grid = Product(factors, GRID).to_width(Fraction(1, 10**4))
    for epsilon in ("0", "1", "5/2"):
        true = on_grid.hockey_stick(exact(epsilon))
        for width in WIDTHS:
            found = Product(factors, BLURRED).to_width(width).hockey_stick(exact(epsilon))
            assert encloses(found, true, width)


@given(
    st.lists(st.fractions(Fraction(1, 50), 2, max_denominator=60), min_size=2, max_size=7),
    st.integers(1, 19),
)
def test_random_laplace_laws(distances: list[Fraction], twentieths: int) -> None:
    factors = laplace(*distances)
    counts = {pair.distance: n for pair, n in factors if isinstance(pair, LaplacePair)}
    at = ExactReal.of_rational(sum(distances) * Fraction(twentieths, 20))
    width = Fraction(1, 1000)
    try:
        found = Product(factors, BLURRED).to_width(width).hockey_stick(at)
    except UndecidedError:
        return
    assert encloses(found, of_counts(counts).hockey_stick(at), width)


def test_what_floats_or_lines_do_not_hold_is_refused() -> None:
    tiny = Product(((LaplacePair(exact("1e-6")), 10**13),), BLURRED)
    fine = Product(laplace("1/3", "1/4"), BLURRED).to_width(Fraction(1, 10**15))
    for product, at in ((tiny, "1/10"), (fine, "1/10")):
        with pytest.raises(UndecidedError, match="relative_width"):
            product.to_width(product.relative_width or Fraction(1, 10**6)).hockey_stick(exact(at))


def test_noise_that_floats_do_not_hold_is_refused() -> None:
    """Near the largest of 10⁶ losses the tilt is beyond 1e154, and the noise below 1e-308."""
    far = Product(((DiscreteGaussianPair(exact(25), 1), 10**6),), BLURRED)
    assert 0 <= far.known.bound(exact(2**511)) <= 1


def test_what_it_is_for() -> None:
    assert applies([LaplacePair(exact(1)), gaussian("1")[0]])
    assert not applies([gaussian("1")[0]])


def test_beta_of_many_scales_agrees_with_values_of_delta() -> None:
    """β(α) ≥ 1 − δ(ε) − e^ε α at every ε, and a coarse grid has it to three digits."""
    mechanism = dpassay.Composed([dpassay.Laplace(f"{140 + i}/7") for i in range(25)])
    found = dpassay.beta(mechanism, "0.1", relative_width="1e-6")
    assert found.upper - found.lower <= found.upper / 10**6
    assert found.overlaps(dpassay.beta(mechanism, "0.1", relative_width="1e-3", method="grid"))
    for epsilon in (0.5, 0.75, 1.0):
        delta = dpassay.delta(mechanism, epsilon, relative_width="1e-6")
        assert float(found.upper) >= 1 - float(delta.upper) - math.exp(epsilon) / 10

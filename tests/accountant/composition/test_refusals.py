"""Questions that no engine answers: refused soon, with what was reached."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb

from accountant.composition.choose import smooth
from accountant.composition.fourier.engine import FOURIER
from accountant.composition.fourier.sure import sure_cut
from accountant.composition.grid.product import GRID, Grid
from accountant.composition.losses.lists import FloatDiscreteGaussian
from accountant.composition.product import Product
from accountant.core.adjacency import Adjacency
from accountant.errors import UndecidedError
from accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled
from accountant.numbers.exact import exact
from accountant.questions import profile

NEAR = Fraction(1, 10**9)


def removal(sigma: str, q: str, count: int) -> Product:
    product = smooth(releases(sigma, q, count).worst_case(Adjacency.ADD_REMOVE).remove[0])
    assert product is not None
    return product


def releases(sigma: str, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)


def test_tails_of_a_profile_that_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ball wider than floats reach was a ValueError."""
    monkeypatch.setattr(Grid, "profile", lambda self, product, epsilon: arb(0, "1e400"))
    tails = removal("28.45", "2.414e-5", 8).asked(GRID).tails(exact("1"))
    assert tails.p_above.contains(arb("0.5"))
    assert tails.q_above.contains(arb("0.5"))


def test_losses_beyond_which_floats_have_no_grid() -> None:
    """A grid of gigabytes was formed."""
    loss = FOURIER.loss(removal("27.68", "1.186e-6", 293_958_126))
    with pytest.raises(UndecidedError, match="sure to decide"):
        sure_cut(loss, 11_670.0, -250.0, 1.0)


@pytest.mark.parametrize("epsilon", ["1e200", "1e300"])
def test_losses_that_nothing_tells_from_zero_beside_epsilon(epsilon: str) -> None:
    mechanism = Composed([Laplace("1"), Gaussian(standard_deviation="1")], 2)
    with pytest.raises(UndecidedError, match=r"nearer to 0|Reached delta in"):
        profile.delta(mechanism, epsilon, relative_width=NEAR)
    assert profile.delta(mechanism, epsilon).lower == 0


def test_tilts_beyond_which_integers_are_not_told_apart() -> None:
    with pytest.raises(UndecidedError, match="beyond floats"):
        FloatDiscreteGaussian(3.0, 1).cumulants(1e30)

"""What composition and subsampling refuse, in Python and on the command line, and how soon."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb

import dpassay
from dpassay.accountant import notation
from dpassay.accountant.composition.choose import smooth
from dpassay.accountant.composition.fourier.engine import FOURIER
from dpassay.accountant.composition.fourier.jumps import deciding_cut
from dpassay.accountant.composition.lattice import GRID, Grid
from dpassay.accountant.composition.losses.laplace import FloatDiscreteGaussian
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Known, MirroredPair
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs.invert import inverse
from dpassay.accountant.questions import profile
from dpassay.accountant.questions.profile import answer
from dpassay.verifier.cli import main
from tests.quick import slow

MIXED = (
    "Composed(mechanism=[Laplace(scale=5), Laplace(scale='sqrt(3)'), Laplace(scale='sqrt(2)')], "
    "count=3)"
)


@pytest.mark.slow
def test_a_tolerance_that_is_not_met_says_what_was_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mixed = notation.parse(MIXED)
    assert isinstance(mixed, Mechanism)
    with pytest.raises(UndecidedError, match=r"Reached delta in .* of relative width") as caught:
        profile.delta(mixed, 1, relative_width=Fraction(1, 10**25))
    assert caught.value.interval is not None
    width = ["--relative-width", "1e-25"]
    assert main(["profile", MIXED, "--epsilon", "1", *width]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Reached delta in" in shown.err
    assert "points are the most" in shown.err
    assert main(["profile", MIXED, "--epsilon", "1", "--relative-width", "1e-2"]) == 0
    assert main(["profile", MIXED, "--epsilon", "1", "--relative-width", "2"]) == 0
    assert main(["profile", MIXED, "--epsilon", "1", "--relative-width", "0"]) == 2


@pytest.mark.slow
def test_a_refused_epsilon_beside_that_of_delta_at_0_carries_what_a_grid_knows() -> None:
    few = notation.parse("Composed(PoissonSubsampled(Gaussian(0.6), 0.001), 2)")
    assert isinstance(few, Mechanism)
    known = profile.epsilon(few, "1e-3", adjacency="add-remove")
    with pytest.raises(UndecidedError) as caught:
        profile.epsilon(few, "1e-3", adjacency="add-remove", relative_width=Fraction(1, 10**9))
    found = caught.value.interval
    assert found is not None
    assert found.lower <= known.upper
    assert known.lower <= found.upper
    assert found.upper - found.lower <= found.lower / 10**6


def test_a_direction_is_read_by_its_name_or_refused() -> None:
    """A text was taken for both directions."""
    sample = PoissonSubsampled(Gaussian(1), "0.1")
    for direction in Direction:
        named = direction.value
        found = profile.delta(sample, 1, adjacency="add-remove", direction=named)  # type: ignore[arg-type]  # from JSON, say
        assert found == profile.delta(sample, 1, adjacency="add-remove", direction=direction)
    with pytest.raises(InvalidInputError, match="direction='both' to be one of"):
        profile.delta(sample, 1, adjacency="add-remove", direction="both")  # type: ignore[arg-type]  # bad on purpose


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
    with pytest.raises(UndecidedError, match="No single loss"):
        deciding_cut(loss, 11_670.0, -250.0, 1.0)


@pytest.mark.parametrize("epsilon", [slow("1e200"), "1e300"])
def test_losses_that_nothing_tells_from_zero_beside_epsilon(epsilon: str) -> None:
    mechanism = Composed([Laplace("1"), Gaussian(standard_deviation="1")], 2)
    with pytest.raises(UndecidedError, match=r"nearer to 0|Reached delta in"):
        profile.delta(mechanism, epsilon, relative_width=NEAR)
    with pytest.raises(UndecidedError, match="It is only known that"):
        profile.delta(mechanism, epsilon)


def test_tilts_beyond_which_integers_are_not_told_apart() -> None:
    with pytest.raises(UndecidedError, match="beyond floats"):
        FloatDiscreteGaussian(3.0, 1).cumulants(1e30)


STEP = dpassay.PoissonSubsampled(dpassay.Gaussian(standard_deviation="1.1"), "256/60000")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "question", "at"), [(2, dpassay.delta, "1"), (7032, dpassay.epsilon, "1e-5")]
)
def test_three_hundred_digits_are_refused(count: int, question: object, at: str) -> None:
    """They took more than a hundred seconds, without an end."""
    assert callable(question)
    releases = dpassay.Composed(STEP, count)
    near = question(releases, at, adjacency="add-remove")
    with pytest.raises(UndecidedError, match="Reached ") as refusal:
        question(releases, at, adjacency="add-remove", relative_width=Fraction(1, 10**300))
    found = refusal.value.interval
    assert found is not None
    assert near.overlaps(dpassay.Interval(found.lower, found.upper))
    assert str(dpassay.Interval(found.lower, found.upper)) in str(refusal.value)


@pytest.mark.slow
def test_thirty_digits_of_epsilon() -> None:
    releases = dpassay.Composed(STEP, 7032)
    width = Fraction(1, 10**30)
    epsilon = dpassay.epsilon(releases, "1e-5", adjacency="add-remove", relative_width=width)
    assert epsilon.relative_width is not None
    assert 0 < epsilon.relative_width <= width
    assert epsilon.overlaps(dpassay.epsilon(releases, "1e-5", adjacency="add-remove"))
    for end in (epsilon.lower, epsilon.upper):
        delta = dpassay.delta(releases, end, adjacency="add-remove", relative_width=width)
        assert abs(Fraction(delta.lower) - Fraction(1, 10**5)) < Fraction(1, 10**33)


@dataclass(frozen=True)
class Refusing(MirroredPair):
    """A pair with no values of H, and an ε(δ) to few digits."""

    name: str

    def excess(self, epsilon: ExactReal) -> arb:
        raise UndecidedError(f"Reached delta in [0, 1]: the sums of {self.name} are too long.")

    @property
    def known(self) -> Known:
        return Known(inverse=self._inverse)

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        coarse = relative_width >= Fraction(1, 10**6)
        return Interval.of_exact(1).hull(Interval.of_exact(1 + relative_width)) if coarse else None


def test_a_refusal_of_several_pairs_says_why_and_what_is_known() -> None:
    pairs = [Refusing("one"), Refusing("other")]
    with pytest.raises(
        UndecidedError, match=r"of one are too long\. Reached epsilon in 1\."
    ) as caught:
        inverse(pairs, exact("1/10"), Fraction(1, 10**9))
    assert caught.value.interval is not None
    assert caught.value.interval.lower <= 1 <= caught.value.interval.upper


WHOLE = Interval(Decimal("-Infinity"), Decimal("Infinity"))


@dataclass(frozen=True)
class Ending(Refusing):
    """The same, whose refusal knows both ends of ε(δ), or none."""

    ends: tuple[str, str] | None

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        interval = self.ends and Interval(*map(Decimal, self.ends))
        raise UndecidedError(f"Reached {self.ends or 'no range'}.", interval=interval or None)


def test_the_known_end_of_one_pair_is_kept_where_nothing_is_known_of_another() -> None:
    pairs = [Ending("one", ("0.015387938", "0.015401461")), Ending("other", None)]

    def bounds() -> Interval:
        return Interval(Decimal("-2e-30"), Decimal("0.0153880"))

    with pytest.raises(UndecidedError, match="Reached") as caught:
        answer(
            lambda width: inverse(pairs, exact("2e-30"), width),
            Fraction(1, 10**9),
            Fraction(1, 10**9),
            bounds,
            whole=WHOLE,
        )
    found = caught.value.interval
    assert found is not None
    assert (found.lower, found.upper) == (Decimal("0.015387938"), Decimal("0.0153880"))
    assert caught.value.reached < 1e-4
    assert answer(
        lambda width: inverse(pairs, exact("2e-30"), width),
        None,
        Fraction(1, 10**9),
        bounds,
        whole=WHOLE,
    ) == Interval(found.lower, found.upper)

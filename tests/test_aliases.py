"""Programs as other libraries would have them: argument names, operators, methods, hints."""

from __future__ import annotations

import typing

import numpy as np
import pytest

import dpassay
from dpassay import Gaussian
from dpassay.accountant.aliases import ALIASES, NAMES
from dpassay.accountant.core.asking import QUESTIONS
from dpassay.accountant.errors import InvalidInputError

UNTYPED: typing.Any = dpassay
"""The stubs know the names here alone."""
SAME = [
    ("Gaussian(sigma=2, sensitivity=3)", "Gaussian(2, 3)"),
    ("Gaussian(scale=2)", "Gaussian(2)"),
    ("Laplace(b=2, sensitivity=3)", "Laplace(2, 3)"),
    ("PoissonSubsampled(Gaussian(1), sample_rate='0.1')", "PoissonSubsampled(Gaussian(1), '0.1')"),
    ("Composed(Gaussian(1), steps=9)", "Composed(Gaussian(1), 9)"),
    ("Gaussian(5) * 10", "Composed(Gaussian(5), 10)"),
    ("10 * Gaussian(5)", "Composed(Gaussian(5), 10)"),
    ("Gaussian(5) + Laplace(9) + Laplace(3)", "Composed([Gaussian(5), Laplace(9), Laplace(3)])"),
    ("sum([Gaussian(5), Laplace(9)])", "Composed([Gaussian(5), Laplace(9)])"),
    ("Gaussian(3).epsilon(delta='1e-5')", "epsilon(Gaussian(3), '1e-5')"),
    ("(Gaussian(5) * 10).delta(1)", "delta(Composed(Gaussian(5), 10), 1)"),
    ("Gaussian(3).variance()", "variance(Gaussian(3))"),
    ("Gaussian(3).epsilon(target_delta='1e-5')", "epsilon(Gaussian(3), delta='1e-5')"),
    ("renyi(Gaussian(3), alpha=8)", "renyi(Gaussian(3), order=8)"),
    ("convert(rho='0.1', delta='1e-5')", "convert(zcdp='0.1', delta='1e-5')"),
    ("delta(Gaussian(3), np.array(1))", "delta(Gaussian(3), 1)"),
    ("Gaussian(noise_multiplier=2)", "Gaussian(2)"),
    ("PoissonSubsampled(Gaussian(1), q='0.1')", "PoissonSubsampled(Gaussian(1), '0.1')"),
    ("Mean(0, 1, n=9)", "Mean(0, 1, records=9)"),
    ("Gaussian(3).get_epsilon(delta='1e-5')", "epsilon(Gaussian(3), '1e-5')"),
    ("Gaussian(3).get_delta_for_epsilon(1)", "delta(Gaussian(3), 1)"),
    ("Gaussian(3).tradeoff(alpha='0.1')", "beta(Gaussian(3), '0.1')"),
    ("Laplace(4).epsilon()", "epsilon(Laplace(4), delta=0)"),
    ("Laplace(4).add_noise(2, rng=RNG(1))", "Laplace(4).release(2, rng=RNG(1))"),
    ("calibrate('Laplace', epsilon=1, sensitivity=3).scale", "exact(3)"),
    ("[*delta(Gaussian(3), 1)][1]", "delta(Gaussian(3), 1).upper"),
    ("ACCOUNT.compose(Laplace(4), 2)", "ACCOUNT.history[-1]"),
    ("ACCOUNT.get_epsilon(0)", "ACCOUNT.epsilon(0)"),
]


@pytest.mark.parametrize(("others", "own"), SAME)
def test_what_others_write_is_the_same(others: str, own: str) -> None:
    names = {**{name: getattr(dpassay, name) for name in UNTYPED.__all__}, "np": np}
    account = dpassay.Account()
    account.spend("Laplace(4)")
    names |= {"RNG": np.random.default_rng, "ACCOUNT": account}
    assert eval(others, names) == eval(own, names)


def test_a_sampling_rate_is_enough_for_poisson_batches() -> None:
    rate = UNTYPED.dpsgd(sigma=1, sample_rate="1/100", num_steps=10, target_delta="1e-5")
    sizes = dpassay.dpsgd(1, 10, 1000, steps=10, delta="1e-5")
    assert rate.epsilon == sizes.epsilon
    assert float(rate) == float(sizes.epsilon)
    with pytest.raises(InvalidInputError, match="sample_rate"):  # a shuffle needs the size
        UNTYPED.dpsgd(1, sample_rate="1/100", steps=10, delta="1e-5", sampling="shuffle")


@pytest.mark.parametrize(
    "code",
    ["Gaussian(sigma=1, standard_deviation=2)", "Gaussian(1, sigma=2)"],
)
def test_an_argument_is_given_once(code: str) -> None:
    with pytest.raises(InvalidInputError, match="sigma"):
        eval(code)


def test_data_name_an_argument_in_one_way() -> None:
    for text in ("Gaussian(sigma=3)", "Laplace(b=1)"):
        with pytest.raises(InvalidInputError, match="Did you mean"):
            dpassay.parse(text)


def test_no_alias_is_a_different_number() -> None:
    with pytest.raises(InvalidInputError, match="the square of sigma"):
        UNTYPED.DiscreteGaussian(sigma=2)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_another_library_is_answered_with_the_one_here(name: str) -> None:
    assert NAMES[name] in UNTYPED.__all__
    if not hasattr(dpassay, name):
        with pytest.raises(AttributeError, match=f"'{NAMES[name]}'"):
            getattr(dpassay, name)


def test_the_table_of_aliases_is_documented() -> None:
    from pathlib import Path

    page = Path(__file__).parents[1] / "docs" / "interoperation.md"
    text = page.read_text("utf-8")
    assert not [name for name in ALIASES if f"`{name}`" not in text]


def test_dir_is_short_and_each_name_is_there() -> None:
    noise = Gaussian(1)
    assert len(dir(noise)) <= 16
    assert all(hasattr(noise, name) for name in dir(noise))
    assert {*QUESTIONS} <= {*dir(noise)}


def test_a_method_explains_itself() -> None:
    assert "δ" in (Gaussian(1).delta.__doc__ or "")
    with pytest.raises(InvalidInputError, match="epsilon"):
        Gaussian(1).delta()
    with pytest.raises(TypeError):
        _ = Gaussian(1) + 3


def test_types_tell_one_answer_from_several() -> None:
    one: dpassay.Interval = dpassay.epsilon(Gaussian(1), delta="1e-5")
    many: list[dpassay.Interval] = dpassay.epsilon(Gaussian(1), delta=["1e-5", "1e-6"])
    assert many[0] == one

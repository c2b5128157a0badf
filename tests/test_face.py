"""What a newcomer types in Python: it works, or the answer says what to type."""

from __future__ import annotations

import contextlib
import math
import typing
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay import Gaussian
from dpassay.accountant.aliases import ALIASES, NAMES
from dpassay.accountant.core.asking import QUESTIONS
from dpassay.verifier import report

NOISE = dpassay.Gaussian("1.1")


def test_every_picture_may_be_drawn_into_axes() -> None:
    from matplotlib.figure import Figure

    account = dpassay.Account(epsilon=3, delta=1e-5)
    account.spend("Laplace(5)")
    compared = dpassay.compare("Count()", epsilon=1, only=["Laplace"])
    finding = dpassay.verify("Gaussian(3) is (1, 1e-5)-DP")
    for thing in (NOISE, NOISE.profile(), account, compared, finding):
        figure = Figure()
        axes = figure.add_subplot()
        assert thing.plot(ax=axes) is figure
        assert figure.axes == [axes]
        assert axes.lines or axes.patches


def test_every_question_takes_a_text() -> None:
    from dpassay.accountant.ask import __all__ as questions

    arguments = {"maximum_quantile": {"coordinates": 3}}
    for name in questions:
        ask = getattr(dpassay, name)
        for at in ((), ("0.5",), (2,)):
            with contextlib.suppress(dpassay.DpassayError):  # no AttributeError, nor TypeError
                ask("Laplace(1)", *at, **arguments.get(name, {}))


def test_a_profile_has_what_was_asked() -> None:
    found = dpassay.profile("Gaussian(1)", epsilon=[0, 1], delta=1e-5, mu=True)
    with pytest.raises(KeyError, match="was not asked"):
        _ = found["beta"]


class TestFloats:
    def test_the_checker_reads_it_too(self) -> None:
        claim = dpassay.ApproximateDP(
            id="floats",
            mechanism="Gaussian(float(1.1), 'float(1/3)')",
            epsilon="float(0.5)",
            delta="0.1",
        )
        _, certificate = dpassay.certify(claim)
        assert certificate is not None
        assert dpassay.check(certificate).outcome.value == "VALID"
        certificate["theorem"]["mechanism"] = "Gaussian(float(1.1), 'float(1e400)')"
        assert dpassay.check(certificate).outcome.value == "INVALID"
        odd: dict[Any, Any] = {1: 2}
        assert dpassay.check(odd).outcome.value == "INVALID"


def test_print_shows_what_was_decided() -> None:
    compared = dpassay.compare(epsilon=1, delta=1e-6, workload="Count()", only=["Laplace"])
    first, about, (header, *rows), _ = (part.splitlines() for part in str(compared).split("\n\n"))
    assert first[0].startswith("Use `DiscreteLaplace(scale=")
    assert [line.split()[0] for line in about] == ["budget", "workload", "release"]
    assert header.split()[:3] == ["mechanism", "verdict", "noise"]
    assert len(rows) == len(compared.rows) + 1  # and a paper's candidate, struck out


class TestTheNoiseOfATrainingRun:
    def test_it_has_the_epsilon_and_a_little_less_has_not(self) -> None:
        settings: dict[str, Any] = {
            "batch_size": 256,
            "dataset_size": 60000,
            "epochs": 30,
            "delta": "1e-5",
        }
        found = dpassay.dpsgd_noise(3, **settings)
        assert str(found.noise_multiplier) == "0.817603254606"
        assert found.epsilon.upper <= Decimal("3.00000001")
        less = dpassay.dpsgd("0.8176", **settings)
        assert less.epsilon > 3

    @pytest.mark.slow
    @pytest.mark.parametrize("words", [{"sampling": "without-replacement"}, {"group": 2}])
    def test_where_two_bounds_are_known_the_upper_one_is_kept(self, words: dict[str, Any]) -> None:
        found = dpassay.dpsgd_noise(2, 100, 10000, steps=500, delta="1e-5", **words)
        assert Decimal("1.98") <= found.epsilon.upper <= 2


class TestAuditsInWords:
    """Audits take the words of `verify`."""

    def test_a_claim_in_words_is_the_claim(self) -> None:
        options: dict[str, Any] = {"samples": 5000, "seed": 3}
        said = dpassay.audit("Laplace(1)", epsilon=1, delta="1e-5", **options)
        given = dpassay.audit(dpassay.Laplace(1), (1, "1e-5"), **options)
        assert isinstance(said, dpassay.AuditResult)
        assert isinstance(given, dpassay.AuditResult)
        theorems = [each.certificate()["theorem"] for each in (said, given)]
        assert theorems[0]["claim"] == theorems[1]["claim"]
        assert (said.p_value, said.outcome) == (given.p_value, given.outcome)
        assert dpassay.audit("Gaussian(1)", mu=2, **options).verdict == "NOT_REFUTED"


def test_an_event_shows_its_own_difference_where_the_true_delta_is_only_bounded() -> None:
    found = dpassay.verify("Shuffled(Guaranteed(1), users=2000) is (0.01, 1e-6)-DP")
    shown = dict(report.details(found))
    p, q = (float(text) for text in shown["P(S), Q(S)"].split(", "))
    excess = float(shown["so"].partition(" > ")[0].rpartition(" = ")[2])
    assert excess == pytest.approx(p - math.exp(0.01) * q, rel=1e-8, abs=0)
    assert " to " in shown["true delta"].rpartition(": ")[2]  # times: both ends


# Programs as other libraries would have them: argument names, operators, methods, hints.


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


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_another_library_is_answered_with_the_one_here(name: str) -> None:
    assert NAMES[name] in UNTYPED.__all__
    if not hasattr(dpassay, name):
        with pytest.raises(AttributeError, match=f"'{NAMES[name]}'"):
            getattr(dpassay, name)


def test_the_table_of_aliases_is_documented() -> None:

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
    with pytest.raises(TypeError):
        _ = Gaussian(1) + 3


def test_types_tell_one_answer_from_several() -> None:
    one: dpassay.Interval = dpassay.epsilon(Gaussian(1), delta="1e-5")
    many: list[dpassay.Interval] = dpassay.epsilon(Gaussian(1), delta=["1e-5", "1e-6"])
    assert many[0] == one

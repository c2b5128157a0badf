"""What a newcomer types in Python: it works, or the answer says what to type."""

from __future__ import annotations

import contextlib
import math
import typing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay import Gaussian
from dpassay.accountant.aliases import ALIASES, NAMES
from dpassay.accountant.core.asking import QUESTIONS
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.interval import Interval
from dpassay.verifier import report
from tests.tables import rows

NOISE = dpassay.Gaussian("1.1")
WIDE = Interval(Decimal("0.0512"), Decimal("0.0559"))


class TestTheFiveMistakesOfTheFirstUsers:
    def test_verify_takes_the_words_of_the_command_line(self) -> None:
        found = dpassay.verify(NOISE, epsilon=1, delta=1e-5)
        assert found.verdict.value == "REFUTED"
        assert dpassay.verify("Gaussian(4)", epsilon=1, delta="1e-5").verdict.value == "HOLDS"
        assert dpassay.verify("Gaussian(2)", mu="0.5").verdict.value == "HOLDS"
        assert dpassay.verify("Gaussian(2)", rho="0.125").verdict.value == "HOLDS"

    def test_verify_reads_a_claim_as_it_is_printed(self) -> None:
        cases: list[tuple[str, dict[str, Any]]] = [
            ("Gaussian(4)", {"epsilon": 1, "delta": "1e-5"}),
            ("Laplace(scale='20/3')", {"epsilon": "0.14"}),
            ("Gaussian(2)", {"mu": "1/2"}),
            ("Gaussian(2)", {"rho": "0.125", "adjacency": "add-remove"}),
        ]
        for mechanism, words in cases:
            named = dpassay.verify(mechanism, **words)
            said = dpassay.verify(named.formal)
            assert (said.formal, said.verdict, said.true) == (
                named.formal,
                named.verdict,
                named.true,
            )

    @pytest.mark.parametrize(
        "said",
        [
            "(ε=4/5, δ=1e-5)-DP",
            "(ε, δ) = (0.8, 1e-5)",
            "(ε, δ)-DP with ε=0.8 and δ=1e-5",
            "(0.8, 1e-5)-differentially private under add/remove",
            "(δ, ε) = (1e-5, 0.8)",
        ],
    )
    def test_a_claim_may_be_copied_from_a_paper(self, said: str) -> None:
        found = dpassay.verify(f"Gaussian(5) is {said}")
        assert found.verdict.value == "HOLDS"
        assert found.claimed == {"epsilon": "0.8", "delta": "1e-5"}

    def test_so_may_other_notions(self) -> None:
        words = {
            "rho-zCDP with rho=0.02": "HOLDS",
            "ρ-zCDP for ρ = 0.0199": "REFUTED",
            "(α, ε)-RDP with α=10 and ε=0.2": "HOLDS",
            "μ-GDP with μ=1/5": "HOLDS",
        }
        for said, verdict in words.items():
            assert dpassay.verify(f"Gaussian(5) is {said}").verdict.value == verdict
        assert dpassay.verify("Gaussian(5)", order=10, renyi="0.2").verdict.value == "HOLDS"

    def test_an_audit_reads_the_same_claims(self) -> None:
        results = [
            dpassay.audit("Laplace(1) is 0.5-DP", seed=1),
            dpassay.audit("Laplace(1)", "0.5-DP", seed=1),
            dpassay.audit("Laplace(1)", "ε=0.5", seed=1),
            dpassay.audit("Laplace(1)", epsilon="0.5", seed=1),
        ]
        assert len({str(result) for result in results}) == 1
        assert results[0].refuted

    def test_calibrate_and_compare_take_them_too(self) -> None:
        found = dpassay.calibrate("Gaussian", epsilon=1, delta="1e-5")
        assert repr(found.mechanism) == "Gaussian(standard_deviation='3.73063163482')"
        assert (
            repr(dpassay.calibrate(dpassay.Laplace, epsilon=2).mechanism) == "Laplace(scale='0.5')"
        )
        compared = dpassay.compare(epsilon=1, delta="1e-6", workload="Count()", only=["Laplace"])
        assert len(repr(compared)) < 200
        assert compared.to_dict()["workload"] == "Count()"

    def test_one_law_is_best_once(self) -> None:
        found = dpassay.compare("Count()", epsilon=1, delta="1e-6")
        (best,) = found.best("variance")
        assert best.candidate.name == "optimal integer noise"
        assert "functools" not in repr(best)

    def test_a_method_of_another_library_is_answered_with_what_to_write(self) -> None:
        with pytest.raises(AttributeError, match=r"mechanism \* 10"):
            _ = NOISE.compose  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"\.spend\(dpassay\.PoissonSubsampled"):
            _ = dpassay.Account().step  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match="Did you mean 'remaining'"):
            _ = dpassay.Account().remain  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"certificate = dpassay\.certify"):
            _ = dpassay.verify(NOISE, epsilon=9).certificate  # type: ignore[attr-defined]
        assert not hasattr(NOISE, "other")

    def test_a_mechanism_may_be_a_text(self) -> None:
        assert dpassay.delta("Gaussian(1.1)", 1) == dpassay.delta(NOISE, 1)
        assert dpassay.mean_squared_error("Laplace(2)") == 8
        assert dpassay.estimate_delta("Gaussian(1.1)", 1) == pytest.approx(0.0961455, abs=1e-6)

    def test_an_answer_is_a_number(self) -> None:
        answer = dpassay.delta(NOISE, 1)
        assert float(answer) == pytest.approx(0.09614553598374448, rel=1e-9, abs=0)
        assert answer < 0.1
        assert answer >= Fraction(1, 100)
        assert not answer > "0.1"
        assert f"{answer:.3g} {answer:.1%} {answer:>8.2f}" == "0.0961 9.6%     0.10"
        assert round(answer, 3) == Decimal("0.096")
        assert round(answer) == 0

    def test_lists_and_arrays_of_epsilon(self) -> None:
        one, two = dpassay.delta(NOISE, 1), dpassay.delta(NOISE, 2)
        assert dpassay.delta(NOISE, [1, "2"]) == [one, two]
        assert dpassay.delta(NOISE, epsilon=np.array([1, 2])) == [one, two]
        assert dpassay.delta(NOISE, np.linspace(1.0, 2.0, 2)) == [one, two]
        assert dpassay.delta(NOISE, np.float64(1)) == one
        assert np.asarray(dpassay.delta(NOISE, [1, 2]), dtype=float).shape == (2,)

    def test_a_question_about_training_is_one_line(self) -> None:
        run = dpassay.dpsgd(
            noise_multiplier="1.1",
            batch_size=256,
            dataset_size=60000,
            epochs=30,
            delta="1e-5",
            sampling="poisson",
        )
        text = 'Composed(PoissonSubsampled(Gaussian(1.1), "256/60000"), 7032)'
        exact = dpassay.epsilon(
            text, "1e-5", adjacency="add-remove", relative_width=Fraction(1, 10**6)
        )
        assert run.epsilon.overlaps(exact)
        assert run.adjacency.value == "add-remove"
        assert len(repr(run)) < 200
        assert "add-remove" in str(run)
        assert "probability 256/60000, independently" in str(run)


@pytest.mark.parametrize(("code", "remedy"), rows(Path(__file__).with_name("mistakes.txt")))
def test_a_mistake_is_answered_with_what_to_type(code: str, remedy: str) -> None:
    public: list[str] = dpassay.__all__  # type: ignore[attr-defined]
    names = {name: getattr(dpassay, name) for name in public}
    names |= {"NOISE": NOISE, "WIDE_OPEN": Interval(Decimal(0), Decimal(1))}
    with pytest.raises(dpassay.DpassayError) as caught:
        eval(code, names)
    assert remedy in str(caught.value)


def test_an_unknown_name_is_answered_with_a_near_one() -> None:
    with pytest.raises(AttributeError, match="Did you mean 'Gaussian'"):
        _ = dpassay.Gausian  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Did you mean 'dpsgd_noise'"):
        _ = dpassay.get_noise_multiplier  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Did you mean 'dpsgd'"):
        _ = dpassay.RDPAccountant  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Write its density: AdditiveNoise"):
        _ = dpassay.StudentT  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"dpassay\.__all__"):
        _ = dpassay.quux  # type: ignore[attr-defined]


def test_python_has_the_commands_of_the_command_line() -> None:
    assert dpassay.training is dpassay.dpsgd
    asked = dpassay.profile("Gaussian(3)", tpr_at_fpr=["0.1"], total_variation=True)
    assert asked["true_positive_rate"] == [dpassay.power("Gaussian(3)", "0.1")]
    assert asked["total_variation"] == [dpassay.delta("Gaussian(3)", 0)]
    shared: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "only": ["Gaussian"]}
    (row, *_) = dpassay.compare("Count()", releases=2, **shared).rows
    least = dpassay.calibrate("Gaussian", epsilon=1, delta="1e-6", count=2)
    assert row.found.mechanism == least.mechanism
    assert dpassay.convert(pure=1, order=8) == dpassay.renyi(dpassay.RandomizedResponse(1), 8)
    assert dpassay.convert(zcdp="0.5", order=3) == Decimal("1.5")
    assert dpassay.convert(mu=1, epsilon=1) == dpassay.delta("Gaussian(1)", 1)
    assert dpassay.convert(mu="sqrt(2)", epsilon=1) == dpassay.delta("Gaussian('sqrt(1/2)')", 1)
    roots = dpassay.convert(approximate="(sqrt( 2 ), 1e-5)", alpha="0.1")
    assert roots == dpassay.convert(approximate=("sqrt(2)", "1e-5"), alpha="0.1")
    assert dpassay.convert(renyi=(16, "0.7"), delta="1e-6").digits >= 12
    _, certificate = dpassay.certify("Laplace(2)", epsilon="0.5")
    assert certificate is not None
    assert str(dpassay.check(certificate)).startswith("VALID")


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


class TestComparisonsAreDecidedOrRefused:
    def test_a_number_outside_is_decided(self) -> None:
        assert WIDE > 0.05
        assert Decimal("0.06") > WIDE
        assert WIDE != 0.05
        assert dpassay.exact("sqrt(2)") > WIDE
        assert float("inf") > WIDE
        assert max(WIDE, dpassay.delta(NOISE, 1)) == dpassay.delta(NOISE, 1)

    def test_ends_count(self) -> None:
        assert Decimal("0.0512") <= WIDE
        assert Decimal("0.0559") >= WIDE
        assert not Decimal("0.0512") > WIDE
        assert not Decimal("0.0559") < WIDE

    @pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
    def test_a_number_inside_is_refused_with_both_ends(self, sign: str) -> None:
        with pytest.raises(dpassay.UndecidedError, match=r"0\.0512, 0\.0559.*relative_width"):
            eval(f"WIDE {sign} 0.055")

    def test_an_exact_answer_is_its_number(self) -> None:
        one = dpassay.variance("Gaussian(1)")[0]
        assert one == 1
        assert {one: "kept"}[one] == "kept"
        assert hash(one) == hash(Decimal(1)) == hash(1)

    def test_what_is_no_number(self) -> None:
        assert WIDE != "0.0512"
        with pytest.raises(TypeError, match="not list"):
            _ = WIDE < [1]  # type: ignore[operator]
        with pytest.raises(dpassay.InvalidInputError, match="NaN"):
            _ = Decimal("NaN") > WIDE


class TestDigits:
    def test_a_format_is_of_certain_digits(self) -> None:
        assert f"{WIDE:.1f}" == "0.1"
        assert f"{WIDE:.2g}" == "[0.051, 0.056]"
        assert f"{WIDE}" == str(WIDE)
        with pytest.raises(dpassay.InvalidInputError, match=r"such as '\.3g'"):
            format(WIDE, ".3q")

    def test_rounding_is_of_the_number(self) -> None:
        assert round(WIDE, 1) == Decimal("0.1")
        with pytest.raises(dpassay.UndecidedError, match="Round to fewer"):
            round(WIDE, 2 + 1)

    def test_digits(self) -> None:
        assert WIDE.digits == 1
        assert Interval(Decimal(0), Decimal(1)).digits == 0
        assert Interval(Decimal(2), Decimal(2)).digits == float("inf")
        assert repr(Interval(Decimal(2), Decimal(2))) == "Interval(2, exact)"
        assert repr(WIDE) == "Interval([0.0512, 0.0559])"
        assert WIDE.to_dict() == {"lower": "0.0512", "upper": "0.0559"}

    def test_enormous_exponents(self) -> None:
        tiny = Interval(Decimal("1e-1000000000"), Decimal("1.1e-1000000000"))
        assert tiny < 1e-300
        assert float(tiny) == 0
        assert f"{tiny:.1e}" == "[1.0e-1000000000, 1.1e-1000000000]"


def test_profile_in_one_call() -> None:
    found = dpassay.profile("Gaussian(1)", epsilon=[0, 1], delta=1e-5, mu=True)
    assert found["delta"] == dpassay.delta("Gaussian(1)", [0, 1])
    assert found["mu"] == [Interval(Decimal(1), Decimal(1))]
    assert len(found.to_dict()["answers"]) == 4
    assert "0.126936737507" in str(found)
    assert len(repr(found)) < 200
    with pytest.raises(KeyError, match="was not asked"):
        _ = found["beta"]
    assert {"delta", "epsilon", "mu", "rho", "mse"} == {
        answer.name for answer in dpassay.profile(NOISE).answers
    }


def test_groups_and_samples_without_replacement() -> None:
    alone = dpassay.dpsgd(1, 10, 1000, steps=1, delta="1e-5")
    group = dpassay.dpsgd(1, 10, 1000, steps=1, delta="1e-5", group=2)
    fixed = dpassay.dpsgd(1, 10, 1000, steps=1, delta="1e-5", sampling="without-replacement")
    assert group.epsilon > alone.epsilon
    assert fixed.adjacency.value == "replace-one"


class TestFloats:
    def test_a_float_is_shown_as_one(self) -> None:
        found = dpassay.verify("Gaussian(3)", epsilon=1, delta=1e-5)
        assert "is (1, 1e-05)-DP" in str(found)
        assert "delta=1e-05" in repr(found)
        assert found.claimed["delta"] == str(dpassay.exact(1e-5))  # in data, to the last digit
        assert "delta=1e-05" in str(dpassay.calibrate("Gaussian", epsilon=1, delta=1e-5))

    def test_the_notation_is_short_and_exact(self) -> None:
        noise = dpassay.Gaussian(1.1)
        assert repr(noise) == "Gaussian(standard_deviation=float(1.1))"
        assert dpassay.parse(repr(noise)) == noise != dpassay.Gaussian("1.1")
        found = dpassay.verify(noise, epsilon=0.1, delta=1e-5)
        assert "Gaussian(standard_deviation=1.1) is (0.1, 1e-05)-DP" in str(found)
        again = dpassay.verify(f"{noise!r} is (float(0.1), float(1e-05))-DP")
        assert (again.formal, again.true) == (found.formal, found.true)

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

    def test_a_decimal_that_is_no_float_is_shown_whole(self) -> None:
        digits = "0.1" + 25 * "0" + "1"
        assert digits in str(dpassay.verify("Gaussian(3)", rho=digits))


class TestWrongWords:
    @pytest.mark.parametrize("ask", ["verify", "certify", "compare"])
    def test_an_unknown_word_is_answered_with_the_known_one(self, ask: str) -> None:
        about = {"workload": "Count()"} if ask == "compare" else {}
        positional = [] if ask == "compare" else ["Gaussian(3)"]
        with pytest.raises(dpassay.InvalidInputError, match=r"'epsilom'.*'epsilon'"):
            getattr(dpassay, ask)(*positional, epsilom=1, delta=1e-5, **about)

    def test_settings_of_a_training_run_are_named(self) -> None:
        with pytest.raises(dpassay.InvalidInputError, match=r"dataset_size, epochs=…, delta=…\)"):
            dpassay.dpsgd(1.1, 256, 60000, 30, 1e-5)  # type: ignore[call-arg]


def test_a_true_claim_with_epsilon_below_delta_says_which_comes_first() -> None:
    said = "if they are swapped, claim (0.5, 1e-5)-DP"
    assert said in str(dpassay.verify("Gaussian(3) is (1e-5, 0.5)-DP"))
    assert "swapped" not in str(dpassay.verify("Gaussian(3) is (0, 0.5)-DP"))


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

    def test_no_noise_is_enough_for_nothing(self) -> None:
        with pytest.raises(dpassay.InvalidInputError, match="epsilon=0 > 0"):
            dpassay.dpsgd_noise(0, 256, 60000, epochs=30, delta="1e-5")
        with pytest.raises(dpassay.InvalidInputError, match="delta=0 > 0"):
            dpassay.dpsgd_noise(1, 256, 60000, epochs=30, delta=0)
        with pytest.raises(dpassay.InvalidInputError, match="truncated_batch_size"):
            dpassay.dpsgd_noise(
                1, 256, 60000, epochs=30, delta="1e-5", sampling="truncated-poisson"
            )


def test_a_claim_is_said_in_several_ways() -> None:
    claims = [
        "Laplace(1) is 1-DP, for neighbours by replace-one",
        "Laplace(1) satisfies 1-DP under replace-one.",
        "Laplace(1) is (1)-DP, under replace-one",
        "Laplace(1)   is 1-DP,  under   replace-one",
    ]
    assert len({dpassay.verify(claim).formal for claim in claims}) == 1


@pytest.mark.parametrize(
    "claim",
    [
        "Laplace(1) is (2, 0.5)-RDP for groups of 3",
        "Laplace(1) is 1-DP for groups of 3",
        "Laplace(1) is 1-DP (replace-one) except with probability 0.1",
        "Gaussian(4) is 0.03-zCDP, for neighbours by add-remove but not replace-one",
        "10 releases of Gaussian(4) are (1, 1e-5)-DP",
    ],
)
def test_a_claim_with_other_words_is_refused_with_the_forms_that_are_read(claim: str) -> None:
    with pytest.raises(InvalidInputError, match="nothing after it but"):
        dpassay.verify(claim)


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

    def test_two_claims_are_answered_with_one(self) -> None:
        with pytest.raises(InvalidInputError, match="Name one claim: epsilon=1"):
            dpassay.audit("Laplace(1)", epsilon=1, mu=1)
        with pytest.raises(InvalidInputError, match="claim=1 or epsilon"):
            dpassay.audit("Laplace(1)", 1, eps=1)  # type: ignore[call-overload]
        with pytest.raises(InvalidInputError, match="Name one claim: epsilon=1"):
            dpassay.assert_private("Laplace(1)", delta=1e-5)


def test_an_event_shows_its_own_difference_where_the_true_delta_is_only_bounded() -> None:
    found = dpassay.verify("Shuffled(Guaranteed(1), users=2000) is (0.01, 1e-6)-DP")
    shown = dict(report.details(found))
    p, q = (float(text) for text in shown["P(S), Q(S)"].split(", "))
    excess = float(shown["so"].partition(" > ")[0].rpartition(" = ")[2])
    assert excess == pytest.approx(p - math.exp(0.01) * q, rel=1e-8, abs=0)
    assert " to " in shown["true delta"].rpartition(": ")[2]  # times: both ends


@pytest.mark.parametrize(
    ("solve", "kind"),
    [
        (dpassay.optimal_count_noise, "CountNoiseProblem"),
        (dpassay.optimal_integer_noise, "IntegerNoiseProblem"),
        (dpassay.optimal_gaussian_shape, "GaussianShapeProblem"),
    ],
)
@pytest.mark.parametrize("given", [3, "x", None])
def test_a_problem_is_asked_for_by_its_name(solve: Any, kind: str, given: object) -> None:
    with pytest.raises(InvalidInputError, match=rf"to be a {kind}. Make one: dpassay\.{kind}"):
        solve(given)


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


def test_a_sampling_rate_is_enough_for_poisson_batches() -> None:
    rate = UNTYPED.dpsgd(sigma=1, sample_rate="1/100", num_steps=10, target_delta="1e-5")
    sizes = dpassay.dpsgd(1, 10, 1000, steps=10, delta="1e-5")
    assert rate.epsilon == sizes.epsilon
    assert float(rate) == float(sizes.epsilon)
    with pytest.raises(InvalidInputError, match="sample_rate"):  # a shuffle needs the size
        UNTYPED.dpsgd(1, sample_rate="1/100", steps=10, delta="1e-5", sampling="shuffle")


@pytest.mark.parametrize(
    "code", ["Gaussian(sigma=1, standard_deviation=2)", "Gaussian(1, sigma=2)"]
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

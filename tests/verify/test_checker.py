"""The independent checker: round trips, tampering with and without a new seal."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.mechanisms import Gaussian
from dpassay.accountant.numbers.exact import exact
from dpassay.verifier import certificate, checker, seal
from dpassay.verifier.claims import ApproximateDP
from dpassay.verifier.claims.privacy import hockey
from tests.verify.forge import CLAIMS, Data, certified, decided, put, sealed

ASSUMED = {"profile/curve-of-a-mechanism": ["that the claimed curve does not increase"]}
"""A curve that cannot be evaluated over intervals."""


@pytest.mark.parametrize("identity", CLAIMS)
def test_every_certificate_is_valid_and_nothing_is_taken_as_given_in_silence(identity: str) -> None:
    checked = checker.check(certified(identity))
    assert checked.problems == []
    assert checked.id == identity
    assert checked.taken_as_given == ASSUMED.get(identity, [])
    assert checked.valid == (identity not in ASSUMED)


def capital(value: Any) -> Any:
    """Return data whose ends have the exponent E."""
    if isinstance(value, list):
        return [capital(each) for each in value]
    if not isinstance(value, dict):
        return value
    ends = value.keys() == {"lower", "upper"}
    return {k: v.replace("e", "E") if ends else capital(v) for k, v in value.items()}


def test_ends_may_have_a_capital_e() -> None:
    """As certificates had them before."""
    claim = 'kind = "approximate-dp"\nmechanism = "Gaussian(1)"\nepsilon = 6\ndelta = "1e-12"'
    _, data = decided(claim)
    older = sealed(capital(data))
    assert "E-" not in json.dumps(data)
    assert "E-" in json.dumps(older)
    assert checker.check(data).valid
    assert checker.check(older).valid


def digits(data: Data) -> list[tuple[str, int]]:
    """Return (path, index) of every digit of every leaf."""
    return [
        (path, index)
        for path, leaf in seal.leaves({k: v for k, v in data.items() if k != "seal"})
        for index, sign in enumerate(str(leaf))
        if sign.isdecimal()
    ]


def changed(value: Any, path: str, index: int, step: int, at: str = "") -> Any:
    """Return data with one digit of the leaf at `path` changed."""
    if isinstance(value, dict) and value:
        return {
            k: changed(v, path, index, step, f"{at}.{k}" if at else k) for k, v in value.items()
        }
    if isinstance(value, list) and value:
        return [changed(v, path, index, step, f"{at}[{i}]") for i, v in enumerate(value)]
    if at != path:
        return value
    text = str(value)
    digit = str((int(text[index]) + step) % 10)
    found = text[:index] + digit + text[index + 1 :]
    return type(value)(found)


@given(data=st.data(), identity=st.sampled_from(sorted(CLAIMS)), step=st.integers(1, 9))
def test_any_changed_digit_is_found_at_its_field(
    data: st.DataObject, identity: str, step: int
) -> None:
    original = certified(identity)
    places = [place for place in digits(original) if place[0] != "schema_version"]
    path, index = data.draw(st.sampled_from(places))
    tampered = changed(original, path, index, step)
    assert tampered != original
    checked = checker.check(tampered)
    assert not checked.valid
    assert [field for field, _ in checked.problems] == [path]


@given(data=st.data(), identity=st.sampled_from(sorted(CLAIMS)), step=st.integers(1, 9))
def test_a_leading_digit_of_an_enclosure_cannot_be_changed_under_a_new_seal(
    data: st.DataObject, identity: str, step: int
) -> None:
    original = certified(identity)
    leaves = dict(seal.leaves(original))

    def significant(path: str, index: int) -> int:
        mantissa = str(leaves[path]).split("e")[0]
        if index >= len(mantissa):  # a digit of the exponent
            return 1
        return len(mantissa[: index + 1].replace(".", "").lstrip("-0"))

    leading = [
        (path, index)
        for path, index in digits(original)
        if path.endswith((".lower", ".upper"))
        and ".law." not in path
        and 1 <= significant(path, index) <= 4  # an enclosure is relatively narrower than 1e-5
    ]
    if leading:
        path, index = data.draw(st.sampled_from(leading))
        assert not checker.check(sealed(changed(original, path, index, step))).valid


def test_a_digest_cannot_be_changed_either() -> None:
    data = certified("relation/equal")
    data["seal"]["route"] = "0" * 16
    assert [field for field, _ in checker.check(data).problems] == ["route"]


def _interval(path: str, text: str) -> Callable[[Data], None]:
    return put(path, {"lower": text, "upper": text})


def _both(*changes: Callable[[Data], None]) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        for entry in changes:
            entry(data)

    return change


HOLDS_CONCLUSION = _both(put("verdict", "HOLDS"), put("conclusion", "value <= delta"))

TAMPERED: list[tuple[str, Callable[[Data], None], str]] = [
    # an enclosure that does not hold the number
    ("approximate-dp/refuted", _interval("facts.0.p", "0.9"), "facts[0].p.lower"),
    ("approximate-dp/refuted", _interval("facts.0.q", "0.0001"), "facts[0].q.upper"),
    ("approximate-dp/holds", _interval("facts.0.value", "1e-40"), "facts[0].value.lower"),
    ("renyi-dp/refuted", _interval("facts.0.value", "14"), "facts[0].value.lower"),
    ("gaussian-dp/exact", _interval("facts.0.value", "0.2"), "facts[0].value.upper"),
    ("relation/refuted", _interval("facts.0.value", "0.9"), "facts[0].value.lower"),
    ("minimiser/refuted", _interval("facts.1.value", "0.1"), "facts[1].value.upper"),
    # an enclosure that holds too much
    ("approximate-dp/refuted", put("facts.0.p.lower", "0"), "facts[0].p"),
    ("relation/refuted", put("facts.1.value.upper", "0.9"), "facts[1].value"),
    # another pair, event, order, point
    ("approximate-dp/refuted", _interval("facts.0.law.mu", "0.5"), "facts[0]"),
    ("pure-dp/holds", put("facts.0.law.shift", 1), "facts[0]"),
    ("pure-dp/holds", put("facts.0.law.law", "laplace"), "facts[0].law.scale"),
    ("approximate-dp/table", put("facts.0.law.p", ["1/4", "1/4", "1/2"]), "facts[0]"),
    ("approximate-dp/laplace-vector", put("facts.0.law.multiples", [1, 2, 2, 5]), "facts[0]"),
    ("approximate-dp/refuted", put("facts.0.loss_above", "0.5"), "facts[0].p.upper"),
    ("renyi-dp/holds", put("facts.0.order", "1.5"), "facts[0].value.lower"),
    ("monotone/refuted", put("facts.1.variables.x", "0.5"), "facts[1].variables"),
    ("minimiser/holds", put("facts.0.variables.k", "17"), "facts[0].value.upper"),
    # another mechanism, case or statement
    ("approximate-dp/refuted", put("mechanism", "Gaussian(standard_deviation=2)"), "mechanism"),
    ("approximate-dp/refuted", put("mechanism", "Gaussian(standard_deviation=3, l2_sensitivity=2)"),
     "mechanism"),
    ("relation/equal", put("mechanism", "Laplace(scale=1)"), "mechanism"),
    ("approximate-dp/refuted", put("case.s", "4"), "case"),
    ("approximate-dp/refuted", put("case", {}), "case"),
    ("relation/refuted", put("case.x", "2"), "case"),
    ("approximate-dp/refuted", put("claimed.delta", "1e-6"), "claimed.delta"),
    ("approximate-dp/refuted", put("claimed.mu", "1"), "claimed.mu"),
    ("minimiser/holds", put("claimed.minimiser", "k = 21"), "claimed.minimiser"),
    ("printed-number/holds", put("claimed.printed", "0.84135"), "claimed.printed"),
    ("approximate-dp/refuted", put("claim.delta", "1e-6"), "claimed.delta"),
    (
        "approximate-dp/refuted",  # a true claim, "refuted"
        _both(put("claim.delta", "0.1"), put("claimed.delta", "0.1")),
        "conclusion",
    ),
    (
        "approximate-dp/holds",  # a false claim that "holds"
        _both(put("claim.epsilon", "1/(2*s)"), put("claimed.epsilon", "0.5")),
        "facts",
    ),
    ("printed-number/refuted", _both(put("claim.printed", "0.84134"),
     put("claimed.printed", "0.84134")), "conclusion"),
    # another verdict or conclusion
    ("approximate-dp/refuted", put("verdict", "HOLDS"), "facts[0]"),
    ("approximate-dp/refuted", HOLDS_CONCLUSION, "facts[0]"),
    ("approximate-dp/refuted", put("conclusion", "p > 0"), "conclusion"),
    ("relation/refuted", put("conclusion", "left < right"), "conclusion"),
    ("monotone/supported", put("verdict", "HOLDS"), "verdict"),
    ("approximate-dp/supported", put("verdict", "HOLDS"), "verdict"),  # a grid is no proof
    ("relation/equal", put("verdict", "REFUTED"), "conclusion"),
    ("relation/equal", put("verdict", "TRUE"), "verdict"),
    # facts that are missing, of the wrong kind, or of another expression
    ("approximate-dp/refuted", put("facts", []), "facts"),
    ("relation/equal", put("facts.0.expression", "1/2"), "facts[0].expression"),
    ("relation/equal", put("facts.0.name", "right"), "facts[0].expression"),
    ("zcdp/gaussian", put("facts.0.name", "gaussian_delta"), "facts[0]"),
    # a sweep that leaves something out
    ("profile/holds", put("facts.1.cuts", ["1", "5"]), "verdict"),
    ("profile/holds", put("facts.1.cuts", ["0", "5"]), "verdict"),
    ("tradeoff/holds", put("facts.0.cuts", ["0.01", "0.2"]), "verdict"),
    ("gaussian-dp/swept", put("facts.2.cuts", ["0", "0.4"]), "verdict"),
    # statements about a range, false between the cases
    ("relation/swept", _both(put("claim.claim", "2*log(1.25/d)/e**2 >= 1e6*e*(0.5 - e)"),
     put("claimed.relation", "2*log(1.25/d)/e**2 >= 1e6*e*(0.5 - e)"),
     put("claim.for_all.e.grid", ["0.5"]), put("case.e", "0.5"),
     put("facts.1.expression", "1e6*e*(0.5 - e)"), _interval("facts.1.value", "0")), "claim.proof"),
    # what cannot be evaluated
    ("relation/equal", put("claim.kind", "wish"), "claim.kind"),
    ("approximate-dp/refuted", put("claim.mechanism", "Gaussian("), "mechanism"),
    ("approximate-dp/refuted", put("claim.epsilon", "__import__('os')"), "claimed"),
    ("approximate-dp/refuted", put("facts.0.loss_above", "x"), "facts[0]"),
    ("approximate-dp/refuted", put("facts.0.p.lower", "1e-3x"), "facts[0].p.lower"),
    ("approximate-dp/refuted", put("facts.0.p", "0.5"), "facts[0].p"),
    ("approximate-dp/refuted", put("surplus", "1"), ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("identity", "change", "field"), TAMPERED, ids=[f"{i}-{t[0]}" for i, t in enumerate(TAMPERED)]
)
def test_mathematics_finds_what_a_new_seal_hides(
    identity: str, change: Callable[[Data], None], field: str
) -> None:
    data = copy.deepcopy(certified(identity))
    change(data)
    checked = checker.check(sealed(data))
    assert not checked.valid
    assert {field, f"claim.{field}"} & {path for path, _ in checked.problems}


def test_a_false_case_beside_the_one_that_is_shown_is_found() -> None:
    data = certified("approximate-dp/holds")
    data["claim"]["epsilon"] = "1"
    data["case"] = {"s": "1"}
    data["claimed"]["epsilon"] = "1"
    data["mechanism"] = "Laplace(scale=1)"
    data["facts"][0] |= {"law": {"law": "laplace", "distance": "1"}, "epsilon": "1"}
    checked = checker.check(sealed(data))  # s = 1/3 has ε = 3
    assert [path for path, _ in checked.problems] == ["verdict"]


def _hockey_stick(mechanism: Gaussian, epsilon: str) -> Data:
    pair = mechanism.worst_case(None).remove[0]
    return hockey(pair, exact(epsilon), "gaussian_delta")


def test_the_two_sides_of_a_refuted_gaussian_claim_are_about_one_epsilon() -> None:
    data = certified("gaussian-dp/refuted")
    data["claim"]["mu"] = data["claimed"]["mu"] = "0.34"  # true: mu = 1/3
    target = Gaussian(standard_deviation=1, l2_sensitivity="0.34")
    for facts in ([0, 1], [1, 0]):
        pair = [data["facts"][0], _hockey_stick(target, "3")]
        found = checker.check(sealed({**data, "facts": [pair[i] for i in facts]}))
        assert not found.valid


def test_a_chord_is_between_two_tests_of_one_pair_on_both_sides_of_the_level() -> None:
    data = certified("tradeoff/refuted")
    narrow, wide, point = data["facts"]
    turned = [{**wide, "name": "event"}, {**narrow, "name": "wide"}, point]
    assert not checker.check(sealed({**data, "facts": turned})).valid
    beside = {**point, "value": "0.29"}
    assert not checker.check(sealed({**data, "facts": [narrow, wide, beside]})).valid
    other = {**wide, "law": {"law": "laplace", "distance": "2"}}
    assert not checker.check(sealed({**data, "facts": [narrow, other, point]})).valid


def test_a_curve_that_rises_is_not_compared_at_its_upper_end() -> None:
    data = certified("profile/rising-bound")
    data["claim"]["bound"] = data["claimed"]["bound"] = "0.39 + epsilon**2/2 - epsilon/100"
    data["facts"][1]["cuts"] = ["0", "2"]
    assert checker.check(sealed(data)).problems == [("verdict", "the claimed curve increases")]


def test_a_certificate_without_a_seal_is_refused() -> None:
    data = certified("relation/equal")
    del data["seal"]
    assert not checker.check(data).valid


def test_the_checker_imports_nothing_that_made_the_certificate() -> None:
    script = (
        "import sys, dpassay.verifier.checker\n"
        "known = {'numpy', 'scipy', 'dpassay.accountant.numbers.exact', 'dpassay.verifier.claim', "
        "'dpassay.verifier.expression', 'dpassay.verifier.functions'}\n"
        "print(sorted(known & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert found.stdout.decode().strip() == "[]"


def test_what_a_gaussian_claim_rests_on_is_what_the_package_names() -> None:
    script = (
        "import json, sys\n"
        "from dpassay.verifier import checker\n"
        "data, ran = json.load(sys.stdin), set()\n"
        "sys.setprofile(lambda frame, *_: ran.add(frame.f_globals.get('__name__')))\n"
        "outcome = checker.check(data).outcome.value\n"
        "sys.setprofile(None)\n"
        "print(outcome, *(name for name in ran if str(name).startswith('dpassay.verifier.')))"
    )
    data = decided(
        'kind = "approximate-dp"\nmechanism = "Gaussian(standard_deviation=3)"\n'
        'epsilon = "1"\ndelta = "0.001"'
    )[1]
    found = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(data), text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    outcome, *ran = found.stdout.split()
    listed = str(checker.__doc__).partition("read these files")[2].partition("All else")[0]
    named = {f"dpassay.verifier.checker.{name}" for name in re.findall(r"`([a-z_.]+)`", listed)}
    assert outcome == "VALID"
    read = {"dpassay.verifier." + name for name in ("checker", "seal", "rules", "budget")}
    read.add("dpassay.verifier.kernel.theorem")  # how foreign words are printed
    assert {*ran} - read == named - {"dpassay.verifier.checker.seal"}


STEP = "PoissonSubsampled(mechanism=Gaussian(standard_deviation='0.3'), sampling_prob='0.5')"


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "delta"),
    [
        ("Gaussian(standard_deviation=1, l2_sensitivity=3000)", "3000000", "1e-5"),
        ("Gaussian(standard_deviation=1, l2_sensitivity='1e10')", "3e18", "1e-5"),
        ("Gaussian(standard_deviation=1, l2_sensitivity=1000)", "3e9", "0"),
        ("Gaussian(standard_deviation=1, l2_sensitivity=1000)", "3e29", "0"),
        (f"Composed(mechanism={STEP}, count=10**7)", "22100000", "1e-5"),
    ],
)
def test_a_refutation_at_a_large_epsilon_is_accepted(
    mechanism: str, epsilon: str, delta: str
) -> None:
    """Q(L > ε) is below 10^−1000000 there, and an exponent of seven digits was malformed."""
    claim = ApproximateDP(
        id="x", mechanism=mechanism, epsilon=epsilon, delta=delta, adjacency="add-remove"
    )
    finding, data = certificate.certify(claim)
    assert (finding.verdict.value, data is None) == ("REFUTED", False)
    assert data is not None
    checked = checker.check(json.loads(json.dumps(data)))
    assert (checked.problems, checked.taken_as_given) == ([], [])
    fact = next(index for index, entry in enumerate(data["facts"]) if entry["fact"] == "event")
    data["facts"][fact]["q"] = {"lower": "1e-100", "upper": "1e-100"}
    wrong = checker.check(sealed(data))
    assert f"facts[{fact}].q.lower" in [path for path, _ in wrong.problems]

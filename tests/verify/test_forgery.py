"""A certificate that says something false is caught, though it was sealed again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier import checker
from dpassay.verifier.checker import apart
from dpassay.verifier.checker.compositions import composed, losses
from dpassay.verifier.checker.facts import mechanism
from dpassay.verifier.checker.language import Variables, evaluate
from dpassay.verifier.checker.laws import hockey_stick
from dpassay.verifier.checker.mechanisms.neighbours import under
from dpassay.verifier.checker.mechanisms.pairs import pairs
from dpassay.verifier.checker.outcome import Outcome
from dpassay.verifier.checker.reals import UnknownError
from tests.verify.forge import Data, decided, problems, put, sealed

GAUSSIAN = (
    'kind = "approximate-dp"\nmechanism = "Gaussian(standard_deviation=1)"\n'
    'epsilon = "1"\ndelta = "0.2"\n'
)
OUTSIDE = "cannot be checked: a value is listed outside its domain"
RELATION = 'kind = "relation"\nclaim = "x <= 3"\n'


def certificate(text: str) -> Data:
    found = decided(text)[1]
    assert checker.check(found).problems == []
    return found


def changed(text: str, change: Callable[[Data], object]) -> list[tuple[str, str]]:
    data = certificate(text)
    change(data)
    return problems(data)


OWN = (
    'kind = "approximate-dp"\nmechanism = "AdditiveNoise(density=\'exp(-abs(x)**3)\', scale=2)"\n'
    'epsilon = "1"\ndelta = "0.001"\n'
)
TABLE = (
    "kind = \"approximate-dp\"\nmechanism = \"Tabulated(p=['1/4', '3/4'], q=['1/2', '1/2'])\"\n"
    'epsilon = "0.1"\ndelta = "0.4"\n'
)


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        (GAUSSIAN, "facts.0.law.mu.lower", "1e9"),
        (GAUSSIAN, "facts.0.law.mu.upper", "1e-9"),
        (GAUSSIAN, "facts.0.law.note", "1"),
        (OWN, "facts.0.law.distance", "1/4"),
        (OWN, "facts.0.p.upper", "1e9"),
        (OWN, "facts.0.q.upper", "1"),
        (GAUSSIAN.replace("0.2", "0.4"), "facts.0.value.upper", "1.1"),
        (TABLE, "facts.0.law.outcomes", []),
        (TABLE, "facts.0.law.outcomes.0", None),
        (TABLE, "facts.0.law.outcomes.0", ["x"]),
    ],
)
def test_nothing_stands_in_a_law_that_it_has_not(text: str, path: str, value: object) -> None:
    assert changed(text, put(path, value))


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        ({"low": "0", "high": "1"}, "4"),
        ({"above": "0"}, "0"),
        ({"below": "4"}, "4"),
        ({"low": "0", "integer": True}, "7/2"),
        ({"above": "-inf", "high": "3"}, "4"),
    ],
)
def test_a_counterexample_lies_within_open_ends_and_integers(domain: Data, value: str) -> None:
    def move(data: Data) -> None:
        data["claim"]["for_all"]["x"] = {"grid": [value], **domain}
        data["claim"]["claim"] = data["claimed"]["relation"] = "x == 1"
        data.update(case={"x": value}, verdict="REFUTED", conclusion="left != right")
        shown = str(float(Fraction(value)))
        data["facts"][0]["value"] = {"lower": shown, "upper": shown}
        data["facts"][1] |= {"expression": "1", "value": {"lower": "1", "upper": "1"}}

    text = RELATION + '[claims.for_all.x]\nstatement = "x"\ngrid = [1, 2]'
    assert changed(text, move) == [("case", OUTSIDE)]


@pytest.mark.parametrize("name", ["order", "at", "value"])
def test_a_variable_of_the_claim_is_no_fact(name: str) -> None:
    """The order is that of the claim, whatever its variable is called."""

    def refute(data: Data) -> None:
        data.update(verdict="REFUTED", conclusion="value > epsilon")
        data["facts"][0] |= {"order": "100", "value": {"lower": "50", "upper": "50"}}

    text = (
        'kind = "renyi-dp"\nmechanism = "Gaussian(standard_deviation=1)"\n'
        f'order = "{name}"\nepsilon = "2"\nwhere = {{{name} = [2]}}'
    )
    assert ("facts", f"expected at == {name}") in changed(text, refute)


@pytest.mark.parametrize("tolerance", ["0) + 10000*(1", "value"])
def test_a_tolerance_is_a_number(tolerance: str) -> None:
    def loosen(data: Data) -> None:
        data["claim"] |= {"value": "2000", "tolerance": tolerance}
        data["claimed"] = {"optimal": "2000"}
        data["facts"][0] |= {"expression": "2000", "value": {"lower": "2000", "upper": "2000"}}
        data["conclusion"] = f"value <= lower_bound*(1 + {tolerance})"

    box = 'space = {type = "Box", bounds = [1]}'
    family = f'among = {{type = "Gaussian", mu = 1, objective = "total", {box}}}'
    found = changed(f'kind = "optimality"\nvalue = "1"\n{family}\ndual.law = "corners"', loosen)
    assert [field for field, _ in found] == ["claim.tolerance"]


@pytest.mark.parametrize("left", ["sin(10**2000)", "log(0) - log(0)", "sqrt(-1)"])
def test_what_is_no_number_proves_nothing(left: str) -> None:
    def replace(data: Data) -> None:
        data["claim"]["claim"] = data["claimed"]["relation"] = f"{left} > 2"
        data["conclusion"] = "left > right"
        data["facts"][0] |= {"expression": left, "value": {"lower": "3", "upper": "3"}}

    assert changed('kind = "relation"\nclaim = "3 > 2"\n', replace)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("for_all", value) for value in ([1], "x")),
        *(("where", value) for value in ([1], {"x": "(("})),
        *(("assume", value) for value in ("x", ["(("], [3])),
        *(("delta", value) for value in (5, None, "(" * 5000, "-" * 50_000 + "1", "1 is 2", "")),
        *(("epsilon", value) for value in ("sum(i, 1, 10**12, i)", "log(1, 2, 3)", "gamma(0)")),
        *(("epsilon", value) for value in ("\ud800", "1j", "sqrt(-1)", "Gaussian", "mu()")),
        *(("mechanism", value) for value in (7, "Gaussian(", "Gaussian()", "1")),
        ("kind", ["relation"]),
    ],
)
def test_a_malformed_claim_is_named(field: str, value: object) -> None:
    def replace(data: Data) -> None:
        data["claim"][field] = value

    assert changed(GAUSSIAN, replace)


@pytest.mark.parametrize(
    "question", ["epsilon(Gaussian(standard_deviation=1), 0)", "beta(Laplace(scale=1), 0)"]
)
def test_a_level_that_no_loss_has_ends(question: str) -> None:
    data = certificate('kind = "relation"\nclaim = "1 < 2"')
    data["claim"]["claim"] = data["claimed"]["relation"] = f"{question} < 2"
    assert problems(data)


SAMPLE = (
    "SampledWithoutReplacement(mechanism=Gaussian(standard_deviation=1), sample_size=1, "
    "population=10)"
)


def test_the_extremes_of_a_sample_are_not_all_neighbours() -> None:
    """The largest divergence of the pairs, 0.017, is no bound; 0.0283 is one."""
    text = f'kind = "renyi-dp"\nmechanism = "{SAMPLE}"\norder = "2"\nepsilon = "0.03"\n'
    text += 'adjacency = "replace-one"\nstatement = "c"\n'
    assert decided(text.replace("0.03", "0.02"))[0] == "UNDECIDED"
    assert certificate(text)["verdict"] == "HOLDS"

    def weaker(epsilon: str) -> Callable[[Data], object]:
        def change(data: Data) -> None:
            data["claim"]["epsilon"] = data["claimed"]["epsilon"] = epsilon

        return change

    assert not changed(text, weaker("0.0284"))
    assert changed(text, weaker("0.028"))


def test_arguments_without_names_are_bound_in_the_order_of_the_mechanism() -> None:
    text = GAUSSIAN.replace("Gaussian(standard_deviation=1)", "Guaranteed(1, '0.1')")
    shown = checker.check(certificate(text))
    assert shown.outcome is checker.Outcome.CONDITIONAL
    low = checker.check(certificate(text.replace('"0.2"', '"0.1"')))
    assert low.outcome is checker.Outcome.CONDITIONAL
    false = changed(text, lambda data: data["claim"].update(mechanism="Guaranteed('0.1', 1)"))
    assert false


@pytest.mark.parametrize("move", ["10**7", "10**12"])
def test_levels_of_a_noisy_maximum_that_are_too_many_are_not_listed(move: str) -> None:
    noise = f"ReportNoisyMax('DiscreteLaplace', {move}, 2, sensitivity={move}, monotone=True)"
    with pytest.raises(UnknownError, match="so far"):
        hockey_stick(_law(noise), Fraction(1, 2))


STEP = "PoissonSubsampled(mechanism=Gaussian(standard_deviation=2), sampling_prob={})"
NEARLY = "1/10 + 10**-40"


def _law(text: str) -> composed.Law:
    (law, *_) = pairs(under(mechanism(text), "add-remove"))
    return law


@pytest.mark.parametrize("inside", [STEP, "Laplace(scale={})"])
def test_parts_that_are_nearly_equal_stay_apart(inside: str) -> None:
    """A difference of 1e-40 is below the digits that a certificate writes, and counts."""
    same = f"Composed(mechanism=[{inside.format('1/10')}, {inside.format('1/10')}])"
    other = f"Composed(mechanism=[{inside.format('1/10')}, {inside.format(NEARLY)}])"
    with ctx.workprec(448):
        assert [count for _, count in composed.parts(_law(same))] == [2]
        assert [count for _, count in composed.parts(_law(other))] == [1, 1]
        assert composed.alike(_law(same), _law(other))


def test_gaussian_parts_add_up_wherever_they_stand() -> None:
    text = "Composed(mechanism=[Gaussian(3), Laplace(scale=1), Gaussian(4), Gaussian(3)])"
    with ctx.workprec(448):
        (normal, count), (laplace, once) = composed.parts(_law(text))
        assert (count, once) == (1, 1)
        assert isinstance(normal, losses.Normal)
        assert isinstance(laplace, losses.Laplace)
        assert abs(arb(normal.mu) ** 2 - arb(2) / 9 - arb(1) / 16) < arb(10) ** -100


EVENT = (
    'kind = "approximate-dp"\nstatement = "c"\nadjacency = "add-remove"\nepsilon = "1.4"\n'
    'mechanism = "RandomAllocation(Gaussian(1), 100, 2)"\ndelta = "1e-6"\n'
)


@pytest.mark.slow
def test_a_level_that_no_event_needs_is_refused_at_once() -> None:
    data = certificate(EVENT)
    forged = []
    for level in ("0", "-5", "20", "1e6", "-1e9", "1e-300", "sqrt(5)", "8/3"):
        data["facts"][0]["law"]["log_threshold"] = level
        forged.append(sealed(copy.deepcopy(data)))
    why = "cannot be checked: log_threshold is far from where the loss is about epsilon"
    for checked in apart.check_all(forged, seconds=5):
        assert checked.problems == [("facts[0]", why), ("verdict", why)]


@pytest.mark.parametrize(
    "text",
    [
        "1 <= x", "1 <= f(1)", "1 <= __import__('os')", "1 <= [1][0]", "1 <= a.b", "1 <= 1 +",
        "1 is 1", "1 in [1]", "1 < 2 < 3", "1 = 1", "1 <= 0x2", "1 <= 2j", "1 <= 1e999999",
        "1 <= 2 if 1 else 0", "1 <= (lambda: 2)()", "1 <= [2][0]", "1 <= 2 # 0", "1 <= '2'.real",
        "1 <= max(*[2])", "1 <= max(**{})", "1 <= {2}", "1 <= 5 % 3", "1 <= 5 // 2", "1 <= ~2",
        "1 <= 2 and 1", "1 <= f'2'", "1 <= b'2'", "1 <= (x := 2)", "1 <= sum(i, 1, 3)",
        "1 <= sum(2, 1, 3, 4)", "1 <= +Gaussian(1)", "1 <= -'2'",
    ],
)  # fmt: skip
def test_what_is_not_in_the_language_is_no_claim(text: str) -> None:
    data = certificate('kind = "relation"\nclaim = "1 <= 2"\n')
    data["claim"]["claim"] = data["claimed"]["relation"] = text
    assert problems(data)


def test_an_index_means_what_is_written() -> None:
    """The index of a sum is known in its own term, and not in the names of `let` used there."""
    scope = Variables({"n": Fraction(4)}, {"term": "i**2", "i": "100"})
    assert evaluate("sum(i, 1, n, term)", scope) == 40_000
    assert evaluate("sum(i, 1, 2, sum(i, 1, 3, i) + i)", scope) == 15
    assert evaluate("term", scope) == 10_000


MAXIMUM = "ReportNoisyMax(noise='Gaussian', scale=4, candidates=3)"
DENSITY = "AdditiveNoise(density='exp(-abs(x)**3)', scale=2)"
ALLOCATED = {"law": "allocated-noise", "radius": "1"}


def _farther(law: Data) -> Data:
    """Write another distance, in a law within the law as well."""
    text = json.dumps(law).replace('"0.5"', '"0.3312"').replace('\\"0.5\\"', '\\"0.25\\"')
    assert text != json.dumps(law)
    return dict(json.loads(text))


@pytest.mark.parametrize(
    "mechanism",
    [
        MAXIMUM,
        "ReportNoisyMax(noise='Gumbel', scale=4, candidates=3)",
        "Composed(mechanism=[AboveThreshold(threshold_scale=2, query_scale=4)], count=1)",
        "Composed(mechanism=Laplace(scale=2), count=2)",
        "KNorm(scale=2, dimension=3, norm='l1', density='exp(-r**2)')",
        "Composed(mechanism=[RankOneGaussian(dimension=3, sigma_star=4)], count=1)",
        f"PoissonSubsampled(mechanism={DENSITY}, sampling_prob='1/10')",
        "PoissonSubsampled(TruncatedLaplace(scale=2, bound=20), sampling_prob='1/10')",
    ],
)
@pytest.mark.parametrize("change", [lambda _: ALLOCATED, _farther], ids=["another law", "farther"])
def test_a_law_of_another_mechanism_is_refused(
    mechanism: str, change: Callable[[Data], Data]
) -> None:
    """It is not taken as given, though nothing is known of its products."""
    data = certificate(
        f'kind = "approximate-dp"\nmechanism = "{mechanism}"\nepsilon = "1/8"\n'
        'delta = "1e-9"\nadjacency = "add-remove"\n'
    )
    if change is _farther and "AboveThreshold" in mechanism:
        data["facts"][0]["law"]["query"] = "5"
    else:
        data["facts"][0]["law"] = change(data["facts"][0]["law"])
    assert ("facts[0]", "cannot be checked: facts[0].law does not follow from the mechanism") in (
        problems(data)
    )


def test_a_density_of_a_norm_falls_to_both_sides() -> None:
    """Of the lopsided one losses to the right are at most 1, and δ(1.5) to the left is 0.31."""
    data = certificate(
        'kind = "approximate-dp"\nmechanism = "KNorm(scale=1, dimension=1, density=\'exp(-r)\')"\n'
        'epsilon = "3/2"\ndelta = "1/100"\n'
    )
    text = json.dumps(data).replace("exp(-r)", "exp(-x) if x>0 else exp(3*x)")
    assert checker.check(sealed(data)).outcome is Outcome.VALID
    assert checker.check(sealed(json.loads(text))).outcome is not Outcome.VALID


@pytest.mark.parametrize("first", ["event", "gaussian_delta"])
def test_the_chosen_event_stays_with_the_claim(first: str) -> None:
    """The law of the claimed curve chooses none, wherever it stands.

    H(1.4) of 0.3312-GDP is 1.6799e-6. Of this event it is 1.7017e-6, of one that is searched
    1.6633e-6.
    """
    fields = 'adjacency = "add-remove"\nmechanism = "RandomAllocation(Gaussian(1), 100)"\n'
    data = certificate(f'kind = "gaussian-dp"\n{fields}mu = "0.01"\n')
    (event,) = certificate(EVENT)["facts"]
    (curve,) = certificate(GAUSSIAN.replace("=1)", "='1/0.3312')").replace('"1"', '"1.4"'))["facts"]
    mechanism = "RandomAllocation(Gaussian(1), 100, 2)"
    data["claim"] |= {"mechanism": mechanism, "mu": "0.3312"}
    data |= {"mechanism": mechanism, "claimed": {"mu": "0.3312"}}
    curve["name"] = "gaussian_delta"
    data["facts"] = [event, curve] if first == "event" else [curve, event]
    assert problems(data) == []


def test_a_composition_within_many_others_ends() -> None:
    """The work does not double with each of them: there are 2^40 releases."""
    (law,) = pairs(mechanism("Composed(" * 40 + "Gaussian(1)" + ", 2)" * 40))
    assert law == {"law": "gaussian", "mu": 2**20}


@pytest.mark.parametrize(
    ("kind", "true", "false"), [("tradeoff", "1/100", "1"), ("profile", "99/100", "0")]
)
def test_a_sweep_of_one_point_is_a_sweep(kind: str, true: str, false: str) -> None:
    """A curve is claimed at 1/2 alone."""
    data = certificate(
        f'kind = "{kind}"\nmechanism = "Gaussian(1)"\nbound = "{true}"\nlow = "1/2"\nhigh = "1/2"'
    )
    (swept,) = (fact for fact in data["facts"] if "cuts" in fact)
    swept["cuts"] = swept["cuts"][:1]
    assert problems(data) == []
    data["claim"]["bound"] = data["claimed"]["bound"] = false
    assert problems(data)

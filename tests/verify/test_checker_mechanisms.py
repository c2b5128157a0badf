"""The checker's own laws of every mechanism, held against the balls of the accountant."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dpassay.accountant import mechanisms as theirs
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.mechanisms.counting.linear_counter import LinearCounter
from dpassay.accountant.notation import argument_names, parse
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.questions import profile
from dpassay.verifier import checker, functions
from dpassay.verifier.certificate import certify
from dpassay.verifier.checker import reals
from dpassay.verifier.checker.arithmetic import narrow, settle
from dpassay.verifier.checker.compositions.composed import intervals
from dpassay.verifier.checker.declared import BY_MECHANISM
from dpassay.verifier.checker.facts import mechanism
from dpassay.verifier.checker.functions import QUESTIONS
from dpassay.verifier.checker.language import Variables, evaluate
from dpassay.verifier.checker.laws import hockey_stick, tails
from dpassay.verifier.checker.mechanisms import counters
from dpassay.verifier.checker.mechanisms.arguments import TABLE
from dpassay.verifier.checker.mechanisms.neighbours import under
from dpassay.verifier.checker.mechanisms.pairs import fits, pairs
from dpassay.verifier.checker.mechanisms.shown import PARTLY
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import UnknownError, compare
from dpassay.verifier.claims import ApproximateDP
from dpassay.verifier.value import to_ball
from tests.accountant.mechanisms.test_input import BAD

BOTH = ("add-remove", "replace-one")
Draw = Callable[[random.Random], str]


def rational(rng: random.Random, low: int = 1, high: int = 40) -> str:
    return f"'{rng.randint(low, high)}/{rng.randint(5, 12)}'"


def simplex(rng: random.Random, size: int) -> list[str]:
    parts = [rng.randint(0, 9) for _ in range(size)]
    parts[0] += 1
    return [f"{part}/{sum(parts)}" for part in parts]


def covariance(rng: random.Random, d: int) -> str:
    """A random description: a Gram matrix plus the identity is positive definite."""
    match rng.randrange(4):
        case 0:
            return f"Isotropic(dimension={d}, variance={rational(rng)})"
        case 1:
            return f"Diagonal(variances=[{', '.join(rational(rng) for _ in range(d))}])"
        case 2:
            off = Fraction(rng.randint(-4, 9), 10 * d)
            return f"Exchangeable(dimension={d}, diagonal=1, off_diagonal='{off}')"
    root = [[rng.randint(-3, 3) for _ in range(d)] for _ in range(d)]
    rows = [
        [sum(a * b for a, b in zip(one, other, strict=True)) + (one is other) for other in root]
        for one in root
    ]
    return f"Matrix(rows={rows})"


def space(rng: random.Random, d: int) -> str:
    match rng.randrange(5):
        case 0:
            return f"L2Ball(dimension={d}, radius={rational(rng)})"
        case 1:
            return f"Box(bounds=[{', '.join(rational(rng, 0) for _ in range(d - 1))}, 1])"
        case 2:
            k, signed = rng.randint(1, d), rng.random() < 0.5
            return f"SparseBox(dimension={d}, sparsity={k}, bound='sqrt(2)', signed={signed})"
        case 3:
            vectors = [[rng.randint(-3, 3) for _ in range(d - 1)] + [1] for _ in range(3)]
            return f"FiniteSet(vectors={vectors})"
    return f"DisjointGroups(groups={d}, space=SparseBox(dimension=1, sparsity=1))"


def general(rng: random.Random) -> str:
    d = rng.randint(1, 4)
    return f"GeneralGaussian(covariance={covariance(rng, d)}, space={space(rng, d)})"


def ellipse(name: str) -> Draw:
    def draw(rng: random.Random) -> str:
        d = rng.choice([1, 2, 3, 5, 8, 9, 10, 17, 24, 30])
        k = rng.randint(1, max(1, d // 2) if name == "CountEllipse" else d)
        return f"{name}(dimension={d}, sparsity={k}, mu={rational(rng)})"

    return draw


def counter(
    name: str, more: Callable[[random.Random], str] = lambda rng: "", most: int = 40
) -> Draw:
    def draw(rng: random.Random) -> str:
        law = rng.choice(["epsilon", "mu"])
        steps = rng.randint(5, most)
        known = law == "mu" and name in ("BridgedTree", "SquareRootFactorization")
        times = f", contributions={rng.randint(1, 50)}" if known else ""
        if name in PARTLY and (law == "epsilon" or times):  # outputs have two ends
            times += ", released='measurements'"
        return f"{name}(steps={steps}{more(rng)}, {law}={rational(rng)}{times})"

    return draw


def steps_with_a_law(rng: random.Random, arity: int, subtraction: bool) -> int:
    """Draw n ≥ k^{h − 1}: below, a tree with subtraction has no exact law."""
    tree = next(
        n
        for n in iter(lambda: rng.randint(1, 60), None)
        if counters.has_exact_law(
            Noise("KaryTree", {"steps": Fraction(n), "arity": Fraction(arity),
                               "subtraction": subtraction})
        )
    )  # fmt: skip
    return tree


def kary(name: str) -> Draw:
    def draw(rng: random.Random) -> str:
        arity, subtraction = rng.randint(2, 5), rng.random() < 0.5
        n = steps_with_a_law(rng, arity, subtraction)
        shape = f"steps={n}, arity={arity}, subtraction={subtraction}"
        return f"{name}({shape}, epsilon={rational(rng)})"

    return draw


def declared(name: str) -> Draw:
    """Draw arguments of a law that is declared in one file: positive numbers, or yes and no."""

    def draw(rng: random.Random) -> str:
        arguments = BY_MECHANISM[name].arguments.items()
        given = (
            f"{argument}={rng.random() < 0.5 if known.default is False else rational(rng)}"
            for argument, known in arguments
        )
        return f"{name}({', '.join(given)})"

    return draw


def matrix_mechanism(rng: random.Random) -> str:
    """Draw a strategy and a schema of which the exact sensitivity is known."""
    n = rng.randint(1, 9)
    rows = [[f"{rng.randint(0, 9)}/4" if j < i else "3/2" if i == j else "0" for j in range(n)]
            for i in range(n)]  # fmt: skip
    fall = sorted((f"{rng.randint(1, 9)}/8" for _ in range(rng.randint(1, n))), reverse=True)
    given = rng.choice(
        [
            rows,
            fall,
            "identity",
            "square-root",
            "BufferedToeplitz(output_scales=['1/3', '1/7'], decays=['9/10', '1/2'])",
        ]
    )
    text = repr(given) if not str(given).startswith("B") else given
    b = rng.randint(1, n)
    schema = rng.choice(
        ["'single'", f"'cyclic', separation={b}", f"'min-separation', separation={b}"]
    )
    if "single" not in schema and rng.random() < 0.5:
        schema += f", participations={rng.randint(1, -(-n // b))}"
    if given is not rows and rng.random() < 0.5:
        schema += f", bands={rng.randint(1, n)}"
    noise = rng.choice([rational(rng), "'sqrt(2)'"])
    return (
        f"MatrixMechanism(strategy={text}, noise_multiplier={noise}, steps={n}, "
        f"participation={schema})"
    )


TAKEN = ("AdditiveNoise",)
"""Mechanisms of which the checker has 15 digits: their own tests compare those."""
# KNorm in ℓ2, other variants of AboveThreshold and other noises of ReportNoisyMax have fewer digits
# or bounds: their own tests compare those.
DRAWN = """
any  | BoundedCountNoise(epsilon={r 0 30}, eta='{1..19}/20', support={1..7})
any  | Composed(Gaussian(standard_deviation={r}), count=3)
both | CorrelatedGaussian(dimension={1..40}, mu={r}, release_size={?}{|, c=2|, c='sqrt(3)'})
both | DiscreteCorrelatedGaussian(dimension={1..3}, mu={1..3}, c={1|2|3/2})
any  | DiscreteGaussian(parameter={r}, sensitivity={1..3})
any  | DiscreteLaplace(scale={r}, sensitivity={1..3})
any  | DisjointGroupsGaussian(groups={1..3}, dimension={1..30}, mu={r}, \
adjacency='{add-remove|replace-one}', as_printed={?})
any  | EllipticalGaussian(sensitivities=[1, 'sqrt(2)', 3], mu={r})
any  | Gaussian(standard_deviation={r}, l2_sensitivity='sqrt(2)')
add  | GaussianThreshold(standard_deviation={r}, threshold={r})
any  | Guaranteed(epsilon={r 0}, delta='1/{2..99}')
any  | IntegerNoise(probabilities={s 4}, lowest=-2, sensitivity=2)
both | KnownSizeGaussian(dimension={1..9}, mu={r}{|, size_mu=3})
any  | Laplace(scale={r}, l1_sensitivity={r})
add  | DiscreteLaplaceThreshold(scale={r}, threshold={1..9})
add  | LaplaceThreshold(scale={r}, threshold={r})
any  | LaplaceVector(scale={r}, shifts=[1, -2, {1..5}])
any  | MatrixVariateGaussian(row_covariance={c 3}, column_covariance={c 2}, l2_sensitivity={r})
add  | MixtureOfGaussians(standard_deviation={r 5}, sensitivities=[0, 1, 2], sampling_probs={s 3})
any  | OptimalGroups(groups={1..9}, counts={1..30}, mu={r}, adjacency='{add-remove|replace-one}')
add  | PartitionSelection(epsilon={r}, delta='1/{2..99}')
both | PoissonSubsampled(Gaussian(standard_deviation={r 5}), sampling_prob='1/{2..20}')
one  | RandomizedResponse(epsilon={r 0}, categories={2..6})
any  | RankOneGaussian(dimension={3..6}, sigma_star={r})
last | SampledWithoutReplacement(Laplace(scale={r}), sample_size={1..4}, population={4..9})
one  | Shuffled(RandomizedResponse(epsilon={r}, categories={2..3}), users={1..5})
any  | Staircase(epsilon={r}, gamma='{0..10}/10', sensitivity={r})
one  | Channel(matrix=[{s 3}, {s 3}, {s 3}]{|, neighbours=[[0, 2]]|, neighbours=[[0, 1], [2, 1]]})
one  | HadamardResponse(epsilon={r}, categories={3..9})
one  | LocalHashing(epsilon={r}, categories={3..9}{|, buckets=2|, buckets=5})
one  | SubsetSelection(epsilon={r}, categories={3..9}{|, size=1|, size=2})
one  | UnaryEncoding(epsilon={r}, categories={3..9}{|, optimised=True})
one  | Rappor(flip='{1..8}/9', categories={2..9})
any  | Tabulated(p={s 4}, q={s 4})
any  | TruncatedGeometric(scale={r}, low=0, high=9, sensitivity=2)
any  | KNorm(scale={r}, dimension={1..4}, sensitivity={r}, norm='{l1|linf}')
any  | Skellam(variance={r}, sensitivity={1..4})
any  | AboveThreshold(threshold_scale={r}, query_scale={r 0}, count={1..4}, variant='endless')
any  | ProposeTestRelease(test_scale={r}, threshold={r}, scale={r}, sensitivity={r})
any  | ReportNoisyMax(noise='{Gumbel|Exponential}', scale={r}, candidates={2..9}, \
monotone={True|False})
any  | TruncatedLaplace(scale={r}, bound=40, sensitivity={r 1})
"""
RELATIONS: dict[str, tuple[str | None, ...]] = {
    "any": (None, *BOTH), "both": BOTH, "add": BOTH[:1], "one": (None, BOTH[1]), "last": BOTH[1:],
}  # fmt: skip


def drawing(template: str) -> Draw:
    """Fill {r}ationals, {s}implices, {c}ovariances, {low..high}, {?} yes or no, and {one|other}."""

    def fill(place: str, rng: random.Random) -> str:
        if "|" in place:
            return rng.choice(place.split("|"))
        if ".." in place:
            return str(rng.randint(*map(int, place.split(".."))))
        kind, *numbers = place.split()
        given = [int(number) for number in numbers]
        match kind:
            case "r":
                return rational(rng, *given)
            case "s":
                return str(simplex(rng, *given))
            case "c":
                return covariance(rng, *given)
        return str(rng.random() < 0.5)

    return lambda rng: re.sub(r"{(.*?)}", lambda found: fill(found[1], rng), template)


SINGLE: dict[str, tuple[Draw, tuple[str | None, ...]]] = {
    **{name: (declared(name), (None, *BOTH)) for name in BY_MECHANISM if name not in TAKEN},
    **{
        text.partition("(")[0]: (drawing(text), RELATIONS[known.strip()])
        for known, _, text in (line.partition("| ") for line in DRAWN.strip().splitlines())
    },
    **{
        name: (counter(name), (None, *BOTH))
        for name in ("BinaryTree", "HonakerTree", "SmoothBinary")
    },
    "BridgedTree": (
        counter("BridgedTree", lambda r: f", arities=[3, 4, 4], pooled={r.randint(0, 2)}"),
        (None, *BOTH),
    ),
    "DelannoyCounter": (
        counter("DelannoyCounter", lambda r: f", levels={r.randint(1, 5)}"),
        (None, *BOTH),
    ),
    # of more than twenty different shifts the sums over all signs are not formed
    "NormalizedSquareRoot": (counter("NormalizedSquareRoot", most=18), (None, *BOTH)),
    "SquareRootFactorization": (counter("SquareRootFactorization", most=18), (None, *BOTH)),
    **{name: (kary(name), (None, *BOTH)) for name in ("DiscreteKaryTree", "KaryTree")},
    **{name: (ellipse(name), BOTH) for name in ("CountEllipse", "OptimalEllipse")},
    "GeneralGaussian": (general, (None, *BOTH)),
    "MatrixMechanism": (matrix_mechanism, (None, *BOTH)),
    "OneSidedGaussian": (
        lambda r: (
            f"OneSidedGaussian(bounds=[{', '.join(rational(r) for _ in range(r.randint(1, 5)))}], "
            f"mu={rational(r)})"
        ),
        BOTH,
    ),
}
"""A mechanism at random parameters, and the relations under which its pairs are known."""

SLOW = ("MixtureOfGaussians", "RankOneGaussian")
"""Laws whose tails are integrals that take seconds: one draw each."""
CASES = [(name, seed) for name in SINGLE for seed in range(1 if name in SLOW else 2)]
GIVEN = ("Guaranteed", "BridgedTree", "NormalizedSquareRoot", "SquareRootFactorization")
"""That a mechanism behind a guarantee exists, and that an input attains the worst pair."""
BOUNDED_ONLY = ("RandomAllocation", "TopSelections")
"""Mechanisms whose law the checker knows, and of its answers bounds only."""
DESCRIPTIONS = ("Isotropic", "Diagonal", "Exchangeable", "Matrix", "BufferedToeplitz")
SPACES = ("L2Ball", "Box", "SparseBox", "FiniteSet", "DisjointGroups")


def test_every_mechanism_of_the_notation_is_in_the_table() -> None:
    """Add its arguments in verify/checker/mechanisms/arguments.py, and its law in `pairs`."""
    assert set(TABLE) == set(theirs.DESCRIPTIONS)
    assert set(SINGLE) == set(TABLE) - {*DESCRIPTIONS, *SPACES, *BOUNDED_ONLY, *TAKEN}
    for name, arguments in TABLE.items():
        assert list(arguments) == argument_names(name)


def drawn(name: str, seed: int) -> tuple[str, str | None]:
    rng = random.Random(f"{name} {seed}")
    draw, relations = SINGLE[name]
    text = draw(rng)
    parse(text)
    return text, relations[-seed % len(relations)]


def answer(question: str, text: str, *at: Fraction, adjacency: str | None = None) -> Interval:
    """Enclose what the accountant answers."""

    def ball() -> Any:
        return to_ball(functions.FUNCTIONS[question](parse(text), *at, adjacency=adjacency))

    return enclose(ball)


def meets(value: Any, enclosure: Interval, *, wide: bool = False) -> bool:
    """Whether a number meets an enclosure, and is known to digits where it may not be wide."""
    low, high = (Fraction(end) for end in (enclosure.lower, enclosure.upper))
    apart = compare(value, ">", high) or compare(value, "<", low)
    return (wide or narrow(value)) and not apart


@pytest.mark.parametrize(
    ("name", "seed"), [case for case in CASES if case[0] != "PartitionSelection"]
)  # every number of users is a pair here, and few are there: its own test compares them
def test_the_worst_pairs_are_those_of_the_accountant(name: str, seed: int) -> None:
    text, adjacency = drawn(name, seed)
    noise, relation = under(mechanism(text), adjacency), Adjacency.read(adjacency)
    assert fits(noise, adjacency)
    known = profile.worst_pairs(parse(text), relation, None)
    wide = any(map(intervals, pairs(noise)))
    for level in ("0",) if name in SLOW else ("-1/3", "0", "1/7", "2"):
        epsilon = Fraction(level)

        def ours(at: Fraction = epsilon) -> list[Any]:
            again = under(mechanism(text), adjacency)
            return [
                value for law in pairs(again) for value in (*tails(law, at), hockey_stick(law, at))
            ]

        found = settle(ours)
        for index, pair in enumerate(known):
            at = exact(level)
            balls = (
                lambda p=pair, x=at: p.tails(x).p_above,
                lambda p=pair, x=at: p.tails(x).q_above,
                lambda p=pair, x=at: p.hockey_stick(x),
            )
            for value, ball in zip(found[3 * index : 3 * index + 3], balls, strict=True):
                assert meets(value, enclose(ball), wide=wide), f"{text} at {level}"
        assert len(found) == 3 * len(known)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in sorted(SINGLE)]
)
def test_claims_on_both_sides_of_delta_are_decided_and_their_certificates_accepted(
    name: str,
) -> None:
    text, adjacency = drawn(name, 1)
    true = profile.delta(parse(text), "1/7", adjacency=adjacency)
    for delta, verdict in (
        (min(2 * Fraction(true.upper), Fraction(1)), "HOLDS"),
        (Fraction(true.lower) / 2, "REFUTED"),
    ):
        if verdict == "REFUTED" and delta == 0:
            continue
        claim = ApproximateDP(
            id="c", mechanism=text, adjacency=adjacency, epsilon="1/7", delta=str(delta)
        )
        finding, data = certify(claim)
        assert finding.verdict.value == verdict, text
        found = checker.check(json.loads(json.dumps(data)))
        assert found.problems == [], text
        assert found.taken_as_given == [] or name in GIVEN, text


@pytest.mark.parametrize("digits", [16, 17, 30])
def test_selections_next_to_their_largest_loss_are_bounded_where_floats_are_rounded(
    digits: int,
) -> None:
    t, k = Fraction(486, 7), 3
    eta = t / 10**digits  # all three selections have the loss t − η/4, with a chance > η/4.1 each
    law = {"law": "bounded-range-product", "length": t, "count": Fraction(k)}
    found = hockey_stick(law, k * t - eta)
    assert reals.ball(found).upper() >= float((eta / Fraction("4.1")) ** 4)


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_questions_have_the_answers_of_the_accountant(name: str, seed: int) -> None:
    text, adjacency = drawn(name, seed)
    for question in ("variance", "mse", "dimension", "mu"):
        _asked(name, text, adjacency, question)


def _asked(name: str, text: str, adjacency: str | None, question: str) -> None:
    relation = "" if adjacency is None else f", adjacency='{adjacency}'"
    index: list[Fraction] = []
    if question == "variance":
        try:
            length = len(parse(text).variances())
        except DpassayError:  # it has none: neither may the checker
            length = 1
        index = [Fraction(length - 1)] if length > 1 else []
    try:
        enclosure = answer(question, text, *index, adjacency=adjacency)
    except DpassayError:
        with pytest.raises((ValueError, UnknownError)):
            settle(lambda: [QUESTIONS[question](under(mechanism(text), adjacency), *index)])
        return
    at = "".join(f", {entry}" for entry in index)
    try:
        (value,) = settle(lambda: [evaluate(f"{question}({text}{at}{relation})")])
    except UnknownError:  # the one quantity that is named in `counters` as not recomputed
        assert (name, question) == ("DelannoyCounter", "variance")
        return
    assert meets(value, enclosure), f"{text}: {value}"


QUANTILES = [
    "Laplace(scale=2)",
    "Gaussian(standard_deviation=3)",
    "DiscreteGaussian(parameter='7/3')",
    "DiscreteLaplace(scale=2)",
    "BoundedCountNoise(epsilon='2.18', eta='0.8', support=6)",
    "BoundedCountNoise(epsilon=1, eta='1/10', support=3)",
    "IntegerNoise(probabilities=['1/4', '1/2', '1/4'], lowest=-2)",
    "OptimalEllipse(dimension=5, sparsity=3, mu=2)",
    "CorrelatedGaussian(dimension=5, mu=2, release_size=False)",
]


@pytest.mark.parametrize(
    "level", ["1/1000000", "1/10", "1/4", "1/2", "2/3", "9/10", "999999/1000000"]
)
@pytest.mark.parametrize("text", QUANTILES)
def test_quantiles(text: str, level: str) -> None:
    known = answer("quantile", text, Fraction(level))
    (value,) = settle(lambda: [evaluate(f"quantile({text}, {level})")])
    assert meets(value, known) or abs(value) <= Fraction(1, 10**40)


@pytest.mark.parametrize(
    "text",
    [
        "LaplaceVector(scale=2, shifts=[1, -3, '1/2'])",
        "RandomizedResponse(epsilon=1, categories=3)",
        "DiscreteLaplace(scale=3, sensitivity=2)",
        "Staircase(epsilon=2, gamma='1/3')",
        "KaryTree(steps=9, arity=3, epsilon=2)",
    ],
)
def test_largest_losses(text: str) -> None:
    known = answer("max_loss", text)
    (value,) = settle(lambda: [evaluate(f"max_loss({text})")])
    assert meets(value, known)


@pytest.mark.parametrize("text", ["tree_height(1, 5)", "tree_mse(2, 0)", "tree_load(5/2, 3)"])
def test_shapes_that_are_no_tree(text: str) -> None:
    with pytest.raises(ValueError, match="tree"):
        evaluate(text)


@pytest.mark.parametrize("ratio", ["1", "3", "7/2", "exp(1)"])
@pytest.mark.parametrize("eta", ["1/100", "1/3", "4/5"])
@pytest.mark.parametrize("support", [1, 2, 5])
def test_count_noise(ratio: str, eta: str, support: int) -> None:
    from dpassay.verifier.expression import Expression

    names = ["delta", "optimal_delta", "weight", "mass"]
    for name in names:
        index = {"weight": f"{support}, ", "mass": "-1, "}.get(name, "")
        text = f"count_noise_{name}({index}{ratio}, {eta}, {support})"
        known = enclose(lambda at=text: Expression(at).ball({}))  # type: ignore[misc]
        (value,) = settle(lambda at=text: [evaluate(at)])  # type: ignore[misc]
        assert meets(value, known), text


@pytest.mark.parametrize("d", [*range(1, 20), 24, 25, 26, 99, 100, 101])
def test_ellipses_are_proved_to_be_the_best(d: int) -> None:
    for k in {1, d // 2 or 1, (d + 1) // 2, (3 * d) // 4 or 1, d}:
        at = f"{d}, {k}"
        assert evaluate(f"ellipse_defects({at})") == 0
        text = f"variance(OptimalEllipse(dimension={d}, sparsity={k}, mu=1))"
        (value,) = settle(lambda text=text: [evaluate(text)])  # type: ignore[misc]
        known = parse(f"OptimalEllipse(dimension={d}, sparsity={k}, mu=1)")
        assert meets(value, enclose(lambda known=known: known.variances()[0]))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("BinaryTree(steps={n}, epsilon=1)", 1),
        ("HonakerTree(steps={n}, epsilon=1)", 1),
        ("SmoothBinary(steps={n}, epsilon=1)", 1),
        ("BridgedTree(steps={n}, arities=[5, 4, 4], epsilon=1)", 1),
        *((f"DelannoyCounter(steps={{n}}, levels={h}, epsilon=1)", h) for h in (1, 2, 3, 4)),
    ],
)
def test_an_input_is_in_as_many_sums_as_the_matrix_says(text: str, least: int) -> None:
    """The largest column sum of R, written out by the accountant."""
    for n in [*range(least, 36), 70]:
        whole = text.format(n=n)
        known = parse(whole)
        assert isinstance(known, LinearCounter)
        _, right = known.factorisation()
        columns = [sum(abs(row[t]) for row in right) for t in range(n)]
        assert counters.sums_of_an_input(mechanism(whole)) == max(columns), whole


# What is refused

LARGER = (
    "LaplaceVector(scale=1, shifts=[1, 'sqrt(2)'])",
    "MatrixVariateGaussian(row_covariance=Matrix(rows=[[1, 1], [1, 1]]), "
    "column_covariance=Isotropic(dimension=1, variance=1))",
)
"""What the checker can tell the law of, unlike the accountant."""
WRONG = [
    *(text for text, _ in BAD if text not in LARGER),
    "Laplace(scale=0.001, scale=2)",
    "Shuffled(Laplace(scale=1), users=3)",
    "Elsewhere(epsilon=1)",
    "L\N{CYRILLIC SMALL LETTER A}place(scale=1)",
    "\N{FULLWIDTH LATIN CAPITAL LETTER L}aplace(scale=1)",
    "Laplace(**x)",
]


@pytest.mark.parametrize("text", WRONG)
def test_arguments_outside_the_table_are_refused(text: str) -> None:
    def read() -> object:
        noise = mechanism(text)
        several = noise.name in ("ReportNoisyMax", "TruncatedLaplace")  # arguments that do not fit
        return pairs(noise) if several else noise

    with pytest.raises(ValueError, match=r"."):
        read()


@pytest.mark.parametrize("name", sorted(SINGLE))
def test_every_argument_is_known_once(name: str) -> None:
    """Of each mechanism: one argument more, one twice, each required one missing."""
    text, _ = drawn(name, 0)
    with pytest.raises(ValueError, match="has no argument"):
        mechanism(f"{text[:-1]}, sigma=1)")
    noise = mechanism(text)
    first = next(key for key in TABLE[name] if noise[key] is not None)
    with pytest.raises(ValueError, match="given twice"):
        mechanism(f"{text[:-1]}, {first}=1, {first}=1)")
    for key, argument in TABLE[name].items():
        if argument.default is ...:
            scope = Variables({k: v for k, v in noise.arguments.items() if k != key}, {})
            given = ", ".join(f"{k}={k}" for k in scope if k in TABLE[name])
            with pytest.raises(ValueError, match=f"needs {key}"):
                evaluate(f"{name}({given})", scope)


@pytest.mark.parametrize(
    "text",
    [
        "delta(Laplace(scale=1), 0, direction='add')",
        "delta(Laplace(scale=1), 0, adjacency='swap')",
        "mu(CorrelatedGaussian(dimension=2, mu=1))",
        "mu(CountEllipse(dimension=4, sparsity=1, mu=1))",
        "sqrt(2, base=3)",
        "variance(CorrelatedGaussian(dimension=2, mu=1))",
        "variance(CorrelatedGaussian(dimension=2, mu=1), 3)",
        "delta(KaryTree(steps=2, arity=3, epsilon=1, subtraction=True), 0) + Elsewhere(x=1)",
        "mu(GeneralGaussian(covariance=Diagonal(variances=[0, 1]), space=L2Ball(dimension=2)))",
    ],
)
def test_questions_that_have_no_answer(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        evaluate(text)


ALLOCATIONS = [
    *(("2", 20, 1, "-1/10"), ("1", 100, 1, "0"), ("4", 10, 3, "1/4")),
    *(
        pytest.param(*each, marks=pytest.mark.slow)
        for each in (
            *(("1", 2, 1, "1/2"), ("2", 1000, 10, "34/100")),
            ("3", 10**4, 5, "1/20"),
        )
    ),
]
"""σ, steps, epochs and ε: the last has δ = 4e-14."""


@pytest.mark.parametrize(("sigma", "steps", "epochs", "epsilon"), ALLOCATIONS)
def test_random_allocation_is_the_integral_of_its_moments(
    sigma: str, steps: int, epochs: int, epsilon: str
) -> None:
    """Seven settings by two routes that share nothing but balls, to ten digits."""
    text = f"RandomAllocation(Gaussian(standard_deviation='{sigma}'), steps={steps})"
    if epochs > 1:
        text = f"Composed({text}, {epochs})"
    laws, at = pairs(under(mechanism(text), "add-remove")), Fraction(epsilon)
    relation = Adjacency.ADD_REMOVE
    for law, pair in zip(laws, profile.worst_pairs(parse(text), relation, None), strict=True):
        value, around = exact(at), pair.tails(exact(at))
        known = [(hockey_stick(law, at), pair.hockey_stick(value))]
        known += zip(tails(law, at), (around.p_above, around.q_above), strict=True)
        for found, other in known:
            ball = reals.ball(found)
            assert ball.overlaps(other)
            assert ball.rel_accuracy_bits() > 33
    assert not fits(mechanism(text), "replace-one")


def test_random_allocation_is_bounded_where_its_integral_is_long() -> None:
    law = {"law": "random-allocation", "mu": Fraction(1, 2), "steps": 10**9, "mixture": "P"}
    found = reals.ball(hockey_stick(law, Fraction(1)))
    assert found.upper() > 0
    assert found.upper() < 1e-2

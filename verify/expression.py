"""A small language for the numbers in claims: parsed, never evaluated by Python.

Arithmetic (+ − * / **), comparisons, named variables, functions of a fixed table, and
mechanisms in the one notation whose arguments may themselves be expressions:
`delta(Gaussian(standard_deviation=sigma), epsilon) <= delta`. Rational arithmetic stays exact;
anything else becomes a ball at flint's current precision. A mechanism needs exact arguments:
`round_up(x)` and `round_down(x)` turn a ball into a rational above or below it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import operator
import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from math import ceil, comb, floor
from typing import Any, TypeAlias, final

from flint import arb, fmpq

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import loss_tails
from dpassay.accountant.counting import grids
from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.accountant.errors import InvalidInputError, UndecidedError, expected, suggestion
from dpassay.accountant.geometry.ellipse import optimal_ellipse
from dpassay.accountant.geometry.spaces import defects
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.mechanisms.additive.gaussian import normal_quantile
from dpassay.accountant.notation import build
from dpassay.accountant.numbers.exact import ExactReal, computed, exact
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs import invert
from dpassay.accountant.pairs.gaussian import normal_cdf
from dpassay.accountant.pairs.rank_one import theorem_5_sigma_star
from dpassay.accountant.questions import profile

# --- The values that expressions are made of: exact numbers, balls, mechanisms, texts, lists ------

RealValue: TypeAlias = Fraction | ExactReal | arb
Value: TypeAlias = object
"""A RealValue, a mechanism or another description, a text, a truth value, or a list of values."""


def number(value: Value, source: str = "expression") -> RealValue:
    """Return a rational as a Fraction, an irrational exact number or a ball as it is."""
    if isinstance(value, ExactReal):
        return value if value.rational is None else value.rational
    if isinstance(value, (Fraction, arb)):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, str):
        return number(exact(value), source)
    raise InvalidInputError(f"Expected numbers in {source[:80]!r}, not {value!r}.")


def to_ball(value: Value, source: str = "expression") -> arb:
    """Return a ball around a number."""
    real = number(value, source)
    if isinstance(real, arb):
        return real
    return ball(real) if isinstance(real, Fraction) else real.ball()


def to_exact(value: Value, source: str = "expression") -> ExactReal:
    """Return an exact number, or raise InvalidInputError for a ball."""
    real = number(value, source)
    if isinstance(real, arb):
        raise InvalidInputError(
            f"Expected {source[:80]!r} to be exact, not a ball. "
            "Wrap it in round_up(…) or round_down(…)."
        )
    return ExactReal.of_rational(real) if isinstance(real, Fraction) else real


def to_integer(value: Value, source: str = "expression") -> int:
    """Return an integer, or raise InvalidInputError."""
    real = number(value, source)
    if not isinstance(real, Fraction) or real.denominator != 1:
        raise InvalidInputError(f"Expected {source[:80]!r} to be an integer.")
    return real.numerator


# --- The functions that expressions may call, on exact numbers and balls --------------------------

Function: TypeAlias = Callable[..., Value]


_MOST_BITS = 1 << 20
"""Of an integer that is written out."""
_MOST_TERMS = 1_000_000
"""Of a harmonic number or a binomial coefficient: some seconds."""


def _count(value: Value, name: str) -> int:
    """Return an integer that is not too large, or raise InvalidInputError."""
    found = to_integer(value)
    if found > _MOST_TERMS:
        raise InvalidInputError(f"{name} of {found}: expected at most {_MOST_TERMS}.")
    return found


def _on_balls(function: Callable[..., arb]) -> Function:
    """Lift a function of balls to values."""

    def lifted(*values: Value) -> arb:
        return function(*(to_ball(value) for value in values))

    return lifted


def _log(x: arb, base: arb | None = None) -> arb:
    return x.log() if base is None else x.log() / base.log()


def _fold(choose: Callable[[arb, arb], arb]) -> Function:
    def folded(*values: Value) -> Value:
        if all(isinstance(value, Fraction) for value in values):
            fractions = [value for value in values if isinstance(value, Fraction)]
            return min(fractions) if choose is arb.min else max(fractions)
        result = to_ball(values[0])
        for value in values[1:]:
            result = choose(result, to_ball(value))
        return result

    return folded


def _sqrt(value: Value) -> Value:
    if isinstance(value, Fraction):
        if value < 0:
            raise InvalidInputError(f"Root of the negative number {value}.")
        return ExactReal.of_root(value)
    return to_ball(value).sqrt()


def _integer_part(
    value: Value, on_fraction: Callable[[Fraction], int], on_ball: Callable[[arb], arb], name: str
) -> Fraction:
    if isinstance(value, Fraction):
        return Fraction(on_fraction(value))
    ball = to_ball(value)
    if abs(ball) > arb(2) ** _MOST_BITS:
        raise InvalidInputError(f"{name} of a number of more than {_MOST_BITS} bits.")
    found = on_ball(ball).unique_fmpz()
    if found is None:
        raise InvalidInputError(f"{name} is not decided: the number is too near an integer.")
    return Fraction(int(found))


def _rounded(direction: str) -> Function:
    """Return a rational with a given number of digits, at most or at least a number."""

    def rounded(value: Value, digits: Value = Fraction(40)) -> Fraction:
        with ctx.workprec(max(ctx.prec, 4 * to_integer(digits) + 64)):
            ball = to_ball(value)
            if not ball.contains(0) and abs(abs(ball).log()) > _MOST_BITS:
                raise InvalidInputError(f"round_{direction} of a number beyond e^±{_MOST_BITS}.")
            interval = Interval.of_ball(ball, to_integer(digits))
        return Fraction(interval.upper if direction == "up" else interval.lower)

    return rounded


def _binomial(n: Value, k: Value) -> Fraction:
    return Fraction(comb(_count(n, "binomial"), to_integer(k)))


def _harmonic(count: Value, order: Value = Fraction(1)) -> arb:
    """Σ_{i=1}^{count} i^{−order}."""
    power = to_ball(order)
    return sum((arb(i) ** -power for i in range(1, _count(count, "harmonic") + 1)), start=arb(0))


def _ellipse_defects(dimension: Value, sparsity: Value) -> Fraction:
    """Count what is wrong with the optimal ellipse: 0 proves it private and optimal."""
    return Fraction(len(defects(optimal_ellipse(to_integer(dimension), to_integer(sparsity)))))


def _on_tree(
    digits: grids.Digits, question: Callable[[grids.Tree], Fraction | int]
) -> Callable[[Value, Value], Fraction]:
    """Return a function of arity and steps."""

    def ask(arity: Value, steps: Value) -> Fraction:
        return Fraction(question(grids.Tree(to_integer(arity), to_integer(steps), digits)))

    return ask


_TREES: dict[str, Callable[[grids.Tree], Fraction | int]] = {
    "mse": grids.Tree.mean_squared_error,
    "height": lambda found: found.height,
    "load": grids.largest_load,
    "terms": lambda found: len(found.noise_variables()),
    "live": grids.most_live,
    "gaps": lambda found: sum(not v.contiguous for v in found.noise_variables()),
    "misfits": grids.misfits,
    "clashes": grids.clashes,
}


def _r1smg_sigma_star(epsilon: Value, delta: Value, dimension: Value, sensitivity: Value) -> arb:
    """Return the noise 2Δ²/(εψ) of Ji and Li, Theorem 5, as printed."""
    shift = to_ball(sensitivity)
    return theorem_5_sigma_star(to_ball(epsilon), to_ball(delta), to_integer(dimension), shift)


def _mills(x: arb) -> arb:
    """Φ(−x)/φ(x), without overflow: it decreases, and tends to 0."""
    half = x * x / 2
    if x > 1:  # U(1/2, 1/2, x²/2)/√2
        return half.hypgeom_u(arb(1) / 2, arb(1) / 2) / arb(2).sqrt()
    return (arb.pi() / 2).sqrt() * half.exp() * (x / arb(2).sqrt()).erfc()


def _question(name: str) -> Function:
    """Return a question of the accountant: the exact answer, or a ball at this precision."""

    def ask(mechanism: Value, *arguments: Value, adjacency: Value = None) -> RealValue:
        if not isinstance(mechanism, Mechanism):
            raise InvalidInputError(f"Expected {name}(mechanism, …), not {mechanism!r}.")
        relation = Adjacency.read(adjacency if isinstance(adjacency, str) else None)
        at = [to_exact(argument) for argument in arguments]
        known = _EXACT[name](mechanism, relation) if name in _EXACT and not at else None
        return number(known) if known is not None else QUESTIONS[name](mechanism, relation, *at)

    return ask


def _pairs(mechanism: Mechanism, adjacency: Adjacency | None) -> Any:
    return profile.worst_pairs(mechanism, adjacency, None)


def _coordinate_variance(
    mechanism: Mechanism, _: Adjacency | None, index: ExactReal | None = None
) -> arb:
    entries = mechanism.variances()
    if index is None:
        if len(entries) > 1:
            raise InvalidInputError("The variances differ: give variance(mechanism, index).")
        return entries[0]
    position = to_integer(index)
    return entries[0] if len(entries) == 1 else entries[position]


_FINE: dict[str, Any] = {"relative_width": RELATIVE_WIDTH}
_SEARCHED = Fraction(1, 10**6)
"""Relative width of a supremum over orders, which is searched."""


def _asked_of(module: str, question: str, width: Fraction = RELATIVE_WIDTH) -> Callable[..., arb]:
    """Return a question of the accountant, whose module is imported when it is first asked."""

    def ask(mechanism: Mechanism, adjacency: Adjacency | None, *at: ExactReal) -> arb:
        found = getattr(import_module(f"dpassay.accountant.questions.{module}"), question)
        answer: Interval = found(mechanism, *at, adjacency=adjacency, relative_width=width)
        return answer.ball()

    return ask


QUESTIONS: dict[str, Callable[..., arb]] = {
    "delta": lambda m, a, eps: invert.hockey_stick(_pairs(m, a), eps),
    "epsilon": lambda m, a, d: profile.epsilon(m, d, adjacency=a, **_FINE).ball(),
    "beta": _asked_of("tradeoff", "beta"),
    "membership": _asked_of("attack", "membership"),
    "posterior": _asked_of("attack", "posterior"),
    "reconstruction": _asked_of("attack", "reconstruction"),
    "renyi": _asked_of("guarantees", "renyi"),
    "rho": _asked_of("guarantees", "rho", _SEARCHED),
    "mu": lambda m, a: m.gaussian_mu(a),
    "max_loss": lambda m, a: invert.most([pair.max_loss() for pair in _pairs(m, a)]),
    "loss_above": lambda m, a, x: invert.most([loss_tails(p, x).p_above for p in _pairs(m, a)]),
    "total_variation": _asked_of("guarantees", "total_variation"),
    "variance": _coordinate_variance,
    "mse": lambda m, _: m.mean_squared_error(),
    "quantile": lambda m, _, level: m.quantile(level),
    "dimension": lambda m, _: arb(m.dimension),
}


_EXACT: dict[str, Callable[[Mechanism, Adjacency | None], ExactReal | None]] = {
    "mu": lambda m, a: m.exact_gaussian_mu(a),
    "rho": lambda m, a: m.exact_rho(a),
}
"""Questions that some mechanisms answer exactly; the others return None."""


def _count_noise(question: Callable[..., Any]) -> Function:
    """Lift a question about bounded count noise, asked as name(index, …, E, eta, D).

    As in `dpassay.accountant.counting.count_noise`, with E = e^ε in the place of ε:
    where E and η are rational, so is the answer, and equalities are decided.
    """

    def asked(*values: Value) -> Value:
        *indices, ratio, eta, support = values
        noise = _count_law(number(ratio), number(eta), to_integer(support))
        found = question(noise, *map(to_integer, indices))
        return Fraction(int(found.p), int(found.q)) if isinstance(found, fmpq) else found

    return asked


@functools.lru_cache(maxsize=256)
def _rational_count_law(ratio: Fraction, eta: Fraction, support: int) -> CountNoise:
    noise = CountNoise.of(0, eta, support)
    return dataclasses.replace(noise, ratio=fmpq(ratio.numerator, ratio.denominator))


def _count_law(ratio: RealValue, eta: RealValue, support: int) -> CountNoise:
    if to_ball(ratio) < 1:
        raise expected("E", ratio, "≥ 1", "E is e^epsilon.")
    if isinstance(ratio, Fraction) and isinstance(eta, Fraction):
        return _rational_count_law(ratio, eta, support)
    share = to_ball(eta) if isinstance(eta, arb) else to_exact(eta)
    return dataclasses.replace(CountNoise.of(0, share, support), ratio=to_ball(ratio))


def _nearest_float(x: Value) -> Fraction:
    """Return the binary number nearest to a rational one, as reports print the floats of Python."""
    return number(exact(f"float({to_exact(x)})"))  # type: ignore[return-value]  # is rational


def _optimal_count(objective: str) -> Function:
    """Return the certified optimum of `dpassay.lp.count_noise` as a function of (E, η, D, N, n_0).

    Without N, one law is used for all counts n ≥ D; without n_0 the counts start at 1. E must be
    rational; the optimum is then a fraction, except for large programs.
    """

    @functools.lru_cache(maxsize=256)
    def solved(ratio: Fraction, eta: Fraction, support: int, *counts: int) -> Value:
        # by name: whoever imports this table, the certificates do, needs no solver for it
        problem = import_module("dpassay.lp.problem").CountNoiseProblem(
            ratio=ratio,
            eta=eta,
            support=support,
            max_count=counts[0] if counts else None,
            min_count=counts[1] if counts[1:] else 1,
            objective=objective,
        )
        found = import_module("dpassay.lp.count_noise").optimal_count_noise(problem)
        optimum: Value = found.delta.ball() if found.exact is None else found.exact
        return optimum

    def asked(ratio: Value, eta: Value, support: Value, *counts: Value) -> Value:
        exact = number(ratio), number(eta)
        if not isinstance(exact[0], Fraction) or not isinstance(exact[1], Fraction):
            raise InvalidInputError(f"Expected E={ratio} and eta={eta} to be rational.")
        return solved(exact[0], exact[1], to_integer(support), *map(to_integer, counts))

    return asked


FUNCTIONS: dict[str, Function] = {
    "sqrt": _sqrt,
    "exp": _on_balls(arb.exp),
    "expm1": _on_balls(arb.expm1),
    "log": _on_balls(_log),
    "log1p": _on_balls(arb.log1p),
    "log2": _on_balls(lambda x: x.log() / arb(2).log()),
    "sin": _on_balls(arb.sin),
    "cos": _on_balls(arb.cos),
    "tanh": _on_balls(arb.tanh),
    "gamma": _on_balls(arb.gamma),
    "lgamma": _on_balls(arb.lgamma),
    "erf": _on_balls(arb.erf),
    "erfc": _on_balls(arb.erfc),
    "Phi": _on_balls(normal_cdf),
    "Phi_inverse": lambda p: normal_quantile(to_exact(p)),
    "mills": _on_balls(_mills),
    "gamma_upper": _on_balls(lambda a, x: x.gamma_upper(a, regularized=1)),  # Γ(a, x)/Γ(a)
    "beta_lower": _on_balls(lambda a, b, x: x.beta_lower(a, b, regularized=True)),  # I_x(a, b)
    "lambert_w": _on_balls(arb.lambertw),
    "pi": arb.pi,
    "float": _nearest_float,
    "abs": _on_balls(abs),
    "min": _fold(arb.min),
    "max": _fold(arb.max),
    "floor": lambda x: _integer_part(x, floor, arb.floor, "floor"),
    "ceil": lambda x: _integer_part(x, ceil, arb.ceil, "ceil"),
    "round_up": _rounded("up"),
    "round_down": _rounded("down"),
    "binomial": _binomial,
    "harmonic": _harmonic,
    "ellipse_defects": _ellipse_defects,
    **{f"tree_{name}": _on_tree(grids.Digits.PLAIN, ask) for name, ask in _TREES.items()},
    **{f"signed_tree_{name}": _on_tree(grids.Digits.SIGNED, ask) for name, ask in _TREES.items()},
    "r1smg_sigma_star": _r1smg_sigma_star,
    "honaker_mse": lambda steps: grids.honaker_mean_squared_error(to_integer(steps)),
    "count_noise_delta": _count_noise(lambda noise: noise.delta),
    "count_noise_optimal_delta": _count_noise(lambda noise: noise.optimal_delta),
    "optimal_count_delta": _optimal_count("singular"),
    "optimal_count_true_delta": _optimal_count("true-delta"),
    "count_noise_weight": _count_noise(lambda noise, j: noise.weight(j)),
    "count_noise_mass": _count_noise(lambda noise, z: noise.mass(z)),
    **{name: _question(name) for name in QUESTIONS},
}
"""Name → function of values."""


Environment: TypeAlias = Mapping[str, Value]

RELATIONS: dict[type[ast.cmpop], str] = {
    ast.LtE: "<=",
    ast.Lt: "<",
    ast.GtE: ">=",
    ast.Gt: ">",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ROUNDINGS = ("round_up", "round_down")
_ROUNDING_PRECISION = 1024
"""Their arguments are evaluated at no less, so that the result does not depend on the precision."""
_MAX_EXPONENT = 100_000
"""Largest exponent, and bits of a power, that are multiplied out exactly."""
LONGEST = 100_000
"""Characters of one expression."""
_PLAIN = re.compile(r"^(?![\s\S]*[0-9.][eE][+-]?[0-9_]{6})[\t\n -\"$-\[\]-~]*(?![\s\S])")
"""An expression: plain ASCII without comments, exponents of at most five digits."""
_LONGEST_KEPT = 1 << 17
"""Bits of a rational number that is kept exactly; a longer one becomes a ball."""
_MAX_TERMS = 1_000_000
"""Terms of a sum."""


@final
@dataclass(frozen=True)
class Expression:
    """A parsed expression; `text` reads back as the same one."""

    text: str

    def __post_init__(self) -> None:
        """Refuse anything outside the grammar, before anything is computed."""
        _checked(self.text)

    def tree(self) -> ast.expr:
        """Return the syntax tree."""
        return _parse(self.text)

    def value(self, variables: Environment) -> Value:
        """Evaluate at flint's current precision.

        Raises
        ------
        InvalidInputError
            If a variable is missing, or a mechanism's argument is not exact.
        """
        return _evaluate(self.tree(), variables, self.text.strip())

    def ball(self, variables: Environment) -> arb:
        """Evaluate to a ball."""
        return to_ball(self.value(variables), self.text)

    def exact(self, variables: Environment) -> ExactReal:
        """Evaluate to an exact number, or raise InvalidInputError."""
        value = _exactly(self.tree(), self.value(variables), variables, self.text.strip())
        return to_exact(value, self.text)

    def mechanism(self, variables: Environment) -> Mechanism:
        """Evaluate to a mechanism, or raise InvalidInputError."""
        value = self.value(variables)
        if not isinstance(value, Mechanism):
            raise InvalidInputError(f"Expected {self.text!r} to be a mechanism.")
        return value


@functools.lru_cache(maxsize=4096)
def _checked(text: str) -> None:
    """Refuse a text outside the grammar."""
    _check(_parse(text), text)


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise InvalidInputError(f"Expected at most {LONGEST} characters, not {len(text)}.")
    if not _PLAIN.match(text):
        raise InvalidInputError(
            "Expected plain ASCII without comments, exponents of at most five digits, not "
            f"{ascii(text)[:80]}."
        )
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidInputError(
            f"Expected an expression, not {text[:80]!r}. Write for example 2*log(1.25/delta)."
        ) from None


def split_relation(text: str) -> tuple[str, str, str]:
    """Split "left <= right" into its sides and the relation.

    Raises InvalidInputError unless there is exactly one of <= < >= > == !=.
    """
    tree = _parse(text)
    if (
        not isinstance(tree, ast.Compare)
        or len(tree.ops) != 1
        or type(tree.ops[0]) not in RELATIONS
    ):
        raise InvalidInputError(
            f"Expected one comparison such as 'left <= right', not {text[:80]!r}."
        )
    source = text.strip()
    return (
        _text(tree.left, source),
        RELATIONS[type(tree.ops[0])],
        _text(tree.comparators[0], source),
    )


@functools.lru_cache(maxsize=4096)
def free(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a text uses without binding them, and the indices that it binds."""
    names: set[str] = set()
    indices: set[str] = set()
    stack: list[tuple[ast.AST, frozenset[str]]] = [(Expression(text).tree(), frozenset())]
    while stack:
        node, bound = stack.pop()
        match node:
            case ast.Name(id=name):
                names |= {name} - bound
            case ast.Call(func=ast.Name(id="sum" | "product"), args=[ast.Name(id=i), *rest]):
                indices.add(i)
                stack += [(part, bound) for part in rest[:2]]
                stack += [(part, bound | {i}) for part in rest[2:]]
            case ast.Call(func=ast.Name(), args=args, keywords=keywords):
                stack += [(part, bound) for part in (*args, *(k.value for k in keywords))]
            case _:
                stack += [(part, bound) for part in ast.iter_child_nodes(node)]
    return frozenset(names), frozenset(indices)


def renamed(text: str, put: Mapping[str, str]) -> str:
    """Return an expression with other texts in the place of variables."""
    text = text.strip().replace("\n", " ")
    nodes = [*ast.walk(_parse(text))]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    found = [n for n in nodes if isinstance(n, ast.Name) and n.id in put and id(n) not in called]
    for node in sorted(found, key=lambda node: -node.col_offset):
        text = text[: node.col_offset] + put[node.id] + text[node.end_col_offset :]
    return text


def _text(node: ast.expr, source: str) -> str:
    return ast.get_source_segment(source, node) or ast.unparse(node)


def _check(tree: ast.expr, source: str) -> None:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                if name not in FUNCTIONS and name not in DESCRIPTIONS and name not in FORMS:
                    raise InvalidInputError(
                        f"Unknown function {name!r} in {source[:80]!r}. "
                        f"{suggestion(name, [*FUNCTIONS, *DESCRIPTIONS, *FORMS])}"
                    )
            case ast.Constant(value=complex() | bytes()):
                raise _refused(node, source)
            case (
                ast.Name() | ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.List()
                | ast.keyword() | ast.expr_context() | ast.Add() | ast.Sub() | ast.Mult()
                | ast.Div() | ast.Pow() | ast.USub() | ast.UAdd()
            ):  # fmt: skip
                pass
            case _:
                raise _refused(node, source)


def _refused(node: ast.AST, source: str) -> InvalidInputError:
    shown = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
    return InvalidInputError(
        f"Expected arithmetic, a function of the table or a mechanism, not {shown[:60]!r} in "
        f"{source[:80]!r}. Expressions are parsed, never evaluated by Python."
    )


def _evaluate(node: ast.expr, variables: Environment, source: str) -> Value:
    match node:
        case ast.Constant(value=bool() | None):
            return node.value
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant():
            return Fraction(_text(node, source))  # the decimal as written
        case ast.Name(id=name):
            if name not in variables:
                raise InvalidInputError(
                    f"Unknown variable {name!r} in {source[:80]!r}. "
                    f"{suggestion(name, variables) if variables else 'No variables are given.'}"
                )
            return variables[name]
        case ast.List(elts=entries):
            return [_evaluate(entry, variables, source) for entry in entries]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = number(_evaluate(operand, variables, source), source)
            return -value
        case ast.UnaryOp(operand=operand):
            return _evaluate(operand, variables, source)
        case ast.BinOp():
            left = number(_evaluate(node.left, variables, source), source)
            right = number(_evaluate(node.right, variables, source), source)
            return _arithmetic(node.op, left, right, source)
        case ast.Call(func=ast.Name(id=name)):
            return _call(name, node, variables, source)
    raise _refused(node, source)


def _call(name: str, node: ast.Call, variables: Environment, source: str) -> Value:
    if name in FORMS:
        return FORMS[name](node, variables, source)
    if name in _ROUNDINGS and ctx.prec < _ROUNDING_PRECISION:
        with ctx.workprec(_ROUNDING_PRECISION):
            return _call(name, node, variables, source)
    to_value = _evaluate if name in FUNCTIONS and name not in QUESTIONS else _exact_argument
    positional = [to_value(argument, variables, source) for argument in node.args]
    named = {
        keyword.arg: to_value(keyword.value, variables, source)
        for keyword in node.keywords
        if keyword.arg is not None
    }
    if name in FUNCTIONS:
        try:
            return FUNCTIONS[name](*positional, **named)
        except TypeError as error:
            raise InvalidInputError(f"{name} in {source[:80]!r}: {error}.") from None
    return build(
        name,
        {key: _argument(value, f"{name}.{key}") for key, value in named.items()},
        [_argument(value, f"{name}[{index}]") for index, value in enumerate(positional)],
    )


def _exact_argument(node: ast.expr, variables: Environment, source: str) -> Value:
    """Evaluate what has to be exact, where it is."""
    if isinstance(node, ast.List):
        return [_exact_argument(entry, variables, source) for entry in node.elts]
    return _exactly(node, _evaluate(node, variables, source), variables, source)


def _exactly(node: ast.expr, value: Value, variables: Environment, source: str) -> Value:
    """Return the number whose ball is given exactly, where it is a formula of exact numbers."""
    if not isinstance(value, arb):
        return value
    try:
        return computed(node, source, variables)
    except (SyntaxError, ArithmeticError, UndecidedError):
        return value


def _argument(value: Value, name: str) -> object:
    """Turn a value into what a mechanism accepts."""
    if isinstance(value, arb):
        raise InvalidInputError(
            f"Expected {name} to be exact, not a ball. Wrap it in round_up(…) or round_down(…)."
        )
    if isinstance(value, list):
        return [_argument(entry, name) for entry in value]
    return value


def _expression_fold(
    start: Value, op: ast.operator, node: ast.Call, variables: Environment, source: str
) -> Value:
    """Evaluate sum(i, low, high, term), or a product: for integer i from low to high."""
    match node.args:
        case [ast.Name(id=name), low, high, term]:
            first = to_integer(_evaluate(low, variables, source), source)
            last = to_integer(_evaluate(high, variables, source), source)
            if last - first > _MAX_TERMS:
                raise InvalidInputError(
                    f"Expected at most {_MAX_TERMS} terms, not {last - first + 1}, in "
                    f"{source[:80]!r}."
                )
        case _:
            raise InvalidInputError(f"Expected sum(i, low, high, term) in {source[:80]!r}.")
    total = start
    for index in range(first, last + 1):
        inner = ChainMap({name: Fraction(index)}, variables)  # type: ignore[arg-type]  # never written
        value = _evaluate(term, inner, source)
        total = _arithmetic(op, number(total, source), number(value, source), source)
    return total


FORMS = {
    "sum": functools.partial(_expression_fold, Fraction(0), ast.Add()),
    "product": functools.partial(_expression_fold, Fraction(1), ast.Mult()),
}
"""Forms that bind a variable."""


_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _arithmetic(op: ast.operator, left: RealValue, right: RealValue, source: str) -> RealValue:
    """Stay exact where both sides are, else go on in balls."""
    if isinstance(op, ast.Pow):
        return _power(left, right, source)
    if isinstance(op, ast.Div) and isinstance(right, Fraction) and right == 0:
        raise InvalidInputError(f"Division by zero in {source[:80]!r}.")
    operate = _OPERATIONS[type(op)]
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        if not _long(left, right):
            return number(operate(left, right))
    elif isinstance(op, ast.Mult | ast.Div) and not any(isinstance(s, arb) for s in (left, right)):
        one, other = to_exact(left, source), to_exact(right, source)
        a, b = one.signed_square, other.signed_square
        if a is not None and b is not None and not _long(a, b):
            return number(operate(one, other))
    return number(operate(to_ball(left, source), to_ball(right, source)))


def _long(left: Fraction, right: Fraction) -> bool:
    """Whether a sum or product of two fractions may have more digits than are kept."""
    ends = (left.numerator, left.denominator, right.numerator, right.denominator)
    return sum(end.bit_length() for end in ends) > _LONGEST_KEPT


def _power(left: RealValue, right: RealValue, source: str) -> RealValue:
    if isinstance(right, Fraction) and right.denominator == 1 and abs(right) <= _MAX_EXPONENT:
        if isinstance(left, Fraction):
            if left == 0 and right < 0:
                raise InvalidInputError(f"Division by zero in {source[:80]!r}.")
            size = max(left.numerator.bit_length(), left.denominator.bit_length())
            if size * abs(right) <= _MAX_EXPONENT:
                return left**right.numerator
        return to_ball(left, source) ** int(right)
    if isinstance(left, Fraction) and isinstance(right, Fraction) and right == Fraction(1, 2):
        if left < 0:
            raise InvalidInputError(f"Root of a negative number in {source[:80]!r}.")
        return number(ExactReal.of_root(left), source)
    return to_ball(left, source) ** to_ball(right, source)

"""Exception classes, and the functions that build their messages."""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar

from dpassay.accountant.aliases import NAMES, translated

_MOST_NAMES = 40
"""Maximal number of known names that a message lists."""

Answer = TypeVar("Answer")
Parameters = ParamSpec("Parameters")


_HIDDEN = re.compile(r"[^\n -~]")
"""Characters other than newline and printable ASCII, which may need an escape."""


def printable(text: object) -> str:
    r"""Return a text that is safe to print: everything unprintable but newlines is escaped.

    Control characters, bidirectional marks and lone surrogates become backslash escapes, so that a
    quoted file cannot send commands to the terminal or change the layout of a page.

    >>> printable("REFUTED\r\x1b[2KHOLDS")
    'REFUTED\\r\\x1b[2KHOLDS'
    """
    return _HIDDEN.sub(_escaped, str(text))


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def one_line(text: object) -> str:
    """Return a printable text on one line: each run of white space becomes one space."""
    return printable(" ".join(str(text).split()))


class DpassayError(Exception):
    """Base class of every error that this package raises on purpose."""

    def __str__(self) -> str:
        """Return the message with unprintable characters escaped: it may quote a file."""
        return printable(super().__str__())


class InvalidInputError(DpassayError, ValueError):
    """An argument, a claim or a file is invalid."""


class AdjacencyError(InvalidInputError):
    """The neighbouring relation is missing, unknown, or does not fit the mechanism."""


class NotApplicableError(DpassayError):
    """The question is not defined, or not supported, for this mechanism."""


class Enclosure(Protocol):
    """The part of `Interval` that error messages use; importing the class would be a cycle."""

    @property
    def lower(self) -> Decimal:
        """The lower end."""

    @property
    def upper(self) -> Decimal:
        """The upper end."""

    @property
    def relative_width(self) -> Fraction | None:
        """The width, relative to the end of smaller absolute value."""


class UndecidedError(DpassayError):
    """A question could not be decided, or its enclosure is wider than requested."""

    def __init__(
        self, message: str = "", *, reached: float = math.inf, interval: Enclosure | None = None
    ) -> None:
        super().__init__(message)
        self.reached = reached
        """The relative width that was reached, +∞ if unknown."""
        self.interval = interval
        """The best enclosure that was found, None if there is none."""

    def say_interval(self, found: Enclosure, name: str = "") -> None:
        """Record the enclosure that was reached, and append it and its width to the message.

        `name` is the quantity that it encloses.
        """
        self.interval, width = found, found.relative_width
        own = math.inf if width is None else float(width)
        self.reached = min(self.reached, own)
        size = "" if width is None else f", of relative width {own:.1e}"
        words = f"Reached {name} in" if name else "Reached"
        reached = "" if words in str(self) else f" {words} {found}{size}."
        self.args = (f"{self}{reached} Omit relative_width to get what was reached.",)


TOO_LARGE = (
    "A number exceeds the range of the floats (1.8e308) or machine integers (2^63) that choose the "
    "computation. Give numbers nearer to 1."
)
"""Said of numbers that are too large or too small."""


@contextlib.contextmanager
def within_floats() -> Iterator[None]:
    """Turn an overflow of a float or a machine integer, or a division by 0, into a refusal.

    Floats only choose how to compute, so a number that they do not hold leaves a question open.
    """
    try:
        yield
    except (OverflowError, ZeroDivisionError) as error:
        raise UndecidedError(TOO_LARGE) from error


class BetweenError(UndecidedError):
    """A lower and an upper bound are known, and higher precision does not bring them together."""

    def __init__(self, what: str, interval: Enclosure) -> None:
        self.lower, self.upper = interval.lower, interval.upper
        width = interval.relative_width
        super().__init__(
            f"Reached {what} in [{self.lower}, {self.upper}]: one end is attained by a pair of "
            "neighbours, and the other end bounds all pairs. No single pair is the worst one, and "
            "the exact value is not known. Ask for a larger relative_width.",
            reached=math.inf if width is None else float(width),
            interval=interval,
        )


class NeitherTrueNorFalse:
    """A result with more than two outcomes, which has no truth value.

    By default `if result:` would be true for every outcome, also for REFUTED. The class attribute
    `compare` names the attribute to compare instead.
    """

    __slots__ = ()
    compare: ClassVar[str]

    def __bool__(self) -> bool:
        """Raise InvalidInputError, so that `assert verify(…)` cannot pass for a false claim."""
        name = type(self).__name__
        raise InvalidInputError(f"{name} is neither true nor false: compare {self.compare}.")


def require_type(argument: str, value: object, kind: type) -> None:
    """Raise InvalidInputError unless a value is an instance of a public class of `dpassay`."""
    if not isinstance(value, kind):
        remedy = f"Make one: dpassay.{kind.__name__}(...)."
        raise expected(argument, value, f"to be a {kind.__name__}", remedy)


def expected(argument: str, value: object, requirement: str, remedy: str = "") -> InvalidInputError:
    """Return the error "Expected argument=value requirement. Remedy."; long values are shortened.

    Examples
    --------
    >>> print(expected("scale", -1, "> 0", "The scale of the noise is a positive number."))
    Expected scale=-1 > 0. The scale of the noise is a positive number.
    """
    try:
        shown = repr(value) if isinstance(value, str) else " ".join(str(value).split())
    except ValueError:  # by default Python refuses to print integers of more than 4300 digits
        shown = f"<{type(value).__name__} of thousands of digits>"
    return InvalidInputError(
        f"Expected {argument}={shortened(shown)} {requirement}.{' ' * bool(remedy)}{remedy}"
    )


def shortened(text: str) -> str:
    """Return a text of at most 80 characters unchanged, else its first 60 and its length."""
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"


def no_mechanism(argument: str, value: object, remedy: str) -> InvalidInputError:
    """Return the error for a value that is not a mechanism; an answer may contain one."""
    kind = type(value).__name__
    if hasattr(value, "mechanism"):
        return InvalidInputError(
            f"Expected {argument} to be a mechanism, not {kind}: take its .mechanism."
        )
    return expected(argument, value, f"to be a mechanism, not {kind}", remedy)


_SYNONYMS = {
    "sigma": ("standard_deviation", "sigma_star", "parameter", "noise_multiplier"),
    "σ": ("standard_deviation", "sigma_star", "parameter", "noise_multiplier"),
    "scale": ("standard_deviation",),
    "noise": ("noise_multiplier",),
    "std": ("standard_deviation",),
    "stddev": ("standard_deviation",),
    "noise_multiplier": ("standard_deviation",),
    "variance": ("parameter", "standard_deviation"),
    "b": ("scale",),
    "λ": ("scale",),
    "eps": ("epsilon", "claim"),
    "epsilon": ("claim", "approximate"),
    "zcdp": ("rho",),
    "rho": ("zcdp",),
    "gdp": ("mu", "gaussian-dp"),
    "dp": ("approximate-dp",),
    "rdp": ("renyi", "order", "renyi-dp"),
    "renyi": ("order",),
    "alpha": ("order",),
    "fdp": ("beta", "tradeoff"),
    "tradeoff": ("beta",),
    "q": ("sampling_prob", "batch_size"),
    "sampling_prob": ("batch_size",),
    "rate": ("sampling_prob",),
    "sample_rate": ("sampling_prob", "batch_size"),
    "sampling_rate": ("sampling_prob", "batch_size"),
    "sampling_probability": ("sampling_prob", "batch_size"),
    "steps": ("count",),
    "rng": ("seed",),
    "random_state": ("seed",),
    "n": ("users", "count", "dataset_size", "steps", "Gaussian"),
    "count": ("selected",),
    "t": ("steps", "count"),
    "sensitivity": ("l2_sensitivity", "l1_sensitivity", "sensitivity", "set"),
    "data_size": ("dataset_size",),
    "sample_size": ("dataset_size",),
    "clip": ("l2_sensitivity",),
    "confidence": ("significance",),
    "pair": ("pairs",),
    "batch": ("batch_size",),
    "size": ("dataset_size",),
    "cells": ("bins",),
    "add": ("add-remove",),
    "unbounded": ("add-remove",),
    "bounded": ("replace-one",),
    "change-one": ("replace-one",),
    "substitute": ("replace-one",),
    "swap": ("replace-one",),
    "normal": ("Gaussian",),
    "geom": ("DiscreteLaplace",),
    "geometric": ("DiscreteLaplace",),
    "geometricmechanism": ("DiscreteLaplace",),
    "gaussianmechanism": ("Gaussian",),
    "laplacemechanism": ("Laplace",),
    "exponential": ("ExponentialMechanism",),
    "subsampled": ("PoissonSubsampled",),
    "subsampledgaussian": ("PoissonSubsampled",),
    "sampledgaussian": ("PoissonSubsampled",),
    "rr": ("RandomizedResponse",),
    "krr": ("RandomizedResponse",),
    "sparsevector": ("AboveThreshold",),
    "svt": ("AboveThreshold",),
    "topk": ("Composed", "ExponentialMechanism", "Selection"),
    "noisymax": ("ReportNoisyMax",),
    "dpftrl": ("MatrixMechanism",),
    "dp_ftrl": ("MatrixMechanism",),
    "privacyengine": ("dpsgd",),
    "dpsgd": ("PoissonSubsampled",),
    "dp-sgd": ("dpsgd", "PoissonSubsampled"),
    "dp_sgd": ("dpsgd", "PoissonSubsampled"),
    "compute_epsilon": ("epsilon",),
    "target_epsilon": ("epsilon",),
    "target_delta": ("delta",),
    "k": ("selected", "candidates", "count", "sparsity"),
    "f": ("flip",),
    "sum": ("BoundedSum",),
    "sums": ("BoundedSum",),
    "stream": ("PrefixSums",),
    "runningsum": ("PrefixSums",),
    "cumulativesums": ("PrefixSums",),
    "continualcounting": ("PrefixSums",),
    "l0": ("sparsity",),
    "l0_sensitivity": ("sparsity",),
    "contributions": ("sparsity",),
    "max_contributions": ("sparsity",),
    "treeaggregation": ("BinaryTree",),
    "r1smg": ("RankOneGaussian",),
    "composition": ("Composed",),
    "product": ("Composed",),
    "neighbors": ("neighbours", "adjacency"),
    "neighbours": ("adjacency",),
    "adjacency": ("neighbours",),
    "neighboring_relation": ("neighbours", "adjacency"),
    "opacus": ("dpsgd",),
    "privacy_loss": ("loss_cdf",),
}
"""Other names of arguments, values and mechanisms, each with its possible names in `dpassay`."""
_ADVICE = {
    **dict.fromkeys(
        ("accumulation", "accumulation_steps", "gradient_accumulation_steps"),
        ("batch_size", "Leave it out: the batch of a step is all records that share its noise."),
    ),
    **dict.fromkeys(
        ("microbatches", "num_microbatches"),
        (
            "batch_size",
            "Leave it out where each has one record. An average of several, clipped as one, may "
            "move by twice the norm: halve the noise multiplier.",
        ),
    ),
    **dict.fromkeys(
        ("fixed", "fixed-size", "uniform"),
        (
            "without-replacement",
            "Did you mean 'without-replacement' (a batch drawn anew in every step) or 'shuffle' "
            "(batches cut from a new order in every epoch)?",
        ),
    ),
    **dict.fromkeys(
        ("max_grad_norm", "l2_norm_clip", "clipping_norm", "clip_norm", "clip"),
        ("noise_multiplier", "Leave it out: the noise multiplier is noise over clipping norm."),
    ),
    **dict.fromkeys(
        ("orders", "alphas", "accountant"),
        ("noise_multiplier", "Leave it out: no accountant is chosen, the answer is proved."),
    ),
    **dict.fromkeys(
        ("sparsity", "l0", "l0_sensitivity", "contributions", "max_contributions"),
        ("bins", "A record is in one bin. One person in several: Counts(dimension=…, sparsity=…)."),
    ),
    **dict.fromkeys(
        ("studentt", "student", "student_t", "students_t", "tdistribution"),
        ("AdditiveNoise", 'Write its density: AdditiveNoise("(1 + x**2/3)**(-2)") has 3 degrees.'),
    ),
    **dict.fromkeys(
        ("prob", "p", "probability", "p_truth", "truth_probability"),
        ("categories", "Give epsilon: with the truth reported 3 times in 4 it is 'log(3)'."),
    ),
    "cauchy": ("AdditiveNoise", 'Write its density: AdditiveNoise("1/(1 + x**2)").'),
    "noise_multiplier": (
        "epochs",
        "Training() is a workload, to compare noise for. The ε of a run: dpassay training, or "
        "dpassay.dpsgd(…).",
    ),
    "gumbel": (
        "ReportNoisyMax",
        'The noise is named in quotes: ReportNoisyMax("Gumbel", scale=2, candidates=10).',
    ),
}
"""Names with no counterpart: maps each to a known name, whose presence shows that the advice
applies, and the advice."""
_RATE = "the sampling probability times the dataset's size"
_CONVERSIONS = {
    ("sigma", "parameter"): "the square of sigma",
    ("noise_multiplier", "standard_deviation"): "the noise multiplier times the sensitivity",
    ("variance", "standard_deviation"): "the square root of the variance",
    ("confidence", "significance"): "1 minus the confidence",
    ("sampling_prob", "batch_size"): _RATE,
    ("q", "batch_size"): _RATE,
    ("sample_rate", "batch_size"): _RATE,
    ("sampling_rate", "batch_size"): _RATE,
    ("sampling_probability", "batch_size"): _RATE,
    ("sensitivity", "set"): "as in --set l2_sensitivity=2",
}
"""Maps (other name, name in `dpassay`) to the conversion, if the two are different numbers."""


def suggestion(unknown: str, known: Iterable[str], *, listed: bool = True) -> str:
    """Return 'Did you mean X?' for a name that another library uses, or that is misspelt.

    If nothing is near, return the list of known names, or "" unless `listed`.

    >>> suggestion("sigma", ["standard_deviation", "l2_sensitivity"])
    "Did you mean 'standard_deviation'?"
    """
    known = list(known)
    for name in _SYNONYMS.get(unknown.lower(), ()):
        if name in known:
            number = _CONVERSIONS.get((unknown.lower(), name))
            return f"Did you mean {name!r}{f', {number}' if number else ''}?"
    if (name := NAMES.get(unknown.lower().replace("_", ""), "")) in known:
        return f"Did you mean {name!r}?"
    needed, why = _ADVICE.get(unknown.lower(), ("", ""))
    if needed in known:
        return why
    near = difflib.get_close_matches(unknown, known, n=1, cutoff=0.5)
    if not near:  # compare again, ignoring case
        folded = {name.casefold(): name for name in known}
        near = [folded[n] for n in difflib.get_close_matches(unknown.casefold(), folded, n=1)]
    if near:
        return f"Did you mean {near[0]!r}?"
    if not listed:
        return ""
    shown = sorted(known)[:_MOST_NAMES]
    rest = len(known) - len(shown)
    return f"Known: {', '.join(shown)}{f' and {rest} more' if rest else ''}."


def no_attribute(thing: object, name: str, remedy: str = "") -> AttributeError:
    """Return the error for a missing attribute, with a remedy or a similar name."""
    if not remedy and not name.startswith("_"):
        remedy = suggestion(name, (each for each in dir(thing) if each[0] != "_"), listed=False)
    text = f"{type(thing).__name__} has no {name!r}.{f' {remedy}' if remedy else ''}"
    return AttributeError(text, name=name)  # with obj=… Python would append its own suggestion


_USAGE = {
    "verify": 'verify("Gaussian(1)", epsilon=1, delta="1e-5")',
    "certify": 'certify("Gaussian(1)", epsilon=1, delta="1e-5")',
    "compare": 'compare("Count()", epsilon=1, delta="1e-6")',
    "optimal_count_noise": "optimal_count_noise(CountNoiseProblem(epsilon=1, eta=…, support=5))",
    "optimal_integer_noise": 'optimal_integer_noise(IntegerNoiseProblem("variance", 20, epsilon=1, '
    'delta="1e-6"))',
    "optimal_free_noise": 'optimal_free_noise(IntegerNoiseProblem("variance", 1, epsilon=1, '
    'delta="1e-6"))',
    "calibrate": 'calibrate("Gaussian", epsilon=1, delta="1e-5")',
    "dpsgd": "dpsgd(noise_multiplier, batch_size, dataset_size, epochs=…, delta=…)",
    "dpsgd_noise": "dpsgd_noise(epsilon, batch_size, dataset_size, epochs=…, delta=…)",
    "audit": "audit(mechanism, epsilon=1, pair=(dataset, neighbour))",
    "audit_until_refuted": "audit_until_refuted(mechanism, epsilon=1, pair=(dataset, neighbour))",
    "assert_private": "assert_private(mechanism, epsilon=1, pair=(dataset, neighbour))",
    "audit_samples": "audit_samples(first, second, epsilon=1)",
    "training_schemes": "training_schemes(batch_size, dataset_size, epochs=…, delta=…, "
    "noise_multiplier=…)",
}
"""Example calls of functions whose required parameters alone are not a useful call."""
_ELSEWHERE = {("dpsgd", "epsilon"): "dpsgd_noise", ("dpsgd_noise", "noise_multiplier"): "dpsgd"}
"""Maps (function, unknown argument) to the function that was probably intended."""


def misused(
    name: str,
    signature: inspect.Signature,
    named: dict[str, Any],
    problem: str,
    elsewhere: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> InvalidInputError:
    """Return the error for a call whose arguments do not fit the signature, with a correct call.

    Parameters
    ----------
    name, signature
        The function.
    named
        The keyword arguments of the call.
    problem
        Python's message.
    elsewhere
        Maps (function, unknown argument) to the call that was probably intended.
    """
    known = list(signature.parameters)
    required = [
        f"{p.name}=…" if p.kind is p.KEYWORD_ONLY else p.name
        for p in signature.parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    usual = _USAGE.get(name) or (required and f"{name}({', '.join(required)})")
    usage = f"Write {usual}." if usual else ""
    unknown = next((argument for argument in named if argument not in known), None)
    if unknown is None:
        return InvalidInputError(f"{name}(): {problem}. {usage}".strip())
    if other := elsewhere.get((name, unknown)):
        return InvalidInputError(
            f"{name}() has no argument {unknown!r}. Did you mean dpassay.{other}?"
        )
    hint = suggestion(unknown, known)
    return InvalidInputError(f"{name}() has no argument {unknown!r}. {hint} {usage}".strip())


def forgiving(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Wrap a function: translate aliases of arguments, and explain a call that does not fit."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*positional: Parameters.args, **named: Parameters.kwargs) -> Answer:
        known = signature.parameters.keys()
        own = named if named.keys() <= known else translated(named, known, len(positional))
        try:
            bound = signature.bind(*positional, **own)
        except TypeError as error:
            raise misused(function.__name__, signature, own, str(error), _ELSEWHERE) from None
        with within_floats():
            return function(*bound.args, **bound.kwargs)

    return called

"""What is audited: something that can be asked for independent runs on a dataset.

The one interface is `Target`: a name, and a block of runs at a time. Everything a user may have
in hand is turned into one by `target`: a mechanism of this package, a callable
`mechanism(dataset, rng)` that returns one output, an object with `sample(dataset, size, rng)`
that returns many, measurements of OpenDP and mechanisms of diffprivlib (recognised by their
methods; neither library is imported), a command that prints samples.

How a callable wants to be called: what is passed to which of its parameters.

The first parameter takes the dataset. Of the others one gets an argument if its name says what it
is for (`rng`, `generator`, `random_state`, `seed`; `size`, `n`, `n_samples`, `num_samples`), and a
number of runs only if it is required: a `size` with a default may be the size of one output. One
required parameter of another name takes the generator. All else keeps its default, so that a switch
such as `exact=False` is never thrown; and what is required and cannot be told is asked for.

Our own mechanisms as targets: the dataset is the true answer, the output answer + noise.

A mechanism says itself at which true answers its worst case is attained (`worst_answers`) and how
its outputs are drawn (`outputs`).
"""

from __future__ import annotations

import importlib
import inspect
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant import notation
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError, InvalidInputError, shortened
from dpassay.verifier.ask import is_notation


class Role(Enum):
    """What an argument is."""

    SIZE = "size"
    GENERATOR = "numpy.random.Generator"
    STATE = "numpy.random.RandomState"
    SEED = "a fresh seed"


_NAMES = {
    "rng": Role.GENERATOR,
    "generator": Role.GENERATOR,
    "random_state": Role.STATE,
    "seed": Role.SEED,
    "size": Role.SIZE,
    "n": Role.SIZE,
    "n_samples": Role.SIZE,
    "num_samples": Role.SIZE,
}
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_SEEDS = 1 << 32
"""Seeds that every library takes: 32 bits."""


@final
@dataclass(frozen=True)
class Binding:
    """The arguments after the dataset, each by its name; by position where that is empty."""

    arguments: tuple[tuple[str, Role], ...] = ()

    @property
    def takes_size(self) -> bool:
        """Whether one call is many runs."""
        return any(role is Role.SIZE for _, role in self.arguments)

    @property
    def takes_randomness(self) -> bool:
        """Whether the auditor chooses the randomness."""
        return any(role is not Role.SIZE for _, role in self.arguments)

    def call(
        self, function: Callable[..., Any], dataset: Any, size: int, rng: np.random.Generator
    ) -> Any:
        """Call the function."""
        given = [(name, _argument(role, size, rng)) for name, role in self.arguments]
        placed = [value for name, value in given if not name]
        return function(dataset, *placed, **{name: value for name, value in given if name})

    def described(self, name: str) -> str:
        """Say how the function of a name is called."""
        shown = (f"{own}={role.value}" if own else role.value for own, role in self.arguments)
        often = "once a block of runs" if self.takes_size else "once a run"
        own = "" if self.takes_randomness else ", with randomness of its own"
        return f"{name}({', '.join(['dataset', *shown])}), {often}{own}"


def _argument(role: Role, size: int, rng: np.random.Generator) -> Any:
    match role:
        case Role.SIZE:
            return size
        case Role.GENERATOR:
            return rng
        case Role.STATE:
            return np.random.RandomState(int(rng.integers(_SEEDS)))
    return int(rng.integers(_SEEDS))


BLOCK = Binding((("", Role.SIZE), ("", Role.GENERATOR)))
"""mechanism(dataset, size, rng)."""


def binding(function: Callable[..., Any], name: str) -> Binding:
    """Tell by its parameters how a callable wants to be called.

    Raises
    ------
    InvalidInputError
        If it takes no dataset, needs an argument that cannot be told, or gives no output at once.
    """
    _require_outputs(function, name)
    try:
        known = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a built-in that says nothing of itself
        return Binding()
    if not known or known[0].kind not in (*_PLACED, inspect.Parameter.VAR_POSITIONAL):
        raise InvalidInputError(
            f"Expected {name} to take the dataset first, as in {name}(dataset, rng)."
        )
    roles: list[tuple[inspect.Parameter, Role]] = []
    unknown: list[inspect.Parameter] = []
    for parameter in known[1:]:
        required = parameter.default is parameter.empty and parameter.kind not in _VARIABLE
        role = None if parameter.kind in _VARIABLE else _NAMES.get(parameter.name)
        if role is None:
            unknown += [parameter] * required
        elif required or (role is not Role.SIZE and not _has_randomness(roles)):
            roles.append((parameter, role))
    if len(unknown) == 1 and not _has_randomness(roles) and unknown[0].kind in _PLACED:
        roles.append((unknown.pop(), Role.GENERATOR))
    if unknown:
        needed = " and ".join(parameter.name for parameter in unknown)
        fixed = ", ".join(f"{parameter.name}=…" for parameter in unknown)
        raise InvalidInputError(
            f"{name} needs {needed}, which the audit cannot know. Fix what is not random, "
            f"functools.partial({name}, {fixed}), and call the others size and rng."
        )
    roles.sort(key=lambda entry: known.index(entry[0]))
    return Binding(
        tuple(("" if p.kind is p.POSITIONAL_ONLY else p.name, role) for p, role in roles)
    )


def _has_randomness(roles: list[tuple[inspect.Parameter, Role]]) -> bool:
    return any(role is not Role.SIZE for _, role in roles)


def _require_outputs(function: Callable[..., Any], name: str) -> None:
    """Refuse what returns no output but a promise of one."""
    for called in (function, getattr(function, "func", None), type(function).__call__):
        if inspect.iscoroutinefunction(called):
            raise InvalidInputError(
                f"{name} is a coroutine function. Audit what it returns: "
                f"lambda dataset, rng: asyncio.run({name}(dataset, rng))."
            )
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            raise InvalidInputError(
                f"{name} is a generator function. Audit what it yields: "
                f"lambda dataset, rng: list({name}(dataset, rng))."
            )


Pair: TypeAlias = tuple[Any, Any]


@final
@dataclass(frozen=True)
class MechanismTarget:
    """A mechanism of this package; a dataset is a true answer (of a composition: one per part)."""

    mechanism: Mechanism
    simulated: bool = False
    """Whether real noise is drawn in floats, in place of the exact release: for estimates, some
    twenty times faster. Then last bits tell nothing of the release, and are left out."""

    @property
    def name(self) -> str:
        """Its notation."""
        return str(self.mechanism)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `size` releases of the true answer `dataset`."""
        if not self.simulated or not self.mechanism.adds_real_noise():
            return self.mechanism.outputs(dataset, size, rng=rng)
        drawn: NDArray[Any] = self.mechanism.sample(size, rng=rng) + np.asarray(dataset)
        return drawn


def worst_pairs(mechanism: Mechanism) -> list[Pair]:
    """Return the pairs of true answers (without, with the record) at which the worst is attained.

    Raises InvalidInputError for a mechanism that lists none.
    """
    found = mechanism.worst_answers()
    if not found:
        raise InvalidInputError(
            f"No worst pair of true answers is listed for {type(mechanism).__name__}. "
            "Name two with pairs=[(answer, neighbouring answer)]."
        )
    return found


NOT_REPEATABLE = "the mechanism does not follow the rng it is given: runs cannot be drawn again"
"""A note of results."""
GIVEN = "the rows were given, and the seed only splits them"
"""Another one."""


class MechanismError(DpassayError):
    """The mechanism that is audited raised, hung, or returned something that is no output."""


def require_one_each(name: str, outputs: Any, size: int) -> None:
    """Raise MechanismError where outputs are not one for each of `size` runs."""
    try:
        count = len(outputs)
    except TypeError:
        count = -1
    if count != size:
        raise MechanismError(
            f"{name} returned {count if count >= 0 else 'no list of'} outputs where {size} runs "
            "were asked for."
        )


@runtime_checkable
class Target(Protocol):
    """Something that is audited."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Return the outputs of `size` independent runs: an array or a sequence, one entry each.

        All randomness that the auditor can repeat comes from `rng`; a mechanism with its own
        source of randomness is audited as well, but its runs are not reproducible.
        """


@final
@dataclass(frozen=True)
class Called:
    """A callable: `mechanism(dataset, size, rng)` of many runs, or as its binding says of one."""

    mechanism: Callable[..., Any]
    name: str
    binding: Binding = BLOCK

    @property
    def called(self) -> str:
        """How it is called."""
        return self.binding.described(self.name)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Call it once, or where one call is one run, `size` times."""
        call, block = self.binding.call, self.binding.takes_size
        try:
            if not block:
                return [_kept(call(self.mechanism, dataset, 1, rng)) for _ in range(size)]
            outputs = call(self.mechanism, dataset, size, rng)
        except MechanismError:  # of the time limit
            raise
        except Exception as error:  # a foreign program may raise anything
            said = f"{self.name} raised {type(error).__name__}: {error}"
            remedy = (
                " If whoever sees the output sees that too, catch the error and return its name."
            )
            raise MechanismError(
                f"{said} (dataset {shortened(repr(dataset))}).{'' if block else remedy}"
            ) from error
        require_one_each(self.name, outputs, size)
        return outputs


@final
@dataclass(frozen=True)
class Command:
    """A command that prints one output per line.

    `{dataset}`, `{size}` and `{seed}` in its arguments are filled in. A line is read as a list of
    numbers separated by spaces or commas where every part is a number, as text otherwise.
    """

    command: str
    timeout: float | None = None

    @property
    def name(self) -> str:
        """The command."""
        return self.command

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Sequence[Any]:
        """Run it once and read its lines."""
        seed = int(rng.integers(0, 2**63))
        filled = {"{dataset}": str(dataset), "{size}": str(size), "{seed}": str(seed)}
        arguments = [_filled(part, filled) for part in shlex.split(self.command)]
        try:
            done = subprocess.run(
                arguments,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                check=True,
                timeout=self.timeout,
            )
        except OSError as error:
            raise MechanismError(
                f"{self.command} could not be started: {error.strerror or error}. Expected the "
                "name of a program and its arguments, as in a shell."
            ) from None
        except subprocess.TimeoutExpired as error:
            raise MechanismError(
                f"{self.command} did not end within {error.timeout:g} s. Give it more time with "
                "timeout=, or fewer runs a block."
            ) from None
        except subprocess.CalledProcessError as error:
            last = (error.stderr or "").strip().splitlines()[-1:]
            raise MechanismError(
                f"{self.command} ended with exit code {error.returncode}: {' '.join(last)}"
            ) from None
        lines = done.stdout.splitlines()
        if len(lines) < size:
            raise MechanismError(
                f"{self.command} printed {len(lines)} lines where {size} runs were asked for."
            )
        return [_parsed(line) for line in lines[:size]]


def target(thing: Any, name: str = "") -> Target:
    """Turn what a user has in hand into a target.

    Raises InvalidInputError for what is none of the forms that are known.
    """
    name = name or str(getattr(thing, "__name__", "") or type(thing).__name__)
    if isinstance(thing, Mechanism):
        return MechanismTarget(thing)
    if isinstance(thing, (Called, Command)):
        return thing
    if callable(getattr(thing, "sample", None)):
        return thing if isinstance(thing, Target) else _of_callable(thing.sample, name)
    if callable(getattr(thing, "randomise", None)):  # diffprivlib
        return Called(thing.randomise, name, Binding())
    if hasattr(thing, "input_domain") and callable(thing):  # OpenDP
        return Called(thing, name, Binding())
    if callable(thing):
        return _of_callable(thing, name)
    raise InvalidInputError(
        f"Expected a mechanism, a callable mechanism(dataset, rng) or an object with "
        f"sample(dataset, size, rng), not {shortened(repr(thing))}."
    )


def named(text: str, expected: str = "TARGET to be a mechanism or package.module:callable") -> Any:
    """Return a mechanism of this package, or import package.module:callable.

    Raises InvalidInputError for what is neither, and for what cannot be imported.
    """
    if is_notation(text):
        return notation.parse(text)
    module, colon, name = text.partition(":")
    if not colon:
        package, _, last = text.rpartition(".")
        if last == "py":
            hint = f" Write {package.replace('/', '.')}:NAME, NAME being the function."
        elif package and text.replace(".", "").isidentifier():
            hint = f" Did you mean {package}:{last}?"
        else:
            hint = ""
        raise InvalidInputError(f"Expected {expected}, not {text!r}.{hint}")
    if module.endswith(".py"):
        place = module.removesuffix(".py").removeprefix("./").replace("/", ".")
        raise InvalidInputError(f"Expected {expected}, not {text!r}. Write {place}:{name}.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Cannot import {text}: {error}. Expected package.module:callable, a module "
            "without .py, from here or from an installed package."
        ) from None
    return found


def _of_callable(function: Callable[..., Any], name: str) -> Target:
    """Return a callable with the arguments that it wants."""
    return Called(function, name, binding(function, name))


def _kept(output: Any) -> Any:
    """Return an output that stays what it is, though the next run may be written over it."""
    copied = getattr(output, "copy", None) or getattr(output, "clone", None)
    try:
        return copied() if callable(copied) else output
    except TypeError:  # a method of another meaning
        return output


def _filled(part: str, values: dict[str, str]) -> str:
    """Fill in the three names; all other braces are the command's own."""
    for name, value in values.items():
        part = part.replace(name, value)
    return part


def _parsed(line: str) -> Any:
    parts = line.replace(",", " ").split()
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return line.strip()
    return numbers[0] if len(numbers) == 1 else numbers or line.strip()

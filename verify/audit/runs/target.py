"""What is audited: something that can be asked for independent runs on a dataset.

The one interface is `Target`: a name, and a block of runs at a time. Everything a user may have
in hand is turned into one by `target`: a mechanism of this package, a callable
`mechanism(dataset, rng)` that returns one output, an object with `sample(dataset, size, rng)`
that returns many, measurements of OpenDP and mechanisms of diffprivlib (recognised by their
methods; neither library is imported), a command that prints samples.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, final, runtime_checkable

import numpy as np

from dpassay.accountant import notation
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError, InvalidInputError, shortened
from dpassay.verifier.audit.runs.binding import BLOCK, RUN, Binding, binding
from dpassay.verifier.audit.runs.laws import MechanismTarget

NOT_REPEATABLE = "the mechanism does not follow the rng it is given: runs cannot be drawn again"
"""A note of results."""
GIVEN = "the rows were given, and the seed only splits them"
"""Another one."""
_NOTATION = re.compile(r"\s*[A-Z]\w*\(")


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
class PerRun:
    """A callable, such as `mechanism(dataset, rng)`, that returns one output."""

    mechanism: Callable[..., Any]
    name: str
    binding: Binding = RUN
    errors_are_outputs: bool = False
    """Whether a run that raises has the output "raised TypeOfError": an adversary sees it."""

    @property
    def called(self) -> str:
        """How it is called."""
        return self.binding.described(self.name)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Sequence[Any]:
        """Call it `size` times."""
        call = self._seen if self.errors_are_outputs else self.binding.call
        try:
            return [_kept(call(self.mechanism, dataset, 1, rng)) for _ in range(size)]
        except MechanismError:  # of the time limit
            raise
        except Exception as error:  # a foreign program may raise anything
            remedy = " To count that as an output: errors_are_outputs=True (--errors-are-outputs)."
            raise MechanismError(_raised(self.name, error, dataset) + remedy) from error

    def _seen(self, *arguments: Any) -> Any:
        try:
            return self.binding.call(*arguments)
        except MechanismError:
            raise
        except Exception as error:  # noqa: BLE001 (a foreign program may raise anything)
            return f"raised {type(error).__name__}"


@final
@dataclass(frozen=True)
class PerBlock:
    """A callable, such as `mechanism(dataset, size, rng)`, that returns outputs of many runs."""

    mechanism: Callable[..., Any]
    name: str
    binding: Binding = BLOCK

    @property
    def called(self) -> str:
        """How it is called."""
        return self.binding.described(self.name)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Call it once."""
        try:
            outputs = self.binding.call(self.mechanism, dataset, size, rng)
        except MechanismError:  # of the time limit
            raise
        except Exception as error:  # a foreign program may raise anything
            raise MechanismError(_raised(self.name, error, dataset)) from error
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


def target(thing: Any, name: str = "", *, errors_are_outputs: bool = False) -> Target:
    """Turn what a user has in hand into a target, whose runs may count as outputs where they fail.

    Raises InvalidInputError for what is none of the forms that are known.
    """
    if errors_are_outputs:
        found = target(thing, name)
        if not isinstance(found, PerRun):
            raise InvalidInputError(
                f"Expected a mechanism that is called once for each run, such as "
                f"mechanism(dataset, rng): of {found.name} it is not known which run of a block "
                "failed. Leave errors_are_outputs out, or catch the error there."
            )
        return replace(found, errors_are_outputs=True)
    name = name or str(getattr(thing, "__name__", "") or type(thing).__name__)
    if isinstance(thing, Mechanism):
        return MechanismTarget(thing)
    if isinstance(thing, (PerRun, PerBlock, Command)):
        return thing
    if callable(getattr(thing, "sample", None)):
        return thing if isinstance(thing, Target) else _of_callable(thing.sample, name)
    if callable(getattr(thing, "randomise", None)):  # diffprivlib
        return PerRun(thing.randomise, name, Binding())
    if hasattr(thing, "input_domain") and callable(thing):  # OpenDP
        return PerRun(thing, name, Binding())
    if callable(thing):
        return _of_callable(thing, name)
    raise InvalidInputError(
        f"Expected a mechanism, a callable mechanism(dataset, rng) or an object with "
        f"sample(dataset, size, rng), not {shortened(repr(thing))}."
    )


def is_notation(text: str) -> bool:
    """Whether a target is written as a mechanism of this package."""
    return _NOTATION.match(text) is not None


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
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(
            f"Cannot import {text}: {error}. Expected package.module:callable, a module "
            "without .py, from here or from an installed package."
        ) from None
    return found


def _of_callable(function: Callable[..., Any], name: str) -> Target:
    """Return a callable with the arguments that it wants."""
    found = binding(function, name)
    return (PerBlock if found.takes_size else PerRun)(function, name, found)


def _kept(output: Any) -> Any:
    """Return an output that stays what it is, though the next run may be written over it."""
    copied = getattr(output, "copy", None) or getattr(output, "clone", None)
    try:
        return copied() if callable(copied) else output
    except TypeError:  # a method of another meaning
        return output


def _raised(name: str, error: Exception, dataset: Any) -> str:
    return f"{name} raised {type(error).__name__}: {error} (dataset {shortened(repr(dataset))})."


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

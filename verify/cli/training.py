"""`dpassay training`: the epsilon of a DP-SGD run, or its noise, with what it rests on."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.cli.shell import Command, ExitCode, say, say_json
from dpassay.verifier.terminal import working

_DESCRIPTION = """\
Enclose the epsilon of a DP-SGD run from its settings, or find the noise for an epsilon. The
neighbouring relation follows from the sampling; the answer names both, and lists what the training
loop must do.
"""
_EPILOG = """\
examples:
  dpassay training --noise-multiplier 1.1 --batch 256 --size 60000 --epochs 30 --delta 1e-5
  dpassay training --epsilon 3 --batch 256 --size 60000 --epochs 30 --delta 1e-5
  dpassay training --noise-multiplier 1 --batch 100 --size 10000 --steps 500 --delta 1e-6 --group 4
  dpassay training --noise-multiplier 2 --batch 100 --size 10000 --steps 1 --delta 1e-6 \\
      --sampling without-replacement
  dpassay training --noise-multiplier 1.1 --batch 256 --size 60000 --epochs 1 --delta 1e-5 \\
      --sampling shuffle
  dpassay training --noise-multiplier 1.1 --batch 256 --size 60000 --epochs 1 --delta 1e-5 \\
      --sampling truncated-poisson --truncated-batch 400
  dpassay training --noise-multiplier 1.1 --batch 100 --size 10000 --epochs 1 --delta 1e-5 --schemes

neighbours: add-remove for poisson, truncated-poisson and random-allocation (each record in one
random step of an epoch); replace-one without and with replacement; zero-out for shuffle (one record
has the gradient 0 in one dataset); --neighbours names others. Where no exact answer is known, the
answer is an interval

with TensorFlow Privacy, Opacus or JAX Privacy: the noise multiplier is the one given to the
optimiser; --batch is the expected number of records in a batch; Opacus samples by Poisson, a
shuffled data loader does not. Opacus makes ceil(size/batch) steps an epoch: give all of them as
--steps. With gradient accumulation a batch is all records that share one noise

several trainings: dpassay profile "Composed([FIRST, SECOND])" --adjacency add-remove --delta D,
with the mechanisms that the answers name
"""


_OPTIONS = """\
--noise-multiplier S !  noise / clipping norm
| --epsilon E  instead: find the noise for this epsilon
--batch, --batch-size B !  records in a batch
--size, --dataset-size N !  records in the dataset
--epochs E  passes over the dataset
--steps T  steps, instead of epochs
--delta D !  delta of the guarantee
--sampling HOW =poisson  how batches are sampled: poisson (default), truncated-poisson,
    random-allocation, shuffle, without-replacement or with-replacement
--truncated-batch, --truncated-batch-size B  records kept of a larger Poisson batch
--neighbours HOW  add-remove, replace-one or zero-out, instead of the neighbours of the sampling
--schemes  answer for every sampling scheme, in one table
--plot FILE  with --schemes: draw epsilon against epochs
--group K =1  records of one person (1)
"""
_HINTS = {
    "--epsilon": "--epsilon asks for the noise. To judge an epsilon, leave it out: with "
    "--noise-multiplier the answer is the true one.",
    "--records": "A person with 3 records: --group 3",
}
_CALLED = {
    "noise_multiplier": "--noise-multiplier",
    "truncated_batch_size": "--truncated-batch",
    "batch_size": "--batch",
    "dataset_size": "--size",
    **{name: f"--{name}" for name in ("epsilon", "delta", "epochs", "steps", "group")},
    **{name: f"--{name}" for name in ("sampling", "neighbours")},
}
"""The options, by the arguments that errors name."""
_ARGUMENT = re.compile(rf"\b(?:{'|'.join(_CALLED)})(?==)|(?<=Expected )\w+\b|\b\w+_\w+\b")


def run(options: argparse.Namespace) -> int:
    """Ask and print; errors name options."""
    try:
        return _run(options)
    except InvalidInputError as error:
        words = _ARGUMENT.sub(lambda found: _CALLED.get(found[0], found[0]), str(error))
        raise InvalidInputError(words) from error


def _run(options: argparse.Namespace) -> int:
    from dpassay.accountant.training import dpsgd, dpsgd_noise, training_schemes

    if options.plot is not None and not options.schemes:
        raise InvalidInputError("Expected --schemes with --plot: it draws one curve for each.")
    counts = {
        "batch_size": options.batch,
        "dataset_size": options.size,
        "steps": options.steps,
        "group": options.group,
        "truncated_batch_size": options.truncated_batch,
    }
    shared: dict[str, Any] = {"delta": options.delta, "epochs": options.epochs}
    shared |= {name: text and text.replace("_", "") for name, text in counts.items()}
    if options.schemes:
        if options.neighbours is not None or options.sampling != "poisson":
            raise InvalidInputError(
                "Expected --schemes without --sampling and --neighbours: it answers for all "
                "samplings, each with its own."
            )
        noise, epsilon = options.noise_multiplier, options.epsilon
        with working(sys.stderr, silent=options.quiet):
            table = training_schemes(noise_multiplier=noise, epsilon=epsilon, **shared)
        if options.plot is not None:
            table.plot(options.plot)
        if options.json:
            say_json({"schema_version": 1, **table.to_dict()})
        else:
            say(str(table))
        return ExitCode.DONE
    wants_noise = options.noise_multiplier is None
    ask, given = (
        (dpsgd_noise, options.epsilon) if wants_noise else (dpsgd, options.noise_multiplier)
    )
    with working(sys.stderr, silent=options.quiet):
        found = ask(given, sampling=options.sampling, neighbours=options.neighbours, **shared)
    if options.json:
        say_json({"schema_version": 1, **found.to_dict()})
    else:
        answer = found.noise_multiplier if wants_noise else found.epsilon
        say(str(answer) if options.quiet else str(found))
    return ExitCode.DONE


COMMAND = Command(
    "training",
    "the epsilon of a DP-SGD run, or its noise",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet="print the answer only",
    hints=_HINTS,
)

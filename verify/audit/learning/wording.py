"""Events in words: what the numbers of an event stand for, where outputs are no plain numbers.

A rule counts numbers: codes of texts, checksums of rows. Which outputs they are is looked up in the
training runs, once, for the report; what is counted does not change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dpassay.accountant.errors import shortened
from dpassay.verifier.audit.learning import features
from dpassay.verifier.audit.learning.bit_features import Atoms, BitCell
from dpassay.verifier.audit.learning.features import Feature
from dpassay.verifier.audit.learning.outputs import Matrix
from dpassay.verifier.audit.learning.rule import Chosen, Rule

_ENTRY = re.compile(r"output\[(\d+)\]")


def all_worded(
    chosen: Chosen, runs: tuple[Matrix, Matrix], width: int | None, texts: Mapping[int, str]
) -> Chosen:
    """Return what was chosen with its events in words: see `worded`."""
    values, bits = (
        None if rule is None else worded(rule, runs, width, texts)
        for rule in (chosen.values, chosen.bits)
    )
    return replace(chosen, values=values or chosen.values, bits=bits)


def worded(
    rule: Rule, runs: tuple[Matrix, Matrix], width: int | None, texts: Mapping[int, str]
) -> Rule:
    """Return a rule that says its events in words, its hedges too.

    Parameters
    ----------
    rule
        What was learned.
    runs
        Training runs of both datasets, in which listed rows are looked up.
    width
        Entries of a row that is no plain vector (`outputs.Alphabet`), None for plain vectors.
    texts
        The text that a code stands for.
    """
    known = (
        _rows(rule.feature, runs, width, texts) or _codes(rule.feature, width, texts) or _bits(rule)
    )
    hedges = tuple(worded(each, runs, width, texts) for each in rule.hedges)
    label = "" if width is None else _label(rule.feature.name, width)
    return replace(rule, hedges=hedges, texts=known, label=label)


def _label(name: str, width: int) -> str:
    """Return the name of a feature of mixed rows, by the entries that they stand for."""

    def said(found: re.Match[str]) -> str:
        place = int(found[1])
        if place == 0:
            return "number of entries"
        return f"text of entry {place - 1}" if place <= width else f"entry {place - 1 - width}"

    return _ENTRY.sub(said, name)


def _codes(feature: Feature, width: int | None, texts: Mapping[int, str]) -> dict[float, str]:
    """Return what the codes of an entry stand for."""
    is_code = isinstance(feature, features.Coordinate) and 0 < feature.index <= (width or 0)
    if not is_code:
        return {}
    shown = {float(code): shortened(repr(text)) for code, text in texts.items()}
    return {0.0: "a number", -1.0: "none", **shown}


def _bits(rule: Rule) -> dict[float, str]:
    """Return what the codes of bits stand for, and the places of values that repeat."""
    codes = rule.partition.values
    if codes is None or not isinstance(rule.feature, (BitCell, Atoms)):
        return {}
    return {float(code): rule.feature.words(code) for code in codes}


def _rows(
    feature: Feature, runs: tuple[Matrix, Matrix], width: int | None, texts: Mapping[int, str]
) -> dict[float, str]:
    """Return which outputs the checksums of whole rows stand for."""
    if not isinstance(feature, features.Row) or runs[0].shape[1] == 1:
        return {}
    rows = np.unique(np.concatenate(runs), axis=0)
    return {
        float(value): shortened(repr(_output(row, width, texts)))
        for value, row in zip(feature(rows), rows, strict=True)
    }


def _output(row: Matrix, width: int | None, texts: Mapping[int, str]) -> object:
    """Return the output that a row stands for."""
    if width is None:
        return tuple(_number(value) for value in row.tolist())
    codes, values = row[1 : 1 + width], row[1 + width :]
    entries = [
        _number(value) if code == 0 else texts.get(int(code), f"text {int(code)}")
        for code, value in zip(codes.tolist(), values.tolist(), strict=True)
        if code >= 0
    ]
    return entries[0] if len(entries) == 1 else tuple(entries)


def _number(value: float) -> float | int:
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else value

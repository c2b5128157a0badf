"""Record the behaviour of the command line in a JSON file, and compare later versions with it.

    python benchmarks/freeze.py write FILE [--certificates DIR]
    python benchmarks/freeze.py compare FILE [--withdrawn LIST] [--only WORD]

FILE has an entry for each command in `freeze/commands.txt`: the ledgers with all their claims, the
example of each mechanism, and everyday commands. An entry contains the exit code, and either the
help text or, from JSON output, the keys, the verdict words and the ends of enclosures by path, and
the outcome of checking each certificate that the command writes. (`oracle.py` has more enclosures.)

`compare` runs the commands of FILE again. Its exit code is 1 if there is a contradiction (HOLDS has
become REFUTED, a certificate is INVALID, two enclosures are disjoint), else 3 if something is lost
(a weaker verdict or none, another exit code, a key, an option), else 0. Other changes are only
printed: enclosures more than twice as wide, other words, and the number of help texts that differ.
Each line of LIST names something withdrawn intentionally: a claim's id, a command, a key or an
option.

The program is only used through the command line; `--command` sets how it is started.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
INPUTS = Path(__file__).with_suffix("")
RANK = dict.fromkeys(("HOLDS", "REFUTED", "NOT_REFUTED", "SLIP", "VALID", "PROVED", "CERTIFIED"), 4)
RANK |= {"ARGUED": 3, "CONDITIONAL": 3, "BOUNDED": 3, "SUPPORTED": 2, "NOT CHECKED": 2, "TESTED": 2}
RANK |= {"NOT CERTIFIED": 1, "UNDECIDED": 1, "PENDING": 1, "INVALID": 1, "OPTIMAL": 4, "none": 0}
"""A word of a lower rank says less."""
SIDE = dict.fromkeys(("HOLDS", "ARGUED", "SUPPORTED", "VALID", "CONDITIONAL", "NOT CHECKED"), 1)
SIDE |= {"REFUTED": -1, "SLIP": -1, "INVALID": -1}
"""Words of different sides contradict each other."""
NAMES = ("id", "name", "mechanism", "sampling")
"""Keys by which an item of a list is called in a place, whatever its number."""
SEARCHED = re.compile(r"calibrate|compare|training .*--epsilon")
DIGITS = Fraction(1, 10**9)
"""Numbers of a mechanism that is SEARCHED may move by this share: it has twelve digits."""
WIDER, NARROW = 2, Fraction(1, 10**12)
"""How many times as wide is reported, of enclosures whose relative width is above NARROW."""
BATCH = 25  # certificates that one `check` is given


def run(command: str, arguments: list[str], folder: Path) -> tuple[str, str]:
    """Run the program in a folder; return its exit code and what it prints."""
    own = {"COLUMNS": "80", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    own["PYTHONPATH"] = os.pathsep.join(filter(None, (os.getenv("PYTHONPATH"), str(folder))))
    done = subprocess.run(
        [*shlex.split(command), *arguments],
        cwd=folder,
        env=os.environ | own,
        input=(INPUTS / "bits").read_text("utf-8"),
        capture_output=True,
        text=True,
        check=False,
    )
    return str(done.returncode), done.stdout


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, str | list[str]]]:
    """Yield the strings and enclosures of a JSON value with their paths.

    Witnesses, and the numbers of a single case, are omitted, because others may prove the same.
    """
    if isinstance(value, dict):
        if {"lower", "upper"} <= value.keys():
            yield place, [str(value["lower"]), str(value["upper"])]
        witness = value.get("witness") or {}
        hidden = {"lower", "upper", "witness", *(("true", "margin") if "case" in witness else ())}
        for key in value.keys() - hidden:
            yield from leaves(value[key], f"{place}.{key}".strip("."))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            names = [item[key] for key in NAMES if item.get(key)] if isinstance(item, dict) else []
            yield from leaves(item, f"{place}[{names[0] if names else index}]")
    elif isinstance(value, str):
        yield place, value


def keys(value: Any, place: str = "") -> set[str]:
    """Return the paths of all keys of a JSON value; the items of a list share a path."""
    if isinstance(value, list):
        return {key for item in value for key in keys(item, f"{place}[]")}
    found = set()
    for key, item in value.items() if isinstance(value, dict) else ():
        here = f"{place}.{key}".strip(".")
        found |= {here} if key == "witness" else {here, *keys(item, here)}
    return found


def certificates(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the certificates that a command wrote, one by one, with the ids of their claims."""
    for path in (folder / "c.json", *sorted((folder / "certificates").glob("*.json"))):
        content = json.loads(path.read_text("utf-8")) if path.exists() else []
        if isinstance(content, dict):
            content = content.get("certificates", [content])
        for each in content:
            claim = each.get("theorem") or each.get("claim")
            name = claim.get("id", "") if isinstance(claim, dict) else ""
            yield name if path.parent == folder else path.stem, each


def ask(command: str, line: str) -> tuple[Entry, list[tuple[str, Any]]]:
    """Run one command; return its entry, and the certificates that it wrote."""
    with tempfile.TemporaryDirectory() as name:
        folder = shutil.copytree(INPUTS, Path(name, "inputs"))
        code, output = run(command, shlex.split(line), folder)
        written = list(certificates(folder))
    print(code, line, file=sys.stderr, flush=True)
    entry: Entry = {"exit": code}
    if line.endswith("--help"):
        return entry | {"text": output}, written
    if not line.endswith("--json"):
        words = [word for word in re.findall(r"\b[A-Z_]{4,}\b", output) if word in RANK]
        return entry | {"words": {str(place): word for place, word in enumerate(words)}}, written
    try:
        content = json.loads(output or "null")
    except json.JSONDecodeError:
        content = [json.loads(each) for each in output.splitlines()]
    found = list(leaves(content))
    entry["keys"] = sorted(keys(content))
    entry["words"] = {place: each for place, each in found if str(each) in RANK}
    entry["intervals"] = {place: each for place, each in found if isinstance(each, list)}
    return entry, written


def check(command: str, written: list[tuple[str, str, Any]], folder: Path) -> list[str]:
    """Write certificates into a folder, with an index; return the outcome of checking each."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for line, claim, certificate in written:
        text = json.dumps(certificate)
        name = re.sub(r"[^A-Za-z0-9.]+", "-", claim if "--paper" in line else line)[:100]
        mark = hashlib.sha256(f"{line} {claim} {text}".encode()).hexdigest()[:8]
        files.append(f"{name}.{mark}.json")
        (folder / files[-1]).write_text(text, "utf-8")
    calls = [["check", "--json", *files[at : at + BATCH]] for at in range(0, len(files), BATCH)]
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda call: run(command, call, folder)[1], calls))
    checked = [each for out in outputs if out for each in json.loads(out)["certificates"]]
    found = {Path(each["file"]).name: each["outcome"] for each in checked}
    outcomes = [found.get(file, "none") for file in files]
    index = {
        file: {"command": line, "claim": claim, "outcome": outcome}
        for file, (line, claim, _), outcome in zip(files, written, outcomes, strict=True)
    }
    (folder / "index.json").write_text(json.dumps(index, indent=1, sort_keys=True), "utf-8")
    return outcomes


def freeze(command: str, lines: list[str], folder: Path) -> dict[str, Entry]:
    """Run commands, two at a time, and check their certificates; return the entries."""
    with ThreadPoolExecutor(2) as pool:
        asked = dict(zip(lines, pool.map(lambda line: ask(command, line), lines), strict=True))
    written = [(line, *each) for line, (_, found) in asked.items() for each in found]
    for (line, claim, _), outcome in zip(written, check(command, written, folder), strict=True):
        words = asked[line][0]["words"]
        place = f"certificate[{claim}]"
        while place in words:
            place += "+"
        words[place] = outcome
    return {line: entry for line, (entry, _) in asked.items()}


def number(text: str) -> Fraction:
    """Read an end of an enclosure, with a huge number for infinity."""
    return Fraction(re.sub("inf(inity)?", "1e9999", text.lower()))


def changes(line: str, before: Entry, now: Entry) -> Iterator[tuple[str, str]]:
    """Yield the changes of an entry, each with its severity and a description."""
    if now["exit"] != before["exit"]:
        yield "lost", f"exit code {before['exit']}, now {now['exit']}"
    for place, word in before.get("words", {}).items():
        other = now.get("words", {}).get(place, "none")
        if SIDE.get(word, 0) * SIDE.get(other, 0) < 0:
            yield "CONTRADICTED", f"{place}: {word}, now {other}"
        elif other != word:
            yield "lost" if RANK[other] < RANK[word] else "changed", f"{place}: {word}, now {other}"
    share = DIGITS if SEARCHED.match(line) else 0
    for place, ends in before.get("intervals", {}).items():
        new_ends = now.get("intervals", {}).get(place, ends)
        if "None" in (*ends, *new_ends):  # an end that nothing bounds, as of an audit
            continue
        (low, high), (new_low, new_high) = map(number, ends), map(number, new_ends)
        if new_low - high > share * abs(high) or low - new_high > share * abs(low):
            yield "CONTRADICTED", f"{place}: {ends}, now {new_ends}"
        elif new_high - new_low > max(WIDER * (high - low), NARROW * abs(new_high)):
            yield "changed", f"{place}: wider, {ends}, now {new_ends}"
    for key in sorted({*before.get("keys", ())} - {*now.get("keys", ())}):
        yield "lost", f"key {key}"
    options = [{*re.findall(r"--[a-z][a-z-]*", each.get("text", ""))} for each in (before, now)]
    for option in sorted(options[0] - options[1]):
        yield "lost", f"option {option}"


def compare(frozen: dict[str, Entry], now: dict[str, Entry], withdrawn: list[str]) -> int:
    """Print what has changed, and return the exit code."""
    count: Counter[str] = Counter()
    known = [rf"(?<![\w/-]){re.escape(each)}(?![\w/-])" for each in withdrawn if each]
    for line, before in frozen.items():
        for kind, what in changes(line, before, now[line]):
            said = f"{line}: {what}"
            told = "withdrawn" if any(re.search(each, said) for each in known) else kind
            count[told] += 1
            print(told, said)
        count["help texts that differ"] += before.get("text") != now[line].get("text")
    print(f"{len(frozen)} commands;", ", ".join(f"{kind}: {n}" for kind, n in count.items()))
    return 1 if count["CONTRADICTED"] else 3 if count["lost"] else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--command", default=f"{sys.executable} -m dpassay")
    parser.add_argument("--certificates", type=Path, help="keep the certificates in this folder")
    parser.add_argument("--withdrawn", type=Path, help="a list of what is withdrawn on purpose")
    parser.add_argument("--only", default="", help="only commands in which this stands")
    options = parser.parse_args()
    lines = (INPUTS / "commands.txt").read_text("utf-8").splitlines()
    if options.what == "compare":
        frozen = json.loads(options.file.read_text("utf-8"))
        lines = list(frozen)
    lines = [line for line in lines if options.only in line]
    with tempfile.TemporaryDirectory() as name:
        now = freeze(options.command, lines, options.certificates or Path(name))
    if options.what == "compare":
        withdrawn = options.withdrawn.read_text("utf-8").splitlines() if options.withdrawn else []
        return compare({line: frozen[line] for line in lines}, now, withdrawn)
    text = json.dumps(now, sort_keys=True, ensure_ascii=False, indent=0, separators=(",", ":"))
    options.file.write_text(f"{text}\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The command `dpassay-check`, which checks certificates without the rest of dpassay."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import suppress

from .check import BYTES, SECONDS, Checked, Outcome, check, trust
from .numbers import Wrong
from .schema import content, json_schema, read
from .theorem import safe

_DESCRIPTION = """Check certificates of differential privacy. For each certificate the program
prints VALID and the theorem that it proved, CONDITIONAL with the unproved assumptions and the
theorem, or INVALID with the field that is wrong. Each certificate may use 60 s of processor time,
and the program 1 GB of memory. A program that exceeds a limit is stopped, and proves nothing."""
_EPILOG = "exit codes: 0 VALID, 1 INVALID, 2 no certificate, 3 CONDITIONAL"


def _limit(certificates: int) -> None:
    """Make the system stop this process if it exceeds its limits of time and memory."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS * (certificates + 1), -1))
        resource.setrlimit(resource.RLIMIT_AS, (2 * BYTES, -1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Check files and return the exit code of the worst certificate."""
    parser = argparse.ArgumentParser("dpassay-check", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="a file of certificates, or - for a pipe")
    add("--trust", action="store_true", help="print what a VALID rests on, in general or in FILE")
    add("--schema", action="store_true", help="print the JSON Schema of certificates")
    add("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if options.schema or (options.trust and not options.files):
        print(json.dumps(json_schema()) if options.schema else trust())
        return 0
    if not options.files:
        parser.error("name a file of certificates, or - for a pipe")
    _limit(1)
    results: list[tuple[str, Checked]] = []
    for path in options.files:
        try:
            certificates = read(content(path))
        except (OSError, Wrong) as error:
            why = getattr(error, "strerror", 0) or error
            parser.error(f"cannot read {safe(path)}: {safe(why)}")
        _limit(len(results) + len(certificates))
        for certificate in certificates:
            results.append((path, check(certificate)))
            if not options.json:
                place = f" of {safe(path)}" if len(options.files) > 1 else ""
                print(results[-1][1].report(place), flush=True)
    if options.json:
        entries = [{"file": safe(path), **found.to_json()} for path, found in results]
        print(json.dumps({"schema_version": 1, "certificates": entries}, indent=1))
    elif options.trust:
        print("\n" + trust([found for _, found in results]))
    return Outcome.worst(found.outcome for _, found in results).exit_code


if __name__ == "__main__":
    raise SystemExit(main())

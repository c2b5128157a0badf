"""`dpassay verify`: decide claims about a mechanism, of a file, or of the papers."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dpassay.accountant.errors import InvalidInputError, suggestion
from dpassay.verifier.cli.shell import (
    OF_MECHANISMS,
    Command,
    ExitCode,
    note,
    require_folders,
    say,
    say_json,
)

if TYPE_CHECKING:
    from dpassay.verifier.batch import Outcome
    from dpassay.verifier.claims import Claim
    from dpassay.verifier.verdict import Finding

_DESCRIPTION = """\
Decide claims. State a claim about one mechanism in a sentence or by options, or name a claim file
(TOML) or an entry of the registry of deployments (YAML); the ledgers of the papers are included.
HOLDS and REFUTED are proved, and --certificate writes the proof.
"""
_EPILOG = """\
examples:
  dpassay verify "Gaussian(standard_deviation=3) is (1, 1e-5)-DP"
  dpassay verify "Gaussian(standard_deviation=3)" --epsilon 1 --delta 1e-5
  dpassay verify "Laplace(scale=2)" --epsilon 0.5 --certificate claim.json
  dpassay verify "Laplace(scale=2)" --epsilon 0.4 --html verdict.html
  dpassay verify claims.toml --only "theorem-*" --json
  dpassay verify registry-entry.yaml
  dpassay verify --paper less-is-more
  dpassay verify --all-papers --jobs 4

exit code: 2 after a bad claim; else 1 if a claim is refuted (unless the file says
expected = "REFUTED"; then 1 if it holds); else 3 if any is undecided, argued or only supported by
a grid, or all are pending; else 0: everything holds, or is refuted as expected
"""
_OPTIONS = """\
target CLAIM|MECHANISM|FILE ?  a claim such as "Laplace(2) is 0.5-DP" or "… is (8, 0.5)-RDP", a
    mechanism, or a claim file (.toml, .yaml)
--epsilon E  claim (E, D)-DP of the mechanism
--delta D  with --epsilon; 0 (pure) if left out
--mu M  claim M-Gaussian DP (to ask for mu: dpassay profile --mu)
--rho R  claim R-zCDP (to ask for rho: dpassay profile --rho)
--order R  with --renyi: claim (R, V)-RDP
--renyi V  the largest Renyi divergence of this order
--paper NAME []  verify a paper's ledger
--all-papers  verify the ledgers of all papers
--only ID []  only the claim with this id, or claims that match this pattern or lie below it
--certificate FILE  write certificates for dpassay check
--html FILE  write a page with curves and the certificate
--jobs N :int =2  processes (default 2)
--details  print every finding in full
--adjacency
"""
_WORDS = ("epsilon", "delta", "mu", "rho", "order", "renyi", "adjacency")
"""The options that claim something of a mechanism."""
_DETAILS = 3
"""So many findings are shown in full; more are shown in a table."""


class WritePage(Protocol):
    """Writes the page about what was decided."""

    def __call__(self, path: Path, outcomes: Sequence[Outcome], command: Sequence[str]) -> None:
        """Write it; `command` is what repeats the run."""


def command(page: WritePage | None) -> Command:
    """Return the command, which writes its page with `page`."""
    return Command(
        "verify",
        "decide claims",
        _DESCRIPTION,
        _EPILOG,
        _OPTIONS,
        lambda options: run(options, page),
        quiet="print the verdict only",
        hints=OF_MECHANISMS,
    )


def run(options: argparse.Namespace, page: WritePage | None = None) -> int:
    """Decide and print."""
    if options.jobs < 1:
        raise InvalidInputError(f"Expected --jobs {options.jobs} ≥ 1.")
    require_folders(options.certificate, options.html)
    if options.html is not None and page is None:
        raise InvalidInputError("This installation cannot draw.")
    everything = _claims(options)
    wanted = {claim.id for claim in selected(everything, options.only)}
    claims = with_lemmas(everything, wanted)
    outcomes, interrupted = _decide(claims, everything, options)
    shown = [outcome for index, outcome in outcomes.items() if claims[index].id in wanted]
    findings = [outcome.finding for outcome in shown if outcome.finding is not None]
    _print(findings, options)
    for outcome in shown:
        if outcome.error:
            note(f"{'undecided' if outcome.undecided else 'error'}: {outcome.error}")
    if options.certificate is not None:
        _write_certificates(options.certificate, shown)
    if page is not None and options.html is not None:
        page(options.html, shown, ["dpassay", *sys.argv[1:]])
        note(f"wrote {options.html}")
    if interrupted:
        note(f"interrupted after {len(outcomes)} of {len(claims)} claims")
        return ExitCode.INTERRUPTED
    return exit_code(shown)


def _claims(options: argparse.Namespace) -> list[Claim]:
    """Return the claims that the command line names."""
    from dpassay.verifier import document

    sources = (options.target, options.paper or None, options.all_papers or None)
    if sum(source is not None for source in sources) != 1:
        raise InvalidInputError(
            "Expected one of: a mechanism with a claim (--epsilon E --delta D, --mu M or --rho R), "
            "a claim file, --paper NAME, --all-papers."
        )
    by_options = [name for name in _WORDS if getattr(options, name) is not None]
    if options.target is not None and not _is_file(options.target):
        return _about_mechanism(options)
    if by_options:
        raise InvalidInputError(
            f"--{by_options[0]} is for a claim about a mechanism; a claim file states its own."
        )
    if options.target is not None:
        return list(document.read_file(Path(options.target)).claims)
    papers = document.papers() if options.all_papers else options.paper
    return [claim for name in papers for claim in ledger(name)]


def _is_file(target: str) -> bool:
    """Whether the target is a claim file: a mechanism has an opening parenthesis or no dot."""
    return target.endswith((".toml", ".yaml", ".yml")) or (
        "(" not in target and Path(target).exists()
    )


def ledger(name: str) -> list[Claim]:
    """Return the claims of a paper, their ids beginning with its name."""
    import msgspec

    from dpassay.verifier import document
    from dpassay.verifier.proof import renamed

    def whole(identity: str) -> str:
        return f"{name}/{identity}"

    return [
        msgspec.structs.replace(
            claim,
            id=whole(claim.id),
            lemmas=[whole(lemma) for lemma in claim.lemmas],
            proof=renamed(claim.proof, whole),
        )
        for claim in document.read_paper(name).claims
    ]


def _about_mechanism(options: argparse.Namespace) -> list[Claim]:
    """Return the claims that --epsilon and --delta, --mu and --rho make about the mechanism."""
    from dpassay.accountant import notation
    from dpassay.verifier.ask import claims_about, merged, read_sentence

    mechanism, said = read_sentence(options.target)
    words = merged(said, {name: getattr(options, name) for name in _WORDS})
    found = claims_about(notation.parse(mechanism), source="command line", **words)
    if not found:
        raise InvalidInputError(
            "Expected a claim about the mechanism: --epsilon E --delta D, --mu M or --rho R. "
            "For its exact privacy without a claim: dpassay profile."
        )
    return found


def _named(claims: Sequence[Claim], wanted: str) -> set[str]:
    ids = {claim.id for claim in claims}
    below = {i for i in ids if fnmatch.fnmatchcase(i, f"{wanted}/*")}
    return {i for i in ids if fnmatch.fnmatchcase(i, wanted)} or below


def selected(claims: Sequence[Claim], only: Sequence[str]) -> list[Claim]:
    """Return the claims that `only` names: by id; else by pattern, or as all those below it.

    The name of the paper in front of an id may be left out.
    """
    kept: set[str] = set()
    for wanted in only:
        found = _named(claims, wanted) or _named(claims, f"*/{wanted}")
        if not found:
            hint = suggestion(wanted, [claim.id for claim in claims])
            raise InvalidInputError(f"No claim has the id {wanted!r}. {hint}")
        kept |= found
    return [claim for claim in claims if claim.id in kept or not only]


def with_lemmas(claims: Sequence[Claim], wanted: Collection[str]) -> list[Claim]:
    """Return the wanted claims with all that their verdicts rest on, in the order of the file."""
    from dpassay.verifier.proof import corrected_by

    by_id = {claim.id: claim for claim in claims}
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += by_id[name].lemmas
            waiting += corrected_by(by_id[name], by_id) if by_id[name].slip else []
    return [claim for claim in claims if claim.id in found]


def _decide(
    claims: Sequence[Claim], everything: Sequence[Claim], options: argparse.Namespace
) -> tuple[dict[int, Outcome], bool]:
    """Return the outcomes in the order of the claims, and whether the run was interrupted."""
    from dpassay.verifier.batch import concluded, decide_all
    from dpassay.verifier.terminal import Progress, working

    found: dict[int, Outcome] = {}
    interrupted = False
    progress = Progress(len(claims), sys.stderr, silent=options.quiet)
    try:
        with working(sys.stderr, silent=options.quiet or len(claims) > 1):
            for index, outcome in decide_all(
                claims,
                lemmas=everything,
                jobs=options.jobs,
                certified=options.certificate is not None or options.html is not None,
            ):
                found[index] = outcome
                progress.advance(claims[index].id)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        progress.close()
    return concluded(claims, found), interrupted


def _print(findings: Sequence[Finding], options: argparse.Namespace) -> None:
    from dpassay.verifier import report

    if options.json:
        say_json(as_json(findings))
    elif options.quiet:
        for finding in findings:
            several = f"  {finding.id}" if len(findings) > 1 else ""
            say(f"{finding.verdict.value}{several}")
    elif len(findings) <= _DETAILS or options.details:
        for finding in findings:
            report.show(finding, sys.stdout)
    if len(findings) > 1 and not (options.json or options.quiet):
        report.show_table(findings, sys.stdout)


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return what --json prints."""
    return {"schema_version": 1, "findings": [finding.to_json() for finding in findings]}


def _write_certificates(path: Path, outcomes: Sequence[Outcome]) -> None:
    from dpassay.verifier import prover

    found = [outcome.certificate for outcome in outcomes if outcome.certificate is not None]
    if not found:
        note(f"nothing was decided that a certificate could show; {path} is not written")
        return
    prover.write(path, found)
    note(f"wrote {path} ({len(found)} certificate{'s' if len(found) > 1 else ''})")


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Return 2 after a bad claim, 1 after a surprise, 3 if something is not proved, 0 else.

    A surprise is a claim that is refuted, unless it is expected to be, or one that holds and was
    expected to be refuted. What is argued, supported or undecided is not proved.
    """
    from dpassay.verifier.verdict import Verdict

    if any(outcome.error and not outcome.undecided for outcome in outcomes):
        return ExitCode.USAGE
    findings = [outcome.finding for outcome in outcomes if outcome.finding is not None]
    decided = [f for f in findings if f.verdict is Verdict.HOLDS or f.verdict.is_false]
    if any(f.verdict.is_false != bool(f.expected) for f in decided):
        return ExitCode.REFUTED
    pending = all(finding.verdict is Verdict.PENDING for finding in findings)
    unproved = any(f not in decided and f.verdict is not Verdict.PENDING for f in findings)
    undecided = any(outcome.undecided for outcome in outcomes)
    return ExitCode.UNDECIDED if undecided or unproved or pending else ExitCode.DONE

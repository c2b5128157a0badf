"""Black-box audits: runs of a mechanism in, a verdict with its evidence out.

A `Target` is asked for runs on two neighbouring datasets; training runs give events, fresh runs
test them at an exact level. `kinds` has the audits, one kind a file; `runs` what is run and how;
`learning` the way from outputs to one event; `statistics` the exact tests and bounds of counts.
"""

from dpassay.verifier.audit.kinds.auditor import (
    PrivacyError,
    assert_private,
    audit,
    audit_until_refuted,
)
from dpassay.verifier.audit.kinds.one_run import Guesses, audit_one_run, canaries_needed
from dpassay.verifier.audit.kinds.result import AuditResult
from dpassay.verifier.audit.kinds.samples import audit_samples, audit_scores
from dpassay.verifier.audit.learning.features import Feature, Proposer
from dpassay.verifier.audit.runs.plan import neighbours
from dpassay.verifier.audit.runs.target import (
    Command,
    MechanismError,
    PerBlock,
    PerRun,
    Target,
    target,
)
from dpassay.verifier.audit.statistics.curve import Curve
from dpassay.verifier.audit.statistics.exact_test import (
    Counts,
    Design,
    delta_lower_bound,
    epsilon_lower_bound,
    p_value,
)
from dpassay.verifier.audit.statistics.guarantee import Guarantee, Outcome, Point, guarantee

__all__ = [
    "AuditResult",
    "Command",
    "Counts",
    "Curve",
    "Design",
    "Feature",
    "Guarantee",
    "Guesses",
    "MechanismError",
    "Outcome",
    "PerBlock",
    "PerRun",
    "Point",
    "PrivacyError",
    "Proposer",
    "Target",
    "assert_private",
    "audit",
    "audit_one_run",
    "audit_samples",
    "audit_scores",
    "audit_until_refuted",
    "canaries_needed",
    "delta_lower_bound",
    "epsilon_lower_bound",
    "guarantee",
    "neighbours",
    "p_value",
    "target",
]

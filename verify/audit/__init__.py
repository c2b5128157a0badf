"""Black-box audits: runs of a mechanism in, a verdict with its evidence out.

A `Target` is asked for runs on two neighbouring datasets; training runs give events, fresh runs
test them at an exact level. `auditor`, `samples` and `one_run` are the audits, `result` what they
say; `runs`: what is run and how; `features` and `learn`: from outputs to one event; `guarantees`,
`exact_test` and `curve`: claims, exact tests and bounds of counts.
"""

from dpassay.verifier.audit.auditor import PrivacyError, assert_private, audit, audit_until_refuted
from dpassay.verifier.audit.curve import Curve
from dpassay.verifier.audit.exact_test import (
    Counts,
    Design,
    delta_lower_bound,
    epsilon_lower_bound,
    p_value,
)
from dpassay.verifier.audit.features import Feature, Proposer
from dpassay.verifier.audit.guarantees import Guarantee, Outcome, Point, guarantee
from dpassay.verifier.audit.one_run import Guesses, audit_one_run, canaries_needed
from dpassay.verifier.audit.result import AuditResult
from dpassay.verifier.audit.runs import Called, Command, MechanismError, Target, neighbours, target
from dpassay.verifier.audit.samples import audit_samples, audit_scores

__all__ = [
    "AuditResult",
    "Called",
    "Command",
    "Counts",
    "Curve",
    "Design",
    "Feature",
    "Guarantee",
    "Guesses",
    "MechanismError",
    "Outcome",
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

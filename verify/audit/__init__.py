"""Black-box audits: runs of a mechanism in, a verdict with its evidence out.

A `Target` is asked for runs on two neighbouring datasets; training runs give events, fresh runs
test them at an exact level.
"""

from verify.audit.assertion import PrivacyError, assert_private
from verify.audit.auditor import audit
from verify.audit.curve import Curve
from verify.audit.exact_test import (
    Counts,
    Design,
    delta_lower_bound,
    epsilon_lower_bound,
    p_value,
)
from verify.audit.features import Feature, Proposer
from verify.audit.guarantee import Guarantee, Point, guarantee
from verify.audit.neighbours import neighbours
from verify.audit.one_lattice import LatticeFinding, lattice_datasets, one_lattice
from verify.audit.one_run import OneRunResult, audit_one_run, canaries_needed
from verify.audit.result import AuditResult, Outcome
from verify.audit.same_noise import SameNoise, SameNoisePair, same_noise
from verify.audit.samples import audit_samples, audit_scores
from verify.audit.sequential import SequentialResult, audit_until_refuted
from verify.audit.step import StepFinding, StepResult, audit_step
from verify.audit.target import Command, MechanismError, PerBlock, PerRun, Target, target
from verify.audit.training_steps import audit_training

__all__ = [
    "AuditResult",
    "Command",
    "Counts",
    "Curve",
    "Design",
    "Feature",
    "Guarantee",
    "LatticeFinding",
    "MechanismError",
    "OneRunResult",
    "Outcome",
    "PerBlock",
    "PerRun",
    "Point",
    "PrivacyError",
    "Proposer",
    "SameNoise",
    "SameNoisePair",
    "SequentialResult",
    "StepFinding",
    "StepResult",
    "Target",
    "assert_private",
    "audit",
    "audit_one_run",
    "audit_samples",
    "audit_scores",
    "audit_step",
    "audit_training",
    "audit_until_refuted",
    "canaries_needed",
    "delta_lower_bound",
    "epsilon_lower_bound",
    "guarantee",
    "lattice_datasets",
    "neighbours",
    "one_lattice",
    "p_value",
    "same_noise",
    "target",
]

"""Black-box audits: runs of a mechanism in, a verdict with its evidence out.

A `Target` is asked for runs on two neighbouring datasets; training runs give events, fresh runs
test them at an exact level.
"""

from verify.audit.features import Feature, Proposer
from verify.audit.guarantee import Guarantee, Point, guarantee
from verify.audit.target import Command, MechanismError, PerBlock, PerRun, Target, target

__all__ = [
    "Command",
    "Feature",
    "Guarantee",
    "MechanismError",
    "PerBlock",
    "PerRun",
    "Point",
    "Proposer",
    "Target",
    "guarantee",
    "target",
]

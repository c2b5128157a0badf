"""What a mechanism's arguments say of its worst pairs and errors, derived a second time.

`arguments` says which arguments there are, `pairs` the worst pairs of laws, `utility` variances,
errors and quantiles. Each family has a file that derives it: `gaussian`, `spaces`, `ellipse`,
`counters`, `counts`, `matrices`.
"""

from verify.checker.mechanisms.arguments import TABLE, WRAPPERS, build
from verify.checker.mechanisms.pairs import (
    BY_PARTS,
    assumptions,
    enveloped,
    fits,
    pairs,
    under,
)
from verify.checker.notation import Noise

__all__ = [
    "BY_PARTS",
    "TABLE",
    "WRAPPERS",
    "Noise",
    "assumptions",
    "build",
    "enveloped",
    "fits",
    "pairs",
    "under",
]

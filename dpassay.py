"""dpassay: is this differential-privacy guarantee true, and how good is it?

The public face: names are imported on first use, so that `import dpassay` stays fast.
"""

from __future__ import annotations

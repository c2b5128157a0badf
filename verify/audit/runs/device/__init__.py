"""Our own mechanisms drawn and counted on an accelerator, block by block.

`audit(mechanism, claim, device="torch:cuda")` draws the runs of a mechanism of this package with
one of the laws of `runs.device.laws`, in float64, through the array API: numpy or PyTorch,
on a processor or a graphics card. Only counts come back. The event is chosen from the exact law
(`runs.device.blocks`), so that no run is spent on training.

What is audited is the sampler of the device. The laws of integers and categories are those of the
mechanism up to 2⁻⁴⁰ in total variation. For real laws, whose values are rounded, every half-line
has the mechanism's probability up to `Law.resolution`, some 2⁻⁴⁷; the result states both. The last
bits of the values are not for release: `Mechanism.release` is.
"""

from dpassay.verifier.audit.runs.device.arrays import Device
from dpassay.verifier.audit.runs.device.blocks import DeviceBlock, prepare
from dpassay.verifier.audit.runs.device.laws import Law, law

__all__ = ["Device", "DeviceBlock", "Law", "law", "prepare"]

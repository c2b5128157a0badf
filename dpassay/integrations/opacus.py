"""Opacus: `PrivacyEngine(accountant="dpassay")`, and the translation of accountant histories.

Importing this module registers the accountant with Opacus under the name "dpassay", also for
`make_private_with_epsilon` and `get_noise_multiplier`.
"""

from importlib import import_module
from importlib.util import find_spec

from dpassay.verifier.foreign.drop_in import OpacusAccountant
from dpassay.verifier.foreign.opacus import claim, mechanism_of

__all__ = ["OpacusAccountant", "claim", "mechanism_of"]

if find_spec("opacus") is not None:
    import_module("opacus.accountants.registry").register_accountant(
        OpacusAccountant.mechanism(), OpacusAccountant, force=True
    )

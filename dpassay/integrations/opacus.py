"""For Opacus: `engine.accountant = OpacusAccountant()`, and what their histories stand for."""

from dpassay.verifier.foreign.drop_in import OpacusAccountant
from dpassay.verifier.foreign.opacus import claim, mechanism_of

__all__ = ["OpacusAccountant", "claim", "mechanism_of"]

"""For Opacus: `engine.accountant = OpacusAccountant()`, and what their histories stand for."""

from verify.foreign.drop_in import OpacusAccountant
from verify.foreign.opacus import claim, mechanism_of

__all__ = ["OpacusAccountant", "claim", "mechanism_of"]

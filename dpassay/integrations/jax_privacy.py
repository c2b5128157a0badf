"""For JAX-Privacy: `DpsgdTrainingAccountant(JaxPrivacyConfig())`; its accountants are events'."""

from dpassay.integrations.dp_accounting import EventAccountant
from dpassay.verifier.foreign.drop_in import JaxPrivacyConfig

__all__ = ["EventAccountant", "JaxPrivacyConfig"]

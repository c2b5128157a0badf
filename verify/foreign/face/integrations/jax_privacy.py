"""For JAX-Privacy: `DpsgdTrainingAccountant(JaxPrivacyConfig())`; its accountants are events'."""

from verify.foreign.drop_in import JaxPrivacyConfig
from verify.foreign.face.integrations.dp_accounting import EventAccountant

__all__ = ["EventAccountant", "JaxPrivacyConfig"]

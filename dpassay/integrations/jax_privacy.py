"""JAX-Privacy: `DpsgdTrainingAccountant(JaxPrivacyConfig())`, which uses dp-accounting's events."""

from dpassay.integrations.dp_accounting import EventAccountant
from dpassay.verifier.foreign.drop_in import JaxPrivacyConfig

__all__ = ["EventAccountant", "JaxPrivacyConfig"]

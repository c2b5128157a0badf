"""dp-accounting: a `PrivacyAccountant`, and the translation of its events to mechanisms."""

from dp_accounting import PrivacyAccountant

from dpassay.verifier.foreign.drop_in import EventAccountant
from dpassay.verifier.foreign.events import claim, mechanism_of

__all__ = ["EventAccountant", "claim", "mechanism_of"]

PrivacyAccountant.register(EventAccountant)

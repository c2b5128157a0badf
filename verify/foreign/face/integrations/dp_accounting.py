"""For dp-accounting: a `PrivacyAccountant`, and what their events stand for."""

from dp_accounting import PrivacyAccountant

from verify.foreign.drop_in import EventAccountant
from verify.foreign.events import claim, mechanism_of
from verify.foreign.loss import privacy_loss_distribution

__all__ = ["EventAccountant", "claim", "mechanism_of", "privacy_loss_distribution"]

PrivacyAccountant.register(EventAccountant)

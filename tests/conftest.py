"""Shared settings of the tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Derandomised: a run is a function of the code alone.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

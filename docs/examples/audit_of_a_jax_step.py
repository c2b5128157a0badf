# ruff: noqa: T201
"""A step of DP-SGD in JAX, audited from inside: correct, with half the noise, not clipped.

Needs jax. The gradients that the auditor makes up are those of the batch.
"""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from dpassay.verifier.audit import audit_step

CLIP, SIGMA, BATCH, SIZE = 1.0, 2.0, 50, 20


@functools.partial(jax.jit, static_argnames=("noise", "clip"))
def update(key, gradients, noise, clip):
    """Return the noisy mean of clipped gradients."""
    norms = jnp.linalg.norm(gradients, axis=1, keepdims=True)
    kept = gradients * jnp.minimum(1.0, CLIP / jnp.maximum(norms, 1e-12)) if clip else gradients
    return (kept.sum(axis=0) + noise * CLIP * jax.random.normal(key, (SIZE,))) / BATCH


def step(gradients, rng, noise=SIGMA, clip=True):
    """Return the update with a key of its own."""
    key = jax.random.key(int(rng.integers(1 << 31)))
    return np.asarray(update(key, jnp.asarray(gradients), noise, clip))


for name, bug in (
    ("correct", {}),
    ("half the noise", {"noise": SIGMA / 2}),
    ("clipping forgotten", {"clip": False}),
):
    started = time.process_time()
    found = audit_step(
        functools.partial(step, **bug),
        clip=CLIP,
        noise_multiplier=SIGMA,
        batch=BATCH,
        dimension=SIZE,
        runs=400,
        seed=1,
    )
    wrong = [each.said for each in found.findings if each.refuted]
    print(f"{name} ({time.process_time() - started:.1f} s): {found.outcome.value}", *wrong[:1])

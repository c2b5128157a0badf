# ruff: noqa: T201
"""Training, audited: one run with 1000 canaries, and one step from inside.

Logistic regression by 60 steps of DP-SGD in numpy with all gradients, clipped to 1, and noise of
multiplier 8: 0.968-GDP. Two bugs: half of the noise, and clipping forgotten.
"""

import numpy as np

from verify.audit import audit_one_run, audit_step

CANARIES, FEATURES, STEPS, SIGMA = 1000, 200, 60, 8


def step(gradients, rng, noise=SIGMA, clip=True):
    """Return the noisy sum of clipped gradients."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    kept = gradients * np.minimum(1, 1 / np.maximum(norms, 1e-12)) if clip else gradients
    return kept.sum(axis=0) + noise * rng.normal(size=gradients.shape[1])


def train(update, rng):
    """Return a score for each canary, and whether it was included."""
    width = FEATURES + CANARIES
    records = np.zeros((2000 + CANARIES, width))
    records[:2000, :FEATURES] = rng.normal(size=(2000, FEATURES)) / 14
    records[2000:, FEATURES:] = 20 * np.eye(CANARIES)
    truth = 5 * rng.normal(size=FEATURES)
    labels = rng.random(len(records)) < 1 / (1 + np.exp(-records[:, :FEATURES] @ truth))
    labels[2000:] = True
    included = rng.random(CANARIES) < 0.5
    kept = np.append(np.ones(2000, bool), included)
    records, labels = records[kept], labels[kept]
    weights = np.zeros(width)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(records @ weights, -500, 500)))
        weights -= update((chance - labels)[:, None] * records, rng) / 6000
    return weights[FEATURES:], included


mu = f"{STEPS**0.5 / SIGMA:.12g}"
for name, bug in (
    ("correct", {}),
    ("half the noise", {"noise": SIGMA / 2}),
    ("clipping forgotten", {"clip": False}),
):

    def update(gradients, rng, bug=bug):
        """Make the step with a bug."""
        return step(gradients, rng, **bug)

    run = audit_one_run(*train(update, np.random.default_rng(1)), {"mu": mu}, delta=1e-5)
    inside = audit_step(
        update, clip=1, noise_multiplier=SIGMA, batch=1, dimension=20, runs=400, seed=1
    )
    wrong = [each.said for each in inside.findings if each.refuted]
    print(f"{name}: one run {run.outcome.value}, epsilon(1e-5) >= {run.epsilon:.2f};", end=" ")
    print(f"one step {inside.outcome.value}", *wrong[:1], sep=", ")

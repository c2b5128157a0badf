"""Training, audited: one run with 1000 canaries, and 200 runs with one.

Logistic regression by 60 steps of DP-SGD in numpy with all gradients, clipped to 1, and noise of
multiplier 8: 0.968-GDP. Two bugs: half of the noise, and clipping forgotten.
"""

import time

import numpy as np

from dpassay import audit_one_run, audit_scores

CANARIES, FEATURES, STEPS, SIGMA = 1000, 200, 60, 8


def step(gradients, rng, noise=SIGMA, clip=True):
    """Return the noisy sum of clipped gradients."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    kept = gradients * np.minimum(1, 1 / np.maximum(norms, 1e-12)) if clip else gradients
    return kept.sum(axis=0) + noise * rng.normal(size=gradients.shape[1])


def train(update, rng, canaries=CANARIES, others=2000):
    """Return a score for each canary, and whether it was included."""
    width = FEATURES + canaries
    records = np.zeros((others + canaries, width))
    records[:others, :FEATURES] = rng.normal(size=(others, FEATURES)) / 14
    records[others:, FEATURES:] = 20 * np.eye(canaries)
    truth = 5 * rng.normal(size=FEATURES)
    labels = rng.random(len(records)) < 1 / (1 + np.exp(-records[:, :FEATURES] @ truth))
    labels[others:] = True
    included = rng.random(canaries) < 0.5
    kept = np.append(np.ones(others, bool), included)
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

    started = time.process_time()
    run = audit_one_run(*train(update, np.random.default_rng(1)), {"mu": mu}, delta=1e-5)
    print(f"{name}: one run {run.outcome.value}, epsilon(1e-5) >= {run.epsilon:.2f}", end=", ")
    print(f"mu >= {run.mu:.2f} ({time.process_time() - started:.1f} s)", end="; ")
    started = time.process_time()
    runs = [train(update, np.random.default_rng(seed), 1, 100) for seed in range(200)]
    sides = [[score[0] for score, coin in runs if coin[0] == side] for side in (True, False)]
    many = audit_scores(*sides, {"mu": mu}, seed=1)
    print(f"200 runs {many.outcome.value}, mu >= {many.mu:.2f}", end=" ")
    print(f"({time.process_time() - started:.1f} s)")

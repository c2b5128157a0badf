# ruff: noqa: T201
"""A step of DP-SGD with Opacus, audited from inside: correct, with half the noise, not clipped.

Needs torch and opacus. The gradients that the auditor makes up become the per-sample gradients of
a linear layer: for the loss w·x the gradient of a sample x is x.
"""

import time

import torch
from opacus.optimizers import DPOptimizer

from dpassay.verifier.audit import audit_step

CLIP, SIGMA, BATCH, SIZE = 1.0, 2.0, 50, 20


def step(gradients, rng, noise=SIGMA, clip=CLIP):
    """Return the update of the weights, −lr times the noisy mean, at lr = −1."""
    weights = torch.nn.Parameter(torch.zeros(SIZE, dtype=torch.float64))
    optimizer = DPOptimizer(
        torch.optim.SGD([weights], lr=1.0),
        noise_multiplier=noise * CLIP / clip,
        max_grad_norm=clip,
        expected_batch_size=BATCH,
        generator=torch.Generator().manual_seed(int(rng.integers(1 << 62))),
    )
    weights.grad_sample = torch.as_tensor(gradients)
    optimizer.step()
    return -weights.detach().numpy()


for name, bug in (
    ("correct", {}),
    ("half the noise", {"noise": SIGMA / 2}),
    ("clipping forgotten", {"clip": 1e6}),
):
    started = time.process_time()
    found = audit_step(
        lambda gradients, rng, bug=bug: step(gradients, rng, **bug),
        clip=CLIP,
        noise_multiplier=SIGMA,
        batch=BATCH,
        dimension=SIZE,
        runs=400,
        seed=1,
    )
    wrong = [each.said for each in found.findings if each.refuted]
    print(f"{name} ({time.process_time() - started:.1f} s): {found.outcome.value}", *wrong[:1])

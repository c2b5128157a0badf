"""How fast other libraries count privately, where they are installed; print JSON.

Run: python -P benchmarks/streams_peers.py, with the Python that has them. They differ in what they
do: OpenDP's b-ary tree takes the whole data at once and releases noisy vertices; jax-privacy's
buffered Toeplitz matrix makes Gaussian noise for one number at a time, here in one compiled scan.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import resource
import time
from typing import Any

import numpy as np

OPENDP_LEAVES = 1 << 18
SCANNED = 1 << 20


def opendp() -> dict[str, Any]:
    """Release the noisy vertices of a 16-ary tree, and add them up to the prefix sums."""
    dp: Any = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    count = OPENDP_LEAVES
    space = dp.vector_domain(dp.atom_domain(T=int), size=count), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=count, branching_factor=16)
    measure = tree >> dp.m.then_laplace(scale=5.0)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=16)
    data = [1] * count
    start = time.perf_counter()
    released = measure(data)
    np.cumsum(consistent(released))
    spent = time.perf_counter() - start
    return {"outputs_per_second_at_once": round(count / spent), "whole_data_in_memory": True}


def jax_privacy() -> dict[str, Any]:
    """Make the noise of a buffered Toeplitz factorization, three buffers, prefix sums included."""
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    toeplitz: Any = importlib.import_module("jax_privacy.matrix_factorization.buffered_toeplitz")
    streaming: Any = importlib.import_module("jax_privacy.matrix_factorization.streaming_matrix")
    matrix = toeplitz.get_init_blt().inverse_as_streaming_matrix()
    noise = jax.random.normal(jax.random.key(0), (SCANNED,))

    def prefix_noise(values: Any) -> Any:
        return jax.numpy.cumsum(streaming.multiply_array(matrix, values))

    run = jax.jit(prefix_noise)
    run(noise).block_until_ready()
    start = time.perf_counter()
    run(jax.random.normal(jax.random.key(1), (SCANNED,))).block_until_ready()
    spent = time.perf_counter() - start
    return {"outputs_per_second_compiled_scan": round(SCANNED / spent)}


def tensorflow_privacy() -> dict[str, Any]:
    """Add up a stream with the tree aggregator, one number at a time."""
    tree: Any = importlib.import_module("tensorflow_privacy").TreeCumulativeSumQuery
    tf: Any = importlib.import_module("tensorflow")
    query = tree.build_l2_gaussian_query(1.0, 1.0, tf.TensorSpec([]), use_efficient=True)
    state, count = query.initial_global_state(), 2000
    start = time.perf_counter()
    for _ in range(count):
        _, state, _ = query.get_noised_result(tf.constant(1.0), state)
    return {"outputs_per_second_one_by_one": round(count / (time.perf_counter() - start))}


def main() -> dict[str, Any]:
    """Run what is installed."""
    report: dict[str, Any] = {}
    for name, package, run in (
        ("opendp", "opendp", opendp),
        ("jax_privacy", "jax-privacy", jax_privacy),
        ("tensorflow_privacy", "tensorflow-privacy", tensorflow_privacy),
    ):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            report[name] = "missing"
            continue
        report[name] = {**run(), "version": importlib.metadata.version(package)}
        report[name]["peak_memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return report


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))

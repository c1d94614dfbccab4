"""How a model's answer to a change of all its weights grows with its depth, before training: C5 of Admin (Liu et al. 2020, 2004.08249)."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from quick import quick_jit

from core.engine.block import Scales
from core.engine.feed import batches
from core.engine.initialization import initial_parameters
from core.engine.model import forward, taps
from core.engine.parameters import pack
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig

DEPTHS, SEEDS = (6, 48), (0, 1)


def moved(matrices: Any, seed: int) -> Any:
    """Every matrix of the blocks with 1 % of its own scatter added to each of its numbers."""
    random = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: leaf + 0.01 * leaf.std() * random.standard_normal(leaf.shape, np.float32) if leaf.ndim == 3 else leaf, matrices
    )


def output_change(placement: str, layers: int) -> float:
    """Mean square of the logits' change."""
    config = RunConfig(placement=placement, layers=layers, width=32, length=16, batch=8)
    record = PLACEMENTS[placement]
    stack, scales = record.stack(layers), [Scales.of(segment) for _, segment in record.segments(layers)]
    logits = quick_jit(partial(forward, config=config, stack=stack, scales=scales, taps=taps(stack)))
    changes = []
    for seeded in (replace(config, seed=seed) for seed in SEEDS):
        tokens_bt, parameters = next(batches(seeded)).tokens_bt, initial_parameters(seeded)
        before_nv, after_nv = (
            logits(pack(values), tokens_bt)[0]
            for values in (parameters, parameters | {"segments": moved(parameters["segments"], seeded.seed)})
        )
        changes.append(np.square(after_nv - before_nv).mean())
    return float(np.mean(changes))


@pytest.mark.parametrize(
    ("placement", "least", "most"),
    [("post", 0.7, 3.0), ("pre", 0.1, 0.5), ("admin_profiled", -0.1, 0.5), ("deepnorm", -0.6, 0.1)],
)
def test_the_answer_to_moved_weights_grows_with_depth_as_a_power(placement: str, least: float, most: float) -> None:
    """Post-Norm's grows with the number of branches, Pre-Norm's and Admin's with its logarithm, DeepNorm's not at all."""
    change = [output_change(placement, layers) for layers in DEPTHS]
    assert least < np.log(change[1] / change[0]) / np.log(DEPTHS[1] / DEPTHS[0]) < most

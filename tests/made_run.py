"""Runs that nobody trained: any numbers, in the shapes and types that training gives."""

from typing import Any

import numpy as np

from core.config import RunConfig
from core.history import History
from core.run import Facts, Run

FACTS = Facts("2 x cpu", 1.5, 2.5, 100.0, {"jax": "0.0.0"})


def made_run(config: RunConfig, facts: Facts = FACTS, loss_s: Any = None) -> Run:
    """Any numbers that follow from the seed, or these losses."""
    random = np.random.default_rng(config.seed)

    def positive(*shape: int) -> np.ndarray:
        return random.gamma(1.0, size=shape).astype(np.float32)

    loss_s = positive(config.steps) if loss_s is None else np.array(loss_s, np.float32)
    steps, layers = len(loss_s), config.layers
    history = History(
        loss_s,
        positive(steps),
        positive(steps).astype(float),
        positive(steps, layers + 1),
        positive(steps, layers),
        positive(steps, layers),
    )
    return Run(config, history, facts)

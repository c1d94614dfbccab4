"""The learning rate of each step."""

import numpy as np

from core.runs.config import RunConfig


def learning_rate_s(config: RunConfig) -> np.ndarray:
    """The rate of each step: it climbs linearly to its peak over the warmup steps and stays there."""
    step_s = np.arange(1, config.steps + 1)
    return config.learning_rate * np.minimum(1.0, step_s / max(config.warmup_steps, 1))

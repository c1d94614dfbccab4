"""The arithmetic of a training step."""

from core.runs.config import RunConfig


def attention_flops(config: RunConfig) -> float:
    """Arithmetic of attention's two products in all blocks, forward."""
    return config.batch * config.length * config.layers * 4 * config.length * config.width


def needed_flops(config: RunConfig) -> float:
    """Arithmetic that a training step needs, however it is computed: a forward pass and a backward pass of twice its work."""
    tokens = config.batch * config.length
    dense, head = tokens * config.layers * 24 * config.width**2, tokens * 2 * config.width * config.vocabulary
    return 3 * (dense + attention_flops(config) + head)


def step_flops(config: RunConfig) -> float:
    """Arithmetic of one training step of the engine, whose backward pass computes attention anew.

    It does the same with the dense layers only of models so large that what they compute cannot be kept; that is not counted.
    """
    return needed_flops(config) + attention_flops(config)

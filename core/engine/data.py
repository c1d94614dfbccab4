"""The article's task: in a sequence that counts upward modulo the vocabulary, predict the next token."""

import jax
import jax.numpy as jnp
import numpy as np

from core.runs.config import VOCABULARY, RunConfig


def start_tokens_sb(config: RunConfig) -> np.ndarray:
    """The first token of each sequence of each step, as the article draws them."""
    return np.random.default_rng(config.seed + 116).integers(0, VOCABULARY, (config.steps, config.batch), dtype=np.int64).astype(np.int32)


def sequences(start_b: jax.Array, length: int) -> tuple[jax.Array, jax.Array]:
    """The tokens (B, T) that follow from the first ones, and for each the token to predict."""
    tokens_bt = (start_b[:, None] + jnp.arange(length)) % VOCABULARY
    return tokens_bt, (tokens_bt + 1) % VOCABULARY

"""The article's experiment in the article's own way: what the engine's numbers and speed are held against.

Blocks are unrolled Flax modules, `init` runs outside jit, and every Python iteration calls one jitted update and fetches its loss and
gradient norm. It shares no code with the engine. `python -m benchmarks.baseline` trains the article's three runs.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from benchmarks import stopwatch
from core.runs.config import RunConfig


class Block(nn.Module):
    heads: int
    pre_norm: bool

    @nn.compact
    def __call__(self, x_btd: jax.Array) -> jax.Array:
        attention_norm, mlp_norm = nn.LayerNorm(name="attention_norm"), nn.LayerNorm(name="mlp_norm")
        if self.pre_norm:
            x_btd = x_btd + self.attention(attention_norm(x_btd))
            return x_btd + self.mlp(mlp_norm(x_btd))
        x_btd = attention_norm(x_btd + self.attention(x_btd))
        return mlp_norm(x_btd + self.mlp(x_btd))

    def attention(self, x_btd: jax.Array) -> jax.Array:
        batch, length, width = x_btd.shape
        qkv_bt3hk = nn.Dense(3 * width, name="qkv")(x_btd).reshape(batch, length, 3, self.heads, width // self.heads)
        query_bthk, key_bthk, value_bthk = jnp.moveaxis(qkv_bt3hk, 2, 0)
        mask_bhts = nn.make_causal_mask(jnp.ones((batch, length)))
        heads_bthk = nn.dot_product_attention(query_bthk, key_bthk, value_bthk, mask=mask_bhts)
        return nn.Dense(width, name="attention_output")(heads_bthk.reshape(batch, length, width))

    def mlp(self, x_btd: jax.Array) -> jax.Array:
        width = x_btd.shape[-1]
        return nn.Dense(width, name="mlp_out")(nn.gelu(nn.Dense(4 * width, name="mlp_in")(x_btd)))


class Transformer(nn.Module):
    """Logits (B, T, V) for tokens (B, T). Of the placements it knows `pre` and `post`, of the norms LayerNorm."""

    config: RunConfig

    @nn.compact
    def __call__(self, tokens_bt: jax.Array) -> jax.Array:
        config, pre_norm = self.config, self.config.placement == "pre"
        x_btd = nn.Embed(config.vocabulary, config.width, embedding_init=nn.initializers.normal(1.0), name="embedding")(tokens_bt)
        x_btd = x_btd + self.param("position", nn.initializers.zeros, (config.length, config.width))
        for i in range(config.layers):
            x_btd = Block(config.heads, pre_norm, name=f"block_{i}")(x_btd)
        if pre_norm:
            x_btd = nn.LayerNorm(name="final_norm")(x_btd)
        return nn.Dense(config.vocabulary, use_bias=False, kernel_init=nn.initializers.normal(0.02), name="output")(x_btd)

    def loss(self, parameters: Any, tokens_bu: jax.Array) -> jax.Array:
        """Mean cross-entropy in nats of predicting each token of (B, T + 1) from those before it."""
        logits_btv = self.apply({"params": parameters}, tokens_bu[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits_btv, tokens_bu[:, 1:]).mean()

    def initial(self) -> Any:
        """The parameters that a run starts from."""
        return self.init(jax.random.PRNGKey(self.config.seed), jnp.zeros((1, self.config.length), jnp.int32))["params"]


def train(config: RunConfig, parameters: Any = None) -> Iterator[tuple[float, float]]:
    """Loss and gradient norm step by step, from the run's own initial parameters or from the given ones."""
    model = Transformer(config)
    parameters = model.initial() if parameters is None else parameters

    def rate(updates_so_far: jax.Array) -> jax.Array:
        return config.learning_rate * jnp.minimum(1.0, (updates_so_far + 1) / max(config.warmup_steps, 1))

    optimizer = optax.adamw(rate, b1=0.9, b2=0.95, weight_decay=0.01)
    state = optimizer.init(parameters)

    @jax.jit
    def update(parameters: Any, state: Any, tokens_bu: jax.Array) -> Any:
        loss, gradient = jax.value_and_grad(model.loss)(parameters, tokens_bu)
        updates, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss, optax.tree.norm(gradient)

    random = np.random.default_rng(config.seed + 116)
    for _ in range(config.steps):
        start_b1 = random.integers(0, config.vocabulary, (config.batch, 1))
        tokens_bu = ((start_b1 + np.arange(config.length + 1)) % config.vocabulary).astype(np.int32)
        parameters, state, loss, norm = update(parameters, state, tokens_bu)
        yield float(loss), float(norm)


def main(argv: Sequence[str] | None = None) -> None:
    """A line of JSON for each run."""
    asked = stopwatch.parser("benchmarks.baseline").parse_args(argv)
    for config in stopwatch.article_runs(asked.layers, asked.steps, asked.runs):
        print(stopwatch.time_steps(config, train(config)), flush=True)


if __name__ == "__main__":
    main()

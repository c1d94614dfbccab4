"""The article's experiment in PyTorch, eager: the same model, shapes and optimizer, loss and gradient norm fetched after each step.

PyTorch is no requirement of this project: `pip install torch` adds it. `python -m benchmarks.torch_eager` trains the article's three runs.
Glossary of shapes: B batch, T time, U = T + 1, D width, H heads, K head width, V vocabulary.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks import stopwatch
from core.runs.config import RunConfig

EPSILON = 1e-6  # of the norms, Flax's own
CUT = 0.87962566103423978  # standard deviation of a normal distribution cut off at 2


class Block(nn.Module):
    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        width = config.width
        self.heads, self.pre_norm = config.heads, config.placement == "pre"
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width, EPSILON), nn.LayerNorm(width, EPSILON)
        self.qkv, self.attention_output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp_in, self.mlp_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x_btd: Tensor) -> Tensor:
        if self.pre_norm:
            x_btd = x_btd + self.attention(self.attention_norm(x_btd))
            return x_btd + self.mlp(self.mlp_norm(x_btd))
        x_btd = self.attention_norm(x_btd + self.attention(x_btd))
        return self.mlp_norm(x_btd + self.mlp(x_btd))

    def attention(self, x_btd: Tensor) -> Tensor:
        qkv_3bhtk = self.qkv(x_btd).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        heads_bhtk = functional.scaled_dot_product_attention(*qkv_3bhtk, is_causal=True)
        return self.attention_output(heads_bhtk.transpose(1, 2).flatten(2))

    def mlp(self, x_btd: Tensor) -> Tensor:
        return self.mlp_out(functional.gelu(self.mlp_in(x_btd), approximate="tanh"))


class Transformer(nn.Module):
    """Of the placements it knows `pre` and `post`, of the norms LayerNorm."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.width)  # drawn from N(0, 1)
        self.position = nn.Parameter(torch.zeros(config.length, config.width))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.final_norm = nn.LayerNorm(config.width, EPSILON) if config.placement == "pre" else nn.Identity()
        self.output = nn.Linear(config.width, config.vocabulary, bias=False)
        for dense in (module for module in self.blocks.modules() if isinstance(module, nn.Linear)):
            deviation = 1 / math.sqrt(dense.in_features) / CUT
            nn.init.trunc_normal_(dense.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
            nn.init.zeros_(dense.bias)
        nn.init.normal_(self.output.weight, std=0.02)

    def forward(self, tokens_bu: Tensor) -> Tensor:
        """Mean cross-entropy in nats of predicting each token of (B, T + 1) from those before it."""
        x_btd = self.embedding(tokens_bu[:, :-1]) + self.position
        for block in self.blocks:
            x_btd = block(x_btd)
        logits_btv = self.output(self.final_norm(x_btd))
        return functional.cross_entropy(logits_btv.flatten(0, 1), tokens_bu[:, 1:].flatten())


def train(config: RunConfig, device: str, model: Transformer | None = None) -> Iterator[tuple[float, float]]:
    """Loss and gradient norm step by step, from parameters drawn as the article draws them or from those of the given model."""
    torch.manual_seed(config.seed)
    model = (model or Transformer(config)).to(device)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    random = np.random.default_rng(config.seed + 116)
    for step in range(1, config.steps + 1):
        start_b1 = random.integers(0, config.vocabulary, (config.batch, 1))
        tokens_bu = torch.from_numpy((start_b1 + np.arange(config.length + 1)) % config.vocabulary).to(device)
        optimizer.param_groups[0]["lr"] = config.learning_rate * min(1.0, step / max(config.warmup_steps, 1))
        optimizer.zero_grad()
        loss = model(tokens_bu)
        loss.backward()
        norm = nn.utils.get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
        optimizer.step()
        yield loss.item(), norm.item()


def main(argv: Sequence[str] | None = None) -> None:
    """A line of JSON for each run."""
    parser = stopwatch.parser("benchmarks.torch_eager")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    asked = parser.parse_args(argv)
    device = "cuda" if asked.device == "gpu" else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True  # as XLA does by default
    for config in stopwatch.article_runs(asked.layers, asked.steps, asked.runs):
        print(stopwatch.time_steps(config, train(config, device)), flush=True)


if __name__ == "__main__":
    main()

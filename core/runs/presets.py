"""Comparisons worth starting from, as small named data."""

from core.runs.config import RunConfig

ARTICLE = (RunConfig(), RunConfig(placement="post"), RunConfig(placement="post", warmup=2 / 3))
PRESETS: dict[str, tuple[str, tuple[RunConfig, ...]]] = {
    "article": ("The article: three runs of 12 blocks", ARTICLE),
    "deeper": ("Deeper: the same two placements at 24 blocks", (RunConfig(layers=24), RunConfig(placement="post", layers=24))),
    "bolder": ("Bolder rate: where does Pre-Norm give way?", tuple(RunConfig(learning_rate=rate) for rate in (2e-3, 1e-2, 3e-2, 1e-1))),
    "warmup": (
        "Warmup rescues: Post-Norm with more and more of it",
        tuple(RunConfig(placement="post", warmup=part) for part in (0.0, 0.1, 0.3, 2 / 3)),
    ),
}

"""What runs are called beside each other: the placement, the warmup, and whatever else differs among them."""

from collections.abc import Callable, Sequence
from typing import Any

from core.placement.design import DESIGN, is_design, placement_of
from core.runs.config import NORMS, RunConfig
from core.values import plain_text

TEXTS: dict[str, Callable[[Any], str]] = {
    "norm": lambda norm: NORMS[norm],
    "final_norm": lambda final: "final norm" if final else "no final norm",
    "qk_norm": lambda _: "QK-norm",
    "layers": lambda layers: f"{layers} blocks" if layers > 1 else "1 block",
    "width": lambda width: f"width {width}",
    "heads": lambda heads: f"{heads} heads" if heads > 1 else "1 head",
    "length": lambda length: f"length {length}",
    "batch": lambda batch: f"batch {batch}",
    "steps": lambda steps: f"{steps} steps",
    "learning_rate": lambda rate: f"rate {plain_text(rate)}",
    "seed": lambda seed: f"seed {seed}",
}


def labels(configs: Sequence[RunConfig]) -> list[str]:
    """A name for each run, unique among them; the article's three runs get the names that it published."""
    names: list[str] = []
    for config in configs:
        warmup = f"{config.warmup_steps}-step warmup" if config.warmup_steps else "no warmup"
        differing = [text(getattr(config, field)) for field, text in TEXTS.items() if differs(field, config, configs)]
        names.append(" · ".join([title(config, configs), warmup, *differing]))
    alike = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name} ({before + 1})" if before else name for name, before in zip(names, alike, strict=True)]


def title(config: RunConfig, configs: Sequence[RunConfig]) -> str:
    """The placement's, with the text of a design where there are several."""
    designs = {other.placement for other in configs if is_design(other.placement)}
    several = config.placement in designs and len(designs) > 1
    text = config.placement.removeprefix(DESIGN).replace(",", ", ")
    return placement_of(config.placement).title + (f" ({text})" if several else "")


def differs(field: str, config: RunConfig, configs: Sequence[RunConfig]) -> bool:
    """Whether a field tells this run from another; the norms that can be switched only where they are not as usual."""
    if field == "final_norm":
        return config.final_norm != placement_of(config.placement).final_norm
    if field == "qk_norm":
        return config.qk_norm
    return len({getattr(other, field) for other in configs}) > 1

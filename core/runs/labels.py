"""What runs are called beside each other: the placement, the warmup, and whatever else tells them apart."""

from collections.abc import Sequence
from functools import lru_cache

from core.placement.design import DESIGN, is_design, placement_of
from core.runs.config import SETTINGS, RunConfig
from core.runs.settings import Setting


def labels(configs: Sequence[RunConfig]) -> list[str]:
    """A name for each run, unique among them; the article's three runs get the names that it published."""
    return [*labels_of(tuple(configs))]


@lru_cache(maxsize=512)  # every rerun of a page asks again
def labels_of(configs: tuple[RunConfig, ...]) -> list[str]:
    names: list[str] = []
    for config in configs:
        warmup = f"{config.warmup_steps}-step warmup" if config.warmup_steps else "no warmup"
        names.append(" · ".join([title(config, configs), warmup, *distinctions(config, configs)]))
    alike = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name} ({before + 1})" if before else name for name, before in zip(names, alike, strict=True)]


def title(config: RunConfig, configs: Sequence[RunConfig]) -> str:
    """The placement's, with the text of a design where there are several."""
    own = placement_of(config.placement).title
    designs = {other.placement for other in configs if is_design(other.placement)}
    if config.placement in designs and len(designs) > 1:
        return f"{own} ({config.placement.removeprefix(DESIGN).replace(',', ', ')})"
    return own


def distinctions(config: RunConfig, configs: Sequence[RunConfig]) -> list[str]:
    """The settings that tell a run from the others, in words."""
    return [
        setting.label(getattr(config, setting.name))
        for setting in SETTINGS.values()
        if setting.label and distinguishes(setting, config, configs)
    ]


def distinguishes(setting: Setting, config: RunConfig, configs: Sequence[RunConfig]) -> bool:
    """Whether this setting tells the run from the others."""
    if setting.unusual_only:
        return setting.name in config.changes()
    return len({getattr(other, setting.name) for other in configs}) > 1

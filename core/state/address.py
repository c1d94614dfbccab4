"""A run as the value of one parameter of an address: its placement, then what differs from its default run, as in post~layers-24."""

from typing import Any

from core.runs.config import SETTINGS, RunConfig, conflicts, known, legal
from core.runs.settings import ConfigError, Number
from core.values import plain_text

SEPARATOR = "~"  # one of the few characters that no address escapes
LONG_NAMES = {setting.short: name for name, setting in SETTINGS.items()}


def write_run(config: RunConfig) -> str:
    changes = (f"{SETTINGS[name].short}-{plain_text(value)}" for name, value in config.changes().items())
    return SEPARATOR.join([config.placement, *changes])


def read_run(text: str) -> tuple[RunConfig, list[str]]:
    """The legal run nearest to what a text names, and one sentence for each value that was replaced."""
    placement, *rest = text.split(SEPARATOR)
    values = {"placement": placement} | {LONG_NAMES.get(name, name): value for name, _, value in (part.partition("-") for part in rest)}
    accepted: dict[str, Any] = {}
    sentences = []
    for name, value in values.items():
        try:
            accepted[name] = legal(known(name), value)
        except ConfigError as error:
            substitute = nearest(name, value, RunConfig(placement=accepted.get("placement", RunConfig().placement)))
            accepted |= substitute
            sentences.append(" ".join([str(error), *(f"{plain_text(used)} is used." for used in substitute.values())]))
    for name, sentence, fitting in conflicts(RunConfig().to_dict() | accepted):
        accepted[name] = fitting
        sentences.append(f"{sentence} {fitting} is used.")
    return RunConfig(**accepted), sentences


def nearest(name: str, value: Any, plain: RunConfig) -> dict[str, Any]:
    """The setting with the legal value nearest to `value`, or that of `plain` where none is near; nothing where no setting has the name."""
    if name not in SETTINGS:
        return {}
    kind = SETTINGS[name].kind
    found = kind.nearest(value) if isinstance(kind, Number) else None
    return {name: getattr(plain, name) if found is None else found}

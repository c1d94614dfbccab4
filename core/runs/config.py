"""What a run is: one frozen record, whose fields are the settings. A new setting is one entry here, and what acts on it."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from core import host
from core.data_tasks import TASKS
from core.placement.design import placement_of
from core.runs.settings import IN_EVERY_KEY, Choice, ConfigError, Number, PlacementName, Setting, Switch, setting
from core.values import plain_text, shown

ENGINE_FORMAT = 3  # in every key: raise it when a change of the engine moves the numbers of all runs
TASK_TITLES = {task.name: task.title for task in TASKS.values()}
NORMS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "dyt": "DyT"}


def several(noun: str) -> Any:
    """A label's words for a number of things."""
    return lambda count: f"{count} {noun}s" if count > 1 else f"1 {noun}"


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Everything that decides a run's numbers. The defaults are the article's Pre-Norm run.

    Raises ConfigError, whose sentence names the field, the value and what is allowed.
    """

    placement: str = setting(
        "pre",
        PlacementName(),
        "Norm placement",
        "Where the norms sit in each block, and what scales come with them. The last entry is for a design of your own.",
        "placement",
    )
    norm: str = setting(
        "layernorm",
        Choice(NORMS),
        "Norm kind",
        "LayerNorm subtracts the mean and divides by the standard deviation; RMSNorm only divides by the root-mean-square. "
        "DyT is no norm: it takes a norm's place with γ tanh(αx) + β, whose α is learned.",
        "placement",
        label=NORMS.__getitem__,
    )
    final_norm: bool | None = setting(  # None means the placement's default
        None,
        Switch(),
        "Final norm",
        "A norm between the last block and the output layer. Pre-Norm has one by default; Post-Norm's last block ends in one anyway.",
        "placement",
        label=lambda final: "final norm" if final else "no final norm",
        unusual_only=True,
    )
    qk_norm: bool = setting(
        False,
        Switch(),
        "QK-norm",
        "A norm on each head's queries and keys, which bounds the attention scores. HybridNorm has it anyway.",
        "placement",
        label=lambda _: "QK-norm",
        unusual_only=True,
    )
    layers: int = setting(  # L
        12, Number(1, 96), "Depth, in blocks", "Number of attention and feed-forward blocks.", "training", label=several("block")
    )
    width: int = setting(  # D
        64, Number(16, 256), "Width", "Features of the residual stream.", "more", label=lambda width: f"width {width}"
    )
    heads: int = setting(4, Number(1, 256), "Heads", "Attention heads; their number divides the width.", "more", label=several("head"))  # H
    length: int = setting(  # T
        32, Number(8, 128), "Sequence length", "Tokens of a sequence.", "more", label=lambda length: f"length {length}"
    )
    batch: int = setting(
        24, Number(1, 256), "Sequences per batch", "Sequences of a step.", "more", label=lambda batch: f"batch {batch}"
    )  # B
    steps: int = setting(180, Number(1, 5000), "Steps", "Optimizer updates.", "training", label=several("step"), traced=True)  # S
    learning_rate: float = setting(
        2e-3,
        Number(1e-6, 1.0, whole=False),
        "Learning rate",
        "The rate at its peak, of Adam (0.9, 0.95) with decoupled weight decay of 0.01 on all parameters.",
        "training",
        short="lr",
        label=lambda rate: f"rate {plain_text(rate)}",
        traced=True,
    )
    warmup: float = setting(
        0.0,
        Number(0.0, 1.0, whole=False),
        "Warmup fraction",
        "The part of the steps in which the rate climbs from near zero to its peak. 0 is a constant rate.",
        "training",
        traced=True,
    )
    seed: int = setting(
        7,
        Number(0, 2**31 - 1),
        "Seed",
        "Decides initial parameters, such as the LeCun normal matrices of the blocks, and data.",
        "training",
        label=lambda seed: f"seed {seed}",
        traced=True,
    )
    task: str = setting(
        "progression",
        Choice(TASK_TITLES),
        "Data task",
        " ".join(f"{task.title}: {task.summary}" for task in TASKS.values()),
        "more",
        label=lambda name: TASK_TITLES[name].lower(),
        before="progression",
    )
    gradient_clip: float = setting(
        0.0,
        Number(0.0, 1000.0, whole=False),
        "Gradient clipping",
        "A longer gradient is shortened to this global L2 norm before the update; 0 is no clipping. "
        "The recorded norm is the one before clipping.",
        "more",
        short="clip",
        label=lambda norm: f"clipped at {plain_text(norm)}" if norm else "not clipped",
        traced=True,
        before=0.0,
    )

    def __post_init__(self) -> None:
        for name in SETTINGS:
            value = getattr(self, name)
            if name == "final_norm" and value is None:
                value = placement_of(self.placement).final_norm
            object.__setattr__(self, name, legal(name, value))
        for _, sentence, _ in conflicts(self.to_dict()):
            raise ConfigError(sentence)

    @property
    def vocabulary(self) -> int:
        """V, the task's."""
        return TASKS[self.task].vocabulary

    @property
    def warmup_steps(self) -> int:
        """Steps in which the learning rate climbs to its peak; 0 is a constant rate."""
        return math.floor(self.warmup * self.steps + 1e-9)

    @property
    def key(self) -> str:
        """The run's identity on disk and in the queue: equal runs of one engine format have equal keys.

        Settings that came later are in it only where they are not as all runs had them before.
        """
        identity = {"engine": ENGINE_FORMAT} | {name: value for name, value in self.to_dict().items() if value != SETTINGS[name].before}
        if revision := placement_of(self.placement).revision:
            identity["placement_revision"] = revision
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:20]

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SETTINGS}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The run with these fields, the rest at their defaults. Raises ConfigError, also for a field that does not exist."""
        for name in values:
            known(name)
        return cls(**values)

    @classmethod
    def from_file(cls, values: Mapping[str, Any]) -> Self:
        """The run with the fields that a file names; settings that came later are as all runs had them before. Raises ConfigError."""
        earlier = {name: setting.before for name, setting in SETTINGS.items() if setting.before is not IN_EVERY_KEY}
        return cls.from_dict(earlier | dict(values))

    def changes(self) -> dict[str, Any]:
        """The fields in which this run differs from the default run of its placement."""
        plain = RunConfig(placement=self.placement).to_dict()
        return {name: value for name, value in self.to_dict().items() if value != plain[name]}


SETTINGS: dict[str, Setting] = {
    field.name: Setting(field.name, field.default, **{**field.metadata, "short": field.metadata["short"] or field.name})
    for field in fields(RunConfig)
}


def program_shape(config: RunConfig) -> RunConfig:
    """The run that stands for all that its compiled program can train. A `Stack` stands for the placement, the vocabulary for the task."""
    plain = {name: setting.default for name, setting in SETTINGS.items() if setting.traced}
    task = next(name for name, task in TASKS.items() if task.vocabulary == config.vocabulary and task.least_length <= config.length)
    clips = float(config.gradient_clip > 0)  # a program without clipping computes bit for bit as before there was any
    return replace(config, **plain | {"placement": "pre", "task": task, "gradient_clip": clips})


def legal(name: str, value: Any) -> Any:
    """`value` in the type of the setting `name`. Raises ConfigError where no run can have it."""
    return SETTINGS[known(name)].kind.legal(name, value)


def conflicts(values: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Legal settings that do not fit together: the name of one, a sentence on what it must be, and the nearest value that fits."""
    width, heads, length, task = (values[name] for name in ("width", "heads", "length", "task"))
    if width % heads:
        divisor = max(fewer for fewer in range(1, heads) if width % fewer == 0)
        yield "heads", f"heads is {heads}; it must divide the width, which is {width}.", divisor
    if length < (least := TASKS[task].least_length):
        yield "length", f"length is {length}; the task {task} needs at least {least}.", least


def known(name: str) -> str:
    if name not in SETTINGS:
        raise ConfigError(f"{shown(name)} is not a setting; the settings are {', '.join(SETTINGS)}.")
    return name


def limits(name: str) -> Number:
    """Of a setting that is a number."""
    kind = SETTINGS[name].kind
    assert isinstance(kind, Number), name
    return kind


def host_most(name: str) -> float:
    """The most of a setting that this machine's host allows: its limit, or NORMLAB_MAX_<SETTING> where that is lower."""
    kind = limits(name)
    allowed = host.number(f"MAX_{name.upper()}")
    return kind.most if allowed is None else min(max(allowed, kind.least), kind.most)


def admit(config: RunConfig) -> None:
    """Raises ConfigError where the run is legal but larger than this machine's host allows."""
    for name in SETTINGS:
        if isinstance(SETTINGS[name].kind, Number) and getattr(config, name) > (most := host_most(name)):
            value = plain_text(getattr(config, name))
            raise ConfigError(f"{name} is {value}; this machine's host allows at most {plain_text(most)} (NORMLAB_MAX_{name.upper()}).")

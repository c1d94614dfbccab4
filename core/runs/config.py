"""What a run is: one frozen record, its limits, its key, and its forms as JSON, URL text and command."""

import hashlib
import json
import math
import shlex
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from core import host
from core.placement.design import DesignError, is_design, placement_of
from core.placement.table import PLACEMENTS
from core.values import number, plain_text, shown

VOCABULARY = 64  # V
NORMS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "dyt": "DyT"}
CHOICES: dict[str, Collection[str]] = {"placement": PLACEMENTS, "norm": NORMS}
ENGINE_FORMAT = 3  # part of every key: raise it when a change of the engine moves the numbers
# field: (least, most), both allowed
LIMITS: dict[str, tuple[float, float]] = {
    "layers": (1, 96),
    "width": (16, 256),
    "heads": (1, 256),
    "length": (8, 128),
    "batch": (1, 256),
    "steps": (1, 5000),
    "learning_rate": (1e-6, 1.0),
    "warmup": (0.0, 1.0),
    "seed": (0, 2**31 - 1),
}
FRACTIONAL = {"learning_rate", "warmup"}
SWITCHES = {"final_norm", "qk_norm"}
TRUTHS = {"true": True, "false": False}  # as URLs have them
SHORT_NAMES = {"learning_rate": "lr"}  # as URLs and the command line have it
LONG_NAMES = {short: name for name, short in SHORT_NAMES.items()}
URL_SEPARATOR = "~"  # one of the few characters that no address escapes


class ConfigError(ValueError):
    """A value that no run can have; its text is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Everything that decides a run's numbers. The defaults are the article's Pre-Norm run.

    Raises ConfigError, whose sentence names the field, the value and what is allowed.
    """

    placement: str = "pre"
    norm: str = "layernorm"
    final_norm: bool | None = None  # None becomes the placement's own
    qk_norm: bool = False  # whether each head's queries and keys are normalized, whatever the placement
    layers: int = 12  # L
    width: int = 64  # D
    heads: int = 4  # H
    length: int = 32  # T, tokens of a sequence
    batch: int = 24  # B, sequences of a step
    steps: int = 180  # S, optimizer updates
    learning_rate: float = 2e-3  # at its peak
    warmup: float = 0.0  # fraction of the steps
    seed: int = 7

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "final_norm" and value is None:
                value = placement_of(self.placement).final_norm
            object.__setattr__(self, field.name, legal(field.name, value))
        if self.width % self.heads:
            raise ConfigError(f"heads is {self.heads}; it must divide the width, which is {self.width}.")

    @property
    def warmup_steps(self) -> int:
        """Steps in which the learning rate climbs to its peak; 0 is a constant rate."""
        return math.floor(self.warmup * self.steps + 1e-9)

    @property
    def key(self) -> str:
        """The run's identity on disk and in the queue: equal configurations of one engine format have equal keys."""
        text = json.dumps({"engine": ENGINE_FORMAT, **self.to_dict()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The run with these fields, the rest at their defaults. Raises ConfigError, also for a field that does not exist."""
        for name in values:
            known(name)
        return cls(**values)

    def changes(self) -> dict[str, Any]:
        """The fields in which this run differs from the default run of its placement."""
        plain = RunConfig(placement=self.placement).to_dict()
        return {name: value for name, value in self.to_dict().items() if value != plain[name]}

    def to_url(self) -> str:
        """One query value that holds the run: the placement, then what differs from its default run, as in post~layers-24."""
        return URL_SEPARATOR.join([self.placement, *(f"{short(name)}-{plain_text(value)}" for name, value in self.changes().items())])

    @classmethod
    def from_url(cls, text: str) -> tuple[Self, list[str]]:
        """The legal run nearest to what a query value names, and one sentence for each value that had to give way."""
        placement, *rest = text.split(URL_SEPARATOR)
        values = {"placement": placement} | {LONG_NAMES.get(name, name): value for name, _, value in (part.partition("-") for part in rest)}
        accepted: dict[str, Any] = {}
        sentences = []
        for name, value in values.items():
            try:
                accepted[name] = legal(known(name), value)
            except ConfigError as error:
                accepted |= (substitute := nearest(name, value, cls(placement=accepted.get("placement", cls().placement))))
                sentences.append(" ".join([str(error), *(f"{plain_text(used)} is used." for used in substitute.values())]))
        width, heads = (accepted.get(name, getattr(cls(), name)) for name in ("width", "heads"))
        if width % heads:
            accepted["heads"] = max(divisor for divisor in range(1, heads) if width % divisor == 0)
            sentences.append(f"heads is {heads}; it must divide the width, which is {width}. {accepted['heads']} is used.")
        return cls(**accepted), sentences

    def command(self) -> str:
        """The command that reproduces the run."""
        words = ["python", "-m", "core", "train", "--placement", self.placement]
        for name, value in self.changes().items():
            flag = short(name).replace("_", "-")
            words += [f"--{flag}", plain_text(value)] if not isinstance(value, bool) else [f"--{flag}" if value else f"--no-{flag}"]
        return shlex.join(words)


def untraced(config: RunConfig) -> RunConfig:
    """The configuration with its traced fields, and its placement, set to a fixed value: a `Stack` stands for the placement."""
    plain = RunConfig()
    return replace(config, placement="pre", steps=plain.steps, learning_rate=plain.learning_rate, warmup=plain.warmup, seed=plain.seed)


def legal(name: str, value: Any) -> Any:
    """`value` in the type of the field `name`. Raises ConfigError where the field cannot have it."""
    if name == "placement" and isinstance(value, str) and is_design(value):
        try:
            return placement_of(value).name
        except DesignError as error:
            raise ConfigError(f"placement is {shown(value)}; {error}.") from error
    if name in CHOICES:
        if isinstance(value, str) and value in CHOICES[name]:
            return value
        own = ", or a design such as custom:attn=input,ffn=outer" if name == "placement" else ""
        raise ConfigError(f"{name} is {shown(value)}; it must be one of {', '.join(CHOICES[name])}{own}.")
    if name in SWITCHES:
        truth = TRUTHS.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(truth, bool):
            raise ConfigError(f"{name} is {shown(value)}; it must be true or false.")
        return truth
    return within(name, value, LIMITS[name], whole=name not in FRACTIONAL)


def within(name: str, value: Any, limits: tuple[float, float], whole: bool) -> float:
    """`value` as a number between the limits, both allowed. Raises ConfigError."""
    least, most = limits
    parsed = number(value)
    if parsed is None or not least <= parsed <= most or (whole and parsed % 1):
        kind = "a whole number" if whole else "a number"
        raise ConfigError(f"{name} is {shown(value)}; it must be {kind} from {plain_text(least)} to {plain_text(most)}.")
    return int(parsed) if whole else parsed


def nearest(name: str, value: Any, plain: RunConfig) -> dict[str, Any]:
    """The field with the legal value nearest to `value`, or that of `plain` where none is near; nothing where no field has the name."""
    parsed = number(value) if name in LIMITS else None
    if parsed is None:
        return {name: getattr(plain, name)} if name in {field.name for field in fields(RunConfig)} else {}
    least, most = LIMITS[name]
    clamped = min(max(parsed, least), most)
    return {name: clamped if name in FRACTIONAL else round(clamped)}


def known(name: str) -> str:
    names = [field.name for field in fields(RunConfig)]
    if name not in names:
        raise ConfigError(f"{shown(name)} is not a setting; the settings are {', '.join(names)}.")
    return name


def short(name: str) -> str:
    return SHORT_NAMES.get(name, name)


def host_most(name: str) -> float:
    """The most of a field that this machine's host allows: the limit, or NORMLAB_MAX_<FIELD> where that is lower."""
    least, most = LIMITS[name]
    allowed = host.number(f"MAX_{name.upper()}")
    return most if allowed is None else min(max(allowed, least), most)


def admit(config: RunConfig) -> None:
    """Raises ConfigError where the run is legal but larger than this machine's host allows."""
    for name in LIMITS:
        value, most = getattr(config, name), host_most(name)
        if value > most:
            raise ConfigError(
                f"{name} is {plain_text(value)}; this machine's host allows at most {plain_text(most)} (NORMLAB_MAX_{name.upper()})."
            )

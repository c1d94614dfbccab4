"""What is to be known of a setting: which values it may have, and how it is named, explained, and told in a label."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from core.placement.design import DesignError, is_design, placement_of
from core.placement.table import PLACEMENTS
from core.values import number, plain_text, shown

TRUTHS = {"true": True, "false": False}  # as addresses have them
IN_EVERY_KEY = object()


class ConfigError(ValueError):
    """A value that no run can have; its text is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number between two limits, both allowed."""

    least: float
    most: float
    whole: bool = True

    @property
    def allowed(self) -> str:
        return f"{plain_text(self.least)} to {plain_text(self.most)}"

    def legal(self, name: str, value: Any) -> float:
        """`value` as such a number. Raises ConfigError, which calls it `name`."""
        parsed = number(value)
        if parsed is None or not self.least <= parsed <= self.most or (self.whole and parsed % 1):
            kind = "a whole number" if self.whole else "a number"
            raise ConfigError(f"{name} is {shown(value)}; it must be {kind} from {self.allowed}.")
        return int(parsed) if self.whole else parsed

    def nearest(self, value: Any) -> float | None:
        """The legal value nearest to `value`; None where that is no number."""
        parsed = number(value)
        if parsed is None:
            return None
        clamped = min(max(parsed, self.least), self.most)
        return round(clamped) if self.whole else clamped


@dataclass(frozen=True, slots=True)
class Switch:
    allowed = "true or false"

    def legal(self, name: str, value: Any) -> bool:
        truth = TRUTHS.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(truth, bool):
            raise ConfigError(f"{name} is {shown(value)}; it must be {self.allowed}.")
        return truth


@dataclass(frozen=True, slots=True)
class Choice:
    titles: Mapping[str, str]  # by name

    @property
    def allowed(self) -> str:
        return ", ".join(self.titles)

    def legal(self, name: str, value: Any) -> str:
        if isinstance(value, str) and value in self.titles:
            return value
        raise ConfigError(f"{name} is {shown(value)}; it must be one of {self.allowed}.")


@dataclass(frozen=True, slots=True)
class PlacementName:
    """A name of the table of placements, or the text of a design."""

    @property
    def allowed(self) -> str:
        return f"{', '.join(PLACEMENTS)}, or a design such as custom:attn=input,ffn=outer"

    def legal(self, name: str, value: Any) -> str:
        if isinstance(value, str) and is_design(value):
            try:
                return placement_of(value).name
            except DesignError as error:
                raise ConfigError(f"{name} is {shown(value)}; {error}.") from error
        if isinstance(value, str) and value in PLACEMENTS:
            return value
        raise ConfigError(f"{name} is {shown(value)}; it must be one of {self.allowed}.")


Kind = Number | Switch | Choice | PlacementName
Group = Literal["placement", "training", "more"]  # of controls in the sidebar


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of RunConfig."""

    name: str
    default: Any
    kind: Kind
    title: str  # on pages
    says: str  # a sentence or two for somebody who chooses
    group: Group
    short: str  # in addresses and as a flag of the command line
    label: Callable[[Any], str] | None  # a value in a run's label; None: every label has it anyway
    unusual_only: bool  # the label has the value only where it is not what the placement's default run has; else where runs differ in it
    traced: bool  # an argument of the compiled program: changing it compiles nothing
    # What every run had before the setting came: a run that has it keeps its key. The first settings are in every key.
    before: Any


def setting(
    default: Any,
    kind: Kind,
    title: str,
    says: str,
    group: Group,
    *,
    short: str = "",
    label: Callable[[Any], str] | None = None,
    unusual_only: bool = False,
    traced: bool = False,
    before: Any = IN_EVERY_KEY,
) -> Any:
    """A dataclass field with its record, for RunConfig."""
    record = {
        "kind": kind,
        "title": title,
        "says": says,
        "group": group,
        "short": short,
        "label": label,
        "unusual_only": unusual_only,
        "traced": traced,
        "before": before,
    }
    return field(default=default, metadata=record)

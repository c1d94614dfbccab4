"""The runs that are looked at side by side. All of a page's state is here, as a value, and so is its address."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from core.placement.design import is_design, placement_of, with_part
from core.runs.config import RunConfig, conflicts, legal, limits
from core.runs.labels import labels
from core.runs.presets import ARTICLE
from core.runs.quantities import LAYERS
from core.runs.settings import ConfigError
from core.state.address import read_run, write_run

SLOTS = range(1, 9)  # each run has a slot of its own, and with it a colour and a dash, until it is removed
VIEWS = {"curves": "Curves", "layers": "Layers", "maps": "Heat maps", "downloads": "Downloads"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs by slot, at least one, and how they are looked at."""

    runs: dict[int, RunConfig] = field(default_factory=lambda: dict(enumerate(ARTICLE, 1)))
    hidden: frozenset[int] = frozenset()
    selected: int = 1  # the run that is edit_run
    view: str = "curves"
    step: int | None = None  # of the layer charts; None is the last one, also while there come more
    map: str = "stream_rms"  # the quantity of the heat maps

    @classmethod
    def of(cls, runs: Sequence[RunConfig], view: str = "curves") -> Self:
        return cls(dict(enumerate(runs, 1)), view=view)

    @property
    def labels(self) -> dict[int, str]:
        return dict(zip(self.runs, labels(list(self.runs.values())), strict=True))

    @property
    def full(self) -> bool:
        return len(self.runs) == len(SLOTS)

    @property
    def shown(self) -> dict[int, RunConfig]:
        return {slot: run for slot, run in self.runs.items() if slot not in self.hidden}

    def add(self, config: RunConfig | None = None) -> Self:
        """With one more run, which becomes the selected one: a copy of the selected run unless another is given."""
        if self.full:
            return self
        slot = min(set(SLOTS) - set(self.runs))
        runs = self.runs | {slot: config or self.runs[self.selected]}
        return replace(self, runs={slot: runs[slot] for slot in sorted(runs)}, selected=slot)

    def remove(self, slot: int) -> Self:
        if len(self.runs) == 1:
            return self
        runs = {other: run for other, run in self.runs.items() if other != slot}
        selected = self.selected if self.selected in runs else min(runs, key=lambda other: abs(other - slot))
        return replace(self, runs=runs, hidden=self.hidden - {slot}, selected=selected)

    def toggle(self, slot: int) -> Self:
        return replace(self, hidden=self.hidden ^ {slot}) if slot in self.runs else self

    def edit(self, name: str, value: Any, slot: int | None = None, everywhere: bool = False) -> Self:
        """With one field changed, of the selected run unless a slot is named, or of all runs. Raises ConfigError if one cannot have it.

        A placement of the table brings its own final norm; where another setting no longer fits, as the heads
        where they do not divide a new width, it takes the nearest value that does.
        """
        return replace(self, runs=self.runs | {slot: edit_run(run, name, value) for slot, run in self.meant(slot, everywhere).items()})

    def redesign(self, part: str, value: Any, slot: int | None = None, everywhere: bool = False) -> Self:
        """With one part of a design changed, of one run as `edit` has it, or of all runs that have a design."""
        meant = self.meant(slot, everywhere).items()
        return replace(
            self, runs=self.runs | {slot: edit_run(run, "placement", with_part(run.placement, part, value)) for slot, run in meant}
        )

    def meant(self, slot: int | None, everywhere: bool) -> dict[int, RunConfig]:
        """The runs that a change is made in: all, or that of a slot, if it is there, or the selected one."""
        slot = slot or self.selected
        return self.runs if everywhere else {slot: self.runs[slot]} if slot in self.runs else {}

    def to_query(self) -> dict[str, str]:
        """The address: one parameter per run, named by its slot; nothing at all for the comparison that a newcomer sees."""
        plain = Comparison()
        query = {f"run{slot}": write_run(run) for slot, run in self.runs.items()} if self.runs != plain.runs else {}
        if self.selected != min(self.runs):
            query["edit"] = str(self.selected)
        if self.hidden:
            query["hide"] = "-".join(str(slot) for slot in sorted(self.hidden))
        if self.step:
            query["step"] = str(self.step)
        return query | {name: getattr(self, name) for name in ("view", "map") if getattr(self, name) != getattr(plain, name)}

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple[Self, list[str]]:
        """The comparison that an address names, as near as is legal, and one sentence for each value that was replaced."""
        runs: dict[int, RunConfig] = {}
        sentences: list[str] = []

        def chosen(name: str, allowed: Collection[str], default: str) -> str:
            text = query.get(name, default)
            if text in allowed:
                return text
            sentences.append(f"{name} is {text[:20]!r} in the address; it must be one of {', '.join(allowed)}. {default} is used.")
            return default

        for slot in SLOTS:
            if text := query.get(f"run{slot}"):
                runs[slot], found = read_run(text)
                sentences += [f"Run {slot}: {sentence}" for sentence in found]
        beyond = [name for name in query if name.startswith("run") and name not in {f"run{slot}" for slot in SLOTS}]
        sentences += [f"{name[:20]!r} in the address is left out; runs go from run1 to run{SLOTS[-1]}." for name in beyond]
        runs = runs or cls().runs
        slots = [str(slot) for slot in runs]
        selected = int(chosen("edit", slots, slots[0]))
        wished = query["hide"].split("-") if "hide" in query else []
        if not set(wished) <= set(slots):
            sentences.append(f"hide is {query['hide'][:20]!r} in the address; it must be numbers of runs, as in 1-2. Others are left out.")
        hidden = frozenset(slot for slot in runs if str(slot) in wished)
        step = None
        if "step" in query:
            try:
                step = int(limits("steps").legal("step", query["step"]))
            except ConfigError as error:
                sentences.append(f"{error} The last one is used.")
        view, quantity = chosen("view", VIEWS, "curves"), chosen("map", LAYERS, "stream_rms")
        return cls(runs, hidden, selected, view, step, quantity), sentences


def edit_run(config: RunConfig, name: str, value: Any) -> RunConfig:
    changes = {name: legal(name, value)}
    if name == "placement" and changes[name] != config.placement and not is_design(changes[name]):
        changes["final_norm"] = placement_of(changes[name]).final_norm
    for other, _, fitting in conflicts(config.to_dict() | changes):
        if other != name:
            changes[other] = fitting
    return replace(config, **changes)

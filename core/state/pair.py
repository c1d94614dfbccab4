"""Two placements beside each other, at a depth, and how they are shown: the state of a page, and so its address."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args

from core.drawing.diagram.block import View
from core.placement.design import placement_of
from core.placement.record import Placement
from core.runs.config import SETTINGS, legal, limits
from core.runs.config import RunConfig as Run
from core.runs.settings import ConfigError, Number
from core.state.address import read_run, write_run
from core.values import plain_text, shown

SIDES = ("left", "right")
SLIDE = Number(0.0, 1.0, whole=False)
Shown = Literal["forward", "backward", "measured"]  # measured: backward, with the shares that a run's signal had


@dataclass(frozen=True, slots=True)
class Pair:
    left: str = "pre"  # a name of the table, or a design's text
    right: str = "post"
    layers: int = Run().layers  # L
    block: int | None = None  # the one that is drawn; None is the last
    final_norm: bool | None = None  # None is each placement's own
    view: Shown = "forward"
    slide: float | None = None  # how far the left drawing has become the right one; None is side by side
    left_run: Run | None = None  # the one whose measurements are shown; None is the first that is stored
    right_run: Run | None = None
    step: int = 1  # of these runs; where one has ended before, its last step is meant

    def __post_init__(self) -> None:
        if self.block is not None and self.block >= self.layers:
            object.__setattr__(self, "block", None)
        for side in SIDES:
            run: Run | None = getattr(self, f"{side}_run")
            if run and not self.fits(side, run):
                object.__setattr__(self, f"{side}_run", None)

    def placement(self, side: str) -> Placement:
        """A side's, with the final norm that was chosen."""
        found = placement_of(getattr(self, side))
        return found if self.final_norm is None else replace(found, final_norm=self.final_norm)

    def fits(self, side: str, run: Run) -> bool:
        """Whether what a run has measured is of what a side shows."""
        placement = self.placement(side)
        return (run.placement, run.layers, run.final_norm) == (placement.name, self.layers, placement.final_norm)

    def usual_run(self, side: str) -> Run:
        """The run of what a side shows that has all else as usual."""
        placement = self.placement(side)
        return Run(placement=placement.name, layers=self.layers, final_norm=placement.final_norm)

    @classmethod
    def of(cls, run: Run) -> Self:
        """A run's measurements, beside those of its counterpart among the two placements that a newcomer sees."""
        usual = placement_of(run.placement).final_norm
        final_norm = None if run.final_norm == usual else run.final_norm
        return cls(run.placement, "pre" if run.placement == "post" else "post", run.layers, None, final_norm, "measured", left_run=run)

    @property
    def drawn(self) -> int:
        """The number of the block that is drawn."""
        return self.block or self.layers

    @property
    def direction(self) -> View:
        return "forward" if self.view == "forward" else "backward"

    @property
    def placements(self) -> list[Placement]:
        return [self.placement(side) for side in SIDES]

    def to_query(self) -> dict[str, str]:
        """The query parameters; what is as usual is left out."""
        changed = {name: value for name in NAMES if (value := getattr(self, name)) != getattr(Pair(), name)}
        return {name: write_run(value) if isinstance(value, Run) else plain_text(value) for name, value in changed.items()}

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple[Self, list[str]]:
        """The nearest legal pair, and one sentence for each value that was replaced."""
        accepted: dict[str, Any] = {}
        sentences = []
        for name in NAMES:
            if name in query:
                try:
                    accepted[name] = read(name, query[name], cls(**accepted))
                except ConfigError as error:
                    accepted[name], used = substitute(name, query[name], cls(**accepted))
                    sentences.append(f"{error} {used} is used.")
        return cls(**accepted), sentences


NAMES = [field.name for field in fields(Pair)]


def read(name: str, text: str, so_far: Pair) -> Any:
    """The value of a parameter, after those before it. Raises ConfigError."""
    match name:
        case "left" | "right":
            return SETTINGS["placement"].kind.legal(name, text)
        case "view":
            if text not in get_args(Shown):
                raise ConfigError(f"view is {shown(text)}; it must be one of {', '.join(get_args(Shown))}.")
            return text
        case "left_run" | "right_run":
            run, faults = read_run(text)
            side = name.removesuffix("_run")
            if faults or not so_far.fits(side, run):
                raise ConfigError(
                    f"{name} is {shown(text)}; it must be a run of what is drawn, such as {write_run(so_far.usual_run(side))}."
                )
            return run
        case "block":
            return Number(1, so_far.layers).legal(name, text)
        case "step":
            return limits("steps").legal(name, text)
        case "slide":
            return SLIDE.legal(name, text)
        case _:
            return legal(name, text)


def substitute(name: str, text: str, so_far: Pair) -> tuple[Any, str]:
    """What is used in place of a value that cannot be, and its name."""
    if name == "final_norm":
        return None, "Each placement's own"
    if name in ("left_run", "right_run"):
        return None, "The first that is stored"
    numbers = {"layers": limits("layers"), "block": Number(1, so_far.layers), "slide": SLIDE, "step": limits("steps")}
    found = numbers[name].nearest(text) if name in numbers else None
    if found is None:
        found = {"block": so_far.layers, "slide": 0.0}.get(name, getattr(Pair(), name))
    return found, plain_text(found)

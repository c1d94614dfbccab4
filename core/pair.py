"""Two placements beside each other, at a depth, and how they are shown: the state of a page, and so its address."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self, get_args

from core.config import LIMITS, ConfigError, legal, within
from core.config import RunConfig as Run
from core.design import placement_of
from core.diagram import View
from core.placement import Placement
from core.values import number, plain_text, shown

SLIDE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Pair:
    left: str = "pre"  # a name of the table, or a design's text
    right: str = "post"
    layers: int = Run().layers  # L
    block: int | None = None  # the one that is drawn; None is the last
    final_norm: bool | None = None  # None is each placement's own
    view: View = "forward"
    slide: float | None = None  # how far the left drawing has become the right one; None is side by side

    def __post_init__(self) -> None:
        if self.block is not None and self.block >= self.layers:
            object.__setattr__(self, "block", None)

    @property
    def drawn(self) -> int:
        """The number of the block that is drawn."""
        return self.block or self.layers

    @property
    def placements(self) -> list[Placement]:
        """Both, with the final norm that was chosen."""
        found = [placement_of(name) for name in (self.left, self.right)]
        return found if self.final_norm is None else [replace(one, final_norm=self.final_norm) for one in found]

    def to_query(self) -> dict[str, str]:
        """The query parameters; what is as usual is left out."""
        usual = asdict(Pair())
        return {name: plain_text(value) for name, value in asdict(self).items() if value != usual[name]}

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple[Self, list[str]]:
        """The nearest legal pair, and one sentence for each value that had to give way."""
        accepted: dict[str, Any] = {}
        sentences = []
        for name in asdict(cls()):
            if name in query:
                layers = accepted.get("layers", cls().layers)
                try:
                    accepted[name] = read(name, query[name], layers)
                except ConfigError as error:
                    accepted[name], used = substitute(name, query[name], layers)
                    sentences.append(f"{error} {used} is used.")
        return cls(**accepted), sentences


def read(name: str, text: str, layers: int) -> Any:
    """The value of a parameter, in a stack of so many blocks. Raises ConfigError."""
    match name:
        case "left" | "right":
            try:
                return legal("placement", text)
            except ConfigError as error:
                raise ConfigError(str(error).replace("placement", name, 1)) from error
        case "view":
            if text not in get_args(View):
                raise ConfigError(f"view is {shown(text)}; it must be one of {', '.join(get_args(View))}.")
            return text
        case "block":
            return within(name, text, (1, layers), whole=True)
        case "slide":
            return within(name, text, SLIDE, whole=False)
        case _:
            return legal(name, text)


def substitute(name: str, text: str, layers: int) -> tuple[Any, str]:
    """What is used in place of a value that cannot be, and its name."""
    if name == "final_norm":
        return None, "Each placement's own"
    limits = {"layers": LIMITS["layers"], "block": (1, layers), "slide": SLIDE}
    usual = {**asdict(Pair()), "block": layers, "slide": 0.0}[name]
    parsed = number(text) if name in limits else None
    if parsed is not None:
        least, most = limits[name]
        clamped = min(max(parsed, least), most)
        usual = clamped if name == "slide" else round(clamped)
    return usual, plain_text(usual)

"""Two placements beside each other, at a depth: the state of a page, and so its address."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from core.config import ConfigError, legal, nearest
from core.config import RunConfig as Run
from core.values import plain_text


@dataclass(frozen=True, slots=True)
class Pair:
    left: str = "pre"  # a name of the table, or a design's text
    right: str = "post"
    layers: int = Run().layers

    def to_query(self) -> dict[str, str]:
        """The query parameters; what is as usual is left out."""
        usual = asdict(Pair())
        return {name: str(value) for name, value in asdict(self).items() if value != usual[name]}

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple[Self, list[str]]:
        """The nearest legal pair, and one sentence for each value that had to give way."""
        accepted: dict[str, Any] = {}
        sentences = []
        for name, usual in asdict(cls()).items():
            field = "layers" if name == "layers" else "placement"
            try:
                accepted[name] = legal(field, query.get(name, usual))
            except ConfigError as error:
                accepted[name] = nearest("layers", query[name], Run())["layers"] if name == "layers" else usual
                sentences.append(f"{str(error).replace(field, name, 1)} {plain_text(accepted[name])} is used.")
        return cls(**accepted), sentences

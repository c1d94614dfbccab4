"""Placements of the user's own, written out as text:

custom:attn=input+output,ffn=outer,alpha=1.5,gate=0.1,learned=vector,gain=0.5

Both sublayers' sites are always written; any other part only where it differs from its default. So one design has one text.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

from core.placement.record import BRANCH, BlockSpec, Placement, Site, Sites, Structure, gains
from core.placement.table import PLACEMENTS
from core.values import number, plain_text, shown

DESIGN = "custom:"
MOST = 1000.0  # of a design's numbers
LEARNED: tuple[Literal["scalar", "vector"], ...] = ("scalar", "vector")


class DesignError(ValueError):
    """A text that describes no placement. The message says what is wrong with which part; whoever shows it writes the text before it."""


@dataclass(frozen=True, slots=True)
class Design:
    """The same block at every depth."""

    attn: Sites = frozenset()
    ffn: Sites = frozenset()
    alpha: float = 1.0  # what multiplies the stream
    gate: float = 1.0  # what multiplies the branch, at first where it is learned
    learned: Literal["scalar", "vector"] | None = None
    gain: float = 1.0  # what multiplies the initial values of the matrices that the branch is linear in

    @classmethod
    def parse(cls, text: str) -> Self:
        """The design that a text describes, with or without the prefix. Raises DesignError."""
        values: dict[str, Any] = {}
        for part in text.removeprefix(DESIGN).split(","):
            name, _, value = part.strip().partition("=")
            if name not in READERS or name in values:
                raise DesignError(f"its parts can be {', '.join(READERS)}, each once at most, as in {Design(frozenset({'input'})).text}")
            values[name] = READERS[name](name, value.strip())
        return cls(**values)

    @classmethod
    def like(cls, block: BlockSpec) -> Self:
        """The nearest design to a block: its gain is that of the block's mlp_out."""
        structure = block.structure
        gain = dict(block.init_gain).get("mlp_out", 1.0)
        return cls(structure.attention, structure.feed_forward, block.alpha, block.gate, structure.learned_gate, gain)

    @property
    def text(self) -> str:
        parts = [f"{name}={'+'.join(sort_sites(getattr(self, name))) or 'none'}" for name in ("attn", "ffn")]
        parts += [f"{name}={plain_text(value)}" for name in ("alpha", "gate", "gain") if (value := getattr(self, name)) != 1]
        if self.learned:
            parts.append(f"learned={self.learned}")
        return DESIGN + ",".join(parts)

    def placement(self) -> Placement:
        init_gain = gains(BRANCH, self.gain) if self.gain != 1 else ()
        spec = BlockSpec(Structure(self.attn, self.ffn, self.learned), self.alpha, self.gate, init_gain=init_gain)
        return Placement(
            name=self.text,
            title="Own design",
            block=lambda layer, layers: spec,
            final_norm="outer" not in self.ffn,
            summary="A placement of your own.",
            source="",
            arxiv="",
            used_by="",
            trap="",
        )


def placement_of(name: str) -> Placement:
    """The placement of the table with this name, or the one that the text of a design describes. Raises DesignError, or KeyError."""
    return Design.parse(name).placement() if is_design(name) else PLACEMENTS[name]


def with_part(name: str, field: str, value: Any) -> str:
    """The text of a design with one field changed. A name of the table is returned as it is."""
    return replace(Design.parse(name), **{field: value}).text if is_design(name) else name


def is_design(name: str) -> bool:
    return name.startswith(DESIGN)


def sort_sites(sites: Sites) -> list[Site]:
    """In the order in which a sublayer's signal passes them."""
    return [site for site in get_args(Site) if site in sites]


def read_sites(name: str, text: str) -> Sites:
    if text == "none":
        return frozenset()
    words = re.split(r"[+\s]+", text)  # an address that was typed has spaces for its plus signs
    sites: list[Site] = [site for site in get_args(Site) if site in words]
    if len(sites) != len(words):
        raise DesignError(f"its {name} is {shown(text)} and must be none, or some of {', '.join(get_args(Site))} joined by +")
    return frozenset(sites)


def read_number(name: str, text: str) -> float:
    value = number(text)
    if value is None or not 0 <= value <= MOST:
        raise DesignError(f"its {name} is {shown(text)} and must be a number from 0 to {plain_text(MOST)}")
    return value


def read_learned(name: str, text: str) -> str:
    if text not in LEARNED:
        raise DesignError(f"its {name} is {shown(text)} and must be one of {', '.join(LEARNED)}")
    return text


READERS = {"attn": read_sites, "ffn": read_sites, "alpha": read_number, "gate": read_number, "gain": read_number, "learned": read_learned}

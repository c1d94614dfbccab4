"""Norm placements as data: which sites of a residual sublayer carry a norm, and a few scales.

Every placement in the literature is a choice of sites and scales in one equation,

    x' = N_outer(alpha x + gate N_output(F(s N_input(x)))),    with N_inner inside F, before its output projection,

applied to the attention and to the feed-forward sublayer of each block. The forward pass, the initialization and everything that is
shown of a placement read the record below; a new placement is one entry of PLACEMENTS.

Glossary: L blocks; l = 1..L the index of a block.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Site = Literal["input", "inner", "output", "outer"]
Sites = frozenset[Site]


@dataclass(frozen=True, slots=True)
class Structure:
    """What of a block must be known to compile it."""

    attention: Sites = frozenset()
    feed_forward: Sites = frozenset()
    learned_gate: Literal["scalar", "vector"] | None = None  # ReZero learns a scalar, LayerScale a vector


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """One block: its structure, and the numbers that its compiled program takes as arguments."""

    structure: Structure
    alpha: float = 1.0  # what multiplies the stream before the addition
    gate: float = 1.0  # what multiplies the branch; its initial value where the gate is learned
    input_scale: float = 1.0  # s, what multiplies the branch's input
    init_gain: tuple[tuple[str, float], ...] = ()  # (matrix, gain): query, key, value, attention_output, mlp_in, mlp_out

    @property
    def identity_path(self) -> bool:
        """Whether the stream crosses this block without passing a norm or a scale."""
        structure = self.structure
        return "outer" not in structure.attention | structure.feed_forward and self.alpha == 1.0


@dataclass(frozen=True, slots=True)
class Placement:
    name: str  # the stable identifier, in URLs, files and commands
    title: str
    block: Callable[[int, int], BlockSpec]  # (l, L) to the l-th of L blocks
    final_norm: bool  # whether a norm follows the last block by default
    summary: str  # one sentence for somebody who chooses
    source: str  # authors, year, title
    arxiv: str
    used_by: str

    def segments(self, layers: int) -> list[tuple[Structure, list[BlockSpec]]]:
        """The blocks, bottom first, in runs of equal structure: each run is one scan."""
        blocks = [self.block(layer, layers) for layer in range(1, layers + 1)]
        return [(structure, list(run)) for structure, run in groupby(blocks, key=lambda block: block.structure)]

    def identity_path(self, layers: int) -> bool:
        """Whether the embedding reaches the end of the stack without passing a norm or a scale."""
        return all(block.identity_path for _, run in self.segments(layers) for block in run)


def same_sites(*sites: Site) -> Callable[[int, int], BlockSpec]:
    """Every block and both of its sublayers with norms at the same sites, without scales."""
    spec = BlockSpec(Structure(frozenset(sites), frozenset(sites)))
    return lambda layer, layers: spec


PLACEMENTS: dict[str, Placement] = {
    placement.name: placement
    for placement in [
        Placement(
            name="pre",
            title="Pre-Norm",
            block=same_sites("input"),
            final_norm=True,
            summary="The norm sits inside the branch, on what it reads. From block to block the stream is never normalized.",
            source="Xiong et al. 2020, On Layer Normalization in the Transformer Architecture",
            arxiv="2002.04745",
            used_by="GPT-2 and GPT-3, LLaMA 1 to 3, Mistral, Qwen",
        ),
        Placement(
            name="post",
            title="Post-Norm",
            block=same_sites("outer"),
            final_norm=False,
            summary="The norm sits on the stream, after the addition. Every path through the block passes it.",
            source="Vaswani et al. 2017, Attention Is All You Need",
            arxiv="1706.03762",
            used_by="the original Transformer, GPT-1, BERT",
        ),
        Placement(
            name="none",
            title="No norm",
            block=same_sites(),
            final_norm=False,
            summary="Plain residual sublayers without any norm: what remains when the norms are taken out.",
            source="Zhang, Dauphin and Ma 2019, Fixup Initialization: Residual Learning Without Normalization",
            arxiv="1901.09321",
            used_by="Fixup and ReZero start from it and add an initialization or a gate",
        ),
    ]
}

"""Norm placements as data: which sites of a residual sublayer carry a norm, and a few scales.

Every placement in the literature is a choice of sites and scales in one equation,

    x' = N_outer(alpha x + gate N_output(F(s N_input(x)))),    with N_inner inside F, before its output projection,

applied to the attention and to the feed-forward sublayer of each block. A few placements add to it: norms and gains of the single heads,
a second way for the block's input, a norm on the embedding, a second stream. The forward pass, the initialization and everything that
is shown of a placement read the record below; a new placement is one entry of PLACEMENTS.

Glossary: L blocks; l = 1..L the index of a block; a segment is blocks of equal structure that follow each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Site = Literal["input", "inner", "output", "outer"]
Sites = frozenset[Site]
Matrix = Literal["query", "key", "value"]


@dataclass(frozen=True, slots=True)
class Structure:
    """What of a block must be known to compile it."""

    attention: Sites = frozenset()
    feed_forward: Sites = frozenset()
    learned_gate: Literal["scalar", "vector"] | None = None  # one scalar for the whole block, or a vector for each sublayer
    head_norms: frozenset[Matrix] = frozenset()  # what of each attention head is normalized, over the head's width
    head_gain: bool = False  # a learned factor for each attention head, one at first, before N_inner
    block_skip: bool = False  # the block's input is added to the feed-forward sublayer's sum, too
    profiled: bool = False  # a learned vector for each sublayer, first measured on data, multiplies the stream


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
        return "outer" not in structure.attention | structure.feed_forward and self.alpha == 1.0 and not structure.profiled


@dataclass(frozen=True, slots=True)
class Stack:
    """What of all blocks, and around them, must be known to compile them."""

    segments: tuple[tuple[Structure, int], ...]  # (structure, number of blocks), bottom first
    embedding_norm: bool = False
    dual_stream: bool = False


Blocks = Callable[[int, int], BlockSpec]  # (l, L) to the l-th of L blocks


@dataclass(frozen=True, slots=True)
class Placement:
    name: str  # the stable identifier, in URLs, files and commands
    title: str
    block: Blocks
    final_norm: bool  # whether a norm follows the last block by default
    summary: str  # one sentence for somebody who chooses
    source: str  # authors, year, title
    arxiv: str
    used_by: str
    trap: str  # what is easily got wrong about it
    embedding_norm: bool = False  # x_0 is the normalized embedding
    dual_stream: bool = False  # a second stream only adds up what the branches write; the head reads x_L + N(it), N the final norm
    revision: int = 0  # raised when this placement's mathematics changes; it enters the key of its own runs alone

    def stack(self, layers: int) -> Stack:
        segments = tuple((structure, len(segment)) for structure, segment in self.segments(layers))
        return Stack(segments, self.embedding_norm, self.dual_stream)

    def segments(self, layers: int) -> list[tuple[Structure, list[BlockSpec]]]:
        """The segments, bottom first, each with its blocks: the engine scans over one segment after the other."""
        blocks = [self.block(layer, layers) for layer in range(1, layers + 1)]
        return [(structure, list(segment)) for structure, segment in groupby(blocks, key=lambda block: block.structure)]

    def identity_path(self, layers: int) -> bool:
        """Whether x_0 reaches the end of the stack, on one of its streams, without passing a norm or a scale."""
        return self.dual_stream or all(block.identity_path for _, segment in self.segments(layers) for block in segment)


BRANCH = ("value", "attention_output", "mlp_in", "mlp_out")  # the matrices that a branch's output is linear in
OUTPUTS = ("attention_output", "mlp_out")
EVERY = ("query", "key", *BRANCH)


def gains(matrices: tuple[str, ...], gain: float) -> tuple[tuple[str, float], ...]:
    """The same gain for each matrix, as BlockSpec.init_gain has it."""
    return tuple((matrix, gain) for matrix in matrices)


def same_sites(*sites: Site) -> Structure:
    """Both sublayers with norms at the same sites."""
    return Structure(frozenset(sites), frozenset(sites))


def uniform(structure: Structure) -> Blocks:
    """Every block has this structure, and no scales."""
    return lambda layer, layers: BlockSpec(structure)

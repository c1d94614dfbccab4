"""Drawings of a placement, from its record alone: one block, the stack of blocks, and the same in words.

A drawn part of a block is a group with `data-part="{sublayer}.{part}"`, sublayer attention or feed_forward. The parts: stream, input,
scale (s), branch, inner, output, gate, add, outer, alpha; query, key, value (head norms) and head_gain; block_skip; dual (the second
stream). In it the signal's lines have the class `line`, so that a page can set their widths. Colours are CSS variables, see `shapes`.
"""

from core.diagram.block import SLOTS, View, block_svg
from core.diagram.shapes import PALETTE, WIDEST, Theme, png, resolved
from core.diagram.stack import stack_svg
from core.diagram.words import alike, describe, upper, which

__all__ = [
    "PALETTE",
    "SLOTS",
    "WIDEST",
    "Theme",
    "View",
    "alike",
    "block_svg",
    "describe",
    "png",
    "resolved",
    "stack_svg",
    "upper",
    "which",
]

"""Drawings of a placement, from its record alone: one block, and the stack of blocks.

A drawn part of a block is a group with `data-part="{sublayer}.{part}"`, sublayer attention or feed_forward. The parts: stream, input,
scale (s), branch, inner, output, gate, add, outer, alpha; query, key, value (head norms) and head_gain; block_skip; dual (the second
stream). In it the signal's lines have the class `line`, so that a page can set their widths. Colours are CSS variables, see `shapes`.
"""

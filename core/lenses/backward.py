r"""Where the backward signal comes from: at each sublayer's input, the shares of the ways by which the loss's gradient arrives there.

Where a branch leaves the stream v, the gradients of its ways add up,

    d loss / d v = alpha u + J_branch^T u,    u the gradient at the addition,

one term by the stream, one by the branch, its gate and its norms. A way's share is the square of its term's L2 norm, over all numbers of
the batch, divided by the sum of the terms' squares. The block's input has a third way where the placement adds it once more, block_skip.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from core.placement.record import BlockSpec
from core.runs.history import History

# The ways by which the gradient arrives at h, the stream between the sublayers, and at x, the block's input.
ARRIVALS = (("feed_forward.stream", "feed_forward.branch"), ("attention.stream", "attention.branch", "feed_forward.block_skip"))


class Ways(NamedTuple):
    """By way, named as the diagram's parts are: an array with an entry for each step.

    A share is nan where a norm at its input is not finite, and where no gradient arrived.
    """

    norm_s: dict[str, np.ndarray]  # L2 norm of the way's term
    share_s: dict[str, np.ndarray]  # 0 to 1; the shares at one input add up to 1


def ways(history: History, spec: BlockSpec, layer: int) -> Ways:
    """Those of block `layer`, 1..L, whose record is `spec`."""

    def norm_s(name: str) -> np.ndarray:
        return history[f"{name}_signal"][:, layer - 1].astype(float)

    at_x, at_h = (
        {f"{sublayer}.{way}": norm_s(f"{sublayer}_{way}") for way in ("stream", "branch")} for sublayer in ("attention", "feed_forward")
    )
    if spec.structure.block_skip:
        # The stream's term is alpha u, that of the skip is u; where alpha is a learned vector, one norm does not give the other.
        alpha = math.nan if spec.structure.profiled else spec.alpha
        at_x["feed_forward.block_skip"] = at_h["feed_forward.stream"] / alpha
    share_s: dict[str, np.ndarray] = {}
    for arriving in (at_x, at_h):
        power_s = np.sum([way_s**2 for way_s in arriving.values()], axis=0)
        power_s = np.where(np.isfinite(power_s), power_s, np.nan)
        with np.errstate(invalid="ignore"):
            share_s |= {way: way_s**2 / power_s for way, way_s in arriving.items()}
    return Ways(at_x | at_h, share_s)


def bands(share: Mapping[str, float]) -> dict[str, tuple[float, str]]:
    """The shares of one step with their words, as core.drawing.diagram.block.block_svg takes them."""
    return {way: (share[way], words) for way, words in percents(share).items()}


def percents(share: Mapping[str, float]) -> dict[str, str]:
    """The shares of one step in words: whole percents that add up to 100 at h and at x; a dash for a share that is not known."""
    words: dict[str, str] = {}
    for arriving in ARRIVALS:
        known = {way: 100 * share[way] for way in arriving if way in share and math.isfinite(share[way])}
        floors = {way: math.floor(value) for way, value in known.items()}
        missing = round(sum(known.values())) - sum(floors.values())
        for way in sorted(known, key=lambda way: floors[way] - known[way])[:missing]:  # rounding down took most from these
            floors[way] += 1
        words |= {way: f"{floors[way]} %" if way in floors else "–" for way in arriving if way in share}
    return words

r"""Where the backward signal comes from: at each sublayer's input, the shares of the ways by which the loss's gradient arrives there.

Where a branch leaves the stream v, the gradients of its ways add up,

    d loss / d v = alpha u + J_branch^T u,    u the gradient at the addition,

one term by the stream, one by the branch, its gate and its norms. A way's share is the square of its term's L2 norm, over all numbers of
the batch, divided by the sum of the terms' squares. The block's input has a third way where the placement adds it once more, block_skip.
"""

from typing import NamedTuple

import numpy as np

from core.history import History
from core.placement import BlockSpec


class Ways(NamedTuple):
    """By way, with the names of the diagram's parts; a step in which no number is to be had has nan, as has one without any gradient."""

    norm_s: dict[str, np.ndarray]
    share_s: dict[str, np.ndarray]


def ways(history: History, spec: BlockSpec, layer: int) -> Ways:
    """Of block `layer`, 1..L, at each step."""

    def norm_s(name: str) -> np.ndarray:
        measured_s = getattr(history, f"{name}_signal_sl")[:, layer - 1].astype(float)
        return np.where(np.isfinite(measured_s), measured_s, np.nan)

    inputs = [
        {f"{sublayer}.{way}": norm_s(f"{sublayer}_{way}") for way in ("stream", "branch")} for sublayer in ("attention", "feed_forward")
    ]
    if spec.structure.block_skip:
        inputs[0]["feed_forward.block_skip"] = inputs[1]["feed_forward.stream"] / spec.alpha
    share_s: dict[str, np.ndarray] = {}
    for arriving in inputs:
        power_s = np.sum([way_s**2 for way_s in arriving.values()], axis=0)
        with np.errstate(invalid="ignore"):
            share_s |= {way: way_s**2 / power_s for way, way_s in arriving.items()}
    return Ways(inputs[0] | inputs[1], share_s)

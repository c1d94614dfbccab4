"""What a run records: per step the loss, gradient norm and learning rate, per step and layer how stream and gradients stand."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import pyarrow as pa

SIGNALS = [f"{sublayer}_{way}_signal" for sublayer in ("attention", "feed_forward") for way in ("stream", "branch")]
BLOCK_COLUMNS = ["block_gradient_norm", "update_ratio", *SIGNALS]


@dataclass(frozen=True, slots=True)
class History:
    """The S steps of a run so far, row t - 1 for step t. A diverged run's last row is its first one that is not finite."""

    loss_s: np.ndarray  # nats per token, before the step's update
    gradient_norm_s: np.ndarray  # global L2 norm of the parameter gradient
    learning_rate_s: np.ndarray
    stream_rms_sl: np.ndarray  # (S, L + 1): layer 0 is the embedding, layer L the last block's output
    block_gradient_norm_sl: np.ndarray  # (S, L)
    update_ratio_sl: np.ndarray  # (S, L)
    # (S, L): L2 norm of the loss's gradient by a sublayer's input, over the whole batch, as far as it arrives along the stream, or through
    # the branch
    attention_stream_signal_sl: np.ndarray
    attention_branch_signal_sl: np.ndarray
    feed_forward_stream_signal_sl: np.ndarray
    feed_forward_branch_signal_sl: np.ndarray

    @classmethod
    def empty(cls, layers: int) -> Self:
        none_s, none_sl = np.zeros(0, np.float32), np.zeros((0, layers), np.float32)
        return cls(none_s, none_s, np.zeros(0), np.zeros((0, layers + 1), np.float32), *[none_sl] * len(BLOCK_COLUMNS))

    def __len__(self) -> int:
        return len(self.loss_s)

    def __add__(self, later: "History") -> "History":
        return History(*(np.concatenate([getattr(self, field.name), getattr(later, field.name)]) for field in fields(self)))

    @property
    def layers(self) -> int:
        return self.update_ratio_sl.shape[1]

    @property
    def diverged_at(self) -> int | None:
        """The first step whose loss or gradient norm is not finite."""
        broken = ~(np.isfinite(self.loss_s) & np.isfinite(self.gradient_norm_s))
        return int(np.argmax(broken)) + 1 if broken.any() else None

    def to_table(self) -> pa.Table:
        """One row a step, the layer quantities as list columns."""
        columns = {"step": np.arange(1, len(self) + 1, dtype=np.int32)}
        for field in fields(self):
            column = getattr(self, field.name)
            columns[field.name.rsplit("_", 1)[0]] = (
                column if column.ndim == 1 else pa.FixedSizeListArray.from_arrays(column.ravel(), column.shape[1])
            )
        return pa.table(columns)

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Raises ValueError or KeyError where the table is not one that `to_table` made."""
        arrays = []
        for field in fields(cls):
            column = table[field.name.rsplit("_", 1)[0]].combine_chunks()
            if field.name.endswith("_sl"):
                arrays.append(column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), column.type.list_size))
            else:
                arrays.append(column.to_numpy(zero_copy_only=False))
        return cls(*arrays)

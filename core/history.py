"""What a run records: per step the loss, gradient norm and learning rate, per step and layer how stream and gradients stand."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import pyarrow as pa

from core.config import VOCABULARY, RunConfig

LN_V = math.log(VOCABULARY)  # nats: the loss of a model that has learned nothing
PUBLISHED_COLUMNS = ["run", "step", "loss", "gradient_norm", "learning_rate"]
SIGNALS = [f"{sublayer}_{way}_signal" for sublayer in ("attention", "feed_forward") for way in ("stream", "branch")]
BLOCK_COLUMNS = ["block_gradient_norm", "update_ratio", *SIGNALS]
LAYER_COLUMNS = ["run", "step", "layer", "stream_rms", *BLOCK_COLUMNS]


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


Outcome = Literal["learned", "still learning", "stuck", "diverged"]
LEARNED, STUCK = 0.1, 0.6  # of ln V: a run at most the one has learned, a run at least the other is near guessing


def outcome(history: History) -> Outcome:
    """How a run ended, judged by its mean loss over the last tenth of its steps.

    Near ln V a run is stuck, unless its loss has fallen from each fifth of the steps to the next, and by more than half its scatter there:
    then it only needs more of them.
    """
    if history.diverged_at:
        return "diverged"
    end = history.loss_s[-max(len(history) // 10, 1) :].mean()
    if end <= LEARNED * LN_V:
        return "learned"
    fifths = [fifth for fifth in np.array_split(history.loss_s, 5) if len(fifth)]
    falling = len(fifths) > 1 and all(earlier.mean() - later.mean() > later.std() / 2 for earlier, later in pairwise(fifths))
    return "stuck" if end >= STUCK * LN_V and not falling else "still learning"


def peak(history: History) -> tuple[int | None, float]:
    """The step with the largest gradient norm that is finite, and that norm; (None, nan) where none is."""
    finite_s = np.where(np.isfinite(history.gradient_norm_s), history.gradient_norm_s, -np.inf)
    row = int(finite_s.argmax())
    return (row + 1, float(finite_s[row])) if np.isfinite(finite_s[row]) else (None, math.nan)


def verdict(history: History) -> str:
    """One sentence or two on what happened in a run that has ended; `outcome` is the word before them."""
    step, norm = peak(history)
    gradient = f"Largest gradient norm {norm:.4g} at step {step}." if step else "No step had a finite gradient."
    if history.diverged_at:
        return f"At step {history.diverged_at} loss or gradient norm was no longer a finite number. {gradient}"
    against = "worse than guessing, which gives" if history.loss_s[-1] > 1.1 * LN_V else "where guessing gives"
    return f"Final loss {history.loss_s[-1]:.4g}, {against} ln {VOCABULARY} = {LN_V:.3f}. {gradient}"


def step_frame(histories: Mapping[str, History]) -> pd.DataFrame:
    """PUBLISHED_COLUMNS, one row per run and step."""
    frames = [
        pd.DataFrame(
            {
                "run": label,
                "step": np.arange(1, len(history) + 1),
                "loss": history.loss_s.astype(np.float64),
                "gradient_norm": history.gradient_norm_s.astype(np.float64),
                "learning_rate": history.learning_rate_s,
            }
        )
        for label, history in histories.items()
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=PUBLISHED_COLUMNS)


def layer_frame(histories: Mapping[str, History]) -> pd.DataFrame:
    """LAYER_COLUMNS, one row per run, step and layer; layer 0, the embedding, has no block quantities."""
    frames = []
    for label, history in histories.items():
        steps, layers = history.stream_rms_sl.shape
        embedding = np.full((steps, 1), np.nan)
        blocks = (np.hstack([embedding, getattr(history, f"{name}_sl").astype(np.float64)]).ravel() for name in BLOCK_COLUMNS)
        values = (
            label,
            np.repeat(np.arange(1, steps + 1), layers),
            np.tile(np.arange(layers), steps),
            history.stream_rms_sl.ravel().astype(np.float64),
            *blocks,
        )
        frames.append(pd.DataFrame(dict(zip(LAYER_COLUMNS, values, strict=True))))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=LAYER_COLUMNS)


def write_csv(frame: pd.DataFrame, target: Any = None) -> str:
    """Writes a frame to a path or file, or returns its text: full precision, `nan` and `inf` where a value is no finite number."""
    return frame.to_csv(target, index=False, na_rep="nan") or ""


def learning_rate_s(config: RunConfig) -> np.ndarray:
    """The rate of each step: it climbs linearly to its peak over the warmup steps and stays there."""
    step_s = np.arange(1, config.steps + 1)
    return config.learning_rate * np.minimum(1.0, step_s / max(config.warmup_steps, 1))

"""What runs recorded, as tables and as CSV."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from core.runs.history import BLOCK_COLUMNS, History

PUBLISHED_COLUMNS = ["run", "step", "loss", "gradient_norm", "learning_rate"]
LAYER_COLUMNS = ["run", "step", "layer", "stream_rms", *BLOCK_COLUMNS]


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

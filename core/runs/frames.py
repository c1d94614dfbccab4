"""What runs recorded, as tables and as CSV: one for the quantities of a step, one for those of layers and blocks."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pandas.arrays import FloatingArray

from core.runs.history import History
from core.runs.quantities import QUANTITIES

OF_STEPS = [name for name, quantity in QUANTITIES.items() if quantity.per == "step"]
OF_LAYERS = [name for name, quantity in QUANTITIES.items() if quantity.per != "step"]
STEP_COLUMNS = ["run", "step", *OF_STEPS]  # first those that the article published
LAYER_COLUMNS = ["run", "step", "layer", *OF_LAYERS]


def step_frame(histories: Mapping[str, History]) -> pd.DataFrame:
    """STEP_COLUMNS, one row per run and step."""
    frames = []
    for label, history in histories.items():
        known = {"run": label, "step": np.arange(1, len(history) + 1)}
        frames.append(pd.DataFrame(known | {name: values(history, name) for name in OF_STEPS}))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=STEP_COLUMNS)


def layer_frame(histories: Mapping[str, History]) -> pd.DataFrame:
    """LAYER_COLUMNS, one row per run, step and layer; layer 0, the embedding, has no quantities of blocks."""
    frames = []
    for label, history in histories.items():
        steps, layers = len(history), history.layers + 1
        known = {"run": label, "step": np.repeat(np.arange(1, steps + 1), layers), "layer": np.tile(np.arange(layers), steps)}
        frames.append(pd.DataFrame(known | {name: values(history, name) for name in OF_LAYERS}))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=LAYER_COLUMNS)


def values(history: History, name: str) -> FloatingArray:
    """In float64, one after the other; missing where it was not recorded, and at layer 0 of a quantity of blocks."""
    quantity = QUANTITIES[name]
    shape = (len(history), *quantity.shape(history.layers))
    column = history[name].astype(np.float64) if name in history else np.zeros(shape)
    missing = np.full(shape, name not in history)
    if quantity.per == "block":
        column, missing = (np.pad(array, [(0, 0), (1, 0)], constant_values=True) for array in (column, missing))
    return FloatingArray(column.ravel(), missing.ravel())


def write_csv(frame: pd.DataFrame, target: Any = None) -> str:
    """Writes a frame to a path or file, or returns its text: full precision, `inf`, `NaN`, and nothing where a value is missing.

    These are the words that pandas, polars, DuckDB and R all take for numbers.
    """
    return frame.to_csv(target, index=False, float_format=number) or ""


def number(value: Any) -> str:
    return "NaN" if math.isnan(value) else repr(float(value))

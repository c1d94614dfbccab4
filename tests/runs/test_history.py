import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from made_run import assert_equal, made_history

from core.runs.config import RunConfig
from core.runs.frames import LAYER_COLUMNS, STEP_COLUMNS, layer_frame, step_frame
from core.runs.history import History
from core.runs.quantities import QUANTITIES
from core.runs.schedule import learning_rate_s

STEPS, LAYERS = 6, 3


def made(steps: int = STEPS, layers: int = LAYERS, seed: int = 7) -> History:
    """A history of any numbers, in the shapes and types that training gives."""
    return made_history(partial(np.random.default_rng(seed).gamma, 1.0, 1.0), steps, layers)


def test_a_table_gives_back_the_history_with_infinities_and_all() -> None:
    history = made()
    history["loss"][-1], history["gradient_norm"][-1], history["stream_rms"][-1, 1:] = math.inf, math.nan, -math.inf
    assert_equal(History.from_table(history.to_table()), history)
    assert_equal(History.from_table(History.empty(LAYERS).to_table()), History.empty(LAYERS))


def test_a_table_has_a_row_for_each_step() -> None:
    table = made().to_table()
    assert table["step"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert [len(row) for row in table["stream_rms"].to_pylist()] == [LAYERS + 1] * STEPS


@pytest.mark.parametrize("column", ["loss", "stream_rms"])
def test_what_a_table_lacks_is_absent(column: str) -> None:
    history = History.from_table(made().to_table().drop_columns([column]))
    assert column not in history
    assert history.absent == [QUANTITIES[column]]
    with pytest.raises(KeyError):
        history[column]


def test_chunks_add_up() -> None:
    first, second = made(2), made(3)
    assert_equal(History.empty(LAYERS) + first, first)
    both = first + second
    assert (len(both), both.layers) == (5, LAYERS)
    np.testing.assert_array_equal(both["stream_rms"][2:], second["stream_rms"])


@pytest.mark.parametrize("column", ["loss", "gradient_norm"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_run_diverged_at_its_first_step_that_is_not_finite(column: str, value: float) -> None:
    history = made()
    assert history.diverged_at is None
    history[column][[2, 4]] = value
    assert history.diverged_at == 3
    assert History.empty(LAYERS).diverged_at is None


def test_a_step_frame_has_the_published_columns_and_every_step() -> None:
    histories = {"short": made(2), "long": made(4, seed=8)}
    frame = step_frame(histories)
    assert list(frame) == STEP_COLUMNS == ["run", "step", "loss", "gradient_norm", "learning_rate"]
    assert list(zip(frame["run"], frame["step"], strict=True)) == [("short", 1), ("short", 2), *(("long", step) for step in (1, 2, 3, 4))]
    np.testing.assert_array_equal(frame["loss"][2:], histories["long"]["loss"])
    np.testing.assert_array_equal(frame["gradient_norm"][2:], histories["long"]["gradient_norm"])
    assert list(step_frame({})) == STEP_COLUMNS


def test_a_layer_frame_has_a_row_for_each_step_and_layer() -> None:
    histories = {"short": made(2), "long": made(4, seed=8)}
    frame = layer_frame(histories)
    assert list(frame) == LAYER_COLUMNS
    blocks = [name for name, quantity in QUANTITIES.items() if quantity.per == "block"]
    assert len(frame) == (2 + 4) * (LAYERS + 1)
    for row in frame.itertuples():
        history, step = histories[row.run], row.step - 1
        assert row.stream_rms == history["stream_rms"][step, row.layer]
        if row.layer:
            for name in blocks:
                assert getattr(row, name) == history[name][step, row.layer - 1]
    embedding = frame[frame["layer"] == 0]
    assert embedding[blocks].isna().all(axis=None)
    assert frame[frame["layer"] > 0].notna().all(axis=None)
    assert list(layer_frame({})) == LAYER_COLUMNS


def test_frames_keep_what_is_not_finite() -> None:
    history = made()
    history["loss"][-1], history["update_ratio"][-1] = math.nan, math.inf
    assert math.isnan(step_frame({"run": history})["loss"].iloc[-1])
    assert np.isposinf(layer_frame({"run": history})["update_ratio"].iloc[-LAYERS:]).all()


@pytest.mark.parametrize("warmup", [0.0, 0.004, 0.1, 0.29, 2 / 3, 1.0])
@pytest.mark.parametrize("steps", [1, 7, 100, 180])
def test_the_rate_climbs_to_its_peak_over_the_warmup_steps(warmup: float, steps: int) -> None:
    config = RunConfig(warmup=warmup, steps=steps, learning_rate=0.3)
    warmup_steps = int(warmup * steps + 1e-9)
    expected = []
    for step in range(1, steps + 1):
        expected.append(0.3 if step >= warmup_steps else 0.3 * step / warmup_steps)
    np.testing.assert_allclose(learning_rate_s(config), expected, rtol=1e-12)


def test_frames_are_of_plain_numbers() -> None:
    frame = layer_frame({"run": made()})
    assert all(pd.api.types.is_numeric_dtype(frame[column]) for column in LAYER_COLUMNS[1:])

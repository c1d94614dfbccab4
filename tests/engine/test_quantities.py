"""The record of what is recorded: each quantity is what its words say, and what is derived from the record follows.

A new quantity adds its columns to COLUMNS and, if it is of the stream, its restatement to OF_STREAMS.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_run import assert_equal

from core.engine.training import Training, compile_program
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.frames import LAYER_COLUMNS, STEP_COLUMNS
from core.runs.history import History, schema
from core.runs.quantities import CURVES, FILE_FORMAT, LAYERS, QUANTITIES, Quantity
from tests.engine import restatement
from tests.engine.restatement import unrolled
from tests.engine.test_model import SIZE, TOKENS_BT, engine, somewhere

README = (Path(__file__).parents[2] / "README.md").read_text()
# The columns of each file format, with 2 blocks. Who changes the columns raises FILE_FORMAT and adds an entry; the older ones stay.
COLUMNS = {
    1: """step: int32
loss: float
gradient_norm: float
learning_rate: double
stream_rms: fixed_size_list<item: float>[3]
block_gradient_norm: fixed_size_list<item: float>[2]
update_ratio: fixed_size_list<item: float>[2]
attention_stream_signal: fixed_size_list<item: float>[2]
attention_branch_signal: fixed_size_list<item: float>[2]
feed_forward_stream_signal: fixed_size_list<item: float>[2]
feed_forward_branch_signal: fixed_size_list<item: float>[2]""",
}
COLUMNS[2] = f"{COLUMNS[1]}\nstream_peak: fixed_size_list<item: float>[3]"
# Of the streams x_0..x_L of N tokens, (L + 1, N, D), in NumPy.
OF_STREAMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "stream_rms": lambda x_lnd: np.sqrt((x_lnd**2).mean(axis=2)).mean(axis=1),
    "stream_peak": lambda x_lnd: abs(x_lnd).max(axis=(1, 2)),
    "update_ratio": lambda x_lnd: (np.linalg.norm(np.diff(x_lnd, axis=0), axis=2) / np.linalg.norm(x_lnd[:-1], axis=2)).mean(axis=1),
}


@pytest.mark.usefixtures("float64", "made_up")
@pytest.mark.parametrize("placement", ["pre", "every", "mixed"])
def test_what_is_measured_of_the_stream_is_what_the_words_say(placement: str) -> None:
    config = RunConfig(placement=placement, **SIZE)
    parameters = somewhere(config)
    _, measured = engine(config, parameters)
    streams_lnd = np.array(restatement.streams(config, unrolled(parameters), TOKENS_BT)[0])
    assert measured.keys() == OF_STREAMS.keys()
    for name, restated in OF_STREAMS.items():
        np.testing.assert_allclose(measured[name], restated(streams_lnd), err_msg=name)


def columns(file_format: int) -> str:
    return "\n".join(f"{field.name}: {field.type}" for field in schema(2, file_format))


def test_the_file_format_is_raised_with_the_columns() -> None:
    assert max(COLUMNS) == FILE_FORMAT
    assert {file_format: columns(file_format) for file_format in COLUMNS} == COLUMNS


def test_a_history_is_of_the_format_of_what_it_has() -> None:
    full = History.empty(2)
    assert (full.format, full.absent) == (FILE_FORMAT, [])
    for file_format in COLUMNS:
        older = History({name: full[name] for name, quantity in QUANTITIES.items() if quantity.since <= file_format})
        assert older.format == file_format
        assert older.absent == [quantity for quantity in QUANTITIES.values() if quantity.since > file_format]


def test_the_first_columns_are_those_that_the_article_published() -> None:
    assert STEP_COLUMNS[:5] == ["run", "step", "loss", "gradient_norm", "learning_rate"]
    assert LAYER_COLUMNS[:6] == ["run", "step", "layer", "stream_rms", "block_gradient_norm", "update_ratio"]


@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES)
def test_a_quantity_is_explained(quantity: Quantity) -> None:
    assert quantity.says.endswith(".")
    assert quantity.name in (CURVES if quantity.per == "step" else LAYERS) or not quantity.charted


def test_the_readme_has_a_row_for_each_quantity() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", README, re.MULTILINE)
    assert rows == [(quantity.name, quantity.says) for quantity in QUANTITIES.values()]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("device_count", [1, 2])
def test_a_stream_that_is_no_number_has_no_peak_either(history_of: Callable[..., History], device_count: int) -> None:
    """In the step in which a run without norms at an absurd rate diverges, some layers are NaN, others still infinite or finite."""
    config = RunConfig(placement="none", layers=24, width=16, heads=2, length=8, batch=4, steps=20, learning_rate=1.0)
    history = history_of(config, device_count)
    assert history.diverged_at
    assert np.isnan(history["stream_rms"]).any()
    np.testing.assert_array_equal(np.isnan(history["stream_peak"]), np.isnan(history["stream_rms"]))
    assert not (history["stream_peak"] < 0).any()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("beyond", "settings"),
    [
        ("update_ratio", {"placement": "custom:attn=none,ffn=none,alpha=0,gate=0"}),  # 0 / 0: nothing is left of the stream
        ("stream_rms", {"placement": "custom:attn=input,ffn=input,alpha=1000", "norm": "rmsnorm", "layers": 4}),  # its square is too large
        ("gradient_norm", {"placement": "none", "layers": 24, "learning_rate": 1.0}),
    ],
)
def test_a_run_with_numbers_that_are_not_finite_is_one_that_its_file_gives_back(tiny: RunConfig, beyond: str, settings: Any) -> None:
    """Also where loss and gradient norm stay finite, so that the run goes on."""
    training = Training(replace(tiny, **settings), compile_program(replace(tiny, **settings), "cpu"))
    history = reduce(add, training)
    assert not np.isfinite(history[beyond]).all()
    assert (history.diverged_at is None) == (not QUANTITIES[beyond].finite)
    assert_equal(Run.from_parquet(training.finished(history, 1.0).to_parquet()).history, history)

"""Other people's tools read the files: every number comes back as a number, and what is missing is missing."""

import math
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from made_run import made_run

from core.runs import store
from core.runs.config import RunConfig
from core.runs.frames import LAYER_COLUMNS, STEP_COLUMNS, layer_frame, step_frame, write_csv
from core.runs.history import History
from core.runs.presets import ARTICLE
from core.runs.quantities import QUANTITIES

CONFIG = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)
LABEL = 'Pre-Norm · "a, b"'
Table = dict[str, list[Any]]


def history() -> History:
    """Of a run that has diverged, which lacks a quantity."""
    made = made_run(CONFIG, loss_s=[4.0, 3.0, math.nan]).history
    made["gradient_norm"][-1], made["update_ratio"][-1] = math.inf, math.nan
    return History({name: column for name, column in made.columns.items() if name != "stream_peak"})


def history_with_all() -> History:
    return made_run(CONFIG).history


def of_duckdb(relation: duckdb.DuckDBPyRelation) -> Table:
    return relation.df().to_dict("list")


# A line for each column: its class, its name, its cells.
R = """table <- read.csv(commandArgs(TRUE))
for (name in names(table)) {
    column <- table[[name]]
    cat(class(column), name, if (is.character(column)) column else sprintf("%.17g", as.numeric(column)), sep = "\\t")
    cat("\\n")
}"""


def of_r(path: str) -> Table:
    if not shutil.which("Rscript"):
        pytest.skip("R is not installed")
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    said = subprocess.run(["Rscript", "-e", R, path], capture_output=True, text=True, check=True, env=environment).stdout
    columns = [line.split("\t") for line in said.splitlines()]
    return {
        name: cells if kind == "character" else [None if cell == "NA" else float(cell) for cell in cells] for kind, name, *cells in columns
    }


CSV: dict[str, Callable[[str], Table]] = {
    "pandas": lambda path: pd.read_csv(path).to_dict("list"),
    "polars": lambda path: pl.read_csv(path).to_dict(as_series=False),
    "pyarrow": lambda path: pyarrow.csv.read_csv(path).to_pydict(),
    "duckdb": lambda path: of_duckdb(duckdb.read_csv(path)),
    "r": of_r,
}
PARQUET: dict[str, Callable[[str], Table]] = {
    "pandas": lambda path: pd.read_parquet(path).to_dict("list"),
    "polars": lambda path: pl.read_parquet(path).to_dict(as_series=False),
    "pyarrow": lambda path: pq.read_table(path).to_pydict(),
    "duckdb": lambda path: of_duckdb(duckdb.read_parquet(path)),
}


def numbers(column: list[Any]) -> np.ndarray:
    """Raises TypeError or ValueError where a value is no number; a missing one is nan."""
    assert not any(isinstance(value, str) for value in column)
    return np.array([math.nan if value is None else value for value in column], float)


@pytest.mark.parametrize("reader", CSV)
def test_a_csv_by_step(reader: str, tmp_path: Path) -> None:
    write_csv(step_frame({LABEL: history()}), tmp_path / "a.csv")
    table = CSV[reader](str(tmp_path / "a.csv"))
    assert list(table) == STEP_COLUMNS
    assert list(table["run"]) == [LABEL] * 3
    for name in STEP_COLUMNS[2:]:
        np.testing.assert_array_equal(numbers(table[name]).astype(history()[name].dtype), history()[name])


@pytest.mark.parametrize("reader", CSV)
def test_a_csv_by_layer(reader: str, tmp_path: Path) -> None:
    write_csv(layer_frame({LABEL: history()}), tmp_path / "a.csv")
    table = CSV[reader](str(tmp_path / "a.csv"))
    assert list(table) == LAYER_COLUMNS
    for name in LAYER_COLUMNS[3:]:
        column = numbers(table[name]).reshape(3, CONFIG.layers + 1)
        if name not in history():
            assert np.isnan(column).all()
        elif QUANTITIES[name].per == "block":
            assert np.isnan(column[:, 0]).all()
            np.testing.assert_array_equal(column[:, 1:].astype(np.float32), history()[name])
        else:
            np.testing.assert_array_equal(column.astype(np.float32), history()[name])


def test_a_csv_tells_what_is_missing_from_what_is_not_a_number(tmp_path: Path) -> None:
    write_csv(layer_frame({"a": history()}), tmp_path / "a.csv")
    rows = [dict(zip(LAYER_COLUMNS, line.split(","), strict=True)) for line in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    assert {row["stream_peak"] for row in rows} == {""}
    assert {row["update_ratio"] for row in rows if row["layer"] == "0"} == {""}
    assert [row["update_ratio"] for row in rows[-2:]] == ["NaN", "NaN"]


@pytest.mark.parametrize("reader", ["polars", "r"])
def test_readers_that_tell_missing_from_not_a_number_do(reader: str, tmp_path: Path) -> None:
    write_csv(layer_frame({"a": history()}), tmp_path / "a.csv")
    last_step = CSV[reader](str(tmp_path / "a.csv"))["update_ratio"][-3:]
    assert last_step[0] is None
    assert np.isnan(np.array(last_step[1:], float)).all()


LONG = 30_000  # lines: more than polars and DuckDB look at by themselves


@pytest.mark.parametrize(
    "read",
    [
        lambda path: pd.read_csv(path).to_dict("list"),
        lambda path: pyarrow.csv.read_csv(path).to_pydict(),
        lambda path: pl.read_csv(path, infer_schema_length=None).to_dict(as_series=False),
        lambda path: of_duckdb(duckdb.read_csv(path, sample_size=-1)),
    ],
    ids=["pandas", "pyarrow", "polars", "duckdb"],
)
def test_a_column_that_the_first_run_lacks_is_of_numbers(read: Callable[[str], Table], tmp_path: Path) -> None:
    long = made_run(RunConfig(layers=96, steps=LONG // 97 + 1)).history
    older = History({name: column for name, column in long.columns.items() if name != "stream_peak"})
    write_csv(layer_frame({"older": older, "newer": history_with_all()}), tmp_path / "a.csv")
    column = numbers(read(str(tmp_path / "a.csv"))["stream_peak"])
    assert np.isnan(column[:LONG]).all()
    np.testing.assert_array_equal(column[-15:].astype(np.float32), history_with_all()["stream_peak"].ravel())


@pytest.mark.parametrize("reader", PARQUET)
def test_the_file_of_a_run(reader: str, tmp_path: Path) -> None:
    run = made_run(CONFIG)
    store.save(run, tmp_path)
    [path] = tmp_path.glob("*.parquet")
    table = PARQUET[reader](str(path))
    for name in QUANTITIES:
        np.testing.assert_array_equal(np.array([*map(np.asarray, table[name])]), run.history[name])


@pytest.mark.parametrize("reader", PARQUET)
def test_the_files_of_reference(reader: str) -> None:
    for config in ARTICLE:
        table = PARQUET[reader](str(store.REFERENCE / f"{config.key}{store.SUFFIX}"))
        assert list(table["step"]) == list(range(1, 181))

"""A run's file: it holds everything, and is recognized when it is damaged."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import hypothesis.extra.numpy as arrays
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_run import FACTS, assert_equal, made_history, made_run

from core.runs.config import ENGINE_FORMAT, RunConfig
from core.runs.file import DAMAGE, METADATA, SINGULAR_VALUES, Facts, NewerFile, Run
from core.runs.history import History
from core.runs.quantities import FILE_FORMAT

CONFIG = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)


def assert_same(run: Run, other: Run) -> None:
    assert (run.config, run.facts) == (other.config, other.facts)
    np.testing.assert_array_equal(run.singular_values, other.singular_values, strict=True)
    assert_equal(run.history, other.history)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any floats at all, infinite and not a number included, up to the step where the run has diverged."""
    config = replace(CONFIG, layers=draw(st.integers(1, 4)), steps=draw(st.integers(1, 6)), seed=draw(st.integers(0, 2**31 - 1)))
    steps, layers = config.steps, config.layers
    history = made_history(lambda shape: draw(arrays.arrays(np.float32, shape)), steps, layers)
    amount = st.floats(0, 1e9)
    return Run(
        config,
        History({name: column[: history.diverged_at] for name, column in history.columns.items()}),
        Facts(draw(st.text()), draw(amount), draw(amount), draw(amount), {"jax": draw(st.text())}),
        draw(st.none() | arrays.arrays(np.float32, (2, layers + 1, config.width), elements=st.floats(0, width=32) | st.just(np.nan))),
    )


@given(runs())
def test_what_is_written_is_read(run: Run) -> None:
    assert_same(Run.from_parquet(run.to_parquet()), run)


def test_the_file_describes_itself(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    path.write_bytes(made_run(CONFIG, loss_s=[4.0, 3.0, np.nan]).to_parquet())
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[METADATA])
    assert about["config"] == CONFIG.to_dict()
    assert about["facts"] == asdict(FACTS)
    assert (about["engine_format"], about["outcome"], about["diverged_at"]) == (ENGINE_FORMAT, "diverged", 3)
    assert table["step"].to_pylist() == [1, 2, 3]
    assert table["stream_rms"].type.list_size == CONFIG.layers + 1
    assert Run.about(path) == (CONFIG, FACTS, 3)


def edited(edit: object) -> bytes:
    """The bytes of a run's file after `edit` has had its table and its description."""
    table = pq.read_table(pa.BufferReader(made_run(CONFIG).to_parquet()))
    about = json.loads(table.schema.metadata[METADATA])
    changed = edit(table, about)
    table = changed if isinstance(changed, pa.Table) else table
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({METADATA: json.dumps(about)}), sink)
    return sink.getvalue().to_pybytes()


def test_an_edit_that_changes_nothing_is_read() -> None:
    assert_same(Run.from_parquet(edited(lambda table, about: None)), made_run(CONFIG))


@pytest.mark.parametrize(
    "edit",
    [
        lambda table, about: about["config"].update(layers=3),  # not as many as the columns have
        lambda table, about: about["config"].update(layers=10**6),
        lambda table, about: about["config"].update(steps=4),  # fewer than there are rows
        lambda table, about: about["config"].update(placement=["pre"]),
        lambda table, about: about.update(config=None),
        lambda table, about: about.pop("config"),
        lambda table, about: about.pop("facts"),
        lambda table, about: about["facts"].pop("device"),
        lambda table, about: about["facts"].update(train_seconds="long"),
        lambda table, about: about["facts"].update(train_seconds="2.5"),
        lambda table, about: about["facts"].update(compile_seconds=True),
        lambda table, about: about["facts"].update(device=3),
        lambda table, about: about["facts"].update(versions=["jax"]),
        lambda table, about: about.update(file_format="2"),
        lambda table, about: about.update(file_format=1.0),
        lambda table, about: about.update(file_format=0),
        lambda table, about: about["facts"].update(train_seconds=-1.0),
        lambda table, about: about["facts"].update(compile_seconds=float("nan")),
        lambda table, about: about["facts"].update(matrix_gflops=float("inf")),
        lambda table, about: table.slice(0, 0),
        lambda table, about: table.slice(0, 4),  # neither all its steps nor a divergence
        lambda table, about: table.drop_columns(["loss"]),
        lambda table, about: table.append_column("more", table["loss"]),
        lambda table, about: table.set_column(1, "loss", table["loss"].cast(pa.string())),
        lambda table, about: table.set_column(4, "stream_rms", table["loss"]),
    ],
)
def test_a_file_that_no_run_has_is_recognized(edit: object) -> None:
    with pytest.raises(DAMAGE):
        Run.from_parquet(edited(edit))


@pytest.mark.parametrize("written", [b"", b"PK\x03\x04", np.zeros((2, 3, 15), "<f4").tobytes(), np.full((2, 3, 16), -1, "<f4").tobytes()])
def test_singular_values_that_no_run_has_are_recognized(written: bytes) -> None:
    table = pq.read_table(pa.BufferReader(made_run(CONFIG).to_parquet()))
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(table.schema.metadata | {SINGULAR_VALUES: written}), sink)
    with pytest.raises(DAMAGE):
        Run.from_parquet(sink.getvalue().to_pybytes())


@given(st.data())
def test_damage_is_recognized_wherever_it_is(data: st.DataObject) -> None:
    run = made_run(CONFIG)
    content = bytearray(run.to_parquet())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    try:
        read = Run.from_parquet(bytes(content))
    except (NewerFile, *DAMAGE):
        return
    footer = len(content) - 8 - int.from_bytes(run.to_parquet()[-8:-4], "little")
    if place < footer:  # what was hit is not what is read
        assert_equal(read.history, run.history)


@given(st.integers(0, 10**6))
def test_a_truncated_file_is_recognized(length: int) -> None:
    content = made_run(CONFIG).to_parquet()
    with pytest.raises(DAMAGE):
        Run.from_parquet(content[: length % len(content)])


@given(st.binary())
def test_bytes_that_are_no_file_are_recognized(content: bytes) -> None:
    with pytest.raises(DAMAGE):
        Run.from_parquet(content)


def test_a_description_nested_beyond_all_measure_is_recognized() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(made_run(CONFIG).history.to_table().replace_schema_metadata({METADATA: "[" * 10**6}), sink)
    with pytest.raises(DAMAGE):
        Run.from_parquet(sink.getvalue().to_pybytes())


@pytest.mark.parametrize(
    "edit", [lambda table, about: about.update(file_format=FILE_FORMAT + 1), lambda table, about: about["config"].update(colour="red")]
)
def test_a_file_of_a_later_version_is_told_from_a_damaged_one(edit: object) -> None:
    with pytest.raises(NewerFile):
        Run.from_parquet(edited(edit))

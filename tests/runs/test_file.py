"""A run's file: it holds everything, and is recognized when it is damaged."""

import base64
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
from core.runs.file import BARE_SINGULAR_VALUES, DAMAGE, METADATA, SINGULAR_VALUES, Facts, NewerFile, Run
from core.runs.history import History
from core.runs.quantities import FILE_FORMAT

CONFIG = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)
DATA = Path(__file__).parents[1] / "data"


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
        Facts(draw(st.text()), draw(amount), draw(amount), draw(amount), {"jax": draw(st.text())}, draw(st.text())),
        draw(st.none() | arrays.arrays(np.float32, (2, layers + 1, config.width), elements=st.floats(0, width=32) | st.just(np.nan))),
    )


@given(runs())
def test_what_is_written_is_read_and_says_of_itself_only_text(run: Run) -> None:
    """Parquet demands UTF-8 there: other readers refuse a file that has anything else."""
    content = run.to_parquet()
    assert_same(Run.from_parquet(content), run)
    metadata = pq.ParquetFile(pa.BufferReader(content)).metadata.metadata
    assert METADATA.decode() in {name.decode(): entry.decode() for name, entry in metadata.items()}


def test_a_version_before_finds_no_singular_values_where_it_looks_for_bytes() -> None:
    """It would take a text there for damage, and set the file aside."""
    run = replace(made_run(CONFIG), singular_values=np.ones((2, 3, 16), np.float32))
    metadata = pq.read_schema(pa.BufferReader(run.to_parquet())).metadata
    assert metadata.keys() == {b"norm_placement_lab", b"singular_values_base64"}


@pytest.mark.parametrize("name", ["bare_bytes", "format_1"])
def test_a_file_of_a_version_before_is_read_and_becomes_text(name: str) -> None:
    content = (DATA / f"{name}.parquet").read_bytes()
    with pytest.raises(UnicodeDecodeError):
        pq.read_schema(pa.BufferReader(content)).metadata[b"singular_values"].decode()
    run = Run.from_parquet(content)
    assert run.config == CONFIG
    assert run.singular_values is not None
    assert run.singular_values.tobytes() == pq.read_schema(pa.BufferReader(content)).metadata[b"singular_values"]
    assert_same(Run.from_parquet(run.to_parquet()), run)


def test_the_file_describes_itself(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    path.write_bytes(made_run(CONFIG, loss_s=[4.0, 3.0, np.nan]).to_parquet())
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[METADATA])
    assert about["config"] == CONFIG.to_dict()
    assert asdict(FACTS) == about["facts"] | {"xla_flags": ""}  # which versions before do not know
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
        lambda table, about: about["facts"].update(xla_flags=["--xla_cpu_ftz=true"]),
        lambda table, about: about.update(facts="none"),
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


def with_entry(name: bytes, content: bytes) -> bytes:
    """The bytes of a run's file with one more entry of the schema's metadata."""
    table = pq.read_table(pa.BufferReader(made_run(CONFIG).to_parquet()))
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(table.schema.metadata | {name: content}), sink)
    return sink.getvalue().to_pybytes()


def spectra(**changes: float) -> bytes:
    """Singular values that a run can have, those of the last Jacobian changed: `first` to the greatest, `last` to the least."""
    values = np.linspace(2, 1, 2 * 3 * 16, dtype="<f4").reshape(2, 3, 16)
    values[-1, -1, 0], values[-1, -1, -1] = changes.get("first", values[-1, -1, 0]), changes.get("last", values[-1, -1, -1])
    return values.tobytes()


def test_singular_values_are_read_from_text() -> None:
    run = Run.from_parquet(with_entry(SINGULAR_VALUES, base64.b64encode(spectra())))
    assert run.singular_values is not None
    assert run.singular_values.astype("<f4").tobytes() == spectra()


IMPOSSIBLE_SPECTRA = {
    "none": b"",
    "others": b"PK\x03\x04",
    "of another width": np.zeros((2, 3, 15), "<f4").tobytes(),
    "negative": spectra(last=-1.0),
}


@pytest.mark.parametrize("content", IMPOSSIBLE_SPECTRA.values(), ids=IMPOSSIBLE_SPECTRA)
def test_singular_values_that_no_run_has_are_recognized(content: bytes) -> None:
    with pytest.raises(DAMAGE):
        Run.from_parquet(with_entry(SINGULAR_VALUES, base64.b64encode(content)))


@pytest.mark.parametrize("text", [b"", base64.b64encode(spectra())[:-1], b"!" + base64.b64encode(spectra())[1:]])
def test_singular_values_that_are_no_base64_are_recognized(text: bytes) -> None:
    with pytest.raises(DAMAGE):
        Run.from_parquet(with_entry(SINGULAR_VALUES, text))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", bytes(4 * 2 * 3 * 15)])
def test_bytes_of_a_version_before_that_no_run_has_are_recognized(content: bytes) -> None:
    with pytest.raises(DAMAGE):
        Run.from_parquet(with_entry(BARE_SINGULAR_VALUES, content))


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
    "edit",
    [
        lambda table, about: about.update(file_format=FILE_FORMAT + 1),
        lambda table, about: about["config"].update(colour="red"),
        lambda table, about: about["facts"].update(weather="fair"),
    ],
)
def test_a_file_of_a_later_version_is_told_from_a_damaged_one(edit: object) -> None:
    with pytest.raises(NewerFile):
        Run.from_parquet(edited(edit))


@pytest.mark.parametrize(
    ("flags", "moved"),
    [
        ("", False),
        ("--xla_force_host_platform_device_count=4 --xla_dump_to=/tmp --xla_dump_hlo_as_text", False),
        ("--xla_cpu_enable_fast_math=true", True),
        ("--xla_dump_to=/tmp --xla_cpu_multi_thread_eigen=false", True),
        ("flags.txt", True),  # a file that has them
    ],
)
def test_whatever_xla_is_told_may_move_numbers_but_for_dumps_and_devices(flags: str, moved: bool) -> None:
    assert replace(FACTS, xla_flags=flags).moved == moved

"""A run's file: it holds everything, and is recognized when it is damaged."""

import base64
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_run import FACTS, assert_equal, made_run

from core.runs.config import ENGINE_FORMAT, RunConfig
from core.runs.file import BARE_SINGULAR_VALUES, DAMAGE, METADATA, SINGULAR_VALUES, Facts, NewerFile, Run
from core.runs.history import History
from core.runs.quantities import FILE_FORMAT, QUANTITIES
from core.runs.schedule import learning_rate_s

CONFIG = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)
DATA = Path(__file__).parents[1] / "data"
MEASURED = [name for name, quantity in QUANTITIES.items() if quantity.measured]
FINITE = [name for name in MEASURED if QUANTITIES[name].finite]
LISTS = [name for name, quantity in QUANTITIES.items() if quantity.per != "step"]


def assert_same(run: Run, other: Run) -> None:
    assert (run.config, run.facts) == (other.config, other.facts)
    np.testing.assert_array_equal(run.singular_values, other.singular_values, strict=True)
    assert_equal(run.history, other.history)


EXTREMES = np.array([0.0, 1e-45, np.finfo(np.float32).max, np.inf], np.float32)


def amounts(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Any numbers that are not negative, every second one an extreme."""
    return np.where(random.random(shape) < 0.5, random.gamma(1.0, 1.0, shape), random.choice(EXTREMES, shape)).astype(np.float32)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any that the engine may write: what may be infinite or not a number, is so anywhere."""
    layers, steps, warmup, seed = draw(st.tuples(st.integers(1, 4), st.integers(1, 6), st.floats(0, 1), st.integers(0, 2**31 - 1)))
    config = replace(CONFIG, layers=layers, steps=steps, warmup=warmup, seed=seed)
    random = np.random.default_rng(seed)
    diverged_at = draw(st.none() | st.integers(1, steps))
    rows = diverged_at or steps
    columns = {"learning_rate": learning_rate_s(config)[:rows]}
    for name in MEASURED:
        column = columns[name] = amounts(random, (rows, *QUANTITIES[name].shape(layers)))
        column[random.random(column.shape) < 0.2] = np.nan
        if name in FINITE:
            np.nan_to_num(column[: rows - 1 if diverged_at else rows], copy=False, nan=1.0, posinf=2.0)
    if diverged_at:
        columns[draw(st.sampled_from(["loss", "gradient_norm"]))][-1] = draw(st.sampled_from([np.inf, np.nan]))
    spectra = -np.sort(-amounts(random, (2, layers + 1, config.width)))
    spectra[random.random(spectra.shape[:2]) < 0.2] = np.nan
    amount = st.floats(0, 1e9)
    facts = Facts(draw(st.text()), draw(amount), draw(amount), draw(amount), {"jax": draw(st.text())}, draw(st.text()))
    return Run(config, History(columns), facts, spectra if draw(st.booleans()) else None)


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
        lambda table, about: about["facts"].update(train_seconds=10**400),  # JSON bounds no whole number
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


def with_least(value: float) -> bytes:
    """Singular values of a run, but that the least of the last Jacobian is another."""
    values = np.linspace(2, 1, 2 * 3 * 16, dtype="<f4")
    values[-1] = value
    return values.tobytes()


SPECTRA = with_least(0.5)


def test_singular_values_are_read_from_text() -> None:
    run = Run.from_parquet(with_entry(SINGULAR_VALUES, base64.b64encode(SPECTRA)))
    assert run.singular_values is not None
    assert run.singular_values.astype("<f4").tobytes() == SPECTRA


IMPOSSIBLE_SPECTRA = {
    "none": b"",
    "others": b"PK\x03\x04",
    "of another width": np.zeros((2, 3, 15), "<f4").tobytes(),
    "negative": with_least(-1.0),
    "not in descending order": with_least(3.0),
    "of a Jacobian in part": with_least(np.nan),
}


@pytest.mark.parametrize("content", IMPOSSIBLE_SPECTRA.values(), ids=IMPOSSIBLE_SPECTRA)
def test_singular_values_that_no_run_has_are_recognized(content: bytes) -> None:
    with pytest.raises(DAMAGE):
        Run.from_parquet(with_entry(SINGULAR_VALUES, base64.b64encode(content)))


@pytest.mark.parametrize("text", [b"", base64.b64encode(SPECTRA)[:-1], b"!" + base64.b64encode(SPECTRA)])
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


def put(name: str, row: int, value: float | None, whole: bool = False) -> Callable[[pa.Table, object], pa.Table]:
    """An edit that puts a value in place of what a step recorded; of a list in its first place, or, if `whole`, in the place of all."""

    def edit(table: pa.Table, about: object) -> pa.Table:
        rows = table[name].to_pylist()
        rows[row] = [value, *rows[row][1:]] if isinstance(rows[row], list) and not whole else value
        return table.set_column(table.column_names.index(name), name, pa.array(rows, table.schema.field(name).type))

    return edit


def damaged(edit: object) -> bool:
    try:
        Run.from_parquet(edited(edit))
    except DAMAGE:
        return True
    return False


@pytest.mark.parametrize("row", [2, -1])
@pytest.mark.parametrize("name", MEASURED)
def test_what_a_step_recorded_is_there_and_not_negative(name: str, row: int) -> None:
    """In the last row, too, where a missing loss could be taken for that of a run that diverged."""
    assert not damaged(put(name, row, 0.0))
    assert [value for value in (None, -1e-30, -np.inf) if not damaged(put(name, row, value))] == []


@pytest.mark.parametrize("name", LISTS)
def test_no_step_lacks_its_layers(name: str) -> None:
    assert damaged(put(name, 2, None, whole=True))


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_not_finite_ends_a_run_unless_it_may_be_so(name: str) -> None:
    """An infinite loss ends it; a stream's size may be beyond float32 where a norm brings the stream back."""
    for value in (np.nan, np.inf):
        assert damaged(put(name, 2, value)) == (name in FINITE)


def test_in_the_step_in_which_a_run_diverges_nothing_need_be_finite() -> None:
    assert damaged(put("block_gradient_norm", -1, np.nan))  # of a run that did not
    run = made_run(CONFIG, loss_s=[4.0, 3.0, np.nan])
    for name in MEASURED:
        run.history[name][-1] = np.nan
    assert_same(Run.from_parquet(run.to_parquet()), run)
    run.history["block_gradient_norm"][-2] = np.nan
    with pytest.raises(DAMAGE):
        Run.from_parquet(run.to_parquet())


@pytest.mark.parametrize("row", [0, -1])
def test_the_learning_rate_is_the_one_that_the_settings_name(row: int) -> None:
    assert not damaged(put("learning_rate", row, CONFIG.learning_rate))
    for value in (None, 0.0, -CONFIG.learning_rate, np.nextafter(CONFIG.learning_rate, 1), np.nan, np.inf):
        assert damaged(put("learning_rate", row, value)), value


def test_steps_are_numbered_from_one() -> None:
    assert not damaged(put("step", 2, 3))
    for value in (None, 2, -3):
        assert damaged(put("step", 2, value)), value


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

"""Runs on disk: whole or not at all, found again, and set aside where they are damaged."""

import errno
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_run import FACTS, assert_equal, made_run

from core.runs import store
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.history import History
from core.runs.quantities import QUANTITIES
from core.runs.store import StoreError, load, save

CONFIG = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)
OTHER = replace(CONFIG, seed=8)


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NORMLAB_CACHE", str(tmp_path / "below" / "runs"))
    return tmp_path / "below" / "runs"


@pytest.fixture
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "REFERENCE", tmp_path / "reference")
    return tmp_path / "reference"


def assert_same(run: Run | None, other: Run) -> None:
    assert run
    assert (run.config, run.facts) == (other.config, other.facts)
    assert_equal(run.history, other.history)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("loss_s", [None, [4.0, np.nan], [np.inf], [4.0, 3.0, np.inf]])
def test_what_is_saved_is_loaded(runs: Path, loss_s: list[float] | None) -> None:
    assert load(CONFIG) is None
    run = made_run(CONFIG, loss_s=loss_s)
    save(run)
    assert_same(load(CONFIG), run)
    assert load(OTHER) is None
    assert files(runs) == {f"{CONFIG.key}.parquet"}


def test_without_normlab_cache_runs_are_kept_beside_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NORMLAB_CACHE")
    assert store.runs_folder() == store.REFERENCE.parent / "runs"
    monkeypatch.setenv("NORMLAB_CACHE", "")
    assert store.runs_folder() == store.REFERENCE.parent / "runs"


def test_the_reference_is_read_first(reference: Path) -> None:
    here, there = made_run(CONFIG), made_run(CONFIG, replace(FACTS, device="the reference's"))
    save(here)
    save(there, reference)
    assert_same(load(CONFIG), there)


def test_a_later_save_takes_the_place_of_an_earlier_one() -> None:
    save(made_run(CONFIG))
    again = made_run(CONFIG, loss_s=[1.0, 2.0, 3.0, 4.0, 5.0])
    save(again)
    assert_same(load(CONFIG), again)


def test_a_run_that_xla_was_told_to_compute_otherwise_is_not_written_under_its_key(runs: Path) -> None:
    flags = "--xla_cpu_enable_fast_math=true"
    with pytest.raises(StoreError) as error:
        save(made_run(CONFIG, replace(FACTS, xla_flags=flags)))
    assert str(error.value) == f"The run was not written to {runs}: it was computed with XLA_FLAGS={flags!r}, which can move numbers."
    assert not runs.exists()
    harmless = made_run(CONFIG, replace(FACTS, xla_flags="--xla_force_host_platform_device_count=4"))
    save(harmless)
    assert_same(load(CONFIG), harmless)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1",
        b"no file of ours",
        made_run(CONFIG).to_parquet()[:-1],
        made_run(CONFIG).to_parquet()[:500],
        made_run(OTHER).to_parquet(),
        made_run(CONFIG, loss_s=[-1.0] * 5).to_parquet(),
    ],
    ids=["empty", "magic", "text", "truncated", "half", "another run's", "impossible"],
)
def test_a_damaged_file_is_set_aside_and_its_run_computed_again(runs: Path, content: bytes) -> None:
    save(made_run(CONFIG))
    (runs / f"{CONFIG.key}.parquet").write_bytes(content)
    assert load(CONFIG) is None
    assert files(runs) == {f"{CONFIG.key}.damaged"}
    assert (runs / f"{CONFIG.key}.damaged").read_bytes() == content
    save(made_run(CONFIG))
    assert_same(load(CONFIG), made_run(CONFIG))


def test_behind_a_damaged_reference_the_own_run_is_found(reference: Path) -> None:
    save(made_run(CONFIG))
    reference.mkdir()
    (reference / f"{CONFIG.key}.parquet").write_bytes(b"damaged")
    assert_same(load(CONFIG), made_run(CONFIG))


def test_a_file_that_cannot_be_read_now_is_left_alone(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(made_run(CONFIG))

    def refuse(path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        assert load(CONFIG) is None
    assert_same(load(CONFIG), made_run(CONFIG))


def test_a_folder_where_the_file_should_be_is_no_run(runs: Path) -> None:
    (runs / f"{CONFIG.key}.parquet").mkdir(parents=True)
    assert load(CONFIG) is None
    with pytest.raises(StoreError):
        save(made_run(CONFIG))
    assert files(runs) == {f"{CONFIG.key}.parquet"}


def test_a_folder_that_takes_nothing_is_named(runs: Path) -> None:
    runs.parent.mkdir()
    runs.write_text("a file where the folder should be")
    with pytest.raises(StoreError, match=rf"^The run could not be written to {runs}: File exists\.$"):
        save(made_run(CONFIG))
    assert load(CONFIG) is None
    assert store.facts(runs) == []


def test_a_write_that_fails_leaves_what_was_there(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    earlier = made_run(CONFIG)
    save(earlier)
    for fault in ("chmod", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, fault, full)
            with pytest.raises(StoreError, match=r"No space left on device\.$"):
                save(made_run(CONFIG, loss_s=[9.0] * 5))
    assert files(runs) == {f"{CONFIG.key}.parquet"}
    assert_same(load(CONFIG), earlier)


def test_a_write_that_is_interrupted_leaves_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save(made_run(CONFIG))
    assert files(runs) == set()


def test_a_reader_never_sees_half_a_file(runs: Path) -> None:
    """Two writers take turns in one file's place; what is read is one of their runs, and nothing is set aside."""
    ours, theirs = made_run(CONFIG), made_run(CONFIG, replace(FACTS, device="theirs"))
    save(ours)
    done = threading.Event()

    def write(run: Run) -> None:
        while not done.is_set():
            save(run)

    writers = [threading.Thread(target=write, args=(run,)) for run in (ours, theirs)]
    for writer in writers:
        writer.start()
    seen = [load(CONFIG) for _ in range(50)]
    done.set()
    for writer in writers:
        writer.join()
    for run in seen:
        assert run
        assert_same(run, theirs if run.facts == theirs.facts else ours)
    assert files(runs) == {f"{CONFIG.key}.parquet"}


def test_facts_are_of_the_newest_files_that_are_whole(runs: Path) -> None:
    configs = [replace(CONFIG, seed=seed) for seed in range(5)]
    for age, config in enumerate(configs):
        save(made_run(config, replace(FACTS, train_seconds=float(age))))
        os.utime(runs / f"{config.key}.parquet", (1000 - age, 1000 - age))
    (runs / f"{configs[1].key}.parquet").write_bytes(b"damaged")
    os.utime(runs / f"{configs[1].key}.parquet", (999, 999))
    (runs / "leads-nowhere.parquet").symlink_to(runs / "missing")
    found = store.facts(runs, most=3)
    assert [(config, facts.train_seconds, steps) for config, facts, steps in found] == [(configs[0], 0, 5), (configs[2], 2, 5)]
    assert store.facts(runs / "missing") == []


def test_facts_follow_a_file_that_is_replaced(runs: Path) -> None:
    for age, seconds in ((2000, 1.0), (1000, 2.0)):
        save(made_run(CONFIG, replace(FACTS, train_seconds=seconds)))
        os.utime(runs / f"{CONFIG.key}.parquet", (age, age))
        assert [facts.train_seconds for _, facts, _ in store.facts(runs)] == [seconds]


def test_finished_runs_are_found_those_of_reference_first(reference: Path, runs: Path) -> None:
    own = [replace(CONFIG, seed=seed) for seed in range(3)]
    for age, config in enumerate(own):
        save(made_run(config))
        os.utime(runs / f"{config.key}.parquet", (1000 - age, 1000 - age))
    for other in (replace(CONFIG, layers=3), RunConfig.from_dict(CONFIG.to_dict() | {"placement": "post"})):
        save(made_run(other))
    (runs / f"{own[2].key}.parquet").rename(runs / "named-by-another-format.parquet")
    packed = replace(CONFIG, seed=9)
    for config in (packed, own[0]):
        save(made_run(config), reference)
        os.utime(reference / f"{config.key}.parquet", (config.seed, config.seed))
    assert store.find(lambda run: (run.placement, run.layers) == (CONFIG.placement, CONFIG.layers)) == [packed, own[0], own[1]]
    assert store.find(lambda run: False) == []


def older(run: Run) -> Run:
    """The run as a file of the first format has it."""
    return replace(run, history=History({name: run.history[name] for name, quantity in QUANTITIES.items() if quantity.since == 1}))


def test_of_two_files_of_a_run_the_one_that_recorded_all_is_loaded(reference: Path) -> None:
    run = made_run(CONFIG)
    store.save(older(run), store.REFERENCE)
    assert_same(store.load(CONFIG), older(run))
    store.save(run)
    assert_same(store.load(CONFIG), run)


def test_a_damaged_file_of_reference_is_left_as_it_is(reference: Path) -> None:
    reference.mkdir()
    path = reference / f"{CONFIG.key}.parquet"
    path.write_bytes(b"no run")
    assert store.load(CONFIG) is None
    assert files(reference) == {path.name}


def test_a_file_of_a_later_version_is_neither_read_nor_set_aside(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(made_run(CONFIG))
    monkeypatch.setattr("core.runs.file.FILE_FORMAT", 1)
    before = files(runs)
    assert store.load(CONFIG) is None
    assert store.facts(runs) == []
    assert files(runs) == before


def test_a_file_of_a_later_version_is_not_written_over(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(made_run(CONFIG))
    before = (runs / f"{CONFIG.key}.parquet").read_bytes()
    monkeypatch.setattr("core.runs.file.FILE_FORMAT", 1)
    with pytest.raises(StoreError, match=r"a later version of the lab has left its file there\.$"):
        store.save(older(made_run(CONFIG)))
    assert (runs / f"{CONFIG.key}.parquet").read_bytes() == before

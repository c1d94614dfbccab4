"""Estimates: from the runs that this machine has timed, else from the reference, else none."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_run import FACTS, made_run

from core import machine
from core.jobs import estimate
from core.runs import arithmetic, store
from core.runs.config import RunConfig
from core.runs.file import Facts

CONFIG = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run is known."""
    monkeypatch.setenv("NORMLAB_CACHE", str(tmp_path / "runs"))
    monkeypatch.setattr(store, "REFERENCE", tmp_path / "reference")


def timed(compiling: float, training: float, gflops: float = 100.0) -> Facts:
    return replace(FACTS, compile_seconds=compiling, train_seconds=training, matrix_gflops=gflops)


def test_nothing_is_known_without_a_timed_run() -> None:
    assert math.isnan(estimate.seconds(CONFIG))


def test_a_run_like_a_timed_one_takes_as_long() -> None:
    store.save(made_run(CONFIG, timed(2.0, 10.0)))
    assert estimate.seconds(replace(CONFIG, seed=1)) == pytest.approx(12)
    assert estimate.seconds(replace(CONFIG, seed=1), steps=0) == pytest.approx(2)


def test_training_is_proportional_to_the_steps() -> None:
    store.save(made_run(CONFIG, timed(2.0, 10.0)))
    for steps in (1, 10, 5000):
        assert estimate.seconds(replace(CONFIG, steps=steps)) == pytest.approx(2 + 2 * steps)
        assert estimate.seconds(CONFIG, steps) == pytest.approx(2 + 2 * steps)


@pytest.mark.parametrize("field", ["layers", "width", "length", "batch", "steps"])
def test_more_of_anything_takes_longer(field: str) -> None:
    store.save(made_run(CONFIG, timed(2.0, 10.0)))
    more = [estimate.seconds(replace(CONFIG, **{field: getattr(CONFIG, field) * factor})) for factor in (1, 2, 4, 8)]
    assert more == sorted(set(more))


def test_depth_counts_by_the_arithmetic_of_the_blocks() -> None:
    one, two, three = (arithmetic.step_flops(replace(CONFIG, layers=layers)) for layers in (1, 2, 3))
    assert two - one == three - two > 0


def test_what_a_step_needs_leaves_out_what_the_engine_computes_anew() -> None:
    """By hand: 768 tokens, 12 blocks of 24 D² + 4 T D, an output layer of 2 D V."""
    attention, head = 768 * 4 * 32 * 64, 768 * 2 * 64 * 64
    block = 768 * 24 * 64**2 + attention
    assert arithmetic.needed_flops(RunConfig()) == 3 * (12 * block + head)
    assert arithmetic.step_flops(RunConfig()) == 3 * (12 * block + head) + 12 * attention


def test_the_yardstick_is_the_run_most_alike_and_the_fastest_of_equals() -> None:
    store.save(made_run(replace(CONFIG, layers=8), timed(0.0, 1000.0)))
    store.save(made_run(CONFIG, timed(0.0, 10.0)))
    store.save(made_run(replace(CONFIG, seed=1), timed(0.0, 5.0)))  # the other was disturbed
    store.save(made_run(replace(CONFIG, seed=2, steps=50), timed(0.0, 100.0)))
    assert estimate.seconds(replace(CONFIG, seed=3)) == pytest.approx(5)


def test_a_run_that_diverged_counts_the_steps_it_got_to() -> None:
    config = replace(CONFIG, steps=100)
    store.save(made_run(config, timed(0.0, 4.0), loss_s=[4.0, np.nan]))
    assert estimate.seconds(config) == pytest.approx(200)


def test_own_runs_count_before_the_reference_which_is_carried_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "matrix_gflops", lambda: 50.0)
    store.save(made_run(CONFIG, timed(1.0, 10.0, gflops=100.0)), store.REFERENCE)
    assert estimate.seconds(CONFIG) == pytest.approx(22)  # this machine is half as fast
    store.save(made_run(replace(CONFIG, layers=4), timed(0.0, 3.0, gflops=100.0)))
    shallower = arithmetic.step_flops(CONFIG) / arithmetic.step_flops(replace(CONFIG, layers=4))
    assert estimate.seconds(CONFIG) == pytest.approx(3 * shallower)


def test_a_reference_run_tells_more_than_an_own_one_of_another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The overhead of a tiny run, multiplied by the ratio of the arithmetic, would be minutes."""
    monkeypatch.setattr(estimate, "matrix_gflops", lambda: 100.0)
    large = replace(CONFIG, width=256, batch=64)
    store.save(made_run(large, timed(1.0, 10.0, gflops=100.0)), store.REFERENCE)
    store.save(made_run(CONFIG, timed(1.0, 1.0)))
    assert estimate.seconds(large) == pytest.approx(11)


def test_damaged_files_are_passed_over() -> None:
    store.runs_folder().mkdir()
    (store.runs_folder() / "x.parquet").write_bytes(b"damaged")
    assert math.isnan(estimate.seconds(CONFIG))


def test_the_rate_of_matrix_products_is_that_of_their_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 4.0, 10.0, 12.0, 20.0, 28.0])
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(times))
    assert machine.matrix_gflops(size=100, repeats=3) == pytest.approx(2 * 100**3 / 2.0 / 1e9)  # by the quickest of the three

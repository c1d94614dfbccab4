"""Runs from their submission to their end, in a real Dask cluster inside the process."""

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from made_run import assert_equal, made_history

from core.engine import training
from core.engine.training import Training, compile_program
from core.jobs import estimate, job, worker
from core.jobs.cluster import LOCAL
from core.jobs.queue import FASTEST, KEPT, PAUSES, SLOWEST, TICKS, Jobs, JobsError, QueueFull, Status, max_queue
from core.machine import DeviceError
from core.runs import store
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.history import History
from core.runs.settings import ConfigError

SEEDS = itertools.count()
STEPS = 5


def fresh() -> RunConfig:
    """A run that no other test has asked for; all have one compiled program."""
    return RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=STEPS, seed=next(SEEDS))


def trained(config: RunConfig) -> History:
    return reduce(add, Training(config, compile_program(config)))


def rows(steps: int, loss: float = 1.0) -> History:
    rate = RunConfig().learning_rate
    return made_history(np.ones, steps, 2).replace(loss=np.full(steps, loss, np.float32), learning_rate=np.full(steps, rate))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NORMLAB_CACHE", str(tmp_path / "runs"))
    monkeypatch.setattr(worker, "EVENT_SECONDS", 0.0)
    return tmp_path / "runs"


@pytest.fixture(scope="module")
def queue() -> Iterator[Jobs]:
    queue = Jobs()
    yield queue
    queue.close()


class Gate:
    """Stands in for the training loop: a step is done when the test allows it."""

    def __init__(self) -> None:
        self.allowed = threading.Semaphore(0)
        self.begun: list[RunConfig] = []
        self.left: list[RunConfig] = []
        self.done = 0  # steps of all runs

    def train(self, config: RunConfig) -> Iterator[History]:
        self.begun.append(config)
        try:
            for _ in range(config.steps):
                assert self.allowed.acquire(timeout=60)
                self.done += 1
                yield rows(1)
        finally:
            self.left.append(config)

    def open(self, steps: int = 1000) -> None:
        self.allowed.release(steps)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(Training, "__iter__", lambda run: gate.train(run.config))
    yield gate
    gate.open()
    until(lambda: len(gate.left) == len(gate.begun))


def until(happened: Callable[[], object], seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def status(queue: Jobs, config: RunConfig) -> Status:
    found = queue.status(config, None)
    assert found
    return found


def end(queue: Jobs, config: RunConfig) -> Status:
    until(lambda: status(queue, config).phase in ("finished", "cancelled", "failed"))
    return status(queue, config)


def test_a_run_is_what_the_engine_trains_and_is_stored(queue: Jobs) -> None:
    config = fresh()
    assert queue.status(config, "ann") is None
    assert queue.result(config) is None
    queue.submit(config, "ann")
    assert end(queue, config).phase == "finished"
    assert status(queue, config).sentence == ""
    stored = store.load(config)
    assert stored
    for history in (status(queue, config).history, queue.result(config).history, stored.history):
        assert_equal(history, trained(config))


def test_the_history_grows_while_it_trains(queue: Jobs, gate: Gate) -> None:
    config = fresh()
    queue.submit(config, "ann")
    assert len(status(queue, config).history) == 0
    for steps in range(1, STEPS):
        gate.open(1)
        until(lambda steps=steps: len(status(queue, config).history) == steps)
        assert status(queue, config).phase == "training"
        assert_equal(status(queue, config).history, rows(steps))


def test_a_run_that_diverges_is_finished(queue: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    config = fresh()
    monkeypatch.setattr(Training, "__iter__", lambda _: iter([rows(2), rows(1, np.inf)]))
    queue.submit(config, "ann")
    assert end(queue, config).phase == "finished"
    assert store.load(config).history.diverged_at == 3


def test_however_many_ask_at_once_it_is_one_run(queue: Jobs, gate: Gate) -> None:
    config, viewers = fresh(), [f"viewer {i}" for i in range(16)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda viewer: queue.submit(config, viewer), viewers))
    gate.open()
    assert end(queue, config).phase == "finished"
    assert gate.begun == [config]


def test_a_stored_run_is_not_computed_again(queue: Jobs, gate: Gate) -> None:
    config = fresh()
    gate.open()
    queue.submit(config, "ann")
    end(queue, config)
    other = Jobs()  # as after a restart of the app
    other.submit(config, "ann")
    assert other.status(config, "ann") is None
    assert_equal(other.result(config).history, rows(STEPS))


def test_the_only_viewer_cancels_and_the_task_stops(queue: Jobs, gate: Gate) -> None:
    config = replace(fresh(), steps=5000)
    queue.submit(config, "ann")
    gate.open(2)
    until(lambda: len(status(queue, config).history) == 2)
    assert queue.cancel(config, "ann")
    assert status(queue, config).phase == "cancelled"
    assert len(status(queue, config).history) == 2
    until(lambda: gate.open(1) or gate.left)
    assert gate.done < config.steps
    assert queue.result(config) is None


def test_a_run_goes_on_while_somebody_else_watches(queue: Jobs, gate: Gate) -> None:
    config = fresh()
    queue.submit(config, "ann")
    queue.status(config, "bob")
    assert not queue.cancel(config, "ann")
    gate.open()
    assert end(queue, config).phase == "finished"


def test_a_cancelled_run_stops_when_the_last_viewer_has_gone(queue: Jobs, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    config, now = replace(fresh(), steps=5000), 1000.0
    monkeypatch.setattr(job, "monotonic", lambda: now)
    queue.submit(config, "ann")
    queue.status(config, "bob")
    assert not queue.cancel(config, "ann")
    now += PAUSES * FASTEST
    gate.open(1)
    until(lambda: len(status(queue, config).history) == 1)
    assert queue.status(config, "ann").phase == "training"  # and her asking does not count: she has left
    now += 0.1
    until(lambda: gate.open(1) or gate.left)  # without anybody asking for its status
    assert gate.done < config.steps
    assert status(queue, config).phase == "cancelled"


@pytest.mark.parametrize(
    ("viewers", "seconds"), [(1, FASTEST), (TICKS, FASTEST), (40, 40 / TICKS), (60, 60 / TICKS), (80, SLOWEST), (1000, SLOWEST)]
)
def test_the_more_watch_the_more_rarely_each_is_to_ask(queue: Jobs, gate: Gate, viewers: int, seconds: float) -> None:
    config = fresh()
    queue.submit(config, "0")
    for viewer in range(viewers):
        queue.status(config, str(viewer))
    assert queue.pace() == pytest.approx(seconds)
    gate.open()
    end(queue, config)
    assert queue.pace() == FASTEST, "nobody watches a run that has ended"


def test_who_joins_again_has_not_left(queue: Jobs, gate: Gate) -> None:
    config = fresh()
    queue.submit(config, "ann")
    queue.submit(config, "bob")
    assert not queue.cancel(config, "ann")
    queue.submit(config, "ann")
    assert not queue.cancel(config, "bob")
    gate.open()
    assert end(queue, config).phase == "finished"


def test_the_queue_is_first_come_first_served(queue: Jobs, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "seconds", lambda config: 10.0)
    monkeypatch.setattr(job, "monotonic", lambda: 1000.0)
    runs = [fresh() for _ in range(4)]
    for config in runs:
        queue.submit(config, "ann")
    until(lambda: status(queue, runs[0]).phase == "training")
    assert [status(queue, config).position for config in runs] == [0, 1, 2, 3]
    assert [status(queue, config).seconds_left for config in runs] == [10, 20, 30, 40]
    assert queue.cancel(runs[1], "ann")
    assert status(queue, runs[1]).phase == "cancelled"
    assert [status(queue, config).position for config in runs[2:]] == [1, 2]
    gate.open()
    assert [end(queue, config).phase for config in runs] == ["finished", "cancelled", "finished", "finished"]
    assert [config for config in gate.begun if config != runs[1]] == [
        runs[0],
        *runs[2:],
    ]  # that one is stopped where Dask had just begun it
    assert queue.result(runs[1]) is None


def test_what_is_left_is_judged_by_the_own_pace(queue: Jobs, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "seconds", lambda config: float("nan"))
    config = fresh()
    queue.submit(config, "ann")
    assert status(queue, config).seconds_left is None
    gate.open(2)
    until(lambda: len(status(queue, config).history) == 2)
    assert 0 < status(queue, config).seconds_left < 60 * STEPS
    gate.open()
    assert end(queue, config).seconds_left is None


def test_a_full_queue_says_so(queue: Jobs, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMLAB_MAX_QUEUE", "2")
    first, second, third = (fresh() for _ in range(3))
    queue.submit(first, "ann")
    queue.submit(second, "ann")
    with pytest.raises(QueueFull, match=r"The queue is full: 2 runs .*NORMLAB_MAX_QUEUE"):
        queue.submit(third, "bob")
    assert queue.status(third, "bob") is None
    queue.submit(first, "bob")  # which needs no room
    assert queue.cancel(second, "ann")
    queue.submit(third, "bob")
    gate.open()
    assert end(queue, third).phase == "finished"


@pytest.mark.parametrize(("text", "most"), [("", 40), ("many", 40), ("nan", 40), ("0", 1), ("-3", 1), ("7", 7)])
def test_the_queue_has_a_bound_whatever_the_host_writes(monkeypatch: pytest.MonkeyPatch, text: str, most: int) -> None:
    monkeypatch.setenv("NORMLAB_MAX_QUEUE", text)
    assert max_queue() == most


def test_a_run_beyond_the_hosts_limits_is_refused(queue: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMLAB_MAX_STEPS", str(STEPS - 1))
    with pytest.raises(ConfigError, match="steps is 5"):
        queue.submit(fresh(), "ann")


def test_a_run_that_cannot_be_written_is_kept_and_written_later(queue: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write_text("a file where the folder should be")
    config, later = fresh(), fresh()
    queue.submit(config, "ann")
    assert end(queue, config).phase == "finished"
    assert status(queue, config).sentence.startswith(f"The run could not be written to {folder}")
    assert status(queue, config).sentence.endswith("It is kept until the app stops.")
    assert store.load(config) is None
    queue.submit(config, "bob")  # joins what is there
    assert_equal(queue.result(config).history, trained(config))
    folder.unlink()
    queue.submit(later, "ann")
    end(queue, later)
    until(lambda: status(queue, config).sentence == "")
    assert_equal(store.load(config).history, trained(config))


def test_a_run_whose_numbers_xla_may_have_moved_is_shown_and_not_stored(queue: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this process was told: its worker may be on another machine."""
    finished = Training.finished

    def elsewhere(*arguments: Any) -> Run:
        run = finished(*arguments)
        return replace(run, facts=replace(run.facts, xla_flags="--xla_cpu_enable_fast_math=true"))

    monkeypatch.setattr(Training, "finished", elsewhere)
    config = fresh()
    queue.submit(config, "ann")
    assert end(queue, config).phase == "finished"
    assert "it was computed with XLA_FLAGS='--xla_cpu_enable_fast_math=true'" in status(queue, config).sentence
    assert_equal(queue.result(config).history, trained(config))
    assert store.load(config) is None


def test_a_worker_without_a_device_says_so(queue: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_device(*_: object) -> NoReturn:
        raise DeviceError("JAX does not start here with JAX_PLATFORMS=foo: there is no foo.")

    monkeypatch.setattr(training, "compile_program", no_device)
    config = fresh()
    queue.submit(config, "ann")
    assert (end(queue, config).phase, status(queue, config).sentence) == (
        "failed",
        "The run failed: JAX does not start here with JAX_PLATFORMS=foo: there is no foo.",
    )


def test_a_run_that_fails_says_why_and_can_be_run_again(
    queue: Jobs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Training) -> Iterator[History]:
        yield rows(2)
        raise MemoryError("No room for 3 GB.\nand much more text")

    config = fresh()
    with monkeypatch.context() as patch:
        patch.setattr(Training, "__iter__", broken)
        queue.submit(config, "ann")
        assert end(queue, config).phase == "failed"
    assert status(queue, config).sentence == "The run failed: No room for 3 GB."
    assert "Traceback" in caplog.text
    assert queue.result(config) is None
    queue.submit(config, "ann")
    assert end(queue, config).phase == "finished"
    assert_equal(queue.result(config).history, trained(config))


def test_a_cancelled_run_can_be_run_again_while_it_is_still_stopping(queue: Jobs, gate: Gate) -> None:
    config = fresh()
    queue.submit(config, "ann")
    gate.open(1)
    until(lambda: len(status(queue, config).history) == 1)
    assert queue.cancel(config, "ann")
    queue.submit(config, "ann")
    assert status(queue, config).phase == "waiting"
    assert len(status(queue, config).history) == 0
    gate.open()
    assert end(queue, config).phase == "finished"
    assert gate.begun == [config, config]
    assert_equal(queue.result(config).history, rows(STEPS))


def test_many_runs_leave_little_behind(queue: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "__iter__", lambda _: iter([rows(1)] * STEPS))
    runs = [fresh() for _ in range(KEPT + 10)]
    for config in runs:
        queue.submit(config, "ann")
    until(lambda: [config for config in runs if queue.status(config, None)] == runs[-KEPT:])
    until(lambda: all(store.load(config) for config in runs))
    scheduler = queue._client.cluster.scheduler
    until(lambda: not scheduler.tasks)
    assert not queue._client.futures
    assert all(len(events) <= 100 for events in scheduler.get_events().values())


def test_two_apps_on_one_scheduler_share_a_run(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster

    cluster = LocalCluster(protocol="tcp://", host="127.0.0.1", **LOCAL)
    monkeypatch.setenv("NORMLAB_SCHEDULER", cluster.scheduler_address)
    one, other, config = Jobs(), Jobs(), fresh()
    try:
        one.submit(config, "ann")
        other.submit(config, "bob")
        until(lambda: [len(wanted.who_wants) for wanted in cluster.scheduler.tasks.values()] == [2])
        assert one.cancel(config, "ann")  # she cannot stop what another app wants
        gate.open()
        assert end(other, config).phase == "finished"
        assert status(one, config).phase == "cancelled"
        assert gate.begun == [config]
    finally:
        one.close()
        other.close()
        cluster.close()


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMLAB_SCHEDULER", "nowhere")
    queue, config = Jobs(), fresh()
    with pytest.raises(JobsError, match=r"^NORMLAB_SCHEDULER is 'nowhere'; no Dask scheduler answers there\.$"):
        queue.submit(config, "ann")
    assert queue.status(config, "ann") is None


def test_after_closing_a_submit_starts_anew(gate: Gate) -> None:
    queue, config = Jobs(), fresh()
    queue.submit(config, "ann")
    gate.open(2)
    until(lambda: len(status(queue, config).history) == 2)
    gate.open()
    queue.close()
    assert status(queue, config).phase in ("cancelled", "finished")
    other = fresh()
    queue.submit(other, "ann")
    assert end(queue, other).phase == "finished"
    queue.close()


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[2], env=os.environ)


def test_importing_it_imports_neither_jax_nor_dask() -> None:
    done = run_python(
        "import sys, core.jobs.queue; core.jobs.queue.Jobs(); print({'jax', 'dask', 'distributed', 'streamlit'} & set(sys.modules))"
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")


@pytest.mark.parametrize("phase", ["compiling", "training"])
def test_leaving_while_a_run_is_on_its_way_is_quiet(phase: str) -> None:
    done = run_python(f"""
import time
from core.jobs.queue import Jobs
from core.runs.config import RunConfig
queue, config = Jobs(), RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5000)
queue.submit(config, "ann")
queue.submit(RunConfig(layers=3, width=16, heads=2, length=8, batch=4), "ann")
while queue.status(config, "ann").phase != {phase!r}:
    time.sleep(0.001)
print("leaving")
""")
    assert (done.stdout, done.stderr, done.returncode) == ("leaving\n", "", 0)

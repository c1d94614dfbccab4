"""What a task sends, and how it makes way for others."""

import os
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
from distributed import get_worker
from made_run import assert_equal, made_history

from core.jobs.cluster import connect
from core.jobs.worker import NICENESS, from_stream, lower_priority, still_wanted, to_stream


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_what_is_sent_arrives(steps: int) -> None:
    history = made_history(partial(np.random.default_rng(steps).normal, 0.0, 1.0), steps, 4)
    history["loss"][-1:] = np.nan
    history["gradient_norm"][-1:] = np.inf
    assert_equal(from_stream(to_stream(history)), history)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
def test_only_the_own_thread_and_those_it_starts_make_way() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def compute() -> None:
        lower_priority()
        lower_priority()
        found.append(niceness())
        thread = threading.Thread(target=lambda: found.append(niceness()))
        thread.start()
        thread.join()

    found: list[int] = []
    before = niceness()
    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
    assert found == [max(before, NICENESS)] * 2
    assert niceness() == before


polled, stopped = threading.Event(), threading.Event()


def poll() -> None:
    """A task that does nothing but ask whether it is wanted."""
    worker, deadline = get_worker(), time.monotonic() + 60
    while still_wanted(worker, worker.get_current_task()):
        polled.set()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    stopped.set()


def test_still_wanted_until_no_client_holds_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NORMLAB_SCHEDULER", raising=False)
    client = connect()
    try:
        future = client.submit(poll)
        assert polled.wait(60)
        assert not stopped.wait(0.2)
        future.release()
        assert stopped.wait(60)
    finally:
        client.close()

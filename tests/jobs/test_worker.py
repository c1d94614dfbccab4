"""What a task sends, and how it makes way for others."""

import os
import sys
import threading
from functools import partial

import numpy as np
import pytest
from made_run import assert_equal, made_history

from core.jobs.worker import NICENESS, lower_priority, packed, unpacked


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_what_is_packed_is_unpacked(steps: int) -> None:
    history = made_history(partial(np.random.default_rng(steps).normal, 0.0, 1.0), steps, 4)
    history["loss"][-1:] = np.nan
    history["gradient_norm"][-1:] = np.inf
    assert_equal(unpacked(packed(history)), history)


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

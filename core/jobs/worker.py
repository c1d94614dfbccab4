"""A run as a task for a Dask worker, of this process or of a cluster."""

import contextlib
import math
import os
import sys
import threading
import time
from typing import Any

import pyarrow as pa

from core.runs.config import RunConfig
from core.runs.history import History

TOPIC = "norm-placement-lab"  # of the events that a task sends
EVENT_SECONDS = 0.25  # between two events of a task
NICENESS = 10
COMPUTING = threading.Lock()  # held while this process computes a run: it must not exit under XLA's feet
at_work: set[str] = set()  # the key of the task that is computed here, if there is one


def compute(settings: dict[str, Any]) -> bytes:
    """Trains the run with these settings and returns its Parquet file, or nothing where no client wants it any more.

    On the way it sends events: {key, phase}, and while training with `rows`, new steps of the history, `steps`, how many there are with
    them, and `seconds`, what all these took.
    """
    from distributed import get_worker

    with COMPUTING, contextlib.ExitStack() as at_end:
        worker = get_worker()
        key = str(worker.get_current_task())
        if not still_wanted(worker, key):
            return b""
        at_work.add(key)
        at_end.callback(at_work.discard, key)
        lower_priority()
        from core.engine import training

        config = RunConfig.from_dict(settings)

        def tell(phase: str, **more: Any) -> None:
            worker.log_event(TOPIC, {"key": key, "phase": phase, **more})

        tell("compiling")
        program = training.compile_program(config)
        run = training.Training(config, program)
        tell("training")
        history = untold = History.empty(config.layers)
        started, told = time.perf_counter(), -math.inf
        for chunk in run:
            if not still_wanted(worker, key):
                return b""
            history, untold = history + chunk, untold + chunk
            now = time.perf_counter()
            if now - told >= EVENT_SECONDS:
                tell("training", rows=to_stream(untold), steps=len(history), seconds=now - started)
                untold, told = History.empty(config.layers), now
        return run.finished(history, time.perf_counter() - started).to_parquet()


def still_wanted(worker: Any, key: Any) -> bool:
    """Whether a client still wants the result. To be asked again and again, since a thread cannot be stopped from outside.

    It rests on how Dask works inside: once no client holds the task, the scheduler tells the worker, which changes the task's state.
    """
    task = worker.state.tasks.get(key)
    return task is not None and task.state == "executing"


def lower_priority() -> None:
    """Lets everything else on the machine go before this thread and those that it starts, as JAX does on its first use."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(os.getpriority(os.PRIO_PROCESS, thread), NICENESS))


def to_stream(history: History) -> bytes:
    """The history as an Arrow IPC stream."""
    table, sink = history.to_table(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def from_stream(rows: bytes) -> History:
    return History.from_table(pa.ipc.open_stream(rows).read_all())

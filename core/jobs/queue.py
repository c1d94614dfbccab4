"""Runs on their way: one per configuration however many ask, computed by Dask, watched and cancelled from any thread.

What computes them is one thread of this process, or the cluster whose scheduler NORMLAB_SCHEDULER names. Finished runs are written
here, by the process that asked: a cluster needs no access to the store.
"""

import atexit
import contextlib
import logging
import math
import os
import sys
import threading
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from core import host
from core.jobs import estimate
from core.jobs.cluster import SCHEDULER_TOPIC, ClusterError, connect, lost_tasks, submit_in_turn
from core.jobs.job import Job, Phase
from core.jobs.worker import COMPUTING, TOPIC, at_work, compute
from core.runs import store
from core.runs.config import RunConfig, admit
from core.runs.file import Run
from core.runs.history import History
from core.values import first_line

MAX_QUEUE = 40  # unfinished runs, unless NORMLAB_MAX_QUEUE says otherwise
KEPT, KEPT_UNWRITTEN = 20, 200  # ended runs: those that can be had again, and finished ones that the store did not take
TICKS = 15  # questions a second that viewers may ask, however many there are: each costs about 20 ms of CPU (docs/hosting.md)
FASTEST, SLOWEST = 1.0, 5.0  # seconds between two questions of a viewer
PAUSES = 4  # without a question, and a viewer is gone
CLOSE_SECONDS = 120  # a compilation, or a step, cannot be interrupted
EXIT_SECONDS = 15  # for which the end of the process waits for one
log = logging.getLogger(__name__)


class JobsError(RuntimeError):
    """The run cannot be computed now; the text is one sentence for the user."""


class QueueFull(JobsError):  # noqa: N818 (it is no fault)
    """As many runs as the host allows are on their way; the text is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Status:
    phase: Phase
    history: History  # so far
    position: int  # runs ahead in the queue, 0 when being computed
    seconds_left: float | None  # until it is finished, the runs ahead included; None where that is unknown, or it has ended
    sentence: str  # what the user should know besides, or ""


class Jobs:
    """The runs that this process was asked for. Dask is not even imported before the first one."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}  # by the configurations' keys, first come first
        self._lock = threading.RLock()  # held for moments only: Dask's event loop waits for it, too
        self._connecting = threading.Lock()
        self._client: Any = None
        self._watching_seconds = PAUSES * FASTEST  # who asked for a run's status within them is watching it
        self._slots = 1  # runs that are computed at the same time

    def submit(self, config: RunConfig, viewer: str) -> None:
        """Starts the run, or joins it where it is known or on its way.

        Raises ConfigError where the host does not allow it, QueueFull, and JobsError where no scheduler answers.
        """
        if self._join(config, viewer) or store.load_complete(config):
            return
        admit(config)
        client, expected = self._connect(), estimate.seconds(config)
        with self._lock:
            if self._join(config, viewer):
                return
            most = max_queue()
            if sum(not job.ended for job in self._jobs.values()) >= most:
                raise QueueFull(
                    f"The queue is full: {most} runs are waiting or being computed, as many as this machine's host allows "
                    "(NORMLAB_MAX_QUEUE). Please try again a little later."
                )
            before = self._jobs.pop(config.key, None)
            job = Job(config, before.attempt + 1 if before else 0, expected, History.empty(config.layers))
            job.join(viewer)
            try:
                future = job.future = submit_in_turn(client, compute, config.to_dict(), key=job.key)
            except Exception as error:  # Dask has nothing narrower for a client that was closed meanwhile
                raise JobsError("The connection to the scheduler was just lost; please try again.") from error
            self._jobs[config.key] = job
        threading.Thread(target=self._follow, args=(job, future), daemon=True).start()

    def status(self, config: RunConfig, viewer: str | None) -> Status | None:
        """Where the run stands, or None where it is neither on its way nor kept here. A viewer who asks is watching it."""
        with self._lock:
            job = self._jobs.get(config.key)
            if job is None:
                return None
            if viewer is not None:
                job.watch(viewer)
            self._stop_abandoned()
            ahead = self._ahead(job)
            if job.phase == "waiting" and not ahead and self._still_finishing():
                return Status(job.phase, job.history, 0, None, "A run that was cancelled is still finishing its step.")
            seconds = job.seconds_left + sum(other.seconds_left for other in ahead) / self._slots
            return Status(job.phase, job.history, len(ahead), None if job.ended or math.isnan(seconds) else seconds, job.sentence)

    def cancel(self, config: RunConfig, viewer: str) -> bool:
        """Stops the run unless somebody else is watching it: then it returns False, and the run stops once they have left, too."""
        with self._lock:
            job = self._jobs.get(config.key)
            if job is None or job.ended:
                return True
            job.left.add(viewer)
            self._stop_abandoned()
            return job.ended

    def pace(self) -> float:
        """Seconds that a viewer of a run on its way is to wait until the next question, so that all together ask TICKS a second."""
        with self._lock:
            unfinished = [job for job in self._jobs.values() if not job.ended]
            viewers = {viewer for job in unfinished for viewer in job.watchers(self._watching_seconds)}
            self._watching_seconds = PAUSES * min(max(len(viewers) / TICKS, FASTEST), SLOWEST)
            return self._watching_seconds / PAUSES

    def result(self, config: RunConfig) -> Run | None:
        """The finished run, also where the store did not take it."""
        with self._lock:
            job = self._jobs.get(config.key)
        return job.run if job and job.run else store.load(config)

    def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Stops every run and what computes them; returns whether that was done within the time. A later `submit` starts anew."""
        with self._lock:
            for job in self._jobs.values():
                if not job.ended:
                    job.end("cancelled")
        if not COMPUTING.acquire(timeout=seconds):
            return False
        COMPUTING.release()
        with self._connecting:
            self._disconnect()
        return True

    def _exit(self) -> None:
        """At the end of the process: an interpreter that exits while XLA computes crashes, and finished runs are on disk."""
        if not self.close(EXIT_SECONDS):
            sys.stdout.flush()
            os._exit(0)

    def _exit_before_jax(self) -> None:
        """Runs must be stopped before JAX closes itself, which it asks for when it is imported; what is registered last is done first."""
        atexit.unregister(self._exit)
        atexit.register(self._exit)

    def _join(self, config: RunConfig, viewer: str) -> bool:
        with self._lock:
            job = self._jobs.get(config.key)
            if job is None or job.phase in ("cancelled", "failed"):
                return False
            job.join(viewer)
            return True

    def _ahead(self, job: Job) -> list[Job]:
        if job.phase != "waiting":
            return []
        return [other for other in takewhile(lambda other: other is not job, self._jobs.values()) if not other.ended]

    def _still_finishing(self) -> bool:
        """Whether this process still computes a run that has been cancelled, since no step can be interrupted."""
        return bool(at_work - {job.key for job in self._jobs.values() if not job.ended})

    def _stop_abandoned(self) -> None:
        for job in self._jobs.values():
            if not job.ended and job.abandoned(self._watching_seconds):
                job.end("cancelled")
        self._forget()

    def _forget(self) -> None:
        """Keeps memory bounded: the first to come are the first to go."""
        ended = [job for job in self._jobs.values() if job.ended]
        for unwritten, most in ((False, KEPT), (True, KEPT_UNWRITTEN)):
            for job in [job for job in ended if job.unwritten == unwritten][:-most]:
                del self._jobs[job.config.key]

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Takes an event of a task; Dask's event loop calls it."""
        _, message = event
        with self._lock:
            for job in self._jobs.values():
                if job.key == message["key"] and not job.ended:
                    job.hear(message)
            self._stop_abandoned()
        if message["phase"] == "compiling":  # JAX is imported now
            self._exit_before_jax()

    def _hear_of_workers(self, event: tuple[float, dict[str, Any]]) -> None:
        _, message = event
        lost = lost_tasks(message)
        with self._lock:
            for job in self._jobs.values():
                if not job.ended and job.key in lost:
                    job.lose_worker()

    def _follow(self, job: Job, future: Any) -> None:
        """Waits for what comes of a task, in a thread of its own."""
        try:
            run = Run.from_parquet(future.result())
        except Exception as error:
            if not job.ended:  # else it was released
                log.error("%s failed", job.key, exc_info=error)
                with self._lock:
                    job.end("failed", reason(error))
            return
        sentence = write(run)
        with self._lock:
            job.run, job.history = run, run.history
            job.end("finished", sentence)
            unwritten = [(other, other.run) for other in self._jobs.values() if other.unwritten and other.run and not sentence]
        for other, kept in unwritten:  # the store takes runs again
            other.sentence = write(kept)

    def _connect(self) -> Any:
        """The client; a new one where there is none, or where its connection was lost. Raises JobsError."""
        with self._connecting:
            if self._client is None or self._client.status != "running":
                self._disconnect()
                try:
                    self._client = connect()
                except ClusterError as error:
                    raise JobsError(str(error)) from error
                self._slots = max(sum(self._client.nthreads().values()), 1)
                self._client.subscribe_topic(TOPIC, self._hear)
                self._client.subscribe_topic(SCHEDULER_TOPIC, self._hear_of_workers)
                atexit.register(self._exit)
            return self._client

    def _disconnect(self) -> None:
        if self._client is not None:
            atexit.unregister(self._exit)
            with contextlib.suppress(TimeoutError):
                self._client.unsubscribe_topic(SCHEDULER_TOPIC)
                self._client.close(timeout=CLOSE_SECONDS)
            self._client = None


def max_queue() -> int:
    most = host.number("MAX_QUEUE")
    return MAX_QUEUE if most is None else max(int(most), 1)


def write(run: Run) -> str:
    """Puts the run into the store; returns the sentence to show where that fails."""
    try:
        store.save(run)
    except store.StoreError as error:
        return f"{error} It is kept until the app stops."
    return ""


def reason(error: Exception) -> str:
    """One sentence on why a task has no result."""
    from distributed import CancelledError, KilledWorker

    if isinstance(error, KilledWorker):
        return "The run failed: it was begun several times, and each time its worker was lost."
    if isinstance(error, CancelledError):
        return "The run failed: the connection to the scheduler was lost."
    return f"The run failed: {first_line(error)}."

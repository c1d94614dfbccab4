"""Where a run stands: finished and known, on its way, or not asked for yet."""

from dataclasses import dataclass

import streamlit as st

from core.data_tasks import TASKS
from core.figures.axes import Line
from core.jobs.queue import Jobs, Status
from core.once import once
from core.runs import store
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.history import History
from pages.ui.shared.state import comparison, viewer

ON_THE_WAY = ("waiting", "compiling", "training")


JOBS = Jobs()  # of this process, and of no session; a cache of Streamlit's would be emptied by any visitor who asks for that


def jobs() -> Jobs:
    return JOBS


@dataclass(frozen=True, slots=True)
class Result:
    """A run of the comparison with what is known of it."""

    slot: int
    label: str
    config: RunConfig
    run: Run | None  # when it is finished; while it is computed anew, the one before
    status: Status | None  # while it is on its way, and where it ended without finishing

    @property
    def history(self) -> History | None:
        if self.run:
            return self.run.history
        return self.status.history if self.status and len(self.status.history) else None

    @property
    def running(self) -> bool:
        return self.status is not None and self.status.phase in ON_THE_WAY

    @property
    def missing(self) -> bool:
        """Whether there is something to compute: the run, or what it did not record when it was computed."""
        return not self.running and (self.run is None or bool(self.run.history.absent))


def results() -> list[Result]:
    runs = comparison()
    return [result(slot, runs.labels[slot], config) for slot, config in runs.runs.items()]


def result(slot: int, label: str, config: RunConfig) -> Result:
    try:
        return Result(slot, label, config, stored_run(config), None)
    except LookupError:
        return Result(slot, label, config, jobs().result(config), jobs().status(config, viewer()))


def own_runs() -> set[RunConfig]:
    """The runs that this session has asked for."""
    configs: set[RunConfig] = st.session_state.setdefault("started", set())
    return configs


def strays() -> list[RunConfig]:
    """Runs on their way that this session has started and no longer has in its comparison."""
    outside = own_runs() - set(comparison().runs.values())
    return [config for config in outside if (status := jobs().status(config, viewer())) and status.phase in ON_THE_WAY]


def running(entries: list[Result]) -> list[RunConfig]:
    """Everything on its way that this session has to do with."""
    return [entry.config for entry in entries if entry.running] + strays()


def to_do(entries: list[Result]) -> tuple[list[RunConfig], list[RunConfig]]:
    """What can be cancelled, and what can be started."""
    return running(entries), [entry.config for entry in entries if entry.missing]


@once(64)
def stored_run(config: RunConfig) -> Run:
    """The finished run. Raises LookupError, which is not cached, where there is none yet, or one that has not recorded all."""
    if run := store.load_complete(config):
        return run
    raise LookupError(config.key)


def lines(shown: list[Result]) -> list[Line]:
    """What the charts draw: the runs that are not hidden and have something to show."""
    hidden = comparison().hidden
    return [
        Line(entry.slot, entry.label, entry.history, TASKS[entry.config.task], entry.config.steps if entry.running else 0)
        for entry in shown
        if entry.slot not in hidden and entry.history
    ]

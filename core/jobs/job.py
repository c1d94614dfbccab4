"""A run that was asked for: where it stands, and who is watching it."""

from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

from core.jobs.worker import from_stream
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.history import History

Phase = Literal["waiting", "compiling", "training", "finished", "cancelled", "failed"]


@dataclass(eq=False, slots=True)
class Job:
    """One submission of a run, guarded by the lock of Jobs."""

    config: RunConfig
    attempt: int
    expected: float  # seconds that it takes as a whole, nan where unknown
    history: History
    phase: Phase = "waiting"
    first: tuple[int, float] = (0, 0.0)  # steps done and seconds spent, as the first message about steps said
    latest: tuple[int, float] = (0, 0.0)  # the same, as the last one said
    begun: float | None = None  # when its computation was first heard of
    sentence: str = ""
    future: Any = None
    run: Run | None = None
    asked: dict[str, float] = field(default_factory=dict)  # when each viewer last asked for the status
    left: set[str] = field(default_factory=set)  # the viewers who cancelled

    @property
    def key(self) -> str:
        """The task's name. Each attempt has its own: Dask may still be stopping the one before."""
        return f"train-{self.config.key}-{self.attempt}"

    @property
    def ended(self) -> bool:
        return self.phase in ("finished", "cancelled", "failed")

    @property
    def unwritten(self) -> bool:
        """Whether the run is finished and kept nowhere but here."""
        return self.phase == "finished" and self.sentence != ""

    def watchers(self, seconds: float) -> set[str]:
        """The viewers who asked for its status within these seconds, and have not cancelled it."""
        now = monotonic()
        return {viewer for viewer, asked in self.asked.items() if now - asked <= seconds} - self.left

    def abandoned(self, seconds: float) -> bool:
        """Whether somebody cancelled it and nobody else is watching."""
        return bool(self.left) and not self.watchers(seconds)

    @property
    def seconds_left(self) -> float:
        """Until it is finished, without the runs ahead: from the time that its own steps took, else from what was expected."""
        steps, seconds = (now - then for now, then in zip(self.latest, self.first, strict=True))
        if steps:
            return (self.config.steps - self.latest[0]) * seconds / steps
        return self.expected if self.begun is None else max(self.expected - (monotonic() - self.begun), 0.0)

    def join(self, viewer: str) -> None:
        self.left.discard(viewer)
        self.watch(viewer)

    def watch(self, viewer: str) -> None:
        self.asked[viewer] = monotonic()

    def hear(self, message: dict[str, Any]) -> None:
        """Takes in an event of the task."""
        self.phase = message["phase"]
        self.begun = self.begun or monotonic()
        if "rows" in message:
            self.latest = message["steps"], message["seconds"]
            self.first = self.first if self.first[0] else self.latest
            together = self.history + from_stream(message["rows"])
            if len(together) == message["steps"]:  # else the run was under way before this process asked for it
                self.history = together

    def lose_worker(self) -> None:
        """Its worker is gone: the scheduler gives it to another one."""
        if self.phase != "waiting":
            self.phase, self.history, self.begun = "waiting", History.empty(self.config.layers), None
            self.first = self.latest = 0, 0.0
            self.sentence = "Its worker was lost; another one will compute it from the first step."

    def end(self, phase: Phase, sentence: str = "") -> None:
        """Releases the task: where it is not done, it stops at its next chunk or is never begun."""
        self.phase, self.sentence = phase, sentence
        if self.future:
            self.future.release()
            self.future = None

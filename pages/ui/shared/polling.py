"""How often a page asks for news of the runs that it shows."""

from core.jobs.queue import SLOWEST
from pages.ui.shared.results import Result, jobs, running

OLD = 3.0  # seconds: a page says so if its figures may be older


def seconds(entries: list[Result], now: float | None) -> float | None:
    """Until the page asks again; None where nothing can come. `now` is what it waits so far, and stays unless it is far from what fits."""
    if running(entries):
        fitting = jobs().pace()
        return now if now and fitting / 1.5 <= now <= fitting * 1.5 else fitting
    return SLOWEST if any(entry.missing for entry in entries) else None  # somebody else may have it computed

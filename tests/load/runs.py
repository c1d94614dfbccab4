"""Runs that nobody has computed yet."""

from itertools import count

from core.runs.config import RunConfig
from core.state.address import write_run

SEEDS = count(1000)
STEPS = 600  # of a run that is watched: some twenty seconds on two cores


def article_run(steps: int = STEPS) -> RunConfig:
    """In the article's shape."""
    return RunConfig(steps=steps, seed=next(SEEDS))


def tiny_run(steps: int = 5) -> RunConfig:
    return RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=steps, seed=next(SEEDS))


def address(*runs: RunConfig) -> str:
    """The query of a comparison of these runs."""
    return "&".join(f"run{slot}={write_run(run)}" for slot, run in enumerate(runs, 1))

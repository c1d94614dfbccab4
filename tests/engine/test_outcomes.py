"""Real runs end as core/runs/outcome.py says, at settings where the word does not hang on a machine's roundings."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.data_tasks import TASKS
from core.runs.config import RunConfig
from core.runs.history import History
from core.runs.outcome import outcome

ENDS: dict[str, dict[str, Any]] = {
    "learned": {"steps": 240, "learning_rate": 0.02},
    "still learning": {"steps": 60, "learning_rate": 1e-3},
    "plateau": {"steps": 480, "learning_rate": 0.1, "warmup": 1.0},  # the rate climbs until it is too bold to get further
    "stuck": {"steps": 60, "learning_rate": 1e-5},
    "worse than guessing": {"placement": "none", "steps": 60, "learning_rate": 1.0},
    "lost it": {"steps": 240, "learning_rate": 1.0, "warmup": 1.0},  # the rate climbs until it undoes what was learned
    "diverged": {"placement": "none", "layers": 48, "width": 64, "steps": 60},
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("word", ENDS)
def test_a_real_run_ends_as_told(word: str, tiny: RunConfig, history_of: Callable[[RunConfig], History]) -> None:
    assert outcome(history_of(replace(tiny, **ENDS[word])), TASKS["progression"]) == word

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks import stopwatch
from core.runs.config import RunConfig
from core.runs.presets import ARTICLE


def test_by_default_the_runs_are_the_articles() -> None:
    asked = stopwatch.parser("any").parse_args([])
    assert stopwatch.article_runs(**vars(asked)) == list(ARTICLE)


def test_they_can_be_deeper_shorter_and_fewer() -> None:
    asked = stopwatch.parser("any").parse_args(["--layers", "48", "--steps", "30", "--runs", "2"])
    assert stopwatch.article_runs(**vars(asked)) == [replace(config, layers=48, steps=30) for config in ARTICLE[:2]]


def test_the_first_step_is_told_apart_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0])
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: next(times))

    def steps() -> Iterator[tuple[float, float]]:
        nonlocal times
        for now, loss, norm in ((7.0, 4.0, 1.0), (7.25, 3.0, 7.0), (8.0, 2.0, 5.0)):
            times = iter([now])
            yield loss, norm

    about = json.loads(stopwatch.time_steps(RunConfig(placement="post", warmup=2 / 3), steps()))
    assert about == {
        "placement": "post",
        "warmup_steps": 120,
        "final_loss": 2.0,
        "largest_gradient_norm": 7.0,
        "ms_per_step": 500.0,
        "compile_seconds": 7.0,
    }

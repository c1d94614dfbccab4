import json
from dataclasses import replace

import jax
import pytest
from quick import quick_jit

from benchmarks import baseline, ratios, stopwatch
from core.runs.config import RunConfig
from core.runs.presets import ARTICLE


def test_it_prints_a_line_of_json_for_each_of_the_articles_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = []

    def train(config: RunConfig) -> list[tuple[float, float]]:
        trained.append(config)
        return [(4.0, 1.0), (3.0, 7.0), (2.0, 5.0)]

    monkeypatch.setattr(baseline, "train", train)
    baseline.main([])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert trained == list(ARTICLE)
    assert [(line["placement"], line["warmup_steps"]) for line in lines] == [("pre", 0), ("post", 0), ("post", 120)]
    assert {(line["final_loss"], line["largest_gradient_norm"]) for line in lines} == {(2.0, 7.0)}


@pytest.mark.parametrize("shape", ratios.SHAPES)
def test_it_trains_what_bench_asks_for(shape: ratios.Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []

    def train(config: RunConfig) -> list[tuple[float, float]]:
        trained.append(config)
        return [(4.0, 1.0), (3.0, 7.0)]

    monkeypatch.setattr(baseline, "train", train)
    _, module, *arguments = ratios.commands_of(shape, "cpu")[ratios.OWN]
    assert module == baseline.__name__
    baseline.main(arguments)
    assert trained == stopwatch.article_runs(shape.layers, shape.steps, shape.runs)


def test_it_learns(tiny: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "jit", quick_jit)
    losses = [loss for loss, _ in baseline.train(replace(tiny, layers=1, steps=60, learning_rate=1e-2))]
    assert losses[-1] < 0.5 * losses[0]

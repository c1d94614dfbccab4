import json
from dataclasses import replace

import numpy as np
import pytest

from core.config import RunConfig
from core.engine import baseline


def test_it_prints_a_line_of_json_for_each_run(
    tiny: RunConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [tiny, replace(tiny, placement="post", final_norm=None, warmup=0.5)]
    monkeypatch.setattr(baseline, "ARTICLE", runs)
    baseline.main()
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for config, about in zip(runs, printed, strict=True):
        loss_s, norm_s = np.array(list(baseline.train(config))).T
        assert (about["placement"], about["warmup_steps"]) == (config.placement, config.warmup_steps)
        assert (about["final_loss"], about["largest_gradient_norm"]) == (loss_s[-1], norm_s.max())
        assert about["compile_seconds"] > 0
        assert about["ms_per_step"] > 0


def test_it_learns(tiny: RunConfig) -> None:
    losses = [loss for loss, _ in baseline.train(replace(tiny, steps=60, learning_rate=1e-2))]
    assert losses[-1] < 0.5 * losses[0]

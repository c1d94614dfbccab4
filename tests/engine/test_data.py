import numpy as np
import pytest

from core.engine.data import sequences, start_tokens_sb
from core.runs.config import VOCABULARY, RunConfig


@pytest.mark.parametrize("config", [RunConfig(), RunConfig(seed=0, batch=1, steps=3), RunConfig(seed=2**31 - 1, batch=7, length=128)])
def test_a_run_reads_what_the_article_draws_step_by_step(config: RunConfig) -> None:
    random = np.random.default_rng(config.seed + 116)
    for start_b in start_tokens_sb(config):
        drawn_bt = (random.integers(0, VOCABULARY, (config.batch, 1)) + np.arange(config.length + 1)) % VOCABULARY
        tokens_bt, targets_bt = sequences(start_b, config.length)
        np.testing.assert_array_equal(tokens_bt, drawn_bt[:, :-1])
        np.testing.assert_array_equal(targets_bt, drawn_bt[:, 1:])


def test_seeds_differ() -> None:
    assert (start_tokens_sb(RunConfig(seed=1)) != start_tokens_sb(RunConfig(seed=2))).any()

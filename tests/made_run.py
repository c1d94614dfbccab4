"""Runs that nobody trained: any numbers, in the shapes and types that training gives."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from core.runs.config import RunConfig
from core.runs.file import Facts, Run
from core.runs.history import BLOCK_COLUMNS, History

FACTS = Facts("2 x cpu", 1.5, 2.5, 100.0, {"jax": "0.0.0"})


def made_history(values: Callable[[tuple[int, ...]], Any], steps: int, layers: int) -> History:
    """A history whose columns `values` makes of their shapes."""
    shapes = [*[(steps,)] * 3, (steps, layers + 1), *[(steps, layers)] * len(BLOCK_COLUMNS)]
    loss_s, norm_s, rate_s, *rows_sl = (np.array(values(shape), np.float32) for shape in shapes)
    return History(loss_s, norm_s, rate_s.astype(float), *rows_sl)


def made_run(config: RunConfig, facts: Facts = FACTS, loss_s: Any = None) -> Run:
    """Any numbers that follow from the seed, or these losses."""
    random = np.random.default_rng(config.seed)
    history = made_history(partial(random.gamma, 1.0, 1.0), config.steps if loss_s is None else len(loss_s), config.layers)
    return Run(config, history if loss_s is None else replace(history, loss_s=np.array(loss_s, np.float32)), facts)

"""Runs that nobody trained: any numbers, in the shapes and types that training gives."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from core.runs.config import RunConfig
from core.runs.file import Facts, Run
from core.runs.history import History, dtype
from core.runs.quantities import QUANTITIES
from core.runs.schedule import learning_rate_s

FACTS = Facts("2 x cpu", 1.5, 2.5, 100.0, {"jax": "0.0.0"})


def made_history(values: Callable[[tuple[int, ...]], Any], steps: int, layers: int) -> History:
    """A history whose columns `values` makes of their shapes."""
    columns = {name: np.array(values((steps, *quantity.shape(layers))), np.float32) for name, quantity in QUANTITIES.items()}
    return History({name: column.astype(dtype(QUANTITIES[name])) for name, column in columns.items()})


def made_run(config: RunConfig, facts: Facts = FACTS, loss_s: Any = None) -> Run:
    """Any numbers that follow from the seed, or these losses; the learning rate is the configuration's."""
    random = np.random.default_rng(config.seed)
    steps = config.steps if loss_s is None else len(loss_s)
    history = made_history(partial(random.gamma, 1.0, 1.0), steps, config.layers).replace(learning_rate=learning_rate_s(config)[:steps])
    return Run(config, history if loss_s is None else history.replace(loss=np.array(loss_s, np.float32)), facts)


def assert_equal(one: History, other: History, rtol: float = 0.0) -> None:
    """Every quantity of two histories, of the same type."""
    assert one.columns.keys() == other.columns.keys()
    for name in one.columns:
        assert one[name].dtype == other[name].dtype
        np.testing.assert_allclose(one[name], other[name], rtol=rtol, err_msg=name)

"""Every placement of the table: how it starts, in the article's shape, and that it trains."""

import json
from functools import cache, reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest

from core.engine.training import Training, compile_program
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from core.runs.history import History

pytestmark = pytest.mark.usefixtures("quick")

GOLDEN = Path(__file__).parents[1] / "data" / "first_steps.json"


@cache
def history(config: RunConfig) -> History:
    return reduce(add, Training(config, compile_program(config, "cpu")))


def start(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The streams' mean squares (L + 1,) and the blocks' gradient norms (L,) before the first update."""
    first = history(RunConfig(placement=name, steps=1))
    return first["stream_rms"][0].astype(float) ** 2, first["block_gradient_norm"][0].astype(float)


def small(name: str) -> RunConfig:
    return RunConfig(placement=name, layers=4, width=32, heads=4, length=16, batch=8, steps=60, learning_rate=5e-3, warmup=0.2)


def measured(name: str) -> dict[str, float]:
    run = history(small(name))
    return {"loss": float(run["loss"][0]), "gradient_norm": float(run["gradient_norm"][0])}


@pytest.mark.parametrize("name", ["post", "deepnorm", "admin", "admin_profiled", "b2t", "residual_dual", "keel"])
def test_where_the_last_norm_is_on_the_stream_its_mean_square_is_one(name: str) -> None:
    square_l, _ = start(name)
    np.testing.assert_allclose(square_l[1:], 1, rtol=1e-4)


@pytest.mark.parametrize("name", ["sandwich", "peri", "output"])
def test_branches_that_end_in_a_norm_add_one_unit_each(name: str) -> None:
    """Peri-LN (2502.02732): the variance grows by one a branch, whatever the initialization."""
    square_l, _ = start(name)
    assert square_l[-1] == pytest.approx(square_l[0] + 2 * 12, rel=0.05)


def test_pre_norm_adds_alike_in_every_block() -> None:
    square_l, gradient_l = start("pre")
    lower, upper = square_l[6] - square_l[0], square_l[12] - square_l[6]
    assert upper / lower == pytest.approx(1, abs=0.5)
    assert square_l[12] > 8
    assert gradient_l[0] > 1.5 * gradient_l[-1]  # NormFormer's complaint (2110.09456)


@pytest.mark.parametrize("name", ["residual_scaling", "scaled_init"])
def test_one_over_the_root_of_their_number_lets_all_branches_add_a_fraction_of_one_unit(name: str) -> None:
    (plain_l, _), (square_l, gradient_l) = start("pre"), start(name)
    assert (square_l[1] - square_l[0]) * 24 == pytest.approx(plain_l[1] - plain_l[0], rel=0.3)
    assert square_l[-1] < 1.5
    assert gradient_l.max() < 1.5 * gradient_l.min()


def test_layernorm_scaling_grows_ever_slower() -> None:
    """Sun et al. 2025 (2502.05795)."""
    square_l, _ = start("ln_scaling")
    assert square_l[12] - square_l[6] < 0.5 * (square_l[6] - square_l[0])
    assert square_l[12] < 0.3 * start("pre")[0][12]


def test_deepnorms_gradient_is_the_same_in_every_block() -> None:
    _, gradient_l = start("deepnorm")
    assert gradient_l.max() < 1.2 * gradient_l.min()


def test_keels_first_block_has_by_far_the_largest_gradient_and_the_others_the_same() -> None:
    """Chen and Wei 2026 (2601.19895): the first block is the exception."""
    _, gradient_l = start("keel")
    assert gradient_l[0] > 4 * gradient_l[1:].max()
    assert gradient_l[1:].max() < 1.2 * gradient_l[1:].min()


def test_rezero_starts_as_its_embedding_and_layerscale_nearly() -> None:
    square_l, _ = start("rezero")
    np.testing.assert_array_equal(square_l, square_l[0])
    square_l, _ = start("layerscale")
    assert square_l[-1] == pytest.approx(square_l[0], rel=0.1)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_it_trains_at_a_sensible_rate(name: str) -> None:
    run = history(small(name))
    assert run.diverged_at is None
    assert len(run) == 60
    assert run["loss"][-5:].mean() < run["loss"][0] - 1


@pytest.mark.parametrize("name", PLACEMENTS)
def test_its_first_step_is_the_one_that_was_recorded(name: str) -> None:
    recorded = json.loads(GOLDEN.read_text())
    assert measured(name) == pytest.approx(recorded[name], rel=1e-4), (
        f"the first step of {name} has changed. If that is meant, raise its revision in core/placement/table.py, or, where all runs have "
        "changed, ENGINE_FORMAT in core/runs/config.py, and run `python -m core pack`. Then record the first steps anew: "
        "python -m tests.engine.test_placements"
    )


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: measured(name) for name in PLACEMENTS}, indent=2) + "\n")

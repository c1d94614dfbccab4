"""How results and placements are told."""

import numpy as np
import pytest
from made_run import made_history

from core.cli.report import Trained, blocks, norms, placement_dict, table
from core.placement.record import BlockSpec, Placement, Structure
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig


def result(*gradient_norms: float) -> Trained:
    norms_s = np.array(gradient_norms, np.float32)
    history = made_history(np.ones, len(norms_s), 1).replace(gradient_norm=norms_s)
    return Trained("label", RunConfig(layers=1), history, None)


@pytest.mark.parametrize(
    ("gradient_norms", "peak"),
    [((1.0, 3.0, 2.0), (2, 3.0)), ((1.0, 3.0, float("inf")), (2, 3.0)), ((float("nan"),), (None, pytest.approx(np.nan, nan_ok=True)))],
)
def test_the_peak_is_the_largest_finite_gradient_norm(gradient_norms: tuple[float, ...], peak: tuple[int | None, float]) -> None:
    assert result(*gradient_norms).peak == peak


def test_a_run_without_a_finite_step_can_be_told() -> None:
    broken = result(float("nan"))
    assert broken.row() == ("label", "1", "none finite", "diverged at step 1")
    gone = Trained("label", RunConfig(layers=1), broken.history.replace(loss=[np.inf]), None)
    assert gone.row()[1] == "beyond float32"
    assert '"largest_gradient_norm": null' in broken.to_json()
    assert broken.sentences().startswith("Diverged at step 1")


def test_where_norms_sit_is_told_from_the_record_of_the_placement() -> None:
    assert [norms(PLACEMENTS[name]) for name in ("pre", "post", "none")] == ["input", "outer", "none"]
    first = Structure(frozenset({"outer"}), frozenset({"outer"}))
    later = Structure(frozenset({"output", "input"}), frozenset({"inner", "input"}))
    mixed = Placement("mixed", "", lambda layer, layers: BlockSpec(first if layer <= 3 else later), True, "", "", "", "", "")
    assert norms(mixed) == "outer (blocks 1 to 3); input + output (attention), input + inner (feed-forward) (blocks 4 to 12)"
    later_run = {"first": 4, "last": 12, "attention": ["input", "output"], "feed_forward": ["input", "inner"]}
    assert blocks(mixed)[1].items() >= later_run.items()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hybrid", "outer (attention), none (feed-forward) + key, query, value of each head"),
        ("peri", "input + output; embedding"),
        ("keel", "input (attention), input + outer (feed-forward) (block 1); input + outer (blocks 2 to 12)"),
    ],
)
def test_norms_of_heads_and_of_the_embedding_are_told_too(name: str, words: str) -> None:
    assert norms(PLACEMENTS[name]) == words


def test_a_placements_equation_and_jacobian_are_told_in_latex() -> None:
    about = placement_dict(PLACEMENTS["deepnorm"])
    [run] = about["blocks"]
    assert run["equation"] == [r"h = N(\alpha x + A(x))", r"x' = N(\alpha h + F(h))"]
    assert run["jacobian"] == r"J_{N} (\alpha I + J_{F}) J_{N} (\alpha I + J_{A})"
    assert run["scales"] == [r"\alpha = 2.213"]
    assert run["initial_gains"] == [r"W_V, W_O, W_1, W_2\ \text{start times}\ 0.3195"]
    assert about["trap"] == PLACEMENTS["deepnorm"].trap


def test_a_table_aligns_its_columns() -> None:
    assert table([("run", "loss"), ("Pre-Norm", "1")]) == "run       loss\nPre-Norm  1"

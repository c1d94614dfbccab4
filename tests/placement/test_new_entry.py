"""A new placement is one entry of PLACEMENTS: everything that is shown, computed and measured follows from it."""

import json
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import core.engine.devices  # noqa: F401 (it tells JAX how many CPU devices to have, which must come before JAX starts)
from core.cli import main
from core.drawing import equations
from core.drawing.diagram.block import View, block_svg
from core.drawing.diagram.shapes import png
from core.drawing.diagram.stack import stack_svg
from core.drawing.words import describe
from core.engine.feed import batches
from core.engine.initialization import initial_parameters
from core.lenses.backward import ARRIVALS, bands, ways
from core.placement.record import Placement, Stack, Structure, uniform
from core.placement.table import PLACEMENTS
from core.runs import store
from core.runs.config import RunConfig
from tests.drawing import test_diagram, test_equations
from tests.engine import restatement, test_model, test_singular_values

LAYERS = 2
STRUCTURE = Structure(frozenset({"input"}), frozenset({"input", "outer"}), block_skip=True)
MADE_UP = Placement(
    name="made_up",
    title="Made up",
    block=uniform(STRUCTURE),
    final_norm=False,
    summary="Pre-Norm attention; the feed-forward sublayer has a norm on the stream, too, and the block's input is added before it.",
    source="nobody 2026, Nothing",
    arxiv="",
    used_by="nobody",
    trap="None.",
)
CONFIG = {"placement": "made_up", "layers": LAYERS, "width": 16, "heads": 2, "length": 8, "batch": 4, "steps": 3}


@pytest.fixture(autouse=True)
def entry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(PLACEMENTS, "made_up", MADE_UP)
    monkeypatch.setenv("NORMLAB_CACHE", str(tmp_path / "runs"))


@pytest.fixture
def config() -> RunConfig:
    return RunConfig.from_dict(CONFIG)


def train(*flags: str) -> None:
    shape = [text for name, value in CONFIG.items() for text in (f"--{name}", str(value))]
    assert main.main(["train", *shape, "--device", "cpu", *flags]) == 0


def test_its_blocks_are_one_segment_without_an_identity_path() -> None:
    assert MADE_UP.stack(12) == Stack(((STRUCTURE, 12),))
    assert not MADE_UP.identity_path(12)


def test_its_equation_and_jacobian_are_as_one_would_write_them() -> None:
    [segment] = equations.equations(MADE_UP, 12)
    assert [equations.latex(line) for line in segment.lines] == [
        r"h = x + A(N_{\text{input}}(x))",
        r"x' = N_{\text{outer}}(x + h + F(N_{\text{input}}(h)))",
    ]
    assert (segment.first, segment.last, segment.constants, segment.gains) == (1, 12, [], [])
    [jacobian] = equations.jacobian(MADE_UP, 12)
    assert equations.latex(jacobian) == (r"J_{N_{\text{outer}}} (I + (I + J_{F} J_{N_{\text{input}}}) (I + J_{A} J_{N_{\text{input}}}))")
    test_equations.holds(jacobian, MADE_UP.block(1, 12))


def test_it_is_drawn_and_described() -> None:
    views: tuple[View, ...] = ("forward", "backward")
    for view in views:
        test_diagram.check_block(MADE_UP.block(1, 12), view, dual=False)
        for drawing in (block_svg(MADE_UP.block(1, 12), view), stack_svg(MADE_UP, 12, view)):
            assert png(drawing).startswith(b"\x89PNG")
    test_diagram.check_stack(MADE_UP, 12)
    test_diagram.check_description(MADE_UP, 12)
    assert "attention has an input norm" in describe(MADE_UP, 12)


def test_the_command_line_lists_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["placements", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)[-1]
    assert (about["name"], about["blocks"][0]["feed_forward"]) == ("made_up", ["input", "outer"])


@pytest.mark.usefixtures("quick")
def test_it_trains_from_the_values_that_the_equation_gives(config: RunConfig, tmp_path: Path) -> None:
    steps, layers = tmp_path / "steps.csv", tmp_path / "layers.csv"
    train("--csv", str(steps), "--layers-csv", str(layers))
    losses, rms = pd.read_csv(steps).loss, pd.read_csv(layers).query("step == 1").stream_rms
    assert np.isfinite(losses).all()
    assert len(losses) == 3
    parameters = restatement.unrolled(initial_parameters(config))
    tokens_bt = next(batches(config)).tokens_bt
    assert losses[0] == pytest.approx(restatement.loss(config, parameters, tokens_bt, (tokens_bt + 1) % 64), rel=1e-5)
    streams, _ = restatement.streams(config, parameters, tokens_bt)
    np.testing.assert_allclose(rms, [np.sqrt((x_nd**2).mean(axis=1)).mean() for x_nd in streams], rtol=1e-5)


def test_the_gradient_and_the_jacobians_are_the_slopes_of_the_equation(config: RunConfig) -> None:
    with jax.enable_x64(True):
        test_model.check_loss_and_gradient(RunConfig(placement="made_up", final_norm=False, **test_model.SIZE))
    test_singular_values.test_the_jacobians_are_the_slopes_of_the_restatement(config, "made_up", "layernorm")


def test_the_shares_of_its_backward_signal_add_up_to_one(config: RunConfig) -> None:
    train()
    run = store.load(config)
    assert run
    for layer in range(1, LAYERS + 1):
        spec = MADE_UP.block(layer, LAYERS)
        share_s = ways(run.history, spec, layer).share_s
        assert share_s.keys() == {way for arriving in ARRIVALS for way in arriving}
        for arriving in ARRIVALS:
            np.testing.assert_allclose(sum(share_s[way] for way in arriving), np.ones(3), rtol=1e-6)
        drawing = block_svg(spec, "backward", bands=bands({way: float(of_s[0]) for way, of_s in share_s.items()}))
        assert drawing.count('class="way"') == 5

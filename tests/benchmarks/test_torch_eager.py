"""PyTorch's model is the engine's: given its parameters, it trains with the same losses and gradient norms."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from benchmarks import baseline
from core.engine.training import Training, compile_program
from core.runs.config import RunConfig

torch = pytest.importorskip("torch", reason="PyTorch is no requirement")
torch_eager = pytest.importorskip("benchmarks.torch_eager")

TINY = RunConfig(layers=3, width=16, heads=2, length=8, batch=4, steps=5)


def state(flat: dict[str, np.ndarray]) -> dict[str, "torch.Tensor"]:
    """The article's parameters, a name with dots for each, as PyTorch's."""
    found = {}
    for name, value in flat.items():
        own_name = re.sub(r"\.(kernel|scale|embedding)$", ".weight", re.sub(r"^block_", "blocks.", name))
        found[own_name] = torch.tensor(np.asarray(value).T if name.endswith("kernel") else np.asarray(value))
    return found


@pytest.mark.parametrize("config", [TINY, replace(TINY, placement="post"), replace(TINY, placement="post", warmup=0.6)])
def test_it_trains_as_the_engine_does(config: RunConfig) -> None:
    model = torch_eager.Transformer(config)
    model.load_state_dict(state(flatten_dict(baseline.Transformer(config).initial(), sep=".")))
    measured_s2 = np.array(list(torch_eager.train(config, "cpu", model)))
    histories = list(Training(config, compile_program(config, "cpu")))
    expected_s2 = np.concatenate([np.stack([history["loss"], history["gradient_norm"]], axis=1) for history in histories])
    np.testing.assert_allclose(measured_s2, expected_s2, rtol=1e-3)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_its_own_parameters_are_drawn_as_the_articles(placement: str) -> None:
    config = RunConfig(placement=placement, layers=2)
    parameters = state(flatten_dict(baseline.Transformer(config).initial(), sep="."))
    for name, value in torch_eager.Transformer(config).state_dict().items():
        assert value.shape == parameters[name].shape
        assert float(value.std()) == pytest.approx(float(parameters[name].std()), rel=0.1)


def test_it_prints_a_line_of_json_for_each_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def train(config: RunConfig, device: str) -> list[tuple[float, float]]:
        return [(4.0, 1.0), (3.0, 7.0)]

    monkeypatch.setattr(torch_eager, "train", train)
    torch_eager.main(["--layers", "48", "--runs", "2"])
    assert [json.loads(line)["placement"] for line in capsys.readouterr().out.splitlines()] == ["pre", "post"]

"""What docs/runs.md says of all runs is so."""

import re
from pathlib import Path

import flax.linen as nn
import jax
import numpy as np
import pytest

from core.engine.block import EPSILON, Scales, block_of, norm_name
from core.engine.feed import batches
from core.engine.initialization import initial_parameters
from core.engine.model import embed
from core.engine.training import OPTIMIZER
from core.placement.design import placement_of
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from core.runs.outcome import RULE
from tests.engine import restatement

SAYS = " ".join((Path(__file__).parents[1] / "docs" / "runs.md").read_text().split())


def test_the_rule_is_told_as_the_pages_tell_it() -> None:
    assert RULE in SAYS


def test_the_optimizer_is_the_adam_that_is_told() -> None:
    for told in ("keep 0.9 and 0.95 of themselves", "and 1e-8 is added", "0.01 of each parameter"):
        assert told in SAYS
    random = np.random.default_rng(0)
    parameter, gradients = random.normal(size=5).astype(np.float32), random.normal(size=(3, 5)).astype(np.float32) * 1e-7
    state, mean, square = OPTIMIZER.init(parameter), np.zeros(5), np.zeros(5)
    for step, gradient in enumerate(gradients, 1):
        update, state = OPTIMIZER.update(gradient, state, parameter)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.95 * square + 0.05 * gradient.astype(float) ** 2
        adam = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.95**step)) + 1e-8)
        np.testing.assert_allclose(update, adam + 0.01 * parameter, rtol=1e-5)


def test_parameters_start_as_told() -> None:
    assert "Their standard deviation is 1/sqrt(number of inputs)" in SAYS
    parameters = initial_parameters(RunConfig(layers=4))
    [segment] = parameters["segments"]
    for module in ("qkv", "attention_output", "mlp_in", "mlp_out"):
        kernel = segment[module]["kernel"]
        expected = kernel.shape[1] ** -0.5
        assert kernel.std() == pytest.approx(expected, rel=0.01)
        assert 2.2 < abs(kernel).max() / expected < 2.28  # the cut one has 0.88 of the standard deviation of the whole one
        assert not segment[module]["bias"].any()
    assert parameters["embedding"]["embedding"].std() == pytest.approx(1.0, rel=0.03)
    assert parameters["output"]["kernel"].std() == pytest.approx(0.02, rel=0.03)
    assert not parameters["position"].any()
    assert (segment["attention_norm"]["scale"] == 1).all()


def test_layer_norm_is_as_inexact_as_told_and_no_run_starts_near_that() -> None:
    assert "for numbers of 1000 plus or minus 1 the result is off by a tenth or more" in SAYS
    norm, parameters = nn.LayerNorm(epsilon=EPSILON), {"params": {"scale": np.ones(64, np.float32), "bias": np.zeros(64, np.float32)}}
    off = {level: float(abs(norm.apply(parameters, level + np.resize(np.float32([1, -1]), 64))).max()) - 1 for level in (2.0, 1000.0)}
    assert abs(off[2.0]) < 1e-5
    assert abs(off[1000.0]) >= 0.1

    assert "whose mean is more than twice their standard deviation" in SAYS
    ratios = [mean_over_deviation(RunConfig(placement=name, layers=4, batch=2)) for name in PLACEMENTS]
    assert 0.5 < max(ratios) < 2


def mean_over_deviation(config: RunConfig) -> float:
    """The largest of any token in what a LayerNorm of the blocks reads, before the first step."""
    largest = [0.0]

    def look(call: nn.module.Callable, arguments: tuple, keywords: dict, context: nn.module.InterceptorContext) -> object:
        if isinstance(context.module, nn.LayerNorm) and context.method_name == "__call__":
            x_nd = np.asarray(arguments[0], float)
            largest.append((abs(x_nd.mean(-1)) / x_nd.std(-1)).max())
        return call(*arguments, **keywords)

    placement, parameters = placement_of(config.placement), initial_parameters(config)
    x_nd = embed(parameters, next(batches(config)).tokens_bt, config, placement.stack(config.layers))
    with nn.intercept_methods(look):
        for (structure, segment), stacked in zip(placement.segments(config.layers), parameters["segments"], strict=True):
            for i in range(len(segment)):
                block, scales = jax.tree.map(lambda leaf, i=i: leaf[i], (stacked, Scales.of(segment)))
                x_nd, _ = block_of(config, structure).apply({"params": block}, x_nd, scales)
    return max(largest)


def test_only_no_norm_starts_with_scores_at_which_rounding_decides() -> None:
    """That it decides is measured in tests/placement/test_facts.py."""
    assert "at 12 blocks its largest score is about 840,000, that of any other below 100" in SAYS
    scores = {name: largest_score(RunConfig(placement=name, batch=24 if name == "none" else 2)) for name in PLACEMENTS}
    assert scores.pop("none") == pytest.approx(840_000, rel=0.01)
    assert 10 < max(scores.values()) < 100


def largest_score(config: RunConfig) -> float:
    """The largest size of any score of attention before the first step, from the equation in core/placement/record.py."""
    parameters, largest = restatement.unrolled(initial_parameters(config)), 0.0
    streams, _ = restatement.streams(config, parameters, next(batches(config)).tokens_bt)
    for i, x_nd in enumerate(streams[:-1]):
        spec, block = placement_of(config.placement).block(i + 1, config.layers), parameters[f"block_{i}"]
        sites = spec.structure.attention
        read_nd = restatement.norm(config.norm, block[norm_name("attention", sites, "input")], x_nd) if "input" in sites else x_nd
        qkv_bte = restatement.dense(block["qkv"], spec.input_scale * read_nd).reshape(-1, config.length, 3 * config.width)
        query_bthk, key_bthk = (part.reshape(*part.shape[:2], config.heads, -1) for part in np.split(qkv_bte, 3, axis=2)[:2])
        if spec.structure.head_norms:  # then no score is larger than the root of the head's width
            assert {"query", "key"} <= spec.structure.head_norms
            continue
        scores_bhts = np.einsum("bthk,bshk->bhts", query_bthk, key_bthk) / np.sqrt(query_bthk.shape[-1])
        largest = max(largest, float(abs(np.tril(scores_bhts)).max()))
    return largest


def test_a_link_in_the_documents_leads_somewhere() -> None:
    root = Path(__file__).parents[1]
    for page in [root / "README.md", *(root / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)

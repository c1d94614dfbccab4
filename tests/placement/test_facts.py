"""Every number in what is said of a placement is measured here, or has a source: a new placement with one that is neither fails."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, reduce
from operator import add
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
import pytest
from quick import quick_jit

from core.data_tasks import TASKS
from core.engine.block import Scales
from core.engine.feed import batches
from core.engine.initialization import initial_parameters
from core.engine.model import forward, taps
from core.engine.parameters import pack
from core.engine.training import Training, compile_program
from core.placement.record import BRANCH, EVERY, BlockSpec, Placement
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from core.runs.history import History
from core.runs.outcome import outcome
from tests.engine import restatement

LAYERS = 12
WORDS = "zero one two three four five six seven eight nine ten eleven twelve half third quarter fifth tenth twice double hundred thousand"
NUMBER = re.compile(rf"\d+(?:[.,]\d+)*\w*|\b(?:{'|'.join(WORDS.split())})\b", re.IGNORECASE)

# What others' models and papers are like cannot be measured here. By placement and by what is said: where it was read.
SOURCES: dict[str, dict[str, str]] = {
    "pre": {
        "GPT-2 and GPT-3, LLaMA 1 to 3, Mistral, Qwen": "openai/gpt-2@9b63575; arXiv 2005.14165, 2.1; arXiv 2302.13971, 2.2; "
        "huggingface/transformers@00d4b3d: models/llama, mistral, qwen2",
    },
    "post": {
        "the original Transformer, GPT-1, BERT": "arXiv 1706.03762, 3.1; openai/finetune-transformer-lm@a69b5c4; "
        "google-research/bert@0017e7e: modeling.py",
    },
    "none": {"Fixup and ReZero start from it and add an initialization or a gate": "arXiv 1901.09321; majumderb/rezero@e2c94a8"},
    "deepnorm": {
        "MiniMax-Text-01; with other exponents GLM-130B": "huggingface/transformers@000c33f: models/minimax; arXiv 2210.02414",
        "GLM-130B has other exponents": "arXiv 2210.02414: alpha is (2N)^1/2",
    },
    "residual_scaling": {
        "research on hyperparameters that hold at every depth, with ResNets and vision transformers": "arXiv 2309.16620, abstract",
    },
    "scaled_init": {
        "GPT-2 as its paper has it, nanoGPT, Megatron-LM": "Radford et al. 2019, 2.3; karpathy/nanoGPT@3adf61e: model.py; "
        "NVIDIA/Megatron-LM: scaled_init_method_normal, std / sqrt(2 L), as allenai/OLMo@59a53e3 has it, too",
    },
    "normformer": {
        "open-muse, without the gains on heads": "huggingface/open-muse@02dccb3: muse/modeling_transformer.py, use_normformer",
    },
    "sandwich": {
        "CogView, Grok-1, Gemma 2 and 3, GLM-4-0414": "THUDM/CogView@189a12b; xai-org/grok-1@7050ed2; google-deepmind/gemma@7691fd4; "
        "huggingface/transformers@08c5327: models/glm4",
    },
    "peri": {"its blocks, without the embedding norm, in Gemma 2 and 3": "google-deepmind/gemma@7691fd4"},
    "output": {
        "OLMo 2; Swin Transformer V2 with another initialization": "allenai/OLMo@59a53e3; microsoft/Swin-Transformer@f82860b",
    },
    "sub": {
        "BEiT-3, KOSMOS-1": "microsoft/unilm@6996194: beit3/modeling_utils.py, with torchscale's default subln; arXiv 2302.14045, 2.2",
    },
    "ln_scaling": {"research models of up to 7B parameters": "arXiv 2502.05795v2, abstract"},
    "mix": {
        "research models of up to 7B parameters": "arXiv 2412.13795, abstract",
        "Others saw it diverge at 350M parameters": "arXiv 2502.05795, table 1: perplexity 1363",
    },
    "admin": {"deep translation models": "arXiv 2004.08249; microsoft/admin-torch@08b6605"},
    "admin_profiled": {"translation models of up to 200 layers": "LiyuanLucasLiu/Transformer-Clinic@70f72b7: README.md"},
    "b2t": {"deep translation models": "takase/b2t_connection@c8e2ad4: README.md, 18L-18L and 100L-100L"},
    "residual_dual": {"translation models": "arXiv 2304.14802, abstract"},
    "hybrid": {"research models of up to 7B parameters": "BryceZhuo/HybridNorm@f0dd605: README.md, MoE-1B-7B"},
    "rezero": {"research models": "majumderb/rezero@e2c94a8: README.md"},
    "layerscale": {
        "CaiT, DeiT III, DINOv2": "facebookresearch/deit@0176669: cait_models.py; @279faa0: models_v2.py; "
        "facebookresearch/dinov2@05c66df: dinov2/layers/layer_scale.py",
    },
    "keel": {"research models of more than 1,000 sublayers": "arXiv 2601.19895, abstract"},
}
MEASURED: dict[str, list[str]] = {}  # by placement: what the tests below measure


def measures(name: str, *phrases: str) -> Callable[..., Any]:
    """Decorates the test that measures what these phrases of a placement say."""

    def register(test: Any) -> Any:
        assert test.__name__.startswith("test_"), "what is no test is not run"
        MEASURED.setdefault(name, []).extend(phrases)
        return test

    return register


def said(placement: Placement) -> list[str]:
    return [placement.summary, placement.trap, placement.used_by]


def unfounded(placement: Placement, phrases: list[str]) -> list[str]:
    """The numbers in what is said of a placement that stand in none of these phrases."""
    found = []
    for text in said(placement):
        spans = [match.span() for phrase in phrases for match in re.finditer(re.escape(phrase), text)]
        for number in NUMBER.finditer(text):
            if not any(start <= number.start() and number.end() <= end for start, end in spans):
                found.append(number[0])
    return found


@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_number_that_is_said_is_measured_or_has_a_source(name: str) -> None:
    assert unfounded(PLACEMENTS[name], [*MEASURED.get(name, []), *SOURCES.get(name, {})]) == []


@pytest.mark.parametrize("name", PLACEMENTS)
def test_who_uses_a_placement_has_a_source(name: str) -> None:
    assert PLACEMENTS[name].used_by in SOURCES[name]
    for source in SOURCES[name].values():
        assert re.search(r"@[0-9a-f]{7}|arXiv \d{4}\.\d{5}", source)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_nothing_is_measured_or_has_a_source_that_is_not_said(name: str) -> None:
    for phrase in [*MEASURED.get(name, []), *SOURCES[name]]:
        assert any(phrase in text for text in said(PLACEMENTS[name])), phrase


def test_a_number_without_a_measurement_is_found() -> None:
    placement = replace(PLACEMENTS["pre"], summary="Twice as good as 1/sqrt(2L).", trap="A quarter of it, times 1e-5.", used_by="nobody")
    assert unfounded(placement, []) == ["Twice", "1", "2L", "quarter", "1e", "5"]
    assert unfounded(placement, ["1/sqrt(2L)", "A quarter of it"]) == ["Twice", "1e", "5"]


class Start(NamedTuple):
    """A run before its first step, in float64: its parameters, its streams x_0 to x_L, and what its 2 L branches write."""

    parameters: dict[str, Any]
    streams: list[np.ndarray]
    written: list[np.ndarray]

    @property
    def squares(self) -> np.ndarray:
        """Mean square of a feature of each stream."""
        return np.array([(x_nd**2).mean() for x_nd in self.streams])

    def matrix(self, name: str, block: int = 0) -> np.ndarray:
        modules = self.parameters[f"block_{block}"]
        if name in ("query", "key", "value"):
            return np.split(modules["qkv"]["kernel"], 3, axis=1)[("query", "key", "value").index(name)]
        kernel: np.ndarray = modules[name]["kernel"]
        return kernel


@cache
def start(name: str, layers: int = LAYERS, batch: int = 2) -> Start:
    config = RunConfig(placement=name, layers=layers, batch=batch)
    parameters = restatement.unrolled(initial_parameters(config))
    return Start(parameters, *restatement.streams(config, parameters, next(batches(config)).tokens_bt))


def gains(name: str, layers: int = LAYERS) -> dict[str, float]:
    """How many times as large as Pre-Norm's each matrix of a placement starts."""
    ours, plain = start(name, layers), start("pre", layers)
    ratios = {matrix: ours.matrix(matrix) / plain.matrix(matrix) for matrix in EVERY}
    for matrix, ratio in ratios.items():
        np.testing.assert_allclose(ratio, ratio.mean(), rtol=1e-5, err_msg=matrix)
    return {matrix: float(ratio.mean()) for matrix, ratio in ratios.items()}


def block(name: str, layer: int = LAYERS, layers: int = LAYERS) -> BlockSpec:
    return PLACEMENTS[name].block(layer, layers)


def history(config: RunConfig) -> History:
    return reduce(add, Training(config, compile_program(config, "cpu")))


@measures("none", "A run of 6 blocks has not learned here")
@pytest.mark.long
def test_without_norms_six_blocks_do_not_learn() -> None:
    """At the settings of the article's run, by which four blocks do."""
    assert outcome(history(RunConfig(placement="none", layers=6)), TASKS["progression"]) != "learned"


@measures("none", "One of 12 starts at about 250 nats")
def test_without_norms_twelve_blocks_start_far_above_guessing() -> None:
    config = RunConfig(placement="none")
    batch = next(batches(config))
    assert restatement.loss(config, start("none", batch=config.batch).parameters, batch.tokens_bt, batch.targets_bt) == pytest.approx(
        250, rel=0.01
    )


@measures("none", "rounding alone moves its gradient by more than half of its length")
def test_without_norms_rounding_decides_the_gradient_of_twelve_blocks_and_not_that_of_four() -> None:
    assert moved_gradient("none", 4) < 1e-4
    assert moved_gradient("none", LAYERS) > 0.5


def moved_gradient(name: str, layers: int) -> float:
    """By how much of its length a gradient moves where each parameter moves by half of its last digit in float32. All in float64."""
    config = RunConfig(placement=name, layers=layers)
    batch, placement = next(batches(config)), PLACEMENTS[name]
    stack = placement.stack(layers)

    def loss_of(parameters: Any) -> jax.Array:
        scales = [Scales.of(segment) for _, segment in placement.segments(layers)]
        logits_nv, _ = forward(pack(parameters), batch.tokens_bt, config, stack, scales, taps(stack))
        return optax.softmax_cross_entropy_with_integer_labels(logits_nv, batch.targets_bt.ravel()).mean()

    parameters = initial_parameters(config)

    def moved(seed: int) -> Any:
        random = np.random.default_rng(seed)
        by = 2.0**-24 if seed else 0.0
        return jax.tree.map(lambda leaf: leaf * (1 + by * random.choice([-1, 1], leaf.shape)), parameters)

    with jax.enable_x64(True):
        gradient = quick_jit(jax.grad(loss_of))
        exact_p, *others_p = (np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(gradient(moved(seed)))]) for seed in range(4))
    return float(np.median([np.linalg.norm(other_p - exact_p) for other_p in others_p]) / np.linalg.norm(exact_p))


@pytest.mark.usefixtures("quick")
@measures("none", "One of 48 leaves the range of float32 at once")
def test_without_norms_forty_eight_blocks_leave_float32_at_once_though_nothing_is_infinite() -> None:
    first = history(RunConfig(placement="none", layers=48, steps=1))
    assert first["gradient_norm"][0] == np.inf
    config = RunConfig(placement="none", layers=48, batch=2)
    batch = next(batches(config))
    loss = restatement.loss(config, start("none", 48).parameters, batch.tokens_bt, batch.targets_bt)
    assert loss < 1e12, "which float32 can hold"


@measures("deepnorm", "(2L)^1/4", "each times (8L)^-1/4 at first", "at (8L)^-1/2 of its size: 0.102 at 12 blocks")
def test_deepnorm() -> None:
    for layers in (4, LAYERS):
        assert block("deepnorm", 1, layers).alpha == pytest.approx((2 * layers) ** 0.25)
        assert gains("deepnorm", layers) == pytest.approx(
            dict.fromkeys(EVERY, 1.0) | dict.fromkeys(BRANCH, (8 * layers) ** -0.25), rel=1e-5
        )
    smaller, plain = (start(name).written[0] for name in ("deepnorm", "post"))
    np.testing.assert_allclose(smaller, 96**-0.5 * plain, rtol=1e-4, atol=1e-6)
    assert round(96**-0.5, 3) == 0.102


@measures("residual_scaling", "1/sqrt(2L)", "all of them together write 0.3 units of variance, at any depth")
def test_scaled_branches() -> None:
    for layers in (2, LAYERS, 24):
        assert block("residual_scaling", 1, layers).gate == pytest.approx((2 * layers) ** -0.5)
        found = start("residual_scaling", layers)
        assert sum(written_nd.var() for written_nd in found.written) == pytest.approx(0.3, abs=0.05)
        assert found.squares[-1] - found.squares[0] == pytest.approx(0.3, abs=0.05)


@measures("scaled_init", "two output projections start 1/sqrt(2L) times as large")
def test_scaled_initialization() -> None:
    assert gains("scaled_init") == pytest.approx(dict.fromkeys(EVERY, 1.0) | {"attention_output": 24**-0.5, "mlp_out": 24**-0.5}, rel=1e-5)


@measures("normformer", "one inside the feed-forward branch")
def test_normformer() -> None:
    assert block("normformer").structure.feed_forward - block("pre").structure.feed_forward == {"inner"}
    assert block("normformer").structure.attention - block("pre").structure.attention == {"output"}


@measures("sandwich", "one on what it writes", "each branch writes one unit of variance")
@measures("output", "a first branch of size one")
def test_a_branch_with_an_output_norm_writes_one_unit_at_first() -> None:
    assert block("sandwich").structure.attention == block("sandwich").structure.feed_forward == {"input", "output"}
    for name in ("sandwich", "output"):
        np.testing.assert_allclose([written_nd.var() for written_nd in start(name).written], 1, rtol=1e-4)


@measures("peri", "begins at one unit of variance, and at first grows by one a branch")
def test_peri() -> None:
    found = start("peri")
    np.testing.assert_allclose([found.squares[0], *(written_nd.var() for written_nd in found.written)], 1, rtol=1e-4)
    assert found.squares[-1] == pytest.approx(1 + 2 * LAYERS, rel=0.1)


@measures("sub", "sqrt(ln 2L) times as large", "queries and keys keep gain one")
def test_sub() -> None:
    for layers in (4, LAYERS):
        assert gains("sub", layers) == pytest.approx(
            dict.fromkeys(EVERY, 1.0) | dict.fromkeys(BRANCH, math.log(2 * layers) ** 0.5), rel=1e-5
        )


@measures("ln_scaling", "multiplied by 1/sqrt(l)")
def test_layernorm_scaling() -> None:
    for layer in (1, 4, LAYERS):
        assert block("ln_scaling", layer).input_scale == pytest.approx(layer**-0.5)


@measures("mix", "the first quarter of the blocks", "The quarter is rounded down: below four blocks it is Pre-Norm")
def test_mix() -> None:
    for layers in (1, 2, 3, 4, 7, 12, 24):
        kinds = [block("mix", layer, layers) for layer in range(1, layers + 1)]
        assert kinds == [block("post")] * (layers // 4) + [block("pre")] * (layers - layers // 4)


@measures("admin", "sqrt((n + 1)/ln(n + 1) - 1), where n = 2L is the number of its branches")
def test_admin() -> None:
    for layers in (1, LAYERS, 96):
        n = 2 * layers
        assert block("admin", 1, layers).alpha == pytest.approx(math.sqrt((n + 1) / math.log(n + 1) - 1))
    assert len(start("admin").written) == 2 * LAYERS


@measures("admin_profiled", "from 1 at the bottom to 3.45 at the top of 12 blocks", "would start it below 1")
def test_admin_profiled() -> None:
    """tests/engine/test_initialization.py has the factors by the authors' code."""
    found = start("admin_profiled", batch=RunConfig().batch)
    factors = [found.parameters[f"block_{i}"][f"{sublayer}_alpha"][0] for i in range(LAYERS) for sublayer in ("attention", "mlp")]
    assert (factors[0], round(float(factors[-1]), 2)) == (1, 3.45)
    assert sorted(factors) == factors
    assert np.std(found.written[0]) < 0.5


@measures("b2t", "1/sqrt(L) times as large", "times 0.289 at 12 blocks")
def test_b2t() -> None:
    for layers in (4, LAYERS):
        assert gains("b2t", layers) == pytest.approx(dict.fromkeys(EVERY, layers**-0.5), rel=1e-5)
    assert round(LAYERS**-0.5, 3) == 0.289


@measures("residual_dual", "the untouched one")
def test_residual_dual() -> None:
    found = start("residual_dual")
    assert found.squares[-1] == pytest.approx(1, rel=1e-4)
    assert (sum(found.written, found.streams[0]) ** 2).mean() > 5


@measures("hybrid", "one on the stream between attention and feed-forward")
def test_hybrid() -> None:
    structure = block("hybrid").structure
    assert (structure.attention, structure.feed_forward) == ({"outer"}, set())
    assert structure.head_norms == {"query", "key", "value"}


@measures("rezero", "One learned number a block, zero at first")
def test_rezero() -> None:
    found = start("rezero")
    assert [found.parameters[f"block_{i}"]["gate"].tolist() for i in range(LAYERS)] == [0.0] * LAYERS
    np.testing.assert_array_equal(found.streams[-1], found.streams[0])


@measures("layerscale", "0.1, from 19 blocks on 1e-5, from 25 on 1e-6")
def test_layerscale() -> None:
    for layers, scale in ((1, 0.1), (18, 0.1), (19, 1e-5), (24, 1e-5), (25, 1e-6), (96, 1e-6)):
        assert {block("layerscale", layer, layers).gate for layer in (1, layers)} == {scale}
    np.testing.assert_array_equal(start("layerscale").parameters["block_3"]["mlp_gate"], np.float32(0.1))


@measures("keel", "multiplied by 2L")
def test_keel() -> None:
    for layers in (2, LAYERS):
        assert [block("keel", layer, layers).alpha for layer in (1, 2, layers)] == [1, 2 * layers, 2 * layers]

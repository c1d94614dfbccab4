"""The table of placements: a new one is one entry here."""

import math
from dataclasses import replace

from core.placement.record import BRANCH, EVERY, OUTPUTS, BlockSpec, Placement, Structure, gains, same_sites, uniform

PRE, POST = same_sites("input"), same_sites("outer")
NORMFORMER = Structure(frozenset({"input", "output"}), frozenset({"input", "inner"}), head_gain=True)
HYBRID = Structure(frozenset({"outer"}), frozenset(), head_norms=frozenset({"query", "key", "value"}))


def deepnorm(layer: int, layers: int) -> BlockSpec:
    return BlockSpec(POST, alpha=(2 * layers) ** 0.25, init_gain=gains(BRANCH, (8 * layers) ** -0.25))


def layerscale(layer: int, layers: int) -> BlockSpec:
    epsilon = 0.1 if layers <= 18 else 1e-5 if layers <= 24 else 1e-6
    return BlockSpec(Structure(PRE.attention, PRE.feed_forward, "vector"), gate=epsilon)


def admin(layer: int, layers: int) -> BlockSpec:
    sublayers = 2 * layers
    return BlockSpec(POST, alpha=math.sqrt((sublayers + 1) / math.log(sublayers + 1) - 1))


def b2t(layer: int, layers: int) -> BlockSpec:
    return BlockSpec(replace(POST, block_skip=True), init_gain=gains(EVERY, layers**-0.5))


def keel(layer: int, layers: int) -> BlockSpec:
    if layer == 1:
        return BlockSpec(Structure(frozenset({"input"}), frozenset({"input", "outer"})))
    return BlockSpec(same_sites("input", "outer"), alpha=2.0 * layers)


PLACEMENTS: dict[str, Placement] = {
    placement.name: placement
    for placement in [
        Placement(
            name="pre",
            title="Pre-Norm",
            block=uniform(PRE),
            final_norm=True,
            summary="The norm sits inside the branch, on what it reads. From block to block the stream is never normalized.",
            source="Xiong et al. 2020, On Layer Normalization in the Transformer Architecture",
            arxiv="2002.04745",
            used_by="GPT-2 and GPT-3, LLaMA 1 to 3, Mistral, Qwen",
            trap="It is not true that it never needs warmup: at bold rates and in large models it does.",
        ),
        Placement(
            name="post",
            title="Post-Norm",
            block=uniform(POST),
            final_norm=False,
            summary="The norm sits on the stream, after the addition. Every path through the block passes it.",
            source="Vaswani et al. 2017, Attention Is All You Need",
            arxiv="1706.03762",
            used_by="the original Transformer, GPT-1, BERT",
            trap="Its last norm makes a final norm almost redundant; without warmup it often does not learn at all.",
        ),
        Placement(
            name="none",
            title="No norm",
            block=uniform(same_sites()),
            final_norm=False,
            summary="Plain residual sublayers without any norm: what remains when the norms are taken out.",
            source="Zhang, Dauphin and Ma 2019, Fixup Initialization: Residual Learning Without Normalization",
            arxiv="1901.09321",
            used_by="Fixup and ReZero start from it and add an initialization or a gate",
            trap="The stream grows with every branch. A run of 6 blocks has not learned here. One of 12 starts at about 250 nats, "
            "and rounding alone moves its gradient by more than half of its length. One of 48 leaves the range of float32 at once.",
        ),
        Placement(
            name="deepnorm",
            title="DeepNorm",
            block=deepnorm,
            final_norm=False,
            summary="Post-Norm with a heavier stream, times (2L)^1/4, and smaller matrices in the branches, each times (8L)^-1/4 at first. "
            "Attention's branch, values times outputs, so starts at (8L)^-1/2 of its size: 0.102 at 12 blocks.",
            source="Wang et al. 2022, DeepNet: Scaling Transformers to 1,000 Layers",
            arxiv="2203.00555",
            used_by="MiniMax-Text-01; with other exponents GLM-130B",
            trap="The gain belongs to values, outputs and feed-forward matrices, not to queries and keys; GLM-130B has other exponents.",
        ),
        Placement(
            name="residual_scaling",
            title="Scaled branches",
            block=lambda layer, layers: BlockSpec(PRE, gate=(2 * layers) ** -0.5),
            final_norm=True,
            summary="Pre-Norm whose branches are multiplied by 1/sqrt(2L). "
            "At first all of them together write 0.3 units of variance, at any depth.",
            source="Marion et al. 2022, Scaling ResNets in the Large-depth Regime (a branch's scale is 1/sqrt of their number)",
            arxiv="2206.06929",
            used_by="research on hyperparameters that hold at every depth, with ResNets and vision transformers",
            trap="The factor stays during training, unlike that of a scaled initialization.",
        ),
        Placement(
            name="scaled_init",
            title="Scaled initialization",
            block=lambda layer, layers: BlockSpec(PRE, init_gain=gains(OUTPUTS, (2 * layers) ** -0.5)),
            final_norm=True,
            summary="Pre-Norm whose two output projections start 1/sqrt(2L) times as large; training may undo it.",
            source="Radford et al. 2019, Language Models are Unsupervised Multitask Learners (GPT-2)",
            arxiv="",
            used_by="GPT-2 as its paper has it, nanoGPT, Megatron-LM",
            trap="OpenAI's released code does not contain the factor that its paper names.",
        ),
        Placement(
            name="normformer",
            title="NormFormer",
            block=uniform(NORMFORMER),
            final_norm=True,
            summary="Pre-Norm with a learned gain on each head, a norm on what attention writes and one inside the feed-forward branch.",
            source="Shleifer, Weston and Ott 2021, NormFormer: Improved Transformer Pretraining with Extra Normalization",
            arxiv="2110.09456",
            used_by="open-muse, without the gains on heads",
            trap="Its public code scales after attention's output projection, the paper before it, as here: another function. "
            "Its optional learned factors on feed-forward's stream (ResScale) are left out.",
        ),
        Placement(
            name="sandwich",
            title="Sandwich",
            block=uniform(same_sites("input", "output")),
            final_norm=True,
            summary="A norm on what the branch reads and one on what it writes: at first each branch writes one unit of variance, "
            "and later as much as its norm's learned gain lets it.",
            source="Ding et al. 2021, CogView: Mastering Text-to-Image Generation via Transformers",
            arxiv="2105.13290",
            used_by="CogView, Grok-1, Gemma 2 and 3, GLM-4-0414",
            trap="With a frozen gain on the output norm it learns worse: that gain is what lets a branch speak up.",
        ),
        Placement(
            name="peri",
            title="Peri-LN",
            block=uniform(same_sites("input", "output")),
            final_norm=True,
            summary="Sandwich that also normalizes the embedding: "
            "the stream begins at one unit of variance, and at first grows by one a branch.",
            source="Kim et al. 2025, Peri-LN: Revisiting Normalization Layer in the Transformer Architecture",
            arxiv="2502.02732",
            used_by="its blocks, without the embedding norm, in Gemma 2 and 3",
            trap="Models that are said to use it, as Gemma, mostly leave the embedding norm out.",
            embedding_norm=True,
        ),
        Placement(
            name="output",
            title="Output norm",
            block=uniform(same_sites("output")),
            final_norm=True,
            summary="The norm sits on what the branch writes; the branch itself reads the raw stream.",
            source="OLMo team 2025, 2 OLMo 2 Furious",
            arxiv="2501.00656",
            used_by="OLMo 2; Swin Transformer V2 with another initialization",
            trap="Where embeddings start small, a first branch of size one buries them.",
        ),
        Placement(
            name="sub",
            title="Sub-LN",
            block=lambda layer, layers: BlockSpec(same_sites("input", "inner"), init_gain=gains(BRANCH, math.sqrt(math.log(2 * layers)))),
            final_norm=True,
            summary="A second norm inside each branch, before its output projection, and matrices that start sqrt(ln 2L) times as large.",
            source="Wang et al. 2022, Foundation Transformers (Magneto)",
            arxiv="2210.06423",
            used_by="BEiT-3, KOSMOS-1",
            trap="The gain grows with depth, and queries and keys keep gain one.",
        ),
        Placement(
            name="ln_scaling",
            title="LayerNorm scaling",
            block=lambda layer, layers: BlockSpec(PRE, input_scale=layer**-0.5),
            final_norm=True,
            summary="Pre-Norm whose norms in block l are multiplied by 1/sqrt(l), so that deep branches read, and write, less.",
            source="Sun et al. 2025, The Curse of Depth in Large Language Models",
            arxiv="2502.05795",
            used_by="research models of up to 7B parameters",
            trap="It is not to be combined with a scaled initialization; and in its authors' code the documented switch selects no branch.",
        ),
        Placement(
            name="mix",
            title="Mix-LN",
            block=lambda layer, layers: BlockSpec(POST if layer <= layers // 4 else PRE),
            final_norm=True,
            summary="Post-Norm in the first quarter of the blocks, Pre-Norm in the rest.",
            source="Li, Yin and Liu 2024, Mix-LN: Unleashing the Power of Deeper Layers by Combining Pre-LN and Post-LN",
            arxiv="2412.13795",
            used_by="research models of up to 7B parameters",
            trap="The quarter is rounded down: below four blocks it is Pre-Norm. Others saw it diverge at 350M parameters.",
        ),
        Placement(
            name="admin",
            title="Admin",
            block=admin,
            final_norm=False,
            summary="Post-Norm whose stream is multiplied by sqrt((n + 1)/ln(n + 1) - 1), where n = 2L is the number of its branches.",
            source="Liu et al. 2020, Understanding the Difficulty of Training Transformers (the constants are admin-torch's)",
            arxiv="2004.08249",
            used_by="deep translation models",
            trap="The paper measures the factors with data; this is the constant of its later library.",
        ),
        Placement(
            name="admin_profiled",
            title="Admin, profiled",
            block=uniform(replace(POST, profiled=True)),
            final_norm=False,
            summary="Post-Norm whose stream is multiplied by learned vectors. They start at the spread of the sum below them on a batch: "
            "from 1 at the bottom to 3.45 at the top of 12 blocks.",
            source="Liu et al. 2020, Understanding the Difficulty of Training Transformers (measured as their code does it)",
            arxiv="2004.08249",
            used_by="translation models of up to 200 layers",
            trap="Each factor counts the scaled stream below it, too. The variances of the branches alone would start it below 1.",
            revision=1,
        ),
        Placement(
            name="b2t",
            title="B2T",
            block=b2t,
            final_norm=False,
            summary="Post-Norm with a second way around: the block's input is also added just before its last norm. "
            "All matrices start 1/sqrt(L) times as large.",
            source="Takase et al. 2022, B2T Connection: Serving Stability and Performance in Deep Transformers (the start is their code's)",
            arxiv="2206.00330",
            used_by="deep translation models",
            trap="Only the feed-forward sublayer gets the second way; the attention sublayer is plain Post-Norm. "
            "The smaller start, times 0.289 at 12 blocks, is in its authors' code.",
            revision=1,
        ),
        Placement(
            name="residual_dual",
            title="ResiDual",
            block=uniform(POST),
            final_norm=True,
            summary="Post-Norm blocks beside a second stream that only adds up what they write; the output reads both.",
            source="Xie et al. 2023, ResiDual: Transformer with Dual Residual Connections",
            arxiv="2304.14802",
            used_by="translation models",
            trap="Stream RMS and update ratio are of the normalized stream; the untouched one is seen by the output layer alone.",
            dual_stream=True,
        ),
        Placement(
            name="hybrid",
            title="HybridNorm",
            block=lambda layer, layers: BlockSpec(HYBRID, init_gain=gains(OUTPUTS, (2 * layers) ** -0.5)),
            final_norm=True,
            summary="Norms on each head's queries, keys and values, and one on the stream between attention and feed-forward.",
            source="Zhuo et al. 2025, HybridNorm: Towards Stable and Efficient Transformer Training via Hybrid Normalization",
            arxiv="2503.04598",
            used_by="research models of up to 7B parameters",
            trap="It does not alternate Pre-Norm and Post-Norm blocks, as some describe it: every block has QKV-norm in attention, "
            "and a norm on the stream before feed-forward.",
        ),
        Placement(
            name="rezero",
            title="ReZero",
            block=lambda layer, layers: BlockSpec(Structure(learned_gate="scalar"), gate=0.0),
            final_norm=False,
            summary="No norm at all. One learned number a block, zero at first, multiplies both of its branches.",
            source="Bachlechner et al. 2020, ReZero is All You Need: Fast Convergence at Large Depth",
            arxiv="2003.04887",
            used_by="research models",
            trap="At the first step no gradient reaches the matrices of a branch, only its gate.",
        ),
        Placement(
            name="layerscale",
            title="LayerScale",
            block=layerscale,
            final_norm=True,
            summary="Pre-Norm whose branches pass learned scales that start small: 0.1, from 19 blocks on 1e-5, from 25 on 1e-6.",
            source="Touvron et al. 2021, Going Deeper with Image Transformers (CaiT)",
            arxiv="2103.17239",
            used_by="CaiT, DeiT III, DINOv2",
            trap="The rule for the start is its paper's; its public code does not follow it at every depth.",
        ),
        Placement(
            name="keel",
            title="Keel",
            block=keel,
            final_norm=False,
            summary="Post-Norm with a norm in the branch, too, and a stream that is multiplied by 2L, but for the first block.",
            source="Chen and Wei 2026, Post-LayerNorm Is Back: Stable, ExpressivE, and Deep",
            arxiv="2601.19895",
            used_by="research models of more than 1,000 sublayers",
            trap="The first block is an exception, and its gradient is by far the largest.",
        ),
    ]
}

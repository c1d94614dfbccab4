"""A placement in words, from its record."""

from collections.abc import Sequence

from core.placement.design import Design
from core.placement.record import BlockSpec, Placement, Structure

NAMES = {"attention": "Attention", "feed_forward": "Feed-forward"}
SITES = {  # bottom to top
    "input": "on what the branch reads",
    "inner": "inside the branch before its output projection",
    "output": "on what the branch writes",
    "outer": "on the stream after the addition",
}
MATRICES = {"query": "queries", "key": "keys", "value": "values"}


def describe(placement: Placement, layers: int) -> str:
    """The placement in four to eight sentences, for whoever does not see the drawing."""
    blocks = {layer: placement.block(layer, layers) for layer in range(1, layers + 1)}
    kinds: dict[Structure, list[int]] = {}
    for layer, block in blocks.items():
        kinds.setdefault(block.structure, []).append(layer)
    texts = [f"{upper(which(where))}: {structure_text(structure)}" for structure, where in kinds.items()]
    sentences = [f"{placement.title} has {layers} block{'s' * (layers > 1)}, each with attention first and feed-forward second."]
    sentences += [f"{words}." for words in texts] if len(texts) <= 2 else [f"{'; '.join(texts)}."]
    sentences += scales_text(list(blocks.values()))
    if placement.embedding_norm:
        sentences.append("A norm on the embedding comes before the first block.")
    if placement.dual_stream:
        sentences.append("A second stream only adds up what the branches write; the head reads the sum of both.")
    last = "the second stream" if placement.dual_stream else "the last block"
    sentences.append(f"A final norm follows {last}." if placement.final_norm else f"No norm follows {last}.")
    if placement.identity_path(layers):
        sentences.append("The start of the stack reaches its end on an identity path, without passing a norm or a scale.")
    else:
        broken = [layer for layer, block in blocks.items() if not block.identity_path]
        sentences.append(f"There is no identity path: the stream passes a norm or a scale in {which(broken)}.")
    return " ".join(sentences)


def alike(placement: Placement, layer: int, layers: int) -> str:
    """Which blocks a block is like."""
    same = [other for other in range(1, layers + 1) if placement.block(other, layers) == placement.block(layer, layers)]
    if len(same) == layers:
        return "like all blocks"
    return "unlike all others" if same == [layer] else f"like {which(same)}"


def block_text(spec: BlockSpec, dual: bool) -> str:
    """One block in words."""
    path = "crosses the block on an identity path" if spec.identity_path else "passes a norm or a scale"
    second = ["A second stream only adds up what the branches write."] * dual
    return " ".join([f"{upper(structure_text(spec.structure))}.", *scales_text([spec]), f"The stream {path}.", *second])


def structure_text(structure: Structure) -> str:
    held = {name: [f"an {site} norm {where}" for site, where in SITES.items() if site in getattr(structure, name)] for name in NAMES}
    held["attention"] += [f"a norm of each head's {plural}" for matrix, plural in MATRICES.items() if matrix in structure.head_norms]
    held["attention"] += ["a learned gain for each head"] * structure.head_gain
    texts = {name: listed(parts) or "no norm" for name, parts in held.items()}
    if len(set(texts.values())) == 1:
        words = [f"attention and feed-forward both have {texts['attention']}"]
    else:
        words = [f"{NAMES[name].lower()} has {words}" for name, words in texts.items()]
    words += ["the block's input is added once more at its last addition"] * structure.block_skip
    words += ["the stream is multiplied by learned vectors, at first the standard deviation of all branches below"] * structure.profiled
    return "; ".join(words)


def scales_text(blocks: Sequence[BlockSpec]) -> list[str]:
    """A sentence on the numbers, where there are any but one."""
    learned = any(block.structure.learned_gate for block in blocks)
    matrices = dict.fromkeys(name.replace("_", " ") for block in blocks for name, _ in block.init_gain)
    written = "what a branch writes is multiplied by {}" + ", learned from there on" * learned
    values = {
        "the stream is multiplied by {} before each addition": [block.alpha for block in blocks],
        "what a branch reads is multiplied by {}": [block.input_scale for block in blocks],
        written: [block.gate for block in blocks],
        f"the matrices of {listed(list(matrices))} start {{}} times as large": [gain for block in blocks for _, gain in block.init_gain],
    }
    words = [words.format(span(of)) for words, of in values.items() if set(of) - {1.0} or (learned and words == written)]
    return [f"{upper('; '.join(words))}."] if words else []


def left_out(placement: Placement, layer: int, layers: int) -> str:
    """One sentence on what a design like a block of a placement cannot have of it, or nothing."""
    block = placement.block(layer, layers)
    design = Design.like(block).placement()
    others = [other for other in range(1, layers + 1) if placement.block(other, layers) != block]
    structure = block.structure
    lacking = {
        f"what differs in {which(others)}": bool(others),
        "its scale of what a branch reads": block.input_scale != 1.0,
        "its norms of single heads": bool(structure.head_norms),
        "its gains of single heads": structure.head_gain,
        "its second way for the block's input": structure.block_skip,
        "its learned factors of the stream": structure.profiled,
        "its choice of the matrices that start smaller or larger": block.init_gain != design.block(layer, layers).init_gain,
        "its norm on the embedding": placement.embedding_norm,
        "its second stream": placement.dual_stream,
    }
    missing = [words for words, has in lacking.items() if has]
    return f"This design is like block {layer} of {placement.title}, without {listed(missing)}." if missing else ""


def norms_text(sublayer: str, structure: Structure) -> str:
    """The norms of a sublayer in a few words."""
    heads = [matrix[0] for matrix in MATRICES if matrix in structure.head_norms and sublayer == "attention"]
    words = ", ".join(heads + [site for site in SITES if site in getattr(structure, sublayer)])
    return f"{NAMES[sublayer].lower()}: {'norm at ' * (len(words) < 24)}{words}" if words else f"{NAMES[sublayer].lower()}: no norm"


def which(layers: Sequence[int]) -> str:
    """Ascending block numbers in words: block 1; blocks 2 to 5 and 7."""
    starts = [layer for layer in layers if layer - 1 not in layers]
    ends = [layer for layer in layers if layer + 1 not in layers]
    runs = [f"{start} to {end}" if end > start else f"{start}" for start, end in zip(starts, ends, strict=True)]
    return f"block{'s' * (len(layers) > 1)} {listed(runs)}"


def listed(parts: Sequence[str]) -> str:
    """One; one and two; one, two and three."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def span(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def number(value: float) -> str:
    return f"{value:.0f}" if 100 <= abs(value) < 1e5 else f"{value:.3g}".replace("e-0", "e-")


def upper(words: str) -> str:
    return words[:1].upper() + words[1:]

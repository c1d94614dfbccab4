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
    """The placement in two to eight sentences, for somebody who does not see the drawing."""
    blocks = {layer: placement.block(layer, layers) for layer in range(1, layers + 1)}
    kinds: dict[Structure, list[int]] = {}
    for layer, block in blocks.items():
        kinds.setdefault(block.structure, []).append(layer)
    texts = [f"{upper(which(where))}: {structure_text(structure)}" for structure, where in kinds.items()]
    count = "1 block" if layers == 1 else f"{layers} blocks"
    sentences = [f"{placement.title} has {count}, each with attention first and feed-forward second."]
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


def likeness_text(placement: Placement, layer: int, layers: int) -> str:
    """Which other blocks are equal to block `layer`, such as "like blocks 4 to 12"."""
    same = [other for other in range(1, layers + 1) if placement.block(other, layers) == placement.block(layer, layers)]
    if len(same) == layers:
        return "like all blocks"
    return "unlike all others" if same == [layer] else f"like {which(same)}"


def block_text(spec: BlockSpec, dual: bool) -> str:
    """One block in words; `dual` where the placement has a second stream."""
    path = "crosses the block on an identity path" if spec.identity_path else "passes a norm or a scale"
    sentences = [f"{upper(structure_text(spec.structure))}.", *scales_text([spec]), f"The stream {path}."]
    if dual:
        sentences.append("A second stream only adds up what the branches write.")
    return " ".join(sentences)


def structure_text(structure: Structure) -> str:
    """What a structure has, in clauses joined by semicolons, without a full stop."""
    held = {name: [f"an {site} norm {where}" for site, where in SITES.items() if site in getattr(structure, name)] for name in NAMES}
    held["attention"] += [f"a norm of each head's {plural}" for matrix, plural in MATRICES.items() if matrix in structure.head_norms]
    if structure.head_gain:
        held["attention"].append("a learned gain for each head")
    texts = {name: join(parts) or "no norm" for name, parts in held.items()}
    if len(set(texts.values())) == 1:
        clauses = [f"attention and feed-forward both have {texts['attention']}"]
    else:
        clauses = [f"{NAMES[name].lower()} has {words}" for name, words in texts.items()]
    if structure.block_skip:
        clauses.append("the block's input is added once more at its last addition")
    if structure.profiled:
        clauses.append(
            "the stream is multiplied by learned vectors, which start at one in the first sublayer, "
            "and above it at the root of the summed variances of the stream and the branch in the sublayer below"
        )
    return "; ".join(clauses)


def scales_text(blocks: Sequence[BlockSpec]) -> list[str]:
    """A sentence on the scales and gains of these blocks; none where all are one and none is learned."""
    alphas, scales, gates = ([getattr(block, name) for block in blocks] for name in ("alpha", "input_scale", "gate"))
    learned = any(block.structure.learned_gate for block in blocks)
    gains = [gain for block in blocks for _, gain in block.init_gain]
    matrices = dict.fromkeys(name.replace("_", " ") for block in blocks for name, _ in block.init_gain)
    clauses = []
    if set(alphas) != {1.0}:
        clauses.append(f"the stream is multiplied by {range_text(alphas)} before each addition")
    if set(scales) != {1.0}:
        clauses.append(f"what a branch reads is multiplied by {range_text(scales)}")
    if learned or set(gates) != {1.0}:
        clauses.append(f"what a branch writes is multiplied by {range_text(gates)}" + (", learned from there on" if learned else ""))
    if set(gains) - {1.0}:
        clauses.append(f"the matrices of {join(list(matrices))} start {range_text(gains)} times as large as LeCun normal ones")
    return [f"{upper('; '.join(clauses))}."] if clauses else []


def omissions_text(placement: Placement, layer: int, layers: int) -> str:
    """One sentence on what `Design.like` leaves out of block `layer` of a placement; empty where it leaves out nothing."""
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
    return f"This design is like block {layer} of {placement.title}, without {join(missing)}." if missing else ""


def norms_text(sublayer: str, structure: Structure) -> str:
    """The norms of a sublayer in a few words, such as "attention: outer norm"."""
    heads = [matrix[0] for matrix in MATRICES if matrix in structure.head_norms and sublayer == "attention"]
    places = heads + [site for site in SITES if site in getattr(structure, sublayer)]
    words = ", ".join(places) or "no"
    if len(words) < 24:  # a longer list leaves no room for more in the drawing
        words += " norms" if len(places) > 1 else " norm"
    return f"{NAMES[sublayer].lower()}: {words}"


def which(layers: Sequence[int]) -> str:
    """Ascending block numbers in words: block 1; blocks 2 to 5 and 7."""
    starts = [layer for layer in layers if layer - 1 not in layers]
    ends = [layer for layer in layers if layer + 1 not in layers]
    ranges = [f"{start} to {end}" if end > start else f"{start}" for start, end in zip(starts, ends, strict=True)]
    return f"{'block' if len(layers) == 1 else 'blocks'} {join(ranges)}"


def join(parts: Sequence[str]) -> str:
    """One; one and two; one, two and three."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def range_text(values: Sequence[float]) -> str:
    """The least and the greatest value, or the one where they read alike."""
    low, high = number_text(min(values)), number_text(max(values))
    return low if low == high else f"{low} to {high}"


def number_text(value: float) -> str:
    """Three digits, or all digits of a whole part that has more."""
    return f"{value:.0f}" if 100 <= abs(value) < 1e5 else f"{value:.3g}".replace("e-0", "e-")


def upper(words: str) -> str:
    """With the first letter large, and the others as they are."""
    return words[:1].upper() + words[1:]

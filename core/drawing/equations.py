r"""A placement's block as an equation, and the block's Jacobian: both read off the record, from one list of operators for each sublayer.

What is shown can be evaluated: `latex` and `value` take the same expression. Every term names the part of a diagram that draws it,
`{sublayer}.{part}`, as core.drawing.diagram names them.

Glossary: x, h, x' the stream before, within and after a block; A, F the branches; N a norm, with its site where a sublayer has several;
W_O, W_1, W_2 matrices, their biases left out; G a factor for each head; \phi the activation; J_f the Jacobian of f at what f is applied to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np

from core.placement.record import BlockSpec, Matrix, Placement, Site

MATRICES = {"query": "W_Q", "key": "W_K", "value": "W_V", "attention_output": "W_O", "mlp_in": "W_1", "mlp_out": "W_2"}
IDENTITY_PATH = r"\underbrace{I}_{\text{identity path}}"
SCALES = {"alpha": r"\alpha", "input_scale": "s", "gate": "g"}

Token = tuple[str, str | None]  # LaTeX, balanced in itself, and the part that it belongs to


@dataclass(frozen=True, slots=True)
class Factor:
    """An operator of a block. It stands for itself where it is linear, for its Jacobian where it is a function."""

    name: str  # unique in the block; begins with the part's name
    symbol: str
    function: bool = False

    @property
    def part(self) -> str:
        return ".".join(self.name.split(".")[:2])


@dataclass(frozen=True, slots=True)
class Sum:
    terms: tuple["Expression", ...]
    part: str  # what draws the addition


@dataclass(frozen=True, slots=True)
class Product:
    factors: tuple["Expression", ...]


Expression: TypeAlias = Factor | Sum | Product


# Of each sublayer's branch: its letter, its operators before N_inner, and its projection after it.
BRANCHES = {
    "attention": ("A", [Factor("attention.branch.heads", r"\operatorname{heads}", True)], Factor("attention.branch.projection", "W_O")),
    "feed_forward": (
        "F",
        [Factor("feed_forward.branch.hidden", "W_1"), Factor("feed_forward.branch.activation", r"\phi", True)],
        Factor("feed_forward.branch.projection", "W_2"),
    ),
}


class Equations(NamedTuple):
    """A segment, blocks first..last, written as equations."""

    first: int
    last: int
    lines: list[list[Token]]  # attention, feed-forward, then head norms and the second stream where the segment has them
    constants: list[str]  # LaTeX: the symbols' values at this depth
    gains: list[str]  # LaTeX: how much larger matrices start than by default


class Sublayer(NamedTuple):
    """after = outer(stream(before) + branch(before)): each a list of operators, the one that is applied first at its start."""

    name: str
    before: str
    after: str
    stream: list[Factor]
    branch: list[Factor]
    outer: list[Factor]

    @property
    def argument(self) -> list[Token]:
        return [(self.before, f"{self.name}.stream")]


def tokens(expression: Expression) -> list[Token]:
    """The expression's LaTeX piece by piece, each piece with its part."""
    match expression:
        case Factor():
            return [(f"J_{{{expression.symbol}}}" if expression.function else expression.symbol, expression.part)]
        case Sum(terms, part):
            return [token for term in terms for token in ((" + ", part), *tokens(term))][1:]
        case Product(factors):
            pieces = [[("(", None), *tokens(one), (")", None)] if isinstance(one, Sum) else tokens(one) for one in factors]
            return [token for piece in pieces for token in ((" ", None), *piece)][1:]


def latex(shown: Expression | list[Token]) -> str:
    """LaTeX of an expression, or of a line of an equation."""
    return "".join(text for text, _ in (shown if isinstance(shown, list) else tokens(shown)))


def value(expression: Expression, factors: Mapping[str, Any]) -> Any:
    """The expression's value where `factors` has each factor's by name: a matrix (of stream and block skip the identity) or a number."""
    match expression:
        case Factor(name):
            return factors[name]
        case Sum(terms):
            return reduce(add, (value(term, factors) for term in terms))
        case Product(members):
            return reduce(times, (value(member, factors) for member in members))


def times(left: Any, right: Any) -> Any:
    return left @ right if np.ndim(left) and np.ndim(right) else left * right


def equations(placement: Placement, layers: int) -> list[Equations]:
    """The equations of each segment, bottom first."""
    first, found = 1, []
    for structure, segment in placement.segments(layers):
        both = sublayers(segment)
        lines = [equation(one, structure.block_skip and one.name == "feed_forward") for one in both]
        if structure.head_norms:
            changes = [rf"{name[0]} \leftarrow N_{name[0]}({name[0]})" for name in get_args(Matrix) if name in structure.head_norms]
            lines.append([(r",\ ".join([*changes, r"\text{in each head}"]), "attention.branch")])
        if placement.dual_stream:
            written = [token for one in both for token in ((" + ", None), *apply(one.branch, one.argument))]
            lines.append([("r' = r", None), *written])
        found.append(Equations(first, first + len(segment) - 1, lines, scale_lines(segment), gain_lines(segment)))
        first += len(segment)
    return found


def ends(placement: Placement) -> list[list[Token]]:
    """What precedes the first block and what follows the last: e is the embedding, y what the output matrix reads."""

    def norm(name: str, present: bool, argument: Token) -> list[Token]:
        part = f"stack.{name}"
        return [("N(", part), argument, (")", part)] if present else [argument]

    before: list[Token] = [("x_0 = ", None), *norm("embedding_norm", placement.embedding_norm, ("e", "stack.embedding"))]
    read: Token = ("y", "stack.head")
    if placement.dual_stream:
        dual = norm("final_norm", placement.final_norm, ("r_L", "stack.dual"))
        return [before, [("r_0", "stack.dual"), (" = x_0", None)], [read, (" = x_L", None), (" + ", "stack.add"), *dual]]
    return [before, [read, (" = ", None), *norm("final_norm", placement.final_norm, ("x_L", None))]]


def jacobian(placement: Placement, layers: int) -> list[Expression]:
    """dx'/dx of a block of each segment, as in `equations`: the feed-forward sublayer's factors times the attention's."""
    found: list[Expression] = []
    for structure, segment in placement.segments(layers):
        attention, feed_forward = sublayers(segment)
        through = product(total(feed_forward, segment), *attention.outer, total(attention, segment))
        if structure.block_skip:
            through = Sum((identity("feed_forward.block_skip", segment), through), "feed_forward.add")
        found.append(product(*feed_forward.outer, through))
    return found


def total(one: Sublayer, segment: list[BlockSpec]) -> Sum:
    """The derivative of a sublayer's sum: of the stream and of the branch by what the sublayer reads."""
    return Sum((product(*one.stream, identity(f"{one.name}.stream", segment)), product(*reversed(one.branch))), f"{one.name}.add")


def product(*factors: Expression) -> Expression:
    return factors[0] if len(factors) == 1 else Product(factors)


def identity(name: str, segment: list[BlockSpec]) -> Factor:
    marked = all(block.identity_path for block in segment)
    return Factor(name, IDENTITY_PATH if marked else "I")


def equation(one: Sublayer, skip: bool) -> list[Token]:
    plus = (" + ", f"{one.name}.add")
    skipped: list[Token] = [("x", f"{one.name}.block_skip"), plus] if skip else []
    added = [*skipped, *apply(one.stream, one.argument), plus, *apply(one.branch, one.argument)]
    return [(f"{one.after} = ", None), *apply(one.outer, added)]


def apply(factors: list[Factor], argument: list[Token]) -> list[Token]:
    """The operators around the argument, the first of the list innermost."""
    for factor in factors:
        opening, closing = ("(", [(")", factor.part)]) if factor.function else (" ", [])
        argument = [(factor.symbol + opening, factor.part), *argument, *closing]
    return argument


def sublayers(segment: list[BlockSpec]) -> tuple[Sublayer, Sublayer]:
    """The attention and the feed-forward sublayer of a segment's blocks."""
    return sublayer(segment, "attention", "x", "h"), sublayer(segment, "feed_forward", "h", "x'")


def sublayer(segment: list[BlockSpec], name: str, before: str, after: str) -> Sublayer:
    structure = segment[0].structure
    letter, inside, projection = BRANCHES[name]
    several = max(len(structure.attention), len(structure.feed_forward)) > 1
    sites = getattr(structure, name)
    norms = {
        site: [Factor(f"{name}.{site}", rf"N_{{\text{{{site}}}}}" if several else "N", True)] if site in sites else []
        for site in get_args(Site)
    }
    symbols = scales(segment)
    alpha, scale, gate = (
        [Factor(f"{name}.{part}", symbols[field][0])] if field in symbols else []
        for part, field in (("alpha", "alpha"), ("scale", "input_scale"), ("gate", "gate"))
    )
    if structure.learned_gate == "vector":
        gate = [Factor(f"{name}.gate", rf"\operatorname{{diag}}(g_{letter})")]
    if structure.profiled:
        alpha = [Factor(f"{name}.alpha", rf"\operatorname{{diag}}(\omega_{letter})")]
    inner = norms["inner"]
    if name == "attention" and structure.head_gain:
        inner = [Factor("attention.head_gain", "G"), *inner]
    # a branch is taken apart only where something sits inside it
    branch = [*inside, *inner, projection] if inner else [Factor(f"{name}.branch", letter, True)]
    return Sublayer(name, before, after, alpha, [*norms["input"], *scale, *branch, *norms["output"], *gate], norms["outer"])


def scales(segment: list[BlockSpec]) -> dict[str, tuple[str, str]]:
    """By field the symbol and the value, in LaTeX, of each scale in the equation: of one that is learned, or not 1 in every block."""
    found = {}
    for field, symbol in SCALES.items():
        values = [getattr(block, field) for block in segment]
        learned = segment[0].structure.learned_gate if field == "gate" else None
        if learned or set(values) != {1.0}:
            indexed = f"{symbol}_l" if len(set(values)) > 1 else symbol
            found[field] = (indexed, range_latex(values) + (r"\ \text{at first}" if learned else ""))
    return found


def scale_lines(segment: list[BlockSpec]) -> list[str]:
    """The values of the scales and of G, as far as the equation has them."""
    structure = segment[0].structure
    vectors = {"gate": "g_A = g_F"} if structure.learned_gate == "vector" else {}
    lines = [f"{vectors.get(field, symbol)} = {value}" for field, (symbol, value) in scales(segment).items()]
    if structure.head_gain:
        lines.append(r"G = I\ \text{at first}")
    return lines + (profiled_lines(*sublayers(segment)) if structure.profiled else [])


def profiled_lines(attention: Sublayer, feed_forward: Sublayer) -> list[str]:
    """What the learned factors of the stream start from, as core.engine.admin measures it."""
    below_f, below_a = (
        variance(one.stream, one.argument) + " + " + variance(one.branch, one.argument) for one in (attention, feed_forward)
    )
    return [
        r"\omega_A = 1\ \text{at first in block 1}",
        rf"\omega_A^2 = {below_a}\ \text{{of the block below, at first}}",
        rf"\omega_F^2 = {below_f}\ \text{{at first}}",
    ]


def variance(factors: list[Factor], argument: list[Token]) -> str:
    return rf"\operatorname{{Var}}({latex(apply(factors, argument))})"


def gain_lines(segment: list[BlockSpec]) -> list[str]:
    """By which factor matrices start larger than by default; those of equal factors share a line."""
    found: dict[tuple[float, ...], list[str]] = {}
    for matrix, symbol in MATRICES.items():
        found.setdefault(tuple(dict(block.init_gain).get(matrix, 1.0) for block in segment), []).append(symbol)
    return [rf"{', '.join(symbols)}\ \text{{start times}}\ {range_latex(gains)}" for gains, symbols in found.items() if set(gains) != {1.0}]


def range_latex(values: Sequence[float]) -> str:
    """One number where all are equal, else that of the first and that of the last block."""
    first, last = number_latex(values[0]), number_latex(values[-1])
    if len(set(values)) == 1:
        return first
    return rf"{first},\ \ldots,\ {last}" if len(values) > 2 else rf"{first},\ {last}"


def number_latex(value: float) -> str:
    """Four digits, with a power of ten where `g` would write an exponent."""
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    if not exponent:
        return mantissa
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \cdot {power}"

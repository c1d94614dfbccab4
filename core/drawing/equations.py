r"""A placement's block as an equation, and the block's Jacobian: both read off the record, from one list of operators for each sublayer.

What is shown can be evaluated: `latex` and `value` take the same expression. Every term names the part of a diagram that draws it,
`{sublayer}.{part}`, as core.drawing.diagram names them.

Glossary: x, h, x' the stream before, within and after a block; A, F the branches; N a norm, with its site where a sublayer has several;
W_O, W_1, W_2 matrices, their biases left out; G a factor for each head; \phi the activation; J_f the Jacobian of f where the block has it.
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
PROFILED = r"\omega^2 = \sum \operatorname{Var}\ \text{of all branches below, at first}"
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


class Equations(NamedTuple):
    """What blocks first..last do, one line a sublayer and more; in LaTeX the symbols' values at this depth and the matrices' gains."""

    first: int
    last: int
    lines: list[list[Token]]
    constants: list[str]
    gains: list[str]


class Sublayer(NamedTuple):
    """after = outer(stream before + branch before), each a list of operators in the order in which they are applied."""

    name: str
    before: str
    after: str
    stream: list[Factor]
    branch: list[Factor]
    outer: list[Factor]


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
    """The equation of each run of blocks of equal structure, bottom first."""
    first, found = 1, []
    for structure, run in placement.segments(layers):
        both = sublayers(run)
        lines = [equation(one, structure.block_skip and one.name == "feed_forward") for one in both]
        if structure.head_norms:
            normed = [rf"{name[0]} \leftarrow N_{name[0]}({name[0]})" for name in get_args(Matrix) if name in structure.head_norms]
            lines.append([(r",\ ".join([*normed, r"\text{in each head}"]), "attention.branch")])
        if placement.dual_stream:
            written = [token for one in both for token in ((" + ", None), *applied(one.branch, stream(one)))]
            lines.append([("r' = r", None), *written])
        found.append(Equations(first, first + len(run) - 1, lines, constants(run), gains(run)))
        first += len(run)
    return found


def ends(placement: Placement) -> list[list[Token]]:
    """What precedes the first block and what follows the last: e is the embedding, y what the output matrix reads."""

    def normed(name: str, has: bool, argument: Token) -> list[Token]:
        part = f"stack.{name}"
        return [("N(", part), argument, (")", part)] if has else [argument]

    before: list[Token] = [("x_0 = ", None), *normed("embedding_norm", placement.embedding_norm, ("e", "stack.embedding"))]
    read: Token = ("y", "stack.head")
    if placement.dual_stream:
        dual = normed("final_norm", placement.final_norm, ("r_L", "stack.dual"))
        return [before, [("r_0", "stack.dual"), (" = x_0", None)], [read, (" = x_L", None), (" + ", "stack.add"), *dual]]
    return [before, [read, (" = ", None), *normed("final_norm", placement.final_norm, ("x_L", None))]]


def jacobian(placement: Placement, layers: int) -> list[Expression]:
    """dx'/dx of a block of each run of `equations`: the feed-forward sublayer's factors times the attention's."""
    found: list[Expression] = []
    for structure, run in placement.segments(layers):
        attention, feed_forward = sublayers(run)
        through = product(total(feed_forward, run), *attention.outer, total(attention, run))
        if structure.block_skip:
            through = Sum((identity("feed_forward.block_skip", run), through), "feed_forward.add")
        found.append(product(*feed_forward.outer, through))
    return found


def total(one: Sublayer, run: list[BlockSpec]) -> Sum:
    return Sum((product(*one.stream, identity(f"{one.name}.stream", run)), product(*reversed(one.branch))), f"{one.name}.add")


def product(*factors: Expression) -> Expression:
    return factors[0] if len(factors) == 1 else Product(factors)


def identity(name: str, run: list[BlockSpec]) -> Factor:
    marked = all(block.identity_path for block in run)
    return Factor(name, IDENTITY_PATH if marked else "I")


def equation(one: Sublayer, skip: bool) -> list[Token]:
    plus = (" + ", f"{one.name}.add")
    skipped: list[Token] = [("x", f"{one.name}.block_skip"), plus] if skip else []
    added = [*skipped, *applied(one.stream, stream(one)), plus, *applied(one.branch, stream(one))]
    return [(f"{one.after} = ", None), *applied(one.outer, added)]


def stream(one: Sublayer) -> list[Token]:
    return [(one.before, f"{one.name}.stream")]


def applied(factors: list[Factor], argument: list[Token]) -> list[Token]:
    for factor in factors:
        opening, closing = ("(", [(")", factor.part)]) if factor.function else (" ", [])
        argument = [(factor.symbol + opening, factor.part), *argument, *closing]
    return argument


def sublayers(run: list[BlockSpec]) -> tuple[Sublayer, Sublayer]:
    """The attention and the feed-forward sublayer of a run's blocks."""
    structure = run[0].structure
    several = max(len(structure.attention), len(structure.feed_forward)) > 1
    symbols = scales(run)

    def scale(name: str, field: str) -> list[Factor]:
        return [Factor(name, symbols[field][0])] if field in symbols else []

    def sublayer(name: str, before: str, after: str, letter: str, inside: list[Factor], projection: Factor) -> Sublayer:
        sites = structure.attention if name == "attention" else structure.feed_forward

        def norm(site: Site) -> list[Factor]:
            symbol = rf"N_{{\text{{{site}}}}}" if several else "N"
            return [Factor(f"{name}.{site}", symbol, True)] if site in sites else []

        inner = norm("inner")
        if name == "attention" and structure.head_gain:
            inner = [Factor("attention.head_gain", "G"), *inner]
        # a branch is taken apart only where something sits inside it
        branch = [*inside, *inner, projection] if inner else [Factor(f"{name}.branch", letter, True)]
        gate = scale(f"{name}.gate", "gate")
        if structure.learned_gate == "vector":
            gate = [Factor(f"{name}.gate", rf"\operatorname{{diag}}(g_{letter})")]
        branch = [*norm("input"), *scale(f"{name}.scale", "input_scale"), *branch, *norm("output"), *gate]
        alpha = scale(f"{name}.alpha", "alpha")
        if structure.profiled:
            alpha = [Factor(f"{name}.alpha", rf"\operatorname{{diag}}(\omega_{letter})")]
        return Sublayer(name, before, after, alpha, branch, norm("outer"))

    heads = [Factor("attention.branch.heads", r"\operatorname{heads}", True)]
    hidden = [Factor("feed_forward.branch.hidden", "W_1"), Factor("feed_forward.branch.activation", r"\phi", True)]
    return (
        sublayer("attention", "x", "h", "A", heads, Factor("attention.branch.projection", "W_O")),
        sublayer("feed_forward", "h", "x'", "F", hidden, Factor("feed_forward.branch.projection", "W_2")),
    )


def scales(run: list[BlockSpec]) -> dict[str, tuple[str, str]]:
    """The symbol and the value, in LaTeX, of each scale that the equation has: a learned one, or one that is not 1 everywhere."""
    found = {}
    for field, symbol in SCALES.items():
        values = [getattr(block, field) for block in run]
        learned = run[0].structure.learned_gate if field == "gate" else None
        if learned or set(values) != {1.0}:
            indexed = f"{symbol}_l" if len(set(values)) > 1 else symbol
            found[field] = (indexed, span(values) + (r"\ \text{at first}" if learned else ""))
    return found


def constants(run: list[BlockSpec]) -> list[str]:
    """The values of the scales and of G, as far as the equation has them."""
    structure = run[0].structure
    vectors = {"gate": "g_A = g_F"} if structure.learned_gate == "vector" else {}
    lines = [f"{vectors.get(field, symbol)} = {value}" for field, (symbol, value) in scales(run).items()]
    lines += [r"G = I\ \text{at first}"] * structure.head_gain
    return lines + [PROFILED] * structure.profiled


def gains(run: list[BlockSpec]) -> list[str]:
    """How many times as large as usual matrices start, those of equal gains together."""
    found: dict[tuple[float, ...], list[str]] = {}
    for matrix, symbol in MATRICES.items():
        found.setdefault(tuple(dict(block.init_gain).get(matrix, 1.0) for block in run), []).append(symbol)
    return [rf"{', '.join(symbols)}\ \text{{start times}}\ {span(gains)}" for gains, symbols in found.items() if set(gains) != {1.0}]


def span(values: Sequence[float]) -> str:
    """One number, or the first and the last block's."""
    shown = [number(value) for value in values]
    return shown[0] if len(set(values)) == 1 else r",\ ".join([shown[0], *[r"\ldots"] * (len(shown) > 2), shown[-1]])


def number(value: float) -> str:
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    if not exponent:
        return mantissa
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \cdot {power}"

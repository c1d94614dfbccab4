"""The equations and Jacobians read off the record, against a block written here and differentiated by JAX."""

import re
from collections.abc import Callable
from itertools import chain
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.drawing import equations
from core.drawing.diagram.stack import stack_svg
from core.placement.record import BlockSpec, Matrix, Placement, Site, Structure
from core.placement.table import PLACEMENTS

LAYERS = 12
WIDTH, HIDDEN, HEADS = 6, 8, 2
SITES = set(get_args(Site))
MARK = r"\underbrace{I}_{\text{identity path}}"
Part = Callable[[str, Callable[[jax.Array], jax.Array], jax.Array], jax.Array]

STRUCTURES = st.builds(
    Structure,
    attention=st.frozensets(st.sampled_from(get_args(Site))),
    feed_forward=st.frozensets(st.sampled_from(get_args(Site))),
    learned_gate=st.sampled_from([None, "scalar", "vector"]),
    head_norms=st.frozensets(st.sampled_from(get_args(Matrix))),
    head_gain=st.booleans(),
    block_skip=st.booleans(),
    profiled=st.booleans(),
)
SPECS = st.builds(
    BlockSpec,
    STRUCTURES,
    alpha=st.sampled_from([1.0, 2.25]),
    gate=st.sampled_from([1.0, 0.3, 0.0]),
    input_scale=st.sampled_from([1.0, 0.7]),
    init_gain=st.sampled_from([(), (("query", 1e-5), ("mlp_in", 2.0))]),
)


def made_up(*specs: BlockSpec, **around: bool) -> Placement:
    """As many blocks as there are specs."""
    texts = dict.fromkeys(["name", "title", "summary", "source", "arxiv", "used_by", "trap"], "made up")
    return Placement(block=lambda layer, layers: specs[layer - 1], **{"final_norm": True} | around, **texts)


def lines(placement: Placement, layers: int = LAYERS) -> list[list[str]]:
    return [[equations.latex(line) for line in segment.lines] for segment in equations.equations(placement, layers)]


def jacobians(placement: Placement, layers: int = LAYERS) -> list[str]:
    return [equations.latex(expression) for expression in equations.jacobian(placement, layers)]


def draw(*shape: int, seed: str) -> jax.Array:
    return jnp.array(np.random.default_rng(list(seed.encode())).normal(size=shape))


def layernorm(name: str, x: jax.Array) -> jax.Array:
    """With a gain and a bias of its own for each name."""
    return draw(len(x), seed=name + "gain") * (x - x.mean()) / jnp.sqrt(x.var() + 1e-6) + draw(len(x), seed=name + "bias")


def learned(spec: BlockSpec, sublayer: str) -> float | jax.Array:
    """The gate as it is after some training."""
    match spec.structure.learned_gate:
        case "scalar":
            return 0.4
        case "vector":
            return draw(WIDTH, seed=sublayer + "gate")
        case _:
            return spec.gate


def alpha(spec: BlockSpec, sublayer: str) -> float | jax.Array:
    return draw(WIDTH, seed=sublayer + "alpha") if spec.structure.profiled else spec.alpha


def residual(spec: BlockSpec, sublayer: str, x: jax.Array, skipped: jax.Array | float, part: Part) -> jax.Array:
    """A sublayer of one token, whose branch is any smooth map that has the record's operators at their places."""
    structure = spec.structure
    sites = structure.attention if sublayer == "attention" else structure.feed_forward
    first, last = draw(HIDDEN, WIDTH, seed=sublayer + "first"), draw(WIDTH, HIDDEN, seed=sublayer + "last")

    def at(site: str, y: jax.Array) -> jax.Array:
        return part(f"{sublayer}.{site}", lambda y: layernorm(sublayer + site, y), y) if site in sites else y

    def heads(y: jax.Array) -> jax.Array:
        hidden = jnp.split(first @ y, HEADS)
        return jnp.tanh(jnp.concatenate([layernorm("head", one) for one in hidden] if structure.head_norms else hidden))

    def branch(y: jax.Array) -> jax.Array:
        if sublayer == "attention":
            hidden = part("attention.branch.heads", heads, y)
            if structure.head_gain:
                hidden = part("attention.head_gain", lambda y: jnp.repeat(jnp.array([0.6, 1.7]), HIDDEN // HEADS) * y, hidden)
        else:
            hidden = part("feed_forward.branch.activation", jnp.tanh, part("feed_forward.branch.hidden", lambda y: first @ y, y))
        return part(f"{sublayer}.branch.projection", lambda y: last @ y, at("inner", hidden))

    written = at("output", part(f"{sublayer}.branch", branch, spec.input_scale * at("input", x)))
    return at("outer", skipped + alpha(spec, sublayer) * x + learned(spec, sublayer) * written)


def block(spec: BlockSpec, x: jax.Array, part: Part = lambda name, function, y: function(y)) -> jax.Array:
    h = residual(spec, "attention", x, 0.0, part)
    return residual(spec, "feed_forward", h, x if spec.structure.block_skip else 0.0, part)


def factors(spec: BlockSpec, x: jax.Array) -> dict[str, jax.Array | float]:
    """The Jacobian of each part of a block by itself, at the point where the block has it."""
    found: dict[str, jax.Array | float] = {"feed_forward.block_skip": jnp.eye(WIDTH)}

    def part(name: str, function: Callable[[jax.Array], jax.Array], y: jax.Array) -> jax.Array:
        if not isinstance(y, jax.core.Tracer):
            found[name] = jax.jacfwd(function)(y)
        return function(y)

    block(spec, x, part)
    for sublayer in ("attention", "feed_forward"):
        of = {"alpha": alpha(spec, sublayer), "scale": spec.input_scale, "gate": learned(spec, sublayer)}
        numbers = {name: jnp.diag(value) if jnp.ndim(value) else value for name, value in of.items()}
        found |= {f"{sublayer}.{name}": number for name, number in numbers.items()} | {f"{sublayer}.stream": jnp.eye(WIDTH)}
    return found


def holds(expression: equations.Expression, spec: BlockSpec) -> None:
    with jax.enable_x64(True):
        x = draw(WIDTH, seed="x")
        expected = jax.jacfwd(lambda x: block(spec, x))(x)
        np.testing.assert_allclose(equations.value(expression, factors(spec, x)), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", list(PLACEMENTS))
def test_the_jacobian_that_is_shown_is_the_blocks(name: str) -> None:
    placement = PLACEMENTS[name]
    for (_, segment), expression in zip(placement.segments(LAYERS), equations.jacobian(placement, LAYERS), strict=True):
        holds(expression, segment[-1])


@settings(max_examples=40)
@given(SPECS)
def test_a_made_up_blocks_jacobian_is_right_too(spec: BlockSpec) -> None:
    (expression,) = equations.jacobian(made_up(spec), 1)
    holds(expression, spec)


def test_the_equations_of_the_three_classics() -> None:
    assert lines(PLACEMENTS["pre"]) == [["h = x + A(N(x))", "x' = h + F(N(h))"]]
    assert lines(PLACEMENTS["post"]) == [["h = N(x + A(x))", "x' = N(h + F(h))"]]
    assert lines(PLACEMENTS["none"]) == [["h = x + A(x)", "x' = h + F(h)"]]


def test_the_jacobians_of_the_three_classics() -> None:
    assert jacobians(PLACEMENTS["pre"]) == [f"({MARK} + J_{{F}} J_{{N}}) ({MARK} + J_{{A}} J_{{N}})"]
    assert jacobians(PLACEMENTS["post"]) == ["J_{N} (I + J_{F}) J_{N} (I + J_{A})"]
    assert jacobians(PLACEMENTS["none"]) == [f"({MARK} + J_{{F}}) ({MARK} + J_{{A}})"]


def test_every_part_of_the_record_is_in_the_equation() -> None:
    structure = Structure(frozenset(get_args(Site)), frozenset({"outer"}), "vector", frozenset({"key", "query"}), True, True)
    spec = BlockSpec(structure, alpha=2.0, gate=1e-5, input_scale=0.5, init_gain=(("mlp_in", 3.0), ("query", 3.0), ("value", 0.1)))
    (segment,) = equations.equations(made_up(spec, dual_stream=True), 1)
    written = r"\operatorname{diag}(g_A) N_{\text{output}}(W_O N_{\text{inner}}(G \operatorname{heads}(s N_{\text{input}}(x))))"
    assert [equations.latex(line) for line in segment.lines] == [
        rf"h = N_{{\text{{outer}}}}(\alpha x + {written})",
        r"x' = N_{\text{outer}}(x + \alpha h + \operatorname{diag}(g_F) F(s h))",
        r"q \leftarrow N_q(q),\ k \leftarrow N_k(k),\ \text{in each head}",
        rf"r' = r + {written} + \operatorname{{diag}}(g_F) F(s h)",
    ]
    assert segment.constants == [
        r"\alpha = 2",
        "s = 0.5",
        r"g_A = g_F = 10^{-5}\ \text{at first}",
        r"G = I\ \text{at first}",
    ]
    assert segment.gains == [r"W_Q, W_1\ \text{start times}\ 3", r"W_V\ \text{start times}\ 0.1"]


def test_the_numbers_at_twelve_blocks() -> None:
    (deepnorm,), (scaled,), (rezero,) = (equations.equations(PLACEMENTS[name], LAYERS) for name in ("deepnorm", "ln_scaling", "rezero"))
    assert (deepnorm.constants, deepnorm.gains) == ([r"\alpha = 2.213"], [r"W_V, W_O, W_1, W_2\ \text{start times}\ 0.3195"])
    assert scaled.constants == [r"s_l = 1,\ \ldots,\ 0.2887"]
    assert equations.latex(scaled.lines[0]) == "h = x + A(s_l N(x))"
    assert rezero.constants == [r"g = 0\ \text{at first}"]


def test_unlike_segments_are_told_apart() -> None:
    mix = equations.equations(PLACEMENTS["mix"], LAYERS)
    assert [(segment.first, segment.last) for segment in mix] == [(1, 3), (4, 12)]
    assert jacobians(PLACEMENTS["mix"]) == jacobians(PLACEMENTS["post"]) + jacobians(PLACEMENTS["pre"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pre", ["x_0 = e", "y = N(x_L)"]),
        ("post", ["x_0 = e", "y = x_L"]),
        ("peri", ["x_0 = N(e)", "y = N(x_L)"]),
        ("residual_dual", ["x_0 = e", "r_0 = x_0", "y = x_L + N(r_L)"]),
    ],
)
def test_what_surrounds_the_blocks(name: str, expected: list[str]) -> None:
    assert [equations.latex(line) for line in equations.ends(PLACEMENTS[name])] == expected


@given(SPECS, SPECS)
def test_the_identity_is_marked_exactly_where_the_record_has_an_identity_path(one: BlockSpec, other: BlockSpec) -> None:
    placement = made_up(one, other)
    for (_, segment), text in zip(placement.segments(2), jacobians(placement, 2), strict=True):
        expected = 2 + segment[0].structure.block_skip if all(spec.identity_path for spec in segment) else 0
        assert text.count(MARK) == expected


@settings(max_examples=40)
@given(SPECS)
def test_without_its_branches_a_block_is_the_identity_exactly_where_that_is_marked(spec: BlockSpec) -> None:
    (expression,) = equations.jacobian(made_up(spec), 1)
    with jax.enable_x64(True):
        parts = factors(spec, draw(WIDTH, seed="x"))
        stream = {name: 0 * factor if "branch" in name or "skip" in name else factor for name, factor in parts.items()}
        left = equations.value(expression, stream)
    assert np.allclose(left, np.eye(WIDTH)) == (MARK in equations.latex(expression))


@given(st.one_of(st.sampled_from(list(PLACEMENTS.values())), st.builds(made_up, SPECS, SPECS, dual_stream=st.booleans())))
def test_every_piece_of_latex_is_balanced_and_names_a_part(placement: Placement) -> None:
    segments = equations.equations(placement, 2)
    shown = [*chain.from_iterable(segment.lines for segment in segments), *map(equations.tokens, equations.jacobian(placement, 2))]
    ends = equations.ends(placement)
    texts = [*chain.from_iterable([*segment.constants, *segment.gains] for segment in segments)]
    for text in [*texts, *(text for line in [*shown, *ends] for text, _ in line)]:
        depths = np.cumsum([(letter == "{") - (letter == "}") for letter in text])
        assert depths.min() >= 0
        assert depths[-1] == 0
    places = SITES | {"stream", "scale", "branch", "gate", "add", "alpha", "block_skip", "head_gain"}
    parts = {part for line in shown for _, part in line if part}
    assert parts <= {f"{sublayer}.{place}" for sublayer in ("attention", "feed_forward") for place in places}
    drawn = re.findall(r'data-part="(.*?)"', stack_svg(placement, 2))
    assert {part for line in ends for _, part in line if part} <= set(drawn)


@given(SPECS)
def test_the_equation_and_the_jacobian_name_the_same_parts(spec: BlockSpec) -> None:
    (segment,), (expression,) = equations.equations(made_up(spec), 1), equations.jacobian(made_up(spec), 1)
    named = [{part for _, part in line if part} for line in (list(chain(*segment.lines[:2])), equations.tokens(expression))]
    assert named[0] == named[1]
    for sublayer, sites in (("attention", spec.structure.attention), ("feed_forward", spec.structure.feed_forward)):
        assert {part.removeprefix(f"{sublayer}.") for part in named[1] if part.startswith(sublayer)} & SITES == sites

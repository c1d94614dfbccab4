"""MathML of everything that the table's placements show."""

import re
from xml.etree import ElementTree

import pytest

from core.drawing.diagram.block import block_svg
from core.drawing.equations import Token, equations, jacobian, tokens
from core.drawing.mathml import math
from core.placement.table import PLACEMENTS


def parts(line: list[Token]) -> list[str]:
    return [part for _, part in line if part]


@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_formula_is_well_formed_and_names_its_parts_in_order(name: str) -> None:
    shown = equations(PLACEMENTS[name], 12)
    lines = [line for segment in shown for line in segment.lines] + [tokens(expression) for expression in jacobian(PLACEMENTS[name], 12)]
    lines += [[(latex, None)] for segment in shown for latex in segment.constants + segment.gains]
    for line in lines:
        tree = ElementTree.fromstring(f"<p>{math(line)}</p>")
        assert {formula.tag for formula in tree} == {"math"}
        assert [row.get("data-part") for row in tree.iter("mrow") if row.get("data-part")] == parts(line)
        assert "\\" not in "".join(tree.itertext())


def test_a_formula_reads_as_it_is_written() -> None:
    [attention, _] = equations(PLACEMENTS["post"], 12)[0].lines
    assert "".join(ElementTree.fromstring(math(attention)).itertext()).replace(" ", "") == "h=N(x+A(x))"


def test_a_jacobian_can_break_between_its_factors_alone() -> None:
    [derivative] = jacobian(PLACEMENTS["layerscale"], 12)
    factors = ["".join(factor.itertext()) for factor in ElementTree.fromstring(f"<p>{math(tokens(derivative))}</p>")]
    assert len(factors) == 2
    assert all(factor.startswith("(") and factor.endswith(")") for factor in factors)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_term_has_its_part_in_the_drawing(name: str) -> None:
    """Except for the identity, which is drawn as a stream that nothing stands on."""
    placement = PLACEMENTS[name]
    drawn = set(re.findall(r'data-part="([^"]+)"', block_svg(placement.block(12, 12), dual=placement.dual_stream)))
    last = [*equations(placement, 12)[-1].lines, tokens(jacobian(placement, 12)[-1])]
    assert {part for line in last for part in parts(line)} <= drawn

"""Lines of LaTeX tokens, as core.drawing.equations makes them, as MathML that a page can light up part by part."""

import re
from functools import cache
from html import escape

from latex2mathml.converter import convert

from core.drawing.equations import Token

THIN_SPACE = '<mspace width="0.17em"/>'


def math(line: list[Token]) -> str:
    """A formula whose rows have the data-part of what they belong to: an element for each factor of a product, so that lines can break."""
    factors, depth = [""], 0
    for latex, part in line:
        depth += (latex == "(") - (latex == ")" and part is None)
        if not latex.strip() and not depth:
            factors.append("")
        else:
            factors[-1] += f'<mrow data-part="{escape(part)}">{row(latex)}</mrow>' if part else row(latex)
    return " ".join(f"<math>{factor}</math>" for factor in factors)


@cache
def row(latex: str) -> str:
    if not latex.strip():
        return THIN_SPACE
    found = re.fullmatch(r"<math[^>]*>(.*)</math>", convert(latex), re.DOTALL)
    assert found
    return found[1]

"""Lines of LaTeX tokens, as core.drawing.equations makes them, as MathML that a page can light up part by part."""

import re
from functools import cache
from html import escape

from latex2mathml.converter import convert

from core.drawing.equations import Token

THIN_SPACE = '<mspace width="0.17em"/>'


def math(line: list[Token]) -> str:
    """The line as one MathML element for each factor of a product, so that it can break between them.

    A token becomes a row that has its part as data-part. A token of a space alone, outside parentheses, parts two factors.
    """
    factors, depth = [""], 0
    for latex, part in line:
        if latex == "(":
            depth += 1
        elif latex == ")" and part is None:  # that of a sum; one that closes a norm's argument has the norm's part
            depth -= 1
        if not latex.strip() and depth == 0:
            factors.append("")
        else:
            factors[-1] += f'<mrow data-part="{escape(part)}">{row(latex)}</mrow>' if part else row(latex)
    return " ".join(f"<math>{factor}</math>" for factor in factors)


@cache
def row(latex: str) -> str:
    """What stands in a row: the converted LaTeX without its math element."""
    if not latex.strip():
        return THIN_SPACE
    found = re.fullmatch(r"<math[^>]*>(.*)</math>", convert(latex), re.DOTALL)
    assert found
    return found[1]

"""Values as text, and text as values."""

import math
from typing import Any


def number(value: Any) -> float | None:
    """`value` as a finite float, or None."""
    try:
        parsed = float(value) + 0.0  # which turns -0.0 into 0.0: they are one run
    except (TypeError, ValueError, OverflowError):
        return None
    return parsed if math.isfinite(parsed) and not isinstance(value, bool) else None


def plain_text(value: Any) -> str:
    """The shortest text that reads back as `value`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def unfinite(value: float) -> str:
    """What a recorded value is that is no finite number. An infinite one stands for an exact one that may be finite."""
    return "not a number" if math.isnan(value) else "beyond float32"


def digits(value: float, count: int) -> str:
    """A measured number with so many digits, or what it is where it is none."""
    return f"{value:.{count}g}" if math.isfinite(value) else unfinite(value)


def shown(value: Any) -> str:
    if value is None:
        return "empty"
    try:
        text = value if isinstance(value, str) else plain_text(value)
    except ValueError:  # Python does not write out whole numbers of more than 4300 digits
        return "a number of thousands of digits"
    return repr(text[:40] + "…") if len(text) > 40 else repr(text) if isinstance(value, str) else text


def first_line(error: Exception) -> str:
    """What an error says, or else is, short enough for a sentence."""
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]
    return first[:200].rstrip(".: ")

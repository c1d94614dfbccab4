"""Stand-in until the other branch is merged."""

import os

from core.values import number as parsed


def text(name: str) -> str:
    return os.environ.get(f"NORMLAB_{name}", "")


def number(name: str) -> float | None:
    return parsed(text(name))

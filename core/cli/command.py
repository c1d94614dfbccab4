"""A run as the command that reproduces it."""

import shlex

from core.runs.config import SETTINGS, RunConfig
from core.values import plain_text


def command(config: RunConfig) -> str:
    words = ["python", "-m", "core", "train", "--placement", config.placement]
    for name, value in config.changes().items():
        flag = SETTINGS[name].short.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", plain_text(value)]
    return shlex.join(words)

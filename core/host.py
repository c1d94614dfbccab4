"""The environment variables: the host's begin with NORMLAB_, and JAX and XLA have their own. All are read here; none is set."""

import os

from core.values import number as finite

# What follows NORMLAB_ in their names, and what they are.
VARIABLES = {
    "CACHE": "the folder of finished runs, instead of cache/runs/",
    "MAX_QUEUE": "how many unfinished runs there may be",
    "MAX_<SETTING>": "the most of a setting, such as MAX_LAYERS, where that is lower than the setting's own limit",
    "SCHEDULER": "the address of a Dask scheduler whose cluster computes the runs",
    "PROGRAMS": "a folder of the host's own that keeps compiled programs",
}


def variables() -> dict[str, str]:
    """All environment variables by name."""
    return dict(os.environ)


def text(name: str) -> str:
    """The value of NORMLAB_<name>; empty where it is not set."""
    return os.environ.get(f"NORMLAB_{name}", "")


def number(name: str) -> float | None:
    """The value of NORMLAB_<name> as a finite number; None where it is not set or is none."""
    return finite(text(name))

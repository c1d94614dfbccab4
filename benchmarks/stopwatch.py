"""What the contenders of `python -m core bench` have in common: which runs they train, and how their steps are timed."""

import json
import time
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from core.runs.config import RunConfig
from core.runs.presets import ARTICLE

TOGETHER = 8  # runs of the group


def parser(prog: str) -> ArgumentParser:
    found = ArgumentParser(prog=f"python -m {prog}")
    found.add_argument("--layers", type=int, default=ARTICLE[0].layers, metavar="N", help="blocks (default: the article's)")
    found.add_argument("--steps", type=int, default=ARTICLE[0].steps, metavar="N", help="optimizer updates (default: the article's)")
    found.add_argument("--runs", type=int, default=len(ARTICLE), metavar="N", help="the first N of the article's runs (default: all)")
    return found


def article_runs(layers: int, steps: int, runs: int) -> list[RunConfig]:
    return [replace(config, layers=layers, steps=steps) for config in ARTICLE[:runs]]


def time_steps(config: RunConfig, steps: Iterable[tuple[float, float]]) -> str:
    """A line of JSON about a run whose steps, loss and gradient norm, are computed one by one as they are asked for.

    The seconds before its second step are those of setting up and of compiling.
    """
    times, measured = [time.perf_counter()], []
    for step in steps:
        times.append(time.perf_counter())
        measured.append(step)
    first, *others = np.diff(times)
    loss_s, norm_s = np.array(measured).T
    about = {
        "placement": config.placement,
        "warmup_steps": config.warmup_steps,
        "final_loss": loss_s[-1],
        "largest_gradient_norm": norm_s.max(),
        "ms_per_step": 1000 * np.mean(others),
        "compile_seconds": first,
    }
    return json.dumps(about)

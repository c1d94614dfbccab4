"""What a step costs against the size of the model: `python -m tests.engine.cost docs/cost.svg`, some minutes with nothing else running.

Prints the table of docs/performance.md and draws its plot. All but one size is the article's. Milliseconds are the least of several calls
of a few steps each; memory is what the compiled program holds on one device, its arguments with it.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import jax
import numpy as np
import pandas as pd

from core.engine.group import compile_group, train_together
from core.engine.training import Program, Training, compile_program
from core.figures import images
from core.figures.figure import Figure
from core.runs.arithmetic import step_flops
from core.runs.config import RunConfig

ARTICLE = RunConfig()
SIZES = {
    "layers": (6, 12, 24, 48, 96),
    "width": (32, 64, 128, 256),
    "batch": (6, 12, 24, 48, 96),
    "length": (16, 32, 64, 128),
    "runs": (1, 2, 4, 8, 16),
}
CALLS = 6


def program_of(field: str, size: int) -> tuple[Program, Any]:
    """The compiled program and the trainings that it is for, by which one call of it can be timed."""
    if field == "runs":
        configs = [replace(ARTICLE, seed=seed, steps=400) for seed in range(size)]
        group = compile_group(configs, "cpu")
        return group, lambda: train_together(configs, group)
    config = replace(ARTICLE, **{field: size}, steps=400)
    program = compile_program(config, "cpu")
    return program, lambda: iter(Training(config, program))


def step_milliseconds(chunks: Iterator[Any]) -> float:
    """The least of CALLS calls after the first; the training loop itself decides how many steps a call has."""
    next(chunks)
    found = []
    for _ in range(CALLS):
        started = time.perf_counter()
        chunk = next(chunks)
        steps = len(chunk[0] if isinstance(chunk, list) else chunk)
        found.append(1000 * (time.perf_counter() - started) / steps)
    return min(found)


def mebibytes(program: Program) -> float:
    memory = program.run_chunk.memory_analysis()
    return (memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes) / 2**20


def measured() -> pd.DataFrame:
    rows = []
    for field, sizes in SIZES.items():
        for size in sizes:
            program, start = program_of(field, size)
            config = ARTICLE if field == "runs" else replace(ARTICLE, **{field: size})
            milliseconds = step_milliseconds(start())
            rows.append(
                {
                    "field": field,
                    "size": size,
                    "milliseconds": milliseconds,
                    "mebibytes": mebibytes(program),
                    "gflops": step_flops(config) * (size if field == "runs" else 1) / milliseconds / 1e6,
                    "compile_seconds": program.compile_seconds,
                }
            )
            print(f"{field} {size}: {milliseconds:.1f} ms", file=sys.stderr, flush=True)
            jax.clear_caches()
    return pd.DataFrame(rows)


def slopes(rows: pd.DataFrame, quantity: str) -> list[str]:
    """The exponent from each size to the next on a log-log plot."""
    ratio = np.diff(np.log(rows[quantity])) / np.diff(np.log(rows["size"]))
    return ["", *(f"{exponent:.2f}" for exponent in ratio)]


def table(data: pd.DataFrame) -> str:
    lines = ["| | size | ms per step | exponent | MiB | exponent | GFLOP/s | compile seconds |", "|---|---|---|---|---|---|---|---|"]
    for field, rows in data.groupby("field", sort=False):
        for row, *exponents in zip(rows.itertuples(), slopes(rows, "milliseconds"), slopes(rows, "mebibytes"), strict=True):
            cells = [field, row.size, f"{row.milliseconds:.1f}", exponents[0], f"{row.mebibytes:.0f}", exponents[1]]
            lines.append(f"| {' | '.join(map(str, cells))} | {row.gflops:.0f} | {row.compile_seconds:.1f} |")
    return "\n".join(lines)


def plot(data: pd.DataFrame) -> Figure:
    """Time and memory against the size, in multiples of the article's, on log-log axes."""
    article = data["field"].map({field: getattr(ARTICLE, field, 1) for field in SIZES})
    data = data.assign(times=data["size"] / article)
    panels = []
    for quantity, title in (("milliseconds", "ms per step"), ("mebibytes", "MiB on a device")):
        base = alt.Chart(data, width=380, height=320).encode(
            alt.X("times:Q").title("size, in multiples of the article's (of one run)").scale(type="log", base=2),
            alt.Y(f"{quantity}:Q").title(title).scale(type="log", nice=False),
            alt.Color("field:N").title(None),
        )
        points = base.mark_point(filled=True, size=50, opacity=1).encode(alt.Shape("field:N").legend(None))
        panels.append(base.mark_line() + points)
    return Figure(alt.hconcat(*panels).to_dict(), {})


def main() -> None:
    data = measured()
    print(table(data))
    if len(sys.argv) > 1:
        images.write(plot(data), Path(sys.argv[1]))


if __name__ == "__main__":
    main()

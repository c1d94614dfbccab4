"""What `python -m core bench` asks of the engine, each in a process of its own that prints lines of JSON.

`python -m benchmarks.timing WHAT [--layers N] [--steps N] [--runs N] [--device auto|cpu|gpu]`
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks import stopwatch
from core.engine.devices import DeviceKind, devices
from core.engine.group import compile_group, train_together
from core.engine.training import Training, begin, compile_program
from core.machine import DeviceError, matrix_gflops, product_gflops
from core.runs.config import RunConfig

GPU_SIZE = 8192  # of the square matrices whose product shows what a GPU can do
Line = dict[str, Any]


def time_warm(configs: Sequence[RunConfig], device: DeviceKind) -> list[Line]:
    """The runs, each of a program that this process has compiled and run before."""
    for config in configs:
        time_single(replace(config, steps=2), device)
    return [time_single(config, device) for config in configs]


def time_single(config: RunConfig, device: DeviceKind) -> Line:
    started = time.perf_counter()
    program = compile_program(config, device)
    compiled = time.perf_counter()
    training = Training(config, program)
    begun = time.perf_counter()
    steps = sum(len(chunk) for chunk in training)
    ended = time.perf_counter()
    return {"seconds": ended - started, "compile_seconds": compiled - started, "ms_per_step": 1000 * (ended - begun) / steps}


def time_group(configs: Sequence[RunConfig], device: DeviceKind) -> list[Line]:
    """The first run with several seeds, trained together; `seconds` leaves compiling out, `ms_per_step` is of a step of one run."""
    together = [replace(configs[0], seed=configs[0].seed + i) for i in range(stopwatch.TOGETHER)]
    program = compile_group(together, device)
    begin(together[0])  # compiles what draws a run's parameters
    started = time.perf_counter()
    chunks = train_together(together, program)
    begun = time.perf_counter()
    steps = sum(len(history) for histories in chunks for history in histories)
    ended = time.perf_counter()
    return [{"seconds": ended - started, "compile_seconds": program.compile_seconds, "ms_per_step": 1000 * (ended - begun) / steps}]


def time_compiling(configs: Sequence[RunConfig], device: DeviceKind) -> list[Line]:
    return [{"compile_seconds": compile_program(configs[0], device).compile_seconds}]


def find_peak(_: Sequence[RunConfig], device: DeviceKind) -> list[Line]:
    """Which kind of device the engine finds, and how many GFLOP/s its matrix products reach: on all cores, or on one GPU."""
    first = devices(device)[0]
    if first.platform == "cpu":
        return [{"device": "cpu", "gflops": matrix_gflops()}]
    square = jax.device_put(jnp.ones((GPU_SIZE, GPU_SIZE), jnp.float32), first)
    return [{"device": "gpu", "gflops": product_gflops(lambda: jax.block_until_ready(square @ square), GPU_SIZE, repeats=20)}]


MEASURES: dict[str, Callable[[Sequence[RunConfig], DeviceKind], list[Line]]] = {
    "warm": time_warm,
    "group": time_group,
    "compiling": time_compiling,
    "peak": find_peak,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = stopwatch.parser("benchmarks.timing")
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    asked = parser.parse_args(argv)
    try:
        for line in MEASURES[asked.what](stopwatch.article_runs(asked.layers, asked.steps, asked.runs), asked.device):
            print(json.dumps(line), flush=True)
    except DeviceError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

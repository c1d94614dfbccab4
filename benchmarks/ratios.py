"""How fast the engine is against the article's own way and PyTorch: whole processes, started cold and in turns, compared by their medians.

python -m core bench [--repeats N] [--device auto|cpu|gpu]
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from benchmarks.stopwatch import TOGETHER, article_runs
from core.cli.parser import Parser
from core.cli.report import table
from core.runs import store
from core.runs.arithmetic import needed_flops
from core.runs.settings import ConfigError

MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes
OWN, COLD, WARM, GROUP, TORCH = "article's own way", "engine, cold", "engine, warm", f"engine, {TOGETHER} together", "PyTorch, eager"
COMPILING = "compiling"
BASELINE, TIMING, TORCH_EAGER = (["-m", name] for name in ("benchmarks.baseline", "benchmarks.timing", "benchmarks.torch_eager"))
COMPILED = (6, 96)  # blocks whose compilations are compared
HEADER = ("", "runs", "seconds", "ms per step", "of the peak", "compile seconds", "peak MiB", "of the article's time", "of PyTorch's step")
FOOT = """\
Seconds: the whole process, started cold; of the warm engine, whose process has compiled its programs before, those of its runs alone.
Milliseconds per step: of one run, also where several are trained together. Of the peak: the arithmetic that a step needs, nothing computed
anew, by the best rate of matrix products. Compile seconds: of one program; of the article's way and PyTorch all before a run's second step.
Of the article's time: seconds for each run."""
ABOUT = """\
Times the engine against the article's own way, and against PyTorch where that is installed (pip install torch): the article's three runs,
and one of 48 blocks. With 2 cores and 3 repeats it takes about 12 minutes, on an idle machine; on a busy one the figures mean little."""


class Shape(NamedTuple):
    """The first `runs` of the article's, and the engine's own command that trains as many."""

    layers: int
    steps: int
    runs: int
    command: list[str]

    @property
    def size(self) -> list[str]:
        return ["--layers", str(self.layers), "--steps", str(self.steps)]


# With another seed than the article's, since runs that cache/reference holds are not kept, with their times, once more. At 48 blocks the
# article's way compiles for 20 seconds a run, so there one run has to do.
SHAPES = (Shape(12, 180, 3, ["article", "--seed", "8"]), Shape(48, 12, 1, ["train", "--placement", "pre", "--seed", "8"]))


class Timed(NamedTuple):
    """A process, and what it says of each of its runs or compilations."""

    seconds: float
    peak_mib: float
    about: list[dict[str, Any]]

    def mean(self, name: str) -> float:
        return fmean(run[name] for run in self.about)


Timings = dict[tuple[int, str], list[Timed]]  # by blocks and contender


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m core bench", description=ABOUT)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="how often each is timed (default: 3)")
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto", help="auto prefers a GPU (default: auto)")
    asked = parser.parse_args(argv)
    if asked.repeats < 1:
        raise ConfigError(f"repeats is {asked.repeats}; it must be a whole number from 1.")

    try:
        measure(asked.repeats, asked.device)
    except subprocess.CalledProcessError as error:
        last_words = " ".join(error.stderr.split())[-500:]
        print(f"{shlex.join(error.cmd)} ended with exit code {error.returncode}: {last_words}", file=sys.stderr)
        return 1
    return 0


def measure(repeats: int, device: str) -> None:
    peaks = [peak(device)]
    device = peaks[0]["device"]
    missing = why_no_torch(device)
    processes = {(shape.layers, name): arguments for shape in SHAPES for name, arguments in commands_of(shape, device).items()}
    processes |= {(layers, COMPILING): [*TIMING, "compiling", "--layers", str(layers), "--device", device] for layers in COMPILED}
    if missing:
        processes = {(layers, name): arguments for (layers, name), arguments in processes.items() if name != TORCH}

    timings: Timings = defaultdict(list)
    for repeat in range(1, repeats + 1):
        peaks.append(peak(device))
        for (layers, name), arguments in processes.items():
            timings[layers, name].append(time_process(arguments, device))
            seconds = timings[layers, name][-1].seconds
            print(f"{repeat} of {repeats}: {name}, {layers} blocks: {seconds:.1f} s", file=sys.stderr, flush=True)
    peak_gflops = max(found["gflops"] for found in peaks)

    for shape in SHAPES:
        print(f"{shape.runs} {'run' if shape.runs == 1 else 'runs'} of {shape.layers} blocks and {shape.steps} steps:\n")
        print(f"{shape_table(shape, timings, peak_gflops)}\n")
    print(f"{FOOT}\n")
    print(f"The best rate of float32 matrix products, on {'all cores' if device == 'cpu' else 'one GPU'}, is {peak_gflops:.0f} GFLOP/s.")
    if missing:
        print(missing)
    print("\n".join(headlines(timings)))


def headlines(timings: Timings) -> list[str]:
    few, many = COMPILED
    compiling = ratio(timings[many, COMPILING], timings[few, COMPILING], lambda of: of.mean("compile_seconds"))
    own, cold, warm, group = (timings[SHAPES[0].layers, name] for name in (OWN, COLD, WARM, GROUP))
    together = ratio(group, warm, lambda of: of.mean("seconds")) / TOGETHER
    return [
        f"Compiling {many} blocks takes {compiling:.2f} of the time of {few}.",
        f"{TOGETHER} runs together take {together:.2f} of the time of {TOGETHER} single ones, all programs compiled.",
        f"The engine takes {ratio(cold, own, lambda of: of.seconds):.2f} of the time, by the median of {len(own)}.",
    ]


def commands_of(shape: Shape, device: str) -> dict[str, list[str]]:
    """How each contender trains the shape's runs: its name, and the arguments of its Python process."""
    runs, on = [*shape.size, "--runs", str(shape.runs)], ["--device", device]
    return {
        OWN: [*BASELINE, *runs],
        COLD: ["-m", "core", *shape.command, *shape.size, *on],
        WARM: [*TIMING, "warm", *runs, *on],
        GROUP: [*TIMING, "group", *runs, *on],
        TORCH: [*TORCH_EAGER, *runs, *on],
    }


def peak(device: str) -> dict[str, Any]:
    """The kind of device that there is, cpu or gpu, and the GFLOP/s of its matrix products."""
    return time_process([*TIMING, "peak", "--device", device], device).about[0]


def why_no_torch(device: str) -> str:
    """A sentence where PyTorch cannot be imported, or not be used on this device; empty where it can."""
    try:
        time_process(["-c", f"import torch; torch.zeros(1, device={'cuda' if device == 'gpu' else 'cpu'!r})"], device)
    except subprocess.CalledProcessError as error:
        last_line = error.stderr.strip().splitlines()[-1:] or ["it ended without a word"]
        here = "here for a GPU" if device == "gpu" else "here"
        return f"PyTorch is left out, since it is not installed {here} ({last_line[0]}); pip install torch adds it."
    return ""


def time_process(arguments: Sequence[str], device: str) -> Timed:
    """Times a Python process from start to end. Raises CalledProcessError where it fails.

    It starts with nothing cached and no options of XLA, and on `cpu` sees no GPU. What it says of its runs are the lines of JSON that it
    prints, or the facts of the runs that it keeps. Its peak memory is at least that of this process: the system counts a child from the
    size of its parent.
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NORMLAB_CACHE": cache, "JAX_ENABLE_COMPILATION_CACHE": "false", "XLA_FLAGS": ""}
        if device == "cpu":
            environment["JAX_PLATFORMS"] = "cpu"
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, *arguments], stdout=output, stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)  # unlike Popen.wait, it tells what this one child has used
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, ["python", *arguments], stderr=errors.read())
        about = [json.loads(line) for line in output if line.startswith("{")]
        for _, facts, steps in store.facts(Path(cache)):
            about.append({"compile_seconds": facts.compile_seconds, "ms_per_step": 1000 * facts.train_seconds / steps})
        return Timed(seconds, usage.ru_maxrss * MAXRSS_UNIT / 2**20, about)


def shape_table(shape: Shape, timings: Timings, peak_gflops: float) -> str:
    """The table of a shape: medians of all runs or processes, and of the ratios of what took turns."""
    own, torch = timings[shape.layers, OWN], timings.get((shape.layers, TORCH))
    flops = needed_flops(article_runs(shape.layers, shape.steps, shape.runs)[0])
    rows = [HEADER]
    for name in commands_of(shape, "cpu"):
        if not (processes := timings.get((shape.layers, name))):
            continue
        runs = TOGETHER if name == GROUP else shape.runs
        seconds = [len(of.about) * of.mean("seconds") if name == WARM else of.seconds for of in processes]
        step_ms, compiling = (
            median(run[quantity] for of in processes for run in of.about) for quantity in ("ms_per_step", "compile_seconds")
        )
        time_ratio = median(ours / theirs.seconds for ours, theirs in zip(seconds, own, strict=True)) * shape.runs / runs
        rows.append(
            (
                name,
                f"{runs}",
                f"{median(seconds):.1f}",
                f"{step_ms:.1f}",
                f"{flops / (step_ms / 1000) / (peak_gflops * 1e9):.0%}",
                f"{compiling:.1f}",
                f"{median(of.peak_mib for of in processes):.0f}",
                f"{time_ratio:.2f}",
                f"{ratio(processes, torch, lambda of: of.mean('ms_per_step')):.2f}" if torch else "-",
            )
        )
    return table(rows)


def ratio(ours: Sequence[Timed], theirs: Sequence[Timed], quantity: Callable[[Timed], float]) -> float:
    """The median of the ratios of what was measured in one turn."""
    return median(quantity(our) / quantity(their) for our, their in zip(ours, theirs, strict=True))

"""How fast the engine is against the article's own way: whole processes, started cold and in turns, compared by their medians.

python -m core bench [--repeats N]
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from core import cli
from core.config import ConfigError
from core.report import table

ENGINE = ["-m", "core", "article"]
ENGINE_RUN = ["-m", "core", "train", "--placement", "post", "--json"]  # what one of the three runs says of its own time
BASELINE = ["-m", "core.engine.baseline"]
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


class Timed(NamedTuple):
    seconds: float
    peak_mib: float
    output: str


def timed(arguments: Sequence[str]) -> Timed:
    """A Python process from start to end; its peak memory is at least that of this one. Raises CalledProcessError where it fails."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryDirectory() as cache:
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, *arguments], stdout=output, stderr=errors, env=os.environ | {"NORMLAB_CACHE": cache})
        _, status, usage = os.wait4(process.pid, 0)  # unlike Popen.wait, it tells what this one child has used
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, ["python", *arguments], stderr=errors.read())
        return Timed(seconds, usage.ru_maxrss * MAXRSS_UNIT / 2**20, output.read())


def main(argv: Sequence[str] | None = None) -> int:
    parser = cli.Parser(prog="python -m core bench", description="Times the article's three runs against the article's own way.")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="how often each is timed (default: 3)")
    repeats = parser.parse_args(argv).repeats
    if repeats < 1:
        raise ConfigError(f"repeats is {repeats}; it must be a whole number from 1.")

    try:
        measure(repeats)
    except subprocess.CalledProcessError as error:
        print(f"{shlex.join(error.cmd)} ended with exit code {error.returncode}: {error.stderr.strip()[-500:]}", file=sys.stderr)
        return 1
    return 0


def measure(repeats: int) -> None:
    engines, baselines, steps_ms, compiles = [], [], [], []
    for repeat in range(1, repeats + 1):
        engines.append(timed(ENGINE))
        baselines.append(timed(BASELINE))
        run = json.loads(timed(ENGINE_RUN).output)
        steps_ms.append(1000 * run["facts"]["train_seconds"] / run["steps"])
        compiles.append(run["facts"]["compile_seconds"])
        print(f"{repeat} of {repeats}: {engines[-1].seconds:.1f} s against {baselines[-1].seconds:.1f} s", file=sys.stderr, flush=True)
    own = [json.loads(line) for baseline in baselines for line in baseline.output.splitlines()]

    rows = [
        ("", "seconds", "ms per step", "compile seconds", "peak MiB"),
        row("engine", engines, steps_ms, compiles),
        row("article's own way", baselines, [run["ms_per_step"] for run in own], [run["compile_seconds"] for run in own]),
    ]
    ratio = median(engine.seconds / baseline.seconds for engine, baseline in zip(engines, baselines, strict=True))
    print(table(rows))
    print(f"The engine takes {ratio:.2f} of the time, by the median of {repeats}.")


def row(name: str, processes: Sequence[Timed], steps_ms: Sequence[float], compiles: Sequence[float]) -> tuple[str, ...]:
    """Medians. The seconds are of three runs and all that a process does besides; the others are of one run or one compilation."""
    seconds, memory = median(process.seconds for process in processes), median(process.peak_mib for process in processes)
    return name, f"{seconds:.1f}", f"{median(steps_ms):.1f}", f"{median(compiles):.1f}", f"{memory:.0f}"


if __name__ == "__main__":
    sys.exit(cli.main(["bench", *sys.argv[1:]]))

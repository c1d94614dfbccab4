"""The server that is put under load, and what is measured of it from outside."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
START_SECONDS = 120
FAULT = re.compile(r"Traceback|ScriptRunContext|\bERROR\b|\w+(Error|Exception):")
LOWEST = 10  # the niceness of the threads that train, and of nothing else in the server


@dataclass(frozen=True, slots=True)
class Server:
    address: str
    process: psutil.Popen
    folder: Path  # of its runs, its record, what it says of errors, and its health

    @property
    def runs(self) -> list[str]:
        """The keys of the finished runs."""
        return [path.stem for path in (self.folder / "runs").glob("*.parquet")]

    @property
    def record(self) -> dict[str, list[tuple[float, int]]]:
        """By a run's key: when it had computed how many steps. Each training begins with 0 steps."""
        computed: dict[str, list[tuple[float, int]]] = defaultdict(list)
        for line in lines(self.folder / "record"):
            moment, key, steps = line.split()
            computed[key].append((float(moment), int(steps)))
        return computed

    @property
    def faults(self) -> list[str]:
        """What it has written on standard error that tells of a fault."""
        return [line for line in lines(self.folder / "errors") if FAULT.search(line)]

    def health(self, begin: float, end: float) -> list[tuple[float, int]]:
        """The seconds until an answer, and its status, of all that asked in this time."""
        asked = [line.split() for line in lines(self.folder / "health")]
        return [(float(seconds), int(status)) for moment, seconds, status in asked if begin <= float(moment) <= end]

    @property
    def cpu(self) -> tuple[float, float]:
        """CPU seconds so far: of everything but training, and of training, which has threads of the lowest priority to itself."""
        whole, training = self.process.cpu_times(), 0.0
        for thread in Path(f"/proc/{self.process.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):  # it has just ended
                fields = thread.read_text().rpartition(")")[2].split()
                if int(fields[16]) >= LOWEST:
                    training += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return whole.user + whole.system - training, training

    @property
    def memory(self) -> float:
        """Resident memory in MB."""
        return self.process.memory_info().rss / 1e6


@dataclass(slots=True)
class Load:
    """What a server and this process did while something was measured."""

    seconds: float = 0.0
    pages_cpu: float = 0.0  # CPU seconds of everything but training
    harness_cpu: float = 0.0  # the same of this process
    memory: float = 0.0  # MB at the end
    more_memory: float = 0.0
    health: list[tuple[float, int]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@contextlib.contextmanager
def measured(server: Server) -> Iterator[Load]:
    """The load has its figures once the block is left."""
    load, begin, own = Load(), time.monotonic(), time.process_time()
    (pages, _), memory, faults = server.cpu, server.memory, len(server.faults)
    try:
        yield load
    finally:
        end = time.monotonic()
        load.seconds, load.harness_cpu = end - begin, time.process_time() - own
        load.pages_cpu, load.memory = server.cpu[0] - pages, server.memory
        load.more_memory = load.memory - memory
        load.health = server.health(begin, end)
        load.faults = server.faults[faults:] + [f"health answered {status}" for _, status in load.health if status != 200]


def lines(path: Path) -> list[str]:
    """The complete lines of a file that somebody is still writing."""
    return path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []


@contextlib.contextmanager
def served() -> Iterator[Server]:
    """A server of its own, without any finished run but those of reference, and somebody who asks for its health."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as at_end:
        folder = Path(name)
        environment = os.environ | {"NORMLAB_CACHE": str(folder / "runs")}

        def start(module: str, output: str, errors: str, *arguments: str) -> psutil.Popen:
            out, err = (at_end.enter_context((folder / file).open("w")) for file in (output, errors))
            command = [sys.executable, "-m", f"tests.load.{module}", *arguments]
            process = psutil.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=err)
            at_end.callback(stop, process)
            return process

        process = start("served", "output", "errors", str(folder / "record"), port)
        server = Server(f"http://127.0.0.1:{port}", process, folder)
        wait_until_healthy(server)
        start("health", "health", "health_errors", port)
        yield server


def stop(process: psutil.Popen) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until_healthy(server: Server) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError), urllib.request.urlopen(f"{server.address}/_stcore/health", timeout=5):
            return
        time.sleep(0.1)
    raise RuntimeError(f"No server at {server.address}:\n{(server.folder / 'errors').read_text()}")

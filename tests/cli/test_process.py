"""The command line in processes of its own, where signals, pipes or imports are at stake."""

import contextlib
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from small_runs import SHAPE, TINY

from core.cli import main


def test_a_second_ctrl_c_ends_at_once() -> None:
    with main.stop_on_ctrl_c() as stop:
        assert not stop.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL


def test_bench_has_a_command_line_of_its_own_under_two_names() -> None:
    root = Path(__file__).parents[2]
    texts = [
        subprocess.run([sys.executable, *words, "--help"], cwd=root, capture_output=True, text=True, check=True).stdout
        for words in (["-m", "core", "bench"], ["-m", "benchmarks"])
    ]
    assert texts[0] == texts[1]
    assert "--repeats" in texts[0]


def process(command: str, unbuffered: str = "", **options: Any) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "core", *shlex.split(command)]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    return subprocess.Popen(words, cwd=Path(__file__).parents[2], env=environment, **options)


@pytest.mark.parametrize("command", ["placements", "--help", "train --help", "train --placement pre --layers 97"])
def test_nothing_heavy_is_imported_for_a_light_answer(command: str) -> None:
    script = f"import sys; from core.cli.main import main; main({shlex.split(command)!r}); sys.exit(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert "core.cli.main" in done.stderr.split()
    assert not {"jax", "flax", "altair", "vl_convert", "distributed", "dask", "streamlit"} & set(done.stderr.split())


@pytest.mark.parametrize("command", ["placements", "placements --json", "--help", "train --help", "bench --help"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_ends_it_quietly(command: str, unbuffered: str) -> None:
    with process(command, unbuffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.close()
        assert running.stderr.read().decode() == ""
        assert running.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's full device")
def test_a_full_standard_output_is_told() -> None:
    with Path("/dev/full").open("w") as full, process("placements", stdout=full, stderr=subprocess.PIPE) as running:
        assert running.communicate()[1].decode() == "Standard output cannot be written: No space left on device.\n"
        assert running.returncode == 1


def read_until(terminal: int, pattern: str) -> str:
    """What a terminal shows until the pattern appears, or until nobody writes to it any more."""
    seen = ""
    with contextlib.suppress(OSError):  # how Linux says so
        while not re.search(pattern, seen) and (part := os.read(terminal, 1000)):
            seen += part.decode(errors="replace")
    return seen


def test_a_terminal_shows_progress_and_ctrl_c_reaches_the_process(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    terminal, side = pty.openpty()
    with process(f"train --placement pre {SHAPE} --steps 5000 --csv {path}", stdout=subprocess.PIPE, stderr=side) as running:
        os.close(side)
        assert "Pre-Norm · no warmup: compiling" in read_until(terminal, "compiling")
        read_until(terminal, r" [1-9]\d*/5000 ")
        running.send_signal(signal.SIGINT)
        assert "Stopping" in read_until(terminal, "Stopping")
        assert "Interrupted after step " in read_until(terminal, r"Interrupted after step \d+ of 5000")
        assert running.wait() == 130
    os.close(terminal)
    assert 0 < len(pd.read_csv(path)) < 5000


def test_an_output_that_knows_no_middle_dot_gets_an_escape() -> None:
    words = [*shlex.split(TINY), "--csv", "-"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    process = subprocess.run([sys.executable, "-m", "core", *words], capture_output=True, text=True, env=environment, check=True)
    assert process.stdout.splitlines()[1].startswith("Pre-Norm \\xb7 no warmup")


def test_an_environment_in_which_jax_does_not_start_is_told_in_a_sentence_that_names_it() -> None:
    sentences = {
        "JAX_PLATFORMS=cuda": "",  # what JAX says depends on whether there is a GPU
        "JAX_PLATFORMS=foo": "Unable to initialize backend 'foo': Backend 'foo' is not in the list of known backends",
        "JAX_NUM_CPU_DEVICES=0": "Unable to initialize backend 'cpu'",
        "JAX_NUM_CPU_DEVICES=x": 'Invalid value "x" for JAX flag jax_num_cpu_devices.',
        "JAX_ENABLE_X64=perhaps": "invalid truth value 'perhaps' for environment 'JAX_ENABLE_X64'.",
    }
    words = [sys.executable, "-m", "core", *shlex.split(TINY), "--device", "cpu"]
    running = {}
    for setting in sentences:
        name, value = setting.split("=")
        environment = {other: text for other, text in os.environ.items() if not other.startswith("JAX_")} | {name: value}
        running[setting] = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for setting, process in running.items():
        out, err = process.communicate()
        assert (process.returncode, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"JAX does not start here with {setting}: {sentences[setting]}")

import subprocess
import sys

import pytest

from core import bench, cli

CHILD = """
import json, sys
print(json.dumps({"ms_per_step": 40.0, "compile_seconds": 6.0}))
"""
RUN = """
import json
print(json.dumps({"steps": 180, "facts": {"train_seconds": 3.6, "compile_seconds": 2.0}}))
"""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In place of the three processes, ones that take no time; returns their names in the order of their calls."""
    called: list[str] = []
    seconds = iter([10.0, 40.0, 1.0, 30.0, 60.0, 1.0, 12.0, 60.0, 1.0])

    def timed(arguments: list[str]) -> bench.Timed:
        called.append(arguments[-1])
        return bench.Timed(next(seconds), 512.0, subprocess.run([sys.executable, *arguments], capture_output=True, text=True).stdout)

    monkeypatch.setattr(bench, "ENGINE", ["-c", "print('a table')", "engine"])
    monkeypatch.setattr(bench, "BASELINE", ["-c", CHILD, "baseline"])
    monkeypatch.setattr(bench, "ENGINE_RUN", ["-c", RUN, "run"])
    monkeypatch.setattr(bench, "timed", timed)
    return called


def test_processes_take_turns_and_medians_are_told(quick: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench"]) == 0
    assert quick == ["engine", "baseline", "run"] * 3
    heading, engine, baseline, ratio = capsys.readouterr().out.splitlines()
    assert heading.split() == ["seconds", "ms", "per", "step", "compile", "seconds", "peak", "MiB"]
    assert engine.split()[-4:] == ["12.0", "20.0", "2.0", "512"]
    assert baseline.split()[-4:] == ["60.0", "40.0", "6.0", "512"]
    assert ratio == "The engine takes 0.25 of the time, by the median of 3."


def test_a_process_is_timed_with_its_own_memory_and_a_cache_of_its_own() -> None:
    """In an interpreter that is small itself: to the system a child has been as large as the process that started it."""
    program = """
from core import bench
child = "import os, time; held = bytearray({} * 2**20); time.sleep(0.2); print(os.environ['NORMLAB_CACHE'])"
for mib in (500, 300):
    print(*bench.timed(["-c", child.format(mib)]))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    large, small = (line.split() for line in result.stdout.splitlines() if line)
    assert float(large[0]) > 0.2
    assert 500 < float(large[1]) < 550
    assert 300 < float(small[1]) < 350
    assert large[2] != small[2]


def test_a_process_that_fails_is_told_with_its_last_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench, "ENGINE", ["-c", "import sys; sys.exit('no such device')"])
    assert cli.main(["bench"]) == 1
    error = capsys.readouterr().err
    assert "ended with exit code 1: no such device" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("repeats", "sentence"), [("0", "repeats is 0; it must be a whole number from 1."), ("x", "invalid int value: 'x'")]
)
def test_bad_repeats_are_one_line_and_exit_code_2(repeats: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--repeats", repeats]) == 2
    assert sentence in capsys.readouterr().err

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_run import FACTS, made_run

from benchmarks import ratios
from benchmarks.ratios import COLD, GROUP, OWN, SHAPES, TORCH, WARM, Timed
from core.cli import commands
from core.cli.main import exit_code
from core.cli.parser import parser
from core.runs import store
from core.runs.arithmetic import needed_flops
from core.runs.config import RunConfig
from core.runs.presets import ARTICLE


def bench(*arguments: str) -> int:
    """The exit code of `python -m core bench` with these arguments."""
    return exit_code(lambda: ratios.main(arguments))


# Per repeat: the seconds of a process; then of each of its runs milliseconds per step, seconds to compile, and seconds in all.
MEASURED = {
    OWN: [(40.0, 40.0, 6.0, 0.0), (60.0, 44.0, 7.0, 0.0), (60.0, 48.0, 8.0, 0.0)],
    COLD: [(10.0, 18.0, 2.0, 0.0), (30.0, 20.0, 2.0, 0.0), (12.0, 22.0, 2.0, 0.0)],
    WARM: [(99.0, 19.0, 0.0, 4.0)] * 3,
    GROUP: [(32.0, 10.0, 3.0, 16.0), (64.0, 10.0, 3.0, 8.0), (16.0, 10.0, 3.0, 24.0)],
    TORCH: [(30.0, 50.0, 0.5, 0.0), (20.0, 40.0, 0.5, 0.0), (30.0, 40.0, 0.5, 0.0)],
    "6": [(5.0, 0.0, 2.0, 0.0)] * 3,
    "96": [(5.0, 0.0, 2.2, 0.0), (5.0, 0.0, 2.5, 0.0), (5.0, 0.0, 3.0, 0.0)],
}
ROUND = [(layers, name) for layers in ("12", "48") for name in (OWN, COLD, WARM, GROUP, TORCH)] + [("6", "6"), ("96", "96")]
Calls = list[tuple[str, str, str]]


def name_of(arguments: list[str]) -> str:
    module, text = arguments[1], " ".join(arguments)
    layers = arguments[arguments.index("--layers") + 1]
    named = {"benchmarks.baseline": OWN, "core": COLD, "benchmarks.torch_eager": TORCH}
    return named.get(module) or next((name for word, name in (("warm", WARM), ("group", GROUP)) if word in text), layers)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """In place of the processes, MEASURED; returns which were started, in order: blocks, contender and device."""
    called: Calls = []
    peaks = iter([100.0, 200.0, 150.0, 120.0])

    def time_process(arguments: list[str], device: str) -> Timed:
        if "peak" in arguments:
            return Timed(1.0, 100.0, [{"device": "cpu" if device == "auto" else device, "gflops": next(peaks)}])
        if arguments[0] == "-c":
            return Timed(2.0, 100.0, [])
        name, layers = name_of(arguments), arguments[arguments.index("--layers") + 1]
        repeat = len([call for call in called if call[:2] == (layers, name)])
        called.append((layers, name, device))
        seconds, step_ms, compile_seconds, own_seconds = MEASURED[name][repeat]
        about = {"ms_per_step": step_ms, "compile_seconds": compile_seconds, "seconds": own_seconds}
        return Timed(seconds, 512.0, [about] * (1 if name == GROUP else 3 if layers == "12" else 1))

    monkeypatch.setattr(ratios, "time_process", time_process)
    return called


def rows(output: str, layers: int) -> dict[str, list[str]]:
    """The cells of a shape's table by its first column."""
    _, _, after = output.partition(f" of {layers} blocks and ")
    lines = after.split("\n\n")[1].splitlines()[1:]
    return {name: line.removeprefix(name).split() for line in lines for name in (OWN, COLD, WARM, GROUP, TORCH) if line.startswith(name)}


def test_processes_take_turns(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench() == 0
    assert calls == [(layers, name, "cpu") for layers, name in ROUND] * 3
    assert f"3 of 3: {TORCH}, 48 blocks: 30.0 s" in capsys.readouterr().err


def test_a_shapes_table_has_the_medians_and_the_ratios_of_each_turn(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    bench()
    output = capsys.readouterr().out
    of_peak = [f"{needed_flops(RunConfig()) / (1e6 * step_ms) / 200:.0%}" for step_ms in (44, 20, 19, 10, 40)]
    assert rows(output, 12) == {
        OWN: ["3", "60.0", "44.0", of_peak[0], "7.0", "512", "1.00", "1.10"],
        COLD: ["3", "12.0", "20.0", of_peak[1], "2.0", "512", "0.25", "0.50"],
        WARM: ["3", "12.0", "19.0", of_peak[2], "0.0", "512", "0.20", "0.47"],
        GROUP: ["8", "32.0", "10.0", of_peak[3], "3.0", "512", "0.30", "0.25"],
        TORCH: ["3", "30.0", "40.0", of_peak[4], "0.5", "512", "0.50", "1.00"],
    }
    deep = rows(output, 48)
    assert list(deep) == list(rows(output, 12))
    assert deep[WARM][:2] == ["1", "4.0"]
    assert deep[GROUP][6] == f"{32 / 40 / 8:.2f}"


def test_the_headlines_are_medians_of_ratios(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    bench()
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "The best rate of float32 matrix products, on all cores, is 200 GFLOP/s.",
        "Compiling 96 blocks takes 1.25 of the time of 6.",
        "8 runs together take 0.50 of the time of 8 single ones, all programs compiled.",
        "The engine takes 0.25 of the time, by the median of 3.",
    ]


def test_without_torch_a_line_says_so(calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    replaced = ratios.time_process

    def time_process(arguments: list[str], device: str) -> Timed:
        if arguments[0] == "-c":
            raise subprocess.CalledProcessError(1, arguments, stderr="Traceback\nModuleNotFoundError: No module named 'torch'\n")
        return replaced(arguments, device)

    monkeypatch.setattr(ratios, "time_process", time_process)
    assert bench("--repeats", "1") == 0
    assert calls == [(layers, name, "cpu") for layers, name in ROUND if name != TORCH]
    output = capsys.readouterr().out
    assert "since it is not installed here (ModuleNotFoundError: No module named 'torch'); pip install torch adds it." in output
    assert rows(output, 12)[COLD][-1] == "-"
    assert TORCH not in rows(output, 12)


@pytest.mark.parametrize(("asked", "found"), [("auto", "cpu"), ("cpu", "cpu"), ("gpu", "gpu")])
def test_every_process_is_told_the_device(asked: str, found: str, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--repeats", "1", "--device", asked) == 0
    assert {device for _, _, device in calls} == {found}
    for shape in SHAPES:
        processes = ratios.commands_of(shape, found)
        assert all(arguments[-2:] == ["--device", found] for name, arguments in processes.items() if name != OWN)
    assert ("on one GPU" in capsys.readouterr().out) == (found == "gpu")


@pytest.mark.parametrize("shape", SHAPES)
def test_the_engines_own_command_trains_the_shape_and_keeps_its_runs(shape: ratios.Shape) -> None:
    """Runs that the reference holds would not be kept, with their times, once more."""
    asked = parser().parse_args(ratios.commands_of(shape, "cpu")[COLD][2:])
    assert (asked.layers, asked.steps, asked.device) == (str(shape.layers), str(shape.steps), "cpu")
    runs = ARTICLE if asked.command == "article" else [RunConfig(placement=asked.placement)]
    assert len(runs) == shape.runs
    for config in runs:
        run = RunConfig.from_dict(config.to_dict() | commands.read_settings(asked))
        assert not (store.REFERENCE / f"{run.key}{store.SUFFIX}").exists()


SHOW = "import json, os, sys; print(json.dumps({'cache': os.environ['NORMLAB_CACHE'], 'on': os.environ.get('JAX_PLATFORMS')}))"


def test_a_process_is_timed_with_its_own_memory_and_a_cache_of_its_own() -> None:
    """In an interpreter that is small itself: to the system a child has been as large as the process that started it."""
    program = f"""
import json
from benchmarks import ratios
child = "import time; held = bytearray(%d * 2**20); time.sleep(0.2); " + {SHOW!r}
for mib in (500, 300):
    timed = ratios.time_process(["-c", child % mib], "cpu")
    print(json.dumps([timed.seconds, timed.peak_mib, timed.about[0]["cache"]]))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    large, small = map(json.loads, result.stdout.splitlines())
    assert large[0] > 0.2
    assert 500 < large[1] < 550
    assert 300 < small[1] < 350
    assert large[2] != small[2]


@pytest.mark.parametrize(("device", "platforms"), [("cpu", "cpu"), ("gpu", None)])
def test_on_the_cpu_a_process_sees_no_gpu(device: str, platforms: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    assert ratios.time_process(["-c", SHOW], device).about[0]["on"] == platforms


def test_of_runs_that_a_process_keeps_their_facts_are_told(tmp_path: Path) -> None:
    config = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)
    path = tmp_path / "made.parquet"
    path.write_bytes(made_run(config, replace(FACTS, train_seconds=2.0, compile_seconds=3.0)).to_parquet())
    copy = f"import os, shutil; print('a table'); shutil.copy({str(path)!r}, os.environ['NORMLAB_CACHE'])"
    assert ratios.time_process(["-c", copy], "cpu").about == [{"ms_per_step": 400.0, "compile_seconds": 3.0}]


def test_a_process_that_fails_is_told_in_one_line_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ratios, "TIMING", ["-c", r"import sys; sys.exit('this is why:\nno such device')"])
    assert bench() == 1
    error = capsys.readouterr().err
    assert error.endswith("ended with exit code 1: this is why: no such device\n")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--repeats", "0"], "repeats is 0; it must be a whole number from 1."),
        (["--repeats", "x"], "invalid int value: 'x'"),
        (["--device", "tpu"], "invalid choice: 'tpu'"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(*arguments) == 2
    assert sentence in capsys.readouterr().err

"""What is timed, and in which order; never how long it took."""

import json
from dataclasses import replace

import pytest

from benchmarks import ratios, stopwatch, timing
from core.engine import group, training
from core.runs.config import RunConfig


@pytest.fixture
def tiny_runs(tiny: RunConfig, monkeypatch: pytest.MonkeyPatch) -> list[RunConfig]:
    """The runs that the command times, in place of the article's."""
    configs = [tiny, replace(tiny, warmup=0.5)]
    monkeypatch.setattr(stopwatch, "article_runs", lambda layers, steps, runs: configs[:runs])
    return configs


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, float]]:
    timing.main([*arguments, "--device", "cpu"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_warm_run_is_of_a_program_that_has_run_before(
    tiny_runs: list[RunConfig], compilations: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    time_single, begun = timing.time_single, []

    def counted(config: RunConfig, device: timing.DeviceKind) -> timing.Line:
        begun.append((config, len(compilations)))
        return time_single(config, device)

    monkeypatch.setattr(timing, "time_single", counted)
    training.compile_shape.cache_clear()
    first, second = lines(capsys, "warm")
    assert [config.steps for config, _ in begun] == [2, 2, 5, 5]
    assert begun[1][1] > 0
    assert begun[2][1] == len(compilations)
    for line in (first, second):
        assert line["seconds"] > line["compile_seconds"] > 0
        assert line["ms_per_step"] > 0


@pytest.mark.usefixtures("quick")
def test_the_group_trains_eight_runs_that_differ_in_their_seeds(
    tiny_runs: list[RunConfig], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = []

    def train_together(configs: list[RunConfig], program: group.Group) -> object:
        trained.extend(configs)
        return group.train_together(configs, program)

    monkeypatch.setattr(timing, "train_together", train_together)
    [line] = lines(capsys, "group")
    assert trained == [replace(tiny_runs[0], seed=seed) for seed in range(7, 15)]
    assert line["ms_per_step"] * 8 * tiny_runs[0].steps / 1000 == pytest.approx(line["seconds"], rel=0.999)  # a run's step, of 8 runs
    assert line["compile_seconds"] > 0


def test_compiling_is_of_one_program(tiny_runs: list[RunConfig], capsys: pytest.CaptureFixture[str]) -> None:
    [line] = lines(capsys, "compiling")
    assert line == {"compile_seconds": training.compile_program(tiny_runs[0], "cpu").compile_seconds}


def test_the_peak_is_that_of_the_cores_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(timing, "matrix_gflops", lambda: 123.0)
    assert lines(capsys, "peak") == [{"device": "cpu", "gflops": 123.0}]


@pytest.mark.parametrize("shape", ratios.SHAPES)
@pytest.mark.parametrize("name", [ratios.WARM, ratios.GROUP])
def test_bench_asks_for_what_there_is(name: str, shape: ratios.Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(timing, "MEASURES", dict.fromkeys(timing.MEASURES, lambda *what: asked.append(what) or []))
    _, module, *arguments = ratios.commands_of(shape, "cpu")[name]
    assert module == timing.__name__
    timing.main(arguments)
    assert asked == [(stopwatch.article_runs(shape.layers, shape.steps, shape.runs), "cpu")]


def test_a_missing_gpu_is_one_sentence() -> None:
    with pytest.raises(SystemExit, match="JAX finds no GPU here"):
        timing.main(["peak", "--device", "gpu"])

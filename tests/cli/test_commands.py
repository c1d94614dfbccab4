"""What the commands do, in this process."""

import json
import shlex
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest
from jax.errors import JaxRuntimeError
from small_runs import DIVERGING, SHAPE, SMALL_ARTICLE, TINY, config_of, history_of, interrupt_after, nothing_is_computed, refuse_constant

from core.cli import commands, main
from core.cli.command import command
from core.engine import training
from core.placement.table import PLACEMENTS
from core.runs import store
from core.runs.config import RunConfig
from core.runs.frames import LAYER_COLUMNS, STEP_COLUMNS, layer_frame, step_frame, write_csv
from core.runs.presets import ARTICLE

pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize("command", ["train --placement pre", "article"])
def test_what_the_host_does_not_allow_is_refused(command: str, refused: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMLAB_MAX_LAYERS", "8")
    assert "allows at most 8 (NORMLAB_MAX_LAYERS)" in refused(command)


@pytest.mark.parametrize("command", [TINY, SMALL_ARTICLE])
def test_a_missing_gpu_is_told(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def no_gpu(kind: str) -> NoReturn:
        raise RuntimeError(f"unknown backend {kind}")

    monkeypatch.setattr("jax.devices", no_gpu)
    assert main.main([*shlex.split(command), "--device", "gpu", "--csv", str(tmp_path / "a.csv")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "JAX finds no GPU here" in err
    assert not list(tmp_path.iterdir())


def test_a_run_is_written_in_full_and_kept(own_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = RunConfig(placement="post", norm="rmsnorm", final_norm=True, layers=2, width=16, heads=2, length=8, batch=4, steps=7, seed=3)
    steps, layers = tmp_path / "steps.csv", tmp_path / "layers.csv"
    assert main.main([*shlex.split(command(config))[3:], "--csv", str(steps), "--layers-csv", str(layers)]) == 0
    out, err = capsys.readouterr()
    history = history_of(config)
    assert "mean of the last" in out
    assert err == ""  # no bar where there is no terminal
    histories = {"Post-Norm · no warmup · final norm": history}
    assert steps.read_text(encoding="utf-8") == write_csv(step_frame(histories))
    assert layers.read_text(encoding="utf-8") == write_csv(layer_frame(histories))
    assert list(pd.read_csv(steps)) == STEP_COLUMNS
    assert list(pd.read_csv(layers)) == LAYER_COLUMNS
    kept = store.load(config)
    assert kept
    np.testing.assert_array_equal(kept.history["loss"], history["loss"])


def test_a_design_trains_as_the_placement_that_it_describes() -> None:
    design = TINY.replace("--placement pre", "--placement custom:attn=input,ffn=input")
    np.testing.assert_array_equal(history_of(config_of(design))["loss"], history_of(config_of(TINY))["loss"])


def test_a_run_that_the_store_has_is_not_written_again(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main.main(shlex.split(TINY)) == 0
    monkeypatch.setattr(store, "save", nothing_is_computed)
    assert main.main(shlex.split(TINY)) == 0


@pytest.mark.parametrize("known", [False, True])
def test_a_run_whose_numbers_xla_may_have_moved_is_told_and_not_kept(
    own_store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], known: bool
) -> None:
    if known:
        assert main.main(shlex.split(TINY)) == 0
        capsys.readouterr()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert main.main([*shlex.split(TINY), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["facts"]["xla_flags"] == "--xla_cpu_enable_fast_math=true"
    assert (err.count("\n"), "it was computed with XLA_FLAGS='--xla_cpu_enable_fast_math=true'" in err) == (1, True)
    stored = store.load(config_of(TINY))
    assert (stored is not None, stored is None or stored.facts.xla_flags == "") == (known, True)


def test_a_store_that_takes_nothing_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NORMLAB_CACHE", str(tmp_path / "file" / "runs"))
    assert main.main(shlex.split(SMALL_ARTICLE)) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert err.startswith("The run could not be written to ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", [TINY, DIVERGING])
def test_json_is_standard_and_complete(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([*shlex.split(command), "--json"]) == 0
    about = json.loads(capsys.readouterr().out, parse_constant=refuse_constant)
    config = config_of(command)
    history = history_of(config)
    finite = history["gradient_norm"][np.isfinite(history["gradient_norm"])]
    assert RunConfig.from_dict(about["config"]) == config
    assert about["steps"] == len(history)
    assert about["diverged_at"] == history.diverged_at
    assert about["outcome"] == ("diverged" if command == DIVERGING else "stuck")
    judged = [about["judged_loss"], about["judged_steps"]]
    assert judged == ([None, len(history)] if command == DIVERGING else [pytest.approx(history["loss"].mean()), len(history)])
    assert about["final_loss"] == (None if command == DIVERGING else float(history["loss"][-1]))
    assert about["largest_gradient_norm"] == float(finite.max())
    assert about["largest_gradient_norm_step"] == int(finite.argmax()) + 1
    assert about["facts"]["train_seconds"] > 0


def test_a_run_that_diverges_is_a_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([*shlex.split(DIVERGING), "--csv", str(tmp_path / "a.csv")]) == 0
    step = history_of(config_of(DIVERGING)).diverged_at
    assert step
    assert f"Diverged at step {step}." in capsys.readouterr().out
    last = (tmp_path / "a.csv").read_text().splitlines()[-1].split(",")
    assert last[1] == str(step)
    assert {"NaN", "inf"} & {*last[2:4]}


def test_a_device_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object) -> NoReturn:
        raise JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.\nmore")

    monkeypatch.setattr(training, "compile_program", fail)
    assert main.main(shlex.split(TINY)) == 1
    assert capsys.readouterr().err == "Pre-Norm · no warmup could not be computed: RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.\n"


@pytest.mark.usefixtures("quick")
def test_the_article_prints_its_table_and_writes_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = {"width": 16, "heads": 2, "length": 16, "batch": 8}
    monkeypatch.setattr(commands, "ARTICLE", [replace(config, **narrow) for config in ARTICLE])
    path = tmp_path / "a.csv"
    assert main.main(["article", "--layers", "1", "--lr", "1e-2", "--csv", str(path)]) == 0
    written = pd.read_csv(path)
    names = ["Pre-Norm · no warmup", "Post-Norm · no warmup", "Post-Norm · 120-step warmup"]
    assert list(written) == STEP_COLUMNS
    assert list(written["run"].unique()) == names
    assert list(written["step"]) == [*range(1, 181)] * 3
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "configuration"
    for row, name in zip(rows, names, strict=True):
        run = written[written["run"] == name]
        label, loss, norm, outcome = [cell.strip() for cell in row.split("  ") if cell]
        assert label == name
        assert float(loss) == pytest.approx(run["loss"].iloc[-1], rel=1e-3)
        assert float(norm) == pytest.approx(run["gradient_norm"].max(), rel=1e-3)
        assert outcome == "learned"
    assert written["learning_rate"].max() == 1e-2


def test_the_article_without_options_is_the_article(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RunConfig] = []
    monkeypatch.setattr(commands, "compute", lambda configs, *_: asked.extend(configs) or iter(()))
    main.main(["article"])
    assert asked == list(ARTICLE)


def test_ctrl_c_keeps_the_steps_so_far(
    own_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"train --placement pre {SHAPE} --steps 500"
    expected = step_frame({"Pre-Norm · no warmup": history_of(config_of(command))})
    interrupt_after(monkeypatch, chunks=2)
    before = signal.getsignal(signal.SIGINT)
    assert main.main([*shlex.split(command), "--csv", str(tmp_path / "a.csv")]) == 130
    written = pd.read_csv(tmp_path / "a.csv")
    assert 1 < len(written) < 500
    pd.testing.assert_frame_equal(written, expected[: len(written)], check_dtype=False)
    out, err = capsys.readouterr()
    assert f"Interrupted after step {len(written)}" in out
    assert f"Interrupted after step {len(written)} of 500" in err
    assert str(tmp_path / "a.csv") in err
    assert store.load(config_of(command)) is None
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_keeps_the_runs_before(own_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after(monkeypatch, chunks=1, run=2)
    assert main.main([*shlex.split(SMALL_ARTICLE), "--csv", str(tmp_path / "a.csv"), "--plot", str(tmp_path / "a.svg")]) == 130
    written = pd.read_csv(tmp_path / "a.csv")
    assert list(written["step"]) == [1, 2, 3, 4, 5, 1]
    assert (tmp_path / "a.svg").exists()
    assert len(list(own_store.iterdir())) == 1


def test_ctrl_c_while_compiling_leaves_older_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compile_program = training.compile_program

    def interrupted(*arguments: Any) -> training.Program:
        signal.raise_signal(signal.SIGINT)
        return compile_program(*arguments)

    monkeypatch.setattr(training, "compile_program", interrupted)
    monkeypatch.setattr(training, "Training", nothing_is_computed)
    (tmp_path / "a.csv").write_text("older")
    assert main.main([*shlex.split(TINY), "--json", "--csv", str(tmp_path / "a.csv")]) == 130
    assert (tmp_path / "a.csv").read_text() == "older"
    out, err = capsys.readouterr()
    assert (out, err) == ("", "Interrupted before the first step, so nothing is written.\n")


def test_json_of_an_interrupted_run_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    interrupt_after(monkeypatch, chunks=1)
    assert main.main([*shlex.split(TINY), "--json"]) == 130
    about = json.loads(capsys.readouterr().out, parse_constant=refuse_constant)
    assert (about["outcome"], about["steps"], about["facts"]) == ("interrupted", 1, None)


def test_the_placements_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["placements"]) == 0
    header, *rows, _, foot = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == list(PLACEMENTS)
    for row, placement in zip(rows, PLACEMENTS.values(), strict=True):
        assert all(fact in row for fact in (placement.title, placement.arxiv))
        assert row.index(placement.title) == header.index("title")  # the columns are aligned
    assert foot.startswith("With 12 blocks.")


def test_the_placements_are_data_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["placements", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out, parse_constant=refuse_constant)
    assert [entry["name"] for entry in listed] == list(PLACEMENTS)
    post = listed[1]
    [blocks] = post["blocks"]
    assert (blocks["first"], blocks["last"], blocks["attention"], blocks["feed_forward"]) == (1, 12, ["outer"], ["outer"])
    assert (post["identity_path"], post["final_norm"], post["arxiv"]) == (False, False, "1706.03762")


@pytest.fixture
def reference(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of reference runs with an outdated one in it; the runs to pack are tiny."""
    monkeypatch.setattr(commands, "ARTICLE", (config_of(TINY), config_of(f"{TINY} --seed 8")))
    store.REFERENCE.mkdir()
    (store.REFERENCE / "outdated.parquet").touch()
    (store.REFERENCE / "README.md").touch()
    return store.REFERENCE


def test_pack_replaces_the_reference_runs(reference: Path, own_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["pack"]) == 0
    files = [f"{config.key}.parquet" for config in commands.ARTICLE]
    assert sorted(path.name for path in reference.iterdir()) == sorted([*files, "README.md"])
    assert not own_store.exists()
    out = capsys.readouterr().out
    assert all(name in out for name in (*files, "outdated.parquet"))
    assert all(store.load(config) for config in commands.ARTICLE)


def test_an_interrupted_pack_removes_nothing(reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after(monkeypatch, chunks=1, run=2)
    assert main.main(["pack"]) == 130
    assert (reference / "outdated.parquet").exists()
    assert (reference / f"{commands.ARTICLE[0].key}.parquet").exists()


def test_pack_that_cannot_write_fails(reference: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(store, "REFERENCE", reference / "README.md" / "folder")
    assert main.main(["pack"]) == 1
    assert capsys.readouterr().err.startswith("The run could not be written to ")

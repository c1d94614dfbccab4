"""The command line, mostly in this process; in processes of their own where signals, pipes or imports are at stake."""

import contextlib
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.errors import JaxRuntimeError

from core.cli import commands, main, parser
from core.engine import training
from core.placement.table import PLACEMENTS
from core.runs import store
from core.runs.config import FRACTIONAL, LIMITS, NORMS, ConfigError, RunConfig, short
from core.runs.frames import LAYER_COLUMNS, PUBLISHED_COLUMNS, layer_frame, step_frame
from core.runs.history import History
from core.runs.presets import ARTICLE
from core.values import plain_text

SHAPE = "--layers 2 --width 16 --heads 2 --length 8 --batch 4"
TINY = f"train --placement pre {SHAPE} --steps 5"
DIVERGING = "train --placement none --layers 32 --width 16 --heads 2 --length 8 --batch 4 --lr 1 --steps 5"
SMALL_ARTICLE = "article --layers 2 --steps 5"


def config_of(command: str) -> RunConfig:
    """The run that a train command names."""
    return RunConfig.from_dict(commands.settings(parser.parser().parse_args(shlex.split(command))))


def history_of(config: RunConfig) -> History:
    history = History.empty(config.layers)
    for chunk in training.Training(config, training.compile_program(config)):
        history = history + chunk
    return history


def nothing_is_computed(*_: object) -> NoReturn:
    raise AssertionError("a run was begun")


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of runs, and none of reference."""
    monkeypatch.setenv("NORMLAB_CACHE", str(tmp_path / "runs"))
    monkeypatch.setattr(store, "REFERENCE", tmp_path / "reference")
    return tmp_path / "runs"


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Runs a command that must be refused before anything is computed, and returns its sentence."""
    monkeypatch.setattr(training, "compile_program", nothing_is_computed)

    def sentence(command: str) -> str:
        assert main.main(shlex.split(command)) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.endswith(".\n")
        assert err.count("\n") == 1
        return err.removesuffix("\n")

    return sentence


# Help


@pytest.mark.parametrize("command", ["", "--help"])
def test_without_a_command_help_names_them_all(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(command.split()) == 0
    out, err = capsys.readouterr()
    assert all(name in out.split() for name in ("article", "train", "placements", "pack", "bench"))
    assert err == ""


def test_help_tells_every_limit_and_choice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["train", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, limits in LIMITS.items():
        assert f"--{short(name)} " in text
        assert " to ".join(map(plain_text, limits)) in text
    assert all(choice in text for choice in (*PLACEMENTS, *NORMS, "--no-final-norm"))


# Bad input

BAD_VALUES = [
    (name, text)
    for name, (least, most) in LIMITS.items()
    for text in ("x", "", "nan", "inf", plain_text(most * 2 + 1), *(["0.5"] if name not in FRACTIONAL else []), plain_text(least - 1))
]


@pytest.mark.parametrize(("name", "text"), BAD_VALUES)
def test_a_bad_value_is_refused_in_the_words_of_the_configuration(name: str, text: str, refused: Callable[[str], str]) -> None:
    with pytest.raises(ConfigError) as expected:
        RunConfig.from_dict({name: text})
    flag = f"--{short(name)}={shlex.quote(text)}"
    assert refused(f"train --placement pre {flag}") == str(expected.value)
    if name in ("layers", "steps", "seed", "learning_rate"):
        assert refused(f"article {flag}") == str(expected.value)


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("train --placement sideways", "placement is 'sideways'; it must be one of pre, post"),
        ("train --placement pre --norm batchnorm", "norm is 'batchnorm'; it must be one of layernorm, rmsnorm"),
        ("train --placement pre --heads 3", "heads is 3; it must divide the width"),
        ("train", "--placement"),
        ("train --placement", "--placement"),
        ("train --placement pre --device tpu", "'tpu'"),
        ("train --placement pre --depth 3", "--depth 3"),
        ("train --placement pre --step 3", "--step 3"),
        ("train --placement pre 'two\nlines'", "two lines"),
        ("article --width 32", "--width 32"),
        ("article --device tpu", "'tpu'"),
        ("placements --csv x", "--csv x"),
        ("pack --steps 3", "--steps 3"),
        ("dance", "'dance'"),
    ],
)
def test_bad_input_is_refused_in_one_line_that_names_it(command: str, part: str, refused: Callable[[str], str]) -> None:
    assert part in refused(command)


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


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ("--csv nowhere/a.csv", "csv is 'nowhere/a.csv'; there is no folder 'nowhere'"),
        ("--csv .", "csv is '.'; that is a folder"),
        ("--csv ''", "csv is ''; that is a folder"),
        (f"--csv {'a' * 300}", "no file can have that name"),
        ("--csv a.csv/b.csv", "there is no folder 'a.csv'"),
        ("--layers-csv nowhere/a.csv", "layers-csv is 'nowhere/a.csv'"),
        ("--csv - --layers-csv -", "standard output"),
        ("--csv - --json", "standard output"),
        ("--csv b.csv --layers-csv ./b.csv", "b.csv"),
    ],
)
def test_files_are_checked_before_anything_is_computed(
    files: str, part: str, refused: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").touch()
    assert part in refused(f"{TINY} {files}")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("name", ["curve.gif", "curve", "-"])
def test_a_plot_needs_a_known_suffix(name: str, refused: Callable[[str], str]) -> None:
    assert refused(f"article --plot {name}") == f"plot is {name!r}; its name must end in .png, .svg or .webp."


def test_a_folder_without_permission_is_told(refused: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))  # root may write everywhere
    assert "cannot be written" in refused(f"{TINY} --csv {tmp_path}/a.csv")


# train


def configs() -> st.SearchStrategy[RunConfig]:
    numbers = {
        name: st.floats(*limits, allow_subnormal=False) if name in FRACTIONAL else st.integers(*map(int, limits))
        for name, limits in LIMITS.items()
        if name not in ("width", "heads")
    }
    choices = {"placement": st.sampled_from(list(PLACEMENTS)), "norm": st.sampled_from(list(NORMS))}
    choices |= {"final_norm": st.booleans(), "qk_norm": st.booleans()}
    return st.builds(RunConfig, width=st.sampled_from([16, 48, 256]), heads=st.sampled_from([1, 2, 8]), **numbers, **choices)


@given(configs())
def test_the_command_of_a_run_names_that_run(config: RunConfig) -> None:
    python, *words = shlex.split(config.command())
    assert [python, *words[:3]] == ["python", "-m", "core", "train"]
    assert config_of(shlex.join(words[2:])) == config


def test_a_run_is_written_in_full_and_kept(own_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = RunConfig(placement="post", norm="rmsnorm", final_norm=True, layers=2, width=16, heads=2, length=8, batch=4, steps=7, seed=3)
    steps, layers = tmp_path / "steps.csv", tmp_path / "layers.csv"
    assert main.main([*shlex.split(config.command())[3:], "--csv", str(steps), "--layers-csv", str(layers)]) == 0
    out, err = capsys.readouterr()
    history = history_of(config)
    assert "Final loss" in out
    assert err == ""  # no bar where there is no terminal
    pd.testing.assert_frame_equal(pd.read_csv(steps), step_frame({"Post-Norm · no warmup · final norm": history}), check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_csv(layers), layer_frame({"Post-Norm · no warmup · final norm": history}), check_dtype=False)
    assert list(pd.read_csv(steps)) == PUBLISHED_COLUMNS
    assert list(pd.read_csv(layers)) == LAYER_COLUMNS
    kept = store.load(config)
    assert kept
    np.testing.assert_array_equal(kept.history.loss_s, history.loss_s)


def test_a_design_trains_as_the_placement_that_it_describes() -> None:
    design = TINY.replace("--placement pre", "--placement custom:attn=input,ffn=input")
    np.testing.assert_array_equal(history_of(config_of(design)).loss_s, history_of(config_of(TINY)).loss_s)


def test_a_run_that_the_store_has_is_not_written_again(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main.main(shlex.split(TINY)) == 0
    monkeypatch.setattr(store, "save", nothing_is_computed)
    assert main.main(shlex.split(TINY)) == 0


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


def refuse_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("command", [TINY, DIVERGING])
def test_json_is_standard_and_complete(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([*shlex.split(command), "--json"]) == 0
    about = json.loads(capsys.readouterr().out, parse_constant=refuse_constant)
    config = config_of(command)
    history = history_of(config)
    finite = history.gradient_norm_s[np.isfinite(history.gradient_norm_s)]
    assert RunConfig.from_dict(about["config"]) == config
    assert about["steps"] == len(history)
    assert about["diverged_at"] == history.diverged_at
    assert about["outcome"] == ("diverged" if command == DIVERGING else "stuck")
    assert about["final_loss"] == (None if command == DIVERGING else float(history.loss_s[-1]))
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
    assert "nan" in last[2:4]


def test_a_csv_on_standard_output_is_clean(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main.main([*shlex.split(TINY), "--csv", "-"]) == 0
    out, err = capsys.readouterr()
    assert main.main([*shlex.split(TINY), "--csv", str(tmp_path / "a.csv")]) == 0
    assert out == (tmp_path / "a.csv").read_text(encoding="utf-8")
    assert err == capsys.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's full device")
def test_a_full_disk_is_told_and_the_table_is_not_lost(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main.main([*shlex.split(SMALL_ARTICLE), "--csv", "/dev/full", "--plot", str(tmp_path / "a.svg")]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert err == "/dev/full could not be written: No space left on device.\n"
    assert (tmp_path / "a.svg").exists()


def test_a_device_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object) -> NoReturn:
        raise JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.\nmore")

    monkeypatch.setattr(training, "compile_program", fail)
    assert main.main(shlex.split(TINY)) == 1
    assert capsys.readouterr().err == "Pre-Norm · no warmup could not be computed: RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.\n"


# article


def test_the_article_prints_its_table_and_writes_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    assert main.main(["article", "--layers", "1", "--lr", "1e-3", "--csv", str(path)]) == 0
    written = pd.read_csv(path)
    names = ["Pre-Norm · no warmup", "Post-Norm · no warmup", "Post-Norm · 120-step warmup"]
    assert list(written) == PUBLISHED_COLUMNS
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
    assert written["learning_rate"].max() == 1e-3


def test_the_article_without_options_is_the_article(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RunConfig] = []
    monkeypatch.setattr(commands, "compute", lambda configs, *_: asked.extend(configs) or iter(()))
    main.main(["article"])
    assert asked == list(ARTICLE)


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("webp", b"RIFF")])
def test_the_article_draws_its_plot(suffix: str, start: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    assert main.main([*shlex.split(SMALL_ARTICLE), "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(start)


# Ctrl-C


def interrupt_after(monkeypatch: pytest.MonkeyPatch, chunks: int, run: int = 1) -> None:
    """Sends what Ctrl-C sends, once that run has computed as many chunks."""
    chunks_of, runs = training.Training.__iter__, iter(range(1, 10))

    def interrupted(training: Any) -> Iterator[History]:
        this = next(runs)
        for number, chunk in enumerate(chunks_of(training), 1):
            if (this, number) == (run, chunks):
                signal.raise_signal(signal.SIGINT)
            yield chunk

    monkeypatch.setattr(training.Training, "__iter__", interrupted)


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


def test_a_second_ctrl_c_ends_at_once() -> None:
    with main.stopping() as stop:
        assert not stop.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL


# placements, pack, bench


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


def test_bench_has_a_command_line_of_its_own_under_two_names() -> None:
    root = Path(__file__).parents[2]
    texts = [
        subprocess.run([sys.executable, *words, "--help"], cwd=root, capture_output=True, text=True, check=True).stdout
        for words in (["-m", "core", "bench"], ["-m", "benchmarks"])
    ]
    assert texts[0] == texts[1]
    assert "--repeats" in texts[0]


# Processes of their own


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


@pytest.mark.parametrize("name", ["run.csv.zst", "run.tar", "run.csv.gz"])
def test_a_csv_is_text_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert main.main([*shlex.split(TINY), "--csv", str(path)]) == 0
    assert path.read_text(encoding="utf-8").startswith("run,step,loss")


def test_an_output_that_knows_no_middle_dot_gets_an_escape() -> None:
    words = [*shlex.split(TINY), "--csv", "-"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    process = subprocess.run([sys.executable, "-m", "core", *words], capture_output=True, text=True, env=environment, check=True)
    assert process.stdout.splitlines()[1].startswith("Pre-Norm \\xb7 no warmup")


def test_another_name_of_standard_output_is_standard_output() -> None:
    words = [*shlex.split(TINY), "--csv", "/dev/stdout", "--json"]
    process = subprocess.run([sys.executable, "-m", "core", *words], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr == "Only one of the outputs can go to standard output.\n"

"""The files that a command writes."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import SMALL_ARTICLE, TINY

from core.cli import main

pytestmark = pytest.mark.usefixtures("quick")


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


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("webp", b"RIFF")])
def test_the_article_draws_its_plot(suffix: str, start: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    assert main.main([*shlex.split(SMALL_ARTICLE), "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["run.csv.zst", "run.tar", "run.csv.gz"])
def test_a_csv_is_text_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert main.main([*shlex.split(TINY), "--csv", str(path)]) == 0
    assert path.read_text(encoding="utf-8").startswith("run,step,loss")


def test_another_name_of_standard_output_is_standard_output() -> None:
    words = [*shlex.split(TINY), "--csv", "/dev/stdout", "--json"]
    process = subprocess.run([sys.executable, "-m", "core", *words], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr == "Only one of the outputs can go to standard output.\n"

"""A store of a test's own, and commands that must be refused."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import nothing_is_computed

from core.cli import main
from core.engine import training
from core.runs import store


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

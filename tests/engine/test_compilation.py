"""Each case in a process of its own: JAX is told once where programs are kept."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from quick import QUICK

from core.engine.compilation import keep_programs, why_unsafe

PROGRAM = f"""
import jax
from core.engine import compilation, training
compilation.WORTH_KEEPING = 0.0
training.COMPILER_OPTIONS = {{"cpu": {QUICK}}}
from core.runs.config import RunConfig
from core.engine.training import Training, compile_program
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
config = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=3)
history = next(iter(Training(config, compile_program(config, "cpu"))))
print(history["loss"][0], events.count("/jax/compilation_cache/cache_hits") > 0)
"""


def compute(folder: Path) -> tuple[float, bool]:
    """The first loss, and whether a program was found in the folder."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | {"NORMLAB_PROGRAMS": str(folder)}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    loss, hit = result.stdout.split()
    return float(loss), hit == "True"


def test_a_program_is_compiled_once_and_kept_also_where_nothing_more_can_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "below" / "programs"
    first, again = compute(folder), compute(folder)
    assert (first[1], again[1]) == (False, True)
    assert first[0] == again[0]
    assert folder.stat().st_mode & 0o077 == 0
    for kept in folder.iterdir():
        kept.write_bytes(b"damaged")
    before = {kept.name for kept in folder.iterdir()}
    folder.chmod(0o500)
    damaged = compute(folder)
    folder.chmod(0o700)
    assert damaged[0] == first[0]
    assert {kept.name for kept in folder.iterdir()} == before


def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("NORMLAB_PROGRAMS", str(tmp_path))
    keep_programs()
    assert jax.config.jax_compilation_cache_dir is None
    [said] = caplog.messages
    assert said.startswith(f"NORMLAB_PROGRAMS is {str(tmp_path)!r}; it must be a folder of your own")
    assert said.endswith("Compiled programs are not kept.")


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    assert why_unsafe(tmp_path / "\udcff") == "the name must be one that can be printed"


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_where_no_folder_can_be_the_reason_is_said(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("")
    assert why_unsafe(tmp_path / where).startswith("there can be no such folder")

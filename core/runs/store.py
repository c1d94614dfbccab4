"""Finished runs on disk: one Parquet file each, named by the run's key.

`cache/reference/`, committed, is read first; `cache/runs/`, or the folder that NORMLAB_CACHE names, is read next and written.
"""

import contextlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from core import host
from core.runs.config import RunConfig
from core.runs.file import DAMAGE, Facts, NewerFile, Run
from core.runs.whole_file import write_whole

CACHE = Path(__file__).parents[2] / "cache"
REFERENCE = CACHE / "reference"
SUFFIX = ".parquet"
LISTED = 2000  # files of a folder whose runs can be found by what they are


class StoreError(OSError):
    """A run could not be written; the text is one sentence for the user."""


def runs_folder() -> Path:
    return Path(host.text("CACHE") or CACHE / "runs")


def load(config: RunConfig) -> Run | None:
    """The finished run of this configuration, if there is one: if possible, one that has recorded all that is recorded today.

    A damaged file is set aside, so that its run is computed again; those of reference are never touched.
    """
    found = [run for folder in (REFERENCE, runs_folder()) if (run := read(folder, config))]
    return next((run for run in found if not run.history.absent), found[0] if found else None)


def load_complete(config: RunConfig) -> Run | None:
    """The finished run of this configuration, if there is one that has recorded all that is recorded today."""
    run = load(config)
    return run if run and not run.history.absent else None


def read(folder: Path, config: RunConfig) -> Run | None:
    """The run of this configuration in one folder."""
    path = folder / f"{config.key}{SUFFIX}"
    try:
        content = path.read_bytes()
    except OSError:  # it is not there, or cannot be read now: no reason to touch it
        return None
    try:
        if (run := Run.from_parquet(content)).config == config:
            return run
    except NewerFile:
        return None
    except DAMAGE:
        pass
    if folder != REFERENCE:
        with contextlib.suppress(OSError):  # a folder that cannot be written keeps its damaged file
            path.replace(path.with_suffix(".damaged"))
    return None


def save(run: Run, folder: Path | None = None) -> None:
    """Writes the run's file, whole or not at all.

    Raises StoreError where the folder cannot take it or has a later version's, and where the run is not the one that others get.
    """
    folder = folder or runs_folder()
    if run.facts.moved:
        raise StoreError(
            f"The run was not written to {folder}: it was computed with XLA_FLAGS={run.facts.xla_flags!r}, which can move numbers."
        )
    if is_newer(folder / f"{run.config.key}{SUFFIX}"):
        raise StoreError(f"The run was not written to {folder}: a later version of the lab has left its file there.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{run.config.key}{SUFFIX}", run.to_parquet())
    except OSError as error:
        raise StoreError(f"The run could not be written to {folder}: {error.strerror or error}.") from error


def is_newer(path: Path) -> bool:
    """Whether there is a file that a later version has written."""
    try:
        Run.about(path)
    except NewerFile:
        return True
    except DAMAGE:  # or no file at all
        return False
    return False


def facts(folder: Path, most: int = 50) -> list[tuple[RunConfig, Facts, int]]:
    """What the newest files of a folder say of their runs, newest first, and how many steps each holds."""
    found, dated = [], []
    with contextlib.suppress(OSError):
        for path in folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):  # it has just gone, or leads nowhere
                dated.append((path.stat().st_mtime_ns, path))
    for modified, path in sorted(dated, reverse=True)[:most]:
        with contextlib.suppress(NewerFile, *DAMAGE):
            found.append(about(path, modified))
    return found


def find(wanted: Callable[[RunConfig], bool]) -> list[RunConfig]:
    """The finished runs that are wanted, of those of reference and of the newest of this machine, in this order."""
    found: dict[RunConfig, None] = {}
    for folder in (REFERENCE, runs_folder()):
        for config, _, _ in facts(folder, LISTED):
            if wanted(config) and (folder / f"{config.key}{SUFFIX}").exists():
                found[config] = None  # an older engine's file has another name
    return list(found)


@lru_cache(maxsize=2 * LISTED)
def about(path: Path, modified: int) -> tuple[RunConfig, Facts, int]:
    return Run.about(path)

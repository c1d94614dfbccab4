"""Which compiled programs are kept: a few of each kind, and beyond the process where the host names a folder in NORMLAB_PROGRAMS."""

import logging
import math
import os
import stat
from pathlib import Path

import jax

from core import host

PROGRAMS = 8  # of a kind that a process keeps; older ones are freed, so memory does not grow with the number of runs
WORTH_KEEPING = 0.3  # seconds that a compilation took
log = logging.getLogger(__name__)


def keep_programs() -> None:
    """Lets JAX keep what it compiles from now on in the folder that the host names, if it does and the folder is safe."""
    if not (name := host.text("PROGRAMS")):
        return
    folder = Path(name)
    if reason := why_unsafe(folder):
        log.warning("NORMLAB_PROGRAMS is %r; %s. Compiled programs are not kept.", name, reason)
        return
    jax.config.update("jax_compilation_cache_dir", str(folder.resolve()))
    # In a folder that cannot be written to, programs are found, but JAX must not try to keep any.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING if os.access(folder, os.W_OK) else math.inf)


def why_unsafe(folder: Path) -> str:
    """The reason not to load programs from this folder, which is created if it is missing; empty if it is safe.

    A program is machine code: nobody else may have put it there.
    """
    if not str(folder).isprintable():
        return "the name must be one that can be printed"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
    except OSError as error:
        return f"there can be no such folder: {error.strerror}"
    if hasattr(os, "geteuid") and (about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return "it must be a folder of your own that nobody else can write to"
    return ""

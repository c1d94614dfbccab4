"""The files that a command writes: checked before anything is computed, written at its end."""

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any

from core.cli.report import Trained
from core.runs.frames import layer_frame, step_frame, write_csv
from core.runs.history import History
from core.runs.settings import ConfigError
from core.runs.whole_file import write_whole

FAILED, INTERRUPTED = 1, 130  # exit codes
STANDARD_OUTPUT = "-"
FRAMES = {"csv": step_frame, "layers-csv": layer_frame}  # options whose files are tables


def check_outputs(arguments: Namespace) -> dict[str, str]:
    """The files that the command line asks for, by option. Raises ConfigError, before anything is computed, where one cannot be written."""
    names = {"csv": "csv", "layers-csv": "layers_csv", "plot": "plot"}  # as the parser stores what an option says
    outputs = {option: text for option, name in names.items() if (text := getattr(arguments, name, None)) is not None}
    for name, text in outputs.items():
        if name in FRAMES and text == STANDARD_OUTPUT:
            continue
        path = Path(text)
        if name == "plot":
            from core.figures import images

            images.check(path)
        if reason := why_unwritable(path):
            raise ConfigError(f"{name} is {text!r}; {reason}.")
    targets = [
        STANDARD_OUTPUT if text == STANDARD_OUTPUT or is_standard_output(text) else os.path.realpath(text) for text in outputs.values()
    ]
    if getattr(arguments, "json", False):
        targets.append(STANDARD_OUTPUT)
    for target in targets:
        if targets.count(target) > 1:
            raise ConfigError(f"Only one of the outputs can go to {'standard output' if target == STANDARD_OUTPUT else repr(target)}.")
    return outputs


def is_standard_output(text: str) -> bool:
    """Whether a path is another name of what this process prints to."""
    try:
        return os.path.samestat(Path(text).stat(), os.fstat(1)) and not Path(text).samefile(os.devnull)
    except OSError:
        return False


def why_unwritable(path: Path) -> str:
    """The reason why no file can be written there; empty if one can."""
    try:
        if path.is_dir():
            return "that is a folder"
        if not path.parent.is_dir():
            return f"there is no folder {str(path.parent)!r}"
    except OSError as error:
        return f"no file can have that name: {error.strerror}"
    folder = Path(os.path.realpath(path)).parent
    places = [path, folder] if path.is_file() else [path] if path.exists() else [folder]  # a plain file is replaced as a whole
    return "" if all(os.access(place, os.W_OK) for place in places) else "it cannot be written there"


def deliver(runs: Sequence[Trained], text: str, outputs: Mapping[str, str], stop: Event) -> int:
    """Writes the files, the text, then what goes to standard output; returns the exit code. Without runs it writes nothing."""
    if not runs:
        print("Interrupted before the first step, so nothing is written.", file=sys.stderr)
        return INTERRUPTED
    histories = {trained.label: trained.history for trained in runs}
    streamed = [name for name, target in outputs.items() if target == STANDARD_OUTPUT]
    files = {name: target for name, target in outputs.items() if name not in streamed}
    written = []
    for name, target in files.items():
        try:
            write(name, histories, Path(target))
            written.append(target)
        except OSError as error:
            print(f"{target} could not be written: {error.strerror or error}.", file=sys.stderr)
    print(text, file=sys.stderr if streamed else sys.stdout)
    for name in streamed:
        write(name, histories, sys.stdout)
    if stop.is_set():
        last = runs[-1]
        where = f"; what was computed is in {' and '.join(written)}" if written else ""
        print(f"Interrupted after step {len(last.history)} of {last.config.steps} of {last.label}{where}.", file=sys.stderr)
        return INTERRUPTED
    return 0 if len(written) == len(files) else FAILED


def write(name: str, histories: dict[str, History], target: Any) -> None:
    """Raises OSError."""
    if name in FRAMES:
        frame = FRAMES[name](histories)
        if isinstance(target, Path):  # pandas would read a compression, or a home folder, out of the name
            write_whole(target, write_csv(frame).encode())
        else:
            write_csv(frame, target)
    else:
        from core.figures import curves, images

        images.write(curves.article_figure(histories), target)

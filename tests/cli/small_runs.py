"""Commands whose runs are small enough for any test, and what else the command line's tests have in common."""

import shlex
import signal
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from core.cli import commands, parser
from core.engine import training
from core.runs.config import RunConfig
from core.runs.history import History

SHAPE = "--layers 2 --width 16 --heads 2 --length 8 --batch 4"
TINY = f"train --placement pre {SHAPE} --steps 5"
DIVERGING = "train --placement none --layers 32 --width 16 --heads 2 --length 8 --batch 4 --lr 1 --steps 5"
SMALL_ARTICLE = "article --layers 2 --steps 5"


def config_of(command: str) -> RunConfig:
    """The run that a train command names."""
    return RunConfig.from_dict(commands.read_settings(parser.parser().parse_args(shlex.split(command))))


def history_of(config: RunConfig) -> History:
    history = History.empty(config.layers)
    for chunk in training.Training(config, training.compile_program(config)):
        history = history + chunk
    return history


def nothing_is_computed(*_: object) -> NoReturn:
    raise AssertionError("a run was begun")


def refuse_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


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

"""What the commands of core/cli/main.py do. Each returns its exit code; else it raises ConfigError, DeviceError or Failure."""

import json
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import fields
from threading import Event
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from core.cli.outputs import INTERRUPTED, check_outputs, deliver
from core.cli.report import HEADER, PLACEMENT_FOOT, PLACEMENT_HEADER, Trained, placement_dict, placement_row, table
from core.placement.table import PLACEMENTS
from core.runs import store
from core.runs.config import RunConfig, admit
from core.runs.history import History
from core.runs.labels import labels
from core.runs.presets import ARTICLE
from core.values import first_line

if TYPE_CHECKING:
    from core.engine.devices import DeviceKind


class Failure(Exception):  # noqa: N818 (it is no bug)
    """The command cannot do what it was asked; the text is one sentence for the user."""


def article(arguments: Namespace, stop: Event) -> int:
    configs = [RunConfig.from_dict(config.to_dict() | read_settings(arguments)) for config in ARTICLE]
    outputs = check_outputs(arguments)
    runs = keep(compute(configs, arguments.device, stop))
    return deliver(runs, table([HEADER, *(run.row() for run in runs)]), outputs, stop)


def train(arguments: Namespace, stop: Event) -> int:
    config = RunConfig.from_dict(read_settings(arguments))
    outputs = check_outputs(arguments)
    runs = keep(compute([config], arguments.device, stop))
    texts = [run.to_json() if arguments.json else run.sentences() for run in runs]
    return deliver(runs, "\n".join(texts), outputs, stop)


def pack(arguments: Namespace, stop: Event) -> int:
    """Other runs are removed from the folder only once all of these are there."""
    written = []
    for trained in compute(ARTICLE, "auto", stop):
        if trained.run:
            try:
                store.save(trained.run, store.REFERENCE)
            except store.StoreError as error:
                raise Failure(str(error)) from error
            written.append(store.REFERENCE / f"{trained.config.key}{store.SUFFIX}")
            tqdm.write(f"{written[-1]}: {trained.label}, {trained.end}")  # above the bar
    if len(written) < len(ARTICLE):
        return INTERRUPTED
    for other in set(store.REFERENCE.glob(f"*{store.SUFFIX}")) - set(written):
        other.unlink()
        print(f"{other}: removed")
    return 0


def placements(arguments: Namespace, stop: Event) -> int:
    if arguments.json:
        print(json.dumps([placement_dict(placement) for placement in PLACEMENTS.values()], indent=2, ensure_ascii=False))
    else:
        print(table([PLACEMENT_HEADER, *map(placement_row, PLACEMENTS.values())]))
        print(f"\n{PLACEMENT_FOOT}")
    return 0


def read_settings(arguments: Namespace) -> dict[str, Any]:
    """The fields of a run that the command line names, as it has them."""
    names = {field.name for field in fields(RunConfig)}
    return {name: value for name, value in vars(arguments).items() if name in names}


def compute(configs: Sequence[RunConfig], device: "DeviceKind", stop: Event) -> Iterator[Trained]:
    """Trains run after run until `stop` is set, with a bar where standard error is a terminal.

    Raises ConfigError where the host does not allow a run, DeviceError where the device is not there, and Failure where it fails.
    """
    for config in configs:
        admit(config)
    columns, rows = shutil.get_terminal_size()  # on a terminal that does not tell its size tqdm by itself shows nothing
    total = sum(config.steps for config in configs)
    with tqdm(total=total, unit="step", leave=False, disable=None, ncols=columns, nrows=rows) as bar:
        for config, label in zip(configs, labels(configs), strict=True):
            trained = compute_one(config, label, device, stop, bar)
            if len(trained.history):
                yield trained
            if stop.is_set():
                return


def compute_one(config: RunConfig, label: str, device: "DeviceKind", stop: Event, bar: Any) -> Trained:
    from core.engine import training
    from core.engine.devices import FailedDevice

    history, run = History.empty(config.layers), None
    try:
        bar.set_description(f"{label}: compiling")
        program = training.compile_program(config, device)
        if stop.is_set():
            return Trained(label, config, history, None)
        training_run = training.Training(config, program)
        bar.set_description(label)
        bar.unpause()  # its estimate is one of training
        started = time.perf_counter()
        for chunk in training_run:
            history = history + chunk
            bar.update(len(chunk))
            if stop.is_set():
                break
        if len(history) == config.steps or history.diverged_at:
            run = training_run.finished(history, time.perf_counter() - started)
    except FailedDevice as error:
        raise Failure(f"{label} could not be computed: {first_line(error)}.") from error
    return Trained(label, config, history, run)


def keep(runs: Iterator[Trained]) -> list[Trained]:
    """Puts those that are finished into the store, where the app finds them, and returns all. A store that takes none is no failure."""
    found: list[Trained] = []
    troubles: dict[str, None] = {}  # each is told once
    for trained in runs:
        found.append(trained)
        if trained.run and (trained.run.facts.moved or not store.load_complete(trained.config)):
            try:
                store.save(trained.run)
            except store.StoreError as error:
                troubles[str(error)] = None
    for trouble in troubles:
        print(trouble, file=sys.stderr)
    return found

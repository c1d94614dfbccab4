"""The files of a comparison: which there are, and what is in each."""

import io
import json
import shlex
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from made_run import made_run
from PIL import Image

from core.cli.commands import read_settings
from core.cli.parser import parser
from core.runs import store
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.frames import LAYER_COLUMNS, STEP_COLUMNS, layer_frame, step_frame, write_csv
from core.runs.quantities import CURVES, LAYERS
from core.state.address import write_run

KNOWN = [RunConfig(layers=2, steps=6), RunConfig(placement="post", final_norm=True, layers=3, steps=6, warmup=0.5, learning_rate=3e-4)]
QUERY = {f"run{slot}": write_run(run) for slot, run in enumerate(KNOWN, 1)} | {"view": "downloads"}
LABELS = [
    "Pre-Norm · no warmup · 2 blocks · rate 0.002",
    "Post-Norm · 3-step warmup · final norm · 3 blocks · rate 0.0003",
]
CHARTS = [*CURVES, *LAYERS, *(f"{name}_map" for name in LAYERS)]
Files = dict[str, Callable[[], Any]]
Visits = Callable[..., Any]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """What makes each file that the page offers, by the file's name."""
    made: Files = {}

    def button(label: str, make: Callable[[], Any], file_name: str, mime: str, owner: object = "") -> None:
        assert file_name not in made
        made[file_name] = make

    monkeypatch.setattr("pages.ui.train.downloads.button", button)
    for config in KNOWN:
        store.save(made_run(config))
    return made


def test_every_file_is_offered_and_none_is_made_before_it_is_asked_for(visit: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    for config in KNOWN:
        store.save(made_run(config))
    for name in ("png", "svg"):
        monkeypatch.setattr(f"core.figures.images.{name}", lambda chart: pytest.fail("a picture was drawn that nobody asked for"))
    buttons = visit(**QUERY).app.get("download_button")
    assert all(button.proto.deferred_file_id and button.proto.ignore_rerun for button in buttons)
    assert len(buttons) == 2 + 2 * len(KNOWN) + 2 * len(CHARTS)


def test_the_files_of_a_comparison(visit: Visits, files: Files) -> None:
    visit(**QUERY)
    of_runs = {f"{write_run(config)}.{ending}" for config in KNOWN for ending in ("parquet", "json")}
    assert files.keys() == {"steps.csv", "layers.csv"} | of_runs | {f"{name}.{ending}" for name in CHARTS for ending in ("png", "svg")}


def test_the_per_step_csv_has_the_published_columns_and_every_value(visit: Visits, files: Files) -> None:
    visit(**QUERY)
    frame = pd.read_csv(io.StringIO(files["steps.csv"]()))
    assert list(frame.columns) == STEP_COLUMNS
    assert list(frame.run.unique()) == LABELS
    for config, label in zip(KNOWN, LABELS, strict=True):
        rows, history = frame[frame.run == label], made_run(config).history
        assert list(rows.step) == [1, 2, 3, 4, 5, 6]
        np.testing.assert_array_equal(rows.loss.astype(np.float32), history["loss"])
        np.testing.assert_array_equal(rows.gradient_norm.astype(np.float32), history["gradient_norm"])
        np.testing.assert_array_equal(rows.learning_rate, history["learning_rate"])


def test_the_per_layer_csv_is_tidy_and_has_every_value(visit: Visits, files: Files) -> None:
    visit(**QUERY)
    frame = pd.read_csv(io.StringIO(files["layers.csv"]()))
    assert list(frame.columns) == LAYER_COLUMNS
    for config, label in zip(KNOWN, LABELS, strict=True):
        history = made_run(config).history
        for name, array_sl in (("stream_rms", history["stream_rms"]), ("block_gradient_norm", history["block_gradient_norm"])):
            table = frame[frame.run == label].pivot(index="step", columns="layer", values=name).dropna(axis="columns")
            np.testing.assert_array_equal(table.astype(np.float32), array_sl)


def test_the_csvs_are_those_that_other_tools_read(visit: Visits, files: Files) -> None:
    """Which tests/runs/test_readers.py shows."""
    visit(**QUERY)
    histories = {label: made_run(config).history for config, label in zip(KNOWN, LABELS, strict=True)}
    assert files["steps.csv"]() == write_csv(step_frame(histories))
    assert files["layers.csv"]() == write_csv(layer_frame(histories))


def test_a_diverged_run_is_in_the_files_as_it_is(visit: Visits, files: Files) -> None:
    store.save(made_run(RunConfig(layers=1, steps=6), loss_s=[4.0, np.inf]))
    visit(run1="pre~layers-1~steps-6", view="downloads")
    assert list(pd.read_csv(io.StringIO(files["steps.csv"]())).loss) == [4.0, np.inf]


def test_a_run_s_own_files_hold_the_run_and_its_settings(visit: Visits, files: Files) -> None:
    visit(**QUERY)
    for config in KNOWN:
        run = Run.from_parquet(files[f"{write_run(config)}.parquet"]())
        assert run.config == config
        np.testing.assert_array_equal(run.history["update_ratio"], made_run(config).history["update_ratio"])
        assert RunConfig.from_dict(json.loads(files[f"{write_run(config)}.json"]())) == config


def test_the_command_asks_for_the_same_run(visit: Visits, files: Files) -> None:
    commands = [shlex.split(code.value) for code in visit(**QUERY).app.code]
    assert [command[:4] for command in commands] == [["python", "-m", "core", "train"]] * 2
    assert [RunConfig.from_dict(read_settings(parser().parse_args(command[3:]))) for command in commands] == KNOWN


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_a_picture_with_the_runs_names(visit: Visits, files: Files, name: str) -> None:
    visit(**QUERY, step="2")
    picture = Image.open(io.BytesIO(files[f"{name}.png"]()))
    assert picture.format == "PNG"
    assert min(picture.size) > 300
    texts = [element.text for element in ElementTree.fromstring(files[f"{name}.svg"]()).iter("{http://www.w3.org/2000/svg}text")]
    assert [label for label in LABELS if label not in texts] == []


def test_layer_charts_are_files_of_the_step_that_is_chosen(visit: Visits, files: Files) -> None:
    pictures = []
    for query in ({}, {"step": "6"}, {"step": "2"}):
        files.clear()
        visit(**QUERY, **query)
        pictures.append(files["stream_rms.svg"]())
    assert pictures[0] == pictures[1] != pictures[2]


def test_hidden_runs_are_in_no_file(visit: Visits, files: Files) -> None:
    visit(**QUERY, hide="1")
    assert "Pre-Norm" not in files["steps.csv"]()
    assert f"{write_run(KNOWN[0])}.parquet" not in files
    assert "Pre-Norm" not in files["loss.svg"]()

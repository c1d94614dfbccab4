"""What people have kept stays valid: addresses, keys of finished runs, files and commands, as they were before the settings had
records (tests/data/before.json and format_1.parquet).
"""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.cli.command import command
from core.cli.parser import parser
from core.placement.table import PLACEMENTS
from core.runs import store
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.presets import ARTICLE
from core.state.address import read_run, write_run
from core.state.comparison import Comparison
from core.state.pair import Pair

DATA = Path(__file__).parent / "data"
BEFORE: dict[str, Any] = json.loads((DATA / "before.json").read_text())
REVISED = {"admin_profiled", "b2t"}  # whose mathematics has changed since: their runs have new keys, so that the old ones are not shown
TINY = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)


@pytest.mark.parametrize("address", BEFORE["runs"])
def test_a_run_keeps_its_address_its_key_its_settings_and_its_command(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = BEFORE["runs"][address]
    config, faults = read_run(address)
    assert faults == []
    assert (write_run(config), command(config)) == (address, kept["command"])
    assert (config.key != kept["key"]) == (config.placement in REVISED)
    for name in REVISED:
        monkeypatch.setitem(PLACEMENTS, name, replace(PLACEMENTS[name], revision=0))
    assert config.key == kept["key"]
    assert RunConfig.from_file(kept["settings"]) == config
    arguments = parser().parse_args(shlex.split(kept["command"])[3:])
    assert RunConfig.from_dict({name: value for name, value in vars(arguments).items() if name in config.to_dict()}) == config


def test_only_what_is_revised_has_a_revision() -> None:
    assert {name for name, placement in PLACEMENTS.items() if placement.revision} == REVISED


@pytest.mark.parametrize("query", BEFORE["train"])
def test_an_address_of_the_page_train_is_read_and_written_as_before(query: dict[str, str]) -> None:
    comparison, faults = Comparison.from_query(query)
    assert (comparison.to_query(), faults) == (query, [])


@pytest.mark.parametrize("query", BEFORE["identity-path"])
def test_an_address_of_the_page_identity_path_is_read_and_written_as_before(query: dict[str, str]) -> None:
    pair, faults = Pair.from_query(query)
    assert (pair.to_query(), faults) == (query, [])


@pytest.mark.parametrize("arguments", ["article", "article --layers 2 --steps 3 --seed 1 --lr 1e-3 --csv a.csv --plot a.png --device cpu"])
def test_a_command_is_still_understood(arguments: str) -> None:
    assert parser().parse_args(shlex.split(arguments)).command == "article"


def test_a_file_of_the_first_format_is_a_run_that_lacks_what_came_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.from_parquet(DATA / "format_1.parquet")
    assert run.config == TINY
    assert (len(run.history), run.history.format) == (5, 1)
    assert np.isfinite(run.history["loss"]).all()
    assert Run.from_parquet(run.to_parquet()).history.format == 1
    monkeypatch.setenv("NORMLAB_CACHE", str(tmp_path))
    (tmp_path / f"{TINY.key}.parquet").write_bytes((DATA / "format_1.parquet").read_bytes())
    assert store.load(TINY) is not None
    assert [path.suffix for path in tmp_path.iterdir()] == [".parquet"]


@pytest.mark.parametrize("config", ARTICLE, ids=write_run)
def test_the_reference_is_found_under_its_keys(config: RunConfig) -> None:
    assert (store.REFERENCE / f"{config.key}.parquet").exists()
    assert store.load(config)

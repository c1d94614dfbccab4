import json
import math
from typing import Any

import pytest
from hypothesis import given
from strategies import configs

from core.runs.config import SETTINGS, RunConfig, admit, host_most, legal
from core.runs.settings import ConfigError, Number, Switch

NUMBERS = {name: setting.kind for name, setting in SETTINGS.items() if isinstance(setting.kind, Number)}
ABSURD = [
    math.nan,
    math.inf,
    -math.inf,
    "",
    " ",
    None,
    True,
    False,
    [],
    [4],
    {},
    (),
    "nan",
    "four",
    "1e999",
    10**400,
    10**5000,
    4 + 0j,
    object(),
]


@given(configs())
def test_a_run_survives_its_dict_and_its_json(config: RunConfig) -> None:
    assert RunConfig.from_dict(config.to_dict()) == config
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@given(configs(), configs())
def test_keys_are_equal_exactly_where_runs_are(one: RunConfig, other: RunConfig) -> None:
    assert (one.key == other.key) == (one == other)


@pytest.mark.parametrize("same", [{"warmup": 1}, {"warmup": 1.0}, {"warmup": "1"}, {"warmup": "1.000"}])
def test_one_number_has_one_key_however_it_is_written(same: dict[str, Any]) -> None:
    assert RunConfig(**same).key == RunConfig(warmup=1.0).key != RunConfig().key
    assert RunConfig(layers=12.0, warmup=-0.0, final_norm=True).key == RunConfig().key


@pytest.mark.parametrize("name", NUMBERS)
def test_both_ends_of_a_limit_are_allowed_and_nothing_beyond(name: str) -> None:
    least, most, whole = NUMBERS[name].least, NUMBERS[name].most, NUMBERS[name].whole
    assert [legal(name, least), legal(name, most)] == [least, most]
    just_under, just_over = (int(least) - 1, int(most) + 1) if whole else (math.nextafter(least, -math.inf), math.nextafter(most, math.inf))
    for beyond in (just_under, just_over):
        with pytest.raises(ConfigError, match=rf"^{name} is .*; it must be a .*number from .* to .*\.$") as refusal:
            RunConfig(**{name: beyond})
        sentence = str(refusal.value)
        assert sentence.startswith(f"{name} is {beyond}" if whole or beyond != float(f"{beyond:g}") else f"{name} is {beyond:g}")
        said_least, said_most = sentence.removesuffix(".").split(" from ")[1].split(" to ")
        assert (float(said_least), float(said_most)) == (least, most)


@pytest.mark.parametrize("name", [name for name, kind in NUMBERS.items() if kind.whole])
def test_whole_numbers_are_whole(name: str) -> None:
    with pytest.raises(ConfigError, match="it must be a whole number"):
        RunConfig(**{name: NUMBERS[name].least + 0.5})


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("value", ABSURD, ids=[f"{i}" for i in range(len(ABSURD))])
def test_absurd_values_are_refused_in_one_sentence(name: str, value: Any) -> None:
    if isinstance(value, bool) and isinstance(SETTINGS[name].kind, Switch):
        assert getattr(RunConfig(**{name: value}), name) is value
        return
    if (name, value) == ("final_norm", None):
        assert RunConfig(final_norm=None).final_norm is True
        return
    with pytest.raises(ConfigError) as refusal:
        RunConfig(**{name: value})
    sentence = str(refusal.value)
    assert sentence.startswith(f"{name} is ")
    assert "; it must be " in sentence
    assert len(sentence) - len(SETTINGS[name].kind.allowed) < 200
    assert "\n" not in sentence


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ConfigError, match=r"^heads is 5; it must divide the width, which is 64\.$"):
        RunConfig(heads=5)


def test_unknown_settings_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"^'depth' is not a setting; the settings are placement, norm, .*seed.*\.$"):
        RunConfig.from_dict({"depth": 3})


def test_warmup_steps_are_counted_as_the_article_counts_them() -> None:
    assert [RunConfig(warmup=warmup).warmup_steps for warmup in (0, 0.1, 2 / 3, 1)] == [0, 18, 120, 180]
    assert RunConfig(warmup=0.29, steps=100).warmup_steps == 29  # 0.29 x 100 is a little less in floating point


def test_the_host_can_lower_a_limit_but_not_raise_it(monkeypatch: pytest.MonkeyPatch) -> None:
    admit(RunConfig(layers=96))
    monkeypatch.setenv("NORMLAB_MAX_LAYERS", "24")
    admit(RunConfig(layers=24))
    with pytest.raises(ConfigError, match=r"^layers is 25; this machine's host allows at most 24 \(NORMLAB_MAX_LAYERS\)\.$"):
        admit(RunConfig(layers=25))
    monkeypatch.setenv("NORMLAB_MAX_LAYERS", "1000")
    assert host_most("layers") == 96
    monkeypatch.setenv("NORMLAB_MAX_LAYERS", "0")
    assert host_most("layers") == 1


@pytest.mark.parametrize("text", ["", "many", "nan"])
def test_a_hosts_limit_that_is_no_number_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("NORMLAB_MAX_STEPS", text)
    assert host_most("steps") == 5000

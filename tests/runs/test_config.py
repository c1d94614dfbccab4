import json
import math
import shlex
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.placement.table import PLACEMENTS
from core.runs.config import (
    CHOICES,
    FRACTIONAL,
    LIMITS,
    LONG_NAMES,
    NORMS,
    SWITCHES,
    URL_SEPARATOR,
    ConfigError,
    RunConfig,
    admit,
    host_most,
    legal,
)


@st.composite
def configs(draw: st.DrawFn) -> RunConfig:
    """Any legal run."""
    values: dict[str, Any] = {
        name: draw(st.floats(least, most) if name in FRACTIONAL else st.integers(int(least), int(most)))
        for name, (least, most) in LIMITS.items()
    }
    values["heads"] = draw(st.sampled_from([heads for heads in range(1, values["width"] + 1) if values["width"] % heads == 0]))
    values |= {name: draw(st.sampled_from(sorted(choices))) for name, choices in CHOICES.items()}
    return RunConfig(**values, final_norm=draw(st.sampled_from([None, True, False])), qk_norm=draw(st.booleans()))


SUCH = "such as custom:attn=input,ffn=outer"
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
def test_a_run_survives_its_url_its_dict_and_its_json(config: RunConfig) -> None:
    assert RunConfig.from_url(config.to_url()) == (config, [])
    assert RunConfig.from_dict(config.to_dict()) == config
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@given(configs())
def test_the_command_says_what_the_run_is(config: RunConfig) -> None:
    """Reads it back as the command line does: each flag is a field, spelled short and with dashes."""
    words = shlex.split(config.command())
    assert words[:4] == ["python", "-m", "core", "train"]
    values: dict[str, Any] = {}
    while words[4:]:
        flag = words.pop(4).removeprefix("--").replace("-", "_")
        if (switch := flag.removeprefix("no_")) in SWITCHES:
            values[switch] = not flag.startswith("no_")
        else:
            values[LONG_NAMES.get(flag, flag)] = words.pop(4)
    assert RunConfig.from_dict(values) == config


def test_only_what_differs_from_the_placements_default_run_is_said() -> None:
    assert RunConfig().to_url() == "pre"
    config = RunConfig(placement="post", layers=24, learning_rate=1e-5, final_norm=True)
    assert config.changes() == {"final_norm": True, "layers": 24, "learning_rate": 1e-5}
    assert config.to_url() == URL_SEPARATOR.join(["post", "final_norm-true", "layers-24", "lr-1e-05"])
    assert config.command() == "python -m core train --placement post --final-norm --layers 24 --lr 1e-05"


@given(configs(), configs())
def test_keys_are_equal_exactly_where_runs_are(one: RunConfig, other: RunConfig) -> None:
    assert (one.key == other.key) == (one == other)


@pytest.mark.parametrize("same", [{"warmup": 1}, {"warmup": 1.0}, {"warmup": "1"}, {"warmup": "1.000"}])
def test_one_number_has_one_key_however_it_is_written(same: dict[str, Any]) -> None:
    assert RunConfig(**same).key == RunConfig(warmup=1.0).key != RunConfig().key
    assert RunConfig(layers=12.0, warmup=-0.0, final_norm=True).key == RunConfig().key


@pytest.mark.parametrize("name", LIMITS)
def test_both_ends_of_a_limit_are_allowed_and_nothing_beyond(name: str) -> None:
    least, most = LIMITS[name]
    assert [legal(name, least), legal(name, most)] == [least, most]
    just_under, just_over = (
        (math.nextafter(least, -math.inf), math.nextafter(most, math.inf)) if name in FRACTIONAL else (int(least) - 1, int(most) + 1)
    )
    for beyond in (just_under, just_over):
        with pytest.raises(ConfigError, match=rf"^{name} is .*; it must be a .*number from .* to .*\.$") as refusal:
            RunConfig(**{name: beyond})
        sentence = str(refusal.value)
        assert sentence.startswith(
            f"{name} is {beyond:g}" if name in FRACTIONAL and beyond == float(f"{beyond:g}") else f"{name} is {beyond}"
        )
        said_least, said_most = sentence.removesuffix(".").split(" from ")[1].split(" to ")
        assert (float(said_least), float(said_most)) == (least, most)


@pytest.mark.parametrize("name", sorted(LIMITS.keys() - FRACTIONAL))
def test_whole_numbers_are_whole(name: str) -> None:
    with pytest.raises(ConfigError, match="it must be a whole number"):
        RunConfig(**{name: LIMITS[name][0] + 0.5})


@pytest.mark.parametrize("name", [field.name for field in fields(RunConfig)])
@pytest.mark.parametrize("value", ABSURD, ids=[f"{i}" for i in range(len(ABSURD))])
def test_absurd_values_are_refused_in_one_sentence(name: str, value: Any) -> None:
    if isinstance(value, bool) and name in SWITCHES:
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
    assert len(sentence) - len(", ".join(CHOICES.get(name, ""))) < 200
    assert "\n" not in sentence


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ConfigError, match=r"^heads is 5; it must divide the width, which is 64\.$"):
        RunConfig(heads=5)


def test_unknown_settings_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"^'depth' is not a setting; the settings are placement, norm, .*seed\.$"):
        RunConfig.from_dict({"depth": 3})


@given(st.text())
@example("")
@example("post~~~")
@example("~layers-3")
@example("pre~layers")
@example("pre~-")
@example("pre~heads-7~width-17")
@example("pre~layers-" + "9" * 5000)
@example("pre~lr-nan~warmup-inf~seed--1")
def test_no_address_is_an_error(text: str) -> None:
    config, sentences = RunConfig.from_url(text)
    assert RunConfig.from_url(config.to_url()) == (config, [])
    assert all(sentence.endswith(".") for sentence in sentences)


@given(st.lists(st.tuples(st.sampled_from([*LIMITS, *LONG_NAMES, "placement", "norm", "final_norm"]), st.text() | st.floats().map(repr))))
def test_no_value_in_an_address_is_an_error(settings: list[tuple[str, str]]) -> None:
    config, sentences = RunConfig.from_url(URL_SEPARATOR.join(["post", *(f"{name}-{value}" for name, value in settings)]))
    assert RunConfig(**config.to_dict()) == config
    assert all(sentence.endswith(" used.") or "is not a setting" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("text", "expected", "sentence"),
    [
        ("pre~layers-1000", RunConfig(layers=96), "layers is '1000'; it must be a whole number from 1 to 96. 96 is used."),
        ("pre~layers-11.6", RunConfig(layers=12), "layers is '11.6'; it must be a whole number from 1 to 96. 12 is used."),
        ("pre~lr-0", RunConfig(learning_rate=1e-6), "learning_rate is '0'; it must be a number from 1e-06 to 1. 1e-06 is used."),
        ("pre~lr-fast", RunConfig(), "learning_rate is 'fast'; it must be a number from 1e-06 to 1. 0.002 is used."),
        ("pre~heads-7", RunConfig(heads=4), "heads is 7; it must divide the width, which is 64. 4 is used."),
        ("post~final_norm-maybe", RunConfig("post"), "final_norm is 'maybe'; it must be true or false. false is used."),
        ("best", RunConfig(), f"placement is 'best'; it must be one of {', '.join(PLACEMENTS)}, or a design {SUCH}. pre is used."),
        ("pre~norm-batch", RunConfig(), f"norm is 'batch'; it must be one of {', '.join(NORMS)}. layernorm is used."),
    ],
)
def test_the_nearest_legal_value_takes_the_place_of_a_bad_one(text: str, expected: RunConfig, sentence: str) -> None:
    assert RunConfig.from_url(text) == (expected, [sentence])


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
    assert host_most("steps") == LIMITS["steps"][1]

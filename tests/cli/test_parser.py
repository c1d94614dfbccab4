"""The command line's grammar: help, bad input, and the command that names a run."""

import shlex
from collections.abc import Callable

import pytest
from hypothesis import given
from small_runs import config_of
from strategies import configs

from core.cli import main
from core.cli.command import command
from core.placement.table import PLACEMENTS
from core.runs.config import SETTINGS, RunConfig
from core.runs.settings import ConfigError, Number, PlacementName, Switch
from core.values import plain_text


@pytest.mark.parametrize("command", ["", "--help"])
def test_without_a_command_help_names_them_all(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(command.split()) == 0
    out, err = capsys.readouterr()
    assert all(name in out.split() for name in ("article", "train", "placements", "pack", "bench"))
    assert err == ""


def test_help_tells_every_limit_and_choice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["train", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for setting in SETTINGS.values():
        assert f"--{setting.short.replace('_', '-')}" in text
        assert isinstance(setting.kind, Switch | PlacementName) or setting.kind.allowed in text
    assert all(choice in text for choice in (*PLACEMENTS, "--no-final-norm"))


BAD_VALUES = [
    (name, text)
    for name, setting in SETTINGS.items()
    if isinstance(kind := setting.kind, Number)
    for text in ("x", "", "nan", "inf", plain_text(kind.most * 2 + 1), *(["0.5"] if kind.whole else []), plain_text(kind.least - 1))
]


@pytest.mark.parametrize(("name", "text"), BAD_VALUES)
def test_a_bad_value_is_refused_in_the_words_of_the_configuration(name: str, text: str, refused: Callable[[str], str]) -> None:
    with pytest.raises(ConfigError) as expected:
        RunConfig.from_dict({name: text})
    flag = f"--{SETTINGS[name].short}={shlex.quote(text)}"
    assert refused(f"train --placement pre {flag}") == str(expected.value)
    if name in ("layers", "steps", "seed", "learning_rate"):
        assert refused(f"article {flag}") == str(expected.value)


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("train --placement sideways", "placement is 'sideways'; it must be one of pre, post"),
        ("train --placement pre --norm batchnorm", "norm is 'batchnorm'; it must be one of layernorm, rmsnorm"),
        ("train --placement pre --heads 3", "heads is 3; it must divide the width"),
        ("train", "--placement"),
        ("train --placement", "--placement"),
        ("train --placement pre --device tpu", "'tpu'"),
        ("train --placement pre --depth 3", "--depth 3"),
        ("train --placement pre --step 3", "--step 3"),
        ("train --placement pre 'two\nlines'", "two lines"),
        ("article --width 32", "--width 32"),
        ("article --device tpu", "'tpu'"),
        ("placements --csv x", "--csv x"),
        ("pack --steps 3", "--steps 3"),
        ("dance", "'dance'"),
    ],
)
def test_bad_input_is_refused_in_one_line_that_names_it(command: str, part: str, refused: Callable[[str], str]) -> None:
    assert part in refused(command)


@given(configs())
def test_the_command_of_a_run_names_that_run(config: RunConfig) -> None:
    python, *words = shlex.split(command(config))
    assert [python, *words[:3]] == ["python", "-m", "core", "train"]
    assert config_of(shlex.join(words[2:])) == config

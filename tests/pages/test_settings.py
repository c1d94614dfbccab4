"""Every setting's record is acted on everywhere: a new one is found on the command line, in addresses, in the sidebar and in labels."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.cli.command import command
from core.cli.main import main
from core.cli.parser import parser
from core.runs.config import SETTINGS, RunConfig
from core.runs.labels import labels
from core.runs.settings import IN_EVERY_KEY, Choice, Number, Setting, Switch
from core.state.address import read_run, write_run

Visits = Callable[..., Any]
BEFORE = "d02ac2e867083978aa2c"  # the key of the default run when there were thirteen settings


def another(setting: Setting) -> Any:
    """A legal value that the default run does not have."""
    plain = getattr(RunConfig(), setting.name)
    match setting.kind:
        case Number(whole=True):
            return 2 * plain
        case Number():
            return plain / 2 or 0.5
        case Switch():
            return not plain
        case Choice(titles):
            return next(name for name in titles if name != plain)
        case _:
            return "post"


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_setting_is_known_everywhere(setting: Setting, visit: Visits, capsys: pytest.CaptureFixture[str]) -> None:
    value, plain = another(setting), RunConfig(final_norm=True)
    config = replace(plain, **{setting.name: value})

    assert read_run(write_run(config)) == (config, [])
    assert setting.name == "placement" or f"~{setting.short}-" in write_run(config)

    words = command(config).split()[3:]
    arguments = vars(parser().parse_args(words))
    assert RunConfig.from_dict({name: text for name, text in arguments.items() if name in SETTINGS}) == config
    assert main(["train", "--help"]) == 0
    assert f"--{setting.short.replace('_', '-')}" in capsys.readouterr().out

    assert len(set(labels([plain, config]))) == 2
    assert not any(label.endswith("(2)") for label in labels([plain, config]))

    page = visit(run1="pre")
    assert page.control(setting.title).value == getattr(plain, setting.name)
    page.set(setting.title, value)
    assert page.refusals == []
    assert getattr(read_run(page.address["run1"])[0], setting.name) == value


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_setting_that_came_later_leaves_the_keys_of_the_runs_before_it(setting: Setting) -> None:
    if setting.before is not IN_EVERY_KEY:
        assert RunConfig.from_file({name: value for name, value in RunConfig().to_dict().items() if name != setting.name}) == RunConfig()
        assert RunConfig(**{setting.name: setting.before}).key == BEFORE
        assert RunConfig(**{setting.name: another(setting)}).key != BEFORE

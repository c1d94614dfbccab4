import shlex
from typing import Any

from hypothesis import given
from strategies import configs

from core.cli.command import command
from core.runs.config import SETTINGS, RunConfig
from core.runs.settings import Switch
from core.state.address import LONG_NAMES


@given(configs())
def test_the_command_says_what_the_run_is(config: RunConfig) -> None:
    """Reads it back as the command line does: each flag is a field, spelled short and with dashes."""
    words = shlex.split(command(config))
    assert words[:4] == ["python", "-m", "core", "train"]
    values: dict[str, Any] = {}
    while words[4:]:
        flag = words.pop(4).removeprefix("--").replace("-", "_")
        name = LONG_NAMES.get(flag.removeprefix("no_"), "")
        if isinstance(SETTINGS[name].kind, Switch):
            values[name] = not flag.startswith("no_")
        else:
            values[name] = words.pop(4)
    assert RunConfig.from_dict(values) == config


def test_a_command_has_only_what_differs_from_the_placements_default_run() -> None:
    config = RunConfig(placement="post", layers=24, learning_rate=1e-5, final_norm=True)
    assert command(config) == "python -m core train --placement post --final-norm --layers 24 --lr 1e-05"

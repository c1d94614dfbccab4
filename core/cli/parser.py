"""The command line's grammar."""

import argparse
from collections.abc import Iterable
from typing import NoReturn

from core.placement.table import PLACEMENTS
from core.runs.config import SETTINGS, limits
from core.runs.settings import Choice, ConfigError, Switch
from core.values import plain_text

EXAMPLE = "custom:attn=input+output,ffn=input,alpha=1.5"
PLACEMENT_HELP = f"where the norms sit: {', '.join(PLACEMENTS)}; or a design of your own, as in {EXAMPLE}"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(" ".join(message.split()) + ".")


def parser() -> Parser:
    top = Parser(
        prog="python -m core",
        description="Measure why it matters where a Transformer puts its normalization, without a browser.",
        epilog="python -m core COMMAND --help tells more about a command. python -m core bench measures speed, as ratios within one run.",
        allow_abbrev=False,
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="command")

    def command(name: str, text: str) -> Parser:
        return commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)

    article = command("article", "train the article's three runs and print its table")
    add_settings(article, ["layers", "steps", "seed", "learning_rate"])
    train = command("train", "train one run and say how it ended")
    train.add_argument("--placement", required=True, metavar="NAME", help=PLACEMENT_HELP)
    add_settings(train, (name for name in SETTINGS if name != "placement"))
    for computing in (article, train):
        computing.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto", help="auto prefers a GPU (default: auto)")
        computing.add_argument("--csv", metavar="FILE", help="write a line per run and step; - is standard output")
    article.add_argument("--plot", metavar="FILE", help="draw loss and gradient norm into a .webp, .png or .svg file")
    train.add_argument("--layers-csv", metavar="FILE", help="write a line per step and layer; - is standard output")
    train.add_argument("--json", action="store_true", help="print what came out as JSON")
    command("placements", "list the norm placements").add_argument("--json", action="store_true", help="print the list as JSON")
    command("pack", "compute the runs of cache/reference anew")
    return top


def add_settings(to: Parser, names: Iterable[str]) -> None:
    """A flag for each of these settings. Its text is passed on as it is: RunConfig judges it."""
    for name in names:
        setting = SETTINGS[name]
        flag, says = f"--{setting.short.replace('_', '-')}", setting.says.removesuffix(".")
        if isinstance(setting.kind, Switch):
            usual = "as the placement has it" if setting.default is None else "no"
            about = f"{says} (default: {usual})"
            to.add_argument(flag, action=argparse.BooleanOptionalAction, dest=name, default=argparse.SUPPRESS, help=about)
        else:
            metavar = "NAME" if isinstance(setting.kind, Choice) else "N" if limits(name).whole else "X"
            about = f"{says}: {setting.kind.allowed} (default: {plain_text(setting.default)})"
            to.add_argument(flag, dest=name, default=argparse.SUPPRESS, metavar=metavar, help=about)

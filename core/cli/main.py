"""The command line, python -m core: the same engine without a browser.

Nothing heavy is imported before a command needs it, so that help and the table of placements come at once.
"""

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event

from core.cli.parser import parser
from core.machine import DeviceError
from core.runs.settings import ConfigError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    return exit_code(lambda: dispatch(argv))


def exit_code(command: Callable[[], int]) -> int:
    """Of a command, with everything that can stop it told in one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal or pipe that knows no "·" gets an escape for it
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            code = command()
        except SystemExit as end:  # after --help
            code = int(end.code or 0)
        print(end="", flush=True)  # a reader that has left is noticed here, not when the interpreter ends
        return code
    except KeyboardInterrupt:
        return 130
    except (ConfigError, DeviceError) as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:  # of standard output: what becomes of files is told where they are written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's last flush would fail again
        if isinstance(error, BrokenPipeError):
            return 0
        print(f"Standard output cannot be written: {error.strerror}.", file=sys.stderr)
        return 1


def dispatch(argv: Sequence[str] | None) -> int:
    arguments = parser().parse_args(argv)
    if arguments.command is None:
        parser().print_help()
        return 0
    from core.cli import commands

    with stop_on_ctrl_c() as stop:
        try:
            return getattr(commands, arguments.command)(arguments, stop)
        except commands.Failure as failure:
            print(failure, file=sys.stderr)
            return 1


@contextmanager
def stop_on_ctrl_c() -> Iterator[Event]:
    """An event that Ctrl-C sets, so that what was computed can be kept; a second Ctrl-C ends the process at once."""
    stop = Event()

    def handle(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        stop.set()
        os.write(2, b"\nStopping, and keeping what was computed. Press Ctrl-C again to end at once.\n")  # safe in a handler, unlike print

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)

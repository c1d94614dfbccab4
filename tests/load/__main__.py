import argparse
import asyncio
import importlib
import sys
import time

from .server import served
from .table import Row, broken, markdown

PARTS = {  # what is asked for, and the module that measures it
    "open": "opening",
    "toggle": "toggling",
    "watch": "watching",
    "download": "downloading",
    "leave": "leaving",
    "rerun": "costs",
    "memory": "memory",
    "browsers": "browsers",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m tests.load", description="Puts a server of its own under load and prints what was measured."
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all of them unless some are named")
    parser.add_argument("--sessions", type=int, metavar="N", help="this many sessions, instead of each part's own numbers")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if arguments.sessions is not None and arguments.sessions < 1:
        parser.error(f"--sessions is {arguments.sessions}; it must be at least 1")
    rows: list[Row] = []
    try:
        for part in arguments.parts or PARTS:
            begin, measure = time.monotonic(), importlib.import_module(f".{PARTS[part]}", __package__).measure
            with served() as server:
                rows += asyncio.run(measure(server, *([(arguments.sessions,)] if arguments.sessions else [])))
            print(f"{part}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    finally:  # what was measured until then
        print(markdown(rows))
        for line in broken(rows):
            print(f"- Not as demanded: {line}")


if __name__ == "__main__":
    main()

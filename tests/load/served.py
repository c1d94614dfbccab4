"""The app as `streamlit run app.py` serves it, with a record of when it has computed what: `python -m tests.load.served RECORD PORT`.

Whenever a chunk of a run's steps has been computed, the engine's own iteration over them writes a line: the moment, by the clock that all
processes of a machine share; the run's key; its steps so far. A run begins with 0 steps.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from streamlit.web import cli

from core.jobs import worker


def keep_record(path: Path) -> None:
    record = path.open("a", buffering=1)
    compute = worker.compute

    @wraps(compute)  # Dask finds its task by this name
    def recorded(settings: dict[str, Any]) -> bytes:
        from core.engine.training import Training  # not before the app itself needs JAX

        if not hasattr(Training.__iter__, "__wrapped__"):
            Training.__iter__ = with_record(Training.__iter__)
        return compute(settings)

    def with_record(chunks: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        @wraps(chunks)
        def iterate(run: Any) -> Iterator[Any]:
            steps = 0
            print(time.monotonic(), run.config.key, steps, file=record)
            for chunk in chunks(run):
                steps += len(chunk)
                print(time.monotonic(), run.config.key, steps, file=record)
                yield chunk

        return iterate

    worker.compute = recorded


if __name__ == "__main__":
    record, port = sys.argv[1:]
    keep_record(Path(record))
    sys.argv = ["streamlit", "run", "app.py", "--server.address=127.0.0.1", f"--server.port={port}"]
    cli.main()

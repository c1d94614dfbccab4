"""A chart in two parts: its specification, which says how it looks, and its tables, which hold what it shows.

While a run grows, only tables change, so that a browser redraws in place. Both parts are made once and shared by all who look at the same.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
from cachetools import LRUCache, cached

from core.figures.axes import Line

SPECS = 256  # specifications that are kept; each weighs some kilobytes
Tables = dict[str, bytes]  # Arrow streams, by name
KEEPING = threading.Condition()  # who waits for tables that another is making
KEPT: LRUCache[Any, Tables] = LRUCache(64 * 2**20, getsizeof=lambda tables: sum(map(len, tables.values())))


@dataclass(frozen=True, slots=True)
class Figure:
    spec: Mapping[str, Any]  # Vega-Lite, whose layers name their tables; shared, so nobody may change it
    tables: Tables

    def whole(self) -> dict[str, Any]:
        """The specification with its tables' rows in it, as a file needs it."""
        rows = {name: pa.ipc.open_stream(table).read_all().to_pylist() for name, table in self.tables.items()}
        return {**self.spec, "datasets": self.spec.get("datasets", {}) | rows}


def stream(frame: pd.DataFrame) -> bytes:
    """A frame as an Arrow stream; what is not a number is missing in it."""
    table, sink = pa.Table.from_pandas(frame, preserve_index=False), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def made_once(what: str) -> Callable[[Callable[..., Tables]], Callable[..., Tables]]:
    """Decorates what makes tables of (lines, *more): the same runs with the same steps have the same tables, whoever asks."""
    return cached(KEPT, key=partial(identity, what), condition=KEEPING)


def identity(what: str, lines: Sequence[Line], *more: Any) -> tuple[Any, ...]:
    return what, *((line.slot, line.history.serial) for line in lines), *more

"""What a session has been sent of its page and has not been told to drop."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.VegaLiteChart_pb2 import VegaLiteChart


class Node(NamedTuple):
    kind: str
    content: Any  # the message of this kind
    fragment: str  # the fragment that it belongs to; empty where it is the page's own
    run: str  # the run of the page that sent it


class Page:
    def __init__(self) -> None:
        self.nodes: dict[tuple[int, ...], Node] = {}

    def put(self, path: tuple[int, ...], delta: Delta, run: str) -> Node | None:
        """Takes in what belongs at a place; None for what passes by, as a spinner does."""
        sort = delta.WhichOneof("type")
        if sort == "new_transient":
            return None
        element = getattr(delta, sort)
        kind = element.WhichOneof("type") or "empty"
        node = self.nodes[path] = Node(kind, getattr(element, kind, None), delta.fragment_id, run)
        return node

    def sweep(self, run: str, fragments: list[str]) -> None:
        """Drops what a finished run has not sent again; the run of a fragment leaves the rest of the page alone."""
        stale = [path for path, node in self.nodes.items() if node.run != run and (not fragments or node.fragment in fragments)]
        for path in stale:
            del self.nodes[path]

    def all(self, kind: str) -> Iterator[Any]:
        return (node.content for node in self.nodes.values() if node.kind == kind)

    def widget(self, key: str) -> tuple[Any, str] | None:
        """The widget with this key and its fragment: an id ends with the key."""
        for node in self.nodes.values():
            if getattr(node.content, "id", "").endswith(f"-{key}"):
                return node.content, node.fragment
        return None

    def ids(self) -> set[str]:
        return {node.content.id for node in self.nodes.values() if getattr(node.content, "id", "")}

    @property
    def charts(self) -> list[VegaLiteChart]:
        """The charts that have data."""
        return [chart for chart in self.all("vega_lite_chart") if any(tables(chart)) or last_step_of_spec(chart.spec)]

    @property
    def steps(self) -> int:
        """The last step that all charts against the step have reached."""
        return min(filter(None, map(last_step, self.all("vega_lite_chart"))), default=0)


def tables(chart: VegaLiteChart) -> list[bytes]:
    """A chart's data as Arrow streams, inline and by name."""
    return [data for data in (chart.data.data, *(named.data.data for named in chart.datasets)) if data]


def last_step(chart: VegaLiteChart) -> int:
    """The last step that a chart shows; 0 where it shows none."""
    return max(map(last_step_of_table, tables(chart)), default=0) or last_step_of_spec(chart.spec)


@lru_cache(maxsize=256)  # who watch the same run are sent the same bytes
def last_step_of_table(stream: bytes) -> int:
    table = pa.ipc.open_stream(stream).read_all()
    return int(pc.max(table["step"]).as_py() or 0) if "step" in table.column_names else 0


@lru_cache(maxsize=256)
def last_step_of_spec(spec: str) -> int:
    """The same where the data are part of the specification, as JSON."""
    if '"step"' not in spec:
        return 0
    return max((row["step"] or 0 for rows in values(json.loads(spec)) for row in rows if "step" in row), default=0)


def values(spec: Any) -> Iterator[list[dict[str, Any]]]:
    """Every list of rows below a specification's `values` and `datasets`."""
    if isinstance(spec, dict):
        for name, part in spec.items():
            if name == "values" and isinstance(part, list) and part and isinstance(part[0], dict):
                yield part
            elif name == "datasets" and isinstance(part, dict):
                yield from (rows for rows in part.values() if isinstance(rows, list) and rows and isinstance(rows[0], dict))
            else:
                yield from values(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from values(part)

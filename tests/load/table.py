"""The figures of a load test as a Markdown table, each with what is demanded of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

COLUMNS = [
    "activity",
    "sessions",
    "median s",
    "95 % s",
    "answers/s",
    "CPU ms each",
    "share of unwatched speed",
    "health 95 % s",
    "health max s",
    "trainings",
    "errors",
    "lost",
    "server MB",
    "MB more",
    "MB each",
    "harness CPU",
]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, and the most or the least that it may be where something is demanded."""

    value: float
    most: float = math.inf
    least: float = -math.inf

    @property
    def met(self) -> bool:
        return self.least <= self.value <= self.most

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "–"
        bounds = [f"≤ {self.most:g}" if self.most < math.inf else "", f"≥ {self.least:g}" if self.least > -math.inf else ""]
        demand = "".join(f" ({bound})" for bound in bounds if bound)
        text = f"{plain(self.value)}{demand}"
        return text if self.met else f"**{text}**"


Row = dict[str, Figure | str | int]


def plain(value: float) -> str:
    """Three digits at most where it is no large number."""
    return f"{value:.0f}" if abs(value) >= 100 or math.isinf(value) else f"{value:.3g}"


def percentiles(seconds: Sequence[float], median: float = math.inf, most: float = math.inf) -> Row:
    """The columns of how long something took, with what is demanded of the median and of the 95th percentile."""
    if not len(seconds):
        return {"median s": Figure(math.nan), "95 % s": Figure(math.nan)}
    ranks = np.sort(np.asarray(seconds, float))
    at = [float(ranks[math.ceil(share * len(ranks)) - 1]) for share in (0.5, 0.95)]  # no interpolation: some may be infinite
    return {"median s": Figure(at[0], median), "95 % s": Figure(at[1], most)}


def markdown(rows: Sequence[Row]) -> str:
    """Only the columns that have something."""
    columns = [column for column in COLUMNS if any(column in row for row in rows)]
    cells = [columns, ["---" if column == "activity" else "---:" for column in columns]]
    cells += [[str(row.get(column, "")) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def broken(rows: Sequence[Row]) -> list[str]:
    """For each activity the smallest number of sessions at which a demand is not met, and which."""
    first: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: int(str(row["sessions"]))):
        unmet = [f"{column} {figure}" for column, figure in row.items() if isinstance(figure, Figure) and not figure.met]
        if unmet:
            first.setdefault(str(row["activity"]), f"{row['activity']} at {row['sessions']} sessions: {', '.join(unmet)}".replace("**", ""))
    return list(first.values())

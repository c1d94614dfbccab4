"""The measurements of a run, step by step. Which there are, and of what shape, is said by core/runs/quantities.py.

Shapes: S steps; L blocks. A quantity of a step is (S,), one of layers (S, L + 1), one of blocks (S, L).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Self

import numpy as np
import pyarrow as pa

from core.runs.quantities import FILE_FORMAT, QUANTITIES, Quantity


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The S steps of a run so far, row t - 1 for step t. A diverged run's last row is its first one that is not finite."""

    columns: Mapping[str, np.ndarray]  # by the quantity's name; those that the run's file is too old for are absent
    serial: int = field(default_factory=count().__next__, init=False)  # tells this history from all others of the process

    @classmethod
    def empty(cls, layers: int) -> Self:
        return cls({name: np.zeros((0, *quantity.shape(layers)), dtype(quantity)) for name, quantity in QUANTITIES.items()})

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return len(self["loss"])

    def __add__(self, later: "History") -> "History":
        return History({name: np.concatenate([column, later[name]]) for name, column in self.columns.items() if name in later})

    def replace(self, **columns: np.ndarray) -> "History":
        return History({**self.columns, **columns})

    @property
    def layers(self) -> int:
        return self["update_ratio"].shape[1]

    @property
    def absent(self) -> list[Quantity]:
        """What is recorded today, and was not when this run was computed."""
        return [quantity for name, quantity in QUANTITIES.items() if name not in self]

    @property
    def format(self) -> int:
        """The newest FILE_FORMAT all of whose columns are here."""
        return min([FILE_FORMAT, *(quantity.since - 1 for quantity in self.absent)])

    @property
    def diverged_at(self) -> int | None:
        """The first step whose loss or gradient norm is not finite."""
        broken = ~(np.isfinite(self["loss"]) & np.isfinite(self["gradient_norm"]))
        return int(np.argmax(broken)) + 1 if broken.any() else None

    def to_table(self) -> pa.Table:
        """One row a step, the quantities of layers and blocks as list columns."""
        columns = {"step": pa.array(np.arange(1, len(self) + 1, dtype=np.int32))}
        for name in QUANTITIES:
            if name in self:
                column = self[name]
                flat = pa.array(column.ravel())
                columns[name] = flat if column.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, column.shape[1])
        return pa.table(columns)

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """The reverse of `to_table`. Raises ValueError or KeyError where the table is none of its kind."""
        if not np.array_equal(table["step"].to_numpy(), np.arange(1, len(table) + 1)):
            raise ValueError("the steps are not numbered from 1")
        columns = {}
        for name, quantity in QUANTITIES.items():
            if name in table.column_names:
                column = table[name].combine_chunks()
                if quantity.per == "step":
                    columns[name] = column.to_numpy()  # which refuses a column in which something is missing
                else:
                    columns[name] = column.flatten().to_numpy().reshape(len(column), column.type.list_size)
        return cls(columns)


def dtype(quantity: Quantity) -> type[np.floating]:
    return np.float32 if quantity.measured else np.float64


def schema(layers: int, file_format: int) -> pa.Schema:
    """The columns of a run's file of this format."""
    columns = History.empty(layers).columns
    return History({name: column for name, column in columns.items() if QUANTITIES[name].since <= file_format}).to_table().schema

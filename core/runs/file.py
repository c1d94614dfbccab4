"""A finished run: what was asked, what was measured, and how it was computed. Its one file format is Parquet."""

import base64
import json
import math
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.data_tasks import TASKS
from core.runs.config import ENGINE_FORMAT, SETTINGS, RunConfig
from core.runs.history import History, schema
from core.runs.outcome import outcome
from core.runs.quantities import FILE_FORMAT, QUANTITIES
from core.runs.schedule import learning_rate_s

METADATA, SINGULAR_VALUES = b"norm_placement_lab", b"singular_values_base64"  # entries of the schema's metadata, which must be UTF-8
BARE_SINGULAR_VALUES = b"singular_values"  # where versions before had the bytes themselves; they take a text there for damage
STORED = np.dtype("<f4")  # of the singular values
HARMLESS_FLAGS = ("--xla_dump_", "--xla_force_host_platform_device_count=")  # of XLA; beginnings
# What reading a file that is no run's can raise.
DAMAGE = (ValueError, ArithmeticError, KeyError, TypeError, AttributeError, RecursionError, OSError, pa.ArrowException)


class NewerFile(Exception):  # noqa: N818 (it is no fault)
    """The file was written by a later version, which knows columns or settings that this one does not."""


@dataclass(frozen=True, slots=True)
class Facts:
    """How a run was computed."""

    device: str  # as in "2 x cpu"
    compile_seconds: float  # 0 where the program was there already
    train_seconds: float
    matrix_gflops: float  # what the machine's matrix products reached in the same process
    versions: dict[str, str]
    xla_flags: str = ""  # what the environment told XLA, as one text

    def __post_init__(self) -> None:
        numbers = (self.compile_seconds, self.train_seconds, self.matrix_gflops)
        if not all(type(value) in (int, float) and 0 <= value <= sys.float_info.max for value in numbers):
            raise ValueError("times and rates must be numbers, finite and not negative")
        if not all(isinstance(text, str) for text in (self.device, self.xla_flags, *self.versions, *self.versions.values())):
            raise ValueError("device, versions and flags must be texts")

    @property
    def moved(self) -> bool:
        """Whether XLA was told anything that can move numbers: whatever is not harmless may."""
        return not all(flag.startswith(HARMLESS_FLAGS) for flag in self.xla_flags.split())


@dataclass(frozen=True, slots=True)
class Run:
    config: RunConfig
    history: History
    facts: Facts
    # (2, L + 1, D): before the first step and after the last, of the stack's Jacobian and of each block's, as `core.engine.jacobian` has
    # them; infinite where they are beyond float32, not a number where there is no Jacobian; None where they were not measured
    singular_values: np.ndarray | None = None

    def to_parquet(self) -> bytes:
        """A row per step; in the schema's metadata, as text, the configuration, the engine's format, facts, outcome and singular values."""
        about = {
            "config": self.config.to_dict(),
            "engine_format": ENGINE_FORMAT,
            "file_format": self.history.format,
            "facts": {name: value for name, value in asdict(self.facts).items() if value or name != "xla_flags"},  # versions before lack it
            "outcome": outcome(self.history, TASKS[self.config.task]),
            "diverged_at": self.history.diverged_at,
        }
        sink = pa.BufferOutputStream()
        metadata: dict[bytes, str | bytes] = {METADATA: json.dumps(about)}
        if self.singular_values is not None:
            metadata[SINGULAR_VALUES] = base64.b64encode(self.singular_values.astype(STORED).tobytes())
        table = self.history.to_table().replace_schema_metadata(metadata)
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        return sink.getvalue().to_pybytes()

    @classmethod
    def from_parquet(cls, source: Path | bytes) -> "Run":
        """The run of a file, also of one in an older format. Raises NewerFile, and one of DAMAGE where the file is not a run's."""
        file = pq.ParquetFile(source if isinstance(source, Path) else pa.BufferReader(source), page_checksum_verification=True)
        config, facts, _, file_format = describe(file)
        if file.schema_arrow != schema(config.layers, file_format):
            raise ValueError("the columns are not those of the run that the file names")
        history = History.from_table(file.read())
        check(history, config)
        return cls(config, history, facts, singular_values(file, config))

    @staticmethod
    def about(path: Path) -> tuple[RunConfig, Facts, int]:
        """What a file says of its run, and how many steps it holds, without reading them. Raises NewerFile, and one of DAMAGE."""
        return describe(pq.ParquetFile(path))[:3]


def describe(file: pq.ParquetFile) -> tuple[RunConfig, Facts, int, int]:
    """The run's settings and facts, how many steps the file holds, and its format."""
    about = json.loads(file.schema_arrow.metadata[METADATA])
    file_format = about.get("file_format", 1)  # the first one did not name itself
    if type(file_format) is not int or file_format < 1:
        raise ValueError("a file's format is a whole number from 1")
    if file_format > FILE_FORMAT or set(about["config"]) - set(SETTINGS) or about["facts"].keys() - {field.name for field in fields(Facts)}:
        raise NewerFile
    config, steps = RunConfig.from_file(about["config"]), file.metadata.num_rows
    if not 1 <= steps <= config.steps:
        raise ValueError("no run of this configuration has as many steps")
    return config, Facts(**about["facts"]), steps, file_format


def check(history: History, config: RunConfig) -> None:
    """Raises ValueError where no run of this configuration can have recorded that. What is not a number is not negative."""
    steps = len(history)
    if (history.diverged_at or config.steps) != steps:
        raise ValueError("the run neither has all its steps nor ends where it diverged")
    for name, column in history.columns.items():
        if (column < 0).any():
            raise ValueError(f"{name} is never negative")
        if QUANTITIES[name].finite and not np.isfinite(column[: steps - 1 if history.diverged_at else steps]).all():
            raise ValueError(f"{name} is finite until a run diverges")
    if not np.array_equal(history["learning_rate"], learning_rate_s(config)[:steps]):
        raise ValueError("the learning rate is not the one that the settings name")


def singular_values(file: pq.ParquetFile, config: RunConfig) -> np.ndarray | None:
    metadata = file.schema_arrow.metadata
    if SINGULAR_VALUES in metadata:
        written = base64.b64decode(metadata[SINGULAR_VALUES], validate=True)
    elif BARE_SINGULAR_VALUES in metadata:
        written = metadata[BARE_SINGULAR_VALUES]
    else:
        return None
    shape = (2, config.layers + 1, config.width)
    if len(written) != math.prod(shape) * STORED.itemsize:
        raise ValueError("the singular values are not those of the run that the file names")
    values = np.frombuffer(written, STORED).reshape(shape).astype(np.float32)
    descending, unknown = (values[..., 1:] <= values[..., :-1]).all(axis=-1), np.isnan(values).all(axis=-1)
    if (values < 0).any() or not (descending | unknown).all():
        raise ValueError("singular values are not negative and stand in descending order, or there are none of a Jacobian")
    return values

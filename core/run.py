"""A finished run: what was asked, what was measured, and how it was computed. Its one file format is Parquet."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.config import ENGINE_FORMAT, RunConfig
from core.history import History, outcome

METADATA = b"norm_placement_lab"
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OSError, pa.ArrowException)  # what reading a file that is no run's can raise


@dataclass(frozen=True, slots=True)
class Facts:
    """How a run was computed."""

    device: str  # as in "2 x cpu"
    compile_seconds: float  # 0 where the program was there already
    train_seconds: float
    matrix_gflops: float  # what the machine's matrix products reached in the same process
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    config: RunConfig
    history: History
    facts: Facts

    def to_parquet(self) -> bytes:
        """A row per step; the configuration, the engine's format, the facts and the outcome in the schema's metadata."""
        about = {
            "config": self.config.to_dict(),
            "engine_format": ENGINE_FORMAT,
            "facts": asdict(self.facts),
            "outcome": outcome(self.history),
            "diverged_at": self.history.diverged_at,
        }
        sink = pa.BufferOutputStream()
        pq.write_table(self.history.to_table().replace_schema_metadata({METADATA: json.dumps(about)}), sink, compression="zstd")
        return sink.getvalue().to_pybytes()

    @classmethod
    def from_parquet(cls, source: Path | bytes) -> "Run":
        """Raises one of DAMAGE where the file is not a run's."""
        table = pq.ParquetFile(source if isinstance(source, Path) else pa.BufferReader(source)).read()
        about = json.loads(table.schema.metadata[METADATA])
        return cls(RunConfig.from_dict(about["config"]), History.from_table(table), Facts(**about["facts"]))

    @staticmethod
    def about(path: Path) -> tuple[RunConfig, Facts]:
        """What a file says of its run, without the history. Raises one of DAMAGE."""
        about = json.loads(pq.read_schema(path).metadata[METADATA])
        return RunConfig.from_dict(about["config"]), Facts(**about["facts"])

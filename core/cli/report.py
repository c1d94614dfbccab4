"""How the command line tells what became of a run, and what placements are."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from core.data_tasks import TASKS, Task
from core.drawing.equations import ends, equations, jacobian, latex
from core.drawing.words import describe, which
from core.placement.design import sort_sites
from core.placement.record import Placement
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.history import History
from core.runs.outcome import end, outcome, peak, verdict
from core.values import digits

DEPTH = RunConfig().layers  # the depth at which a placement is described


@dataclass(frozen=True, slots=True)
class Trained:
    """What was trained of a run, at least one step; `run` is None where it was stopped before its end."""

    label: str
    config: RunConfig
    history: History
    run: Run | None

    @property
    def task(self) -> Task:
        return TASKS[self.config.task]

    @property
    def end(self) -> str:
        if self.history.diverged_at:
            return f"diverged at step {self.history.diverged_at}"
        return outcome(self.history, self.task) if self.run else f"interrupted after step {len(self.history)}"

    @property
    def loss(self) -> float:
        return float(self.history["loss"][-1])

    @property
    def peak(self) -> tuple[int | None, float]:
        return peak(self.history)

    def row(self) -> tuple[str, ...]:
        """The cells of HEADER."""
        step, norm = self.peak
        return self.label, digits(self.loss, 4), digits(norm, 4) if step else "none finite", self.end

    def sentences(self) -> str:
        end = self.end[0].upper() + self.end[1:]
        return f"{end}. {verdict(self.history, self.task)}" if self.run else f"{end}: loss {digits(self.loss, 4)}."

    def to_json(self) -> str:
        """Standard JSON: a number that is not finite is null."""
        step, norm = self.peak
        judged = end(self.history)
        about = {
            "config": self.config.to_dict(),
            "outcome": outcome(self.history, self.task) if self.run else "interrupted",
            "steps": len(self.history),
            "judged_loss": judged.loss if math.isfinite(judged.loss) else None,
            "judged_steps": judged.steps,
            "final_loss": self.loss if math.isfinite(self.loss) else None,
            "largest_gradient_norm": norm if math.isfinite(norm) else None,
            "largest_gradient_norm_step": step,
            "diverged_at": self.history.diverged_at,
            "facts": asdict(self.run.facts) if self.run else None,
        }
        return json.dumps(about, indent=2, allow_nan=False)


HEADER = ("configuration", "final loss", "max gradient norm", "outcome")
PLACEMENT_HEADER = ("name", "title", "identity path", "final norm", "arXiv", "norms")
PLACEMENT_FOOT = f"With {DEPTH} blocks. Equations, Jacobians, sources, users and traps: python -m core placements --json"


def placement_row(placement: Placement) -> tuple[str, ...]:
    """The cells of PLACEMENT_HEADER."""
    identity, final = ("yes" if true else "no" for true in (placement.identity_path(DEPTH), placement.final_norm))
    return placement.name, placement.title, identity, final, placement.arxiv, norms(placement)


def placement_dict(placement: Placement) -> dict[str, Any]:
    facts = {
        name: getattr(placement, name)
        for name in ("name", "title", "summary", "final_norm", "source", "arxiv", "used_by", "trap", "embedding_norm", "dual_stream")
    }
    return facts | {
        "identity_path": placement.identity_path(DEPTH),
        "in_words": describe(placement, DEPTH),
        "around_the_blocks": [latex(line) for line in ends(placement)],
        "blocks": blocks(placement),
    }


def blocks(placement: Placement) -> list[dict[str, Any]]:
    """Each segment: the sites of its norms, and in LaTeX its equation, its numbers and its Jacobian."""
    found = []
    segments = zip(placement.segments(DEPTH), equations(placement, DEPTH), jacobian(placement, DEPTH), strict=True)
    for (structure, _), equation, derivative in segments:
        found.append(
            {
                "first": equation.first,
                "last": equation.last,
                "attention": sort_sites(structure.attention),
                "feed_forward": sort_sites(structure.feed_forward),
                "head_norms": sorted(structure.head_norms),
                "equation": [latex(line) for line in equation.lines],
                "jacobian": latex(derivative),
                "scales": equation.constants,
                "initial_gains": equation.gains,
            }
        )
    return found


def norms(placement: Placement) -> str:
    """Where a placement's norms sit, in words."""
    found = blocks(placement)
    texts = []
    for segment in found:
        attention, feed_forward = (" + ".join(segment[sublayer]) or "none" for sublayer in ("attention", "feed_forward"))
        text = attention if attention == feed_forward else f"{attention} (attention), {feed_forward} (feed-forward)"
        if segment["head_norms"]:
            text += f" + {', '.join(segment['head_norms'])} of each head"
        if len(found) > 1:
            text += f" ({which(range(segment['first'], segment['last'] + 1))})"
        texts.append(text)
    if placement.embedding_norm:
        texts.append("embedding")
    return "; ".join(texts)


def table(rows: Sequence[Sequence[str]]) -> str:
    """The rows, with their columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)

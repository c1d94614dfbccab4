"""What runs have measured of the two placements: where the backward signal came from, and what the Jacobians kept of it."""

from typing import Any

import numpy as np
import streamlit as st

from core import figures, store
from core.config import RunConfig
from core.diagram import block_svg
from core.labels import labels
from core.pair import Pair
from core.placement import Placement
from core.presets import ARTICLE
from core.run import Run
from core.signal import Ways, ways
from pages.ui.results import result
from pages.ui.verbatim import verbatim

SIDES = ("left", "right")
STEPS_SHOWN = 500
FORMULA = r"""
\frac{\partial\ell}{\partial v} \;=\; \underbrace{\alpha\,u}_{\text{along the stream}} \;+\; \underbrace{J_{\text{branch}}^{\top}\,u}_{\text{through the branch}}
\qquad\qquad
\text{share of the stream} \;=\; \frac{\lVert \alpha u \rVert^2}{\lVert \alpha u \rVert^2 + \lVert J_{\text{branch}}^{\top} u \rVert^2}
"""


def run_of(pair: Pair, side: str) -> tuple[list[RunConfig], RunConfig | None]:
    """The stored runs of a side's placement, the article's first, and the one that is shown."""
    stored = store.finished(getattr(pair, side), pair.layers)
    stored.sort(key=lambda config: ARTICLE.index(config) if config in ARTICLE else len(ARTICLE))
    return stored, getattr(pair, f"{side}_run") or next(iter(stored), None)


def finished(config: RunConfig | None) -> Run | None:
    return result(0, "", config).run if config else None


def steps_shown(runs: list[Run | None]) -> list[int]:
    """The steps that the slider has: all of the longest run, or evenly many of them."""
    longest = max((len(run.history) for run in runs if run), default=1)
    return sorted({round(step) for step in np.linspace(1, longest, min(longest, STEPS_SHOWN))})


def measured(placement: Placement, pair: Pair, run: Run | None, steps: list[int]) -> dict[str, Any] | None:
    """For the component: a drawing with bands, and the shares and norms of every way at these steps; null where there is no number."""
    if run is None:
        return None
    spec = placement.block(pair.drawn, pair.layers)
    found = ways(run.history, spec, pair.drawn)
    rows = np.minimum(steps, len(run.history)) - 1
    return {
        "label": labels([run.config])[0],
        "last": len(run.history),
        "svg": block_svg(spec, "backward", placement.dual_stream, shares(found, int(rows[0]))),
        "share": {name: numbers(share_s[rows], 4) for name, share_s in found.share_s.items()},
        "norm": {name: numbers(norm_s[rows], None) for name, norm_s in found.norm_s.items()},
    }


def shares(found: Ways, row: int) -> dict[str, float]:
    return {name: float(share_s[row]) for name, share_s in found.share_s.items()}


def numbers(values: np.ndarray, digits: int | None) -> list[float | None]:
    return [None if np.isnan(value) else round(value, digits) if digits else float(f"{value:.4g}") for value in values.tolist()]


def explained() -> None:
    st.markdown(
        "**How the signal is measured.** Where a branch leaves the stream, the gradient of the loss ℓ by what stands there, "
        "$v$ ($x$ or $h$), is a sum over the ways back from the addition, where the gradient is $u$:"
    )
    st.latex(FORMULA)
    st.markdown(
        "The norms ‖·‖ are over every number of every token of the step's batch, and were recorded in every step. "
        "$J_{\\text{branch}}$ is the Jacobian of the whole branch with its norms and its gate. "
        "The two terms may also point the same or opposite ways: the shares compare their sizes. "
        "Where a placement has a third way (B2T), it counts in the same manner."
    )


def spectra(pair: Pair, titles: list[str], runs: list[Run | None]) -> None:
    """The singular values of the stack's and of the drawn block's Jacobian, in both runs, on one scale."""
    known = [run.singular_values for run in runs if run and run.singular_values is not None]
    st.markdown("##### What a Jacobian keeps of each direction")
    st.caption(
        "Singular values, largest first, of the first token of the run's first sequence; it attends to itself alone, so the Jacobian is one "
        "matrix of D × D with every way in it. At 1 a direction passes unchanged. Values below 10⁻⁹, where rounding is all there is, are left out: "
        "each norm on the stream takes two directions away, the mean and the length."
    )
    domain = figures.spectrum_domain(known)
    for column, title, run, side in zip(st.columns(2, gap="large"), titles, runs, SIDES, strict=True):
        with column:
            if run is None:
                continue
            if run.singular_values is None:
                st.caption(f"{verbatim(labels([run.config])[0])}: not measured in this run.")
                continue
            before, after = run.singular_values
            for row, what in ((0, "The whole stack, ∂x_L/∂x₀"), (pair.drawn, f"Block {pair.drawn}, ∂x′/∂x")):
                chart = figures.spectrum_chart(before[row], after[row], domain, f"{title}: {what[0].lower()}{what[1:]}")
                alt = f"Singular values of {what} of {title}, before and after training."
                st.altair_chart(chart, width="stretch", key=f"spectrum_{side}_{row > 0}", alt=alt)
            if not np.isfinite(after).all():
                st.caption("After its last step the run has parameters that are no numbers, and so no Jacobian.")

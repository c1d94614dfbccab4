"""What runs have measured of the two placements: where the backward signal came from, and what the Jacobians keep of it."""

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
from core.signal import ways
from pages.ui import placements
from pages.ui.results import result
from pages.ui.swatch import swatch
from pages.ui.verbatim import verbatim

SIDES = ("left", "right")
STEPS_SHOWN = 500
FORMULA = r"""
\frac{\partial\ell}{\partial v}
= \underbrace{\alpha\,u}_{\text{along the stream}} + \underbrace{J_{\text{branch}}^{\top}\,u}_{\text{through the branch}}
\qquad\quad
\text{share of the stream}
= \frac{\lVert \alpha u \rVert^2}{\lVert \alpha u \rVert^2 + \lVert J_{\text{branch}}^{\top} u \rVert^2}
"""


def stored(pair: Pair, side: str) -> list[RunConfig]:
    """The stored runs of a side's placement, the article's first."""
    found = store.finished(getattr(pair, side), pair.layers)
    return sorted(found, key=lambda config: ARTICLE.index(config) if config in ARTICLE else len(ARTICLE))


def chosen(pair: Pair, side: str) -> RunConfig | None:
    config: RunConfig | None = getattr(pair, f"{side}_run")
    return config or next(iter(stored(pair, side)), None)


def run_of(pair: Pair, side: str) -> Run | None:
    """The finished run whose measurements a side shows."""
    config = chosen(pair, side)
    return result(0, "", config).run if config else None


def choice(pair: Pair, side: str) -> None:
    """Which stored run of the placement it is; where there is none, the way to one."""
    placement, options, config = pair.placements[SIDES.index(side)], stored(pair, side), chosen(pair, side)
    if config is None:
        st.info(f"No finished run of {placement.title} at this depth is stored here yet.", icon=":material/hourglass_empty:")
        train(RunConfig(placement=placement.name, layers=pair.layers))
        return
    missing = config not in options
    options = [config, *options] if missing else options
    placements.run(pair, f"{side}_run", f"Run of {placement.title}", config, dict(zip(options, labels(options), strict=True)))
    if missing:
        st.info("This run is not stored here.", icon=":material/hourglass_empty:")
        train(config)


def train(config: RunConfig) -> None:
    query = {"run1": config.to_url()}
    st.page_link("pages/lab/train.py", label="Train it", icon=":material/play_arrow:", query_params=query)


def steps_shown(runs: list[Run | None]) -> list[int]:
    """The steps that the slider has: all of the longest run, or evenly many of them."""
    longest = max((len(run.history) for run in runs if run), default=1)
    return sorted({round(step) for step in np.linspace(1, longest, min(longest, STEPS_SHOWN))})


def shares(placement: Placement, pair: Pair, run: Run, step: int) -> dict[str, float]:
    """At a step, or at the run's last one before it."""
    found = ways(run.history, placement.block(pair.drawn, pair.layers), pair.drawn)
    return {name: float(share_s[min(step, len(run.history)) - 1]) for name, share_s in found.share_s.items()}


def exported(pair: Pair, placement: Placement, run: Run | None) -> dict[str, float] | None:
    """The shares that a file of the drawing shows."""
    return shares(placement, pair, run, pair.step) if run and pair.view == "measured" else None


def measured(placement: Placement, pair: Pair, run: Run | None, steps: list[int]) -> dict[str, Any] | None:
    """For the component: a drawing with bands, and each way's share and norm at these steps; null where there is no number."""
    if run is None:
        return None
    spec = placement.block(pair.drawn, pair.layers)
    found = ways(run.history, spec, pair.drawn)
    rows = np.minimum(steps, len(run.history)) - 1
    return {
        "label": labels([run.config])[0],
        "last": len(run.history),
        "svg": block_svg(spec, "backward", placement.dual_stream, shares(placement, pair, run, 1)),
        "share": {name: numbers(share_s[rows]) for name, share_s in found.share_s.items()},
        "norm": {name: numbers(norm_s[rows]) for name, norm_s in found.norm_s.items()},
    }


def numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.4g}") for value in values]


def explained() -> None:
    st.markdown(
        "**How the signal is measured.** Where a branch leaves the stream, the gradient of the loss ℓ by what stands there, $v$ "
        "(that is $x$ or $h$), is a sum over the ways back from the addition, where the gradient is $u$:"
    )
    st.latex(FORMULA)
    st.caption(
        "‖·‖ is over all numbers of all tokens of the step's batch, recorded in every step. J_branch is the Jacobian of the whole branch, "
        "its norms and its gate included. A share compares the sizes of the terms; whether they point the same way, it does not say."
    )


def spectra(pair: Pair, runs: list[Run | None]) -> None:
    """The singular values of the stack's and of the drawn block's Jacobian, of both runs beside each other on one scale."""
    st.markdown(
        "**What the Jacobian keeps of each direction.** Its singular values, the largest first: at 1 a direction passes unchanged. "
        "They are those of the first token of the run's first sequence, which attends to itself alone, so that one D × D matrix has every "
        "way in it and the stack's is the product of the blocks'."
    )
    st.markdown(" &emsp; ".join(f"{swatch(slot)} {when}" for when, slot in figures.WHEN.items()))
    for row, what in ((0, "the whole stack"), (pair.drawn, f"block {pair.drawn}")):
        spectra = [run.singular_values[:, row] if run and run.singular_values is not None else None for run in runs]
        domain = figures.spectrum_domain([spectrum for spectrum in spectra if spectrum is not None])
        for column, placement, run, spectrum, side in zip(st.columns(2, gap="large"), pair.placements, runs, spectra, SIDES, strict=True):
            with column:
                if spectrum is not None:
                    draw(f"{placement.title}: {what}", spectrum, domain, f"{side}_{row > 0}")
                elif run:
                    st.caption(f"{verbatim(labels([run.config])[0])} was trained without measuring them.")


def draw(title: str, spectrum: np.ndarray, domain: tuple[float, float], key: str) -> None:
    alt = f"{title}: singular values of the Jacobian by rank, before and after training."
    before_d, after_d = spectrum
    st.altair_chart(figures.spectrum_chart(before_d, after_d, domain, title), width="stretch", key=f"spectrum_{key}", alt=alt)
    nil = {when: int((values_d < figures.NIL).sum()) for when, values_d in zip(figures.WHEN, spectrum, strict=True)}
    if not np.isfinite(spectrum).all():
        st.caption("The run ended with parameters that are no numbers, so it has no Jacobian after training.")
    elif any(nil.values()):
        counts = " and ".join(f"{count} of {spectrum.shape[1]} {when}" for when, count in nil.items())
        st.caption(f"Below 10⁻⁹, and so not shown: {counts}.")

"""What runs have measured of the two placements: where the backward signal came from, and what the Jacobians keep of it."""

from threading import Lock
from typing import Any

import numpy as np
import streamlit as st
from cachetools import LRUCache, cached

from core.drawing.diagram.block import block_svg
from core.drawing.equations import number_latex
from core.figures.spectra import SLOTS, spectrum_chart
from core.lenses.backward import Ways, bands, percents, ways
from core.lenses.spectra import NIL, spectrum_domain, unshown_of_spectrum
from core.placement.record import Placement
from core.runs import store
from core.runs.config import RunConfig
from core.runs.file import Run
from core.runs.labels import labels
from core.runs.presets import ARTICLE
from core.state.address import write_run
from core.state.pair import SIDES, Pair
from core.values import unfinite
from pages.ui.identity_path import placements
from pages.ui.shared.figure import figure
from pages.ui.shared.results import Result, result
from pages.ui.shared.swatch import legend
from pages.ui.shared.verbatim import verbatim

STEPS_SHOWN = 500


def stored_runs(pair: Pair, side: str) -> list[RunConfig]:
    """The finished runs whose measurements a side can show, the article's first."""
    found = store.find(lambda run: pair.fits(side, run))
    return sorted(found, key=lambda config: ARTICLE.index(config) if config in ARTICLE else len(ARTICLE))


def shown_run(pair: Pair, side: str, options: list[RunConfig]) -> Result:
    """The run that a side shows, whether it is finished or not: that of the address, else the first of `options`, else the default one."""
    config: RunConfig | None = getattr(pair, f"{side}_run")
    return result(0, "", config or next(iter(options), pair.usual_run(side)))


def reason_for_none(entry: Result) -> tuple[str, str]:
    """Why a run has no measurements to show, and what to do about it."""
    return ("The run is being trained.", "Watch it") if entry.running else ("No such run yet.", "Train it")


def run_choice(pair: Pair, side: str, options: list[RunConfig], entry: Result, other: Result) -> None:
    """Which stored run's measurements a side shows; where there is none, a link to train one. `other` is what the other side shows."""
    others = [other.config] if other.run else []
    if options or entry.run or getattr(pair, f"{side}_run"):
        choices = options if entry.config in options else [entry.config, *options]
        names = labels([*choices, *others])[: len(choices)]  # so that they tell what differs from the other side, too
        placements.run_list(f"{side}_run", "Measured in the run", entry.config, dict(zip(choices, names, strict=True)))
    if not entry.run:
        reason, action = reason_for_none(entry)
        query = {"run1": write_run(entry.config)}
        st.page_link("lab/train.py", label=f"{reason} **{action}**", icon=":material/play_arrow:", query_params=query)


def slider_steps(runs: list[Run | None]) -> list[int]:
    """The steps that the slider has: all of the longest run, or STEPS_SHOWN of them, evenly spaced."""
    longest = max((len(run.history) for run in runs if run), default=1)
    return sorted({round(step) for step in np.linspace(1, longest, min(longest, STEPS_SHOWN))})


def ways_of(placement: Placement, pair: Pair, run: Run) -> Ways:
    """The ways by which the gradient came in the drawn block."""
    return ways(run.history, placement.block(pair.drawn, pair.layers), pair.drawn)


def shares(found: Ways, row: int) -> dict[str, float]:
    """By way, at step row + 1."""
    return {way: float(share_s[row]) for way, share_s in found.share_s.items()}


def shown_step(pair: Pair, steps: list[int]) -> int:
    """The last of the slider's steps that is not beyond the address's."""
    return max((step for step in steps if step <= pair.step), default=steps[0])


def shown_bands(pair: Pair, placement: Placement, run: Run | None, step: int) -> dict[str, tuple[float, str]] | None:
    """The bands of the drawing at a step, or at the run's last where it has ended before; none where the view has no bands."""
    if run is None or pair.view != "measured":
        return None
    return bands(shares(ways_of(placement, pair, run), min(step, len(run.history)) - 1))


def same_measurements(placement: Placement, pair: Pair, run: Run | None, name: str, steps: list[int]) -> tuple[Any, ...]:
    return placement, pair.drawn, pair.layers, run and run.history.serial, name, *steps


@cached(LRUCache(64), key=same_measurements, lock=Lock())
def measurements(placement: Placement, pair: Pair, run: Run | None, name: str, steps: list[int]) -> dict[str, Any] | None:
    """For the component: a drawing with bands, and for each way its share, in words too, and its norm at these steps."""
    if run is None:
        return None
    spec, found = placement.block(pair.drawn, pair.layers), ways_of(placement, pair, run)
    rows = np.minimum(steps, len(run.history)) - 1
    words = [percents(shares(found, row)) for row in rows]
    return {
        "label": f"{name}, diverged" if run.history.diverged_at else name,
        "last": len(run.history),
        "svg": block_svg(spec, "backward", placement.dual_stream, bands(shares(found, 0))),
        "share": {way: json_shares(share_s[rows]) for way, share_s in found.share_s.items()},
        "words": {way: [step_words[way] for step_words in words] for way in found.share_s},
        "norm": {way: json_norms(norm_s[rows]) for way, norm_s in found.norm_s.items()},
    }


def json_shares(values: np.ndarray) -> list[float | None]:
    """Four digits of each; null where it is not known."""
    return [None if np.isnan(value) else float(f"{value:.4g}") for value in values]


def json_norms(values: np.ndarray) -> list[float | str]:
    """Four digits of each, or what it is where it is no finite number."""
    return [float(f"{value:.4g}") if np.isfinite(value) else unfinite(value) for value in values]


def explain(pair: Pair) -> None:
    """How the shares are measured, for the drawn blocks of the pair."""
    second = any(placement.dual_stream for placement in pair.placements)
    around = any(placement.block(pair.drawn, pair.layers).structure.block_skip for placement in pair.placements)
    gradient = r"(u + \partial\ell/\partial r')" if second else "u"
    terms = [r"\underbrace{\alpha\,u}_{\text{stream}}", rf"\underbrace{{J_{{\text{{branch}}}}^{{\top}}\,{gradient}}}_{{\text{{branch}}}}"]
    if around:
        terms.append(r"\underbrace{u'}_{\text{around}}")
    st.markdown(
        "**How the signal is measured.** Where a branch leaves the stream, the gradient of the loss ℓ by what stands there, $v$ "
        "(that is $x$ or $h$), is a sum over the ways back from the addition above, where the gradient is $u$:"
    )
    st.latex(rf"\frac{{\partial\ell}}{{\partial v}} = {' + '.join(terms)}")
    st.markdown("A way's share, the width of its band, is the square of its term's norm, divided by the sum of all terms' squares:")
    st.latex(r"\text{share of the stream} = \lVert \alpha u \rVert^2 \,/\, (\lVert \alpha u \rVert^2 + \ldots)")
    notes = [
        "‖·‖ is over all numbers of all tokens of the step's batch, recorded in every step.",
        r"$\alpha$ is what multiplies the stream, 1 where none is drawn.",
        r"$J_{\text{branch}}$ is the Jacobian of the whole branch, its norms and its gate included.",
    ]
    if second:
        notes.append("A branch also gets the gradient of the second stream, ∂ℓ/∂r′, which takes what it writes.")
    if around:
        notes.append("In a placement with a way around, $u'$ is the gradient at the block's last addition; it arrives at $x$.")
    notes.append("A share compares the sizes of the terms; it does not say whether they point the same way.")
    st.caption(" ".join(notes))


def spectra(pair: Pair, runs: list[Run | None]) -> None:
    """The singular values of the stack's and of the drawn block's Jacobian, of both runs beside each other on one scale."""
    if not any(run and run.singular_values is not None for run in runs):
        return
    words = (
        "**What the Jacobian keeps of each direction.** Its singular values, the largest first: at 1 a direction keeps its length, at 0.01 "
        "a hundredth of it is left. Measured for the first token of the run's first sequence. It attends only to itself, so each block's "
        "Jacobian is one matrix, as wide as the model, and the stack's is the product of the blocks'."
    )
    if any(placement.dual_stream for placement in pair.placements):
        words += " With a second stream, the stack's is that of both streams together; a block's is of the first."
    st.markdown(words)
    legend(SLOTS)
    for row, what in ((0, "the whole stack"), (pair.drawn, f"block {pair.drawn}")):
        rows = [run.singular_values[:, row] if run and run.singular_values is not None else None for run in runs]
        domain = spectrum_domain([spectrum for spectrum in rows if spectrum is not None])
        for column, placement, run, spectrum, side in zip(st.columns(2, gap="large"), pair.placements, runs, rows, SIDES, strict=True):
            with column:
                if spectrum is not None:
                    draw(f"{placement.title}: {what}", spectrum, domain, f"{side}_{'block' if row else 'stack'}")
                    if row == 0:
                        st.markdown(median_text(spectrum))
                    if note := unshown_of_spectrum(*spectrum):
                        st.caption(note)
                elif run:
                    st.caption(f"{verbatim(labels([run.config])[0])} was trained without measuring them.")


def draw(title: str, spectrum: np.ndarray, domain: tuple[float, float], key: str) -> None:
    """The chart of singular values (2, D), before and after training; `domain` is what its axis reaches over."""
    before_d, after_d = spectrum
    alt = f"{title}: singular values of the Jacobian by rank, before and after training."
    figure(spectrum_chart(before_d, after_d, domain, title), f"spectrum_{key}", alt)


def median_text(spectrum: np.ndarray) -> str:
    """What the medians of the singular values (2, D) say."""
    before, after = (length_text(float(np.median(values_d))) for values_d in spectrum)
    return f"Half of all directions come out at {before} before training, and at {after} after it."


def length_text(median: float) -> str:
    if np.isnan(median):
        return "**an unknown length**"
    if np.isinf(median):
        return "**a length beyond float32**"
    return f"**${number_latex(float(f'{100 * max(median, NIL):.2g}'))}$ %** of their length or less"

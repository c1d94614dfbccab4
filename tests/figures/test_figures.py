import html
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from made_run import made_history

from core.data_tasks import TASKS
from core.figures import images
from core.figures.axes import COLOURS, DASHES, Line, unshown
from core.figures.curves import STEPS_SHOWN, article_figure, curve_chart, curve_frame, kept_steps
from core.figures.figure import Figure
from core.figures.layers import layer_chart
from core.figures.maps import CELLS_SHOWN, heat_map, heat_maps
from core.figures.spectra import spectrum_chart
from core.lenses.spectra import spectrum_domain, unshown_of_spectrum
from core.runs.history import History
from core.runs.quantities import CURVES, LAYERS

TASK = TASKS["progression"]


def made_up(steps: int, layers: int, seed: int = 0) -> History:
    history = made_history(partial(np.random.default_rng(seed).lognormal, 0, 2), steps, layers)
    return history.replace(learning_rate=np.linspace(1e-4, 2e-3, steps))


def diverged(steps: int, value: float, seed: int = 0) -> History:
    """A history whose last row is not finite, in its layers either."""
    history = made_up(steps, 3, seed)
    for column in (history["loss"], history["gradient_norm"], history["stream_rms"], history["update_ratio"]):
        column[-1] = value
    return history


def flat(value: float) -> History:
    return made_history(partial(np.full, fill_value=value), 4, 2).replace(learning_rate=np.full(4, 1e-3))


def lines(*histories: History) -> list[Line]:
    return [Line(slot, f"run {slot}", history, TASK) for slot, history in enumerate(histories, 1)]


CASES = {
    "one run": lines(made_up(20, 2)),
    "eight runs": lines(*(made_up(12, 2, seed) for seed in range(8))),
    "one step": lines(made_up(1, 2)),
    "one layer, one step": lines(made_up(1, 1)),
    "unequal lengths and depths": lines(made_up(30, 2), made_up(1, 1), made_up(7, 12)),
    "long": lines(made_up(2000, 2), made_up(700, 3)),
    "diverged to inf": lines(diverged(9, np.inf), made_up(9, 3)),
    "diverged to nan": lines(diverged(9, np.nan), made_up(9, 3)),
    "diverged at step 1": lines(diverged(1, np.nan), diverged(1, np.inf)),
    "zeros": lines(flat(0.0)),
    "constant": lines(flat(4.15)),
    "far apart": lines(flat(1e-38), flat(3e38)),
}


def chart_of(lines: list[Line], name: str) -> Figure:
    return curve_chart(lines, name) if name in CURVES else layer_chart(lines, name, step=5)


def parts(spec: Any) -> Iterator[dict[str, Any]]:
    """A specification and all that are in it."""
    yield spec
    for name in ("layer", "hconcat", "vconcat"):
        for child in spec.get(name, []):
            yield from parts(child)


def frames(chart: Figure) -> dict[str, pd.DataFrame]:
    return {name: pa.ipc.open_stream(table).read_pandas() for name, table in chart.tables.items()}


def valid(chart: Figure) -> dict[str, Any]:
    """The chart's specification, once it is known to be a legal one that has its tables, without any number that is not finite."""
    alt.Chart.from_dict(chart.spec)  # which validates it
    specification = chart.whole()
    json.dumps(specification, allow_nan=False)
    for frame in frames(chart).values():
        assert not np.isinf(frame.select_dtypes("number")).any(axis=None)
    assert {part["data"]["name"] for part in parts(specification) if "name" in part.get("data", {})} == set(chart.tables)
    return specification


def encodings(spec: Any, channel: str) -> Iterator[dict[str, Any]]:
    """Every encoding of the channel in a specification, wherever it is nested."""
    if isinstance(spec, dict):
        if channel in spec.get("encoding", {}):
            yield spec["encoding"][channel]
        for child in spec.values():
            yield from encodings(child, channel)
    elif isinstance(spec, list):
        for child in spec:
            yield from encodings(child, channel)


def descriptions(chart: Figure, mark: str) -> list[str]:
    """What a drawn chart says of each of its marks: the same values as hovering over it."""
    svg = images.svg(chart)
    found = re.findall(rf'aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="{mark}"', svg)
    return [html.unescape(text) for text in found]


@pytest.mark.parametrize("name", CURVES | LAYERS)
@pytest.mark.parametrize("case", CASES)
def test_curves_and_layers_of_any_runs_are_valid_charts_of_finite_values_on_a_true_log_axis(case: str, name: str) -> None:
    quantity = (CURVES | LAYERS)[name]
    chart = chart_of(CASES[case], name)
    specification = valid(chart)
    axes = [y for y in encodings(specification, "y") if quantity.unit in (y.get("title") or "")]
    assert axes
    for y in axes:
        assert (y["scale"].get("type") == "log") == quantity.log
        assert ("(log)" in y["title"]) == quantity.log
    if quantity.log:
        assert all((frame.value.dropna() > 0).all() for frame in frames(chart).values() if "value" in frame)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("case", CASES)
def test_heat_maps_of_any_runs_are_valid_charts_of_finite_values_with_logarithmic_colours(case: str, name: str) -> None:
    maps = heat_maps(CASES[case], name)
    assert len(maps) == len(CASES[case])
    for chart in maps:
        assert [colour["scale"]["type"] for colour in encodings(valid(chart), "color") if "scale" in colour] == ["log"]


@pytest.mark.parametrize("case", CASES)
def test_charts_for_files_are_valid_for_any_runs(case: str) -> None:
    valid(heat_map(CASES[case], "stream_rms"))
    valid(article_figure({line.label: line.history for line in CASES[case]}))


@pytest.mark.parametrize("case", ["one run", "eight runs", "unequal lengths and depths", "diverged to nan"])
def test_a_run_has_one_colour_and_one_dash_on_every_chart(case: str) -> None:
    for name in CURVES | LAYERS:
        specification = chart_of(CASES[case], name).spec
        for channel, marks in (("color", COLOURS), ("strokeDash", DASHES)):
            found = [encoding["scale"] for encoding in encodings(specification, channel)]
            assert found
            for scale in found:
                assert scale["domain"] == [str(line.slot) for line in CASES[case]]
                assert scale["range"] == [marks[line.slot - 1] for line in CASES[case]]


@pytest.mark.parametrize("name", ["gradient_norm", "stream_rms"])
def test_a_line_reaches_no_further_than_its_values(name: str) -> None:
    """Where two steep lines meet, a mitred joint would stand out above them."""
    marks = [part["mark"] for part in parts(chart_of(CASES["eight runs"], name).spec) if part.get("mark", {}).get("type") == "line"]
    assert marks
    assert {mark["strokeJoin"] for mark in marks} == {"round"}


def test_a_run_keeps_its_colour_when_another_one_is_hidden() -> None:
    hidden = [line for line in CASES["eight runs"] if line.slot != 2]
    scale = next(encodings(curve_chart(hidden, "loss").spec, "color"))["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {str(line.slot): COLOURS[line.slot - 1] for line in hidden}
    assert len(set(COLOURS)) == len({tuple(dash) for dash in DASHES}) == 8


def test_curves_hold_every_step_of_a_short_run_exactly() -> None:
    line = CASES["one run"][0]
    for name in CURVES:
        frame = curve_frame([line], name)
        np.testing.assert_array_equal(frame.value, line.history[name].astype(np.float64))
        np.testing.assert_array_equal(frame.step, np.arange(1, 21))


COLUMN = hnp.arrays(
    np.float64, st.integers(1, 2500), elements=st.floats(0, 1e6) | st.sampled_from([0.0, np.inf, np.nan]), fill=st.floats(0.1, 10)
)


@given(st.lists(COLUMN, min_size=1, max_size=8))
def test_thinning_keeps_the_ends_and_every_extreme_in_at_most_as_many_steps_as_a_chart_shows(columns: list[np.ndarray]) -> None:
    kept = kept_steps(columns)
    longest = max(len(column) for column in columns)
    assert len(kept) <= STEPS_SHOWN
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == longest - 1
    if longest <= STEPS_SHOWN:
        assert len(kept) == longest
    for column in columns:
        shown = column[kept[kept < len(column)]]
        finite, finite_shown = column[np.isfinite(column)], shown[np.isfinite(shown)]
        assert len(column) - 1 in kept
        if len(finite):
            assert (finite_shown.min(), finite_shown.max()) == (finite.min(), finite.max())


def test_a_spike_of_one_step_survives_thinning_also_just_before_divergence() -> None:
    history = made_up(5000, 1)
    history["gradient_norm"][:] = 1.0
    history["gradient_norm"][[1234, 4997]] = [7e3, 8e3]
    history["gradient_norm"][-1] = np.inf
    frame = curve_frame(lines(history), "gradient_norm")
    assert set(frame[frame.value > 1][["run", "step", "value"]].itertuples(index=False, name=None)) == {("1", 1235, 7e3), ("1", 4998, 8e3)}
    assert len(frame) <= STEPS_SHOWN


def test_hovering_over_a_curve_gives_every_run_s_value_at_the_step() -> None:
    trio = [Line(slot, label, made_up(4, 2, slot), TASK) for slot, label in ((1, "Pre-Norm"), (4, "Post-Norm · 2-step warmup"))]
    for name in CURVES:
        marks = descriptions(curve_chart(trio, name), "rule mark")
        for step in range(1, 5):
            values = [f"{line.label}: {line.history[name][step - 1]:.6g}" for line in trio]
            assert any(mark.startswith(f"step: {step}") and all(value in mark for value in values) for mark in marks), (step, values, marks)


def test_hovering_over_the_layers_gives_every_run_s_value_and_says_which_run_had_ended() -> None:
    pair = [Line(1, "long", made_up(6, 2, 1), TASK), Line(2, "short", made_up(3, 2, 2), TASK)]
    for name in LAYERS:
        marks = descriptions(layer_chart(pair, name, 5), "rule mark")
        for row in range(2):
            layer = row + LAYERS[name].first_layer
            long, short = (line.history[name][step - 1][row] for line, step in zip(pair, (5, 3), strict=True))
            values = [f"long: {long:.6g}", f"short, at its last step, 3: {short:.6g}"]
            assert any(mark.startswith(f"layer: {layer}") and all(value in mark for value in values) for mark in marks), (values, marks)


@pytest.mark.parametrize(("value", "words"), [(np.inf, "beyond float32"), (np.nan, "not a number"), (0.0, "zero")])
def test_hovering_says_what_a_value_is_that_a_log_axis_cannot_show(value: float, words: str) -> None:
    pair = [Line(1, "bad", diverged(3, value), TASK), Line(2, "good", made_up(4, 3), TASK)]
    for chart, there in ((curve_chart(pair, "loss"), "step: 3;"), (layer_chart(pair, "stream_rms", 3), "layer: 1;")):
        assert any(text.startswith(there) and f"bad: {words}; good: " in text for text in descriptions(chart, "rule mark"))
    ended = [text for text in descriptions(curve_chart(pair, "loss"), "rule mark") if text.startswith("step: 4;")]
    assert any("bad: –; good: " in text for text in ended)


def test_a_run_of_one_step_is_seen_as_a_point() -> None:
    pair = lines(made_up(1, 1), made_up(5, 1, 1))
    assert len(descriptions(curve_chart(pair, "loss"), "point")) == 1
    assert descriptions(curve_chart(pair[1:], "loss"), "point") == []


@pytest.mark.parametrize(("step", "value"), [(1, np.nan), (1, np.inf), (9, np.nan), (9, np.inf)])
def test_the_step_of_divergence_is_marked_on_every_curve(step: int, value: float) -> None:
    pair = [Line(3, "bad", diverged(step, value), TASK), Line(4, "good", made_up(20, 3), TASK)]
    for name in CURVES:
        chart = curve_chart(pair, name)
        assert frames(chart)[f"{name}_diverged"].to_dict("records") == [{"run": "3", "step": step, "name": "✕ diverged"}]
        assert "✕ diverged" in images.svg(chart)
    assert "✕ diverged" not in images.svg(curve_chart(pair[1:], "loss"))


@pytest.mark.parametrize("case", CASES)
def test_heat_maps_cover_every_step_and_layer_once_in_a_bounded_number_of_cells(case: str) -> None:
    drawn = CASES[case]
    for name in LAYERS:
        maps = [frames(chart)[f"{name}_{line.slot}"] for line, chart in zip(drawn, heat_maps(drawn, name), strict=True)]
        assert sum(map(len, maps)) <= max(CELLS_SHOWN, sum(line.history.layers + 1 for line in drawn))
        for line, data in zip(drawn, maps, strict=True):
            values_sl = line.history[name]
            first = LAYERS[name].first_layer
            stretches = data[["step", "step_end"]].drop_duplicates()
            assert stretches.step.iloc[0] == 1
            assert stretches.step_end.iloc[-1] == len(line.history) + 1
            np.testing.assert_array_equal(stretches.step.iloc[1:], stretches.step_end.iloc[:-1])
            cells = data.pivot(index="step", columns="layer", values="layer_end")  # which fails where a cell is there twice
            np.testing.assert_array_equal(cells, np.tile(np.arange(values_sl.shape[1]) + first + 1, (len(stretches), 1)))
            np.testing.assert_array_equal(cells.columns, np.arange(values_sl.shape[1]) + first)
            shown_sl = np.where(np.isfinite(values_sl), values_sl, 0).astype(np.float64)
            greatest_l = data.groupby("layer").value.max().fillna(0)
            np.testing.assert_array_equal(greatest_l, shown_sl.max(axis=0))


def test_heat_maps_of_all_runs_share_one_colour_scale_over_all_values() -> None:
    drawn = CASES["unequal lengths and depths"]
    domains = [frames(chart)["update_ratio_range"].value.tolist() for chart in heat_maps(drawn, "update_ratio")]
    values = np.concatenate([line.history["update_ratio"].ravel() for line in drawn])
    assert domains == [[values.min(), values.max()]] * 3


def test_a_note_counts_what_a_log_axis_cannot_show() -> None:
    bad, good = Line(1, "bad", diverged(9, np.nan), TASK), Line(2, "good", made_up(9, 3), TASK)
    zero = Line(3, "zero", flat(0.0), TASK)
    assert unshown([good], "loss") == unshown([good], "update_ratio") == ""
    assert "on the log axis: 1 not a number of bad. The files" in unshown([bad, good], "loss")
    assert "3 not a number of bad; 8 zero of zero." in unshown([bad, good, zero], "update_ratio")
    assert "4 not a number of bad; 12 zero of zero." in unshown([bad, zero], "stream_rms")
    assert unshown([bad, zero], "learning_rate") == ""  # its axis is linear


def test_the_loss_of_guessing_is_drawn_on_the_loss_alone() -> None:
    says = [descriptions(curve_chart(CASES["one run"], name), "text mark") for name in CURVES]
    assert says == [["value: 4.15888308336; name: random guessing: 4.159"], [], []]


@pytest.mark.parametrize("label", ["Pre-Norm · no warmup", "it's", 'a "b"', "both ' and \"", "back\\slash", "datum.x ? 1 : 2", "</script>"])
def test_a_legend_has_any_label_as_it_is(label: str) -> None:
    drawn = [Line(1, label, made_up(3, 2), TASK), Line(5, "other", made_up(3, 2), TASK)]
    for chart in (curve_chart(drawn, "loss", legend=True), layer_chart(drawn, "stream_rms", 1, legend=True)):
        texts = [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", images.svg(chart))]
        assert [text for text in texts if text in (label, "other")] == [label, "other"]


def test_the_article_s_figure_has_loss_and_gradient_norm_side_by_side_with_a_legend() -> None:
    histories = {"Pre-Norm": made_up(5, 2), "Post-Norm": diverged(4, np.nan)}
    figure = article_figure(histories)
    specification = figure.spec
    assert [panel["title"]["text"] for panel in specification["hconcat"]] == ["Loss", "Gradient norm"]
    for panel in specification["hconcat"]:
        assert "log" in [y["scale"].get("type") for y in encodings(panel, "y") if "scale" in y]
    svg = images.svg(figure)
    assert all(f">{label}<" in svg for label in histories)


def test_a_spectrum_shows_what_a_jacobian_keeps_of_each_direction() -> None:
    before_d, after_d = np.geomspace(10, 1e-8, 6), np.array([3.0, 2.0, 1.0, 0.5, 1e-12, 0.0])
    domain = spectrum_domain([before_d, after_d])
    assert domain == pytest.approx((1e-8, 10))
    chart = spectrum_chart(before_d, after_d, domain, "The whole stack")
    shown = chart.whole()["datasets"]["spectrum"]
    assert [row["rank"] for row in shown if row["when"] == "after training"] == [1, 2, 3, 4]  # below, rounding is all there is
    assert [row["value"] for row in shown if row["when"] == "before training"] == pytest.approx(list(before_d))
    assert "before training" in images.svg(chart)
    assert unshown_of_spectrum(before_d, after_d) == "Not shown: 2 after training, below 10⁻⁹, where rounding is all there is."
    assert unshown_of_spectrum(before_d, before_d) == ""


def test_the_spectrum_of_a_run_that_diverged_is_that_before_training() -> None:
    nothing_d = np.full(3, np.nan, np.float32)
    chart = spectrum_chart(np.ones(3, np.float32), nothing_d, spectrum_domain([nothing_d]), "The whole stack")
    shown = chart.whole()["datasets"]["spectrum"]
    assert {row["when"] for row in shown} == {"before training"}
    assert unshown_of_spectrum(np.ones(3), nothing_d) == "Not shown: those after training, which are not numbers."
    large_d = np.array([np.inf, 1, 1])
    assert unshown_of_spectrum(np.ones(3), large_d) == "Not shown: those after training that are beyond float32."

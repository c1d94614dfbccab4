"""The Train page as a visitor meets it: what it shows, how runs are arranged, and what its address holds."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_run import made_run

from core.runs import store
from core.runs.presets import PRESETS
from core.runs.quantities import LAYERS
from core.state.address import read_run, write_run

ROOT = Path(__file__).parents[2]
FIRST_PAINT = """
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("pages/router.py", default_timeout=60).run()
assert not app.exception
assert [chart.proto.alt.split(" against")[0] for chart in app.get("vega_lite_chart")] == ["Loss", "Gradient norm", "Learning rate"]
print(*sorted({"jax", "flax", "optax", "dask", "distributed"} & sys.modules.keys()))
"""
TINY = {"run1": "pre~layers-2~steps-5", "run2": "post~layers-2~steps-5"}
TRIO = TINY | {"run3": "none~layers-2~steps-5"}
Visits = Callable[..., Any]


def keep(*runs: str) -> None:
    """Puts made-up runs into the store, so that they are known."""
    for run in runs:
        store.save(made_run(read_run(run)[0]))


def test_a_newcomer_sees_the_article_s_runs_before_anything_that_computes_is_imported() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST_PAINT], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_the_front_page_has_the_article_s_outcomes_and_nothing_to_run(visit: Visits) -> None:
    page = visit()
    assert page.text.count("Learned") == 2
    assert sum(page.text.count(f"{word}]") for word in ("Stuck", "Plateau", "Still learning", "Lost it")) == 1  # docs/reproduction.md
    assert "All runs shown are finished" in page.text
    assert page.key("run").disabled
    assert page.key("cancel") is None
    assert page.address == {}
    for label in ("Pre-Norm · no warmup", "Post-Norm · no warmup", "Post-Norm · 120-step warmup"):
        assert all(label in chart.alt for chart in page.charts)


def test_known_runs_appear_without_run_and_unknown_ones_have_an_estimate(visit: Visits) -> None:
    keep(TINY["run1"])
    page = visit(**TINY)
    assert "mean of the last" in page.text
    assert "Not computed yet" in page.text
    assert "1 run is not computed yet: about" in page.text
    assert not page.key("run").disabled
    page = visit(**TRIO)
    assert "2 runs are not computed yet: about" in page.text


@pytest.mark.parametrize(
    ("view", "alts"),
    [
        ("curves", ["Loss against", "Gradient norm against", "Learning rate against"]),
        ("layers", [f"{quantity.title} by layer at step 3" for quantity in LAYERS.values()]),
        ("maps", ["Update ratio of Pre-Norm", "Update ratio of Post-Norm"]),
        ("downloads", []),
    ],
)
def test_each_view_draws_its_charts_with_a_text_for_those_who_do_not_see_them(visit: Visits, view: str, alts: list[str]) -> None:
    keep(*TINY.values())
    page = visit(**TINY, view=view, step="3", map="update_ratio")
    assert [start for chart, start in zip(page.charts, alts, strict=True) if not chart.alt.startswith(start)] == []
    assert bool(page.app.get("download_button")) == (view == "downloads")


def test_a_hidden_run_is_not_drawn_and_with_all_hidden_the_page_says_what_to_do(visit: Visits) -> None:
    keep(*TINY.values())
    assert all("Pre-Norm" not in chart.alt and "Post-Norm" in chart.alt for chart in visit(**TINY, hide="1").charts)
    page = visit(**TINY, hide="1-2")
    assert page.charts == []
    assert "show a run that is hidden" in page.text


def test_the_view_the_step_and_the_quantity_of_the_maps_are_chosen_on_the_page_and_kept_in_the_address(visit: Visits) -> None:
    keep(*TINY.values())
    page = visit(**TINY, view="layers")
    [step] = [slider for slider in page.app.main.slider if slider.label == "Step"]
    assert (step.min, step.max, step.value) == (1, 5, 5)
    step.set_value(2)
    page.look()
    assert page.address == TINY | {"view": "layers", "step": "2"}
    assert all("at step 2" in chart.alt for chart in page.charts)
    page.go(**TINY, view="maps")
    [quantity] = page.app.main.get("button_group")
    quantity.set_value("Update ratio")
    page.look()
    assert page.address == TINY | {"view": "maps", "map": "update_ratio"}
    assert all(chart.alt.startswith("Update ratio of") for chart in page.charts)


def test_a_step_beyond_the_last_one_shows_the_last_one(visit: Visits) -> None:
    keep(*TINY.values())
    assert all("at step 5" in chart.alt for chart in visit(**TINY, view="layers", step="400").charts)


def test_an_address_gives_the_same_page_in_another_session(visit: Visits) -> None:
    keep(*TRIO.values())
    query = TRIO | {"edit": "2", "hide": "3", "view": "layers", "step": "4"}
    page, again = visit(**query), visit(**query)
    assert page.address == query
    assert page.text == again.text
    assert page.notices == []
    assert [chart.alt for chart in page.charts] == [chart.alt for chart in again.charts]
    assert page.control("Norm placement").value == "post"


def test_other_parameters_of_an_address_are_left_alone(visit: Visits) -> None:
    page = visit(run1="pre~layers-2", lesson="3")
    page.click("add")
    assert page.address == {"lesson": "3", "run1": "pre~layers-2", "run2": "pre~layers-2", "edit": "2"}


def test_bad_values_in_an_address_are_named_and_replaced(visit: Visits) -> None:
    page = visit(
        run1="pre~layers-2~depth-9~lr-![](x)", run2="sideways", run9="pre", edit="7", hide="5", view="inside", step="-1", map="loss"
    )
    assert page.address == {"run1": "pre~layers-2", "run2": "pre"}
    for words in ("'depth'", "'![](x)'", "'sideways'", "'run9'", "'7'", "'5'", "'inside'", "'-1'", "'loss'"):
        assert sum(words in notice for notice in page.notices) == 1
    page.click("add")
    assert page.notices == []


def test_going_back_brings_back_the_comparison_before(visit: Visits) -> None:
    page = visit()
    page.set("Depth, in blocks", 3)
    changed = page.address
    page.go()
    assert page.control("Depth, in blocks").value == 12
    page.go(**changed)
    assert page.control("Depth, in blocks").value == 3


def test_runs_are_added_up_to_eight(visit: Visits) -> None:
    page = visit(run1="pre~layers-2")
    for runs in range(2, 9):
        assert not page.key("add").disabled
        page.click("add")
        assert page.address["edit"] == str(runs)
    assert page.key("add").disabled
    assert "Duplicate" not in str(page.key("act1").options)
    assert len({page.key(f"act{slot}").id for slot in range(1, 9)}) == 8


def test_a_card_s_menu_edits_duplicates_hides_shows_and_removes_its_run(visit: Visits) -> None:
    page = visit(**TRIO)
    page.click("act2", "edit")
    assert page.address == TRIO | {"edit": "2"}
    page.click("act3", "toggle")
    assert page.address == TRIO | {"edit": "2", "hide": "3"}
    assert "Show" in str(page.key("act3").options)
    page.click("act3", "toggle")
    assert page.address == TRIO | {"edit": "2"}
    page.click("act3", "duplicate")
    assert page.address == TRIO | {"run4": TRIO["run3"], "edit": "4"}
    page.click("act1", "remove")
    assert page.address == {name: run for name, run in (TRIO | {"run4": TRIO["run3"]}).items() if name != "run1"} | {"edit": "4"}
    page.click("edit3")
    assert page.address["edit"] == "3"


def test_the_last_run_cannot_be_removed(visit: Visits) -> None:
    page = visit(**TINY)
    page.click("act1", "remove")
    assert page.address == {"run2": TINY["run2"]}
    assert "Remove" not in str(page.key("act2").options)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_replaces_the_runs(visit: Visits, preset: str) -> None:
    page = visit(run4="none~layers-2", view="maps")
    page.click("preset", preset)
    runs = {f"run{slot}": write_run(run) for slot, run in enumerate(PRESETS[preset][1], 1)}
    assert page.address == ({} if preset == "article" else runs) | {"view": "maps"}

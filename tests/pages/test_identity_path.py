"""The page Identity path without a browser: its choices, its address, and what it says."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_run import made_run

from core.placement.table import PLACEMENTS
from core.runs import store
from core.runs.config import RunConfig
from core.state.address import write_run
from pages.ui.identity_path.drawing import pieces
from pages.ui.identity_path.placements import known_placement, known_run

Visits = Callable[..., Any]
PAGE = "theory/identity_path.py"


@pytest.fixture
def theory(visit: Visits) -> Visits:
    """Opens the page at an address."""

    def opened(**query: str) -> Any:
        page = visit()
        page.app.switch_page(PAGE)
        page.go(**query)
        return page

    return opened


def widget(page: Any, label: str, place: int = 0) -> Any:
    kinds = ("selectbox", "button_group", "number_input")
    return [found for kind in kinds for found in page.app.main.get(kind) if found.label == label][place]


def put(page: Any, label: str, value: Any) -> None:
    widget(page, label).set_value(value)
    page.look()


def component(page: Any) -> Any:
    """What the drawings' component is given."""
    [found] = page.app.get("bidi_component")
    return json.loads(found.proto.json)


def words(page: Any) -> str:
    """The left placement in words."""
    return str(page.app.get("code")[0].value)


def test_it_opens_with_the_articles_two_placements(theory: Visits) -> None:
    page = theory()
    assert (widget(page, "Placement").value, widget(page, "Compare with").value) == ("pre", "post")
    assert page.address == {}
    assert "yes, through the whole stack" in page.text
    assert "none through the whole stack" in page.text


@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_placement_can_be_looked_at(theory: Visits, name: str) -> None:
    page = theory(left=name, layers="24")
    placement = PLACEMENTS[name]
    for said in (placement.title, placement.summary, placement.source, placement.used_by, placement.trap):
        assert said in page.text
    assert page.notices == []


def test_a_choice_is_in_the_address_and_what_is_usual_is_not(theory: Visits) -> None:
    page = theory()
    put(page, "Compare with", "deepnorm")
    put(page, "Blocks", 48)
    assert page.address == {"right": "deepnorm", "layers": "48"}
    put(page, "Compare with", "post")
    put(page, "Blocks", 12)
    assert page.address == {}


def test_the_block_and_the_final_norm_are_in_the_address_and_followed(theory: Visits) -> None:
    page = theory(left="mix")
    assert component(page)["sides"][0]["which"] == "like blocks 4 to 12"
    assert "A final norm follows" in words(page)
    put(page, "Drawn block", 2)
    put(page, "Final norm", "Off")
    assert page.address == {"left": "mix", "block": "2", "final_norm": "false"}
    assert (component(page)["title"], component(page)["sides"][0]["which"]) == ("Block 2 of 12", "like blocks 1 to 3")
    assert "No norm follows" in words(page)
    put(page, "Blocks", 2)
    assert widget(page, "Drawn block").value == 2
    put(page, "Final norm", "Default")
    assert page.address == {"left": "mix", "layers": "2"}


def test_a_view_in_the_address_is_shown_and_exported(theory: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    files: dict[str, Any] = {}
    monkeypatch.setattr("pages.ui.identity_path.placements.download", lambda label, make, name, *_: files.update({name: make}))
    page = theory(left="b2t", right="custom:attn=input,ffn=none", view="backward", slide="0.25", block="3")
    assert page.notices == []
    assert (component(page)["view"], component(page)["slide"], component(page)["drawn"]) == ("backward", 0.25, 3)
    exported = ["b2t-block-3-backward", "b2t-stack-backward", "own-block-3-backward", "own-stack-backward"]
    assert files.keys() == {f"{name}.{ending}" for name in exported for ending in ("svg", "png")}
    assert all("∂ℓ/∂x" in make() for name, make in files.items() if name.endswith("svg"))


def test_a_design_is_taken_from_the_drawn_block_and_says_what_it_lacks(theory: Visits) -> None:
    page = theory(left="keel", block="1")
    put(page, "Placement", "custom:attn=input,ffn=input+outer")
    assert page.address == {"left": "custom:attn=input,ffn=input+outer", "block": "1"}
    assert "This design is like block 1 of Keel, without what differs in blocks 2 to 12." in page.text
    put(page, "Norms of attention", ["outer"])
    assert "This design is like" not in page.text


def test_going_back_shows_what_was_shown(theory: Visits) -> None:
    page = theory(right="deepnorm")
    page.go(right="keel")
    assert widget(page, "Compare with").value == "keel"
    page.go()
    assert widget(page, "Compare with").value == "post"


def test_a_design_grows_site_by_site(theory: Visits) -> None:
    page = theory()
    put(page, "Compare with", "custom:attn=outer,ffn=outer")
    put(page, "Norms of attention", ["input", "output"])
    put(page, "Stream × α", 2.0)
    put(page, "g is", "scalar")
    assert page.address == {"right": "custom:attn=input+output,ffn=outer,alpha=2,learned=scalar"}
    put(page, "g is", "constant")
    assert page.address == {"right": "custom:attn=input+output,ffn=outer,alpha=2"}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"left": "prae"}, "left is 'prae'; it must be one of pre, post"),
        ({"block": "99"}, "block is '99'; it must be a whole number from 1 to 12. 12 is used."),
        ({"layers": "0"}, "layers is '0'; it must be a whole number from 1 to 96. 1 is used."),
        ({"right": "custom:attn=*x*"}, "its attn is '*x*' and must be none"),
    ],
)
def test_what_no_page_can_show_gives_way_and_is_said(theory: Visits, query: dict[str, str], words: str) -> None:
    page = theory(**query)
    [notice] = page.notices
    assert words in notice
    assert widget(page, "Placement").value == "pre"


def test_the_comparison_is_there_when_its_visitor_comes_back(visit: Visits) -> None:
    page = visit(run1="none~layers-2", run2="post~layers-3")
    page.app.switch_page(PAGE)
    page.go()
    page.app.switch_page("lab/train.py")
    page.go()
    assert page.address == {"run1": "none~layers-2", "run2": "post~layers-3"}


def test_an_address_of_the_other_page_is_followed_after_this_one(visit: Visits) -> None:
    page = visit(run1="none~layers-2")
    page.app.switch_page(PAGE)
    page.go()
    page.app.switch_page("lab/train.py")
    page.go(run1="post~layers-3")
    assert page.address == {"run1": "post~layers-3"}


def test_going_back_after_a_choice_shows_what_was_shown_before_it(theory: Visits) -> None:
    page = theory(right="custom:attn=input,ffn=input")
    put(page, "Norms of attention", ["input", "outer"])
    page.go(right="custom:attn=input,ffn=input")
    assert widget(page, "Norms of attention").value == ["input"]
    assert page.address == {"right": "custom:attn=input,ffn=input"}


# What runs have measured

SMALL = RunConfig(placement="peri", layers=2, width=16, heads=2, length=8, batch=4, steps=6)


def run_choice(page: Any, place: int) -> Any:
    """Of the sides that have a run."""
    return widget(page, "Measured in the run", place)


def measured(page: Any, side: int) -> dict[str, Any] | None:
    found: dict[str, Any] | None = component(page)["sides"][side]["measured"]
    return found


def test_the_articles_runs_are_measured_from_the_start(theory: Visits) -> None:
    page = theory(view="measured")
    for side, placement in enumerate(["pre", "post"]):
        assert run_choice(page, side).value == placement
        run, shown = store.load(RunConfig(placement)), measured(page, side)
        assert (shown["last"], component(page)["steps"]) == (180, list(range(1, 181)))
        stream_s, branch_s = run.history["attention_stream_signal"][:, 11], run.history["attention_branch_signal"][:, 11]
        np.testing.assert_allclose(shown["share"]["attention.stream"], stream_s**2 / (stream_s**2 + branch_s**2), rtol=1e-3)
        np.testing.assert_allclose(shown["norm"]["attention.branch"], branch_s, rtol=1e-3)
        for words in zip(shown["words"]["attention.stream"], shown["words"]["attention.branch"], strict=True):
            assert sum(int(word.removesuffix(" %")) for word in words) == 100
    assert len(page.charts) == 4
    assert "Half of all directions come out at" in page.text
    run_choice(page, 1).set_value("post~warmup-0.6666666666666666")
    page.look()
    assert page.address == {"view": "measured", "right_run": "post~warmup-0.6666666666666666"}
    page.go()
    assert run_choice(page, 1).value == "post"


def test_a_placement_without_a_run_says_so_and_leads_to_one(theory: Visits) -> None:
    page = theory(right="peri", layers="2", view="measured")
    assert (measured(page, 0), measured(page, 1)) == (None, None)
    assert [link.proto.query_string for link in page.app.get("page_link")] == ["run1=pre~layers-2", "run1=peri~layers-2"]
    assert "What the Jacobian keeps" not in page.text
    store.save(replace(made_run(SMALL), singular_values=np.full((2, 3, 16), 0.25, np.float32)))
    page.look()
    assert run_choice(page, 0).value == write_run(SMALL)
    assert "come out at **$25$ %** of their length or less before training" in page.text
    put(page, "Final norm", "Off")
    assert measured(page, 1) is None
    assert page.app.get("page_link")[1].proto.query_string == "run1=peri~final_norm-false~layers-2"


def test_a_long_value_may_break_before_a_plus_sign_and_before_words() -> None:
    assert [text for text, _ in pieces(r"a = b + c\ \text{at first}")] == ["a = b", " ", "+ c", " ", r"\text{at first}"]


def test_a_run_that_has_no_singular_values_says_so_beside_one_that_has(theory: Visits) -> None:
    store.save(made_run(replace(SMALL, layers=12)))
    assert "Peri-LN · no warmup was trained without measuring them." in theory(right="peri").text


def test_a_run_in_the_address_that_is_not_stored_is_named_and_can_be_trained(theory: Visits) -> None:
    page = theory(right="peri", layers="2", right_run=write_run(SMALL))
    assert run_choice(page, 0).value == write_run(SMALL)
    assert page.app.get("page_link")[1].label == "No such run yet. **Train it**"
    assert measured(page, 1) is None
    assert component(page)["sides"][1]["train"] == write_run(SMALL)


@pytest.mark.parametrize(("value", "words"), [(np.nan, "not a number"), (np.inf, "beyond float32")])
def test_a_run_that_diverged_is_measured_to_its_end(theory: Visits, value: float, words: str) -> None:
    run = made_run(SMALL, loss_s=[4.0, 3.0, np.nan])
    run.history["attention_branch_signal"][-1] = value
    spectra = np.ones((2, 3, 16), np.float32)
    spectra[1] = np.nan
    store.save(replace(run, singular_values=spectra))
    page = theory(left="peri", right="post", layers="2", view="measured", step="5")
    shown = measured(page, 0)
    assert (shown["last"], component(page)["steps"], component(page)["step"]) == (3, [1, 2, 3], 5)
    assert shown["share"]["attention.stream"][-1] is None
    assert shown["norm"]["attention.branch"][-1] == words
    assert None not in shown["share"]["feed_forward.stream"]
    assert shown["label"].endswith(", diverged")
    assert "and at **an unknown length** after it" in page.text


def test_what_is_exported_has_the_shares_of_the_step(theory: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    files: dict[str, Any] = {}
    monkeypatch.setattr("pages.ui.identity_path.placements.download", lambda label, make, name, *_: files.update({name: make}))
    page = theory(view="measured", step="50")
    assert "pre-block-measured-step-50.svg" in files
    page.go(view="measured", step="777")
    assert "pre-block-measured-step-180.svg" in files
    words = measured(page, 0)["words"]["attention.stream"][49]
    assert f">{words}<" in files["pre-block-measured-step-50.svg"]()
    assert 'class="way"' not in files["pre-stack-backward.svg"]()


def test_a_run_that_is_being_trained_says_so(theory: Visits, desk: Any) -> None:
    page = theory(right="peri", layers="2")
    desk.put(SMALL, "training")
    page.go(right="peri", layers="2", right_run=write_run(SMALL))
    assert page.app.get("page_link")[1].label == "The run is being trained. **Watch it**"
    assert component(page)["sides"][1]["missing"] == ["The run is being trained.", "Watch it"]


def test_the_label_of_a_browser_that_is_behind_changes_nothing() -> None:
    run = RunConfig("post")
    assert known_run("Post-Norm · no warmup · rate 0.002", run) == run
    assert known_run("post~seed-8", None) == RunConfig("post", seed=8)
    assert [known_placement(text, "pre") for text in ("Design your own", "post", "custom:attn=input,ffn=none")] == [
        "pre",
        "post",
        "custom:attn=input,ffn=none",
    ]


def test_a_stack_that_outgrows_numbers_spoils_nothing_beside_it(theory: Visits) -> None:
    spectra = np.full((2, 13, 64), np.inf, np.float32)
    config = RunConfig("peri")
    store.save(replace(made_run(config), singular_values=spectra))
    page = theory(right="peri")
    assert "come out at **a length beyond float32** before training" in page.text
    axes = [{dataset.name: dataset.data.data for dataset in chart.datasets}["spectrum_axis"] for chart in page.charts[:2]]
    domains = [pa.ipc.open_stream(axis).read_all()["value"].to_pylist()[:2] for axis in axes]
    assert domains[0] == domains[1]
    assert max(domains[0]) < 100

"""The sidebar: each control changes the run that is edited, and refuses in one sentence what no run can have."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from core.runs.config import SETTINGS
from core.runs.settings import Number

Visits = Callable[..., Any]


@pytest.mark.parametrize(
    ("label", "value", "changed"),
    [
        ("Norm placement", "post", "post~layers-2"),
        ("Norm placement", "none", "none~layers-2"),
        ("Norm kind", "rmsnorm", "pre~norm-rmsnorm~layers-2"),
        ("Norm kind", "dyt", "pre~norm-dyt~layers-2"),
        ("Final norm", False, "pre~final_norm-false~layers-2"),
        ("QK-norm", True, "pre~qk_norm-true~layers-2"),
        ("Depth, in blocks", 96, "pre~layers-96"),
        ("Learning rate", 3e-5, "pre~layers-2~lr-3e-05"),
        ("Learning rate, typed", "1e-3", "pre~layers-2~lr-0.001"),
        ("Learning rate, typed", " 0.0123 ", "pre~layers-2~lr-0.0123"),
        ("Warmup fraction", 0.25, "pre~layers-2~warmup-0.25"),
        ("Steps", 400, "pre~layers-2~steps-400"),
        ("Seed", 0, "pre~layers-2~seed-0"),
        ("Width", 32, "pre~layers-2~width-32"),
        ("Width", 66, "pre~layers-2~width-66~heads-3"),
        ("Heads", 8, "pre~layers-2~heads-8"),
        ("Sequence length", 8, "pre~layers-2~length-8"),
        ("Sequences per batch", 4, "pre~layers-2~batch-4"),
    ],
)
def test_every_control_changes_the_edited_run_alone(visit: Visits, label: str, value: Any, changed: str) -> None:
    page = visit(run1="post", run2="pre~layers-2", edit="2")
    page.set(label, value)
    assert page.address == {"run1": "post", "run2": changed, "edit": "2"}
    assert page.refusals == []


@pytest.mark.parametrize(
    ("label", "value", "words"),
    [
        ("Learning rate, typed", "abc", ["learning_rate is 'abc'", "a number from 1e-06 to 1"]),
        ("Learning rate, typed", "5", ["learning_rate is '5'", "from 1e-06 to 1"]),
        ("Learning rate, typed", "nan", ["learning_rate is 'nan'"]),
        ("Learning rate, typed", "-inf", ["learning_rate is '-inf'"]),
        ("Learning rate, typed", "", ["learning_rate is ''"]),
        ("Learning rate, typed", "$x$ ![](y) *z*", ["learning_rate is '$x$ ![](y) *z*'"]),
        ("Steps", 0, ["steps is 0", "a whole number from 1 to 5000"]),
        ("Steps", 5001, ["steps is 5001"]),
        ("Steps", None, ["steps is empty"]),
        ("Seed", -1, ["seed is -1", "from 0 to 2147483647"]),
        ("Seed", None, ["seed is empty"]),
        ("Width", 15, ["width is 15", "from 16 to 256"]),
        ("Heads", 3, ["heads is 3", "must divide the width, which is 64"]),
        ("Heads", None, ["heads is empty"]),
        ("Sequence length", 7, ["length is 7", "from 8 to 128"]),
        ("Sequences per batch", 10**9, ["batch is 1000000000", "from 1 to 256"]),
    ],
)
def test_bad_input_is_refused_in_one_sentence_and_nothing_is_lost(visit: Visits, label: str, value: Any, words: list[str]) -> None:
    page = visit(run1="pre~layers-2~lr-0.004", run2="post")
    before = page.control(label).value
    page.set(label, value)
    [sentence] = page.refusals
    assert [word for word in words if word not in sentence] == []
    assert sentence.endswith(".")
    assert page.control(label).value == before
    assert page.address == {"run1": "pre~layers-2~lr-0.004", "run2": "post"}
    page.set("Depth, in blocks", 3)
    assert page.refusals == []


def test_the_rate_is_chosen_on_a_logarithmic_scale_and_a_typed_one_joins_it(visit: Visits) -> None:
    page = visit(run1="pre")
    scale = [float(text) for text in page.control("Learning rate").options]
    assert (scale[0], scale[-1]) == (1e-5, 1e-1)
    assert all(1.25 < later / earlier < 2.1 for earlier, later in pairwise(scale))
    assert max(len(text) for text in page.control("Learning rate").options) <= 7
    page.set("Learning rate, typed", "0.5")
    assert page.control("Learning rate").value == 0.5
    assert page.control("Learning rate, typed").value == "0.5"
    page.set("Learning rate", 1e-5)
    assert page.control("Learning rate, typed").value == "1e-05"


def test_a_design_of_ones_own_starts_from_the_placement_before_and_changes_site_by_site(visit: Visits) -> None:
    page = visit(run1="post~layers-2")
    own = page.control("Norm placement").options[-1]
    assert own == "Design your own"
    page.set("Norm placement", "custom:attn=outer,ffn=outer")
    assert page.address == {"run1": "custom:attn=outer,ffn=outer~layers-2"}
    page.set("Norms of attention", ["input", "output"])
    page.set("Stream × α", 1.5)
    page.set("g is", "vector")
    assert page.address == {"run1": "custom:attn=input+output,ffn=outer,alpha=1.5,learned=vector~layers-2"}
    page.set("Norms of feed-forward", [])
    parts = "custom:attn=input+output,ffn=none,alpha=1.5,learned=vector"
    assert page.address == {"run1": f"{parts}~final_norm-false~layers-2"}, "the final norm stays as it was"
    page.set("Norm placement", "pre")
    assert page.address == {"run1": "pre~layers-2"}


def test_a_design_says_what_it_could_not_take_over_until_it_is_changed(visit: Visits) -> None:
    page = visit(run1="keel~layers-2")
    page.set("Norm placement", "custom:attn=input+outer,ffn=input+outer,alpha=4")
    sentence = ":material/info: This design is like block 2 of Keel, without what differs in block 1."
    assert sentence in [caption.value for caption in page.app.sidebar.caption]
    page.set("Stream × α", 2.0)
    assert sentence not in [caption.value for caption in page.app.sidebar.caption]


def test_a_new_placement_shows_its_own_final_norm(visit: Visits) -> None:
    page = visit(run1="pre~layers-2")
    assert page.control("Final norm").value is True
    page.set("Norm placement", "post")
    assert page.control("Final norm").value is False
    page.set("Final norm", True)
    assert page.address == {"run1": "post~final_norm-true~layers-2"}


def test_a_change_of_every_run_changes_one_setting_of_each(visit: Visits) -> None:
    page = visit(run1="pre~layers-2", run2="post~seed-3", run3="none")
    page.set("Apply each change to every run", True)
    page.set("Depth, in blocks", 4)
    assert page.address == {"run1": "pre~layers-4", "run2": "post~layers-4~seed-3", "run3": "none~layers-4"}
    page.set("Apply each change to every run", False)
    page.set("Depth, in blocks", 5)
    assert page.address == {"run1": "pre~layers-5", "run2": "post~layers-4~seed-3", "run3": "none~layers-4"}


def test_a_value_that_one_of_all_runs_cannot_have_changes_none(visit: Visits) -> None:
    query = {"run1": "pre~layers-2", "run2": "post~width-36"}
    page = visit(**query)
    page.set("Apply each change to every run", True)
    page.set("Heads", 8)
    assert page.refusals == ["heads is 8; it must divide the width, which is 36."]
    assert page.address == query


def test_the_sidebar_follows_the_run_that_is_edited(visit: Visits) -> None:
    page = visit(run1="pre~layers-2", run2="post~steps-7~lr-0.03")
    page.click("edit2")
    shown = {label: page.control(label).value for label in ("Norm placement", "Depth, in blocks", "Steps", "Learning rate, typed")}
    assert shown == {"Norm placement": "post", "Depth, in blocks": 12, "Steps": 7, "Learning rate, typed": "0.03"}
    page.set("Steps", 8)
    assert page.address == {"run1": "pre~layers-2", "run2": "post~steps-8~lr-0.03", "edit": "2"}


def test_every_control_says_what_it_may_be(visit: Visits) -> None:
    page = visit(run1="pre")
    for setting in SETTINGS.values():
        told = page.control(setting.title).help
        assert told.startswith(setting.says)
        if isinstance(setting.kind, Number):
            assert told.endswith(f" {setting.kind.allowed}.")


def test_the_warmup_is_told_in_steps(visit: Visits) -> None:
    page = visit(run1="pre~steps-90")
    assert "Constant rate, no warmup" in [caption.value for caption in page.app.sidebar.caption]
    page.set("Warmup fraction", 0.5)
    assert "45 of 90 steps" in [caption.value for caption in page.app.sidebar.caption]


def test_a_host_s_limits_are_shown_and_an_address_beyond_them_still_opens(visit: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMLAB_MAX_LAYERS", "24")
    page = visit(run1="pre", run2="pre~layers-96", edit="2")
    assert page.control("Depth, in blocks").value == 96
    page.click("edit1")
    assert page.control("Depth, in blocks").max == 24
    assert "1 to 24." in page.control("Depth, in blocks").help


def test_a_part_of_a_design_that_the_browser_has_left_changes_nothing(visit: Visits) -> None:
    page = visit(run1="custom:attn=input,ffn=outer", run2="pre")
    page.control("Norms of attention").set_value(["outer"])
    page.go(run1="pre", run2="pre")  # Back, with the click on its way
    assert page.address == {"run1": "pre", "run2": "pre"}


def test_what_hybrid_norm_has_anyway_cannot_be_switched(visit: Visits) -> None:
    assert visit(run1="hybrid").control("QK-norm").disabled
    assert not visit(run1="pre").control("QK-norm").disabled


def test_settings_under_more_are_drawn_once_it_is_opened(visit: Visits) -> None:
    page = visit(run1="pre~width-32")
    page.app.session_state["more"] = False
    page.look()
    assert [control.label for control in page.app.sidebar.number_input] == ["Steps", "Seed"]
    page.app.session_state["more"] = True
    page.look()
    assert page.control("Width").value == 32

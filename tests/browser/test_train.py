"""The Train page in a real browser."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from made_run import made_run
from playwright.sync_api import expect

from core.runs import store
from core.runs.config import RunConfig
from core.runs.quantities import LAYERS
from core.state.address import write_run

from .conftest import Server, Visitor

pytestmark = pytest.mark.long

Visit = Callable[..., Visitor]
VIEWS = ("curves", "layers", "maps", "downloads")


def test_a_newcomer_sees_three_runs_drawn(visit: Visit) -> None:
    page = visit()
    expect(page.charts()).to_have_count(3)
    for chart in range(3):
        expect(page.lines(chart)).to_have_count(3)
    not_learned = re.compile("Stuck|Plateau|Still learning|Lost it")  # each machine draws another sample of it: docs/reproduction.md
    for slot, outcome in enumerate(("Learned", not_learned, "Learned"), 1):
        expect(page.card(slot)).to_contain_text(outcome)
    expect(page.button("Run Shortcut")).to_be_disabled()


def test_its_icon_is_a_picture(visit: Visit) -> None:
    expect(visit().page.locator("link[rel~=icon]")).to_have_attribute("href", re.compile(r"^data:image/svg\+xml"))


def test_a_fresh_browser_with_the_same_address_shows_the_same_page(visit: Visit) -> None:
    query = "?run1=pre&run2=post&edit=2&hide=1&view=layers&step=90"
    first, second = visit(query), visit(query)
    for page in (first, second):
        page.expect_query(query)
        expect(page.charts()).to_have_count(len(LAYERS))
        expect(page.page.get_by_role("tab", name="Layers")).to_have_attribute("aria-selected", "true")
        expect(page.step()).to_have_value("90")
        expect(page.page.get_by_test_id("stSidebar")).to_contain_text("Every path through the block passes it.")
    assert first.page.get_by_test_id("stMain").inner_text() == second.page.get_by_test_id("stMain").inner_text()


def test_the_address_follows_the_sidebar_and_back_and_forward_restore(visit: Visit) -> None:
    page = visit()
    page.control("radio", "RMSNorm").click()
    changed = "?run1=pre~norm-rmsnorm&run2=post&run3=post~warmup-0.6666666666666666"
    page.expect_query(changed)
    expect(page.card(1)).to_contain_text("Not computed yet")
    page.page.go_back()
    page.expect_query("")
    expect(page.card(1)).to_contain_text("Learned")
    expect(page.control("radio", "LayerNorm")).to_be_checked()
    page.page.go_forward()
    page.expect_query(changed)
    expect(page.control("radio", "RMSNorm")).to_be_checked()


def test_a_preset_is_one_step_back(visit: Visit) -> None:
    page = visit("?run1=post")
    page.button("Start from").click()
    page.page.get_by_text("Bolder rate").click()
    page.expect_query("?run1=pre&run2=pre~lr-0.01&run3=pre~lr-0.03&run4=pre~lr-0.1")
    page.page.go_back()
    page.expect_query("?run1=post")
    expect(page.card(2)).to_have_count(0)


def test_views_are_chosen_on_the_page(visit: Visit) -> None:
    page = visit()
    page.page.get_by_role("tab", name="Heat maps").click()
    page.expect_query("?view=maps")
    expect(page.charts()).to_have_count(3)
    page.page.get_by_role("radio", name="Update ratio").click()
    page.expect_query("?view=maps&map=update_ratio")
    page.page.get_by_role("tab", name="Layers").click()
    page.step().press("ArrowLeft")
    page.expect_query("?step=179&view=layers&map=update_ratio")
    expect(page.step()).to_have_value("179")


def test_a_rate_is_typed_and_a_bad_one_is_refused_with_nothing_lost(visit: Visit) -> None:
    page = visit("?run1=pre")
    typed = page.control("textbox", "Learning rate, typed")
    typed.fill("1e-3")
    typed.press("Enter")
    page.expect_query("?run1=pre~lr-0.001")
    for bad in ("abc", "![](http://elsewhere.invalid/x.png)", "$x$"):
        typed.fill(bad)
        typed.press("Enter")
        expect(page.page.get_by_test_id("stSidebar").get_by_role("alert")).to_contain_text(f"learning_rate is '{bad}'; it must be")
        expect(typed).to_have_value("0.001")
    page.expect_query("?run1=pre~lr-0.001")


def test_an_emptied_number_is_refused_with_nothing_lost(visit: Visit) -> None:
    page = visit("?run1=pre")
    seed = page.control("spinbutton", "Seed")
    seed.fill("")
    seed.press("Enter")
    expect(page.page.get_by_test_id("stSidebar").get_by_role("alert")).to_contain_text("seed is empty")
    expect(seed).to_have_value("7")
    page.expect_query("?run1=pre")


def test_bad_values_in_an_address_are_quoted_as_they_are(visit: Visit) -> None:
    page = visit("?run1=pre~layers-2~lr-![](http://elsewhere.invalid/x.png)&view=*all*")
    page.expect_query("?run1=pre~layers-2")
    for words in ("learning_rate is '![](http://elsewhere.invalid/x.png)'", "view is '*all*'"):
        expect(page.page.get_by_test_id("stMain").get_by_role("alert")).to_contain_text(words)


@pytest.fixture
def diverged(server: Server) -> str:
    """The address of a run that diverged next to one that did not."""
    config = RunConfig(placement="none", layers=3, steps=50)
    store.save(made_run(config, loss_s=[4.2, 7.0, float("nan")]), server.runs)
    return f"?run1=pre&run2={write_run(config)}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_drawn_in_light_and_dark(visit: Visit, diverged: str, scheme: str) -> None:
    page = visit(diverged, color_scheme=scheme)
    expect(page.card(2)).to_contain_text("Diverged")
    expect(page.charts().first.get_by_text("✕ diverged")).to_be_visible()
    for view in VIEWS:
        page.open(f"{diverged}&view={view}")
        expect(page.charts()).to_have_count({"curves": 3, "layers": len(LAYERS), "maps": 2, "downloads": 0}[view])
    red, green, blue = map(
        int, re.findall(r"\d+", page.page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor"))[:3]
    )
    assert (red + green + blue > 600) == (scheme == "light")


def test_a_telephone_has_nothing_to_scroll_sideways(visit: Visit, diverged: str) -> None:
    page = visit(diverged, viewport={"width": 390, "height": 844})
    for view in VIEWS:
        page.open(f"{diverged}&view={view}")
        if view != "downloads":
            expect(page.charts().first).to_be_visible()
        assert page.page.evaluate("document.scrollingElement.scrollWidth") <= 390
        boxes: list[Any] = page.page.evaluate(
            "[...document.querySelectorAll('[data-testid=stMain] :is(button, canvas, svg, p)')].map(e => e.getBoundingClientRect().right)"
        )
        assert max(boxes) <= 390

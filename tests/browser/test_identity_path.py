"""What only a browser shows of the page Identity path: parts that light up together, and the norm that slides."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from core.drawing.diagram.shapes import WIDEST
from tests.browser.conftest import Visitor

pytestmark = pytest.mark.long

Visit = Callable[..., Visitor]
LIT = re.compile(r"\blit\b")


@pytest.fixture
def theory(visit: Visit) -> Callable[..., tuple[Page, list[Any]]]:
    """Opens the page; returns it, and what it has sent to the server since it was complete."""

    def opened(query: str = "", **options: Any) -> tuple[Page, list[Any]]:
        page = visit(**options).page
        sent: list[Any] = []
        page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
        page.goto(re.sub(r"/(\?.*)?$", "/identity_path" + query, page.url))
        expect(page.locator(".lab svg")).to_have_count(4)
        expect(page.get_by_text("In words")).to_have_count(2)
        expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_visible()
        sent.clear()
        return page, sent

    return opened


def part(page: Page, name: str, side: int, where: str) -> Locator:
    return page.locator(f'[data-side="{side}"] {where} [data-part="{name}"]')


def test_a_norm_and_its_term_light_up_together_without_the_server(theory: Callable[..., tuple[Page, list[Any]]]) -> None:
    page, sent = theory()
    norm, terms = part(page, "feed_forward.input", 0, "svg"), part(page, "feed_forward.input", 0, "math")
    expect(norm).not_to_have_class(LIT)
    norm.hover()
    expect(norm).to_have_class(LIT)
    expect(terms).to_have_count(3)  # N( and ) in the equation, J_N in the Jacobian
    for term in terms.all():
        expect(term).to_have_class(LIT)
    assert page.locator(".lit").count() == 4
    part(page, "attention.outer", 1, "math").first.hover()
    expect(part(page, "attention.outer", 1, "svg")).to_have_class(LIT)
    expect(norm).not_to_have_class(LIT)
    page.get_by_role("heading", name="Where does").hover()
    expect(page.locator(".lit")).to_have_count(0)
    assert sent == []


def test_a_tap_lights_parts_until_the_next_one(theory: Callable[..., tuple[Page, list[Any]]]) -> None:
    page, _ = theory(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    norm = part(page, "feed_forward.input", 0, "svg")
    norm.tap()
    expect(norm).to_have_class(LIT)
    expect(page.locator(".lit")).to_have_count(4)
    part(page, "attention.branch", 0, "svg").tap()
    expect(norm).not_to_have_class(LIT)


@pytest.mark.parametrize("view", ["forward", "backward"])
def test_sliding_moves_the_norm_from_the_branch_onto_the_stream(theory: Callable[..., tuple[Page, list[Any]]], view: str) -> None:
    page, sent = theory("?view=backward" if view == "backward" else "")
    address = page.url
    page.get_by_text("Slide from one to the other").click()
    moving, goal = part(page, "attention.input", 0, "svg"), part(page, "attention.outer", 1, "svg")
    slider = page.get_by_role("slider", name="From one placement to the other")
    start = moving.bounding_box()
    expect(page).to_have_url(re.compile(r"slide=0$"))
    sent.clear()
    slider.evaluate("(one) => { one.value = 0.5; one.dispatchEvent(new Event('input')) }")  # the hand is still on it
    middle = moving.bounding_box()
    page.wait_for_timeout(500)
    assert sent == []
    slider.fill("1")
    end, target = moving.bounding_box(), goal.bounding_box()
    assert start
    assert middle
    assert end
    assert target
    for axis in ("x", "y"):
        assert end[axis] == pytest.approx(target[axis], abs=1)
        assert middle[axis] == pytest.approx((start[axis] + end[axis]) / 2, abs=1)
    assert abs(end["x"] - start["x"]) > 50
    expect(page).to_have_url(re.compile(r"slide=1$"))
    assert len(sent) == 1
    page.go_back()
    expect(slider).to_have_value("0")
    page.go_back()
    expect(page).to_have_url(address)
    expect(slider).to_be_hidden()


def test_what_is_shown_is_in_the_address_and_comes_back_with_it(theory: Callable[..., tuple[Page, list[Any]]]) -> None:
    page, _ = theory("?left=mix&right=deepnorm&layers=48")
    block, backward = page.locator(".drawn0 h4").first, page.get_by_role("radio", name="Backward", exact=True)
    page.get_by_text("Backward", exact=True).click()
    expect(page).to_have_url(re.compile(r"layers=48&view=backward$"))
    blocks = page.get_by_role("spinbutton", name="Blocks")
    blocks.fill("12")
    blocks.press("Enter")
    expect(page.locator('[data-side="1"] dl')).to_contain_text("2.213")
    expect(backward).to_be_checked()
    expect(page).to_have_url(re.compile(r"\?left=mix&right=deepnorm&view=backward$"))
    part(page, "stack.blocks_1", 0, "svg").click()
    expect(block).to_have_text("Block 3 of 12, like blocks 1 to 3")
    expect(page).to_have_url(re.compile(r"\?left=mix&right=deepnorm&block=3&view=backward$"))
    page.reload()
    expect(block).to_have_text("Block 3 of 12, like blocks 1 to 3")
    expect(backward).to_be_checked()
    page.go_back()
    expect(block).to_have_text("Block 12 of 12, like blocks 4 to 12")
    page.go_back()
    page.go_back()
    expect(backward).not_to_be_checked()
    page.go_forward()
    expect(backward).to_be_checked()


def test_a_step_of_a_run_changes_the_bands_and_the_numbers_without_the_server(theory: Callable[..., tuple[Page, list[Any]]]) -> None:
    page, sent = theory("?left=post&right=pre")
    page.locator(".lab").get_by_text("Backward, measured").click()
    expect(page).to_have_url(re.compile(r"view=measured$"))
    band = page.locator('.drawn1 .way[data-part="attention.stream"]')
    line = page.locator('.drawn1 tr[data-part="attention.stream"]')
    slider = page.get_by_role("slider", name="Training step")
    expect(page.get_by_text("Pre-Norm · no warmup, step 1", exact=True)).to_be_visible()
    sent.clear()
    found = {}
    for place in (0, 100):
        slider.evaluate(f"(one) => {{ one.value = {place}; one.dispatchEvent(new Event('input')) }}")
        words = band.locator("text").text_content() or ""
        assert words in line.inner_text()
        width = band.locator("path").evaluate("(one) => getComputedStyle(one).strokeWidth")
        found[words] = float(width.removesuffix("px"))
        assert found[words] == pytest.approx(WIDEST * int(words.removesuffix(" %")) / 100, abs=0.1)
    assert len(found) == 2
    page.wait_for_timeout(400)
    assert sent == []
    line.hover()
    expect(band).to_have_class(LIT)
    slider.fill("49")
    expect(page).to_have_url(re.compile(r"view=measured&step=50$"))
    page.reload()
    expect(slider).to_have_value("49")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_on_its_ground(theory: Callable[..., tuple[Page, list[Any]]], scheme: str) -> None:
    page, _ = theory("?left=deepnorm&right=rezero", color_scheme=scheme)
    ratios = page.evaluate(
        """() => {
            const shadow = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".lab")).shadowRoot
            const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
            const light = (colour) => {
                paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1)
                const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3)
                    .map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                return 0.2126 * r + 0.7152 * g + 0.0722 * b
            }
            const ground = light(getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor)
            return [...shadow.querySelectorAll("svg text, math mi, math mo, dt, h3, h4")].map((one) => {
                const style = getComputedStyle(one)
                const ink = light(one.tagName === "text" ? style.fill : style.color)
                return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05)
            })
        }"""
    )
    assert len(ratios) > 40
    assert min(ratios) >= 4.5

"""Sessions take turns in drawing their pages."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pages.ui.shared.turn import AT_ONCE, turn


def test_no_more_pages_than_there_is_room_for_are_drawn_beside_each_other() -> None:
    counting = threading.Lock()
    drawing: list[int] = []
    most: list[int] = []
    full = threading.Barrier(AT_ONCE)

    def draw(session: int) -> None:
        with turn():
            with counting:
                drawing.append(session)
                most.append(len(drawing))
            full.wait(10)  # breaks where fewer than AT_ONCE are let in
            with counting:
                drawing.remove(session)

    with ThreadPoolExecutor(4 * AT_ONCE) as threads:
        list(threads.map(draw, range(4 * AT_ONCE)))
    assert max(most) == AT_ONCE


def test_a_fragment_within_a_page_that_is_drawn_does_not_wait_for_it() -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        both = threading.Barrier(AT_ONCE)

        def draw(_: int) -> str:
            with turn():
                both.wait(10)  # there is no room left
                with turn():
                    return "drawn"

        assert list(threads.map(draw, range(AT_ONCE), timeout=10)) == ["drawn"] * AT_ONCE


@pytest.mark.parametrize("ending", [ValueError, KeyboardInterrupt])
def test_a_page_that_fails_or_is_stopped_leaves_its_place(ending: type[BaseException]) -> None:
    for _ in range(AT_ONCE + 1):
        with pytest.raises(ending), turn():
            raise ending

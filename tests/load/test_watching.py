"""What is made of the moments at which points were computed and seen."""

import math

import pytest

from .session import Session
from .watching import speed, waits

RECORD = [(10.0, 0), (10.5, 1), (11.0, 3), (12.0, 5)]


def session(*growth: tuple[float, int]) -> Session:
    found = Session("http://127.0.0.1")
    found.growth = list(growth)
    return found


def test_a_point_is_waited_for_from_its_computation_until_it_is_there() -> None:
    assert waits(session((10.75, 1), (11.25, 2), (14.0, 5)), RECORD, 0.0) == [0.25, 0.25, 3.0, 2.0, 2.0]


def test_what_was_computed_before_one_watched_does_not_count_and_what_never_came_is_infinitely_late() -> None:
    assert waits(session((11.25, 3)), RECORD, 10.9) == [0.25, 0.25, math.inf, math.inf]
    assert waits(session(), RECORD, 11.5) == [math.inf, math.inf]


def test_speed_is_that_between_chunks() -> None:
    assert speed(RECORD) == pytest.approx(4 / 1.5)
    assert speed(RECORD, 10.9) == 2.0
    assert math.isnan(speed(RECORD, 11.5))

"""What is made once and shared by all threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.once import once


def test_of_many_who_ask_at_once_one_makes_it_and_all_have_it() -> None:
    made: list[int] = []
    all_ask = threading.Barrier(8)
    a_second_maker = threading.Event()

    @once(4)
    def square(number: int) -> list[int]:
        made.append(number)
        if len(made) > 1:
            a_second_maker.set()
        a_second_maker.wait(0.1)  # long enough for the others to ask
        return [number**2]

    def ask(_: int) -> list[int]:
        all_ask.wait()
        result: list[int] = square(3)
        return result

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(8)))
    assert made == [3]
    assert all(answer is answers[0] for answer in answers)


def test_the_last_ones_are_kept() -> None:
    made: list[int] = []

    @once(2)
    def square(number: int) -> int:
        made.append(number)
        return number**2

    assert [square(number) for number in (1, 2, 1, 3, 1, 2)] == [1, 4, 1, 9, 1, 4]
    assert made == [1, 2, 3, 2]


def test_a_failure_is_not_kept() -> None:
    tries: list[int] = []

    @once(2)
    def late(number: int) -> int:
        tries.append(number)
        if len(tries) == 1:
            raise LookupError
        return number

    with pytest.raises(LookupError):
        late(1)
    assert late(1) == 1
    assert tries == [1, 1]

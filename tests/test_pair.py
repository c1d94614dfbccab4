from dataclasses import fields, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.design import is_design, placement_of
from core.diagram import View
from core.pair import Pair
from core.placement import PLACEMENTS

names = st.sampled_from([*PLACEMENTS, "custom:attn=input,ffn=outer,alpha=1.5"])


slides = st.none() | st.floats(0, 1).map(abs)  # -0.0 is 0.0 in an address
blocks = st.none() | st.integers(1, 96)
pairs = st.builds(
    Pair, names, names, st.integers(1, 96), blocks, st.sampled_from([None, True, False]), st.sampled_from(get_args(View)), slides
)


@given(pairs)
def test_a_pair_goes_through_an_address(pair: Pair) -> None:
    assert Pair.from_query(pair.to_query()) == (pair, [])


def test_the_usual_pair_needs_no_address() -> None:
    assert Pair().to_query() == {}
    assert Pair.from_query({}) == (Pair("pre", "post", 12, None, None, "forward", None), [])


@given(pairs, st.integers(1, 96))
def test_the_drawn_block_is_one_of_the_stack_and_the_last_one_stays_the_last(pair: Pair, layers: int) -> None:
    other = replace(pair, layers=layers)
    assert 1 <= other.drawn <= layers
    assert pair.drawn != pair.layers or other.drawn == layers


def test_a_chosen_final_norm_is_both_placements() -> None:
    assert [one.final_norm for one in Pair().placements] == [True, False]
    assert [one.final_norm for one in Pair(final_norm=True).placements] == [True, True]
    assert [one.final_norm for one in Pair(final_norm=False).placements] == [False, False]


@given(st.fixed_dictionaries({}, optional={field.name: st.text() | st.floats().map(str) for field in fields(Pair)}))
def test_any_address_gives_a_pair_and_says_what_gave_way(query: dict[str, str]) -> None:
    pair, sentences = Pair.from_query(query)
    assert all(is_design(name) or name in PLACEMENTS for name in (pair.left, pair.right))
    assert placement_of(pair.left).segments(pair.layers)
    assert Pair.from_query(pair.to_query()) == (pair, [])
    for sentence in sentences:
        assert sentence.endswith(" is used.")


@pytest.mark.parametrize(
    ("query", "pair", "words"),
    [
        ({"left": "prae"}, Pair(), "left is 'prae'; it must be one of pre, post"),
        ({"right": "custom:attn=x"}, Pair(), "right is 'custom:attn=x'; its attn is 'x'"),
        ({"layers": "97"}, Pair(layers=96), "layers is '97'; it must be a whole number from 1 to 96. 96 is used."),
        ({"layers": "many"}, Pair(), "12 is used."),
        ({"block": "13"}, Pair(), "block is '13'; it must be a whole number from 1 to 12. 12 is used."),
        ({"layers": "4", "block": "0"}, Pair(layers=4, block=1), "block is '0'; it must be a whole number from 1 to 4. 1 is used."),
        ({"block": "1.5"}, Pair(block=2), "2 is used."),
        ({"final_norm": "maybe"}, Pair(), "final_norm is 'maybe'; it must be true or false. Each placement's own is used."),
        ({"view": "up"}, Pair(), "view is 'up'; it must be one of forward, backward. forward is used."),
        ({"slide": "1.5"}, Pair(slide=1.0), "slide is '1.5'; it must be a number from 0 to 1. 1 is used."),
        ({"slide": "yes"}, Pair(slide=0.0), "0 is used."),
    ],
)
def test_what_gives_way_is_said_by_its_own_name(query: dict[str, str], pair: Pair, words: str) -> None:
    found, [sentence] = Pair.from_query(query)
    assert found == pair
    assert words in sentence

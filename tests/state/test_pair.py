from dataclasses import fields, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.placement.design import is_design, placement_of
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from core.state.pair import SIDES, Pair, Shown

names = st.sampled_from([*PLACEMENTS, "custom:attn=input,ffn=outer,alpha=1.5"])


slides = st.none() | st.floats(0, 1).map(abs)  # -0.0 is 0.0 in an address
blocks = st.none() | st.integers(1, 96)
views, final_norms = st.sampled_from(get_args(Shown)), st.sampled_from([None, True, False])


@st.composite
def pairs_with_runs(draw: st.DrawFn) -> Pair:
    pair = Pair(draw(names), draw(names), draw(st.integers(1, 96)), draw(blocks), draw(final_norms), draw(views), draw(slides))
    left, right = (draw(st.none() | st.builds(replace, st.just(pair.usual_run(side)), seed=st.integers(0, 9))) for side in SIDES)
    return replace(pair, left_run=left, right_run=right, step=draw(st.integers(1, 5000)))


pairs = pairs_with_runs()


@given(pairs)
def test_a_pair_goes_through_an_address(pair: Pair) -> None:
    assert Pair.from_query(pair.to_query()) == (pair, [])


def test_the_usual_pair_needs_no_address() -> None:
    assert Pair().to_query() == {}
    assert Pair.from_query({}) == (Pair("pre", "post", 12, None, None, "forward", None, None, None, 1), [])


@given(pairs, st.integers(1, 96))
def test_the_drawn_block_is_one_of_the_stack_and_the_last_one_stays_the_last(pair: Pair, layers: int) -> None:
    other = replace(pair, layers=layers)
    assert 1 <= other.drawn <= layers
    assert pair.drawn != pair.layers or other.drawn == layers


def test_a_run_of_another_placement_or_depth_is_not_shown() -> None:
    pair = Pair(left_run=RunConfig(seed=1), right_run=RunConfig("post"))
    assert (replace(pair, left="peri").left_run, replace(pair, left="peri").right_run) == (None, RunConfig("post"))
    assert replace(pair, layers=3).right_run is None
    assert (replace(pair, final_norm=True).left_run, replace(pair, final_norm=True).right_run) == (RunConfig(seed=1), None)


@given(st.builds(RunConfig, names, final_norm=final_norms, layers=st.integers(1, 96), seed=st.integers(0, 9)))
def test_the_pair_of_a_run_shows_it(run: RunConfig) -> None:
    pair = Pair.of(run)
    assert (pair.left_run, pair.view) == (run, "measured")
    assert pair.left != pair.right


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
        ({"view": "up"}, Pair(), "view is 'up'; it must be one of forward, backward, measured. forward is used."),
        ({"step": "0"}, Pair(), "step is '0'; it must be a whole number from 1 to 5000. 1 is used."),
        (
            {"left_run": "post"},
            Pair(),
            "left_run is 'post'; it must be a run of what is drawn, such as pre. The first that is stored is used.",
        ),
        ({"right_run": "post~seed-x"}, Pair(), "right_run is 'post~seed-x'; it must be a run of what is drawn, such as post."),
        ({"final_norm": "true", "right_run": "post"}, Pair(final_norm=True), "such as post~final_norm-true. The first"),
        ({"slide": "1.5"}, Pair(slide=1.0), "slide is '1.5'; it must be a number from 0 to 1. 1 is used."),
        ({"slide": "yes"}, Pair(slide=0.0), "0 is used."),
    ],
)
def test_what_gives_way_is_said_by_its_own_name(query: dict[str, str], pair: Pair, words: str) -> None:
    found, [sentence] = Pair.from_query(query)
    assert found == pair
    assert words in sentence

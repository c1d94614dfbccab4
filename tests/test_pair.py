import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.design import is_design, placement_of
from core.pair import Pair
from core.placement import PLACEMENTS

names = st.sampled_from([*PLACEMENTS, "custom:attn=input,ffn=outer,alpha=1.5"])


@given(st.builds(Pair, names, names, st.integers(1, 96)))
def test_a_pair_goes_through_an_address(pair: Pair) -> None:
    assert Pair.from_query(pair.to_query()) == (pair, [])


def test_the_usual_pair_needs_no_address() -> None:
    assert Pair().to_query() == {}
    assert Pair.from_query({}) == (Pair("pre", "post", 12), [])


@given(st.fixed_dictionaries({}, optional={name: st.text() for name in ("left", "right", "layers")}))
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
    ],
)
def test_what_gives_way_is_said_by_its_own_name(query: dict[str, str], pair: Pair, words: str) -> None:
    found, [sentence] = Pair.from_query(query)
    assert found == pair
    assert words in sentence

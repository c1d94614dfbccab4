from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import configs

from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from core.runs.presets import ARTICLE, PRESETS
from core.runs.quantities import LAYERS
from core.runs.settings import ConfigError
from core.state.comparison import SLOTS, VIEWS, Comparison

TRIO = Comparison.of([RunConfig(layers=2), RunConfig(placement="post"), RunConfig(seed=1)])


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    slots = sorted(draw(st.sets(st.sampled_from(SLOTS), min_size=1)))
    return Comparison(
        runs={slot: draw(configs()) for slot in slots},
        hidden=draw(st.frozensets(st.sampled_from(slots))),
        selected=draw(st.sampled_from(slots)),
        view=draw(st.sampled_from(list(VIEWS))),
        step=draw(st.none() | st.integers(1, 5000)),
        map=draw(st.sampled_from(list(LAYERS))),
    )


NAMES = st.sampled_from([*(f"run{slot}" for slot in SLOTS), "run0", "run9", "runner", "edit", "hide", "view", "step", "map"]) | st.text()
FRAGMENTS = st.sampled_from(["pre", "post", "~", "-", "layers", "lr", "learning_rate", "final_norm", "heads", "seed", "placement", "foo"])
VALUES = st.text() | st.lists(FRAGMENTS | st.integers().map(str) | st.floats().map(str) | st.text(max_size=5)).map("".join)


def legal(comparison: Comparison) -> bool:
    slots = list(comparison.runs)
    return (
        1 <= len(slots) <= len(SLOTS)
        and slots == sorted(slots)
        and set(slots) <= set(SLOTS)
        and comparison.selected in slots
        and comparison.hidden <= set(slots)
        and comparison.view in VIEWS
        and comparison.map in LAYERS
        and (comparison.step is None or comparison.step >= 1)
        and len(set(comparison.labels.values())) == len(slots)
    )


@given(comparisons())
def test_an_address_brings_back_the_comparison_that_it_was_made_from(comparison: Comparison) -> None:
    assert Comparison.from_query(comparison.to_query()) == (comparison, [])


@given(st.dictionaries(NAMES, VALUES, max_size=8))
def test_any_address_gives_a_legal_comparison_and_one_that_is_already_legal_no_sentence(query: dict[str, str]) -> None:
    comparison, sentences = Comparison.from_query(query)
    assert legal(comparison)
    assert all(sentence.endswith(".") for sentence in sentences)
    assert Comparison.from_query(comparison.to_query()) == (comparison, [])


@given(comparisons(), st.lists(st.tuples(st.sampled_from(["add", "remove", "toggle", "select"]), st.integers(0, 7)), max_size=20))
def test_whatever_is_added_removed_hidden_and_selected_the_comparison_stays_legal(start: Comparison, acts: list[tuple[str, int]]) -> None:
    comparison = start
    for act, number in acts:
        slot = list(comparison.runs)[number % len(comparison.runs)]
        if act == "add":
            comparison = comparison.add()
        elif act == "select":
            comparison = replace(comparison, selected=slot)
        else:
            comparison = getattr(comparison, act)(slot)
        assert legal(comparison)


def test_a_newcomer_sees_the_article_under_an_empty_address() -> None:
    assert tuple(Comparison().runs.values()) == ARTICLE
    assert Comparison().to_query() == {}
    assert Comparison.from_query({}) == (Comparison(), [])


def test_an_address_has_one_readable_value_per_run_and_nothing_that_is_as_always() -> None:
    comparison = replace(TRIO, hidden=frozenset({1, 3}), selected=2, view="maps", map="update_ratio", step=7)
    assert comparison.to_query() == {
        "run1": "pre~layers-2",
        "run2": "post",
        "run3": "pre~seed-1",
        "edit": "2",
        "hide": "1-3",
        "view": "maps",
        "step": "7",
        "map": "update_ratio",
    }
    assert TRIO.to_query().keys() == {"run1", "run2", "run3"}
    assert Comparison(selected=2, hidden=frozenset({3})).to_query() == {"edit": "2", "hide": "3"}


def test_a_part_is_changed_in_designs_alone_and_leaves_the_final_norm() -> None:
    designed = RunConfig(placement="custom:attn=input,ffn=outer", final_norm=True)
    comparison = Comparison.of([designed, RunConfig(), RunConfig("post")]).redesign("attn", frozenset({"inner"}), 1, everywhere=True)
    assert list(comparison.runs.values()) == [replace(designed, placement="custom:attn=inner,ffn=outer"), RunConfig(), RunConfig("post")]


@pytest.mark.parametrize(
    ("query", "expected", "words"),
    [
        ({"run1": "sideways"}, Comparison.of([RunConfig()]), ["Run 1", "'sideways'", "pre, post"]),
        ({"run1": "pre~layers-1000"}, Comparison.of([RunConfig(layers=96)]), ["Run 1", "layers", "1000", "96 is used"]),
        ({"run2": "pre~lr-nan"}, Comparison({2: RunConfig()}, selected=2), ["Run 2", "learning_rate", "nan", "0.002 is used"]),
        ({"run1": "pre~heads-5"}, Comparison.of([RunConfig(heads=4)]), ["Run 1", "heads is 5", "width", "4 is used"]),
        ({"run1": "pre~depth-3"}, Comparison.of([RunConfig()]), ["Run 1", "'depth' is not a setting", "layers"]),
        ({"run1": "pre", "run9": "post"}, Comparison.of([RunConfig()]), ["run9", "run1 to run8"]),
        ({"run1": "pre", "edit": "5"}, Comparison.of([RunConfig()]), ["edit", "'5'", "1 is used"]),
        ({"run1": "pre", "hide": "1-x"}, Comparison({1: RunConfig()}, hidden=frozenset({1})), ["hide", "'1-x'", "left out"]),
        ({"view": "inside"}, Comparison(), ["view", "'inside'", "curves, layers, maps, downloads", "curves is used"]),
        ({"map": "loss"}, Comparison(), ["map", "'loss'", "stream_rms is used"]),
        ({"step": "0"}, Comparison(), ["step is '0'", "from 1 to", "The last one is used"]),
        ({"step": "ten"}, Comparison(), ["step is 'ten'", "The last one is used"]),
    ],
)
def test_a_bad_value_gives_way_to_the_nearest_and_one_sentence_says_so(
    query: dict[str, str], expected: Comparison, words: list[str]
) -> None:
    comparison, sentences = Comparison.from_query(query)
    assert comparison == expected
    [sentence] = sentences
    assert [word for word in words if word not in sentence] == []


def test_the_others_keep_their_slots_when_a_run_goes_and_a_new_one_takes_the_lowest_free_slot() -> None:
    fewer = TRIO.remove(2)
    assert fewer.runs == {1: TRIO.runs[1], 3: TRIO.runs[3]}
    more = fewer.add(RunConfig(seed=9))
    assert more.runs == {1: TRIO.runs[1], 2: RunConfig(seed=9), 3: TRIO.runs[3]}
    assert list(more.runs) == [1, 2, 3]
    assert more.selected == 2


def test_a_comparison_holds_one_to_eight_runs() -> None:
    comparison = TRIO.remove(1).remove(2)
    assert comparison.remove(3) == comparison
    for _ in range(7):
        assert not comparison.full
        comparison = comparison.add()
    assert comparison.full
    assert comparison.add() == comparison
    assert list(comparison.runs) == list(SLOTS)


def test_removing_the_selected_run_selects_a_neighbour_and_another_one_leaves_the_selection() -> None:
    assert replace(TRIO, selected=3).remove(3).selected == 2
    assert replace(TRIO, selected=1).remove(1).selected == 2
    assert replace(TRIO, selected=3).remove(1).selected == 3


def test_a_removed_run_leaves_no_hiding_behind_for_the_next_in_its_slot() -> None:
    again = TRIO.toggle(2).remove(2).add()
    assert 2 in again.runs
    assert again.hidden == frozenset()


def test_hiding_twice_shows() -> None:
    assert list(TRIO.toggle(2).shown) == [1, 3]
    assert TRIO.toggle(2).toggle(2) == TRIO


def test_a_new_run_is_a_copy_of_the_selected_one() -> None:
    assert replace(TRIO, selected=2).add().runs[4] == TRIO.runs[2]


def test_an_edit_changes_the_selected_run_alone_or_one_field_everywhere() -> None:
    assert TRIO.edit("layers", 5).runs == TRIO.runs | {1: RunConfig(layers=5)}
    everywhere = TRIO.edit("learning_rate", "3e-4", everywhere=True)
    assert everywhere.runs == {slot: replace(run, learning_rate=3e-4) for slot, run in TRIO.runs.items()}


def test_an_edit_that_one_run_cannot_have_changes_none() -> None:
    narrow = TRIO.add(RunConfig(width=20))
    with pytest.raises(ConfigError, match=r"heads is 8; it must divide the width, which is 20\."):
        narrow.edit("heads", 8, everywhere=True)
    with pytest.raises(ConfigError, match=r"steps is empty; it must be a whole number from 1 to 5000\."):
        TRIO.edit("steps", None)


@pytest.mark.parametrize(("before", "after"), [("pre", "post"), ("post", "pre"), ("none", "pre")])
def test_a_new_placement_brings_its_own_final_norm(before: str, after: str) -> None:
    for final_norm in (False, True):
        comparison = Comparison.of([RunConfig(placement=before, final_norm=final_norm)]).edit("placement", after)
        assert comparison.runs[1].final_norm == PLACEMENTS[after].final_norm


@given(configs(), st.integers(16, 256))
def test_a_new_width_keeps_the_heads_where_they_divide_it_and_else_takes_the_next_fewer_that_do(config: RunConfig, width: int) -> None:
    edited = Comparison.of([config]).edit("width", width).runs[1]
    assert edited == replace(config, width=width, heads=edited.heads)
    assert edited.heads == max(heads for heads in range(1, config.heads + 1) if width % heads == 0)


def test_the_choices_of_an_address_are_the_ones_that_can_be_drawn() -> None:
    assert all(1 <= len(runs) <= len(SLOTS) for _, runs in PRESETS.values())
    assert Comparison.of(PRESETS["bolder"][1], view="layers").view == "layers"


def test_an_edit_may_name_another_run_than_the_selected_one_and_a_run_that_is_gone_is_left_alone() -> None:
    assert TRIO.edit("layers", 5, slot=3).runs == TRIO.runs | {3: RunConfig(seed=1, layers=5)}
    assert TRIO.remove(3).edit("layers", 5, slot=3) == TRIO.remove(3)


def test_what_is_done_to_a_run_that_was_just_removed_changes_nothing() -> None:
    comparison = Comparison().remove(3)
    assert comparison.toggle(3) == comparison
    assert comparison.remove(3) == comparison

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_run import made_history

from core.lenses.backward import ARRIVALS, percents, ways
from core.placement.record import BlockSpec
from core.placement.table import PLACEMENTS
from core.runs.history import History

STEPS, LAYERS = 5, 3
HISTORY = made_history(partial(np.random.default_rng(7).gamma, 1.0, 1.0), STEPS, LAYERS)


def block(placement: str) -> BlockSpec:
    return PLACEMENTS[placement].block(2, LAYERS)


@pytest.mark.parametrize("placement", ["pre", "post", "b2t"])
def test_the_shares_at_each_input_add_up_to_one(placement: str) -> None:
    share_s = ways(HISTORY, block(placement), 2).share_s
    at_h = share_s.pop("feed_forward.stream") + share_s.pop("feed_forward.branch")
    assert share_s.keys() == {"attention.stream", "attention.branch"} | ({"feed_forward.block_skip"} if placement == "b2t" else set())
    np.testing.assert_allclose([at_h, sum(share_s.values())], np.ones((2, STEPS)))


def test_a_share_is_of_squares() -> None:
    history = HISTORY.replace(
        attention_stream_signal=np.full((STEPS, LAYERS), 2, np.float32),
        attention_branch_signal=np.full((STEPS, LAYERS), 1, np.float32),
    )
    found = ways(history, block("pre"), 3)
    np.testing.assert_allclose(found.share_s["attention.stream"], 0.8)
    np.testing.assert_allclose(found.norm_s["attention.branch"], 1)


def test_the_second_way_of_a_block_carries_what_arrives_at_its_last_addition() -> None:
    found = ways(HISTORY, block("b2t"), 2).norm_s
    np.testing.assert_array_equal(found["feed_forward.block_skip"], HISTORY["feed_forward_stream_signal"][:, 1])


def test_where_the_streams_factors_are_learned_the_second_ways_share_is_not_known() -> None:
    spec = replace(block("b2t"), structure=replace(block("b2t").structure, profiled=True))
    found = ways(HISTORY, spec, 2).share_s
    assert np.isnan([found["feed_forward.block_skip"], found["attention.stream"]]).all()
    assert np.isfinite(found["feed_forward.stream"]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_has_no_share(value: float) -> None:
    signal_sl = HISTORY["attention_branch_signal"].copy()
    signal_sl[-1] = value
    found = ways(HISTORY.replace(attention_branch_signal=signal_sl), block("pre"), 1)
    assert np.isnan([found.share_s[way][-1] for way in ("attention.stream", "attention.branch")]).all()
    np.testing.assert_equal(found.norm_s["attention.branch"][-1], value)  # what is beyond float32 is told from what is no number
    assert np.isfinite(found.share_s["attention.stream"][:-1]).all()


def test_where_no_gradient_arrives_nothing_has_a_share() -> None:
    nothing: History = made_history(np.zeros, STEPS, LAYERS)
    assert np.isnan(ways(nothing, block("pre"), 1).share_s["feed_forward.stream"]).all()


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=3), st.floats(0, 1))
def test_percents_add_up_to_100_and_are_as_near_as_whole_numbers_can_be(parts: list[float], share: float) -> None:
    parts = parts if sum(parts) else [1.0, 1.0, 1.0]
    at_h, at_x = ARRIVALS
    shares = dict(zip(at_x, np.array(parts) / sum(parts), strict=True)) | dict(zip(at_h, (share, 1 - share), strict=True))
    words = percents(shares)
    assert words.keys() == shares.keys()
    for arriving in ARRIVALS:
        assert sum(int(words[way].removesuffix(" %")) for way in arriving) == 100
    assert all(abs(int(words[way].removesuffix(" %")) - 100 * value) < 1 + 1e-9 for way, value in shares.items())


def test_the_percents_of_what_is_no_number_are_dashes() -> None:
    assert percents({"attention.stream": np.nan, "attention.branch": np.nan, "feed_forward.stream": 1.0}) == {
        "attention.stream": "–",
        "attention.branch": "–",
        "feed_forward.stream": "100 %",
    }

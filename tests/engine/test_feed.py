import numpy as np
import pytest

from core.engine.feed import CHUNK, abstract_feed, batches, next_feed
from core.runs.config import RunConfig


@pytest.mark.parametrize("counts", [[5, 1, 7], [13], [CHUNK]])
def test_a_feed_does_not_depend_on_how_the_steps_are_divided_into_chunks(tiny: RunConfig, counts: list[int]) -> None:
    source, whole = batches(tiny), batches(tiny)
    for count in counts:
        rate_c = np.linspace(0.1, 0.2, count)
        feed = next_feed(source, rate_c)
        for row, (tokens_bt, targets_bt, counted_bt) in zip(range(count), whole, strict=False):
            np.testing.assert_array_equal(feed.tokens_cbt[row], tokens_bt)
            np.testing.assert_array_equal(feed.targets_cbt[row], targets_bt)
            np.testing.assert_array_equal(feed.counted_cbt[row], counted_bt)
            assert feed.count_c[row] == counted_bt.sum()
        np.testing.assert_array_equal(feed.rate_c[:count], rate_c.astype(np.float32))


def test_a_feed_has_the_shapes_and_types_that_programs_are_compiled_for(tiny: RunConfig) -> None:
    feed = next_feed(batches(tiny), np.ones(3))
    assert [(part.shape, part.dtype) for part in feed] == [(part.shape, part.dtype) for part in abstract_feed(tiny)]

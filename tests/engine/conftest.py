"""How to train a run, and placements made up to use every site and scale."""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add

import jax
import pytest

from core.engine.devices import set_up_jax
from core.engine.training import Training, compile_program
from core.placement.record import BlockSpec, Placement, Structure
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from core.runs.history import History

set_up_jax()  # before a test uses JAX by itself

GAINS = (("query", 0.7), ("value", 1.3), ("attention_output", 0.5), ("mlp_in", 2.0), ("mlp_out", 0.25))
EVERY_SITE = Structure(frozenset({"input", "inner", "output", "outer"}), frozenset({"input", "outer"}))


def scaled(structure: Structure) -> Callable[[int, int], BlockSpec]:
    """Blocks whose every scale differs from 1 and from layer to layer."""
    return lambda layer, layers: BlockSpec(structure, 1.5 + layer / layers, 0.3 * layer, 1 / layer, GAINS)


def post_then_pre(layer: int, layers: int) -> BlockSpec:
    return PLACEMENTS["post" if layer == 1 else "pre"].block(layer, layers)


MADE_UP: dict[str, Callable[[int, int], BlockSpec]] = {
    "inner": scaled(Structure(frozenset({"input", "inner"}), frozenset({"inner"}))),
    "every": scaled(EVERY_SITE),
    "scalar": scaled(Structure(learned_gate="scalar")),
    "vector": scaled(Structure(frozenset({"output"}), frozenset({"input", "inner"}), "vector")),
    "mixed": post_then_pre,
}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Adds the placements above to the table; returns their names."""
    for name, block in MADE_UP.items():
        placement = Placement(
            name, name.title(), block, name != "every", "Made up for the tests.", "nobody", "0000.00000", "nobody", "None."
        )
        monkeypatch.setitem(PLACEMENTS, name, placement)
    return list(MADE_UP)


@pytest.fixture
def float64() -> Iterator[None]:
    """Doubles the precision, so that a comparison can be held to what algebra says."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def history_of() -> Callable[..., History]:
    """Trains a run on the CPU: (configuration, device count or None for all) to its history."""

    def history(config: RunConfig, device_count: int | None = None) -> History:
        return reduce(add, Training(config, compile_program(config, "cpu", device_count)))

    return history

import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import jax
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_run import assert_equal

from core.data_tasks import TASKS
from core.engine import group, training
from core.engine.compilation import PROGRAMS
from core.engine.group import compile_group, compile_group_shape, train_together
from core.placement.table import PLACEMENTS
from core.runs.config import RunConfig
from core.runs.history import History
from core.runs.settings import ConfigError

HistoryOf = Callable[..., History]
TINY = RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)
# Its loss grows a millionfold a step, so that whatever the roundings it diverges at step 4.
HOT = replace(TINY, placement="none", final_norm=None, layers=8, steps=20, warmup=0.25, learning_rate=1.0)
FIRST_LOSSES: dict[int, float] = {}  # of runs alone, by their seeds


@pytest.fixture
def first_losses(quick: None, history_of: HistoryOf) -> None:
    FIRST_LOSSES.update({seed: float(history_of(replace(TINY, steps=1, seed=seed))["loss"][0]) for seed in range(5)})


def together(configs: Sequence[RunConfig], device_count: int | None = None) -> list[History]:
    return joined(train_together(configs, compile_group(configs, "cpu", device_count)))


def joined(chunks: Sequence[list[History]]) -> list[History]:
    return [reduce(add, chunks_of_run) for chunks_of_run in zip(*chunks, strict=True)]


@pytest.fixture(params=["one by one", "at once"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways in which a device may compute its runs, the other platforms' on the CPU, too."""
    if request.param == "at once":
        monkeypatch.setattr(group, "ONE_BY_ONE", set())
    return request.param


@pytest.mark.usefixtures("quick")
def test_each_run_is_what_it_is_alone(way: str, history_of: HistoryOf) -> None:
    changes = [{}, {"seed": 99}, {"learning_rate": 1e-2}, {"warmup": 0.5}, {"placement": "scaled_init"}, {"placement": "ln_scaling"}]
    configs = [replace(TINY, **change) for change in changes]
    histories = together(configs)
    assert len({history["loss"][-1] for history in histories}) == len(configs)
    for config, history in zip(configs, histories, strict=True):
        assert_equal(history, history_of(config), rtol=1e-4)


@pytest.mark.usefixtures("quick")
def test_runs_whose_structure_has_no_use_for_a_scale_go_together(history_of: HistoryOf) -> None:
    """ReZero's gates are parameters, so the program does not read those of the scales, which have their shards all the same."""
    configs = [replace(TINY, placement="rezero", final_norm=None, seed=seed) for seed in range(3)]
    for config, history in zip(configs, together(configs), strict=True):
        assert_equal(history, history_of(config), rtol=1e-4)


@pytest.mark.usefixtures("quick")
def test_runs_of_several_segments_are_what_they_are_alone(history_of: HistoryOf) -> None:
    configs = [replace(TINY, placement="keel", final_norm=None, layers=3, learning_rate=rate) for rate in (1e-3, 2e-3, 3e-3)]
    for config, history in zip(configs, together(configs), strict=True):
        assert_equal(history, history_of(config), rtol=1e-4)


@pytest.mark.usefixtures("first_losses")
@given(count=st.integers(1, 6), data=st.data())
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_group_of_any_size_that_fits_a_program_keeps_its_order(count: int, data: st.DataObject) -> None:
    """Each run's first loss tells whose it is."""
    group = compile_group([TINY] * 6, "cpu")
    seeds = data.draw(st.lists(st.sampled_from(list(FIRST_LOSSES)), min_size=count, max_size=count))
    (histories,) = train_together([replace(TINY, steps=1, seed=seed) for seed in seeds], group)
    found = [float(history["loss"][0]) for history in histories]
    assert found == pytest.approx([FIRST_LOSSES[seed] for seed in seeds], rel=1e-4)


@pytest.mark.usefixtures("quick")
def test_an_odd_group_has_places_left_over() -> None:
    assert [compile_group([TINY] * runs, "cpu", 2).places for runs in (5, 6)] == [6, 6]


@pytest.mark.usefixtures("quick")
def test_a_group_larger_than_its_program_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^The group has 7 runs; its program was compiled for 6\.$"):
        train_together([TINY] * 7, compile_group([TINY] * 6, "cpu", 2))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("chunk_seconds", [0.0, 3600.0])
def test_a_run_that_diverges_ends_where_it_does_alone_and_harms_no_other(
    way: str, history_of: HistoryOf, monkeypatch: pytest.MonkeyPatch, chunk_seconds: float
) -> None:
    monkeypatch.setattr(training, "CHUNK_SECONDS", chunk_seconds)
    calm = replace(HOT, learning_rate=1e-5)
    configs = [calm, HOT, replace(calm, seed=8), replace(HOT, seed=8), replace(calm, warmup=0.0)]
    for config, history in zip(configs, together(configs), strict=True):
        alone = history_of(config)
        assert history.diverged_at == alone.diverged_at == (4 if config.learning_rate == HOT.learning_rate else None)
        assert len(history) == (history.diverged_at or HOT.steps)
        assert_equal(first_steps(history), first_steps(alone), rtol=1e-3)


def test_a_run_does_not_depend_on_its_companions(way: str) -> None:
    companions = [HOT, replace(HOT, seed=8), replace(HOT, learning_rate=1e-5), replace(HOT, learning_rate=2e-5), HOT]
    group = compile_group(companions, "cpu")
    among_them, alone = (joined(train_together(configs, group)) for configs in (companions, companions[2:3]))
    assert_equal(among_them[2], alone[0])


def first_steps(history: History) -> History:
    """Two: from there a model without norms magnifies its roundings."""
    return History({name: column[:2] for name, column in history.columns.items()})


@pytest.mark.usefixtures("quick")
def test_nothing_is_computed_once_all_have_diverged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "CHUNK_SECONDS", 0.0)
    configs = [replace(HOT, learning_rate=rate) for rate in (1.0, 0.9, 0.8, 0.7, 0.6)]
    lengths = [[len(history) for history in chunk] for chunk in train_together(configs, compile_group(configs, "cpu"))]
    assert len(lengths) < HOT.steps
    assert all(any(chunk) for chunk in lengths)
    assert all(length in (0, 1) for chunk in lengths for length in chunk)


def test_numbers_do_not_depend_on_how_steps_are_chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [replace(TINY, steps=training.CHUNK + 9, warmup=1.0, seed=seed) for seed in range(6)]
    group = compile_group(configs, "cpu")
    monkeypatch.setattr(training, "CHUNK_SECONDS", 0.0)
    one_by_one = list(train_together(configs, group))
    monkeypatch.setattr(training, "CHUNK_SECONDS", 3600.0)
    at_once = list(train_together(configs, group))
    assert [[len(history) for history in chunk] for chunk in one_by_one] == [[1] * 6] * configs[0].steps
    assert [len(chunk[0]) for chunk in at_once] == [1, training.CHUNK, 8]
    for one, other in zip(joined(one_by_one), joined(at_once), strict=True):
        assert_equal(one, other)


@pytest.mark.usefixtures("quick")
def test_a_chunk_is_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "CHUNK_SECONDS", 3600.0)
    configs = [replace(TINY, steps=9, seed=seed) for seed in range(6)]
    fetched, device_get = [], jax.device_get
    monkeypatch.setattr(jax, "device_get", lambda tree: (fetched.append(tree), device_get(tree))[1])
    chunks = list(train_together(configs, compile_group(configs, "cpu")))
    assert len(chunks) == len(fetched) == 2


@pytest.mark.usefixtures("quick")
def test_what_is_a_runs_own_compiles_nothing(way: str, compilations: list[str]) -> None:
    changes = [
        {"learning_rate": 1e-2},
        {"warmup": 0.5},
        {"seed": 99},
        {"steps": 9},
        {"placement": "scaled_init"},
        {"placement": "ln_scaling"},
    ]
    together([TINY] * 6)
    compilations.clear()
    for change in changes:
        together([replace(TINY, **change)] * 6)
        assert compilations == [], change


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (
            {"layers": 3},
            "layers is 2 in one run and 3 in another; runs that are trained together may differ in placement, task",
        ),
        (
            {"steps": 6},
            "steps is 5 in one run and 6 in another; runs that are trained together may differ in placement, task",
        ),
        ({"final_norm": False}, "final_norm is true in one run and false in another; runs that are trained together may differ in"),
        ({"placement": "post"}, "placement is pre in one run and post in another; runs that are trained together may differ in their"),
    ],
)
def test_runs_that_do_not_go_together_are_refused_in_a_sentence(change: dict[str, Any], difference: str) -> None:
    group, configs = compile_group([TINY] * 6, "cpu"), [TINY, replace(TINY, **change)]
    for attempt in (lambda: compile_group(configs, "cpu"), lambda: train_together(configs, group)):
        with pytest.raises(ConfigError, match=f"^{difference}"):
            attempt()


def test_a_group_of_nobody_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^A group has no runs; it needs at least one\.$"):
        compile_group([])


@pytest.mark.parametrize("first", PLACEMENTS)
def test_placements_of_one_stack_go_together_and_no_others(first: str) -> None:
    for second in PLACEMENTS:
        alike = PLACEMENTS[first].stack(2) == PLACEMENTS[second].stack(2)
        configs = [replace(TINY, placement=name, final_norm=True) for name in (first, second)]
        if alike:
            assert group.in_common(configs) == group.in_common(configs[::-1])
        else:
            with pytest.raises(ConfigError):
                group.in_common(configs)


@given(
    layers=st.integers(1, 96),
    batch=st.integers(1, 256),
    width=st.sampled_from([16, 64, 256]),
    share=st.integers(1, 64),
)
def test_a_device_keeps_no_more_of_several_runs_than_of_one(layers: int, batch: int, width: int, share: int) -> None:
    config = RunConfig(layers=layers, batch=batch, width=width)
    at_once = group.runs_at_once(config, share, 1)
    kept = group.dense_bytes(layers * batch * config.length * width)
    assert 1 <= at_once <= share
    assert at_once == 1 or at_once * kept <= group.KEPT_BYTES
    assert math.ceil(share / at_once) * at_once < share + math.ceil(share / at_once)  # idle places: fewer than turns


def test_where_devices_outnumber_runs_several_split_a_batch() -> None:
    """Two runs on four devices, of which one diverges while the other goes on."""
    program = """
import jax
jax.config.update("jax_num_cpu_devices", 4)
from quick import QUICK
from test_group import *
training.COMPILER_OPTIONS = {"cpu": QUICK}
configs = [HOT, replace(HOT, learning_rate=1e-4)]
print(dict(compile_group(configs, "cpu").mesh.shape), [len(history) for history in together(configs)])
for history, other in zip(together(configs), together(configs, 1), strict=True):
    assert_equal(first_steps(history), first_steps(other), rtol=1e-3)
"""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "{'run': 2, 'batch': 2} [4, 20]"


def test_only_the_newest_programs_are_kept() -> None:
    assert compile_group_shape.cache_info().maxsize == PROGRAMS


@pytest.mark.usefixtures("quick")
def test_a_group_takes_no_runs_that_its_program_was_not_compiled_for() -> None:
    clipped = [replace(TINY, gradient_clip=1.0)]
    for program, runs in (([TINY], clipped), (clipped, [TINY])):
        with pytest.raises(ValueError, match="another shape or structure"):
            train_together(runs, compile_group(program, "cpu"))


def test_tasks_of_other_vocabularies_do_not_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "ten", replace(TASKS["progression"], name="ten", vocabulary=10))
    with pytest.raises(ConfigError, match=r"^task is progression in one run and ten in another; "):
        compile_group([TINY, with_task(TINY, "ten")], "cpu")


def with_task(config: RunConfig, name: str) -> RunConfig:
    """The run with a task that is in no list of choices."""
    changed = replace(config)
    object.__setattr__(changed, "task", name)
    return changed

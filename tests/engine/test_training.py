import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import jax
import numpy as np
import optax
import pytest
from made_run import assert_equal
from quick import quick_jit

from benchmarks import baseline
from core.data_tasks import TASKS
from core.engine import model, training
from core.engine.compilation import PROGRAMS
from core.engine.feed import batches
from core.engine.initialization import initial_parameters
from core.engine.jacobian import singular_values
from core.engine.training import Training, compile_program, compile_shape
from core.placement.table import PLACEMENTS
from core.runs.config import NORMS, RunConfig, program_shape
from core.runs.history import History
from core.runs.outcome import outcome, verdict
from tests.engine import restatement
from tests.engine.restatement import unrolled

HistoryOf = Callable[..., History]


def articles_parameters(config: RunConfig) -> Any:
    """What the article's own program starts from."""
    return quick_jit(baseline.Transformer(config).initial)()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("placement", "warmup"), [("pre", 0.5), ("post", 0.0)])
def test_a_run_is_the_one_of_the_articles_own_program(
    tiny: RunConfig, history_of: HistoryOf, monkeypatch: pytest.MonkeyPatch, placement: str, warmup: float
) -> None:
    config = replace(tiny, placement=placement, final_norm=None, warmup=warmup, steps=12)
    history, parameters = history_of(config), articles_parameters(config)
    monkeypatch.setattr(jax, "jit", quick_jit)
    loss_s, norm_s = np.array(list(baseline.train(config, parameters))).T
    np.testing.assert_allclose(history["loss"], loss_s, rtol=1e-4)
    np.testing.assert_allclose(history["gradient_norm"], norm_s, rtol=1e-3)


def test_block_gradient_norms_are_those_of_each_blocks_parameters(tiny: RunConfig, history_of: HistoryOf) -> None:
    transformer = baseline.Transformer(tiny)
    batch = next(batches(tiny))
    tokens_bu = np.concatenate([batch.tokens_bt, batch.targets_bt[:, -1:]], axis=1)
    gradient = quick_jit(jax.grad(transformer.loss))(articles_parameters(tiny), tokens_bu)
    expected_l = [np.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient[f"block_{i}"]))) for i in range(tiny.layers)]
    np.testing.assert_allclose(history_of(tiny)["block_gradient_norm"][0], expected_l, rtol=1e-5)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("norm", NORMS)
def test_a_finished_run_has_its_jacobians_singular_values_before_and_after(tiny: RunConfig, norm: str) -> None:
    config = replace(tiny, norm=norm, final_norm=True)
    training_run = Training(config, compile_program(config))
    run = training_run.finished(reduce(add, training_run), 2.5)
    assert (run.config, len(run.history), run.facts.train_seconds) == (config, config.steps, 2.5)
    before_ld, after_ld = run.singular_values
    np.testing.assert_array_equal(before_ld, singular_values(config, initial_parameters(config)))
    assert np.isfinite(after_ld).all()
    assert (after_ld != before_ld).any(axis=1).all(), "every block has learned"


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("placement", ["every", "vector", "mixed"])
def test_a_placement_added_to_the_table_trains(tiny: RunConfig, made_up: list[str], history_of: HistoryOf, placement: str) -> None:
    config = replace(tiny, placement=placement, final_norm=None, steps=3)
    history = history_of(config)
    assert (len(history), history.layers, history.diverged_at) == (3, tiny.layers, None)
    assert (np.diff(history["loss"]) != 0).all()
    tokens_bt = next(batches(config)).tokens_bt
    rms_l = [
        np.sqrt((x_nd**2).mean(axis=1)).mean() for x_nd in restatement.streams(config, unrolled(initial_parameters(config)), tokens_bt)[0]
    ]
    np.testing.assert_allclose(history["stream_rms"][0], rms_l, rtol=1e-4)


@pytest.mark.usefixtures("quick")
def test_layers_of_a_mixed_stack_keep_their_order(tiny: RunConfig, made_up: list[str], history_of: HistoryOf) -> None:
    """Post-Norm in the first block, Pre-Norm above: the stream stands at 1 after the first block and grows from there."""
    config = replace(tiny, placement="mixed", final_norm=None, layers=3)
    assert [len(segment) for _, segment in PLACEMENTS["mixed"].segments(3)] == [1, 2]
    first, *above = history_of(config)["stream_rms"][0, 1:]
    assert first == pytest.approx(1, abs=1e-5)
    assert first + 0.1 < above[0] < above[1]


def test_a_run_repeats_itself_bit_for_bit(tiny: RunConfig, history_of: HistoryOf) -> None:
    assert_equal(history_of(tiny), history_of(tiny))


def test_numbers_do_not_depend_on_how_steps_are_chunked(tiny: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(tiny, steps=training.CHUNK + 9, warmup=1.0)
    program = compile_program(config, "cpu")
    monkeypatch.setattr(training, "CHUNK_SECONDS", 0.0)
    one_by_one = list(Training(config, program))
    monkeypatch.setattr(training, "CHUNK_SECONDS", 3600.0)
    at_once = list(Training(config, program))
    assert [len(chunk) for chunk in one_by_one] == [1] * config.steps
    assert [len(chunk) for chunk in at_once] == [1, training.CHUNK, 8]
    assert_equal(sum(one_by_one[1:], one_by_one[0]), sum(at_once[1:], at_once[0]))


@pytest.mark.usefixtures("quick")
def test_what_is_kept_for_the_backward_pass_does_not_change_the_numbers(
    tiny: RunConfig, history_of: HistoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed() -> tuple[History, int]:
        training.compile_shape.cache_clear()
        return history_of(tiny), compile_program(tiny, "cpu").run_chunk.memory_analysis().temp_size_in_bytes

    kept, kept_bytes = computed()
    monkeypatch.setattr(model, "KEPT_BYTES", 0)
    recomputed, recomputed_bytes = computed()
    training.compile_shape.cache_clear()
    assert_equal(recomputed, kept, rtol=1e-4)
    assert recomputed_bytes < kept_bytes


@pytest.mark.usefixtures("quick")
def test_one_device_and_several_agree(tiny: RunConfig, history_of: HistoryOf) -> None:
    assert_equal(history_of(tiny, 1), history_of(tiny), rtol=1e-4)


@pytest.mark.parametrize("change", [{"learning_rate": 1e-2}, {"warmup": 0.5}, {"seed": 99}, {"steps": 9}])
def test_rate_warmup_seed_and_steps_compile_nothing(
    tiny: RunConfig, history_of: HistoryOf, compilations: list[str], change: dict[str, float]
) -> None:
    history_of(tiny)
    compilations.clear()
    history_of(replace(tiny, **change))
    assert compilations == []


@pytest.mark.usefixtures("quick")
def test_another_shape_is_seen_to_compile(tiny: RunConfig, history_of: HistoryOf, compilations: list[str]) -> None:
    history_of(replace(tiny, batch=tiny.batch + 1))
    assert compilations


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("chunk_seconds", [0.0, 3600.0])
def test_a_run_that_diverges_ends_there(
    tiny: RunConfig, history_of: HistoryOf, monkeypatch: pytest.MonkeyPatch, chunk_seconds: float
) -> None:
    monkeypatch.setattr(training, "CHUNK_SECONDS", chunk_seconds)
    config = replace(tiny, placement="none", final_norm=None, layers=8, steps=40, warmup=1.0, learning_rate=1.0)
    history = history_of(config)
    assert history.diverged_at == len(history)
    assert 2 < len(history) < config.steps
    assert np.isfinite([history["loss"][:-1], history["gradient_norm"][:-1]]).all()
    assert not np.isfinite([history["loss"][-1], history["gradient_norm"][-1]]).all()
    assert outcome(history, TASKS[config.task]) == "diverged"
    assert f"at step {len(history)}." in verdict(history, TASKS[config.task])


def test_only_the_newest_programs_are_kept(tiny: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    class Executable:
        """Stands for what XLA compiles, which takes long and frees its memory when it is collected."""

        def lower(self, *arguments: Any) -> "Executable":
            return self

        compile = lower

    monkeypatch.setattr(jax, "jit", lambda function, **options: Executable())
    compile_shape.cache_clear()
    first = weakref.ref(compile_program(tiny, "cpu").run_chunk)
    for heads in (1, 4, 8, 16):
        for length in (9, 10):
            assert first() is not None
            compile_program(replace(tiny, heads=heads, length=length), "cpu")
    gc.collect()
    assert first() is None
    assert compile_shape.cache_info().currsize == PROGRAMS
    compile_shape.cache_clear()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("device_count", [1, 2])
def test_the_loss_is_the_mean_over_the_positions_that_count(tiny: RunConfig, history_of: HistoryOf, task: str, device_count: int) -> None:
    config = replace(tiny, task=task, length=12)
    tokens_bt, targets_bt, counted_bt = next(batches(config))
    expected = restatement.loss(config, unrolled(initial_parameters(config)), tokens_bt, targets_bt, counted_bt=counted_bt)
    assert history_of(config, device_count)["loss"][0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.usefixtures("quick")
def test_another_task_of_the_same_vocabulary_compiles_nothing(tiny: RunConfig, history_of: HistoryOf, compilations: list[str]) -> None:
    config = replace(tiny, length=12)
    history_of(config)
    del compilations[:]
    for task in TASKS:
        history_of(replace(config, task=task))
    assert compilations == []


@pytest.mark.usefixtures("quick")
def test_clipping_is_that_of_optax_and_the_recorded_norm_is_the_one_before(tiny: RunConfig, history_of: HistoryOf) -> None:
    """The article's model, its optimizer behind Optax's own clipping."""
    config, most = replace(tiny, steps=12, learning_rate=0.02), 0.9
    history = history_of(replace(config, gradient_clip=most))
    assert history["gradient_norm"].min() < most < history["gradient_norm"].max()
    assert history["gradient_norm"][0] == history_of(config)["gradient_norm"][0]

    model = baseline.Transformer(config)
    optimizer = optax.chain(optax.clip_by_global_norm(most), optax.adamw(config.learning_rate, b1=0.9, b2=0.95, weight_decay=0.01))

    @quick_jit
    def update(parameters: Any, state: Any, tokens_bu: jax.Array) -> Any:
        loss, gradient = jax.value_and_grad(model.loss)(parameters, tokens_bu)
        updates, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    parameters = articles_parameters(config)
    state, losses = optimizer.init(parameters), []
    for batch, _ in zip(batches(config), range(config.steps), strict=False):
        tokens_bu = np.concatenate([batch.tokens_bt, batch.targets_bt[:, -1:]], axis=1)
        parameters, state, loss = update(parameters, state, tokens_bu)
        losses.append(float(loss))
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-4)
    assert abs(history["loss"] / history_of(config)["loss"] - 1).max() > 1e-3, "clipping makes a difference here"


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("change", [{"gradient_clip": 1.0}, {"heads": 1}, {"placement": "post"}, {"layers": 3}])
def test_a_program_takes_no_run_that_it_was_not_compiled_for(tiny: RunConfig, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^The program was compiled for runs of another shape or structure\.$"):
        Training(replace(tiny, **change), compile_program(tiny, "cpu"))


def test_a_programs_task_is_one_that_the_length_allows(tiny: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order of the table."""
    tasks = {"long": replace(TASKS["copy"], name="long", least_length=20), **TASKS}
    for name in [*TASKS]:
        monkeypatch.delitem(TASKS, name)
    for name, task in tasks.items():
        monkeypatch.setitem(TASKS, name, task)
    assert program_shape(tiny).length == tiny.length

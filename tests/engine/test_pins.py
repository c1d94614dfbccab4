"""Whatever a user or a cluster sets, the numbers are the same, and what they have set stays as it is."""

import contextlib
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax._src.config import config_states, trace_context_names
from made_run import assert_equal

from core.cli import main
from core.engine import training
from core.engine.group import compile_group, train_together
from core.engine.initialization import initial_parameters
from core.engine.pins import PINS, pinned
from core.engine.training import Training, compile_program
from core.runs.config import RunConfig
from core.runs.history import History

OTHER: dict[str, Any] = {  # what somebody may have set instead
    "jax_enable_x64": True,
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_default_prng_impl": "rbg",
    "jax_legacy_prng_key": "error",
    "jax_random_seed_offset": 1,
    "jax_threefry_gpu_kernel_lowering": True,
    "jax_threefry_partitionable": False,
    "eager_constant_folding": True,
    "jax_compiler_enable_remat_pass": False,
    "jax_custom_vjp3": True,
    "jax_default_matmul_precision": "F64_F64_F64",
    "jax_exec_time_optimization_effort": 1.0,
    "jax_memory_fitting_effort": 1.0,
    "jax_memory_fitting_level": "O0",
    "jax_optimization_level": "O3",
    "jax_remat3": True,
    "jax_scan3": True,
    "jax_softmax_custom_jvp": True,
    "jax_use_direct_linearize": False,
    "jax_use_shardy_partitioner": False,
    "jax_debug_infs": True,
    "jax_debug_nans": True,
    "jax_default_device": "cpu",
    "jax_disable_jit": True,
    "jax_error_checking_behavior_divide": "raise",
    "jax_error_checking_behavior_nan": "raise",
    "jax_error_checking_behavior_oob": "raise",
    "jax_no_execution": True,
    "jax_no_tracing": True,
    "jax_transfer_guard_device_to_device": "disallow_explicit",
    "jax_transfer_guard_device_to_host": "disallow_explicit",
    "jax_transfer_guard_host_to_device": "disallow_explicit",
}
# Of what JAX says that programs depend on: tried as well, without any effect on a run, or of kernels that a run does not have.
HARMLESS = {
    "check_vma",
    "jax_allow_f16_reductions",
    "jax_auto_pcast",
    "jax_check_static_indices",
    "jax_debug_key_reuse",
    "jax_embedded_constants_max_bytes",
    "jax_enable_pgle",
    "jax_explicit_x64_dtypes",
    "jax_high_dynamic_range_gumbel",
    "jax_hlo_source_file_canonicalization_regex",
    "jax_mutable_array_checks",
    "jax_pallas_enable_debug_checks",
    "jax_pallas_use_mosaic_gpu",
    "jax_pgle_profiling_runs",
    "jax_ragged_dot_use_gpu_pallas_triton_lowering",
    "jax_remove_size_one_mesh_axis_from_type",
    "jax_use_emit_pipeline_primitive",
    "jax_use_simplified_jaxpr_constants",
    "jax_xla_profile_version",
}


@contextlib.contextmanager
def everything_otherwise() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name, value in OTHER.items():
            stack.enter_context(config_states[name](value))
        yield


def settings() -> dict[str, Any]:
    return {name: jax.config.values[name] for name in PINS}


@pytest.fixture
def admin(tiny: RunConfig) -> RunConfig:
    """A run that also profiles its first batch, and clips."""
    return replace(tiny, placement="admin", gradient_clip=1.0)


def test_another_value_is_tried_of_every_pin() -> None:
    assert OTHER.keys() == PINS.keys()
    with pinned():
        pins = settings()
    with everything_otherwise():
        assert not [name for name, value in settings().items() if value == pins[name]]


def test_everything_on_which_programs_depend_was_tried() -> None:
    """A new version of JAX may have more."""
    settings_of_jax = jax.config.values.keys() & set(trace_context_names())
    assert settings_of_jax - PINS.keys() == HARMLESS


def test_with_everything_set_otherwise_in_the_environment_the_csv_is_the_same_to_the_byte(tmp_path: Path) -> None:
    command = shlex.split("train --placement admin --clip 1 --layers 2 --width 16 --heads 2 --length 8 --batch 4 --steps 5 --csv")
    assert main.main([*command, str(tmp_path / "a.csv")]) == 0
    environment = {name.upper(): str(value) for name, value in OTHER.items()} | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    words = [sys.executable, "-m", "core", *command, "-"]
    done = subprocess.run(words, env=os.environ | environment, capture_output=True, cwd=Path(__file__).parents[2], check=False)
    assert done.stdout == (tmp_path / "a.csv").read_bytes(), done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1  # how it ended, and no warning


@pytest.mark.usefixtures("quick")
def test_a_users_settings_neither_reach_a_run_nor_are_changed_by_it_between_its_chunks_either(
    admin: RunConfig, history_of: Callable[..., History], compilations: list[str]
) -> None:
    expected, parameters = history_of(admin), initial_parameters(admin)
    compilations.clear()
    with everything_otherwise():
        before = settings()
        jax.tree.map(np.testing.assert_array_equal, initial_parameters(admin), parameters)
        assert settings() == before
        run = Training(admin, compile_program(admin, "cpu"))
        assert settings() == before
        chunks = []
        for chunk in run:
            assert settings() == before
            chunks.append(chunk)
        assert len(chunks) > 1
        assert_equal(reduce(add, chunks), expected)
        assert len(run.finished(expected, 1.0).history) == admin.steps
        assert settings() == before
    assert compilations == []


@pytest.mark.usefixtures("quick")
def test_runs_trained_together_are_the_same_too(tiny: RunConfig) -> None:
    runs = [tiny, replace(tiny, seed=8)]

    def together() -> list[History]:
        before, chunks = settings(), []
        for chunk in train_together(runs, compile_group(runs, "cpu")):
            assert settings() == before
            chunks.append(chunk)
        return [reduce(add, histories) for histories in zip(*chunks, strict=True)]

    expected = together()
    with everything_otherwise():
        for history, other in zip(together(), expected, strict=True):
            assert_equal(history, other)


@pytest.mark.usefixtures("quick")
def test_each_thread_has_its_own_settings(tiny: RunConfig, history_of: Callable[..., History]) -> None:
    found: list[History] = []

    def train() -> None:
        with everything_otherwise():
            found.append(history_of(tiny))

    expected, before = history_of(tiny), settings()
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert_equal(found[0], expected)
    assert settings() == before


@pytest.mark.usefixtures("quick")
def test_a_users_mesh_is_no_runs(tiny: RunConfig, history_of: Callable[..., History]) -> None:
    expected = history_of(tiny)
    training.compile_shape.cache_clear()
    with jax.set_mesh(jax.make_mesh((1,), ("mine",))):
        assert_equal(history_of(tiny), expected)
        assert jax.sharding.get_mesh().axis_names == ("mine",)


def test_a_fault_leaves_the_settings_as_they_were() -> None:
    with everything_otherwise():
        before = settings()
        with contextlib.suppress(ZeroDivisionError), pinned():
            assert settings() != before
            raise ZeroDivisionError
        assert settings() == before

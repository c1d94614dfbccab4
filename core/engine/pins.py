"""What the numbers rest on, of all that JAX lets a user, a notebook or a cluster set: the engine computes as this table says.

Of JAX 0.10 every setting was tried at every value. Those below moved the numbers of a run, or raised, on the CPU, or can on a GPU.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
from jax._src.config import config_states  # of which JAX exports some

PINS: dict[str, Any] = {
    # types and shapes
    "jax_enable_x64": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    # random numbers
    "jax_default_prng_impl": "threefry2x32",
    "jax_legacy_prng_key": "allow",
    "jax_random_seed_offset": 0,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_threefry_partitionable": True,
    # what a program becomes
    "eager_constant_folding": False,
    "jax_compiler_enable_remat_pass": True,
    "jax_custom_vjp3": False,
    "jax_default_matmul_precision": None,
    "jax_exec_time_optimization_effort": 0.0,
    "jax_memory_fitting_effort": 0.0,
    "jax_memory_fitting_level": "O2",
    "jax_optimization_level": "UNKNOWN",
    "jax_remat3": False,
    "jax_scan3": False,
    "jax_softmax_custom_jvp": False,
    "jax_use_direct_linearize": True,
    "jax_use_shardy_partitioner": True,
    # what runs, and where
    "jax_debug_infs": False,
    "jax_debug_nans": False,
    "jax_default_device": None,
    "jax_disable_jit": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_no_execution": False,
    "jax_no_tracing": False,
    "jax_transfer_guard_device_to_device": "allow",
    "jax_transfer_guard_device_to_host": "allow",
    "jax_transfer_guard_host_to_device": "allow",
}

COMPILER_PINS = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
}  # JAX_DISABLE_MOST_OPTIMIZATIONS has no context


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """For a block or, as a decorator, a function: in this thread JAX's settings are those of PINS, without a mesh, and then as they were.

    Never around a `yield`: what is pinned would stay so for whoever takes the generator's next value.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(jax.set_mesh(None))
        for name, value in PINS.items():
            stack.enter_context(config_states[name](value))
        yield

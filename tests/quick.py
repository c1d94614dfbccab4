"""Programs that XLA compiles in a fifth of the time. They are slower, and differ by roundings from those that are in use.

What is compiled is the same, so they do for a test that asks what the engine computes. A test that asks for numbers that were published or
recorded, for bits, or for what a compilation leaves behind, has the programs in use.
"""

from functools import lru_cache, partial

import jax
import pytest

from core.engine import admin, group, training
from core.engine.compilation import PROGRAMS

QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
quick_jit = partial(jax.jit, compiler_options=QUICK)
# With caches of their own, so that no other test is given a program of these.
COMPILERS = [
    (module, name, lru_cache(maxsize=PROGRAMS)(getattr(module, name).__wrapped__))
    for module, name in ((training, "compile_shape"), (group, "compile_group_shape"), (admin, "compile_pass"))
]


def compile_quickly(patch: pytest.MonkeyPatch) -> None:
    """From here on, until what was patched is undone."""
    patch.setattr(training, "COMPILER_OPTIONS", {"cpu": QUICK})
    patch.setattr(admin, "COMPILER_PINS", QUICK)
    for module, name, compiler in COMPILERS:
        patch.setattr(module, name, compiler)

"""The half that needs JAX: data, initialization, model and training. Importing it raises DeviceError where JAX cannot be imported."""

from core.engine.start import why_no_jax
from core.machine import DeviceError

if reason := why_no_jax():
    raise DeviceError(reason)

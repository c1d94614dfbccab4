"""What is said where JAX does not start. This file stays imported where that keeps the rest of the engine from being so."""

from functools import cache

from core import host
from core.values import first_line


@cache  # a JAX that could not be imported says on the second try only that it is the second
def why_no_jax() -> str:
    """One sentence where JAX cannot be imported; empty where it can."""
    try:
        import jax  # noqa: F401
    except Exception as error:  # of whatever kind it has for a setting that it cannot read
        return no_start(error)
    return ""


def no_start(error: Exception) -> str:
    """What JAX says, beside the environment variables that it reads."""
    settings = " ".join(f"{name}={value}" for name, value in sorted(host.variables().items()) if name.startswith("JAX_"))
    reason = first_line(error) if str(error) else "it finds no such device"
    return f"JAX does not start here{settings and f' with {settings}'}: {reason}."

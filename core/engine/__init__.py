"""The half that needs JAX: data, initialization, model and training."""

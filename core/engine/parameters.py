"""A run's parameters: which there are, and how few arrays hold them while it is trained.

As Flax names them they are a tree, in which the blocks of a segment are stacked along a leading axis. A program trains them
packed, since what the optimizer and the measures compile to, and launch, grows with the number of arrays: compiling a packed run takes 0.7
of the time (docs/performance.md).
Shapes, besides the model's: P numbers of a row.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from core.engine.block import NORM_MODULES, Scales, block_of
from core.placement.record import Stack, Structure
from core.runs.config import RunConfig

Tree = dict[str, Any]


class Packed(NamedTuple):
    """All parameters, or one number for each of them."""

    segments: list[Any]  # for each segment (L, P): a row has all that belongs to a block
    rest_p: Any


def array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def block_shapes(config: RunConfig, structure: Structure) -> Tree:
    """Of one block."""
    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    return jax.eval_shape(block_of(config, structure).init, key, array(config.length, config.width), Scales(1.0, 1.0, 1.0))["params"]


def rest_shapes(config: RunConfig, stack: Stack) -> Tree:
    """Of what belongs to no block."""
    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    norm = jax.eval_shape(NORM_MODULES[config.norm]().init, key, array(config.width))["params"]
    return {
        "embedding": {"embedding": array(config.vocabulary, config.width)},
        "position": array(config.length, config.width),
        "output": {"kernel": array(config.width, config.vocabulary)},
        **({"embedding_norm": norm} if stack.embedding_norm else {}),
        **({"final_norm": norm} if config.final_norm else {}),
    }


def parameter_shapes(config: RunConfig, stack: Stack) -> Tree:
    def segment_shapes(structure: Structure, count: int) -> Tree:
        return jax.tree.map(lambda leaf: array(count, *leaf.shape), block_shapes(config, structure))

    return rest_shapes(config, stack) | {"segments": [segment_shapes(structure, count) for structure, count in stack.segments]}


def pack(parameters: Tree) -> Packed:
    rest = {name: value for name, value in parameters.items() if name != "segments"}
    return Packed([join(segment, 1) for segment in parameters["segments"]], join(rest, 0))


def unpack(parameters: Packed, config: RunConfig, stack: Stack) -> Tree:
    pairs = zip(parameters.segments, stack.segments, strict=True)
    segments = [cut(rows_lp, block_shapes(config, structure)) for rows_lp, (structure, _) in pairs]
    return cut(parameters.rest_p, rest_shapes(config, stack)) | {"segments": segments}


def join(tree: Tree, leading: int) -> Any:
    """The leaves' numbers one after the other, along a last axis behind the `leading` ones."""
    rows = [leaf.reshape((*leaf.shape[:leading], -1)) for leaf in jax.tree.leaves(tree)]
    return namespace(rows[0]).concatenate(rows, axis=-1)


def cut(rows_p: Any, shapes: Tree) -> Tree:
    """The reverse of `join`: a tree of these shapes from the last axis."""
    leaves, structure = jax.tree.flatten(shapes)
    parts = namespace(rows_p).split(rows_p, np.cumsum([leaf.size for leaf in leaves])[:-1], axis=-1)
    return jax.tree.unflatten(structure, [part.reshape((*part.shape[:-1], *leaf.shape)) for part, leaf in zip(parts, leaves, strict=True)])


def namespace(values: Any) -> Any:
    """What computes with such arrays: on the host nothing is compiled for it."""
    return np if isinstance(values, np.ndarray) else jnp

"""What a run records at every step: a new quantity is one entry of QUANTITIES, and the line of the engine that measures it.

The history, the files, the CSVs and the charts have their columns from here, in this order. A test holds the README's table to it.
"""

from dataclasses import dataclass
from typing import Literal

FILE_FORMAT = 2  # of a run's file: raise it with every change of its columns, and say in `since` which are new


@dataclass(frozen=True, slots=True)
class Quantity:
    name: str  # of its column, and of what the engine measures
    title: str
    unit: str  # on an axis
    says: str  # one sentence, for captions and the README
    per: Literal["step", "layer", "block"]  # one number a step; one for each layer 0..L, the embedding first; or one for each block 1..L
    # How the values of several devices, each with its part of the batch, become one: the gradients are averaged before they are measured.
    across: Literal["mean", "maximum", "sum", "equal"] = "mean"
    log: bool = True  # whether its axis is logarithmic
    charted: bool = True  # on the charts of curves and layers; else a lens shows it
    measured: bool = True  # by the engine, in float32; else it follows from the settings, in float64
    finite: bool = False  # in every step but the one in which a run diverges; others may be beyond float32, or 0 / 0, while a run goes on
    since: int = 1  # the first FILE_FORMAT that has it

    def shape(self, layers: int) -> tuple[int, ...]:
        """Of what one step records."""
        return {"step": (), "layer": (layers + 1,), "block": (layers,)}[self.per]

    @property
    def first_layer(self) -> int:
        """Layer 0, the embedding, has a stream but is no block."""
        return 1 if self.per == "block" else 0


def signal(sublayer: str, way: str, source: str) -> Quantity:
    """Of the loss's gradient by what a sublayer reads, the part that comes back by one way."""
    reader = sublayer.replace("_", "-")
    return Quantity(
        f"{sublayer}_{way}_signal",
        f"{reader} {way} signal".capitalize(),
        "L2",
        f"L2 norm, over the batch, of the part of the loss's gradient that reaches the input of {reader} {source}.",
        "block",
        across="equal",
        charted=False,
    )


QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in [
        Quantity(
            "loss",
            "Loss",
            "nats per token",
            "Mean cross-entropy of the step's batch, in nats per token, before the update.",
            "step",
            finite=True,
        ),
        Quantity(
            "gradient_norm",
            "Gradient norm",
            "L2",
            "L2 norm of the gradient of all parameters, before any clipping.",
            "step",
            across="equal",
            finite=True,
        ),
        Quantity(
            "learning_rate", "Learning rate", "per step", "Learning rate at each step.", "step", log=False, measured=False, finite=True
        ),
        Quantity(
            "stream_rms",
            "Stream RMS",
            "per feature",
            "Size of the residual stream after each layer: root-mean-square over features, averaged over tokens. Layer 0 is the embedding.",
            "layer",
        ),
        Quantity(
            "block_gradient_norm",
            "Block gradient norm",
            "L2",
            "L2 norm of the gradient of one block's parameters, before any clipping.",
            "block",
            across="equal",
            finite=True,
        ),
        Quantity(
            "update_ratio",
            "Update ratio",
            "change ÷ stream",
            "Length of the change that a block makes, divided by the length of the stream that it reads, averaged over tokens.",
            "block",
        ),
        signal("attention", "stream", "along the stream"),
        signal("attention", "branch", "through the branch"),
        signal("feed_forward", "stream", "along the stream"),
        signal("feed_forward", "branch", "through the branch"),
        Quantity(
            "stream_peak",
            "Stream peak",
            "largest feature",
            "Largest absolute feature of the residual stream after each layer, of all tokens of the batch. Layer 0 is the embedding.",
            "layer",
            across="maximum",
            since=2,
        ),
    ]
}
CURVES = {name: quantity for name, quantity in QUANTITIES.items() if quantity.charted and quantity.per == "step"}
LAYERS = {name: quantity for name, quantity in QUANTITIES.items() if quantity.charted and quantity.per != "step"}

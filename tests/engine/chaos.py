"""How far Post-Norm without warmup, the article's second run, spreads when its initial parameters move by a few roundings.

`python -m tests.engine.chaos [perturbations]` prints the tables of docs/reproduction.md; each perturbation takes about half a minute.
"""

import sys
from functools import reduce
from itertools import chain
from operator import add
from typing import Any
from unittest.mock import patch

import jax
import numpy as np

from benchmarks import baseline
from core.data_tasks import TASKS
from core.engine import training
from core.engine.devices import set_up_jax
from core.engine.initialization import initial_parameters
from core.runs.history import History
from core.runs.outcome import outcome
from core.runs.presets import ARTICLE

CONFIG = ARTICLE[1]
RELATIVE = 3e-7  # about two and a half roundings of float32


def perturbed(parameters: Any, perturbation: int) -> Any:
    """Each parameter times 1 + RELATIVE times a standard normal number; perturbation 0 is none."""
    random = np.random.default_rng(perturbation)
    size = RELATIVE if perturbation else 0.0
    return jax.tree.map(lambda leaf: (leaf * (1 + size * random.standard_normal(leaf.shape))).astype(np.float32), parameters)


def own_way(perturbation: int) -> History:
    loss_s, norm_s = np.array(list(baseline.train(CONFIG, perturbed(baseline.Transformer(CONFIG).initial(), perturbation)))).T
    return History.empty(CONFIG.layers).replace(loss=loss_s, gradient_norm=norm_s)


def engine(perturbation: int, device_count: int | None) -> History:
    program = training.compile_program(CONFIG, "cpu", device_count)
    with patch.object(training, "initial_parameters", lambda config: perturbed(initial_parameters(config), perturbation)):
        return reduce(add, training.Training(CONFIG, program))


PROGRAMS = {
    "article's way": own_way,
    "engine, 1 device": lambda perturbation: engine(perturbation, 1),
    "engine, all devices": lambda perturbation: engine(perturbation, None),
}


def main() -> None:
    set_up_jax()  # before the article's own way uses JAX, which then has one device
    print("| program | perturbation | outcome | final loss | largest gradient norm | at step |\n|---|---|---|---|---|---|")
    histories: dict[str, list[History]] = {program: [] for program in PROGRAMS}
    for perturbation in range(1 + int(sys.argv[1] if len(sys.argv) > 1 else 12)):
        for program, train in PROGRAMS.items():
            history = train(perturbation)
            histories[program].append(history)
            norm_s = history["gradient_norm"]
            figures = f"{history['loss'][-1]:.3f} | {norm_s.max():.2f} | {norm_s.argmax() + 1}"
            print(f"| {program} | {perturbation or 'none'} | {outcome(history, TASKS['progression'])} | {figures} |", flush=True)

    print("\n| step | loss, spread | gradient norm, spread |\n|---|---|---|")
    everyone = list(chain.from_iterable(histories.values()))
    for step in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30):
        spreads = [
            np.ptp(row_p) / np.median(row_p)
            for row_p in ([h["loss"][step - 1] for h in everyone], [h["gradient_norm"][step - 1] for h in everyone])
        ]
        print(f"| {step} | {spreads[0]:.1e} | {spreads[1]:.1e} |")


if __name__ == "__main__":
    main()

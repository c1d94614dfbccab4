"""What is to be said of a Jacobian's singular values."""

from collections.abc import Sequence

import numpy as np

WHEN = ("before training", "after training")
NIL = 1e-9  # a smaller singular value is not shown: it is what rounding leaves where a norm takes a whole direction away


def unshown_of_spectrum(before_d: np.ndarray, after_d: np.ndarray) -> str:
    """A sentence on the singular values, (D,) each, that `spectrum_chart` leaves out; empty where it shows all."""
    values = dict(zip(WHEN, (before_d, after_d), strict=True))
    small = ", ".join(f"{count} {when}" for when, value_d in values.items() if (count := int((value_d < NIL).sum())))
    notes = [f"{small}, below 10⁻⁹, where rounding is all there is"] if small else []
    notes += [f"those {when}, which are not numbers" for when, value_d in values.items() if np.isnan(value_d).all()]
    notes += [f"those {when} that are beyond float32" for when, value_d in values.items() if np.isinf(value_d).any()]
    return f"Not shown: {'; '.join(notes)}." if notes else ""


def spectrum_domain(spectra: Sequence[np.ndarray]) -> tuple[float, float]:
    """The least and the greatest singular value that is shown of any of these arrays; the range always contains one."""
    values = np.concatenate([np.ones(1), *(spectrum.ravel() for spectrum in spectra)])
    visible = values[(values >= NIL) & np.isfinite(values)]
    return float(visible.min()), float(visible.max())

"""Any legal run, drawn from the settings' records."""

from typing import Any

from hypothesis import strategies as st

from core.placement.table import PLACEMENTS
from core.runs.config import SETTINGS, RunConfig, conflicts
from core.runs.settings import Choice, Number, Setting, Switch

DESIGNS = ("custom:attn=input,ffn=outer,alpha=1.5", "custom:attn=none,ffn=input+outer,gain=0.5,learned=vector")


def legal_values(setting: Setting) -> st.SearchStrategy[Any]:
    match setting.kind:
        case Number(least, most, whole):
            return st.integers(int(least), int(most)) if whole else st.floats(least, most)
        case Switch():
            return st.booleans()
        case Choice(titles):
            return st.sampled_from(list(titles))
        case _:
            return st.sampled_from([*PLACEMENTS, *DESIGNS])


@st.composite
def configs(draw: st.DrawFn) -> RunConfig:
    values = {name: draw(legal_values(setting)) for name, setting in SETTINGS.items()}
    if draw(st.booleans()):
        values["final_norm"] = None  # the placement's default
    values |= {name: fitting for name, _, fitting in conflicts(values)}
    return RunConfig(**values)

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runs.config import SETTINGS, RunConfig
from core.runs.labels import labels
from core.runs.presets import ARTICLE, PRESETS


def test_the_articles_runs_have_the_names_that_it_published() -> None:
    published = pd.read_csv(Path(__file__).parents[1] / "data" / "article.csv")
    assert labels(ARTICLE) == list(published["run"].unique())


@pytest.mark.parametrize("preset", PRESETS)
def test_names_within_a_preset_differ_without_being_numbered(preset: str) -> None:
    names = labels(PRESETS[preset][1])
    assert len(set(names)) == len(names)
    assert not any(name.endswith(")") for name in names)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"norm": "rmsnorm"}, "RMSNorm"),
        ({"layers": 1}, "1 block"),
        ({"layers": 24}, "24 blocks"),
        ({"width": 128}, "width 128"),
        ({"heads": 1}, "1 head"),
        ({"heads": 8}, "8 heads"),
        ({"length": 64}, "length 64"),
        ({"batch": 7}, "batch 7"),
        ({"steps": 90}, "90 steps"),
        ({"learning_rate": 1e-5}, "rate 1e-05"),
        ({"seed": 8}, "seed 8"),
    ],
)
def test_what_differs_is_named(change: dict[str, object], name: str) -> None:
    plain = RunConfig()
    assert labels([replace(plain, **change)]) == ["Pre-Norm · no warmup"]
    assert labels([plain, replace(plain, **change)])[1] == f"Pre-Norm · no warmup · {name}"


def test_designs_are_told_apart_by_their_texts() -> None:
    one, other = RunConfig(placement="custom:attn=input,ffn=outer"), RunConfig(placement="custom:attn=none,ffn=none,alpha=2")
    assert labels([one, RunConfig()]) == ["Own design · no warmup", "Pre-Norm · no warmup"]
    assert labels([one, other]) == [
        "Own design (attn=input, ffn=outer) · no warmup",
        "Own design (attn=none, ffn=none, alpha=2) · no warmup",
    ]


def test_qk_norm_is_named_where_it_is_on() -> None:
    assert labels([RunConfig(), RunConfig(qk_norm=True)]) == ["Pre-Norm · no warmup", "Pre-Norm · no warmup · QK-norm"]


def test_a_final_norm_is_named_where_it_is_not_its_placements_own() -> None:
    assert labels([RunConfig(final_norm=False)]) == ["Pre-Norm · no warmup · no final norm"]
    assert labels([RunConfig("post", final_norm=True), RunConfig("post")]) == [
        "Post-Norm · no warmup · final norm",
        "Post-Norm · no warmup",
    ]


def test_every_setting_has_its_words() -> None:
    """The placement and the warmup are in every label."""
    assert {name for name, setting in SETTINGS.items() if setting.label is None} == {"placement", "warmup"}


@given(
    st.lists(
        st.builds(
            RunConfig,
            placement=st.sampled_from(["pre", "post"]),
            layers=st.integers(1, 3),
            warmup=st.sampled_from([0, 0.001, 0.5]),
            final_norm=st.sampled_from([None, True]),
            qk_norm=st.booleans(),
        )
    )
)
def test_names_are_unique_and_say_the_placement(configs: list[RunConfig]) -> None:
    names = labels(configs)
    assert len(set(names)) == len(names) == len(configs)
    for config, name in zip(configs, names, strict=True):
        assert name.startswith({"pre": "Pre-Norm", "post": "Post-Norm"}[config.placement])

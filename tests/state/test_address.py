import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import configs

from core.placement.table import PLACEMENTS
from core.runs.config import NORMS, SETTINGS, RunConfig
from core.state.address import LONG_NAMES, SEPARATOR, read_run, write_run

SUCH = "such as custom:attn=input,ffn=outer"


@given(configs())
def test_a_run_survives_its_address(config: RunConfig) -> None:
    assert read_run(write_run(config)) == (config, [])


def test_only_what_differs_from_the_placements_default_run_is_said() -> None:
    assert write_run(RunConfig()) == "pre"
    config = RunConfig(placement="post", layers=24, learning_rate=1e-5, final_norm=True)
    assert config.changes() == {"final_norm": True, "layers": 24, "learning_rate": 1e-5}
    assert write_run(config) == SEPARATOR.join(["post", "final_norm-true", "layers-24", "lr-1e-05"])


@given(st.text())
@example("")
@example("post~~~")
@example("~layers-3")
@example("pre~layers")
@example("pre~-")
@example("pre~heads-7~width-17")
@example("pre~layers-" + "9" * 5000)
@example("pre~lr-nan~warmup-inf~seed--1")
def test_no_address_is_an_error(text: str) -> None:
    config, sentences = read_run(text)
    assert read_run(write_run(config)) == (config, [])
    assert all(sentence.endswith(".") for sentence in sentences)


@given(st.lists(st.tuples(st.sampled_from([*SETTINGS, *LONG_NAMES]), st.text() | st.floats().map(repr))))
def test_no_value_in_an_address_is_an_error(settings: list[tuple[str, str]]) -> None:
    config, sentences = read_run(SEPARATOR.join(["post", *(f"{name}-{value}" for name, value in settings)]))
    assert RunConfig(**config.to_dict()) == config
    assert all(sentence.endswith(" used.") or "is not a setting" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("text", "expected", "sentence"),
    [
        ("pre~layers-1000", RunConfig(layers=96), "layers is '1000'; it must be a whole number from 1 to 96. 96 is used."),
        ("pre~layers-11.6", RunConfig(layers=12), "layers is '11.6'; it must be a whole number from 1 to 96. 12 is used."),
        ("pre~lr-0", RunConfig(learning_rate=1e-6), "learning_rate is '0'; it must be a number from 1e-06 to 1. 1e-06 is used."),
        ("pre~lr-fast", RunConfig(), "learning_rate is 'fast'; it must be a number from 1e-06 to 1. 0.002 is used."),
        ("pre~heads-7", RunConfig(heads=4), "heads is 7; it must divide the width, which is 64. 4 is used."),
        ("post~final_norm-maybe", RunConfig("post"), "final_norm is 'maybe'; it must be true or false. false is used."),
        ("best", RunConfig(), f"placement is 'best'; it must be one of {', '.join(PLACEMENTS)}, or a design {SUCH}. pre is used."),
        ("pre~norm-batch", RunConfig(), f"norm is 'batch'; it must be one of {', '.join(NORMS)}. layernorm is used."),
    ],
)
def test_the_nearest_legal_value_takes_the_place_of_a_bad_one(text: str, expected: RunConfig, sentence: str) -> None:
    assert read_run(text) == (expected, [sentence])

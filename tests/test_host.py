"""The environment variables by which a host sets limits and places."""

import re
from pathlib import Path

import pytest

from core import host
from core.runs.config import SETTINGS
from core.runs.settings import Number

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("text", ["", "/somewhere", " a b "])
def test_a_text_is_what_the_host_wrote(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("NORMLAB_CACHE", text)
    assert host.text("CACHE") == text


@pytest.mark.parametrize(
    ("text", "expected"), [("12", 12.0), ("-0.5", -0.5), ("1e3", 1000.0), ("", None), ("many", None), ("nan", None), ("inf", None)]
)
def test_a_number_is_finite_or_none(monkeypatch: pytest.MonkeyPatch, text: str, expected: float | None) -> None:
    monkeypatch.setenv("NORMLAB_MAX_LAYERS", text)
    assert host.number("MAX_LAYERS") == expected


def test_what_is_not_set_is_empty_and_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NORMLAB_SCHEDULER", raising=False)
    assert (host.text("SCHEDULER"), host.number("SCHEDULER")) == ("", None)


def test_the_environment_is_read_in_one_place() -> None:
    reading = re.compile(r"os\.environ|getenv|import environ")
    sources = [ROOT / "app.py", *(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    assert [path for path in sources if reading.search(path.read_text())] == [ROOT / "core" / "host.py"]


def test_the_readme_names_every_variable() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in host.VARIABLES:
        names = [name.replace("<SETTING>", setting.upper()) for setting, record in SETTINGS.items() if isinstance(record.kind, Number)]
        assert any(f"`NORMLAB_{name}" in readme for name in names)

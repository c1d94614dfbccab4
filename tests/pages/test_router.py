"""What every page has, wherever the app is started from."""

from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

ROUTER = Path(__file__).parents[2] / "pages" / "router.py"


def test_its_icon_is_found_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def hear(**settings: Any) -> None:
        asked.update(settings)
        st.stop()

    monkeypatch.setattr(st, "set_page_config", hear)
    monkeypatch.chdir(tmp_path)
    AppTest.from_file(ROUTER).run()
    assert asked["page_icon"].read_text().startswith("<svg")

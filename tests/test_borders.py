"""The borders between the parts, held from who imports whom."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in [ROOT / "app.py", *(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
}
CORE = sorted(module for module in PATHS if module.split(".")[0] == "core")
ENGINE = [module for module in CORE if module.startswith("core.engine")]
WITHOUT_JAX = [module for module in PATHS if module not in ENGINE]
PAGES = sorted(module for module in PATHS if module == "app" or (module.startswith("pages.") and not module.startswith("pages.ui")))
CHARTS = {"core.figures", "core.images"}


def statements(node: ast.AST, loading: bool) -> Iterator[ast.AST]:
    """All nodes below, or only those that run when the module is loaded."""
    for child in ast.iter_child_nodes(node):
        if not (loading and runs_later(child)):
            yield child
            yield from statements(child, loading)


def runs_later(node: ast.AST) -> bool:
    """Whether a node runs when it is called, or never: what stands under `if TYPE_CHECKING`."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


@cache
def imports(module: str, loading: bool = False) -> frozenset[str]:
    """What a module imports, each name also with all that lies above it: core.engine.model is an import of core.engine too."""
    names = set()
    for node in statements(ast.parse(PATHS[module].read_text()), loading):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import, which this test does not follow"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(".".join(name.split(".")[:parts]) for name in names for parts in range(1, name.count(".") + 2))


def loads(module: str) -> set[str]:
    """Everything that is imported, directly or by way of this project's modules, when a module is loaded."""
    found, waiting = set(), [module]
    while waiting:
        new = imports(waiting.pop(), loading=True) - found
        found |= new
        waiting += new & PATHS.keys()
    return found


def test_imports_are_seen_at_all() -> None:
    assert {"jax", "flax", "core.engine.model"} <= loads("core.engine.training")
    assert "altair" in imports("core.figures")
    assert any("core.engine" in imports(module) - imports(module, loading=True) for module in CORE)
    assert {"streamlit", "core.jobs"} <= loads("app") | set().union(*map(loads, PAGES))


@pytest.mark.parametrize("module", CORE)
def test_core_knows_no_streamlit_and_no_pages(module: str) -> None:
    assert not imports(module) & {"streamlit", "pages", "app"}


@pytest.mark.parametrize("module", CORE)
def test_only_the_charts_know_altair(module: str) -> None:
    assert module in CHARTS or "altair" not in imports(module)


@pytest.mark.parametrize("module", WITHOUT_JAX)
def test_nothing_outside_the_engine_waits_for_jax_to_load(module: str) -> None:
    assert not loads(module) & {"jax", "flax", "optax", "core.engine"}


def test_loading_all_of_core_but_the_engine_loads_no_jax() -> None:
    """The same in a live interpreter, where libraries' own imports count too."""
    program = f"""
import importlib, sys
for module in {[module for module in CORE if module not in ENGINE and module != "core.__main__"]}:
    importlib.import_module(module)
    print(module, *(name for name in ("jax", "streamlit") if name in sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line for line in result.stdout.splitlines() if " " in line] == []


@pytest.mark.parametrize("module", PAGES)
def test_pages_reach_engine_and_jobs_by_way_of_ui(module: str) -> None:
    assert not imports(module) & {"core.engine", "core.jobs"}


@pytest.mark.parametrize("module", PATHS)
def test_nothing_knows_torch(module: str) -> None:
    assert "torch" not in imports(module)


def test_pages_lie_in_folders_so_that_streamlit_does_not_find_them_by_itself() -> None:
    assert [path.name for path in (ROOT / "pages").glob("*.py")] == ["__init__.py"]

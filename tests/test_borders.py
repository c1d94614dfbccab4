"""The borders between the parts, held from who imports whom: which folder stands on which floor is said here, the rest follows."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS: list[set[str]] = [  # of the house, from the ground floor, 0, up: a part imports only from floors below its own
    {"core.once", "core.values"},
    {"core.host", "core.machine"},
    {"core.placement", "core.data_tasks"},
    {"core.drawing", "core.runs"},
    {"core.engine"},
    {"core.lenses", "core.state"},
    {"core.figures", "core.jobs"},
    {"core.cli"},
    {"core.__main__", "benchmarks"},
    {"pages.ui.shared"},
    {"pages.ui.train", "pages.ui.identity_path"},
    {"pages.lab", "pages.theory"},
    {"pages.router", "app"},
]
FLOOR = {part: number for number, parts in enumerate(FLOORS) for part in parts}
SOURCES = [ROOT / "app.py", *(path for top in ("core", "pages", "benchmarks") for path in (ROOT / top).rglob("*.py"))]
PATHS = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCES}
MODULES = sorted(PATHS)
CORE = [module for module in MODULES if module.split(".")[0] == "core"]
JAX = ("jax", "flax", "optax")
# Library: the parts that may import it.
MAY_IMPORT = {
    "streamlit": {"pages.ui.shared", "pages.ui.train", "pages.ui.identity_path", "pages.lab", "pages.theory", "pages.router", "app"},
    "altair": {"core.figures"},
    "torch": {"benchmarks"},
    **{library: {"core.engine", "benchmarks"} for library in JAX},
}


def part_of(module: str) -> str | None:
    """The part of the house that a module belongs to; None for the packages that only hold parts."""
    found = [part for part in FLOOR if module == part or module.startswith(f"{part}.")]
    return found[0] if found else None


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
    above = {".".join(name.split(".")[:parts]) for name in names for parts in range(1, name.count(".") + 2)}
    return frozenset(above - {module})  # a package may import a file of its own


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
    assert "altair" in imports("core.figures.curves")
    assert any("core.engine" in imports(module) - imports(module, loading=True) for module in CORE)
    assert {"streamlit", "core.jobs"} <= loads("app") | loads("pages.lab.train")


def test_every_module_stands_on_a_floor() -> None:
    homeless = {module for module in MODULES if part_of(module) is None}
    assert homeless == {"core", "pages", "pages.ui"}
    assert all(
        PATHS[module].read_text().strip() in ("", f'"""{ast.get_docstring(ast.parse(PATHS[module].read_text()))}"""') for module in homeless
    )


@pytest.mark.parametrize("module", MODULES)
def test_a_part_imports_only_from_floors_below_its_own(module: str) -> None:
    own = part_of(module)
    others = {part for name in imports(module) if (part := part_of(name))} - {own}
    upward = {part for part in others if own is None or FLOOR[part] >= FLOOR[own]}
    assert upward == set(), f"{module} stands on floor {own and FLOOR[own]}"


@pytest.mark.parametrize("module", MODULES)
def test_no_module_comes_back_to_itself_by_its_imports(module: str) -> None:
    """Within a part, too, where the floors say nothing."""
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        new = (imports(waiting.pop()) & PATHS.keys()) - reached
        reached |= new
        waiting += new
    assert module not in reached


@pytest.mark.parametrize("library", MAY_IMPORT)
def test_a_library_is_imported_only_where_it_may_be(library: str) -> None:
    assert {module for module in MODULES if library in imports(module)} <= {
        module for module in MODULES if part_of(module) in MAY_IMPORT[library]
    }


@pytest.mark.parametrize("module", [module for module in MODULES if part_of(module) not in ("core.engine", "benchmarks")])
def test_nothing_outside_the_engine_waits_for_jax_to_load(module: str) -> None:
    assert not loads(module) & ({*JAX, "core.engine"})


def test_loading_all_of_core_but_the_engine_loads_no_jax() -> None:
    """The same in a live interpreter, where libraries' own imports count too."""
    program = f"""
import importlib, sys
for module in {[module for module in CORE if part_of(module) != "core.engine" and module != "core.__main__"]}:
    importlib.import_module(module)
    print(module, *(name for name in ("jax", "streamlit") if name in sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line for line in result.stdout.splitlines() if " " in line] == []


def test_what_a_run_is_needs_no_drawing() -> None:
    assert not {name for name in loads("core.runs.config") if name.startswith("core.drawing")}


@pytest.mark.parametrize("module", [module for module in MODULES if part_of(module) in ("pages.lab", "pages.theory")])
def test_pages_reach_engine_and_jobs_by_way_of_ui(module: str) -> None:
    assert not imports(module) & {"core.engine", "core.jobs"}


def test_pages_lie_in_folders_so_that_streamlit_does_not_find_them_by_itself() -> None:
    assert [path.name for path in (ROOT / "pages").glob("*.py")] == ["__init__.py", "router.py"]

"""Variables that a search found, in a stack's file that otherwise stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.planning.explain.answers import explain
from hpcgen.planning.explain.case import ExplainCase
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.tuning.tune.profile import entry_for
from hpcgen.plugins.tuning.tune.stack_entry import StackEntry, add_to_stack, is_stack, stack_entry
from tests.unit.plugins.tuning.tune.test_results import compared, faster, noisy

HEAD = "# mine\nname: mine\ntitle: A stack\nblocks:\n  python: {}  # why\n"
ENTRY = StackEntry({"MALLOC_ARENA_MAX": "1"}, "MALLOC_ARENA_MAX: measured by somebody")


def test_machine_date_release_and_interval_go_along() -> None:
    found = faster()
    entry = stack_entry(found[1], entry_for(found[1], found[0], "2026-11-29"))
    assert entry is not None and entry.variables == {"OMP_PROC_BIND": "close"}
    for part in ("OMP_PROC_BIND: hpcgen tune 0.", "workstation-main", "2026-11-29", "(", " to ", "times the default's"):
        assert part in entry.note
    plain = compared(noisy(2.0), {"interop": "1"})
    assert stack_entry(plain[1], entry_for(plain[1], plain[0], "2026-11-29")) is None


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "run:\n  mpi: false\n  command: [echo]\n",
        "run:\n  environment:\n    A: b\n    # of old\n    MALLOC_ARENA_MAX: '4'\nnotes:\n  - first\n",
        "run:\n  environment:\n    A: b",
    ],
)
def test_a_stack_gets_the_variable_and_explain_says_how_it_was_measured(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + rest)
    assert is_stack(path)
    add_to_stack(path, ENTRY)
    assert path.read_text().startswith(HEAD)
    catalog = Catalog()
    stack = catalog.stack(str(path))
    assert stack.run.environment["MALLOC_ARENA_MAX"] == "1"
    assert ("A: b" in rest) == ("A" in stack.run.environment)
    case = ExplainCase(make_plan(catalog, catalog.site("workstation"), stack), catalog)
    texts = [ground.text for each in explain(case, "MALLOC_ARENA_MAX") for ground in each.grounds]
    assert any("measured by somebody" in text for text in texts), texts


@pytest.mark.parametrize("rest", ["run: {environment: {A: b}}\n", "run:\n  environment: {A: b}\n"])
def test_what_is_written_otherwise_stays_and_the_entry_is_shown(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + rest)
    with pytest.raises(InputError, match="one key per line") as error:
        add_to_stack(path, ENTRY)
    assert "MALLOC_ARENA_MAX" in str(error.value.problems[0].remedy)
    assert path.read_text() == HEAD + rest

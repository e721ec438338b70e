"""Variables that a search found, in a stack's file that otherwise stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.planning.explain.answers import explain
from hpcgen.planning.explain.case import ExplainCase
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.tuning.bench.comparison import Compared, compare
from hpcgen.plugins.tuning.bench.running import BenchCase, BenchOutcome, run_rounds
from hpcgen.plugins.tuning.bench.variants import Variant
from hpcgen.plugins.tuning.bench.workloads import workload_named
from hpcgen.plugins.tuning.tune.profile import entry_for
from hpcgen.plugins.tuning.tune.stack_entry import StackEntry, add_to_stack, is_stack, stack_entry
from tests.unit.planning.test_memory import planned
from tests.unit.plugins.tuning.bench.test_running import starter
from tests.unit.plugins.tuning.tune.test_results import compared, faster, noisy
from tests.unit.plugins.tuning.tune.test_space import HUGE, keeping

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


def of_memory(variant: Variant, image: BenchCase | None = None) -> list[Compared]:
    """The default of an image that keeps memory, and a variant of it."""
    cells = [BenchOutcome(image or keeping(), workload_named("mlp"), each, "pytorch") for each in (Variant(), variant)]
    run_rounds(cells, rounds=3, starter=starter(lambda asked: 100.0))
    return compare(cells)


@pytest.mark.parametrize("rest", ["run:\n  mpi: false", "memory: measured\nrun:\n  mpi: false\n"])
@pytest.mark.parametrize("huge", [{}, {"GLIBC_TUNABLES": HUGE, "THP_MEM_ALLOC_ENABLE": "1"}])
def test_plain_memory_becomes_a_word_of_the_stack(tmp_path: Path, rest: str, huge: dict[str, str]) -> None:
    found = of_memory(Variant(memory="plain"), keeping(**huge))
    entry = stack_entry(found[1], entry_for(found[1], found[0], "2026-11-29"))
    assert entry is not None and entry.words == ["memory: plain"] and "with memory=plain" in entry.note
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + rest)
    add_to_stack(path, entry)
    stack = Catalog().stack(str(path))
    assert stack.memory == "plain" and stack.notes == [entry.note] and stack.run.environment == {}


def test_memory_that_somebody_asked_for_is_not_taken_away() -> None:
    image = keeping()
    asked = replace(image.job, plan=planned("pytorch", added=["kept_memory"]))
    for each in (keeping(GLIBC_TUNABLES=f"{HUGE}:glibc.malloc.arena_max=1"), replace(image, job=asked)):
        found = of_memory(Variant(memory="plain"), each)
        assert stack_entry(found[1], entry_for(found[1], found[0], "2026-11-29")) is None


def test_huge_pages_on_top_stay_on_top_of_kept_memory() -> None:
    """A stack that sets malloc's tunables has no memory kept by default, and was not measured so."""
    found = of_memory(Variant(environment={"GLIBC_TUNABLES": HUGE}))
    entry = stack_entry(found[1], entry_for(found[1], found[0], "2026-11-29"))
    assert entry is not None and entry.memory == ""
    assert list(entry.variables) == ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"]
    found = of_memory(Variant(memory="plain", environment={"GLIBC_TUNABLES": HUGE}))
    entry = stack_entry(found[1], entry_for(found[1], found[0], "2026-11-29"))
    assert entry is not None and entry.memory == "plain" and list(entry.variables) == ["GLIBC_TUNABLES"]


@pytest.mark.parametrize("rest", ["run: {environment: {A: b}}\n", "run:\n  environment: {A: b}\n"])
def test_what_is_written_otherwise_stays_and_the_entry_is_shown(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + rest)
    with pytest.raises(InputError, match="one key per line") as error:
        add_to_stack(path, ENTRY)
    assert "MALLOC_ARENA_MAX" in str(error.value.problems[0].remedy)
    assert path.read_text() == HEAD + rest

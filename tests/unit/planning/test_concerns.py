"""What release tables say against software that is dead or insecure, in plans and in checks."""

from __future__ import annotations

from pathlib import Path

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.plan import Finding

SOURCE = "source: {from: seen, checked: 2026-11-23, verified: yes}"


def told(folder: Path, concerns: str, stack: str = "onnxruntime") -> list[Finding]:
    """What a plan for a workstation warns of, with a collection's own table about ONNX Runtime."""
    path = folder / "building_blocks" / "onnxruntime.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"block: onnxruntime\nreleases: {{}}\nconcerns:\n{concerns}")
    catalog = Catalog([folder])
    plan = hpcgen.plan("workstation", stack, catalog=catalog)
    assert catalog.releases("onnxruntime").keys() == Catalog().releases("onnxruntime").keys()
    return [each for each in plan.findings if each.name in ("insecure", "unmaintained", "gone")]


def concern(rest: str = "") -> str:
    return f"  - {{kind: insecure, message: it leaks, remedy: use another, {rest}{SOURCE}}}\n"


def test_a_plan_warns_with_what_a_table_says_against_its_release(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, concern())
    assert (finding.name, finding.severity, finding.remedy) == ("insecure", "warning", "use another")
    assert finding.message.startswith("onnxruntime ") and finding.message.endswith(": it leaks")


def test_it_holds_for_its_range_and_options_alone(tmp_path: Path) -> None:
    assert not told(tmp_path, concern("versions: '<1', "))
    assert told(tmp_path, concern("versions: '>=1', "))
    assert not told(tmp_path, concern("only: {install: [source]}, "))
    assert told(tmp_path, concern("only: {install: [pip, source]}, "))


def test_plans_with_other_blocks_say_nothing_of_it(tmp_path: Path) -> None:
    assert not told(tmp_path, concern(), stack="mpi-hello")


@pytest.mark.parametrize(
    ("rest", "message"),
    [("versions: '>2,<1', ", "no version matches"), ("only: {instal: [pip]}, ", "no option 'instal'")],
)
def test_one_that_can_hold_for_nothing_is_a_mistake(tmp_path: Path, rest: str, message: str) -> None:
    from hpcgen.cli.checking import check_release_table

    folder = tmp_path / "building_blocks"
    folder.mkdir()
    (folder / "onnxruntime.yaml").write_text(f"block: onnxruntime\nreleases: {{}}\nconcerns:\n{concern(rest)}")
    catalog = Catalog([tmp_path])
    with pytest.raises(InputError, match=message):
        check_release_table(catalog, catalog.release_documents("onnxruntime")[0])


def test_horovod_is_told_to_be_insecure_wherever_it_is_planned() -> None:
    plan = hpcgen.plan("supermuc", "tf-horovod")
    (finding,) = [each for each in plan.findings if each.name == "insecure"]
    assert "CVE-2024-10190" in finding.message and "horovodrun" in finding.remedy

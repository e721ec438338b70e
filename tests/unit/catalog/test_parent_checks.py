"""An abstract profile is checked by itself, for what it says; what its children say is not asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT, Command

ALL = sorted((ROOT / "site_profiles").glob("*.yaml"))
ABSTRACT = [path for path in ALL if "\nabstract: true" in path.read_text()]
PARENT = """\
name: family
abstract: true
title: A family of systems
containers: {{preferred: {preferred}}}
scheduler: {{kind: slurm}}
mpi: {{flavour: openmpi, launcher: {launcher}}}
partitions:
  gpu: {{gpu: {{count: 4, driver: "{driver}"}}, memory: {{usable_gb: 500}}}}
layouts: [{{partition: cpu, ranks_per_node: 2, threads_per_rank: 1}}]
{more}
"""
GOOD = {"preferred": "apptainer", "launcher": "srun", "driver": "550.54", "more": ""}


@pytest.mark.parametrize("path", ABSTRACT, ids=lambda path: path.stem)
def test_the_shipped_parents_say_nothing_wrong(hpcgen: Command, path: Path) -> None:
    assert len(ABSTRACT) > 8
    assert hpcgen("check", str(path)).returncode == 0


def written(folder: Path, **changed: str) -> Path:
    (folder / "site_profiles").mkdir()
    path = folder / "site_profiles" / "family.yaml"
    path.write_text(PARENT.format(**{**GOOD, **changed}))
    return path


def test_a_parent_without_a_version_may_have_the_standards_mpi(hpcgen: Command, tmp_path: Path) -> None:
    """Which release has it, is said by the sites."""
    assert hpcgen("check", str(written(tmp_path, launcher="srun, abi: mpi5"))).returncode == 0


@pytest.mark.parametrize("more", ["", "system: {glibc: '2.28'}", "fabric: {provider: verbs}", "mpi: null", "{}"])
def test_a_parent_need_not_be_whole(hpcgen: Command, tmp_path: Path, more: str) -> None:
    path = written(tmp_path, more="" if more == "{}" else more)
    if more == "mpi: null":
        path.write_text(path.read_text().replace("mpi: {flavour: openmpi, launcher: srun}\n", ""))
    elif more == "{}":
        path.write_text("name: family\nabstract: true\n")
    assert hpcgen("check", str(path)).returncode == 0


@pytest.mark.parametrize(
    ("changed", "line", "said"),
    [
        ({"preferred": "aptainer"}, 4, "no engine is called 'aptainer'"),
        ({"launcher": "srn"}, 6, "no launcher is called 'srn'"),
        ({"driver": "v550"}, 8, "'v550' is not a version"),
        ({"more": "fabrics: {kind: none}"}, 10, "`fabrics` is not known"),
        ({"more": "fabric: {provider: [verbs]}"}, 10, "must be"),
        ({"more": "system: {glibc: new}"}, 10, "'new' is not a version"),
        ({"more": "image: {distribution: debain}"}, 10, "no distribution is called 'debain'"),
        ({"more": "default_partition: [cpu]"}, 10, "`default_partition` must be"),
        ({"more": "sources: {mpi.pmi: {from: a talk, checked: 2026-01-01, verified: no}}"}, 10, "not a fact"),
        ({"launcher": "srun, abi: mpich"}, 6, "openmpi does not have the binary interface of mpich"),
    ],
)
def test_what_it_says_is_checked_at_its_place(
    hpcgen: Command, tmp_path: Path, changed: dict[str, str], line: int, said: str
) -> None:
    path = written(tmp_path, **changed)
    done = hpcgen("check", str(path))
    assert done.returncode == 3
    assert f"{path}:{line}:" in done.stderr
    assert said in done.stderr
    assert "what children say" not in done.stderr
    assert done.stderr.count("hpcgen: error:") == 1, done.stderr

"""``hpcgen init`` in projects in R and Julia."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.model.stack import Stack
from hpcgen.project.draft import Draft, stack_text
from hpcgen.project.making import draft_of
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.julia_project import read_julia_project
from tests.conftest import Command

LOCK = {
    "R": {"Version": "4.3.1", "Repositories": []},
    "Packages": {
        "sf": {"Package": "sf", "Version": "1.0-14", "Source": "Repository", "Hash": "0" * 32},
        "units": {"Package": "units", "Source": "Repository"},
        "ourtools": {"Package": "ourtools", "Source": "GitHub"},
        "renv": {"Package": "renv", "Source": "Repository"},
    },
}
PROJECT = """\
name = "Flow"
[deps]
MPI = "da04e1cc-30fd-572f-bb4f-1f8673147195"
Printf = "de0858da-6303-5e67-8744-51eddeeeb8d7"
[compat]
julia = "1.10"
"""


def drafted(top: Path, files: dict[str, str]) -> Draft:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text, "utf-8")
    draft = draft_of(top, Catalog())
    assert convert(loads(stack_text(draft), "hpcgen.yaml"), Stack).name == draft.data["name"]
    return draft


def remarks(draft: Draft) -> str:
    return "\n".join(f"{each.where.file if each.where else ''}: {each.text}" for each in draft.remarks)


def test_a_lock_of_renv_gives_what_the_scripts_load(tmp_path: Path) -> None:
    script = "library(sf)\n# library(never)\nourtools::fit(1)\nstats::sd(1)\n"
    draft = drafted(tmp_path, {"renv.lock": json.dumps(LOCK, indent=1), "code/a.R": script, "main.R": "1\n"})
    assert draft.blocks["r"] == {"options": {"packages": ["sf"]}}
    assert draft.data["run"]["command"] == ["Rscript", "/app/main.R"] and "python" not in draft.blocks
    assert "of R 4.3.1" in remarks(draft) and "not installed: ourtools" in remarks(draft)
    (tmp_path / "code/a.R").unlink()
    assert draft_of(tmp_path, Catalog()).blocks["r"] == {"options": {"packages": ["sf", "units"]}}


def test_packages_of_a_description_of_scripts_and_of_a_container(tmp_path: Path) -> None:
    text = "Package: ours\nDepends: R (>= 4.1), methods,\n    data.table (>= 1.14)\n"
    text += "Imports:\n    Rcpp,\n    stats\nSuggests: ggplot2\n"
    assert drafted(tmp_path / "a", {"DESCRIPTION": text}).blocks["r"]["options"]["packages"] == ["data.table", "Rcpp"]
    package = {"DESCRIPTION": text, "NAMESPACE": "export(fit)\n", "R/fit.R": "fit <- function() 1\n"}
    draft = drafted(tmp_path / "d", package)
    assert draft.data["build"]["commands"] == ['mkdir -p "$PREFIX/R"', 'R CMD INSTALL --library="$PREFIX/R" .']
    assert draft.data["run"]["environment"] == {"R_LIBS": "/opt/application/R"}
    draft = drafted(tmp_path / "e", {**package, "DESCRIPTION": text.replace("Rcpp", "qs2")})
    assert "build" not in draft.data and "not installed, since qs2 is not" in remarks(draft)
    draft = drafted(tmp_path / "b", {"fit.r": 'suppressMessages(library("MASS"))\npacman::p_load(dplyr, tidyr)\n'})
    assert set(draft.blocks["r"]["options"]["packages"]) == {"MASS", "dplyr", "tidyr"}
    assert draft.data["run"]["command"] == ["Rscript", "/app/fit.r"]
    draft = drafted(tmp_path / "c", {"Dockerfile": "FROM rocker/r-ver:4.3\nRUN install2.r lme4\n", "job.sh": JOB})
    assert draft.blocks["r"] == {"options": {"packages": ["lme4"]}}
    assert draft.data["run"]["command"] == ["Rscript", "x.R"]


JOB = "#!/bin/bash\n#SBATCH -N 1\nRscript x.R\n"


def test_a_script_of_r_in_another_project_changes_nothing(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"requirements.txt": "numpy\n", "main.py": "print(1)\n", "plot.R": "library(ggplot2)\n"})
    assert "r" not in draft.blocks and draft.data["run"]["command"] == ["python3", "/app/main.py"]


def test_a_project_in_julia(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"Project.toml": PROJECT, "run.jl": "using MPI\n", "src/Flow.jl": "module Flow end\n"})
    assert draft.blocks["julia"] == {"options": {"mpi": True}, "version": ">=1.10,<2"} and "mpi" in draft.blocks
    assert draft.data["run"]["command"] == ["julia", "--project=/app", "--threads=auto", "/app/run.jl"]
    assert "Pkg.instantiate()" in draft.data["build"]["commands"][0] and draft.data["copy"]
    assert "no Manifest.toml" in remarks(draft) and "Pkg needs a network" in remarks(draft)
    (tmp_path / "Manifest.toml").write_text('julia_version = "1.11.2"\n[[deps.CUDA]]\nuuid = "0"\n', "utf-8")
    draft = draft_of(tmp_path, Catalog())
    assert draft.blocks["julia"]["version"] == ">=1.11,<1.12" and "no Manifest.toml" not in remarks(draft)
    assert "CUDA fetches its libraries on first use" in remarks(draft)
    (tmp_path / "Manifest.toml").write_text('julia_version = "1.6.7"\n', "utf-8")
    assert "of which hpcgen has no release" in remarks(draft_of(tmp_path, Catalog()))


@pytest.mark.parametrize(
    ("compat", "expected"),
    [
        ("1", ">=1,<2"),
        ("1.9, 1.10", ">=1.9,<2"),
        ("^1.10.4", ">=1.10.4,<2"),
        ("~1.10", ">=1.10,<1.11"),
        ("~1.10.3", ">=1.10.3,<1.11"),
        ("=1.10.10", "==1.10.10"),
        (">= 1.9", ">=1.9,<2"),
        ("1.9 - 1.11", ""),
        ("x" * 9999, ""),
    ],
)
def test_ranges_of_julia(tmp_path: Path, compat: str, expected: str) -> None:
    (tmp_path / "Project.toml").write_text(f'[compat]\njulia = "{compat}"\n', "utf-8")
    assert read_julia_project(ProjectFolder(tmp_path), "Project.toml").version == expected


HOSTILE = [
    "",
    "{",
    "[" * 9999,
    '{"R": 1}',
    '{"Packages": {"a b": {}, "$(x)": {}, "sf": {}}}',
    "library(" * 9999,
    "\x1b[2J: x",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_files_harm_nobody(tmp_path: Path, text: str) -> None:
    names = ("renv.lock", "DESCRIPTION", "a.R", "Project.toml", "Manifest.toml", "a.jl")
    draft = drafted(tmp_path, {**dict.fromkeys(names, text), "b.py": "print(1)\n"})
    assert all(line.isprintable() for line in stack_text(draft).splitlines())


@pytest.mark.parametrize(
    "files", [{"renv.lock": json.dumps(LOCK), "main.R": "library(sf)\n"}, {"Project.toml": PROJECT, "a.jl": ""}]
)
def test_the_stacks_are_planned(hpcgen: Command, tmp_path: Path, files: dict[str, str]) -> None:
    drafted(tmp_path, files)
    assert hpcgen("init").returncode == 0
    for site in ("workstation", "lumi-g", "supermuc"):
        done = hpcgen("plan", "--site", site, "--account", "a")
        assert done.returncode == 0, done.stderr


def test_scripts_of_r_are_offered_one_by_one_and_no_version_is_printed_in_their_place(tmp_path: Path) -> None:
    lock = json.dumps(LOCK)
    files = {
        "README.Rmd": "",
        "renv.lock": lock,
        "code/01_fit.R": "1\n",
        "code/02_maps.Rmd": 'readRDS("data/a/b.rds")\n',
        "data/a/b.rds": "",
    }
    draft = drafted(tmp_path, files)
    assert "command" not in draft.data["run"] and draft.data["copy"]
    assert "`hpcgen init --command 1` takes Rscript code/01_fit.R" in remarks(draft)
    draft = draft_of(tmp_path, Catalog(), "02_maps")
    assert draft.data["run"]["command"][:2] == ["Rscript", "-e"]
    # The document names its files from the top of the project, and the image cannot be written to.
    text = draft.data["run"]["command"][2]
    assert 'render("/app/code/02_maps.Rmd", output_dir = getwd()' in text and "knit_root_dir = getwd()" in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('R CMD BATCH "--no-save --args $SLURM_ARRAY_TASK_ID 7" ../code/fit.R ../log/fit.Rout', ["$HPCGEN_TASK", "7"]),
        ("R --vanilla -f ../code/fit.R --args 3", ["3"]),
        ("R --no-save --file=../code/fit.R", []),
    ],
)
def test_r_itself_starts_a_script(tmp_path: Path, line: str, words: list[str]) -> None:
    job = f"#!/bin/bash\n#SBATCH --array=0-3\nmodule load R\n{line}\n"
    draft = drafted(tmp_path, {"jobs/fit.sh": job, "code/fit.R": "library(MASS)\nf()\n", "code/other.R": "1\n"})
    assert draft.blocks["r"]["options"]["packages"] == ["MASS"]
    text = " ".join(draft.data["run"]["command"])
    assert "Rscript /app/code/fit.R" in text and all(word in text for word in words) and "Rout" not in text


def test_a_script_that_only_installs_packages_is_no_program(tmp_path: Path) -> None:
    restores = '# Once.\nlibrary(renv)\nrenv::restore()\ninstall.packages(c("a",\n  "b"))\n'
    files = {"environment.R": restores, "code/01_fit.R": "1\n", "code/02_map.R": "2\n"}
    assert "command" not in drafted(tmp_path, files).data["run"]
    (tmp_path / "environment.R").write_text("renv::restore()\nfit()\n")
    assert draft_of(tmp_path, Catalog()).data["run"]["command"] == ["Rscript", "/app/environment.R"]


def test_julia_starts_in_the_environment_of_its_script(tmp_path: Path) -> None:
    job = "#!/bin/bash\n#SBATCH -N 2\nsrun julia --project=runs -e 'using Flow; vortex()'\n"
    files = {
        "Project.toml": PROJECT,
        "src/Flow.jl": "",
        "runs/Project.toml": '[deps]\nFlow = "1"\n',
        "runs/a.sbatch": job,
    }
    draft = drafted(tmp_path / "a", files)
    assert draft.data["run"]["command"][:2] == ["julia", "--project=/app/runs"]
    (line,) = draft.data["build"]["commands"]
    assert "--project=/app/runs" in line and 'Pkg.develop(path="/app")' in line

    job = "#!/bin/bash\n#SBATCH -N 2\nsrun julia --project tune.jl\n"
    files = {
        "Project.toml": PROJECT,
        "fit/Project.toml": "",
        "fit/Manifest.toml": "",
        "fit/tune.jl": "",
        "fit/a.sbatch": job,
    }
    draft = drafted(tmp_path / "b", files)
    assert draft.data["run"]["command"] == ["julia", "--project=/app/fit", "/app/fit/tune.jl"]
    assert "by their hashes" in stack_text(draft) and "no Manifest.toml" not in remarks(draft)


def test_an_example_of_a_package_of_julia_has_what_it_loads(tmp_path: Path) -> None:
    loads = "using Flow, Plots: plot\nusing Printf\nimport JLD2 as J\nusing .Local\n"
    files = {"Project.toml": PROJECT, "src/Flow.jl": "", "examples/vortex.jl": loads, "examples/other.jl": ""}
    assert "command" not in drafted(tmp_path, files).data["run"]
    draft = draft_of(tmp_path, Catalog(), "vortex")
    assert draft.data["run"]["command"][1:] == [
        "--project=/opt/julia/programs",
        "--threads=auto",
        "/app/examples/vortex.jl",
    ]
    assert 'Pkg.develop(path="/app"); Pkg.add(["JLD2", "Plots"]);' in draft.data["build"]["commands"][0]


def test_packages_that_the_distribution_lacks_come_with_the_r_of_the_lock(hpcgen: Command, tmp_path: Path) -> None:
    packages = {
        **LOCK["Packages"],
        "gstat9": {"Source": "Repository"},
        "DESeq9": {"Source": "Bioconductor"},
        "phylo9": {"Source": "Bioconductor", "Repository": "RSPM"},
    }
    script = "library(sf)\nlibrary(gstat9); library(DESeq9)\nlibrary(phylo9)\nlibrary(ourtools)\n"
    lock = json.dumps({**LOCK, "Packages": packages}, indent=1)
    draft = drafted(tmp_path, {"renv.lock": lock, "main.R": script})
    assert "r" not in draft.blocks and draft.data["run"]["command"] == ["Rscript", "/app/main.R"]
    options = draft.blocks["conda_packages"]["options"]
    assert options["channels"] == ["conda-forge", "bioconda"] and options["packages"][0] == "r-base=4.3"
    assert options["packages"][1:] == ["r-sf", "r-gstat9", "bioconductor-deseq9", "r-phylo9"]
    assert [each for each in draft.data["open"] if "ourtools" in each]
    assert hpcgen("init").returncode == 0 and hpcgen("plan", "--site", "lumi-g", "--account", "a").returncode == 0
